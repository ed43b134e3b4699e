r"""The minimum of a perturbed objective over rows that this process holds, to a proved tolerance.

A complete row (1, x, y) of gridded cells, with o what columns of known slopes add to its predictor,
has the loss, of the predictor eta = (1, x)'t + o,

    omega l(eta, y),    omega = min(1, R^2 / |(1, x)|^2),

    yes/no:  l = log(1 + exp(eta)) - y eta,         |l'| <= 1,    0 <= l'' <= 1/4,
    counts:  l' = exp(min(eta, a)) - min(y, top),   |l'| <= top,  0 <= l'' <= top, a = log(top).

omega depends on the columns alone, so that a right model stays right. A row's gradient is at most R
times the bound on |l'| long, and its second derivative at most R^2 times that on l'', up to the
roundings of omega, which `dpreg.privacy.objective` leaves room for.

The search is in floats. Whether a point is within the tolerance is decided in ball arithmetic, with
the very losses above; where it is not, the search goes on there, with more digits, until it is: a
step down the gradient of one over its Lipschitz constant comes nearer by a fixed factor, so that it
ends. What a row is is decided by the row alone. How many steps are made is not: as for other calls,
the time that one takes is not protected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import cho_factor, cho_solve

from dpreg.arrays import Floats
from dpreg.moments import CELL_BITS, Vectors, to_grid
from dpreg.privacy.balls import ball
from dpreg.sources import LocalSource
from dpreg.sources.reader import Reader

__all__ = ["HeldRows", "Loss", "Objective", "held_rows", "minimum"]

_BLOCK: Final = 2048
_STEPS: Final = 80
_HALVINGS: Final = 40
_DIGITS: Final = 128
_SPARE: Final = 1e3
_PARTS: Final = tuple(4.0**-power for power in range(11))


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


def held_rows(
    reader: Reader,
    design: Vectors,
    columns: Sequence[int],
    offsets: Sequence[int],
    known: Sequence[float],
    response: tuple[float, float],
    cap: float,
) -> HeldRows:
    """Read the complete rows of a `LocalSource` once.

    Parameters
    ----------
    reader, design, columns, offsets, known, response
        As for `dpreg.families.looks.look_at_family`.
    cap : float
        The largest response.
    """
    assert isinstance(reader.source, LocalSource)
    blocks = []
    for chunk in reader.chunks(design.types, "rows"):
        made = design.block(chunk)
        cells = to_grid(made, out=made) * 2.0**-CELL_BITS
        blocks.append(cells[cells[:, 0] == 1.0])
    cells = np.concatenate(blocks) if blocks else np.zeros((0, design.size))
    y = np.clip(response[0] + response[1] * cells[:, -1], 0.0, cap)
    added = np.zeros(len(cells))
    for place, slope in zip(offsets, known, strict=True):
        added += slope * cells[:, place]
    return HeldRows(cells[:, [0, *columns]], y, added)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of the predictor; see the module.

    Parameters
    ----------
    counts : bool
    top : float
        Of counts: what responses and means are cut at; else 1.
    """

    counts: bool
    top: float = 1.0

    @property
    def slope(self) -> float:
        """Bound on |l'|."""
        return self.top

    @property
    def bend(self) -> float:
        """Bound on l''."""
        return self.top if self.counts else 0.25

    @property
    def last(self) -> float:
        """A: where the mean of counts stays."""
        return float(np.log(self.top))

    def derivatives(self, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return l' and l''."""
        if self.counts:
            mean = np.exp(np.minimum(eta, self.last))
            return mean - y, np.where(eta < self.last, mean, 0.0)
        mean = 1 / (1 + np.exp(-np.clip(eta, -700, 700)))
        return mean - y, mean * (1 - mean)

    def ball(self, eta: arb, y: float) -> arb:
        """Return l' as a ball that holds it."""
        if self.counts:
            return eta.min(arb(self.last)).exp() - y
        return 1 / (1 + (-eta).exp()) - y


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

    weights: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Weigh the rows once."""
        object.__setattr__(self, "weights", _omega(self.rows, self.reach_squared))

    @property
    def steepest(self) -> float:
        """Lipschitz constant of the gradient, at least."""
        return len(self.rows.y) * self.loss.bend * self.reach_squared * 1.01 + float(self.penalty)

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
    start = _searched(objective, float(tolerance) / 16)
    digits = _DIGITS
    with ctx.workprec(digits):
        t = [arb(float(cell)) for cell in start]
    while True:
        with ctx.workprec(digits):
            gradient, near = objective.ball(t), ball(tolerance - slack)
            if bool(_length(gradient) <= near):
                return [_whole((cell * arb((1, places))).floor()) for cell in t]
            blurred = _SPARE * max(float(cell.rad()) for cell in gradient) > float(near)
            if not blurred:
                t = _stepped(objective, t, gradient)
        digits += digits // 2 if blurred else 0


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
