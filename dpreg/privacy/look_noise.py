"""Noise fitted to one look at a table's moments: what is drawn, how large, and what it costs.

A look releases M = sum z z', D x D integers in units of 2**-40, plus the noise of one of two laws:

- Gaussian, for looks that share one (eps, delta) (`dpreg.privacy.gaussian`);
- matrix-Laplace, for pure eps (below).

Each is fitted to two kinds of rows: those on the unit scale [-1, 1] (`gram_sensitivity`), as at a
first look, and located ones (`located_sensitivity`), as at the later looks. Neither reads a row. A
fitted noise is public: everything in it follows from the arguments.

Noise fitted to one fitting look: information, score, and the middle of the sandwich.

What is released, in units of 2**-40, what a unit is, and how far one moves each block is in
`dpreg.privacy.proofs`. There are three laws:

- `gaussian_fit`, for looks that share one (eps, delta) (`dpreg.privacy.gaussian`): discrete
  Gaussian noise, independent from cell to cell. Of the look's mu^2 a share h is for H, the rest for
  the score and the middle together;
- `pure_fit`, for pure eps: noise of density exp(-|v|/b) on (s, c), discrete Laplace noise on the
  trace t. No H is released: such a look carries that of an earlier one;
- `minimum_fit`, for pure eps where the inner part of a score is known from a minimum
  (`dpreg.looks.minimum`): the outer part alone, with noise of density exp(-|v|/b), and t.

Score and contrast, (s, c), are one vector of 2 d cells.

*Statement (Gaussian).* The sum over all cells of (change/scale)^2 is at most mu^2 between
neighbours. *Proof.* At most h mu^2 for H, and what is left for the others, by the statements there;
scales are rounded upwards. QED

*Statement (pure).* With shares a_s + a_t = 1 of eps, k units, and

    b >= 4 m/(1 + m) k 2**40 / (a_s eps) under replace-one, half of that under add-remove,
    a scale of t's noise of at least k 2**40 / (a_t eps),

the look is eps-DP. *Proof.* Score and contrast: the statement of `dpreg.privacy.mechanisms.floors`
in 2 d dimensions. The trace: P(v - d) <= exp(|d|/scale) P(v). They compose in sequence. QED

*Statement (minimum).* With shares a_m + a_o + a_t = 1 of eps, a minimum that is (a_m eps)-DP,
outer parts at most half as long as a score, k units, and

    b >= k 2**40 / (a_o eps) under replace-one, half of that under add-remove,

and the noise of t as above, the look is eps-DP. *Proof.* As above, in d dimensions: between
neighbours the outer parts move by k halves, or by k differences of two of them
(`dpreg.privacy.proofs`). The place where they are taken follows from the minimum, and is
fixed given that. The three compose in sequence. QED

Nothing here reads a row. A fitted noise is public: everything in it follows from the arguments.

Matrix-Laplace noise: the difference of two Wishart matrices, for moments at pure eps.

Setting
-------
A row is an integer vector t of D places, the response last; the release is M = sum t t', symmetric,
in units of 2**-40. Public integer bounds hold for every row: the columns' squares sum to at most
n 2**40, the response's square is at most 2**40. For located rows n = 1 (see
`dpreg.privacy.proofs`); for rows on the unit scale n is the number of columns, the 0/1
columns of one factor counting as one.

The noise is N = W1 - W2, independent Wisharts with nu = D + 1 degrees of freedom and the same scale
matrix C = diag(c_1..c_D): W = sum of nu terms x x', x normal with covariance C. What is released
is floor(M + N), cell by cell, each distinct cell once.

*Statement.* If t'C^-1 t <= h for every row, the release is (k h)-DP under replace-one and
(k h / 2)-DP under add-remove for k rows a person. With

    c_w >= k n 2**40 / ((1 - a) q eps),   c_y >= k 2**40 / (a q eps),   0 < a < 1,

q = 1 under replace-one and 2 under add-remove, it is eps-DP.

*Proof.* With D + 1 degrees of freedom the Wishart density, in general proportional to
det(X)^((nu - D - 1)/2) exp(-tr(C^-1 X)/2), is f(X) proportional to exp(-tr(C^-1 X)/2) on the cone
of positive semidefinite matrices. For a row t, W + t t' has density f(X - t t'), which is
exp(t'C^-1 t/2) f(X) where X - t t' is positive semidefinite and 0 elsewhere. As X is in the cone
where X - t t' is, that is at most exp(h/2) f(X) everywhere: the support only shrinks.

Let M' be M with rows u_1..u_i added and v_1..v_j taken away. Then

    M' + W1 - W2 = M + (W1 + sum u u') - (W2 + sum v v'),

and the joint density of the two brackets is at most exp((i + j) h/2) times that of (W1, W2). M +
(first) - (second) is a function of the pair, so P'(S) <= exp((i + j) h/2) P(S) for every S, and the
same with M and M' exchanged. Under replace-one i = j <= k, under add-remove i + j <= k.
h = (1 - a) q eps/k + a q eps/k = q eps/k for the scales above. M is an integer matrix, so
floor(M + N) = M + floor(N) is a function of M + N. QED

*Persons.* All of the above holds for units that move M by any positive semidefinite integer matrix
T in place of t t', of whatever rank, with tr(C^-1 T) for t'C^-1 t: what is used of t t' is that X
is in the cone where X - t t' is. So all rows of one person are one unit, k = 1, if their columns'
squares sum to at most n 2**40, all rows together, and their responses' to at most 2**40. A limit on
the Frobenius norm of T would not do: of rank d the trace may be sqrt(d) times as large.

j of the k rows cost j/k of eps: the statement is linear in k. Zero rows cost nothing. A single
Wishart is not enough: its support moves both ways. Fewer than D + 1 degrees of freedom give a
density that is unbounded at the cone's edge. For D = 1, N is Laplace of scale 2c. The bound is
attained in the limit: the density of N falls as exp(-|C^-1/2 N C^-1/2|_*/2), |.|_* the nuclear
norm, and for u and v with u'C^-1 v = 0 the nuclear norm of the change is u'C^-1 u + v'C^-1 v.

Its law
-------
Var N_ij = 2 nu c_i c_j, Var N_ii = 4 nu c_i^2; the cells are uncorrelated and not independent. As
N_ij is a sum of 2 nu independent products of two normals, its excess kurtosis is 3/nu, that of N_ii
6/nu. For a fixed vector theta and directions v_1..v_df with v_a'C theta = 0 and v_a'C v_b = 1 or 0
(b = a or not),

    sum_a (v_a' N theta)^2 / (2 nu theta'C theta)   has the law of   chi2_df chi2_(2 nu) / (2 nu),

the two independent: given all x'theta, the v_a' N theta are independent normals of variance
sum (x'theta)^2 over the 2 nu terms x. Floors shift a cell by half a unit of 2**-40 on average.

Which a
-------
The error of the normal equations, N (theta, -1), has per equation a variance proportional to
c_w (c_y + B c_w) with B = |theta|^2, hence to 1/(a (1 - a)) + b/(1 - a)^2 with b = n B, least where
(1 - a)(1 - 2 a) = 2 b a^2, that is at a = 2/(3 + sqrt(1 + 8 b)). Any a in (0, 1) is valid.

References
----------
Anderson, T. W. (2003). An Introduction to Multivariate Statistical Analysis, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.privacy import proofs
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import Budget
from dpreg.privacy.gaussian import LEAST_SCALE
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.mechanisms.floors import l2_norm_noise, l2_norm_variance
from dpreg.privacy.mechanisms.wishart import Symmetric, degrees, wishart_noise
from dpreg.privacy.noise import HOLD, SCORED, check_scales, objective_units
from dpreg.privacy.proofs import CELL_UNITS, Triangle
from dpreg.privacy.protection import Protection, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

PURE: Final = ("l2-norm", "laplace")
"""What draws at pure eps, and so what the look's line of the budget table has to allow."""

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
    contrast : tuple of int
    """

    information: Symmetric | None
    score: tuple[int, ...]
    middle: Symmetric | int
    contrast: tuple[int, ...]


def _use(part: Part, mechanism: str, strength: Fraction, protection: Protection) -> None:
    """Use up a part that was charged for noise which takes `strength` of mu^2, or of eps.

    The bound is the one that the noise was fitted to; the mechanism's module proves it.
    """
    bound = Stability(protection=protection, mechanisms=(mechanism,), summed=True)
    part.draw(mechanism, bound, fitted=strength if mechanism == "gaussian" else Budget(strength))


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
        In units of 2**-40. Of a matrix, whose noise is Gaussian: its diagonal's and the others'. Of
        the trace: its own. Empty if there is no H.
    score_scale : float
        In units of 2**-40: that of a cell, or b, an integer.
    strength : Fraction
        The mu^2 or eps that all blocks take together.
    shares : tuple of Fraction
        With Gaussian noise of H, and of s and the middle together; else of s and of the trace.
    protection : Protection
    information_sd, score_sd, middle_sd : float
        Standard deviations in units of one: of an off-diagonal cell of H, 0 if there is no H; of a
        cell of s or c; of an off-diagonal cell of M, or of the trace.
    times : int
        m, how many times as long as its inner part the outer part of a score may be.
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
    information_sd: float
    score_sd: float
    middle_sd: float
    times: int = 1

    def draw(self, part: Part) -> Drawn:
        """Use up the part that was charged and draw the noise.

        It is a part of looks (Gaussian), or of the whole eps: that is divided here.
        """
        if self.mechanism == "gaussian":
            _use(part, self.mechanism, self.strength, self.protection)
        else:
            for own, name, share in zip(part.split(self.shares), PURE, self.shares, strict=True):
                _use(own, name, self.strength * share, self.protection)
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Drawn:
        """Draw from the law alone; with a generator **not private**."""
        information = (
            self._matrix(self.information_scales, rng) if self.information_scales else None
        )
        size = 2 * self.columns
        if self.mechanism == "gaussian":
            number = gaussian_noise
            both = gaussian_noise(size, self.score_scale, rng=rng)
        else:
            number = laplace_noise
            both = l2_norm_noise(size, int(self.score_scale), rng=rng)
        middle: Symmetric | int
        if self.middle == "matrix":
            middle = self._matrix(self.middle_scales, rng)
        else:
            (middle,) = number(1, self.middle_scales[0], rng=rng)
        score, contrast = tuple(both[: self.columns]), tuple(both[self.columns :])
        return Drawn(information, score, middle, contrast)

    def _matrix(self, scales: Scales, rng: Generator | None) -> Symmetric:
        """Draw a symmetric matrix."""
        d = self.columns
        found = np.diag(np.array(gaussian_noise(d, scales[0], rng=rng), dtype=object))
        below = np.tril_indices(d, -1)
        found[below] = np.array(gaussian_noise(len(below[0]), scales[1], rng=rng), dtype=object)
        found.T[below] = found[below]
        return tuple(map(tuple, found.tolist()))


def fit_cells(columns: int, middle: str) -> int:
    """Return how many cells a fitting look at d columns releases."""
    triangle = columns * (columns + 1) // 2
    return triangle + 2 * columns + (triangle if middle == "matrix" else 1)


def gaussian_fit(
    columns: int,
    mu_squared: Fraction,
    protection: Protection,
    *,
    information: Fraction,
    middle: str = "matrix",
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
    """
    shares = information, 1 - information
    weight = proofs.SCORE_WEIGHTS[protection.neighbors][middle]
    of_h: Scales = ()
    if information:
        squared = proofs.information_l2_squared(protection) * CELL_UNITS**2
        diagonal = look_scale(squared, mu_squared * information)
        of_h = diagonal, weighted_scale(diagonal, 2)
    squared = proofs.joint_l2_squared(weight, middle, protection) * CELL_UNITS**2
    joint = look_scale(squared, mu_squared * shares[1])
    score = weighted_scale(joint, weight)
    scales = (joint, weighted_scale(joint, 2)) if middle == "matrix" else (joint,)
    return FitNoise(
        columns=columns,
        mechanism="gaussian",
        middle=middle,
        information_scales=of_h,
        score_scale=score,
        middle_scales=scales,
        strength=mu_squared,
        shares=shares,
        protection=protection,
        information_sd=max(of_h[1:], default=0.0) / CELL_UNITS,
        score_sd=score / CELL_UNITS,
        middle_sd=scales[-1] / CELL_UNITS,
    )


