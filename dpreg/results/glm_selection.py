"""A released selection among the terms of a generalised linear model.

Tested in `tests/api/test_select_family.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import pandas as pd

from dpreg.results.glm import GLMPrediction, GLMResults
from dpreg.results.selection import SelectionResults

__all__ = ["GLMSelectionResults"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GLMSelectionResults(SelectionResults):
    """Terms of a generalised linear model, selected with differential privacy.

    What `SelectionResults` has for "adaptive" holds here too.

    Parameters
    ----------
    family : {"binomial", "poisson", "quasipoisson"}
    link : {"logit", "log"}
    converged : bool
        Whether the last look that chose asked for a small step only.
    offset, trials : str or None
        The terms of known slope, and of the number of trials, as `GLMResults` names them: they are
        in every model.
    regression : GLMResults or None
        The coefficients of `best`; None with `fit=None`.
    """

    kind: ClassVar[str] = "glm-selection"

    family: str
    link: str
    converged: bool
    offset: str | None = None
    trials: str | None = None
    regression: GLMResults | None = None

    def predict(self, exog: pd.DataFrame | None = None, which: str = "mean") -> pd.Series:
        """Return predicted means or linear predictors; see `GLMResults.predict`."""
        return self._family_fit("predict").predict(exog, which)

    def get_prediction(  # type: ignore[override]
        self, exog: pd.DataFrame | None = None, which: str = "mean"
    ) -> GLMPrediction:
        """Return predictions with standard errors; see `GLMResults.get_prediction`."""
        return self._family_fit("get_prediction").get_prediction(exog, which)

    def ratios(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return exp of the coefficients with intervals: odds ratios, or ratios of rates."""
        return self._family_fit("ratios").ratios(alpha)

    def _family_fit(self, name: str) -> GLMResults:
        return cast(GLMResults, self._fitted(name))
