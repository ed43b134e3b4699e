"""Coefficients and honest standard errors from a released moment matrix: post-processing alone.

Write A, b, s for the released X'X, X'y, y'y; A = A0 + E, b = b0 + e, s = s0 + e_s, with noise of
known variances u_ij^2 per released cell. beta = A^-1 b solves exactly

    A (beta - beta*) = h,    h = X' residual + e - E beta*        (b - A beta* = h; no expansion)

so that, with C = Cov(e - E beta), and A for A0 in the sampling part,

    Var(beta) = A^-1 [sigma2 A + C] A^-1.

Put bt = (beta, -1), so that E beta - e are the first rows of (E_full bt). Cell (i, j), i < j, moves
entry i by bt_j and entry j by bt_i; cell (i, i) moves entry i by bt_i. Hence

    C_ii = sum_j u_ij^2 bt_j^2,     C_ij = u_ij^2 bt_i bt_j.

A factor's 0/1 column a shares one draw between (0, a) and (a, a), which moves entry 0 by bt_a and
entry a by bt_0 + bt_a: C_aa gains 2 u^2 bt_0 bt_a and C_0a gains u^2 bt_a^2.

Residual variance. Substituting b = A beta* + h: s - b'beta = RSS0 + (e_s - 2 beta*'e +
beta*'E beta*) - h_priv' A^-1 h_priv with h_priv = e - E beta*; the bracket has mean 0 and variance
bt'C bt (C over all d + 1 entries), the last term mean tr(A^-1 C). So

    sigma2 = (s - b'beta + tr(A^-1 C)) / (count - d).

Where the noise is not small
----------------------------
nu = 2 max_i sqrt(sum_j u_ij^2) estimates the norm of E (Bandeira and van Handel 2016). If A's least
eigenvalue is below 2 nu the fit is *ridged*: with A = Q diag(w) Q', w+ = max(w, nu/10),

    beta = Q diag(w+ / (w+^2 + kappa)) Q'b,    kappa = d (v_b + v_A t^2) / t^2,    t^2 = s d / tr A,

the posterior mean of beta given h = b - A beta ~ N(0, v) for v = v_b + v_A t^2 (mean variances of
the cells) and beta ~ N(0, t^2/d): t^2 is the squared length at which columns explain all of s. With
an intercept all of this is done to moments around the means, m = A_0x / count, so that slopes alone
are drawn towards zero; the intercept is b_0 / count - m'slopes.

Intervals of ridged fits, and of fits whose noise is not Gaussian (sums of few box-shaped draws are
not normal), come from draws of the *true* coefficients given the release: E*, e*, drawn from the
public law of the noise, A* = A - E*, eigenvalues folded to max(|w|, nu/10) since A0 has none below
0; beta* = A*^-1 (b - e* - N(0, sigma2 A*)). For one coefficient without folding that is Fieller's
interval, exact. Intervals and p-values of r'beta follow from the draws of r'beta* by one law,
below, which says what the draws of a ridged fit's intercept are short of and how they are mended.
The generator is seeded by the released numbers: the same release always gives the same interval,
and nothing new is spent.

Nothing here raises on a released value. Fallbacks: count at least d + 1 (and at most the public
number of rows); sigma2 between half the standard deviation of its own noise and s / count.

Fresh noise by a release's public law, for intervals: post-processing, nothing is spent.

The law of an estimate whose uncertainty is a set of draws: one law for intervals and p-values.

The draws are of the *true* value given the release (`dpreg.estimation.inference`). Their quantiles
Q(p), at Weibull positions, are exact where the truth is exchangeable with the draws. A ridged
estimate is drawn towards zero and the draws are not, so it may lie outside their middle 95%. The
interval of level 1 - alpha is therefore

    [min(Q(alpha/2), estimate), max(Q(1 - alpha/2), estimate)].

It is never shorter than the one between quantiles, so it covers no less often, and it always
holds the estimate. The p-value of a value q is the largest alpha whose interval holds q:

    1 where q lies between the estimate and the median of the draws, else 2 min(F(q), 1 - F(q)),

F the inverse of Q. So q lies in the interval of level 1 - alpha exactly where its p-value is at
least alpha.

Beyond the outermost half percent on either side there are too few draws to read quantiles off.
There the law goes on with an exponential tail from the median m through the anchor p0 = 1/200:

    Q(p) = m + (Q(p0) - m) log(2 p) / log(2 p0),    p < p0.

Laplace, K-norm and matrix-Laplace noise have tails of this kind and Gaussian noise has lighter
ones, so that far tails err on the side of caution.

Of the intercept of a ridged fit the draws lie on one side: among many columns, folded eigenvalues
take noise for columns that explain some of the constant, and what is left of it is divided by too
little. How far to one side the draws tell, and not to which one the estimate errs; it is not drawn
towards zero, and may be nearer than any draw. So `both_sides` takes, for each p, the outer one of
Q(p) and of its mirror image about the estimate, 2 estimate - Q(1 - p). The interval is never
shorter for it, and reaches as far below the estimate as above.

In R, at alpha >= 0.01: ``range(quantile(draws, c(alpha/2, 1 - alpha/2), type = 6), estimate)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from scipy.linalg import eigh
from scipy.special import ndtri

from dpreg.arrays import Floats, Places
from dpreg.estimation.gram import NoisyGram
from dpreg.estimation.tuning import TUNING

_CELLS_AT_ONCE: Final = 2_000_000
"""Redrawn cells in memory at once."""
_MOST_DRAWS: Final = 2000
_LEAST_DRAWS: Final = 200
"""So few still give intervals at 99%: their ends are the extreme draws. Their coverage is measured
by ``benchmarks.wide``."""
_FULL_DRAWS_TO: Final = 80
"""Columns up to which most draws are made; the cost of one grows with their cube."""
_INVERSES: Final = 16  # work
"""How many inverses of wide models are averaged."""
_FROM_ONE: Final = 10  # work
"""Draws made from the eigenvectors of one matrix."""


def draws_for(columns: int) -> int:
    """Return how many draws a model's intervals are made of: 2000, down to 200 for wide models.

    Ends of intervals are order statistics at Weibull's positions, so that coverage does not depend
    on the number of independent draws; with fewer of them the ends themselves vary more.
    """
    whole = _MOST_DRAWS * _FULL_DRAWS_TO**3 // max(columns, 1) ** 3
    return max(_LEAST_DRAWS, min(_MOST_DRAWS, whole))


def draw_truth(
    noisy: NoisyGram,
    least: float,
    sigma2: float,
    draws: int,
    rng: Generator,
    *,
    covariance: bool = True,
) -> tuple[Floats, Floats, Floats | None]:
    """Draw coefficients that the release is compatible with: (given the noise alone, sampling).

    Eigenvalues are folded to at least `least`; see `dpreg.estimation.inference`. The third is the
    sampling error's covariance, where draws are few and `covariance` is asked for: sigma2 times the
    mean of the inverses, which is its mean given the noise. (A covariance of few draws would not
    have full rank.) Inverses differ less than draws do, so that the first few of them are enough.
    """
    size = len(noisy.columns)
    wanted = covariance and draws < _MOST_DRAWS
    if size > _FULL_DRAWS_TO and _turns(noisy):
        return _draw_turned(noisy, least, sigma2, draws, rng, wanted)
    step = max(1, _CELLS_AT_ONCE // (size + 1) ** 2)
    parts: list[Floats] = []
    inverses: list[Floats] = []
    redrawn = Redrawn.of(noisy)
    for start in range(0, draws, step):
        number = min(step, draws - start)
        matrices = noisy.cells - redrawn.matrices(number, rng)
        values, vectors = np.linalg.eigh(matrices[:, :size, :size])
        values = np.maximum(np.abs(values), least)
        turned = np.einsum("kji,kj->ki", vectors, matrices[:, :size, size]) / values
        errors = rng.standard_normal((number, size)) * np.sqrt(sigma2 / values)
        parts.append(np.einsum("kij,skj->ski", vectors, np.stack([turned, errors])))
        few = zip(vectors, values, range(_INVERSES - len(inverses)), strict=False)
        inverses += [(v / w) @ v.T for v, w, _ in few] if wanted else []
    back = np.concatenate(parts, axis=1)
    return back[0], back[1], sigma2 * np.mean(inverses, axis=0) if wanted else None


def _turns(noisy: NoisyGram) -> bool:
    """Say whether a wide model's noise, as it is drawn anew, looks the same from any direction.

    It does where all cells of the columns have noise, alike and near normal, with twice the
    variance on the diagonal. Gaussian noise has there but once the variance: it is drawn with
    twice, on the safe side, for one cell of a row in d.
    """
    size = len(noisy.cells)
    cells = len(noisy.triangle.cells) - (not noisy.triangle.intercept)  # the count has none
    return noisy.mechanism != "laplace" and cells == size * (size + 1) // 2


def _draw_turned(
    noisy: NoisyGram, least: float, sigma2: float, draws: int, rng: Generator, covariance: bool
) -> tuple[Floats, Floats, Floats | None]:
    """Do as `draw_truth` says, in wide models, with several draws from one matrix's eigenvectors.

    Let A = V W V' be the release. Normal noise E that looks the same from any direction, of
    variance u^2 off the diagonal and 2 u^2 on it, has the law of V E V', and of V S E S V' for a
    diagonal S of signs. So A - E has the law of V S (W - E) S V', and the folded inverse that of
    V S f(W - E) S V', whatever the signs: the eigenvectors of W - E serve several draws, each with
    signs and further noise of its own, and each has just the law that is wanted. They share only
    the diagonal of f(W - E), d of its d^2 cells; the others are uncorrelated from one draw to the
    next. Where one eigenvector carries most of a coefficient, as of the intercept, that is much of
    its law, so the diagonals of E are drawn in strata, as many as there are matrices (a Latin
    hypercube). Uncorrelated draws are not independent: ends far out, of 99% intervals and small
    p-values, rest on the number of matrices more than on that of the draws, as the errors of the
    intercept do. By the same symmetry the mean of the inverses is V D V' with D diagonal.
    """
    size = len(noisy.columns)
    within, beside = noisy.noise_sd[0, 1], noisy.noise_sd[0, size]
    middle, turn = eigh(noisy.cells[:size, :size], driver="evd", check_finite=False)
    product = turn.T @ noisy.cells[:size, size]
    back = np.empty((2, draws, size))
    mean = np.zeros(size)
    starts = range(0, draws, _FROM_ONE)
    strata = rng.permuted(np.tile(np.arange(len(starts))[:, None], size), axis=0)
    shares = (strata + rng.random(strata.shape)) / len(starts)
    diagonals = np.sqrt(2) * ndtri(np.clip(shares, 2.0**-54, 1 - 2.0**-53))
    for start, diagonal in zip(starts, diagonals, strict=True):
        number = min(_FROM_ONE, draws - start)
        half = rng.standard_normal((size, size))
        matrix = (half + half.T) * (within / np.sqrt(2))
        np.fill_diagonal(matrix, middle + within * diagonal)
        values, vectors = eigh(matrix, driver="evd", overwrite_a=True, check_finite=False)
        values = np.maximum(np.abs(values), least)
        signs = rng.choice([-1.0, 1.0], (number, size))
        noise, errors = rng.standard_normal((2, number, size))
        along = (signs * (product + beside * noise)) @ vectors / values
        drawn = np.stack([along, errors * np.sqrt(sigma2 / values)]) @ vectors.T
        back[:, start : start + number] = (signs * drawn) @ turn.T
        mean += (number / draws) * (vectors**2 @ (1 / values))
    return back[0], back[1], sigma2 * (turn * mean) @ turn.T if covariance else None


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """What is drawn anew, chunk by chunk: released cells, and the entries that they fill.

    Attributes
    ----------
    noisy : NoisyGram
    cells : (m, 2) array
        The first entry that each fills.
    filled : ((d + 1)^2,) array
        Which cell fills an entry; m where none does.
    """

    noisy: NoisyGram
    cells: Places
    filled: Places

    @classmethod
    def of(cls, noisy: NoisyGram) -> Redrawn:
        """Find which cells of a release are to be drawn anew."""
        triangle = noisy.triangle
        places = triangle.entries[not triangle.intercept :]  # the count of rows fills none
        filled = np.full(noisy.cells.shape, len(places), dtype=np.intp)
        for number, entries in enumerate(places):
            for i, j in entries:
                filled[i, j] = filled[j, i] = number
        cells = np.array([entries[0] for entries in places], dtype=np.intp).reshape(-1, 2)
        return cls(noisy, cells, filled.ravel())

    def matrices(self, size: int, rng: Generator) -> Floats:
        """Draw `size` noise matrices by the release's public law, (size, d + 1, d + 1)."""
        noisy, (i, j) = self.noisy, self.cells.T
        if noisy.mechanism == "matrix-laplace" and len(noisy.columns) <= _FULL_DRAWS_TO:
            drawn = _wishart_noise(noisy, size, rng)[:, i, j]
        else:
            drawn = standard_noise(noisy.mechanism, (size, len(i)), rng) * noisy.noise_sd[i, j]
        padded = np.column_stack([drawn, np.zeros(size)])
        return padded.take(self.filled, axis=1).reshape(size, *noisy.cells.shape)