def _pure_scales(
    length: Fraction, shares: tuple[Fraction, Fraction], eps: Fraction, protection: Protection
) -> tuple[int, float]:
    """Return the scales of a vector that moves by `length` and of the trace, rounded upwards."""
    change = length, proofs.trace_l1(protection)
    wanted = [
        moved * CELL_UNITS / (share * eps) for moved, share in zip(change, shares, strict=True)
    ]
    check_scales(*wanted)
    return max(math.ceil(wanted[0]), 1), float_above(max(wanted[1], Fraction(1)))


def pure_fit(
    columns: int, eps: Fraction, protection: Protection, *, trace: Fraction, times: int
) -> FitNoise:
    """Fit noise of pure eps to a fitting look, which releases no H.

    Parameters
    ----------
    columns, protection
        As for `gaussian_fit`.
    eps : Fraction
        What the look costs.
    trace : Fraction
        The share of eps of the trace; the score has what is left.
    times : int
        m of the rows.

    Raises
    ------
    ArgumentError
        For an eps so small that a scale leaves 2**200.
    """
    shares = 1 - trace, trace
    assert min(shares) > 0
    score, number = _pure_scales(proofs.score_l2(protection, times), shares, eps, protection)
    return FitNoise(
        columns=columns,
        mechanism="pure",
        middle="trace",
        information_scales=(),
        score_scale=score,
        middle_scales=(number,),
        strength=Fraction(eps),
        shares=shares,
        protection=protection,
        information_sd=0.0,
        score_sd=math.sqrt(l2_norm_variance(2 * columns, score)) / CELL_UNITS,
        middle_sd=math.sqrt(laplace_variance(number)) / CELL_UNITS,
        times=times,
    )


