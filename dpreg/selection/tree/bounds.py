"""Certified lower bounds on F_rho(M) for all models M of a cell at once.

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

Rounding and D: `dpreg.selection.tree.bounds`.

The second view of a state: bounds from the fit that the l1 ball constrains.

Where |least squares|_1 > rho the ball binds, and least squares alone bounds F_rho badly (for more
columns than rows not at all). Inequality (1) of `bounds` holds for every beta0; here beta0 is
the constrained fit, which attains it (the last term is then minus 2 rho times the multiplier mu),
and for one more unit removed, the constrained fit's own support refitted with mu held fixed. Both
are candidates found in plain floats, by a primal active-set method that may stop early: what they
are worth is computed afterwards, rounded outwards.

The floating-point inverse that bounds rest on, with proved limits of what it gets wrong.

For the inequality (1) and the notation see `dpreg.selection.tree.bounds`.

**Rounding.** With u = 2**-53, a sum of m products computed in any order (fused or not) errs by at
most 1.01 m u sum |x_i y_i| (Higham 2002, 3.1, for m u < 0.01); a conventional matrix product does
so cell by cell. The constants below use 2u = 2**-52 and m + 8 in place of u and m, which covers
the rounding of G and b to floats and of the bounds themselves. |G_ij| <= max diag G by
Cauchy-Schwarz. Where a bound is not finite, -2 rho max|b| takes its place (beta'G beta >= 0).

**D.** D = theta / diag(V), theta as large as a Cholesky factorisation of G' - D - shift I succeeds:
a completed floating-point Cholesky proves positive definiteness of the matrix with its diagonal
raised by gamma_{d+1} tr (Rump 2006, Theorem 2.3). If a model of a cell must leave out `count` of
the free units, the `count` smallest sums of D_j beta0_j^2 over a unit may be added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats, Places
from dpreg.selection.space import Space
from dpreg.selection.tree.counts import members

_STEPS: Final = 40  # a guess that stops early is a valid, weaker bound: no law depends on it
_CAREFUL: Final = 15
_LOOKED_AT: Final = 24


def ball_fit(gram: Floats, cross: Floats, rho: float, allowed: Floats, start: Floats) -> Floats:
    """Return about the minimiser over |beta|_1 <= rho of beta'G beta - 2 b'beta.

    Guess the active columns and their signs, solve G_PP beta = b_P - mu s, s'beta = rho, drop the
    columns whose sign came out wrong, add those whose slope exceeds mu, and repeat: a primal-dual
    active-set method (Hintermueller, Ito & Kunisch 2003). It mostly ends within ten steps; where
    it does not, the best guess so far is used.

    Parameters
    ----------
    allowed : float array (d,)
        1 for columns that may be used, 0 for others.
    start : float array (d,)
        Its signs on the allowed columns are the first guess.
    """
    signs = np.sign(start) * allowed
    near = 1e-9 * float(np.abs(cross).max(initial=0.0))
    best, least = np.zeros_like(cross), 0.0
    for step in range(_STEPS):
        active = np.flatnonzero(signs)
        beta = np.zeros_like(cross)
        mu = 0.0
        if active.size:
            s = signs[active]
            try:
                pair = np.linalg.solve(
                    gram[np.ix_(active, active)], np.column_stack([cross[active], s])
                )
            except np.linalg.LinAlgError:
                break
            x, z = pair[:, 0], pair[:, 1]
            mu = max(float((s @ x - rho) / max(float(s @ z), 1e-300)), 0.0)
            beta[active] = x - mu * z
            signs[active[beta[active] * s <= 0]] = 0.0
        slope = (cross - gram[:, active] @ beta[active]) * allowed
        quadratic = float(beta[active] @ (cross - slope)[active])
        slope[active] = 0.0
        value = -quadratic - 2 * rho * max(mu, float(np.abs(slope).max(initial=0.0)))
        if step == 0 or value > least:
            best, least = beta, value
        outside = np.flatnonzero(np.abs(slope) > mu + near)
        if not outside.size and signs[active].all():
            break
        if step >= _CAREFUL:  # one column at a time from here on
            outside = outside[np.argsort(-np.abs(slope[outside]))[:1]]
        signs[outside] = np.sign(slope[outside])
    return best


def certify(
    gram: Floats, cross: Floats, rho: float, allowed: Floats, active: Places, beta: Floats
) -> Floats:
    """Return (1) without its sum over R, rounded down, for each column of `beta`.

    Parameters
    ----------
    allowed : float array (d,) or (d, m)
        1 on A.
    active : int array (k,)
        Where beta0 is not zero.
    beta : float array (k, m)

    Returns
    -------
    float array (m,)
        Error bound: with w = sum |beta0|, each cell of G beta0 errs by at most
        (k + 8) 2**-52 max(G) w, and beta0'G beta0 by at most twice w times that.
    """
    largest = float(gram.diagonal().max(initial=0.0))
    fitted = gram[:, active] @ beta
    norm = np.abs(beta).sum(axis=0) * (1 + 2.0**-30)
    slack = (len(active) + 8) * TWO_U * (largest * norm + float(np.abs(cross).max(initial=0.0)))
    slope = np.abs(cross[:, None] - fitted) * (allowed if allowed.ndim == 2 else allowed[:, None])
    steepest = slope.max(axis=0, initial=0.0) + slack
    quadratic = (beta * fitted[active]).sum(axis=0)
    lower = -quadratic - 2 * norm * slack - 2 * rho * (1 + 2.0**-30) * steepest
    bound: Floats = lower - np.abs(lower) * 2.0**-40
    return bound


def without_each(
    gram: Floats,
    cross: Floats,
    rho: float,
    allowed: Floats,
    fit: Floats,
    units: list[list[int]],
) -> tuple[Places, Floats, Floats]:
    """Return bounds for the units whose removal from the constrained fit costs most.

    Parameters
    ----------
    units : list of lists of int
        The columns of the units left.

    Returns
    -------
    found : int array
        Positions in `units` of those looked at.
    certified : float array
        (1) when the unit is removed as well, without its sum over R.
    expected : float array
        About how much the bound would rise with a fit of its own.
    """
    active = np.flatnonzero(fit)
    place = {int(column): at for at, column in enumerate(active)}
    inverse = np.linalg.inv(gram[np.ix_(active, active)])
    rise = np.zeros(len(fit))
    rise[active] = fit[active] ** 2 / inverse.diagonal()
    sums = np.array([max(rise[unit]) for unit in units])
    found = np.argsort(-sums, kind="stable")[:_LOOKED_AT]
    found = found[sums[found] > 0]
    beta = np.repeat(fit[active][:, None], len(found), axis=1)
    expected = np.zeros(len(found))
    kept = np.repeat(allowed[:, None], len(found), axis=1)
    for m, u in enumerate(found.tolist()):
        at = [place[c] for c in units[u] if c in place]
        own = fit[active[at]]
        if len(at) == 1:
            step = own / inverse[at[0], at[0]]
        else:
            step = np.linalg.solve(inverse[np.ix_(at, at)], own)
        beta[:, m] -= inverse[:, at] @ step
        beta[at, m] = 0.0
        kept[units[u], m] = 0.0
        expected[m] = own @ step
    return found, certify(gram, cross, rho, kept, active, beta), expected


TWO_U: Final = 2.0**-52
UP: Final = 1.0 + 2.0**-30


class Inverse:
    """V, the symmetric floating-point inverse of G', and what errors it can cause.

    Parameters
    ----------
    gram, cross : float arrays, (d, d) and (d,)
        G', and b.
    rho : float
    largest : float
        No cell of the diagonal of G', which is positive, is larger.
    loss : float
        lambda rho^2, what the ridge costs a bound.

    Attributes
    ----------
    matrix, beta : float arrays, (d, d) and (d,)
        V, and V b refined once.
    base : float
        At most a0 = -beta'G'beta - lambda rho^2.
    norm, max : float
        At least every column's l1 norm in V, and its largest modulus.
    beta_norm, beta_max : float
        At least |beta|_1, and its largest modulus.
    off : float
        e: at least max |G'V - I|.
    residual : float
        At least max |b - G'beta|.
    """

    def __init__(
        self, gram: Floats, cross: Floats, rho: float, largest: float, loss: float
    ) -> None:
        try:
            matrix = np.linalg.inv(gram)
        except np.linalg.LinAlgError:
            matrix = np.diag(1.0 / gram.diagonal())
        self.rho = rho
        self.matrix: Floats = (matrix + matrix.T) / 2
        self.beta: Floats = self.matrix @ cross
        self.beta += self.matrix @ (cross - gram @ self.beta)
        self.norm = float(np.abs(self.matrix).sum(axis=0).max(initial=0.0)) * UP
        self.max = float(np.abs(self.matrix).max(initial=0.0))
        self.beta_norm = float(np.abs(self.beta).sum()) * UP
        self.beta_max = float(np.abs(self.beta).max(initial=0.0))
        slack, fitted = (len(cross) + 8) * TWO_U, gram @ self.beta
        reach = largest * self.beta_norm
        self.base = -float(self.beta @ fitted) - loss - 2 * slack * reach * self.beta_norm
        off = np.abs(gram @ self.matrix - np.eye(len(cross))).max(initial=0.0)
        self.off = float(off + slack * (largest * self.norm + 1.0)) * UP
        cross_max = 2 * float(np.abs(cross).max(initial=0.0)) * UP
        left = float(np.abs(cross - fitted).max(initial=0.0))
        self.residual = left + slack * (reach + cross_max)

    def error(self, norm: Floats | float, terms: int) -> Floats:
        """Return err(|c|_1) for a c of so many terms."""
        bilinear = 2 * self.rho * (self.residual + self.off * norm)
        bilinear += self.off * norm * (2 * self.beta_norm + self.norm * norm)
        rounding = (2 * terms + 16) * TWO_U * norm * (2 * self.beta_max + self.max * norm)
        return np.asarray(UP * (bilinear + rounding) + 4 * TWO_U * abs(self.base))


def diagonal_minorant(gram: Floats, inverse: Floats, largest: float) -> Floats:
    """Return D >= 0, diagonal, with G' - D certainly positive semidefinite."""
    d = len(gram)
    if d == 0 or not np.isfinite(inverse).all():
        return np.zeros(d)
    scale = 1.0 / np.maximum(inverse.diagonal(), 1.0 / largest)
    root = np.sqrt(scale)
    standard = inverse * np.outer(root, root)
    vector = np.full(d, d**-0.5) + np.cos(np.arange(d)) / d
    top = 1.0
    for _ in range(60):
        vector = standard @ vector
        top = float(np.linalg.norm(vector))
        vector /= top
    theta = 0.98 / top
    shift = 8 * (d + 8) * TWO_U * (float(gram.trace()) + d * largest)
    for _ in range(6):
        lowered = gram.copy()
        lowered[np.diag_indices(d)] -= theta * scale * UP + shift
        try:
            np.linalg.cholesky(lowered)
        except np.linalg.LinAlgError:
            theta *= 0.8
        else:
            return theta * scale
    return np.zeros(d)


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
    view : View
        From the constrained fit where the ball binds, else from least squares.
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

    view: View
    without: Floats
    expected: Floats
    order: list[int]
    fit: Floats | None
    slack: float


