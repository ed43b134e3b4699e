r"""Noise fitted to one fitting look: information, score, and the middle of the sandwich.

What is released, in units of 2**-40, what a unit is, and how far one moves each block is in
`dpreg.privacy.fit_sensitivity`. There are two laws:

- `gaussian_fit`, for looks that share one (eps, delta) (`dpreg.privacy.looks`): discrete Gaussian
  noise, independent from cell to cell. Of the look's mu^2 a share h is for H, the rest for the
  score and the middle together;
- `pure_fit`, for pure eps: matrix-Laplace noise of scale c I on H, noise of density exp(-|v|/b) on
  s, discrete Laplace noise on the trace t or matrix-Laplace noise on the matrix M.

A look may release its tail as well, sum max(|f_i|^2 - 2**38, 0), with a share of its own.

*Statement (Gaussian).* The sum over all cells of (change/scale)^2 is at most mu^2 between
neighbours. *Proof.* At most h mu^2 for H, its own share for the tail, and what is left for the
others, by the statements there; scales are rounded upwards. QED

*Statement (pure).* With shares a_H + a_s + a_t + a_q <= 1 of eps, k units, and

    c >= k 2**40 / (q a eps),  q = 1 under replace-one and 2 under add-remove,  a = a_H (or a_t),
    b >= 2 k 2**40 / (a_s eps) under replace-one, half of that under add-remove,
    a scale of t's noise of at least k 2**40 / (a_t eps), and of the tail's 3/4 k 2**40 / (a_q eps),

the look is eps-DP. *Proof.* Matrix-Laplace noise costs half the sum of tr(C^-1 H_i) over units that
are added or taken away: 2 k/q units of at most 2**40 / c each. The score: the statement of
`dpreg.privacy.mechanisms.l2_norm`. The trace: P(v - d) <= exp(|d|/scale) P(v). They compose in
sequence. QED

Nothing here reads a row. A fitted noise is public: everything in it follows from the arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.fit_sensitivity import (
    check_middle,
    information_l2_squared,
    joint_l2_squared,
    nuclear_norm,
    score_l2,
    score_weight,
    tail_change,
    trace_l1,
)
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.looks import look_scale, weighted_scale
from dpreg.privacy.matrix_laplace import degrees
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.mechanisms.l2_norm import l2_norm_noise, l2_norm_variance
from dpreg.privacy.mechanisms.wishart import wishart_noise
from dpreg.privacy.scales import check_eps, check_scales
from dpreg.privacy.stability import AccountError, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part
    from dpreg.privacy.protection import Protection

__all__ = ["PURE", "Drawn", "FitNoise", "fit_cells", "gaussian_fit", "pure_fit"]

PURE: Final = ("matrix-laplace", "l2-norm", "laplace")
"""What draws at pure eps, and so what the look's line of the budget table has to allow."""

