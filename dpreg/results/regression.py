"""Released coefficients with their uncertainty, under the names that statsmodels uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.results.base import Released
from dpreg.results.claim import PrivacyClaim
from dpreg.results.design import Design

__all__ = ["INTERVAL_METHODS", "RegressionResults"]

Vector = NDArray[np.float64]

INTERVAL_METHODS: Final = ("noise-aware", "bootstrap")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RegressionResults(Released):
    """Coefficients of a linear model, released with differential privacy.

    Parameters
    ----------
    formula : str
        The formula that was fitted.
    schema : mapping
        The public facts about columns, as `Schema.to_dict()` writes them; bounds that were
        estimated privately are in it.
    endog_names : str
        The response.
    exog_names : tuple of str
        The p columns of the model, "Intercept" first where there is one.
    coefficients : (p,) array
        In the user's units.
    covariance : (p, p) array
        Of the coefficients: sampling error and privacy noise together.
    se_sampling, se_privacy : (p,) arrays
        What each source alone would give as standard error.
    scale : float or None
        The residual variance, in squared units of the response.
    rsquared : float or None
        Computed from the released matrix.
    nobs : int or None
        Rows, where they are public (replace-one); None under add-remove.
    residual_df : float or None
        n less the columns, where n is public; None under add-remove.
    method, noise, scaling : str
        How it was fitted ("gram", "ssp", "adassp"), its noise, and the scaling of rows.
    fit : {"fixed", "split", "share"}
        "fixed": the formula was given. "split": selected on other rows. "share": selected on the
        same rows.
    eps, delta : Fraction
        As typed in the call.
    clip : Fraction
        The response is clipped after scaling to [-clip, clip].
    center : bool
        Whether columns were centred at the middle of their bounds.
    bounds : mapping
        Column to "schema" or "private": where its bounds come from.
    claim : PrivacyClaim
    ridged : bool
        Whether the public ridge rule fired; `ridge` is what was added, in stored units.
    interval_method : {"noise-aware", "bootstrap"}
    interval_draws : (B, p) array or None
        For "bootstrap": draws such that the interval of any combination r'beta runs between the
        quantiles of `interval_draws @ r`. Released post-processing.
    column_widths : (p,) array or None
        Half the declared range of each column, so that a coefficient times its width is in units
        of the response; plots use it.
    notes : tuple of str
        Public remarks, printed under the summary.
    design_formula : str or None
        The formula whose coding the columns have (the full one after selection); None: `formula`.
    design : Design or None
        For `predict`; never saved. Rebuilt from formula and schema where absent.
    """

    kind = "regression"

    formula: str
    schema: Mapping[str, Any]
    endog_names: str
    exog_names: tuple[str, ...]
    coefficients: Vector
    covariance: Vector
    se_sampling: Vector
    se_privacy: Vector
    scale: float | None
    rsquared: float | None
    nobs: int | None
    residual_df: float | None
    method: str
    noise: str
    scaling: str
    fit: str
    eps: Fraction
    delta: Fraction
    clip: Fraction
    center: bool
    bounds: Mapping[str, str]
    claim: PrivacyClaim
    ridged: bool = False
    ridge: float | None = None
    interval_method: str = "noise-aware"
    interval_draws: Vector | None = None
    column_widths: Vector | None = None
    notes: tuple[str, ...] = ()
    design_formula: str | None = None
    design: Design | None = None
