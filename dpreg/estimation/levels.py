"""Coefficients of a model with a wide factor: its levels are solved for one by one.

Of a factor's 0/1 columns no two are 1 in a row, so that X'X is diagonal where two levels meet.
With n_a, B_a and b_a the released count, sums of the k other columns x and sum of y in level a, and
c a public or released centre of (x, y) (zero without an intercept), put z_a = (B_a, b_a) - n_a c
and S the moments of (x, y) - c over all rows. The levels drop out of the normal equations:

    H = S - sum_a (z_a z_a' - times V_a) / n_a,      H = [W r; r' t],
    gamma = W^-1 r,      alpha_a = (b_a - B_a' gamma) / n_a.

V_a is the covariance of the noise in z_a. Without it the squares of the noise in L levels add up in
H, the more the rarer the levels are, and gamma would be drawn away from the truth: of least
squares on noisy columns that is the well-known bias. With times = 1 H is without it up to
terms in (noise / n_a)^2. Computing time is that of L (k + 1)^2 products and of matrices of k
columns, however many levels there are.

Intervals come from draws of the true coefficients given the release, as in
`dpreg.estimation.inference`: noise drawn anew by its public law is taken off the released cells.
What is left has the noise twice, so that times = 2. The residual's sampling error is drawn besides.
For a level's mean given gamma that is Fieller's interval.

Counts below one standard deviation of their noise are set to it: such a level's coefficient is
drawn to the centre, and its interval is about as wide as the response's bounds. Eigenvalues of W
are folded, and gamma is ridged, by the rules of `dpreg.estimation.inference`, nu being that of H.

With an intercept the released levels hold the one that the coding leaves out
(`dpreg.estimation.gram`), as the last column; the intercept is its alpha, and the other
levels' coefficients are differences from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator

from dpreg.arrays import Floats, Places
from dpreg.estimation import inference
from dpreg.estimation.gram import NoisyGram
from dpreg.estimation.inference import GramFit, Spread


@dataclass(frozen=True, slots=True, eq=False)
class Back:
    """From slopes gamma and levels' means alpha to coefficients, in the order of the columns.

    Attributes
    ----------
    levels, others : arrays of int
        Places of the levels and of the columns besides, the intercept left out.
    rest : int or None
        Place of the level that the coding leaves out, the last one; None without an intercept.
    """

    levels: Places
    others: Places
    rest: int | None

    def beta(self, gamma: Floats, alpha: Floats) -> Floats:
        """Lay out coefficients, (..., d)."""
        found = np.zeros(
            (*gamma.shape[:-1], len(self.levels) + len(self.others) + (self.rest is not None))
        )
        found[..., self.others] = gamma
        found[..., self.levels] = alpha
        if self.rest is None:
            return found
        base = found[..., self.rest].copy()
        found[..., self.levels] -= base[..., None]
        found[..., 0] = base
        return found[..., : self.rest]

    def spread(self, slope: Floats, gamma: Floats, own: Floats) -> Spread:
        """Return what is uncertain where alpha = slope @ gamma + parts of their own."""
        k = len(gamma)
        forms = self.beta(np.eye(k), slope.T).T
        single, shared = np.zeros((2, len(forms) + 1))
        single[self.levels] = own
        inner = np.zeros((k + 1, k + 1))
        inner[:k, :k] = gamma
        if self.rest is not None:  # what is uncertain of it is so of all that differ from it
            inner[k, k] = single[self.rest]
            shared[self.levels], shared[0] = -1.0, 1.0
        return Spread(np.column_stack([forms, shared[:-1]]), inner, single[:-1])


_MOST_DRAWS: Final = 2000
_LEAST_DRAWS: Final = 500
_CELLS_DRAWN: Final = 40_000_000
_NUMBERS_KEPT: Final = 5_000_000
_CELLS_AT_ONCE: Final = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Released:
    """Released cells of k columns, the response and L levels, and what is known of their noise.

    Attributes
    ----------
    whole : (k + 2, k + 2) array
        Moments of (1, x, y) over all rows; the constant's are 0 without an intercept.
    levels : (L, k + 2) array
        Count and sums of (x, y) in each level.
    whole_noise, levels_noise : arrays
        Variances of the noise in each of these cells.
    centre, floors : (k + 1,) and (L,) arrays
        c, and the least that each count is taken for.
    mechanism : str
    """

    whole: Floats
    levels: Floats
    whole_noise: Floats
    levels_noise: Floats
    centre: Floats
    floors: Floats
    mechanism: str

    def reduced(self, whole: Floats, levels: Floats, times: int) -> tuple[Floats, Floats, Floats]:
        """Return H, z and the floored counts n."""
        c = self.centre
        counts = np.maximum(levels[..., 0], self.floors)
        z = levels[..., 1:] - levels[..., :1] * c
        first = whole[..., 0, 1:, None] * c
        inner = whole[..., 1:, 1:] - first - np.swapaxes(first, -1, -2)
        inner = inner + whole[..., :1, :1] * np.outer(c, c)
        shares = (1 / counts) @ self.levels_noise
        bias = shares[..., 1:, None] * np.eye(len(c)) + shares[..., :1, None] * np.outer(c, c)
        between = np.swapaxes(z, -1, -2) @ (z / counts[..., None])
        return inner - between + times * bias, z, counts

    def noise_of(self, z: Floats, counts: Floats) -> Floats:
        """Return the variances of H's cells."""
        c, share = self.centre, 1 / counts**2
        v = self.levels_noise[:, 1:] + self.levels_noise[:, :1] * c**2
        crossed = (z**2 * share[:, None]).T @ v
        own = (1.0 + np.eye(len(c))) * (crossed + crossed.T + (v * share[:, None]).T @ v)
        whole = self.whole_noise
        first = whole[0, 1:, None] * c**2
        totals = whole[1:, 1:] + first + first.T + whole[0, 0] * np.outer(c, c) ** 2
        return np.asarray(totals + own)

    def redrawn(self, number: int, rng: Generator) -> tuple[Floats, Floats]:
        """Take freshly drawn noise off the released cells, `number` times."""
        size = len(self.whole)
        upper = np.triu_indices(size)
        cells = inference.standard_noise(
            self.mechanism, (number, len(upper[0]) + self.levels.size), rng
        )
        whole = np.empty((number, size, size))
        whole[:, upper[0], upper[1]] = whole[:, upper[1], upper[0]] = cells[:, : len(upper[0])]
        inner = cells[:, len(upper[0]) :].reshape(number, *self.levels.shape)
        return (
            self.whole - whole * np.sqrt(self.whole_noise),
            self.levels - inner * np.sqrt(self.levels_noise),
        )


