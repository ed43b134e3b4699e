"""Integer scores of models: the floor of an exactly defined real number (first build: exact tier)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpreg.moments import MOMENT_BITS, Moments
from dpreg.privacy.sensitivity import score_grid
from dpreg.selection.exact import ball_minimum

__all__ = ["Problem", "quadratic_scores", "score_grid"]


class Problem:
    """Scores of models for given moments and radius (stored units)."""

    def __init__(self, moments: Moments, rho: Fraction) -> None:
        self.rho = rho
        self.grid = score_grid(rho)
        self.gram = [row[:-1] for row in moments.cells[:-1]]
        self.cross = [row[-1] for row in moments.cells[:-1]]

    def scores(self, columns: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return q(M) for each row of `columns`, K x (p + 1)."""
        return np.array(
            [self.score_one(np.flatnonzero(row).tolist()) for row in columns], dtype=np.int64
        )

    def score_one(self, columns: Sequence[int], beta: NDArray[np.float64] | None = None) -> int:
        """Return q(M) of one model; `beta`, any candidate, changes the time taken, never q."""
        gram = [[self.gram[i][j] for j in columns] for i in columns]
        minimum = ball_minimum(gram, [self.cross[i] for i in columns], self.rho)
        return (minimum.value / (self.grid * 2**MOMENT_BITS)).__floor__()


def quadratic_scores(
    moments: Moments, columns: NDArray[np.bool_], rho: Fraction
) -> NDArray[np.int64]:
    """Return q(M) for each row of `columns`, K x (p + 1)."""
    return Problem(moments, rho).scores(columns)
