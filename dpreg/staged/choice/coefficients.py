r"""The chosen model's coefficients, from the released law they were chosen by.

For columns J (keep and the chosen units) generalised least squares on g = K beta + N(0, W) gives

    b = V K_J' W^-1 g,    V = (K_J' W^-1 K_J)^-1.

Moving g along K_J V e_j / V_jj moves b_j by one unit and leaves alone whatever is independent of
it: that is the line along which a choice can be re-run for every value that b_j might have had.

Tested in `tests/staged/choice/test_conditional.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dpreg.arrays import Floats
from dpreg.staged.choice.problem import Model, Problem, ReleasedLaw, factor

__all__ = ["ModelFit", "fit_model"]


@dataclass(frozen=True, slots=True, eq=False)
class ModelFit:
    """Coefficients of a model as if it had been given.

    Attributes
    ----------
    columns : tuple of int
        The law's columns, ascending: (c,).
    estimates : (c,) array
        In box units, or as `mapped` says.
    covariance : (c, c) array
    lines : (m, c) array
        Column j moves the law's g so that `estimates[j]` grows by 1 and all that is independent of
        it stays.
    """

    columns: tuple[int, ...]
    estimates: Floats
    covariance: Floats
    lines: Floats

    @property
    def se(self) -> Floats:
        """Standard errors, (c,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def mapped(self, transform: Floats, shift: Floats) -> ModelFit:
        """Return the fit of T b + t, in other units: (c, c) and (c,) arrays.

        Coefficient j is then r'b with r the j-th row of T; moving g along K V r / (r'V r) moves it
        by 1 and leaves alone what is independent of it.
        """
        covariance = transform @ self.covariance @ transform.T
        moved = (self.lines * np.diag(self.covariance)) @ transform.T
        return ModelFit(
            columns=self.columns,
            estimates=transform @ self.estimates + shift,
            covariance=covariance,
            lines=moved / np.diag(covariance),
        )


def fit_model(law: ReleasedLaw, problem: Problem, model: Model) -> ModelFit:
    """Fit a model to a released law.

    Parameters
    ----------
    law : ReleasedLaw
    problem : Problem
        Made of that law.
    model : set of units
    """
    space = problem.space
    columns = sorted({*space.keep_columns, *(c for u in model for c in space.unit_columns[u])})
    scale = np.sqrt(np.maximum(np.diag(law.covariance), np.finfo(float).tiny))
    lower = factor(law.covariance / np.outer(scale, scale))
    k = law.k[:, columns]
    whitened = solve_triangular(lower, k / scale[:, None], lower=True)
    target = solve_triangular(lower, law.g / scale, lower=True)
    # Columns of length 1, and no normal equations: K is near-singular where directions are weak.
    length = np.linalg.norm(whitened, axis=0)
    length[length == 0] = 1.0
    left, singular, right = np.linalg.svd(whitened / length, full_matrices=False)
    singular = np.maximum(singular, 1e-7)
    root = (right.T / singular) / length[:, None]
    covariance = root @ root.T
    return ModelFit(
        columns=tuple(columns),
        estimates=root @ (left.T @ target),
        covariance=covariance,
        lines=k @ covariance / np.diag(covariance),
    )