@dataclass(frozen=True, slots=True)
class MinimumNoise:
    """Noise of pure eps fitted to a last look, the inner part of whose score is a minimum's.

    Attributes
    ----------
    columns : int
        d.
    outer_scale : int
        In units of 2**-40: b of the noise of the outer part.
    trace_scale : float
        In the same units.
    strength : Fraction
        The eps of all.
    shares : (Fraction, Fraction, Fraction)
        Of it: of the minimum, of the outer part, of the trace.
    protection : Protection
    information_sd, score_sd, middle_sd : float
        Standard deviations in units of one: of a cell of noise in H whose norm is twice the
        penalty, since a penalty has one sign; of a cell of the score, of both its parts; of the
        trace.
    times : int
        How many times as large the noise of the outer part is as that of the inner one.
    """

    columns: int
    outer_scale: int
    trace_scale: float
    strength: Fraction
    shares: tuple[Fraction, Fraction, Fraction]
    protection: Protection
    information_sd: float
    score_sd: float
    middle_sd: float
    times: int

    def draw(self, part: Part) -> tuple[Part, tuple[int, ...], int]:
        """Use up the parts of the outer part and the trace; return that of the minimum, and noise.

        It is a part of the whole eps: that is divided here.
        """
        minimum, *others = part.split(self.shares)
        for own, name, share in zip(others, PURE, self.shares[1:], strict=True):
            _use(own, name, self.strength * share, self.protection)
        return minimum, *self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> tuple[tuple[int, ...], int]:
        """Draw the noise of the outer part and of the trace; with a generator **not private**."""
        outer = l2_norm_noise(self.columns, self.outer_scale, rng=rng)
        (trace,) = laplace_noise(1, self.trace_scale, rng=rng)
        return tuple(outer), trace


