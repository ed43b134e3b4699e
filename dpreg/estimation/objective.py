r"""The minimum of a perturbed objective over rows that this process holds, to a proved tolerance.

A row (1, x) with the weight omega and a response y has the loss omega l(eta, y) of its predictor
eta = (1, x)'t + o, o what columns of known slopes add; l is that of the caller (`Loss`). Where the
caller gives no weights, omega = min(1, R^2 / |(1, x)|^2): a gradient is then at most R times the
bound on |l'| long, and its second derivative at most R^2 times that on l'', up to the roundings of
omega, which `dpreg.privacy.objective` leaves room for.

The search is in floats. Whether a point is within the tolerance is decided by bounds on what floats
may be off by, where the loss allows that, or in ball arithmetic, with the very losses above; where
it is not, the search goes on there, with more digits, until it is: a step down the gradient of one
over its Lipschitz constant comes nearer by a fixed factor, so that it ends. What a row is is
decided by the row alone. How many steps are made is not: as for other calls, the time that one
takes is not protected.

Floats decide where l' is eta - y cut to [-1, 1]. With u = 2**-53 and g_k = k u / (1 - k u), a sum
of k products is off by at most g_k times the sum of their absolute values, in any order, fused or
not. So the predictor of a row, and its distance from y, are off by at most
a = g_(d+3) (|x|'|t| + |o| + |y|), and l' by no more, as cutting moves no two numbers apart. Then
sum omega l' x over 64 rows is off by at most g_67 times the sum of absolute values for the
arithmetic, and by sum omega a |x|, and such sums are added without an error but the last rounding.
D (t - t0) and b, rounded, are off by at most 4 u of their size. `Objective.near` adds it all up,
with a hundredth for the roundings of the bound itself: its sums have nonnegative terms, fewer than
2**40.

Tested in `tests/privacy/test_objective.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import cho_factor, cho_solve

from dpreg.arrays import Floats
from dpreg.privacy.balls import ball

__all__ = ["HeldRows", "Loss", "Objective", "minimum"]

_BLOCK: Final = 2048
_FEW: Final = 64  # precision
_UNIT: Final = 2.0**-53 * 1.001
"""u, and more than what 1 - k u takes off, for k below 2**20."""
_LESS: Final = 1 - 2.0**-40
_EXACT: Final = 256  # proved
"""Bits that hold a float and its product with a power of two."""
_STEPS: Final = 80
_HALVINGS: Final = 40
_DIGITS: Final = 128
_SPARE: Final = 1e3  # precision
_PARTS: Final = tuple(4.0**-power for power in range(11))  # precision


class Loss(Protocol):
    """A convex loss of the predictor."""

    @property
    def bend(self) -> float:
        """Bound on l''."""

    def derivatives(self, eta: Floats, y: Floats, /) -> tuple[Floats, Floats]:
        """Return l' and l''."""

    @property
    def cut(self) -> bool:
        """Whether l' is eta - y, cut to [-1, 1]."""

    def ball(self, eta: arb, y: float, /) -> arb:
        """Return l' as a ball that holds it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldRows:
    """Complete rows of a table: never shown.

    Parameters
    ----------
    x : (n, d) array
        The constant first.
    y : (n,) array
        Responses, from 0 to the cap.
    known : (n,) array
        What columns of known slopes add to the predictors.
    """

    x: Floats
    y: Floats
    known: Floats

    @property
    def length(self) -> Floats:
        """|(1, x)|^2, column by column: the same for a row wherever it stands."""
        square = np.zeros(len(self.x))
        for column in self.x.T:
            square += column * column
        return square


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Objective:
    """J of `dpreg.privacy.objective`, for rows: never shown.

    Parameters
    ----------
    rows : HeldRows
        Responses of counts cut at `loss.top`.
    loss : Loss
    reach_squared : float
        R^2.
    penalty : Fraction
        D.
    centre : (d,) array
        t0.
    noise : sequence of Fraction
        b.
    given : (n,) array, optional
        omega; None: as in the module.

    Attributes
    ----------
    weights : (n,) array
        omega.
    """

    rows: HeldRows
    loss: Loss
    reach_squared: float
    penalty: Fraction
    centre: Floats
    noise: Sequence[Fraction]
    given: Floats | None = None

    weights: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Weigh the rows once."""
        own = _omega(self.rows, self.reach_squared) if self.given is None else self.given
        object.__setattr__(self, "weights", own)

    @property
    def steepest(self) -> float:
        """Lipschitz constant of the gradient, at least."""
        bend = len(self.rows.y) * self.loss.bend * self.reach_squared
        return bend * 1.01 + float(self.penalty)  # precision

    def gradient(self, t: Floats) -> Floats:
        """Return the gradient, (d,)."""
        first, _ = self._derivatives(t)
        own = self.rows.x.T @ (self.weights * first) + np.array(self.noise, dtype=np.float64)
        return np.asarray(own + float(self.penalty) * (t - self.centre))

    def curvature(self, t: Floats) -> Floats:
        """Return the second derivatives, (d, d)."""
        _, second = self._derivatives(t)
        own = self.rows.x.T @ (self.rows.x * (self.weights * second)[:, None])
        return np.asarray(own + float(self.penalty) * np.eye(len(t)))

    def _derivatives(self, t: Floats) -> tuple[Floats, Floats]:
        return self.loss.derivatives(self.rows.x @ t + self.rows.known, self.rows.y)

    def near(self, t: Floats) -> float:
        """Return a proved bound on the length of the gradient at t; infinite without one."""
        rows, weights = self.rows, self.weights
        if not self.loss.cut:
            return math.inf
        d, size = len(t), np.abs(rows.x)
        slopes, _ = self._derivatives(t)
        off = _UNIT * (d + 3) * (size @ np.abs(t) + np.abs(rows.known) + np.abs(rows.y))
        spread = _UNIT * (_FEW + 3) * np.abs(slopes) + np.minimum(off, 2.0)
        errors = size.T @ (weights * spread)
        found = _added(rows.x, weights * slopes)
        penalty, noise = float(self.penalty) * (t - self.centre), np.array(self.noise, dtype=float)
        errors += 8 * _UNIT * (np.abs(found) + np.abs(penalty) + np.abs(noise))  # proved
        most = np.abs(found + penalty + noise) + 1.01 * errors  # proved
        return 1.01 * float(np.linalg.norm(most))  # proved

    def ball(self, t: Sequence[arb]) -> list[arb]:
        """Return the gradient as balls that hold it, at the working precision."""
        d, penalty, rows, weights = len(t), ball(self.penalty), self.rows, self.weights
        found = [
            ball(b) + penalty * (own - arb(float(c)))
            for b, own, c in zip(self.noise, t, self.centre, strict=True)
        ]
        at = arb_mat(d, 1, list(t))
        for piece in _pieces(len(rows.y)):
            x = arb_mat(rows.x[piece].tolist())
            each = zip(
                (x * at).entries(),
                rows.known[piece].tolist(),
                rows.y[piece].tolist(),
                weights[piece].tolist(),
                strict=True,
            )
            slopes = [self.loss.ball(eta + known, y) * weight for eta, known, y, weight in each]
            own = (arb_mat(1, len(slopes), slopes) * x).entries()
            found = [a + b for a, b in zip(found, own, strict=True)]
        return found