def standard_noise(mechanism: str, shape: tuple[int, int], rng: Generator) -> Floats:
    """Draw noise of variance 1 in some cells of a release, many times over, shape (times, cells).

    Parameters
    ----------
    mechanism : str
        Matrix-Laplace noise has no law of single cells here; in many columns it is near a normal
        one (its excess kurtosis is 3 over the columns), which is what is drawn.
    shape : (int, int)
    rng : Generator
    """
    if mechanism == "laplace":
        return rng.laplace(0.0, np.sqrt(0.5), shape)
    return rng.standard_normal(shape)


def _wishart_noise(noisy: NoisyGram, size: int, rng: Generator) -> Floats:
    """Draw matrix-Laplace noise in all cells, by its joint law.

    N_ij = sqrt(c_i c_j) (X_ij + X_ji), X = P'M, P and M standard normal with nu = D + 1 rows; see
    `dpreg.privacy.mechanisms.wishart`. The D places hold the constant, in the model or not.
    """
    last = len(noisy.columns)
    nu = last + 2 + (not noisy.triangle.intercept)
    response = noisy.noise_sd[last, last] / np.sqrt(4 * nu)
    column = noisy.noise_sd[0, last] ** 2 / (2 * nu * response) if last else 0.0
    scales = np.append(np.full(last, column), response)
    p, m = rng.standard_normal((2, size, nu, last + 1))
    product = np.swapaxes(p, 1, 2) @ m
    noise: Floats = np.sqrt(np.outer(scales, scales)) * (product + np.swapaxes(product, 1, 2))
    return noise


