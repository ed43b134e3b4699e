"""The minimum of a perturbed objective over rows that this process holds, to a proved tolerance.

A row has a loss of its predictor s = start + x't, with the slope omega h', h' = scale (m(s) - y),
cut to [-1, 1]. How long a gradient can be, and how large a second derivative, is below;
`dpreg.privacy.noise` leaves room for the roundings.

The search is in floats. Whether a point is within the tolerance is decided by bounds on what floats
may be off by, or in ball arithmetic, with the very losses above; where it is not, the search goes
on there, with more digits, until it is: a step down the gradient of one over its Lipschitz constant
comes nearer by a fixed factor, so that it ends. A row's loss is decided by the row alone. How many
steps are made is not: as for other calls, the time that one takes is not protected.

With u = 2**-53 and g_k = k u / (1 - k u), a sum of k products is off by at most g_k times the sum
of their absolute values, in any order, fused or not. So the predictor s of a row is off by at most
g_(d+1) (|start| + |x|'|t|), and its mean by B times that and by what `dpreg.looks.families` says.
Two roundings lead from there to h': where that is not cut they are at most 4 u, and cutting moves
no two numbers apart. Then sum omega h' x over 64 rows is off by at most g_67 times the sum of
absolute values for the arithmetic, and by sum omega a |x|, a what all this says of h', and such
sums are added without an error but the last rounding. D t and b, rounded, are off by at most 4 u of
their size. `Objective.near` adds it all up, with a hundredth for the roundings of the bound itself:
its sums have nonnegative terms, fewer than 2**40.

Rows at a place as losses, which a last look at pure eps takes the minimum of.

At a place a complete row becomes v = (1, u), eta and y, the response of one trial; it counts a
times: its trials, its own weight in a linear model, else once (`dpreg.looks.rows`). m is the mean
of its family, followed to the bend B (`dpreg.looks.families`). With the length l = |v| and
Z = S wbar^(1/2)/2 it has, of a step t in units of Z, the loss

    w f(t),    f' = clip(m(eta + Z v't) - y, -k, k) v/Z,    w = min(a, A wbar/(B l^2)),
    k = Z/(w l),

that of Huber where the link is the identity. Where scores are limited blindly w is at most Z/l too,
and nothing is cut: no yes or no is farther than 1 from its mean. It is stored as
omega clip(scale (m(start + x't) - y), -1, 1) x.

Statement. The minimum of the sum of these losses, perturbed as `dpreg.privacy.noise` says for
G R = 1 and c = A wbar, is eps-DP, whatever was released before.

Proof. Given what was released before, the place is fixed. A row's loss then follows from the row
alone: u and eta are exact in any order (`dpreg.looks.rows`), l is summed column by column, and all
else is done cell by cell. As m never falls it is convex and once differentiable in t. Its gradient
is at most w k l/Z = 1 long, blindly w l/Z <= 1. As the slope of m is at most B, its second
derivative, wherever it has one, is between 0 and w B v v', of rank one and norm at most
w B l^2 <= A wbar. That holds for the stored floats up to their roundings, of which there are no
more than `dpreg.privacy.noise` leaves room for. An incomplete row has no loss. So the assumptions
there hold. QED

At the minimum t the rows' gradients add up to minus D t + b: in units of Z, the sum of
w clip(y - m, -k, k) v is D t + b. That is the inner part of the score at t (`dpreg.looks.rows`),
and so D t is that part with the noise -b: a look at t, which no noise of H led to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import cho_factor, cho_solve

from dpreg.arrays import Floats
from dpreg.looks.families import Family, Linear
from dpreg.looks.rows import PIECE, Rows
from dpreg.privacy.account import Part
from dpreg.privacy.balls import ball
from dpreg.privacy.noise import ObjectiveNoise, objective_noise
from dpreg.privacy.protection import Protection
from dpreg.sources.base import slices

_LINEAR: Final = Linear()
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Objective:
    """J of `dpreg.privacy.noise` around 0, for complete rows with their losses: never shown.

    Parameters
    ----------
    x : (n, d) array
    y, weights : (n,) arrays
        The latter are omega.
    radius : float
        R.
    penalty : Fraction
        D.
    noise : sequence of Fraction
        b; none yet while rows are held alone.
    start, scale : (n,) arrays, or float
    family : Family
    bend : float
        B.
    """

    x: Floats
    y: Floats
    weights: Floats
    radius: float
    penalty: Fraction = Fraction(0)
    noise: Sequence[Fraction] = ()
    start: Floats | float = 0.0
    scale: Floats | float = 1.0
    family: Family = _LINEAR
    bend: float = 1.0

    @property
    def steepest(self) -> float:
        """Lipschitz constant of the gradient, at least."""
        bend = float((self.weights * self.scale * self.bend) @ np.square(self.x).sum(axis=1))
        return bend * 1.01 + float(self.penalty)  # precision

    def _slopes(self, t: Floats) -> tuple[Floats, Floats]:
        """Return h' of each row, and how it grows with the predictor."""
        terms = self.family.followed(self.start + self.x @ t, self.bend)
        slopes = (terms.mean - self.y) * self.scale
        return np.clip(slopes, -1.0, 1.0), terms.weight * self.scale * (np.abs(slopes) < 1.0)

    def gradient(self, t: Floats) -> Floats:
        """Return the gradient, (d,)."""
        own = self.x.T @ (self.weights * self._slopes(t)[0]) + np.array(self.noise, dtype=float)
        return np.asarray(own + float(self.penalty) * t)

    def curvature(self, t: Floats) -> Floats:
        """Return the second derivatives, (d, d)."""
        own = self.x.T @ (self.x * (self.weights * self._slopes(t)[1])[:, None])
        return np.asarray(own + float(self.penalty) * np.eye(len(t)))

    def near(self, t: Floats) -> float:
        """Return a proved bound on the length of the gradient at t."""
        size, slopes = np.abs(self.x), self._slopes(t)[0]
        reach = size @ np.abs(t) + np.abs(self.start)
        off = _UNIT * (len(t) + 2) * reach + self.family.rounding * (1 + reach)
        off = self.scale * self.bend * off + 4 * _UNIT
        spread = _UNIT * (_FEW + 3) * np.abs(slopes) + np.minimum(off, 2.0)
        errors = size.T @ (self.weights * spread)
        found = _added(self.x, self.weights * slopes)
        penalty, noise = float(self.penalty) * t, np.array(self.noise, dtype=float)
        errors += 8 * _UNIT * (np.abs(found) + np.abs(penalty) + np.abs(noise))  # proved
        most = np.abs(found + penalty + noise) + 1.01 * errors  # proved
        return 1.01 * float(np.linalg.norm(most))  # proved

    def ball(self, t: Sequence[arb]) -> list[arb]:
        """Return the gradient as balls that hold it, at the working precision."""
        penalty = ball(self.penalty)
        found = [ball(b) + penalty * own for b, own in zip(self.noise, t, strict=True)]
        at = arb_mat(len(t), 1, list(t))
        for start in range(0, len(self.y), _BLOCK):
            piece = slice(start, start + _BLOCK)
            x = arb_mat(self.x[piece].tolist())
            columns = (self.y, self.weights, self.start, self.scale)
            numbers = (np.broadcast_to(one, self.y.shape)[piece].tolist() for one in columns)
            slopes = []
            for way, y, weight, start, scale in zip((x * at).entries(), *numbers, strict=True):
                slope = (self.family.ball(start + way, self.bend) - y) * scale
                slopes.append(slope.min(arb(1)).max(arb(-1)) * weight)
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
        floors = [(cell * arb((1, places))).floor() for cell in t]
        return [int(str(floor.unique_fmpz())) for floor in floors]


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
    t = np.zeros(len(objective.noise))
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


