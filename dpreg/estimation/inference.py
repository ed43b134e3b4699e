r"""Coefficients and honest standard errors from a released moment matrix: post-processing alone.

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
`dpreg.estimation.drawn`, which says what the draws of a ridged fit's intercept are short of and how
they are mended. The generator is seeded by the released numbers: the same release always
gives the same interval, and nothing new is spent.

Nothing here raises on a released value. Fallbacks: count at least d + 1 (and at most the public
number of rows); sigma2 between half the standard deviation of its own noise and s / count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from dpreg.arrays import Floats, Places
from dpreg.estimation import drawn
from dpreg.estimation.noisy_gram import NoisyGram
from dpreg.estimation.redraws import draw_truth, draws_for
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.gram_sensitivity import Triangle

__all__ = [
    "BELIEVED",
    "GramFit",
    "equation_noise",
    "fit_gram",
    "noise_norm",
    "seeded_by",
    "to_user_units",
]


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
        For "bootstrap": intervals of r'beta come from draws @ r, see `dpreg.estimation.drawn`.
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
            return drawn.intervals(self.beta, self.draws, alpha)
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
            privately[:, 0] += drawn.both_sides(float(beta[0]), constant) - constant
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
