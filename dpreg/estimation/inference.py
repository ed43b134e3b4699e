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

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.special import ndtri

from dpreg.arrays import Floats, Places
from dpreg.estimation.gram import NoisyGram
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.proofs import Triangle

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
    """What is drawn anew, chunk by chunk: standard deviations of cells, and the entries they fill.

    Attributes
    ----------
    noisy : NoisyGram
    places : list of (int, int)
    sds : (m,) array
    filled : ((d + 1)^2,) array
        Which cell fills an entry; m where none does.
    """

    noisy: NoisyGram
    places: list[tuple[int, int]]
    sds: Floats
    filled: Places

    @classmethod
    def of(cls, noisy: NoisyGram) -> Redrawn:
        """Find which cells of a release are to be drawn anew."""
        places = [cell for cell in noisy.triangle.cells if cell != (-1, -1)]
        size = len(noisy.cells)
        filled = np.full((size, size), len(places), dtype=np.intp)
        rows, columns = np.array(places, dtype=np.intp).reshape(-1, 2).T
        filled[rows, columns] = filled[columns, rows] = np.arange(len(places))
        for number in np.flatnonzero(rows == columns).tolist():  # no other fills a second entry
            for i, j in noisy.triangle.places(places[number]):
                filled[i, j] = filled[j, i] = number
        return cls(noisy, places, noisy.noise_sd[rows, columns], filled.ravel())

    def matrices(self, size: int, rng: Generator) -> Floats:
        """Draw `size` noise matrices by the release's public law, (size, d + 1, d + 1)."""
        noisy = self.noisy
        if noisy.mechanism == "matrix-laplace" and len(noisy.columns) <= _FULL_DRAWS_TO:
            return _redraw_wishart(noisy, self.places, size, rng)
        drawn = standard_noise(noisy.mechanism, (size, len(self.places)), rng)
        padded = np.column_stack([drawn * self.sds, np.zeros(size)])
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


def _redraw_wishart(
    noisy: NoisyGram, places: list[tuple[int, int]], size: int, rng: Generator
) -> Floats:
    """Draw matrix-Laplace noise in the released cells, by its joint law.

    N_ij = sqrt(c_i c_j) (X_ij + X_ji), X = P'M, P and M standard normal with nu = D + 1 rows; see
    `dpreg.privacy.mechanisms.wishart`. The D places hold the constant, in the model or not.
    """
    triangle, last = noisy.triangle, len(noisy.columns)
    ahead = 0 if triangle.intercept else 1
    nu = last + ahead + 2
    response = noisy.noise_sd[last, last] / np.sqrt(4 * nu)
    column = noisy.noise_sd[0, last] ** 2 / (2 * nu * response) if last else 0.0
    scales = np.append(np.full(last, column), response)
    p, m = rng.standard_normal((2, size, nu, last + 1))
    product = np.swapaxes(p, 1, 2) @ m
    noise: Floats = np.sqrt(np.outer(scales, scales)) * (product + np.swapaxes(product, 1, 2))
    if len(places) == (last + 1) * (last + 2) // 2:  # every cell was released, each on its own
        return noise
    matrices = np.zeros_like(noise)
    for cell in places:
        first, *others = triangle.places(cell)
        for i, j in (first, *others):
            matrices[:, i, j] = matrices[:, j, i] = noise[:, first[0], first[1]]
    return matrices


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


_DENSE_TO: Final = 200  # work
"""Columns up to which the map to the user's units is multiplied as a dense matrix."""
BELIEVED: Final = 2.0
"""A fit is ridged where A's least eigenvalue is below so many times nu."""


