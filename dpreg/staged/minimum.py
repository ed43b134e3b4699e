r"""A last release of coefficients alone: how far rows reach, and the look that it equals.

Post-processing of released numbers. At pure eps a look pays for the moments of the columns as well
as for the score, and twice: the noise of both together is larger than that of the score alone, and
what is in the moments spoils the score. Once two looks see all directions of the columns, their
moments are good enough for standard errors. What is left of eps then buys the minimum t of

    sum_i w_i h_i(e_i - (1, u_i)'t) + D |t|^2 / 2 + b't,      w = min(1, R^2 / |(1, u)|^2),

h_i the loss of Huber with slope at most S / (w |(1, u)|), in the coordinates that the second look
located (`dpreg.privacy.objective`; the rows: `dpreg.staged.held`). No row's gradient is longer than
S, wherever it lies, and a row near the centre keeps a longer residual. The exact curvature is used,
so no noise of moments enters the estimate; only its standard errors know the second look's.

The look that it equals. At its minimum the score of the rows, cut as above, is D t + b: so D t is
the score at t with the noise -b. In coordinates whose origin is t, with the second look's moments
A carried over and raised to the weight that rows have here, D t = A theta + noise, as after any
look; `dpreg.staged.law` goes on from there. b has uncorrelated cells of variance (d + 1) s^2; it is
a mixture of normals, of variances in proportion to chi2_(d+1). The mean square of residuals at the
narrow cut is that of a normal law with what the wider cut released (`Tail`) and the heaviness that
the second look saw.

S is taken where the expected error is least, as in `dpreg.staged.clips`: noise costs
(ratio k)^2 / within(k)^2 at S = k omega |(1, u)| for a typical row. What cutting may move is added,
for residuals cut `_SOONER` times closer: those of rows farther out, where a wrong model shows. For
the same reason R is opened until the penalty counts. On drawn tables with a square left out,
squared errors were twice those of three looks with R^2 at most four times the usual square and k as
for a typical row; now they are less than with three looks on nearly all drawn tables that end so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpreg.arrays import Floats
from dpreg.staged.clips import cut_moves
from dpreg.staged.locate import CUT, Located
from dpreg.staged.released import NEARLY, Coordinates, NoisyLook, Tail
from dpreg.staged.tails import NORMAL, Heaviness, within

__all__ = [
    "ALONE",
    "ALONE_RESPONSE",
    "as_look",
    "holds_as_many",
    "may_be_alone",
    "open_minimum",
    "seen",
    "seen_by",
]

ALONE: Final = (Fraction(15, 100), Fraction(26, 100), Fraction(50, 100))
"""Shares of eps of two looks and the minimum, or of a third look where the second has not seen
enough; the first look's is that of three looks, as it settles which shares follow
(`dpreg.staged.foreseen`). On 19 kinds of drawn tables (normal, skewed and factor columns, 5 to 30
of them, errors of many kinds, 10,000 to 100,000 rows, eps 1 and 4) squared errors of slopes fell to
1/2.35 of those of three looks with .12, .27 and .52, to 1/2.09 with .15, .30 and .46, and intervals
to 1/1.13 and 1/1.10. With .15, .26 and .50, on 17 tables of `benchmarks.drawn` that end so, they
were .995 times those with .12, .27 and .52 in the mean, 1.07 times in the median."""
ALONE_RESPONSE: Final = Fraction(1, 2)
"""The response's share of the norm of such a second look, beside the usual one: its moments of the
columns, which last, have less noise then."""
_TIMES: Final = 7
"""Rows over those that looks need, from which on a minimum may take the last one's place: with
fewer the second look has seldom seen enough, and the third has less than it could have."""
_MOST_CELLS: Final = 1 << 23
"""Cells of the rows that are held at once, and gone through some twenty times."""
_SEEN: Final = 1.1
"""Least eigenvalue of the second look's moments over the size of their noise, from where on they
are good enough for standard errors; below it a third look is made."""
_SURE: Final = 2.5
"""Standard deviations of the noise's largest cell that this has to exceed besides: where most of
the noise is in one cell, the size above is hardly more than that. Of columns that are copies of
each other two or three in a hundred looks were taken to see them apart without it, of 1,400 none
with it."""
_REACH: Final = 1.2
"""R^2 beside the expected squared length of (1, u), at least."""
_PENALTY: Final = 0.06
"""R^2 grows until D, which grows with it, is this share of n, or to the corner."""
_SOONER: Final = 1.2
"""How much closer residuals of rows far out are cut, beside those of a typical row, to say what
that moves."""
_CUTS: Final = np.geomspace(1.0, 27.0, 100)
"""k, in units of omega."""


def may_be_alone(
    rows: float, needed: float, cells: int, held: float = 0, *, gaussian: bool = False
) -> bool:
    """Return whether a minimum may take the last look's place, by public numbers.

    Parameters
    ----------
    rows : float
        Public, or declared.
    needed : float
        See `dpreg.looks.need.rows_needed`.
    cells : int
        Of a row.
    held : float, optional
        Rows of the table, where they are public and more.
    gaussian : bool
        Whether looks have Gaussian noise.
    """
    few = max(rows, held) * cells <= _MOST_CELLS
    return few and not gaussian and rows >= _TIMES * needed


def seen(second: NoisyLook, located: Located) -> bool:
    """Return whether the second look sees all directions of the columns well enough."""
    return seen_by(second, located) >= 1


def seen_by(second: NoisyLook, located: Located) -> float:
    """Return what the second look sees of the least direction, over what is enough.

    In the coordinates that it located: there columns of rare values are shorter than others.
    """
    size, turn = second.size, _turn(second.coordinates, located.coordinates)
    values = np.linalg.eigvalsh(turn @ second.cells[:size, :size] @ turn.T)
    sd = _turned(second.noise_sd[:size, :size], turn)
    norm = 2 * math.sqrt(float((sd**2).sum(axis=1).max()))
    return float(values[0]) / (_SEEN * norm + _SURE * float(sd.max()))


def holds_as_many(located: Located, cells: int) -> bool:
    """Return whether released rows of so many cells may be held; declared ones may be too few."""
    return located.count * cells <= _MOST_CELLS


def open_minimum(
    located: Located, tails: Heaviness, noise: float, bend: float
) -> tuple[Coordinates, float]:
    """Return the coordinates of the minimum, and S in units of their tau.

    Residuals of a typical row are cut at tau, or nowhere, if those of rows at R reach to the end of
    the box.

    Parameters
    ----------
    located : Located
        By the second look.
    tails : Heaviness
        Of its residuals.
    noise : float
        Standard deviation of a cell of b, for S = 1.
    bend : float
        D, for R = 1.
    """
    at = located.coordinates
    length, directions = math.sqrt(at.squared_radius), len(at.offset) + 1
    wanted = max(_REACH * at.squared_radius, _PENALTY * located.count / bend)
    squared_radius = min(wanted, max(at.corner, at.squared_radius))
    farthest = at.farthest * math.sqrt(squared_radius) / length  # from there on no row is cut
    ratio = noise * length / math.sqrt(located.count)
    moved = cut_moves(tails, _CUTS / (CUT * _SOONER), directions)
    moved[math.sqrt(located.residual) * _CUTS >= farthest] = 0.0
    loss = (ratio * _CUTS / within(_CUTS)) ** 2 + located.count * moved
    width = min(float(_CUTS[int(np.argmin(loss))]) * math.sqrt(located.residual), farthest)
    tau = min(width, at.farthest)
    return replace(at, squared_radius=squared_radius, width=tau), length * width / tau


def as_look(
    second: NoisyLook,
    located: Located,
    at: Coordinates,
    score: Floats,
    noise: float,
    tail: Tail,
) -> NoisyLook:
    """Return the look that the minimum equals, at coordinates whose origin it is.

    Parameters
    ----------
    second : NoisyLook
        The look that located the minimum.
    located : Located
        By it.
    at : Coordinates
        With its intercept and slopes; R and tau as for the release.
    score : (d,) array
        D t, in units of tau.
    noise : float
        Standard deviation of a cell of b, in units of tau.
    tail : Tail
        Of residuals at the released minimum.
    """
    size = second.size
    turn = _turn(second.coordinates, at)
    cells, sd = np.zeros((size + 1, size + 1)), np.full((size + 1, size + 1), noise)
    tails = NORMAL if tail.heaviness is None else tail.heaviness
    kept = _kept(second, located, at, tails)
    cells[:size, :size] = kept * turn @ _lifted(second) @ turn.T
    sd[:size, :size] = kept * _turned(second.noise_sd[:size, :size], turn)
    cells[:size, size] = cells[size, :size] = score
    weights = max(float(cells[0, 0]), size + 1.0)
    units = (tail.width / at.width) ** 2
    square = max(tail.squares, tail.squares_sd) * units / weights / (1 + tails.likely)
    cells[size, size] = weights * _cut_square(square)
    sd[size, size] = tail.squares_sd * units
    degrees = (size + 1) // 2  # rounded down: tails a little heavier than they are
    return NoisyLook(cells, sd, at, degrees, second.rows)


def _kept(second: NoisyLook, located: Located, at: Coordinates, tails: Heaviness) -> float:
    """Return what rows weigh at the minimum, over what they weighed in the second look.

    Their mean weight there is the released one; here it is 1 less what shortening is expected to
    take. Other moments grow by no less.
    """
    reach = math.sqrt(at.squared_radius / located.coordinates.squared_radius)
    left = 0.0 if at.squared_radius >= at.corner * NEARLY else tails.left(reach)
    weights = min(max(float(second.cells[0, 0]), located.count / 2), located.count)
    return max(1.0, (1 - left) * located.count / weights)


def _lifted(look: NoisyLook) -> Floats:
    """Return A + E[E A^-1 E], whose inverse is that of the moments on average, up to the noise^4.

    Noise E makes A^-1 too large. Cells of E on and above the diagonal are uncorrelated.
    """
    size = look.size
    cells, variances = look.cells[:size, :size], look.noise_sd[:size, :size] ** 2
    values, vectors = np.linalg.eigh(cells)
    inverse = (vectors / np.maximum(values, look.noise_norm / 2)) @ vectors.T
    lifted = inverse * variances
    np.fill_diagonal(lifted, variances @ np.diag(inverse))
    return np.asarray(cells + lifted)


def _turn(before: Coordinates, at: Coordinates) -> Floats:
    """Return the matrix that takes (1, u) of one look to that of another."""
    size = len(at.offset) + 1
    turn = np.eye(size)
    turn[1:, 1:] = at.whitening @ np.linalg.pinv(before.whitening)
    turn[1:, 0] = at.offset - turn[1:, 1:] @ before.offset
    return turn


def _turned(sd: Floats, turn: Floats) -> Floats:
    """Return the standard deviations of the cells of T E T', those of a symmetric E's being `sd`.

    Cells of E on and above the diagonal are uncorrelated.
    """
    square = sd**2
    beside = square - np.diag(np.diag(square))
    variance = turn**2 @ square @ turn.T**2
    for i, row in enumerate(turn):
        both = row * turn
        variance[i] += np.einsum("ja,ab,jb->j", both, beside, both, optimize=True)
    return np.asarray(np.sqrt(variance))


def _cut_square(square: float) -> float:
    """Return E min(e^2, 1) of a normal e of this mean square."""
    cut = 1 / math.sqrt(square)
    density = math.exp(-(cut**2) / 2) / math.sqrt(2 * math.pi)
    inside = 2 * float(ndtr(cut)) - 1
    return square * (inside - 2 * cut * density) + 1 - inside