def minimum_fit(
    columns: int, eps: Fraction, protection: Protection, *, trace: Fraction, times: int
) -> MinimumNoise:
    """Fit noise to a last look of a minimum, whose parts are as long as half a score each.

    Parameters
    ----------
    columns, eps, protection, trace
        As for `pure_fit`.
    times : int
        How many times as large the noise of the outer part shall be as that of the inner one.

    Raises
    ------
    ArgumentError
        For an eps so small that a scale leaves 2**200.
    """
    outer = (1 - trace) / (1 + times / SCORED)
    shares = 1 - trace - outer, outer, trace
    assert min(shares) > 0
    scale, number = _pure_scales(proofs.score_l2(protection, 1) / 2, shares[1:], eps, protection)
    sd = math.sqrt(l2_norm_variance(columns, scale)) / CELL_UNITS
    _, penalty = objective_units(columns, shares[0] * eps, protection)
    return MinimumNoise(
        columns=columns,
        outer_scale=scale,
        trace_scale=number,
        strength=Fraction(eps),
        shares=shares,
        protection=protection,
        information_sd=max(penalty, HOLD) / math.sqrt(columns),
        score_sd=sd * math.sqrt(1 + times**-2),
        middle_sd=math.sqrt(laplace_variance(number)) / CELL_UNITS,
        times=times,
    )