@dataclass(frozen=True, slots=True, eq=False)
class GramFit:
    """Coefficients with their uncertainty; d columns, in the units of the release or the user's.

    Parameters
    ----------
    beta : (d,) array
    cov, cov_sampling, cov_privacy : (d, d) arrays
        Total covariance, and its two parts: what sampling and what the noise alone would give.
    sigma2 : float
        Residual variance.
    rsquared : float
        In [0, 1]; centred when the model has an intercept.
    nobs : float
        The released count of complete rows, after the fallbacks; not exact.
    df_resid : float
        nobs - d.
    ridged : bool
        Whether the public ridge rule fired.
    ridge : float
        sqrt(kappa) in stored units; 0 where not ridged.
    interval_method : {"noise-aware", "bootstrap"}
    draws : (B, d) array or None
        For "bootstrap": intervals of r'beta come from draws @ r, see `dpreg.estimation.inference`.
    """

    beta: Floats
    cov: Floats
    cov_sampling: Floats
    cov_privacy: Floats
    sigma2: float
    rsquared: float
    nobs: float
    df_resid: float
    ridged: bool
    ridge: float
    interval_method: str
    draws: Floats | None

    @property
    def bse(self) -> Floats:
        """Standard errors."""
        return np.sqrt(np.diag(self.cov))

    def conf_int(self, alpha: float = 0.05) -> Floats:
        """Intervals at level 1 - alpha, shape (d, 2)."""
        if self.draws is not None:
            return intervals(self.beta, self.draws, alpha)
        from scipy.stats import norm

        half = float(norm.ppf(1 - alpha / 2)) * self.bse
        return np.column_stack([self.beta - half, self.beta + half])


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
    size = len(noisy.columns)
    a, b = noisy.cells[:size, :size], noisy.cells[:size, size]
    total = max(float(noisy.cells[size, size]), 0.0)
    count = noisy.count if rows is None else min(noisy.count, float(rows))
    count = max(count, size + 1.0)
    values, vectors = np.linalg.eigh(a) if size else (np.zeros(0), np.zeros((0, 0)))
    norm = noise_norm(noisy)
    ridged = bool(size) and not values[0] >= max(BELIEVED * norm, np.finfo(float).tiny)
    kappa = 0.0
    if ridged:
        floor = _least_eigenvalue(noisy, norm)
        values = np.maximum(values, floor)
        kappa = _ridge(noisy, values)
    shrunk = values / (values**2 + kappa)
    inverse = (vectors * shrunk) @ vectors.T
    if ridged and noisy.triangle.intercept:
        inverse, kappa = _centred_ridge(noisy, count, norm)
    beta = inverse @ b
    noise = equation_noise(noisy, beta)
    sigma2, explained = _residual_variance(noisy, beta, inverse, noise, count, total, ridged)
    sampling = sigma2 * (vectors * (shrunk**2 * values)) @ vectors.T
    privacy = inverse @ noise[:size, :size] @ inverse
    draws_of_truth = None
    if size and (ridged or noisy.mechanism != "gaussian"):
        generator = seeded_by(noisy.cells)
        least = _least_eigenvalue(noisy, norm)
        number = draws_for(size) if draws is None else draws
        privately, sampled, error = draw_truth(
            noisy, least, sigma2, number, generator, covariance=ridged
        )
        if ridged and noisy.triangle.intercept:
            constant = privately[:, 0] - sampled[:, 0]
            privately[:, 0] += both_sides(float(beta[0]), constant) - constant
        draws_of_truth = privately - sampled
        if ridged:
            privacy = np.cov(privately, rowvar=False).reshape(size, size)
            sampling = np.cov(sampled, rowvar=False).reshape(size, size) if error is None else error
    return GramFit(
        beta=beta,
        cov=sampling + privacy,
        cov_sampling=sampling,
        cov_privacy=privacy,
        sigma2=sigma2,
        rsquared=explained,
        nobs=count,
        df_resid=count - size,
        ridged=ridged,
        ridge=float(np.sqrt(kappa)),
        interval_method="noise-aware" if draws_of_truth is None else "bootstrap",
        draws=draws_of_truth,
    )


def to_user_units(
    fit: GramFit, transform: ArrayLike, shift: ArrayLike, *, response_width: float = 1.0
) -> GramFit:
    """Map a fit by beta_user = T beta + t0: covariances by T C T', draws row by row.

    Parameters
    ----------
    fit : GramFit
        In stored units.
    transform, shift : (d, d) and (d,) arrays
        T and t0, as `Design.to_user_units` gives them.
    response_width : float
        User units of the response per stored unit; scales `sigma2`.
    """
    dense, t0 = np.asarray(transform, dtype=float), np.asarray(shift, dtype=float)
    t = csr_array(dense) if len(dense) > _DENSE_TO else dense  # its diagonal and its first row

    def mapped(cov: Floats) -> Floats:
        return np.asarray((t @ (t @ cov).T).T)

    return replace(
        fit,
        beta=np.asarray(t @ fit.beta + t0),
        cov=mapped(fit.cov),
        cov_sampling=mapped(fit.cov_sampling),
        cov_privacy=mapped(fit.cov_privacy),
        sigma2=fit.sigma2 * response_width**2,
        draws=None if fit.draws is None else np.asarray((t @ fit.draws.T).T + t0),
    )


