"""Released coefficients of a generalised linear model, under the names that statsmodels uses.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.looks.families import exp, family_of
from dpreg.request import choice
from dpreg.results.base import withholding
from dpreg.results.contrast import Contrast
from dpreg.results.regression import RegressionResults

LINKS: Final = ("logit", "log")

WHICH: Final = ("mean", "linear")
_FARTHEST: Final = 700.0
"""As far out the exponential is computed."""


def inverse_link(link: str, eta: Floats) -> tuple[Floats, Floats]:
    """Return the mean at a linear predictor, and its derivative.

    By an exponential that has the same bits anywhere: R, too, predicts these very numbers.
    """
    if link == "log":
        mean = _exp(eta)
        return mean, mean
    with np.errstate(over="ignore"):
        mean = np.asarray(1 / (1 + _exp(-eta)), dtype=np.float64)
    return mean, mean * (1 - mean)


def _exp(x: Floats) -> Floats:
    """Return exp of any number: above 700 it is infinite, and below -700 as at -700."""
    known = exp(np.clip(np.where(np.isnan(x), 0.0, x), -_FARTHEST, _FARTHEST))
    return np.where(np.isnan(x), np.nan, np.where(x > _FARTHEST, np.inf, known))


@withholding
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GLMResults(RegressionResults):
    """Coefficients of a generalised linear model, released with differential privacy.

    What `RegressionResults` has holds here too, except for what belongs to linear models. Where no
    intervals are earned standard errors are NaN, and a note says why and what would be needed.

    Parameters
    ----------
    family : {"binomial", "poisson", "quasipoisson"}
    link : {"logit", "log"}
    converged : bool
        Whether the last look asked for a small step only.
    offset : str or None
        The column of the design whose coefficient is 1, as the formula of the design writes it.
    success : str or None
        Of a response with two declared levels: which of them counts as 1.
    trials : str or None
        Of a number of successes: the term with the number of trials. Predictions are of a
        probability.
    error_variance : float
        The dispersion phi; read it as `scale`: 1 for "binomial" and "poisson". Standard errors
        allow for another one.
    looks : tuple of Look
        The first is of rows (1, x, y) on the unit scale. A later one has the information in its
        `cells`, the score in their last row and column, and the sum of squared scores in the end;
        its `radius` is the square root of the limit of a row's information, its `width` the limit
        of a row's score, and `center` the fit that it was at. All are as released. Scores of
        counts are of residuals with caps of their own in each row, mended for what these take off.
    """

    kind: ClassVar[str] = "glm"
    title = "{0.family} regression: {0.endog_names}"

    _why_not: ClassVar = {**RegressionResults._why_not, "explained": "it belongs to linear models"}

    family: str
    link: str
    converged: bool
    offset: str | None = None
    success: str | None = None
    trials: str | None = None

    def _faults(self) -> Iterator[tuple[bool, str]]:
        yield from RegressionResults._faults(self)
        yield self.link not in LINKS, f"link must be one of {LINKS}"

    def predict(self, exog: pd.DataFrame | None = None, which: str = "mean") -> pd.Series:
        """Return predictions for the rows of a table: its index kept, NaN where a row has one.

        Parameters
        ----------
        exog : DataFrame
            A table of the analyst's own, with the raw columns of the formula and the offset.
        which : {"mean", "linear"}
            The mean, or the linear predictor.
        """
        return self._predicted(exog, choice(which, "which", WHICH))

    def get_prediction(  # type: ignore[override]
        self, exog: pd.DataFrame | None = None, which: str = "mean"
    ) -> GLMPrediction:
        """Return predictions with standard errors; see `GLMPrediction.summary_frame`."""
        self._together("get_prediction")
        return GLMPrediction(*self._linear(exog), choice(which, "which", WHICH))

    def ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return exp of the coefficients with intervals: odds ratios, or ratios of rates."""
        table = np.column_stack([self.params.to_numpy(), self.conf_int(alpha).to_numpy()])
        with np.errstate(over="ignore"):
            return self._frame(np.exp(table), [family_of(self.family, 1.0).ratio, 0, 1])

    def _linear(self, exog: pd.DataFrame | None) -> tuple[Contrast, pd.Index]:
        linear, index = RegressionResults._linear(self, exog)
        if self.offset is not None:
            known = self._rows(exog, (self.offset,)).to_numpy(dtype=np.float64)[:, 0]
            linear = replace(linear, known=known)
        return linear, index

    def _mean(self, eta: Floats, which: str = "mean") -> tuple[Floats, Floats]:
        if which == "mean":
            return inverse_link(self.link, eta)
        return RegressionResults._mean(self, eta)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GLMPrediction:
    """Predictions for the rows of a new table, with standard errors.

    Intervals of a mean are those of the linear predictor, taken through the link.

    Attributes
    ----------
    linear : Contrast
        A row for each row of the table; NaN where it lacks a value.
    index : pandas.Index
        Of the table.
    which : {"mean", "linear"}
    """

    linear: Contrast
    index: pd.Index
    which: str

    @property
    def predicted(self) -> Floats:
        """Means, or linear predictors (m,)."""
        return self.linear.fit._mean(self.linear.effect, self.which)[0]

    @property
    def se(self) -> Floats:
        """Standard errors (m,): of means by the delta method."""
        _, slope = self.linear.fit._mean(self.linear.effect, self.which)
        return self.linear.sd * np.abs(slope)

    def conf_int(self, alpha: float = 0.05) -> Floats:
        """Return intervals (m, 2)."""
        return self.linear.fit._mean(self.linear.conf_int(alpha), self.which)[0]

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return predictions, standard errors and limits, indexed as the table."""
        name, ends = ("mean", "mean_ci") if self.which == "mean" else ("linpred", "ci")
        heads = [name, f"{name}_se", f"{ends}_lower", f"{ends}_upper"]
        table = np.column_stack([self.predicted, self.se, self.conf_int(alpha)])
        return self.linear.fit.claim.marked(pd.DataFrame(table, self.index, heads))

    def __repr__(self) -> str:
        """Name what it is; the rows of the table and what is predicted for them stay out."""
        return self.linear.fit.claim.titled("Prediction: see summary_frame()")