def fit_levels(noisy: NoisyGram, levels: Sequence[int], *, rows: int | None = None) -> GramFit:
    """Fit the model of a released moment matrix with a wide factor.

    Parameters
    ----------
    noisy : NoisyGram
        With an intercept its last column is the level that the coding leaves out, see
        `dpreg.estimation.gram`; that column has no coefficient in what is returned.
    levels : sequence of int
        Places in ``noisy.columns`` of the factor's columns, all of one exclusive group.
    rows : int, optional
        As for `dpreg.estimation.inference.fit_gram`, whose contract this has: nothing is spent,
        nothing is raised on a released value.

    Returns
    -------
    GramFit
        In stored units.
    """
    size, intercept = len(noisy.columns), noisy.triangle.intercept
    at = np.asarray(levels, dtype=np.intp)
    inside = set(at.tolist())
    others = np.array([j for j in range(int(intercept), size) if j not in inside], dtype=np.intp)
    k = len(others)
    released = _taken(noisy, at, others)
    count = inference.complete_rows(noisy, rows)
    h, z, counts = released.reduced(released.whole, released.levels, 1)
    variances = released.noise_of(z, counts)
    nu = inference.noise_norm(variances[:k, :k])
    least = inference.least_eigenvalue(nu, count)
    shrunk, inverse, kappa = inference.ridged(h, variances, least, inference.BELIEVED * nu)
    gamma = shrunk @ h[:k, k]
    extended = np.append(gamma, -1.0)
    off = 2.0 - np.eye(k + 1)
    spread = float(np.sqrt(extended**2 @ (variances * off) @ extended**2))
    total, freedom = float(released.whole[-1, -1]), count - size + intercept
    around = total - (float(released.whole[0, -1]) ** 2 / count if intercept else 0.0)
    residual = float(extended @ h @ extended)
    sigma2, explained = inference.residual_variance(
        residual, spread, total, around, max(freedom, 1.0)
    )
    centre = released.centre
    alpha = (z[:, k] - z[:, :k] @ gamma) / counts + centre[k] - centre[:k] @ gamma
    number = min(
        _MOST_DRAWS,
        max(_LEAST_DRAWS, min(_CELLS_DRAWN // (len(at) * (k + 2)), _NUMBERS_KEPT // size)),
    )
    drawn_gamma, drawn_alpha, privacy = _drawn(released, least, sigma2, number)
    if not kappa:
        privacy = inverse @ inference.independent_noise(variances, gamma)[:k, :k] @ inverse
    back = Back(at, others, size - 1 if intercept else None)
    slope = -z[:, :k] / counts[:, None] - centre[:k]
    noise = released.levels_noise
    own = noise @ np.concatenate([[0.0], gamma**2, [1.0]]) + noise[:, 0] * alpha**2
    return GramFit(
        beta=back.beta(gamma, alpha),
        sampling=back.spread(slope, sigma2 * inverse, sigma2 / counts),
        privacy=back.spread(slope, privacy, own / counts**2),
        sigma2=sigma2,
        rsquared=explained,
        nobs=count,
        df_resid=freedom,
        ridged=bool(kappa or (released.levels[:, 0] < released.floors).any()),
        ridge=float(np.sqrt(kappa)),
        draws=back.beta(drawn_gamma, drawn_alpha),
    )


def hidden_levels(noisy: NoisyGram, levels: Sequence[int]) -> list[int]:
    """Return the places of levels whose released counts are hardly more than noise."""
    at = np.asarray(levels, dtype=np.intp)
    counts, sds = noisy.cells.diagonal()[at], noisy.noise_sd.diagonal()[at]
    return [int(place) for place in at[counts < 2 * inference.BELIEVED * sds]]


def _taken(noisy: NoisyGram, at: Places, others: Places) -> _Released:
    """Take the cells of a release apart."""
    outer = np.append(others, len(noisy.columns))

    def parts(matrix: Floats) -> tuple[Floats, Floats]:
        whole = np.zeros((len(outer) + 1, len(outer) + 1))
        whole[1:, 1:] = matrix[np.ix_(outer, outer)]
        if noisy.triangle.intercept:
            whole[0, 0] = matrix[0, 0]
            whole[0, 1:] = whole[1:, 0] = matrix[0, outer]
        return whole, np.column_stack([matrix.diagonal()[at], matrix[np.ix_(at, outer)]])

    whole, levels = parts(noisy.cells)
    whole_sd, levels_sd = parts(noisy.noise_sd)
    centre = np.clip(whole[0, 1:] / max(float(whole[0, 0]), 1.0), -1.0, 1.0)
    floors = np.maximum(levels_sd[:, 0], 1e-6)
    return _Released(whole, levels, whole_sd**2, levels_sd**2, centre, floors, noisy.mechanism)


def _drawn(
    released: _Released, least: float, sigma2: float, draws: int
) -> tuple[Floats, Floats, Floats]:
    """Draw gamma and alpha that the release is compatible with, and gamma's privacy covariance."""
    centre, rng = released.centre, inference.seeded_by(released.levels)
    k = len(centre) - 1
    step = max(1, _CELLS_AT_ONCE // released.levels.size)
    gammas, alphas, privately = [], [], []
    for start in range(0, draws, step):
        number = min(step, draws - start)
        h, z, counts = released.reduced(*released.redrawn(number, rng), 2)
        values, vectors = np.linalg.eigh(h[:, :k, :k])
        values = np.maximum(np.abs(values), least)
        turned = (np.swapaxes(vectors, 1, 2) @ h[:, :k, k, None])[..., 0] / values
        errors = rng.standard_normal((number, k)) * np.sqrt(sigma2 / values)
        private = (vectors @ turned[..., None])[..., 0]
        gamma = private - (vectors @ errors[..., None])[..., 0]
        within = z[..., k] - (z[..., :k] @ gamma[..., None])[..., 0]
        centred = centre[k] - gamma @ centre[:k]
        noise = rng.standard_normal(counts.shape) * np.sqrt(sigma2 / counts)
        gammas.append(gamma)
        alphas.append(within / counts + centred[:, None] - noise)
        privately.append(private)
    privacy = np.cov(np.concatenate(privately), rowvar=False).reshape(k, k)
    return np.concatenate(gammas), np.concatenate(alphas), privacy