class Bounds:
    """Bounds for one problem and space; made once, used by any number of draws.

    Parameters
    ----------
    gram, cross : float arrays, (p + 1, p + 1) and (p + 1,)
        Moments in units of 1, correctly rounded.
    rho : Fraction
        Radius in stored units.
    space : Space

    Attributes
    ----------
    unit : float
        A difference of bounds worth some work. It changes the time taken, never a bound's truth.
    """

    def __init__(self, gram: Floats, cross: Floats, rho: Fraction, space: Space) -> None:
        self.unit = 0.0
        self.kept = list(space.keep_columns)
        used = [*self.kept, *(c for unit in space.unit_columns for c in unit)]
        place = {column: at for at, column in enumerate(used)}
        self.unit_places = [[place[c] for c in unit] for unit in space.unit_columns]
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
        self._inverse = Inverse(self._gram, self._cross, self._rho, self._largest, self._ridge_loss)
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
        view = self._view(bound, fitted, slip, left)
        expected = without - view.bound
        fit = None
        excess = float(np.abs(fitted).sum()) / self._rho
        slack = 0.0 if parent is None else parent.slack
        if excess > max(1.0, _MORE * slack):
            allowed = np.ones(self._d)
            allowed[out] = 0.0
            start = fitted if parent is None or parent.fit is None else parent.fit
            fit = ball_fit(self._gram, self._cross, self._rho, allowed, start)
            found = self._ball_view(fit, allowed, left, without, expected, view)
            if found is None:
                fit, slack = None, excess
            else:
                view = found
        without = np.fmax(without, view.bound)
        without[~left] = expected[~left] = np.nan
        some = np.flatnonzero(left)
        order = some[np.argsort(-expected[some], kind="stable")]
        return State(view, without, expected, order.tolist(), fit, slack)

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
        known: View,
    ) -> View | None:
        """Return the constrained fit's view and note what it says of units, if it is better."""
        active = np.flatnonzero(fit)
        gram, cross, rho = self._gram, self._cross, self._rho
        with np.errstate(all="ignore"):
            bound = float(certify(gram, cross, rho, allowed, active, fit[active][:, None])[0])
            if not bound - self._ridge_loss > known.bound + self.unit:
                return None
            view = self._view(bound - self._ridge_loss, fit, 0.0, left)
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
            right = fitted[places]
            try:
                solved = np.linalg.solve(schur, right[:, :, None])[:, :, 0]
            except np.linalg.LinAlgError:
                solved = right / np.diagonal(schur, axis1=1, axis2=2)
            step = np.asarray(solved, dtype=np.float64)
            inner = c - (joint @ step[:, :, None])[:, :, 0]  # (units, k)
            linear = inner @ target + (step * self._inverse.beta[places]).sum(axis=1)
            quadratic = ((inner @ block) * inner).sum(axis=1)
            quadratic += 2 * ((cross @ step[:, :, None])[:, :, 0] * inner).sum(axis=1)
            quadratic += ((own @ step[:, :, None])[:, :, 0] * step).sum(axis=1)
            norm = np.abs(inner).sum(axis=1) + np.abs(step).sum(axis=1)
            gain = 2 * linear - quadratic
            raw = self.base + gain - np.abs(gain) * 4 * TWO_U
            return self._finite(raw - self._inverse.error(norm, k + width))

    def of_model(self, units: Places) -> float:
        """Return a certified lower bound on F_rho of one model."""
        at = list(range(len(self.kept))) + [p for u in units.tolist() for p in self.unit_places[u]]
        gram, cross = self._gram[np.ix_(at, at)], self._cross[at]
        every = np.ones(len(at))
        try:
            beta = np.linalg.solve(gram, cross)
        except np.linalg.LinAlgError:
            return self.floor
        share = self._rho / max(float(np.abs(beta).sum()), self._rho)
        if not (1 - share) ** 2 * abs(float(beta @ cross)) <= self.unit:
            beta = ball_fit(gram, cross, self._rho, every, beta)
        bound = certify(gram, cross, self._rho, every, np.arange(len(at)), beta[:, None])
        return float(self._finite(bound - self._ridge_loss)[0])
