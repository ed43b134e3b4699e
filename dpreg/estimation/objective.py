"""The minimum of a perturbed objective over rows that this process holds, to a proved tolerance.

A row (1, x) with the weight omega and a response y has the loss omega h(eta - y) of its predictor
eta = (1, x)'t, h that of Huber: its slope is eta - y, cut to [-1, 1]. How long a gradient can be,
and how large a second derivative, is below; `dpreg.privacy.noise` leaves room for the roundings.

The search is in floats. Whether a point is within the tolerance is decided by bounds on what floats
may be off by, or in ball arithmetic, with the very losses above; where it is not, the search goes
on there, with more digits, until it is: a step down the gradient of one over its Lipschitz constant
comes nearer by a fixed factor, so that it ends. What a row is is
decided by the row alone. How many steps are made is not: as for other calls, the time that one
takes is not protected.

With u = 2**-53 and g_k = k u / (1 - k u), a sum
of k products is off by at most g_k times the sum of their absolute values, in any order, fused or
not. So the predictor of a row, and its distance from y, are off by at most
a = g_(d+3) (|x|'|t| + |y|), and h' by no more, as cutting moves no two numbers apart. Then
sum omega h' x over 64 rows is off by at most g_67 times the sum of absolute values for the
arithmetic, and by sum omega a |x|, and such sums are added without an error but the last rounding.
D t and b, rounded, are off by at most 4 u of their size. `Objective.near` adds it all up,
with a hundredth for the roundings of the bound itself: its sums have nonnegative terms, fewer than
2**40.

Rows at a location, held in memory, and the released minimum of losses of theirs.

A complete row of gridded cells becomes (1, u) and e (`dpreg.estimation.few`). With
lengths l = |(1, u)| it has, in units of tau, the loss

    w h(e - (1, u)'t),    w = min(1, R^2 / l^2),    h' = clip(., -k, k),    k = S / (w l),

the loss of Huber. It is stored as w k^2 times that of (1, u)/k and e/k, whose slope is cut at one.

Statement. The minimum of the sum of these losses, perturbed as `dpreg.privacy.noise` says for
G R = S and c = R^2, is eps-DP, whatever was released before.

Proof. Given what was released before, L, m, b, tau, R and S are fixed, and t0 = 0. A row's loss
then follows from the row alone: u and e are exact in any order (`dpreg.estimation.few`), l is
summed column by column, and all else is done cell by cell. It is convex and once differentiable in
t, with the gradient -w h' (1, u), whose length is at most w k l = S, and wherever it has a second
derivative that is w (1, u)(1, u)' or 0, of rank one and norm at most w l^2 <= R^2; that holds for
the stored floats up to their roundings, which `dpreg.privacy.noise` leaves room for. A missing
row has no loss. So the assumptions there hold. QED

The public coordinates of a look at the rows: centred, whitened, the response a residual.

A `Location` turns the stored row (x, y), cells in [-1, 1], into

    u = L (x - m),    e = y - b0 - b'x,

and says how far a row may reach: the radius R for |(1, u)|, tau for |e|. It is computed from
released numbers alone, and then rounded **once**, to grids of powers of two, so that the rows'
arithmetic is exact: from there on the rounded numbers are the map, and `matrix` and `shift` take
coefficients back with the same rounded numbers. Rounding therefore costs no accuracy, only the
choice of slightly other coordinates.

Statement. Let cells be integers in [-2**20, 2**20], the grid of `dpreg.moments`. Every coordinate
of u, and e, is a whole multiple of a power of two, and any sum of any of its terms, in any order
and any grouping, is exact in float64.

Proof. A `Form` holds integers k_0, .., k_q with sum |k_j| <= 2**33, in units of 2**-shift; its
value at a row is 2**-(shift + 20) sum k_j c_j, where the c_j are the row's cells and c_0 = 2**20
stands for 1. Each product is an integer of at most 2**20 |k_j|, and any partial sum is an integer
of at most 2**20 sum |k_j| <= 2**53. A float64 holds all of those, so no operation rounds, fused
or not. The power of two is exact as well. QED
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import cho_factor, cho_solve

from dpreg.arrays import CELL_BITS, Floats
from dpreg.grouped import Vectors
from dpreg.looks import coordinates
from dpreg.looks.coordinates import Form
from dpreg.looks.rows import PIECE, applied
from dpreg.privacy.account import Part
from dpreg.privacy.balls import ball
from dpreg.privacy.noise import objective_noise
from dpreg.sources.reader import Reader

LARGEST_RADIUS: Final = 2.0**10
"""Cap on R."""

LEAST_TAU: Final = 2.0**-20
"""The least tau: one unit of the stored response."""


@dataclass(frozen=True, slots=True)
class Location:
    """Coordinates of a look, and how far a row may reach in them; make it with `on_grid`.

    All of it is public. p is the number of stored columns, the constant not among them.

    Attributes
    ----------
    forms : tuple of Form
        u_1 .. u_p, as functions of the p stored columns.
    response : Form
        e before it is divided by tau, as a function of x_1 .. x_p and y; y's slope is one.
    tau : float
        Unit of residuals.
    radius : float
        R.
    """

    forms: tuple[Form, ...]
    response: Form
    tau: float
    radius: float

    @classmethod
    def on_grid(
        cls,
        *,
        whitening: Floats,
        offset: Floats,
        slopes: Floats,
        intercept: float,
        tau: float,
        radius: float,
    ) -> Location:
        """Round coordinates to grids on which rows are computed exactly.

        Parameters
        ----------
        whitening : (p, p) array
            L; rows longer than `LARGEST_REACH` in the sum of absolute values are scaled down.
        offset : (p,) array
            -L m; a centre m outside the box is moved to its edge.
        slopes : (p,) array
            b; scaled down with the intercept where both together exceed `LARGEST_REACH`.
        intercept : float
            b_0.
        tau : float
            Brought between `LEAST_TAU` and the largest residual within bounds: a larger one would
            open nothing.
        radius : float
            Brought between 1 and the lesser of `LARGEST_RADIUS` and the largest |(1, u)| within
            bounds, then rounded down (by a part in 2**10 at most).
        """
        forms = coordinates.whitened_forms(whitening, offset)
        shrink = min(
            1.0, coordinates.LARGEST_REACH / max(1.0, abs(intercept) + float(np.abs(slopes).sum()))
        )
        response = Form.nearest(-intercept * shrink, [*(-slopes * shrink).tolist(), 1.0])
        largest = math.hypot(1.0, *(form.reach for form in forms))
        wanted = min(max(radius, 1.0), LARGEST_RADIUS, max(1.0, largest))
        whole = 2.0**CELL_BITS
        return cls(
            forms,
            response,
            tau=min(max(tau, LEAST_TAU), response.reach),
            radius=whole / math.ceil(whole / wanted),
        )

    @property
    def whitening(self) -> Floats:
        """L as rounded, (p, p)."""
        return coordinates.written(self.forms)[0]

    @property
    def offset(self) -> Floats:
        """-L m as rounded, (p,)."""
        return coordinates.written(self.forms)[1]

    def carried(self, theta: Floats) -> Floats:
        """Return coefficients of y on (1, x), (p + 1,), from those of e/tau on (1, u)."""
        constant, slopes = self.response.floats
        start = -np.append(constant, slopes[:-1])
        back = coordinates.moved_rows(*coordinates.written(self.forms)).T
        return np.asarray(start + self.tau * np.ascontiguousarray(back) @ theta)


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
        (1, u)/k.
    y : (n,) array
        e/k.
    weights : (n,) array
        omega: w k^2.
    location : Location
    limit : float
        S, in units of tau.
    penalty : Fraction
        D.
    noise : sequence of Fraction
        b; none yet while rows are held alone.
    """

    x: Floats
    y: Floats
    weights: Floats
    location: Location
    limit: float
    penalty: Fraction = Fraction(0)
    noise: Sequence[Fraction] = ()

    @property
    def steepest(self) -> float:
        """Lipschitz constant of the gradient, at least."""
        bend = len(self.y) * self.location.radius**2
        return bend * 1.01 + float(self.penalty)  # precision

    def gradient(self, t: Floats) -> Floats:
        """Return the gradient, (d,)."""
        slopes = np.clip(self.x @ t - self.y, -1.0, 1.0)
        own = self.x.T @ (self.weights * slopes) + np.array(self.noise, dtype=np.float64)
        return np.asarray(own + float(self.penalty) * t)

    def curvature(self, t: Floats) -> Floats:
        """Return the second derivatives, (d, d)."""
        bent = (np.abs(self.x @ t - self.y) < 1.0).astype(np.float64)
        own = self.x.T @ (self.x * (self.weights * bent)[:, None])
        return np.asarray(own + float(self.penalty) * np.eye(len(t)))

    def near(self, t: Floats) -> float:
        """Return a proved bound on the length of the gradient at t."""
        size = np.abs(self.x)
        slopes = np.clip(self.x @ t - self.y, -1.0, 1.0)
        off = _UNIT * (len(t) + 3) * (size @ np.abs(t) + np.abs(self.y))
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
            each = zip(
                (x * at).entries(),
                self.y[piece].tolist(),
                self.weights[piece].tolist(),
                strict=True,
            )
            slopes = [(eta - y).min(arb(1)).max(arb(-1)) * weight for eta, y, weight in each]
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


