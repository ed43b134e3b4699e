r"""Certified lower bounds on F_rho(M) for all models M of a cell at once.

Let G, b be the exact moments of the space's d columns, G' = G + lambda I with a tiny public ridge,
and rho the radius. Wanted: lower bounds on F_rho(M) = min of beta'G beta - 2 b'beta over beta
supported on M, |beta|_1 <= rho, for all M inside the columns A that are left when O is removed.

**One inequality.** For every beta0 in R^d (whatever it is, however it was found), every diagonal
D >= 0 with G' - D positive semidefinite, and every set R of columns outside M,

    F_rho(M) >= -beta0' G' beta0 - 2 rho max_{j in A} |(b - G' beta0)_j|
                + sum_{j in R} D_j beta0_j^2 - lambda rho^2.                                   (1)

Proof. For beta supported on M, |beta|_1 <= rho: beta'G beta >= beta'G'beta - lambda rho^2, as
|beta|_2 <= |beta|_1; and beta'G'beta - 2 b'beta = (beta - beta0)'G'(beta - beta0) - beta0'G'beta0
- 2 beta'(b - G'beta0). The first term is at least sum_R D_j beta0_j^2, as beta_j = 0 on R; the
last at least -2 rho max_A |b - G'beta0|. QED. Nothing is asked of rank, conditioning or l1 norms.

**Removal.** Let V be the floating-point inverse of G' (symmetric), beta = V b, E = G'V - I and
r = b - G'beta. With beta0 = beta - V_O c for any c, exactly,

    beta0'G'beta0 = beta'G'beta - 2 c'(beta_O + E_O'beta) + c'(V_OO + E_O'V_O)c,
    (b - G'beta0)_A = r_A + (E_O c)_A,

so that (1) is at least a0 + [2 c'beta_O - c'V_OO c] - err(|c|_1), where with e >= max|E|,
rmax >= max|r|, v >= every column's l1 norm in V,

    err(x) = 2 rho (rmax + e x) + 2 e |beta|_1 x + e v x^2 + rounding of the bracket.

The bracket is largest at c = V_OO^{-1} beta_O, where it is the rise of the residual sum of squares,
and removing the columns B of one more unit takes only V_OO^{-1} V_OB. These are computed without
care: any c is certified by (1). Nothing accumulates from cell to cell, so nothing drifts.

Rounding and D: `dpreg.selection.tree.inverse`.

Tested in `tests/selection/tree/test_sampler.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats, Places
from dpreg.selection.space import Space
from dpreg.selection.tree.ball import ball_fit, certify, without_each
from dpreg.selection.tree.counts import members
from dpreg.selection.tree.inverse import TWO_U, UP, diagonal_minorant, invert

__all__ = ["Bounds", "State", "View"]


_RIDGE: Final = 2.0**-24
"""lambda, as a share of the largest diagonal: costs a bound at most 2**-24 n rho^2."""
_MORE: Final = 1.1
_REMEMBERED: Final = 2000


@dataclass(frozen=True, slots=True)
class View:
    """One beta0 of inequality (1).

    Attributes
    ----------
    bound : float
        (1) without its sum over R, which may be added.
    weight : float array, by unit
        What a unit in R adds at least (sums add); NaN for units already removed.
    reserve : float array
        reserve[k]: the sum of the k smallest weights.
    """

    bound: float
    weight: Floats
    reserve: Floats


@dataclass(frozen=True, slots=True)
class State:
    """What is known once a set of units is removed.

    Attributes
    ----------
    views : tuple of View
        From least squares, and from the constrained fit where the ball binds.
    without : float array, by unit
        Certified bound when one more unit is removed; NaN for units already removed.
    expected : float array, by unit
        About how much a state of its own would raise the bound when the unit is removed.
    order : list of int
        Units left, by decreasing `expected`.
    fit : float array or None
        The constrained fit, where the ball binds.
    slack : float
        |least squares|_1 / rho at which the constrained fit was last found not to pay, or 0.
    """

    views: tuple[View, ...]
    without: Floats
    expected: Floats
    order: list[int]
    fit: Floats | None
    slack: float

    @property
    def bound(self) -> float:
        """The best of the views' bounds."""
        return max(view.bound for view in self.views)