def equation_noise(noisy: NoisyGram, beta: Floats) -> Floats:
    """Return C = Cov(E_full (beta, -1)), shape (d + 1, d + 1); see the module."""
    extended = np.append(beta, -1.0)
    variance = noisy.noise_sd**2
    cov: Floats = variance * np.outer(extended, extended)
    np.fill_diagonal(cov, variance @ extended**2)
    shared = _shared(noisy.triangle)
    draw = variance[shared, shared]
    cov[shared, shared] += 2 * draw * extended[0] * extended[shared]
    cov[0, shared] += draw * extended[shared] ** 2
    cov[shared, 0] = cov[0, shared]
    return cov


def noise_norm(noisy: NoisyGram) -> float:
    """Return nu, the public estimate of the spectral norm of the noise in X'X."""
    size = len(noisy.columns)
    return 2 * float(np.sqrt((noisy.noise_sd[:size, :size] ** 2).sum(axis=1).max(initial=0.0)))


def _shared(triangle: Triangle) -> Places:
    """Places a whose cells (0, a) and (a, a) are one draw."""
    grouped = [place for group in triangle.groups for place in group]
    return np.array(grouped if triangle.intercept else [], dtype=np.intp)


def _least_eigenvalue(noisy: NoisyGram, norm: float) -> float:
    """Return the positive number below which an eigenvalue of X'X is not believed."""
    return max(TUNING.floor * norm, float(np.finfo(float).eps) * max(noisy.count, 1.0))


def _ridge(noisy: NoisyGram, values: Floats, centred: float | None = None) -> float:
    """Return kappa, from released numbers and public variances alone.

    Around the response's mean where `centred` gives the count of rows.
    """
    size = len(values)
    last = len(noisy.columns)
    variance = noisy.noise_sd[last - size :, last - size :] ** 2
    total = float(noisy.cells[last, last])
    if centred is not None:
        total -= float(noisy.cells[0, last]) ** 2 / centred
    squared = max(total, 0.0) * size / float(values.sum())
    if squared <= 0:
        squared = 1.0
    return float(
        size * (variance[:size, size].mean() + variance[:size, :size].mean() * squared) / squared
    )


def _centred_ridge(noisy: NoisyGram, count: float, norm: float) -> tuple[Floats, float]:
    """Return the map from b to ridged coefficients, and kappa: the intercept is not penalised.

    With means m = A_0x / count, S = A_xx - count m m' and S+ its ridged inverse, slopes are
    S+ (b_x - m b_0), and the intercept is b_0 / count - m'slopes. Means are kept to the box.
    """
    size = len(noisy.columns)
    m = np.clip(noisy.cells[0, 1:size] / count, -1.0, 1.0)
    moments = noisy.cells[1:size, 1:size] - count * np.outer(m, m)
    values, vectors = np.linalg.eigh(moments)
    kappa = 0.0
    if size > 1:
        values = np.maximum(values, _least_eigenvalue(noisy, norm))
        kappa = _ridge(noisy, values, count)
    inverse = (vectors * (values / (values**2 + kappa))) @ vectors.T
    turn = np.column_stack([-m, np.eye(size - 1)])
    whole: Floats = turn.T @ inverse @ turn
    whole[0, 0] += 1 / count
    return whole, kappa


def _residual_variance(
    noisy: NoisyGram,
    beta: Floats,
    inverse: Floats,
    noise: Floats,
    count: float,
    total: float,
    ridged: bool,
) -> tuple[float, float]:
    """Return sigma2 and R squared with their fallbacks."""
    size = len(beta)
    extended = np.append(beta, -1.0)
    if ridged:
        residual = float(extended @ noisy.cells @ extended)
    else:
        residual = float(noisy.cells[size, size] - noisy.cells[:size, size] @ beta)
    residual += float(np.trace(inverse @ noise[:size, :size]))
    spread = float(np.sqrt(max(extended @ noise @ extended, 0.0)))
    residual = max(min(max(residual, spread / 2), total), np.finfo(float).tiny)
    sigma2 = residual / (count - size)
    around = total
    if noisy.triangle.intercept:
        around -= float(noisy.cells[0, size]) ** 2 / count
    explained = 1 - residual / around if around > residual else 0.0
    return sigma2, explained


def seeded_by(released: Floats) -> Generator:
    """Seed a generator by released numbers, so that intervals repeat."""
    return default_rng(np.frombuffer(released.tobytes(), dtype=np.uint32))
