"""Linear combinations of released coefficients: tests of constraints, and predictions.

Both are rows r'beta with an interval; the names are those of statsmodels' `ContrastResults` and
`PredictionResults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.estimation import inference as drawn
from dpreg.results import inference, reference
from dpreg.results.claim import PrivacyClaim

if TYPE_CHECKING:
    from dpreg.results.summary import Summary

__all__ = ["Combinations", "Contrast", "Prediction"]


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """m combinations r'beta of p coefficients, with all that their intervals need.

    Attributes
    ----------
    rows : (m, p) array
    params : (p,) array
    covariance : (p, p) array
    draws : (B, p) array or None
        Bootstrap draws; where there are some, intervals and p-values follow
        `dpreg.estimation.inference`.
    privacy : (p, p) array or None
        The part of `covariance` that the noise adds.
    degrees : int or None
        Of matrix-Laplace noise: errors then have the law of `dpreg.results.reference`, and not the
        normal one.
    """

    rows: Floats
    params: Floats
    covariance: Floats
    draws: Floats | None = None
    privacy: Floats | None = None
    degrees: int | None = None

    def estimates(self) -> Floats:
        """Return r'beta (m,)."""
        return inference.combined(self.rows, self.params)

    def errors(self) -> Floats:
        """Return standard errors (m,)."""
        return inference.combined_errors(self.covariance, self.rows)

    @np.errstate(over="ignore", invalid="ignore")
    def intervals(self, alpha: float) -> Floats:
        """Return intervals (m, 2) of level 1 - alpha."""
        if self.draws is not None:
            return inference.drawn_intervals(self.estimates(), self.draws, self.rows, alpha)
        if self.degrees is not None:
            estimates = self.estimates()
            half = reference.quantiles(*self._parts(), self.degrees, inference.level(alpha))
            return np.column_stack([estimates - half, estimates + half])
        return inference.normal_intervals(self.estimates(), self.errors(), alpha)

    @np.errstate(over="ignore", invalid="ignore")
    def pvalues(self, target: Floats) -> Floats:
        """Return two-sided p-values (m,) of r'beta = target, from the law of `intervals`."""
        if self.draws is not None:
            return drawn.pvalues(self.estimates(), self.draws @ self.rows.T, target)
        if self.degrees is None:
            return inference.normal_pvalues(
                inference.z_values(self.estimates() - target, self.errors())
            )
        return reference.pvalues(self.estimates() - target, *self._parts(), self.degrees)

    @np.errstate(over="ignore", invalid="ignore")
    def _parts(self) -> tuple[Floats, Floats]:
        """Return the variances (m,) that sampling and the noise add."""
        assert self.privacy is not None
        noise = inference.variances(self.privacy, self.rows)
        return np.square(self.errors()) - noise, noise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contrast:
    """Tests of linear constraints R beta = q, against the law of the estimates' errors.

    Attributes
    ----------
    combinations : Combinations
    target : (m,) array
        q.
    claim : PrivacyClaim
    """

    combinations: Combinations
    target: Floats
    claim: PrivacyClaim
    distribution = "norm"

    @property
    def effect(self) -> Floats:
        """R beta (m,)."""
        return self.combinations.estimates()

    @property
    def sd(self) -> Floats:
        """Standard errors of R beta (m,)."""
        return self.combinations.errors()

    @property
    def statistic(self) -> Floats:
        """(R beta - q) over its standard error (m,)."""
        return inference.z_values(self.effect - self.target, self.sd)

    @property
    def tvalue(self) -> Floats:
        """The same as `statistic`; statsmodels has both names."""
        return self.statistic

    @property
    def pvalue(self) -> Floats:
        """Two-sided p-values (m,)."""
        return self.combinations.pvalues(self.target)

    def conf_int(self, alpha: float = 0.05) -> Floats:
        """Return intervals of R beta (m, 2)."""
        return self.combinations.intervals(alpha)

    def summary_frame(
        self, alpha: float = 0.05, *, xname: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return a table with a row for each constraint, columns as in statsmodels.

        Rows are named c0, c1, ..., or as `xname` says.
        """
        lower, upper = self.conf_int(alpha).T
        table = {
            "coef": self.effect,
            "std err": self.sd,
            "z": self.statistic,
            "P>|z|": self.pvalue,
            "Conf. Int. Low": lower,
            "Conf. Int. Upp.": upper,
        }
        names = list(xname) if xname else [f"c{i}" for i in range(len(self.target))]
        return self.claim.marked(pd.DataFrame(table, index=names))

    def summary(self, alpha: float = 0.05) -> Summary:
        """Return the printable table."""
        from dpreg.results import page
        from dpreg.results.summary import Summary

        return Summary(page.contrast(self, inference.level(alpha)))

    def __str__(self) -> str:
        return self.summary().as_text()

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prediction:
    """Predicted means for the rows of a new table, with standard errors.

    Attributes
    ----------
    combinations : Combinations
        A row for each row of the table; NaN where it lacks a value.
    index : pandas.Index
        Of the table.
    scale : float
        The residual variance; NaN where none was released.
    claim : PrivacyClaim
    """

    combinations: Combinations
    index: pd.Index
    scale: float
    claim: PrivacyClaim

    @property
    def predicted_mean(self) -> Floats:
        """Predicted means (m,)."""
        return self.combinations.estimates()

    @property
    def se_mean(self) -> Floats:
        """Standard errors of the means (m,): sampling error and privacy noise together."""
        return self.combinations.errors()

    @property
    def se_obs(self) -> Floats:
        """Standard errors for a new observation (m,)."""
        return inference.root(np.square(self.se_mean) + self.scale)

    def conf_int(self, obs: bool = False, alpha: float = 0.05) -> Floats:
        """Return intervals (m, 2) of the means, or with `obs` of new observations."""
        limits = self.combinations.intervals(alpha)
        if not obs:
            return limits
        return inference.observation_intervals(self.predicted_mean, limits, self.scale, alpha)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return means, standard errors and both intervals, indexed as the table."""
        mean, seen = self.conf_int(alpha=alpha), self.conf_int(obs=True, alpha=alpha)
        table = {
            "mean": self.predicted_mean,
            "mean_se": self.se_mean,
            "mean_ci_lower": mean[:, 0],
            "mean_ci_upper": mean[:, 1],
            "obs_ci_lower": seen[:, 0],
            "obs_ci_upper": seen[:, 1],
        }
        return self.claim.marked(pd.DataFrame(table, index=self.index))

    def __repr__(self) -> str:
        """Name what it is; the rows of the table and what is predicted for them stay out."""
        return self.claim.titled("Prediction of means: see summary_frame()")