def minimum(objective: Objective, tolerance: Fraction, slack: Fraction, places: int) -> list[int]:
    """Return a point within the tolerance of the minimum, as floors in units of 2**-places.

    Parameters
    ----------
    objective : Objective
    tolerance, slack : Fraction
        The gradient of the point is proved to be at most tolerance - slack in length.
    places : int
    """
    start = _searched(objective, float(tolerance) / 16)  # precision
    if objective.near(start) <= _LESS * float(tolerance - slack):
        return _floors([arb(float(cell)) for cell in start], places)
    digits = _DIGITS
    with ctx.workprec(digits):
        t = [arb(float(cell)) for cell in start]
    while True:
        with ctx.workprec(digits):
            gradient, near = objective.ball(t), ball(tolerance - slack)
            if bool(_length(gradient) <= near):
                return _floors(t, places)
            blurred = _SPARE * max(float(cell.rad()) for cell in gradient) > float(near)
            if not blurred:
                t = _stepped(objective, t, gradient)
        digits += digits // 2 if blurred else 0


def _floors(t: Sequence[arb], places: int) -> list[int]:
    """Return floors of exact numbers, in units of 2**-places."""
    with ctx.workprec(max(ctx.prec, _EXACT)):
        return [_whole((cell * arb((1, places))).floor()) for cell in t]


def _added(x: Floats, weights: Floats) -> Floats:
    """Return x' weights, each column's sums over a few rows added exactly, then rounded once."""
    whole = len(x) // _FEW * _FEW
    parts = np.matmul(
        weights[:whole].reshape(-1, 1, _FEW), x[:whole].reshape(-1, _FEW, x.shape[1])
    )[:, 0]
    rest = weights[whole:] @ x[whole:]
    return np.array([math.fsum((*part, last)) for part, last in zip(parts.T, rest, strict=True)])


def _stepped(objective: Objective, t: list[arb], gradient: list[arb]) -> list[arb]:
    """Return a nearer point: by a part of Newton's step where that is nearer, else downhill."""
    found = np.array([float(cell.mid()) for cell in gradient])
    bent = objective.curvature(np.array([float(cell.mid()) for cell in t]))
    try:
        step = np.linalg.solve(bent, found)
    except np.linalg.LinAlgError:  # in floats alone: the penalty makes them definite
        step = found / objective.steepest
    for part in _PARTS:
        newton = [(a - part * float(s)).mid() for a, s in zip(t, step, strict=True)]
        if bool(_length(objective.ball(newton)) < (1 - part / 4) * _length(gradient)):
            return newton
    return [(a - g / objective.steepest).mid() for a, g in zip(t, gradient, strict=True)]


def _searched(objective: Objective, near: float) -> Floats:
    """Return about the minimum: Newton's steps in floats, each halved while it goes too far.

    A step goes too far if the objective rises at its end by more than half of how it fell at its
    start. Values would not show it: one row with a large offset hides what all others add.
    """
    t = np.array(objective.centre, dtype=np.float64)
    gradient = objective.gradient(t)
    for _ in range(_STEPS):
        if float(np.linalg.norm(gradient)) <= near:
            break
        try:
            step = cho_solve(cho_factor(objective.curvature(t)), gradient)
        except np.linalg.LinAlgError:
            break
        most, part = float(step @ gradient) / 2, 1.0
        for _ in range(_HALVINGS):
            ahead = t - part * step
            gradient = objective.gradient(ahead)
            if float(step @ gradient) >= -most:
                break
            part /= 2
        else:
            break  # as low as floats can tell
        t = ahead
    return t


def _omega(rows: HeldRows, reach_squared: float) -> Floats:
    """Return how much each row counts, (n,): none pulls farther than R."""
    return np.asarray(np.minimum(1.0, reach_squared / rows.length))


def _length(cells: Sequence[arb]) -> arb:
    """Return a bound on the length of whatever the balls hold: its square is never below 0."""
    square = arb(0)
    for cell in cells:
        most = cell.abs_upper()
        square += most * most
    return square.sqrt()


def _pieces(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _BLOCK):
        yield slice(start, min(start + _BLOCK, rows))


def _whole(cell: arb) -> int:
    return int(str(cell.unique_fmpz()))