def intervals(estimates: Floats, draws: Floats, alpha: float) -> Floats:
    """Return intervals (m, 2) of level 1 - alpha that hold the estimates.

    Parameters
    ----------
    estimates : (m,) array
    draws : (B, m) array
    alpha : float in (0, 1)
    """
    with np.errstate(invalid="ignore", over="ignore"):
        lower = _quantile(draws, alpha / 2)
        upper = -_quantile(-draws, alpha / 2)
    return np.column_stack([np.minimum(lower, estimates), np.maximum(upper, estimates)])


def both_sides(estimate: float, draws: Floats) -> Floats:
    """Return draws (B,), ordered as they were, that reach as far to either side of an estimate.

    Parameters
    ----------
    estimate : float
    draws : (B,) array
    """
    order = np.argsort(draws)
    there = draws[order]
    mirrored = 2 * estimate - there[::-1]
    below = len(draws) // 2
    outer = there.copy()
    outer[:below] = np.minimum(there, mirrored)[:below]
    outer[len(draws) - below :] = np.maximum(there, mirrored)[len(draws) - below :]
    found = np.empty_like(outer)
    found[order] = outer
    return found


def pvalues(estimates: Floats, draws: Floats, values: Floats) -> Floats:
    """Return two-sided p-values (m,): the largest alpha whose interval holds each value.

    Parameters
    ----------
    estimates : (m,) array
    draws : (B, m) array
    values : (m,) array
        What the truth is under the hypotheses.
    """
    middle = np.median(draws, axis=0)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        below = np.array([_tail(*each) for each in zip(draws.T, middle, values, strict=True)])
        above = np.array([_tail(*each) for each in zip(-draws.T, -middle, -values, strict=True)])
    tail = np.where(values < middle, below, above)
    inside = (np.minimum(estimates, middle) <= values) & (values <= np.maximum(estimates, middle))
    found = np.where(inside, 1.0, np.minimum(2 * tail, 1.0))
    unknown = np.isnan(estimates) | np.isnan(values) | np.isnan(middle)
    return np.where(unknown, np.nan, found)