def hold_located(reader: Reader, design: Vectors, location: Location, limit: float) -> Objective:
    """Read the complete rows once.

    Parameters
    ----------
    reader : Reader
        Of a `LocalSource`.
    design : Vectors
        Makes (1, x, y).
    location : Location
    limit : float
        S, in units of tau.
    """
    places = tuple(range(1, design.size - 1))
    forms = [form.on_cells(places, design.size) for form in location.forms]
    response = location.response.on_cells((*places, design.size - 1), design.size)
    matrix = np.array([*forms, response])
    blocks = [np.zeros((len(places) + 1, 0))]
    for chunk in reader.chunks(design.types, "rows"):
        cells = design.cells(chunk).T
        cells = cells[:, cells[0] == 2.0**CELL_BITS]
        block = np.empty((len(matrix), cells.shape[1]))
        for start in range(0, cells.shape[1], PIECE):
            piece = slice(start, start + PIECE)
            applied(matrix, np.ascontiguousarray(cells[:, piece]), block[:, piece])
        block[-1] /= location.tau
        blocks.append(block)
    return weighted(np.concatenate(blocks, axis=1), location, limit)


def weighted(located: Floats, location: Location, limit: float) -> Objective:
    """Return the losses of rows (u, e/tau), given as columns, in the module's form."""
    u, e = located[:-1], located[-1]
    square = np.ones(len(e))
    for coordinate in u:
        square += coordinate * coordinate
    weight = np.minimum(1.0, location.radius**2 / square)
    cut = limit / (weight * np.sqrt(square))
    x = np.empty((len(e), len(u) + 1))
    x[:, 0] = 1 / cut
    for place, coordinate in enumerate(u, 1):
        x[:, place] = coordinate / cut
    return Objective(x, e / cut, weight * cut * cut, location, limit)


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
        The minimum in units of tau, the penalty, and the scale of b in units of tau.
    """
    size, radius = held.x.shape[1], held.location.radius
    noise = objective_noise(
        size,
        held.limit / radius,
        1.0,
        radius**2,
        max(round(rows), 1),
        part.cost.eps,
        part.protection,
    )
    noise = replace(noise, penalty=max(noise.penalty, Fraction(least * radius**2)))
    b, second = noise.opened(part)
    objective = replace(held, penalty=noise.penalty, noise=b)
    found = minimum(objective, noise.tolerance, noise.slack, noise.places)
    told = np.array([float(cell) for cell in noise.released(found, second)])
    return told, float(noise.penalty), noise.scale / 2.0**noise.bits