class Bounds:
    """Bounds for one problem and space; made once, used by any number of draws.

    Parameters
    ----------
    gram, cross : float arrays, (p + 1, p + 1) and (p + 1,)
        Moments in units of 1, correctly rounded.
    rho : Fraction
        Radius in stored units.
    space : Space
    unit : float
        A difference of bounds worth some work. It changes the time taken, never a bound's truth.
    """

    def __init__(
        self, gram: Floats, cross: Floats, rho: Fraction, space: Space, unit: float = 0.0
    ) -> None:
        self.unit = unit
        self.kept = list(space.keep_columns)
        used = [*self.kept, *(c for unit in space.unit_columns for c in unit)]
        place = {column: at for at, column in enumerate(used)}
        self.columns = used
        self.unit_places = [[place[c] for c in unit] for unit in space.unit_columns]
        self._keep_places = list(range(len(self.kept)))
        self._widths = [
            (
                np.array([u for u, at in enumerate(self.unit_places) if len(at) == width]),
                np.array([at for at in self.unit_places if len(at) == width]),
            )
            for width in sorted({len(at) for at in self.unit_places})
        ]
        self._rho = math.nextafter(float(rho), math.inf)
        d = self._d = len(used)
        self._gram = np.ascontiguousarray(gram[np.ix_(used, used)])
        self._cross = np.ascontiguousarray(cross[used])
        self._largest = float(self._gram.diagonal().max(initial=0.0))
        ridge = 2.0 ** math.ceil(math.log2(max(self._largest, 2.0**-40) * _RIDGE))
        self._ridge_loss = ridge * self._rho**2 * UP
        self._gram[np.diag_indices(d)] += ridge
        self._largest += ridge
        self.floor = -2.0 * self._rho * float(np.abs(self._cross).max(initial=0.0)) * UP
        self._inverse = invert(self._gram, self._cross, self._rho, self._largest, self._ridge_loss)
        self.base = self._inverse.base
        self._weights = diagonal_minorant(self._gram, self._inverse.matrix, self._largest)
        self._states: dict[int, State] = {}

    def _finite(self, bound: Floats) -> Floats:
        return np.where(np.isfinite(bound), np.maximum(bound, self.floor), self.floor)

    def state(self, removed: int, parent: State | None = None) -> State:
        """Return the state of a mask of removed units (remembered by the mask)."""
        known = self._states.get(removed)
        if known is None:
            known = self._states[removed] = self._make(removed, parent)
        return known

    def forget(self) -> None:
        """Drop remembered states beyond what the next draw is sure to use."""
        if len(self._states) > _REMEMBERED:
            self._states = {0: self._states[0]}

    def _make(self, removed: int, parent: State | None) -> State:
        out = [at for u in members(removed).tolist() for at in self.unit_places[u]]
        k, beta = len(out), self._inverse.beta
        rows = self._inverse.matrix[out]
        block, target = rows[:, out], beta[out]
        try:
            solved = np.linalg.solve(block, np.column_stack([rows, target]))
        except np.linalg.LinAlgError:
            solved = np.zeros((k, self._d + 1))
        spread = np.asarray(solved[:, :-1], dtype=np.float64)
        c = np.asarray(solved[:, -1], dtype=np.float64)
        norm = float(np.abs(c).sum())
        gain = float(2 * (c @ target) - c @ (block @ c))
        raw = self.base + gain * (1 - math.copysign(4 * TWO_U, gain))
        bound = raw - float(self._inverse.error(norm, k))
        fitted = beta - c @ rows
        slip = (k + 8) * TWO_U * (self._inverse.beta_max + self._inverse.max * norm)
        q = len(self.unit_places)
        without, left = np.full(q, np.nan), np.ones(q, dtype=np.bool_)
        left[members(removed)] = False
        for units, places in self._widths:
            still = left[units]
            if still.any():
                without[units[still]] = self._without_one(
                    places[still], rows, block, target, spread, c, fitted
                )
        views = [self._view(bound, fitted, slip, left)]
        expected = without - views[0].bound
        fit = None
        excess = float(np.abs(fitted).sum()) / self._rho
        slack = 0.0 if parent is None else parent.slack
        if excess > max(1.0, _MORE * slack):
            allowed = np.ones(self._d)
            allowed[out] = 0.0
            start = fitted if parent is None or parent.fit is None else parent.fit
            fit = ball_fit(self._gram, self._cross, self._rho, allowed, start)
            if self._ball_view(fit, allowed, left, without, expected, views) is None:
                fit, slack = None, excess
        without = np.fmax(without, max(view.bound for view in views))
        without[~left] = expected[~left] = np.nan
        some = np.flatnonzero(left)
        order = some[np.argsort(-expected[some], kind="stable")]
        return State(tuple(views), without, expected, order.tolist(), fit, slack)

    def _view(self, bound: float, beta: Floats, slip: float, left: Bools) -> View:
        """Return the view of beta0, each cell of which is known to within `slip`."""
        square = np.maximum(np.abs(beta) - slip, 0.0) ** 2 * self._weights * (1 - 2.0**-40)
        if not (math.isfinite(bound) and np.isfinite(square).all()):
            bound, square = self.floor, np.zeros_like(beta)
        weight = np.full(len(left), np.nan)
        for units, places in self._widths:
            weight[units] = square[places].sum(axis=1) * (1 - 2.0**-40)
        weight[~left] = np.nan
        reserve = np.concatenate([[0.0], np.cumsum(np.sort(weight[left]))]) * (1 - 2.0**-40)
        return View(bound, weight, reserve)

    def _ball_view(
        self,
        fit: Floats,
        allowed: Floats,
        left: Bools,
        without: Floats,
        expected: Floats,
        views: list[View],
    ) -> View | None:
        """Add the constrained fit's view, and what it says of each unit, where it is better."""
        active = np.flatnonzero(fit)
        gram, cross, rho = self._gram, self._cross, self._rho
        with np.errstate(all="ignore"):
            bound = float(certify(gram, cross, rho, allowed, active, fit[active][:, None])[0])
            if not bound - self._ridge_loss > views[0].bound + self.unit:
                return None
            view = self._view(bound - self._ridge_loss, fit, 0.0, left)
            views.append(view)
            expected[:] = np.fmax(view.weight, without - view.bound)
            units = np.flatnonzero(left)
            if not (units.size and active.size):
                return view
            try:
                found, value, rise = without_each(
                    gram, cross, rho, allowed, fit, [self.unit_places[u] for u in units.tolist()]
                )
            except np.linalg.LinAlgError:
                return view
        units = units[found]
        without[units] = np.fmax(without[units], value - self._ridge_loss)
        expected[units] = np.fmax(expected[units], rise)
        return view

    def _without_one(
        self,
        places: Places,
        rows: Floats,
        block: Floats,
        target: Floats,
        spread: Floats,
        c: Floats,
        fitted: Floats,
    ) -> Floats:
        """Return certified bounds for each unit, all of one width, removed besides O."""
        inverse = self._inverse.matrix
        k, width = len(c), places.shape[1]
        own = inverse[places[:, :, None], places[:, None, :]]  # (units, width, width)
        cross = rows[:, places].transpose(1, 0, 2)  # (units, k, width): V_OB
        joint = spread[:, places].transpose(1, 0, 2)
        schur = own - cross.transpose(0, 2, 1) @ joint
        with np.errstate(all="ignore"):
            if width == 1:
                step: Floats = fitted[places] / schur[:, :, 0]
            else:
                try:
                    solved = np.linalg.solve(schur, fitted[places][:, :, None])[:, :, 0]
                    step = np.asarray(solved, dtype=np.float64)
                except np.linalg.LinAlgError:
                    step = fitted[places] / np.diagonal(schur, axis1=1, axis2=2)
            inner = c - (joint @ step[:, :, None])[:, :, 0]  # (units, k)
            linear = inner @ target + (step * self._inverse.beta[places]).sum(axis=1)
            quadratic = ((inner @ block) * inner).sum(axis=1)
            quadratic += 2 * ((cross @ step[:, :, None])[:, :, 0] * inner).sum(axis=1)
            quadratic += ((own @ step[:, :, None])[:, :, 0] * step).sum(axis=1)
            norm = np.abs(inner).sum(axis=1) + np.abs(step).sum(axis=1)
            gain = 2 * linear - quadratic
            raw = self.base + gain - np.abs(gain) * 4 * TWO_U
            return self._finite(raw - self._inverse.error(norm, k + width))

    def of_model(self, units: Places) -> tuple[float, Floats]:
        """Return a certified lower bound on F_rho of one model, and the beta0 that gives it."""
        at = self._keep_places + [p for u in units.tolist() for p in self.unit_places[u]]
        gram, cross = self._gram[np.ix_(at, at)], self._cross[at]
        every = np.ones(len(at))
        try:
            beta = np.linalg.solve(gram, cross)
        except np.linalg.LinAlgError:
            return self.floor, np.zeros(len(at))
        share = self._rho / max(float(np.abs(beta).sum()), self._rho)
        if not (1 - share) ** 2 * abs(float(beta @ cross)) <= self.unit:
            beta = ball_fit(gram, cross, self._rho, every, beta)
        bound = certify(gram, cross, self._rho, every, np.arange(len(at)), beta[:, None])
        return float(self._finite(bound - self._ridge_loss)[0]), beta