def _length(cells: Sequence[arb]) -> arb:
    """Return a bound on the length of whatever the balls hold: its square is never below 0."""
    square = arb(0)
    for cell in cells:
        most = cell.abs_upper()
        square += most * most
    return square.sqrt()


def hold(rows: Rows, cells: Iterable[Floats]) -> Objective:
    """Keep the losses of rows of gridded cells, each (D, rows), at their place."""
    parts = [rows.losses(np.zeros((rows.design.size, 0)))]
    for some in cells:
        pieces = slices(some.shape[1], PIECE)
        parts += (rows.losses(np.ascontiguousarray(some[:, piece])) for piece in pieces)
    x, y, weights, start, scale = (np.concatenate(each) for each in zip(*parts, strict=True))
    place = rows.place
    assert place.bend is not None
    return Objective(
        x,
        y,
        weights,
        math.sqrt(place.information * place.weight),
        start=start,
        scale=scale,
        family=place.family,
        bend=place.bend,
    )


def perturbation(
    held: Objective, eps: Fraction, protection: Protection, rows: float, least: float = 0.0
) -> ObjectiveNoise:
    """Return the noise and the penalty of held rows; the rest as for `released_minimum`."""
    squared = held.radius**2
    noise = objective_noise(
        held.x.shape[1],
        1 / held.radius,
        1.0,
        squared,
        max(round(rows), 1),
        eps,
        protection,
    )
    return replace(noise, penalty=max(noise.penalty, Fraction(least * squared)))


def released_minimum(
    held: Objective, part: Part, rows: float, least: float = 0.0
) -> tuple[Floats, float, float]:
    """Release the minimum.

    Parameters
    ----------
    held : Objective
    part : Part
        Of what is left of eps.
    rows : float
        Their number, public or released.
    least : float, optional
        D is at least this many times R^2. The proof asks for a least D alone.

    Returns
    -------
    (t, D, scale)
        The minimum, the penalty, and the scale of b, all in the units of the losses.
    """
    noise = perturbation(held, part.cost.eps, part.protection, rows, least)
    b, second = noise.opened(part)
    objective = replace(held, penalty=noise.penalty, noise=b)
    found = minimum(objective, noise.tolerance, noise.slack, noise.places)
    told = np.array([float(cell) for cell in noise.released(found, second)])
    return told, float(noise.penalty), noise.scale / 2.0**noise.bits
