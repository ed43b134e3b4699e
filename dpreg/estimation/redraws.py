"""Fresh noise by a release's public law, for intervals: post-processing, nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.random import Generator
from scipy.linalg import eigh
from scipy.special import ndtri

from dpreg.arrays import Floats, Places
from dpreg.estimation.noisy_gram import NoisyGram

__all__ = ["Redrawn", "draw_truth", "draws_for", "standard_noise"]


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