Symmetric = tuple[tuple[int, ...], ...]
Scales = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """The noise of one look, or a look's released blocks: integers in units of 2**-40.

    Attributes
    ----------
    information : (d, d) tuple of tuples of int, or None
        None where no information is released.
    score : tuple of int
    middle : (d, d) tuple of tuples of int, or int
        The matrix or its trace.
    tail : int or None
        None where no tail is released.
    """

    information: Symmetric | None
    score: tuple[int, ...]
    middle: Symmetric | int
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class FitNoise:
    """Noise fitted to a fitting look.

    Attributes
    ----------
    columns : int
        d.
    mechanism : {"gaussian", "pure"}
    middle : {"matrix", "trace"}
    information_scales, middle_scales : tuple of float
        In units of 2**-40. Of a matrix with Gaussian noise: its diagonal's and the others'. Of one
        with matrix-Laplace noise: c, an integer. Of the trace: its own. Empty if there is no H.
    score_scale : float
        In units of 2**-40: that of a cell, or b, an integer.
    strength : Fraction
        The mu^2 or eps that all blocks take together.
    shares : tuple of Fraction
        Of H, s and the middle; with Gaussian noise of H, and of s and the middle together.
    protection : Protection
    tail_scale : float
        In units of 2**-40; 0 where no tail is released.
    tail_share : Fraction
        Of `strength`.
    """

    columns: int
    mechanism: str
    middle: str
    information_scales: Scales
    score_scale: float
    middle_scales: Scales
    strength: Fraction
    shares: tuple[Fraction, ...]
    protection: Protection
    tail_scale: float = 0.0
    tail_share: Fraction = Fraction(0)

    @property
    def information_sd(self) -> float:
        """Standard deviation of an off-diagonal cell of H, in units of one; 0 if there is no H."""
        return self._sd(self.information_scales)

    @property
    def score_sd(self) -> float:
        """Standard deviation of a cell of s, in units of one."""
        if self.mechanism == "gaussian":
            return self.score_scale / CELL_UNITS
        return math.sqrt(l2_norm_variance(self.columns, int(self.score_scale))) / CELL_UNITS

    @property
    def middle_sd(self) -> float:
        """Standard deviation of an off-diagonal cell of M, or of the trace, in units of one."""
        if self.middle == "matrix":
            return self._sd(self.middle_scales)
        (scale,) = self.middle_scales
        if self.mechanism != "gaussian":
            scale = math.sqrt(laplace_variance(scale))
        return scale / CELL_UNITS

    @property
    def tail_sd(self) -> float:
        """Standard deviation of the tail, in units of one; 0 where there is none."""
        if self.mechanism == "gaussian" or not self.tail_share:
            return self.tail_scale / CELL_UNITS
        return math.sqrt(laplace_variance(self.tail_scale)) / CELL_UNITS

    def _sd(self, scales: Scales) -> float:
        if self.mechanism == "gaussian" or not scales:
            return max(scales[1:], default=0.0) / CELL_UNITS
        return math.sqrt(2 * degrees(self.columns)) * float(scales[0]) / CELL_UNITS

    def draw(self, part: Part, rows: str = ALL_ROWS) -> Drawn:
        """Use up the part that was charged and draw the noise.

        Parameters
        ----------
        part : Part
            Of looks (Gaussian), or of the whole eps: it is divided here.
        rows : str
            The group of rows that is read.
        """
        if self.mechanism == "gaussian":
            if part.look(self.mechanism, self._bound(), rows) < self.strength:
                self._refuse()
            return self.simulate(part.rng)
        used = [
            (mechanism, share)
            for mechanism, share in zip(
                (*self._drawn_by, PURE[2]), (*self.shares, self.tail_share), strict=True
            )
            if share
        ]
        parts = part.split(share for _, share in used)
        for own, (mechanism, share) in zip(parts, used, strict=True):
            if own.draw(mechanism, self._bound(), rows).eps < self.strength * share:
                self._refuse()
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Drawn:
        """Draw from the law alone; with a generator **not private**."""
        information = self._matrix(self.information_scales, rng) if self.shares[0] else None
        if self.mechanism == "gaussian":
            score = gaussian_noise(self.columns, self.score_scale, rng=rng)
        else:
            score = l2_norm_noise(self.columns, int(self.score_scale), rng=rng)
        middle: Symmetric | int
        if self.middle == "matrix":
            middle = self._matrix(self.middle_scales, rng)
        else:
            number = gaussian_noise if self.mechanism == "gaussian" else laplace_noise
            (middle,) = number(1, self.middle_scales[0], rng=rng)
        tail = None
        if self.tail_share:
            number = gaussian_noise if self.mechanism == "gaussian" else laplace_noise
            (tail,) = number(1, self.tail_scale, rng=rng)
        return Drawn(information, tuple(score), middle, tail)

    def _matrix(self, scales: Scales, rng: Generator | None) -> Symmetric:
        """Draw a symmetric matrix."""
        d = self.columns
        if self.mechanism != "gaussian":
            return wishart_noise((int(scales[0]),) * d, rng=rng)
        found = [[0] * d for _ in range(d)]
        for i, cell in enumerate(gaussian_noise(d, scales[0], rng=rng)):
            found[i][i] = cell
        places = [(i, j) for i in range(d) for j in range(i)]
        beside = gaussian_noise(len(places), scales[1], rng=rng)
        for (i, j), cell in zip(places, beside, strict=True):
            found[i][j] = found[j][i] = cell
        return tuple(map(tuple, found))

    @property
    def _drawn_by(self) -> tuple[str, str, str]:
        """What draws H, s and the middle at pure eps."""
        matrix, vector, number = PURE
        return matrix, vector, matrix if self.middle == "matrix" else number

    def _bound(self) -> Stability:
        mechanisms = (self.mechanism,) if self.mechanism == "gaussian" else PURE
        return Stability(protection=self.protection, mechanisms=mechanisms, summed=True)

    def _refuse(self) -> None:
        raise AccountError("internal error: a look is drawn with less noise than was charged")