def _anchor(draws: int) -> float:
    return min(max(TUNING.tail, 1 / (draws + 1)), TUNING.widest_tail)


def _quantile(draws: Floats, tail: float) -> Floats:
    """Return the lower quantiles (m,), p = tail at most 1/2, by the law of the module."""
    anchor = _anchor(len(draws))
    if tail >= anchor:
        return np.asarray(np.quantile(draws, tail, axis=0, method="weibull"))
    outer, middle = np.quantile(draws, [anchor, 0.5], axis=0, method="weibull")
    return np.asarray(middle + (outer - middle) * (np.log(2 * tail) / np.log(2 * anchor)))


def _tail(draws: Floats, middle: float, value: float) -> float:
    """Return p with Q(p) = value, for one estimate; meant for values below the median."""
    anchor = _anchor(len(draws))
    outer = np.quantile(draws, anchor, method="weibull")
    if value < outer:
        reach = (middle - value) / (middle - outer)
        return float(0.5 * (2 * anchor) ** reach)
    positions = np.arange(1, len(draws) + 1) / (len(draws) + 1)
    return float(np.interp(value, np.sort(draws), positions))


_ROWS_AT_ONCE: Final = 256  # work
BELIEVED: Final = 2.0
"""A fit is ridged where A's least eigenvalue is below so many times nu."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """A covariance F G F' + diag(own) of d coefficients: thousands of them, a few causes."""

    forms: Floats
    inner: Floats
    own: Floats

    @property
    def variances(self) -> Floats:
        """The diagonal, (d,)."""
        return np.asarray(((self.forms @ self.inner) * self.forms).sum(axis=1) + self.own)

    @property
    def whole(self) -> Floats:
        """The covariance, (d, d)."""
        found = np.zeros((len(self.own), len(self.own)))
        self.added_to(found)
        return found

    def added_to(self, whole: Floats) -> None:
        """Add the (d, d) covariance to a matrix."""
        for start in range(0, len(whole), _ROWS_AT_ONCE):  # a second matrix would be as large
            rows = slice(start, start + _ROWS_AT_ONCE)
            whole[rows] += (self.forms[rows] @ self.inner) @ self.forms.T
        whole[np.diag_indices(len(whole))] += self.own

    def mapped(self, factors: Floats, first: Floats) -> Spread:
        """Return the covariance of T beta, T diagonal except in its first row."""
        forms = self.forms * factors[:, None]
        forms[:1] = first @ self.forms
        return Spread(forms, self.inner, self.own * factors**2)


