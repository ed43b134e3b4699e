"""What a study computes: the law of the drawn model under each setting, and what follows from it.

Everything here is exact, or estimated by repeated draws, from raw rows: **curator only**. A law
is a table of models and probabilities; frequencies, agreement and expected R-squared are all means
of a function of the model under it.

Tested in `tests/study/test_selection.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpreg.arrays import Bools, Floats, Ints

__all__ = ["Law", "Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of the arguments that a study varies.

    Attributes
    ----------
    eps, radius : Fraction
    penalty : Fraction or str
        As the caller gave it.
    mechanism : str
    phi, psi : Fraction
        What it came to: the charge per column and per unit, in squared units of the scaled
        response.
    """

    eps: Fraction
    radius: Fraction
    penalty: Fraction | str
    mechanism: str
    phi: Fraction
    psi: Fraction

    @property
    def key(self) -> tuple[float, float, float | str, str]:
        """The setting as an entry of an index."""
        penalty = self.penalty if isinstance(self.penalty, str) else float(self.penalty)
        return float(self.eps), float(self.radius), penalty, self.mechanism


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of models under each of S settings.

    Attributes
    ----------
    models : bool array, shape (K, q)
        Every model of the space, or, for drawn laws, each model that was drawn or is a reference.
    probabilities : float64 array, shape (K, S)
        Columns sum to 1: exact probabilities, or shares of draws.
    rsquared : float64 array, shape (K, S)
        R-squared of each model's constrained fit at the setting's radius.
    chosen : int array, shape (S,)
        The model with the lowest score without noise.
    bic : int
        The model that BIC least squares chooses.
    bic_rsquared : float
        R-squared of its unconstrained fit.
    draws : int or None
        How many draws stand behind the shares; None where probabilities are exact.
    """

    models: Bools
    probabilities: Floats
    rsquared: Floats
    chosen: Ints
    bic: int
    bic_rsquared: float
    draws: int | None

    def mean(self, values: Floats) -> Floats:
        """Return the mean, under each setting, of functions of the model.

        Parameters
        ----------
        values : (K, m), or (K, m, S) where the functions differ between settings

        Returns
        -------
        float64 array, shape (m, S)
        """
        if values.ndim == 2:
            return np.asarray(values.T @ self.probabilities)
        return np.asarray(np.einsum("kms,ks->ms", values, self.probabilities))

    def error(self, values: Floats) -> Floats:
        """Return the standard error of `mean`: zero where probabilities are exact."""
        mean = self.mean(values)
        if self.draws is None:
            return np.zeros_like(mean)
        spread = np.maximum(self.mean(values**2) - mean**2, 0.0)
        return np.asarray(np.sqrt(spread / self.draws))

    @property
    def agreement(self) -> Floats:
        """Indicators, (K, 2, S): is it the choice of the score without noise; is it BIC's."""
        out = np.zeros((len(self.models), 2, len(self.chosen)))
        out[self.chosen, 0, np.arange(len(self.chosen))] = 1.0
        out[self.bic, 1] = 1.0
        return out