def fit_cells(columns: int, middle: str, *, information: bool = True) -> int:
    """Return how many cells a fitting look at d columns releases."""
    triangle = columns * (columns + 1) // 2
    matrices = information + (check_middle(middle) == "matrix")
    return matrices * triangle + columns + (middle == "trace")


def gaussian_fit(
    columns: int,
    mu_squared: Fraction,
    protection: Protection,
    *,
    information: Fraction,
    middle: str = "matrix",
    tail: Fraction = Fraction(0),
) -> FitNoise:
    """Fit Gaussian noise to a fitting look.

    Parameters
    ----------
    columns : int
        d.
    mu_squared : Fraction
        The look's part of r^2 (`looks.looks_ratio`).
    protection : Protection
        Where it names persons, a unit is one person, whatever its `contributions`.
    information : Fraction
        h, the share of mu^2 that H takes, at least 0 and below 1; at 0 no H is released.
    middle : {"matrix", "trace"}
    tail : Fraction
        The share of mu^2 that the tail takes; at 0 none is released.
    """
    _check_columns(columns)
    if not (0 <= information < 1 and 0 <= tail < 1 - information):
        raise ArgumentError(f"the information's share must be in [0, 1), got {information}")
    shares = information, 1 - information - tail
    weight = score_weight(protection, middle)
    scales: Scales = ()
    if information:
        scales = _two(_scale(information_l2_squared(protection), mu_squared * information))
    joint = _scale(joint_l2_squared(weight, middle, protection), mu_squared * shares[1])
    return FitNoise(
        columns,
        "gaussian",
        middle,
        scales,
        weighted_scale(joint, weight),
        _two(joint) if middle == "matrix" else (joint,),
        mu_squared,
        shares,
        protection,
        _scale(tail_change(protection) ** 2, mu_squared * tail) if tail else 0.0,
        tail,
    )


def pure_fit(
    columns: int,
    eps: Fraction,
    protection: Protection,
    *,
    shares: tuple[Fraction, Fraction, Fraction],
    middle: str = "trace",
    tail: Fraction = Fraction(0),
) -> FitNoise:
    """Fit noise of pure eps to a fitting look.

    Parameters
    ----------
    columns, protection, middle
        As for `gaussian_fit`.
    eps : Fraction
        What the look costs.
    shares : (Fraction, Fraction, Fraction)
        Of eps for H, s and the middle; they sum to 1 - tail. That of H may be 0: no H is released.
    tail : Fraction
        The share of the tail; at 0 none is released.

    Raises
    ------
    ArgumentError
        For arguments out of range, and for an eps so small that a scale leaves 2**200.
    """
    _check_columns(columns)
    check_middle(middle)
    check_eps(eps)
    whole = sum(shares) + tail
    if len(shares) != 3 or whole != 1 or min(shares[0], tail) < 0 or min(shares[1:]) <= 0:
        raise ArgumentError("shares of information, score and middle must be positive and sum to 1")
    own, score, other = (Fraction(share) * eps / CELL_UNITS for share in shares)
    spectral = Fraction(nuclear_norm(protection), 2)
    wanted = score_l2(protection) / score, trace_l1(protection) / other, spectral / other
    check_scales(*wanted, *([spectral / own] if own else []))
    number, matrix = float_above(max(wanted[1], Fraction(1))), _up(wanted[2])
    return FitNoise(
        columns,
        "pure",
        middle,
        (_up(spectral / own),) if own else (),
        _up(wanted[0]),
        (matrix,) if middle == "matrix" else (number,),
        Fraction(eps),
        tuple(map(Fraction, shares)),
        protection,
        _tail(tail_change(protection) * CELL_UNITS, tail * eps) if tail else 0.0,
        Fraction(tail),
    )


def _scale(squared: Fraction, mu_squared: Fraction) -> float:
    """Return the scale of a cell of weight 1 for a sensitivity in units of one."""
    return look_scale(squared * CELL_UNITS**2, mu_squared)


def _tail(change: Fraction, eps: Fraction) -> float:
    """Return the scale of Laplace noise for a number that moves by `change`."""
    check_scales(change / eps)
    return float_above(max(change / eps, Fraction(1)))


def _two(sigma: float) -> Scales:
    """Return the scales of a symmetric matrix's diagonal cells and of the others."""
    return sigma, weighted_scale(sigma, 2)


def _up(wanted: Fraction) -> int:
    return max(math.ceil(wanted), 1)


def _check_columns(columns: int) -> None:
    if columns < 1:
        raise ArgumentError("a fitting look has at least one column")