@dataclass(frozen=True, slots=True, eq=False)
class GramFit:
    """Coefficients with their uncertainty; d columns, in the units of the release or the user's.

    Parameters
    ----------
    beta : (d,) array
    sampling, privacy : Spread
        What sampling and what the noise alone would give.
    sigma2 : float
        Residual variance.
    rsquared : float
        In [0, 1]; centred when the model has an intercept.
    nobs : float
        The released count of complete rows, after the fallbacks; not exact.
    df_resid : float
        nobs - d.
    ridged : bool
        Whether the public ridge rule fired; with a wide factor, or a level's count was raised.
    ridge : float
        sqrt(kappa) in stored units; 0 where not ridged.
    draws : (B, d) array or None
        Where there are any, intervals of r'beta come from draws @ r, by the module's law.
    """

    beta: Floats
    sampling: Spread
    privacy: Spread
    sigma2: float
    rsquared: float
    nobs: float
    df_resid: float
    ridged: bool
    ridge: float
    draws: Floats | None

    @property
    def cov(self) -> Floats:
        """Total covariance, (d, d), to be read only; made anew each time."""
        whole = self.sampling.whole
        self.privacy.added_to(whole)
        whole.setflags(write=False)
        return whole

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """Standard errors that sampling and that the noise alone would give."""
        return np.sqrt(self.sampling.variances), np.sqrt(self.privacy.variances)

    def in_user_units(
        self, factors: Floats, first: Floats, shift: Floats, *, response_width: float = 1.0
    ) -> GramFit:
        """Map by beta_user = T beta + t0.

        Parameters
        ----------
        factors, first : (d,) arrays
            T is diagonal except in its first row: its diagonal, and that row.
        shift : (d,) array
            t0.
        response_width : float
            User units of the response per stored unit.
        """
        beta, given, draws = self.beta * factors, self.draws, self.draws
        beta[:1] = first @ self.beta
        if given is not None:
            draws = given * factors + shift
            draws[:, 0] = given @ first + shift[0]
        return replace(
            self,
            beta=beta + shift,
            sampling=self.sampling.mapped(factors, first),
            privacy=self.privacy.mapped(factors, first),
            sigma2=self.sigma2 * response_width**2,
            draws=draws,
        )