def look_scale(sensitivity_squared: Fraction | int, mu_squared: Fraction) -> float:
    """Return the scale of a look's cell of weight 1, rounded upwards.

    Parameters
    ----------
    sensitivity_squared : Fraction or int
        Largest sum_c (weight_c Delta_c)^2 between neighbours, in the cells' integer units.
    mu_squared : Fraction
        r_j^2, the look's part of the r^2 of `dpreg.privacy.gaussian.looks_ratio`. The parts of all
        looks sum to at most r^2 on every path.

    Returns
    -------
    float
        sigma, at least `LEAST_SCALE`, with sensitivity_squared <= mu_squared sigma^2 by exact
        comparison, and at most one step too large. A cell of weight g gets sigma / g: see
        `weighted_scale`.
    """
    if mu_squared <= 0:
        raise ArgumentError("a look's part of mu^2 must be positive")
    square = Fraction(sensitivity_squared) / mu_squared
    shift = 2 * ((square.numerator.bit_length() - square.denominator.bit_length() - 128) // 2)
    whole = math.floor(square / Fraction(2) ** shift)
    try:
        found = math.ldexp(math.isqrt(whole), shift // 2)
    except OverflowError:
        raise ArgumentError(
            "eps is too small, or contributions too many: the noise would leave float64"
        ) from None
    while Fraction(found) ** 2 < square:
        found = math.nextafter(found, math.inf)
    return max(found, LEAST_SCALE)


@lru_cache(maxsize=256)  # most of a look's thousands of cells have the same weight
def weighted_scale(scale: float, weight_squared: Fraction | int) -> float:
    """Return scale / sqrt(weight_squared), the scale of a weighted cell, rounded upwards."""
    if weight_squared <= 0:
        raise ArgumentError("a cell's weight must be positive")
    return look_scale(Fraction(scale) ** 2, Fraction(weight_squared))


_SHARE_UNITS: Final = 2**10


def response_share(signal: float) -> Fraction:
    """Return a, the response's share of a row's norm (see the module).

    Parameters
    ----------
    signal : float
        b = n |theta|^2 as expected for the stored columns: public, or read off earlier looks.

    Returns
    -------
    Fraction
        In units of 2**-10, in (0, 1/2].
    """
    wanted = 2 / (3 + math.sqrt(1 + 8 * min(signal, 1e30)))
    return Fraction(max(round(wanted * _SHARE_UNITS), 1), _SHARE_UNITS)


def matrix_laplace_scales(
    size: int,
    eps: Fraction,
    share: Fraction,
    protection: Protection,
    *,
    squared_norm: int = 1,
) -> tuple[int, ...]:
    """Return the scales c_1..c_D, in units of 2**-40, rounded upwards to integers.

    Parameters
    ----------
    size : int
        D, the places of a row, the response among them (last).
    eps : Fraction
        What the look costs.
    share : Fraction
        a in (0, 1), from `response_share`.
    protection : Protection
        k is its `contributions`.
    squared_norm : int
        n: the columns' squares sum to at most this, in stored units.

    Raises
    ------
    ArgumentError
        For an eps so small that a scale leaves 2**200.
    """
    unit = protection.contributions * protection.changes * CELL_UNITS / (2 * Fraction(eps))
    columns, response = math.ceil(squared_norm * unit / (1 - share)), math.ceil(unit / share)
    check_scales(columns, response)
    return (max(columns, 1),) * (size - 1) + (response,)


Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class MomentNoise:
    """Noise fitted to a look at moments, D x D.

    Attributes
    ----------
    mechanism : {"gaussian", "matrix-laplace"}
    scales : tuple of int or float
        In units of 2**-40: of each number drawn, or c_1..c_D.
    sd : (D, D) array
        Standard deviations in stored units of 1; 0 where nothing is drawn.
    strength : Fraction
        r_j^2, the look's part of what all Gaussian looks share, or the eps that it costs.
    protection : Protection
        Of `Protection.sums`, where rows of a person were limited by their sum.
    cells : tuple of tuples of (int, int)
        For each number that is drawn, Gaussian and independent of the others, the entries (i, j),
        i <= j, of the matrix that it fills. Entries that are in none are known without a release:
        products of two columns of one factor. Matrix-Laplace noise fills all.
    degrees : int or None
        The degrees of freedom of each Wishart, nu = D + 1; None where Gaussian.
    """

    mechanism: str
    scales: Scales | tuple[int, ...]
    sd: Floats
    strength: Fraction
    protection: Protection
    cells: tuple[Places, ...] = ()
    degrees: int | None = None

    def draw(self, part: Part) -> Symmetric:
        """Use up the part that was charged and draw the noise, D x D integers."""
        _use(part, self.mechanism, self.strength, self.protection)
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Symmetric:
        """Draw from the law alone; with a generator **not private**."""
        if self.mechanism == "matrix-laplace":
            return wishart_noise([int(scale) for scale in self.scales], rng=rng)
        matrix = [[0] * len(self.sd) for _ in self.sd]
        for scale in sorted(set(self.scales)):
            alike = [c for c, own in zip(self.cells, self.scales, strict=True) if own == scale]
            drawn = gaussian_noise(len(alike), scale, rng=rng)
            for places, noise in zip(alike, drawn, strict=True):
                for i, j in places:
                    matrix[i][j] = matrix[j][i] = noise
        return tuple(map(tuple, matrix))


def _gaussian(
    sensitivity_squared: Fraction | int,
    cells: tuple[Places, ...],
    weights: Iterable[Fraction | int],
    size: int,
    mu_squared: Fraction,
    protection: Protection,
) -> MomentNoise:
    """Make the noise of cells with these squared weights; the rest as for `look_scale`."""
    sigma, sd = look_scale(sensitivity_squared, mu_squared), np.zeros((size, size))
    scales = tuple(weighted_scale(sigma, square) for square in weights)
    for places, scale in zip(cells, scales, strict=True):
        for i, j in places:
            sd[i, j] = sd[j, i] = scale / CELL_UNITS
    return MomentNoise("gaussian", scales, sd, mu_squared, protection, cells)


def _matrix_laplace(scales: tuple[int, ...], eps: Fraction, protection: Protection) -> MomentNoise:
    """Make the noise of places from c, the scale of each."""
    c, nu = np.array([float(scale) for scale in scales]), degrees(len(scales))
    variance = 2.0 * nu * np.outer(c, c)
    variance[np.diag_indices(len(c))] *= 2.0
    sd = np.sqrt(variance) / CELL_UNITS
    return MomentNoise("matrix-laplace", scales, sd, eps, protection, degrees=nu)


def located_gaussian(
    size: int, weight: Fraction, mu_squared: Fraction, protection: Protection
) -> MomentNoise:
    """Fit Gaussian noise to located rows of `size` places, the response last.

    Parameters
    ----------
    size : int
        D.
    weight : Fraction
        g, the response's weight (`located_sensitivity.response_weight`).
    mu_squared : Fraction
        The look's part of r^2 (`looks.looks_ratio`).
    protection : Protection
        Where it names persons, rows are limited by their sum: a person is one unit then, whatever
        `contributions` (`located_sensitivity`, "Persons").
    """
    squared = proofs.located_l2_squared(weight, protection.sums)
    weights = proofs.located_weights(size, weight)
    cells = tuple((cell,) for cell in weights)
    return _gaussian(squared, cells, weights.values(), size, mu_squared, protection.sums)


def box_gaussian(triangle: Triangle, mu_squared: Fraction, protection: Protection) -> MomentNoise:
    """Fit Gaussian noise to rows on the unit scale [-1, 1], the constant among their places.

    The response's weight is the public one of `box_response_weight`.

    Parameters
    ----------
    triangle : Triangle
        The cells (`gram_sensitivity.layout`), with the constant: a look counts its rows even where
        the model has no intercept.
    mu_squared : Fraction
        As for `located_gaussian`.
    protection : Protection
        Of rows, whoever is named: they are not summed.
    """
    assert triangle.intercept
    weight, last = box_response_weight(triangle), len(triangle.columns)
    squared = proofs.sensitivity_l2_squared(triangle, protection, weight) * CELL_UNITS**2
    weights = [weight ** cell.count(last) for cell in triangle.cells]
    who = replace(protection, person=None)
    return _gaussian(squared, triangle.entries, weights, last + 1, mu_squared, who)


def box_response_weight(triangle: Triangle) -> int:
    """Return g of a Gaussian look on the unit scale.

    With an expected |theta|^2 of 1/4 (B + 1/g)(D - 1 + g)^2 is least at g = sqrt(2 D - 1) - 1, D
    the triangle's dimension; rounded to an integer of at least 1.
    """
    return max(1, round(math.sqrt(2 * triangle.dimension - 1)) - 1)


def located_matrix_laplace(
    size: int, share: Fraction, eps: Fraction, protection: Protection
) -> MomentNoise:
    """Fit matrix-Laplace noise to located rows of `size` places, the response last.

    `share` is a, the response's share of the norm (`matrix_laplace.response_share`); `eps` what the
    look costs; the rest as for `located_gaussian`.
    """
    scales = matrix_laplace_scales(size, eps, share, protection.sums)
    return _matrix_laplace(scales, eps, protection.sums)


def box_matrix_laplace(
    triangle: Triangle, share: Fraction, eps: Fraction, protection: Protection
) -> MomentNoise:
    """Fit matrix-Laplace noise to rows on the unit scale [-1, 1], the constant among their places.

    A row's columns have a squared norm of at most `triangle.dimension` - 1, where a factor counts
    as one. All D x D entries get noise, those that are known to be equal or zero among them.
    """
    assert triangle.intercept
    size, squared = len(triangle.columns) + 1, triangle.dimension - 1
    scales = matrix_laplace_scales(size, eps, share, protection, squared_norm=squared)
    return _matrix_laplace(scales, eps, replace(protection, person=None))
