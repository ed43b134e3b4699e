"""A fit with a wide factor: coefficients whose covariance has a few causes and parts of their own.

Tested in `tests/estimation/test_levels.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats, Places

__all__ = ["Back", "LevelsFit", "Spread"]

_ROWS_AT_ONCE: Final = 256  # work


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

    def added_to(self, whole: Floats) -> None:
        """Add the (d, d) covariance to a matrix."""
        for start in range(0, len(whole), _ROWS_AT_ONCE):  # a second matrix would be as large
            rows = slice(start, start + _ROWS_AT_ONCE)
            whole[rows] += (self.forms[rows] @ self.inner) @ self.forms.T
        whole[np.diag_indices(len(whole))] += self.own

    def mapped(self, factors: Floats, first: Floats) -> Spread:
        """Return the covariance of T beta, T diagonal except in its first row."""
        forms = self.forms * factors[:, None]
        forms[0] = first @ self.forms
        return Spread(forms, self.inner, self.own * factors**2)


@dataclass(frozen=True, slots=True, eq=False)
class LevelsFit:
    """Coefficients with their uncertainty; d columns, in the units of the release or the user's.

    Parameters
    ----------
    beta : (d,) array
    sampling, privacy : Spread
        What sampling and what the noise alone would give.
    sigma2, rsquared, nobs, df_resid, ridged, ridge
        As in `dpreg.estimation.inference.GramFit`; ridged where a level's count was raised, too.
    draws : (B, d) array
        Intervals of r'beta come from draws @ r, see `dpreg.estimation.drawn`.
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
    draws: Floats

    @property
    def cov(self) -> Floats:
        """Covariance, (d, d), to be read only; made anew each time."""
        whole = np.zeros((len(self.beta), len(self.beta)))
        self.sampling.added_to(whole)
        self.privacy.added_to(whole)
        whole.setflags(write=False)
        return whole

    @property
    def errors(self) -> tuple[Floats, Floats]:
        """Standard errors that sampling and that the noise alone would give."""
        return np.sqrt(self.sampling.variances), np.sqrt(self.privacy.variances)

    @property
    def interval_method(self) -> str:
        """How intervals are made."""
        return "bootstrap"

    def in_user_units(
        self, factors: Floats, first: Floats, shift: Floats, *, response_width: float
    ) -> LevelsFit:
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
        beta, draws = self.beta * factors, self.draws * factors
        beta[0], draws[:, 0] = first @ self.beta, self.draws @ first
        return replace(
            self,
            beta=beta + shift,
            sampling=self.sampling.mapped(factors, first),
            privacy=self.privacy.mapped(factors, first),
            sigma2=self.sigma2 * response_width**2,
            draws=draws + shift,
        )


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
        size, k = len(self.levels) + len(self.others) + (self.rest is not None), len(gamma)
        forms, single = np.zeros((size, k + 1)), np.zeros(size)
        forms[self.others, :k] = np.eye(k)
        forms[self.levels, :k] = slope
        single[self.levels] = own
        inner = np.zeros((k + 1, k + 1))
        inner[:k, :k] = gamma
        if self.rest is None:
            return Spread(forms, inner, single)
        inner[k, k] = single[self.rest]
        forms[0] = forms[self.rest]
        forms[self.levels] -= forms[0]
        forms[0, k] = 1.0
        forms[self.levels, k] = -1.0
        return Spread(forms[: self.rest], inner, single[: self.rest])