def fit_gram(noisy: NoisyGram, *, rows: int | None = None, draws: int | None = None) -> GramFit:
    """Fit the model of a released moment matrix; costs nothing, raises on no released value.

    Parameters
    ----------
    noisy : NoisyGram
    rows : int, optional
        The number of rows where it is public (replace-one); bounds the count of complete rows.
    draws : int, optional
        Bootstrap draws, where they are needed; None means `draws_for` the model's columns.

    Returns
    -------
    GramFit
        In stored units; `to_user_units` maps it.
    """
    size, intercept = len(noisy.columns), noisy.triangle.intercept
    cells, variance, count = noisy.cells, noisy.noise_sd**2, complete_rows(noisy, rows)
    norm = noise_norm(variance[:size, :size])
    least = least_eigenvalue(norm, count)
    inverse, _, kappa = ridged(cells, variance, least, BELIEVED * norm)
    hidden = kappa > 0
    if hidden and intercept:
        inverse, kappa = _centred_ridge(cells, variance, count, least)
    beta = inverse @ cells[:size, size]
    noise, extended = equation_noise(noisy, beta), np.append(beta, -1.0)
    total = max(float(cells[size, size]), 0.0)
    sigma2, explained = residual_variance(
        float(extended @ cells @ extended) + float(np.trace(inverse @ noise[:size, :size])),
        float(np.sqrt(max(extended @ noise @ extended, 0.0))),
        total,
        total - (float(cells[0, size]) ** 2 / count if intercept else 0.0),
        count - size,
    )
    sampling, privacy = sigma2 * inverse, inverse @ noise[:size, :size] @ inverse
    draws_of_truth = None
    if size and (hidden or noisy.mechanism != "gaussian"):
        number = draws_for(size) if draws is None else draws
        privately, sampled, error = draw_truth(
            noisy, least, sigma2, number, seeded_by(cells), covariance=hidden
        )
        if hidden and intercept:
            constant = privately[:, 0] - sampled[:, 0]
            privately[:, 0] += both_sides(float(beta[0]), constant) - constant
        draws_of_truth = privately - sampled
        if hidden:
            privacy = np.cov(privately, rowvar=False).reshape(size, size)
            sampling = np.cov(sampled, rowvar=False).reshape(size, size) if error is None else error
    return GramFit(
        beta=beta,
        sampling=Spread(np.eye(size), sampling, np.zeros(size)),
        privacy=Spread(np.eye(size), privacy, np.zeros(size)),
        sigma2=sigma2,
        rsquared=explained,
        nobs=count,
        df_resid=count - size,
        ridged=hidden,
        ridge=float(np.sqrt(kappa)),
        draws=draws_of_truth,
    )


def complete_rows(noisy: NoisyGram, rows: int | None) -> float:
    """Return the released count of complete rows, at least d + 1, and at most a public number."""
    count = noisy.count if rows is None else min(noisy.count, float(rows))
    return max(count, len(noisy.columns) + 1.0)


def independent_noise(variance: Floats, beta: Floats) -> Floats:
    """Return Cov(E_full (beta, -1)) of a symmetric E whose other cells are independent."""
    extended = np.append(beta, -1.0)
    cov: Floats = variance * np.outer(extended, extended)
    np.fill_diagonal(cov, variance @ extended**2)
    return cov


def equation_noise(noisy: NoisyGram, beta: Floats) -> Floats:
    """Return C = Cov(E_full (beta, -1)), shape (d + 1, d + 1); see the module."""
    extended, variance, triangle = np.append(beta, -1.0), noisy.noise_sd**2, noisy.triangle
    # Places a whose cells (0, a) and (a, a) are one draw.
    grouped = [place for group in triangle.groups for place in group] * triangle.intercept
    cov, shared = independent_noise(variance, beta), np.array(grouped, dtype=np.intp)
    draw = variance[shared, shared]
    cov[shared, shared] += 2 * draw * extended[0] * extended[shared]
    cov[0, shared] += draw * extended[shared] ** 2
    cov[shared, 0] = cov[0, shared]
    return cov


def noise_norm(variance: Floats) -> float:
    """Return nu, the public estimate of the spectral norm of noise of these (d, d) variances."""
    return 2 * float(np.sqrt(variance.sum(axis=1).max(initial=0.0)))


def least_eigenvalue(norm: float, count: float) -> float:
    """Return the positive number below which an eigenvalue of X'X is not believed."""
    return max(TUNING.floor * norm, float(np.finfo(float).eps) * count)


def ridged(
    cells: Floats, variance: Floats, least: float, believed: float
) -> tuple[Floats, Floats, float]:
    """Return the map from b to coefficients, the inverse of A, and kappa, 0 where it is not needed.

    Parameters
    ----------
    cells, variance : (d + 1, d + 1) arrays
        Of columns and response, and of the noise in each cell.
    least : float
        Eigenvalues are kept to it where a ridge is needed.
    believed : float
        A ridge is needed where the least eigenvalue is below.
    """
    size = len(cells) - 1
    if not size:
        return np.zeros((0, 0)), np.zeros((0, 0)), 0.0
    values, vectors = np.linalg.eigh(cells[:size, :size])
    kappa = 0.0
    if not values[0] >= max(believed, np.finfo(float).tiny):
        values = np.maximum(values, least)
        squared = max(float(cells[size, size]), 0.0) * size / float(values.sum()) or 1.0
        noise = variance[:size, size].mean() + variance[:size, :size].mean() * squared
        kappa = float(size * noise / squared)
    shrunk = (vectors * (values / (values**2 + kappa))) @ vectors.T
    return shrunk, (vectors / values) @ vectors.T, kappa


def _centred_ridge(
    cells: Floats, variance: Floats, count: float, least: float
) -> tuple[Floats, float]:
    """Return the map from b to ridged coefficients, and kappa: the intercept is not penalised.

    With means m = A_0x / count, S = A_xx - count m m' and S+ its ridged inverse, slopes are
    S+ (b_x - m b_0), and the intercept is b_0 / count - m'slopes. Means are kept to the box.
    """
    size = len(cells) - 1
    means = cells[0, 1:] / count
    means[:-1] = m = np.clip(means[:-1], -1.0, 1.0)
    moments = cells[1:, 1:] - count * np.outer(means, means)
    inverse, _, kappa = ridged(moments, variance[1:, 1:], least, math.inf)
    turn = np.column_stack([-m, np.eye(size - 1)])
    whole: Floats = turn.T @ inverse @ turn
    whole[0, 0] += 1 / count
    return whole, kappa


def residual_variance(
    residual: float, spread: float, total: float, around: float, freedom: float
) -> tuple[float, float]:
    """Return sigma2 and R squared with their fallbacks.

    Parameters
    ----------
    residual, spread : float
        Sum of squares of the residuals, and the standard deviation of its noise.
    total, around : float
        Of the response, and about its mean where the model has an intercept.
    freedom : float
    """
    kept = max(min(max(residual, spread / 2), total), float(np.finfo(float).tiny))
    return kept / freedom, 1 - kept / around if around > kept else 0.0


def seeded_by(released: Floats) -> Generator:
    """Seed a generator by released numbers, so that intervals repeat."""
    return default_rng(np.frombuffer(released.tobytes(), dtype=np.uint32))
