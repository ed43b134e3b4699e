"""Released coefficients with their uncertainty, under the names that statsmodels uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpreg.errors import ArgumentError, NotReleased
from dpreg.results import designs, given_choice, inference, marks
from dpreg.results.base import ERRORS_AS
from dpreg.results.codecs import plain_mapping
from dpreg.results.constraints import Constraints, linear_constraints
from dpreg.results.contrast import Combinations, Contrast, Prediction
from dpreg.results.named import StatsmodelsNames
from dpreg.results.truncated import Truncated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INTERVAL_METHODS", "RegressionResults"]

Vector = NDArray[np.float64]

INTERVAL_METHODS: Final = ("noise-aware", "bootstrap")
_WHY: Final = 'method="{}" does not release it'
_ARRAYS: Final = {
    "coefficients": 1,
    "covariance": 2,
    "privacy_covariance": 2,
    "sampling_errors": 1,
    "privacy_errors": 1,
    "interval_draws": 2,
    "column_widths": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RegressionResults(StatsmodelsNames):
    """Coefficients of a linear model, released with differential privacy.

    Parameters
    ----------
    formula : str
        The formula that was fitted.
    schema : mapping
        The public facts about columns, as `Schema.to_dict()` writes them; bought bounds too.
    endog_names : str
        The response.
    exog_names : tuple of str
        The p columns of the model, "Intercept" first where there is one.
    coefficients : (p,) array
        In the user's units.
    covariance : (p, p) array
        Of the coefficients: sampling error and privacy noise together.
    sampling_errors, privacy_errors : (p,) arrays
        What each source alone would give; after looks the first also holds what cutting may move.
    error_variance, explained, error_df : float or None
        Read them as `scale` (in squared units of the response), `rsquared` and `df_resid`.
    nobs : int or None
        Rows, where their number is public (replace-one, without `person`); else None.
    complete_rows : float or None
        The released, noisy count of complete rows.
    method, noise, scaling : str
        How it was fitted (see `dpreg.dp_ols`), its noise, and the scaling of rows.
    fit : {"fixed", "split", "share", "same", "fresh"}
        Given; or selected on other rows, on the same, in the same release, or from an earlier look.
    eps, delta : Fraction
        As typed in the call: the most that it may cost. `spent` is what it did cost.
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
        For "bootstrap": the law of r'beta is that of `interval_draws @ r`.
    column_widths : (p,) array or None
        Half the declared range of each column; a coefficient times it has the response's units.
    privacy_covariance : (p, p) array or None
        The part of `covariance` that the noise adds.
    noise_degrees : int or None
        nu where noise is not normal: errors are N(0, sampling + privacy V), V ~ chi2_(2 nu)/(2 nu).
    looks : tuple of Look
        What looks at moments released, one by one: those of dpreg 0.2, or of a selection.
    releases : tuple of ReleasedLook
        "adaptive": what each look released.
    weak : mapping
        Column to why its coefficient is weakly determined; see `marks`.
    among : int or None
        For ``fit="same"``: the number of columns that these were chosen from. Coefficients are
        those beside all of them, and `pvalues` and `conf_int` allow for as many.
    conditional : tuple of Truncated
        In files of dpreg 0.2: each coefficient's law given the choice, for `params`, `pvalues` and
        `conf_int`.
    passes : int
        How often the rows were read; a count of them alone is not a pass.
    notes : tuple of str
        Public remarks, printed under the summary.
    record : ReleaseRecord or None
        When and by what it was released, and where it stands in its ledger.
    design_formula : str or None
        The formula whose coding the columns have: the full one after selection, or `formula`.
    """

    kind = "regression"
    saved_as: ClassVar[Mapping[str, str]] = {
        **ERRORS_AS,
        "error_variance": "residual_variance",
        "explained": "r_squared",
        "error_df": "residual_df",
    }

    endog_names: str
    exog_names: tuple[str, ...]
    coefficients: Vector
    covariance: Vector
    sampling_errors: Vector
    privacy_errors: Vector
    error_variance: float | None
    explained: float | None
    error_df: float | None
    noise: str
    scaling: str
    fit: str
    ridged: bool = False
    ridge: float | None = None
    interval_method: str = "noise-aware"
    interval_draws: Vector | None = None
    complete_rows: float | None = None
    column_widths: Vector | None = None
    privacy_covariance: Vector | None = None
    noise_degrees: int | None = None
    weak: Mapping[str, str] = field(default_factory=dict)
    conditional: tuple[Truncated, ...] = ()
    design_formula: str | None = None
    among: int | None = None

    def __post_init__(self) -> None:
        """Make the fields plain, immutable values and check that they fit together."""
        self._settle(("exog_names", "conditional"))
        put = partial(object.__setattr__, self)
        put("weak", plain_mapping(self.weak))
        for name, ndim in _ARRAYS.items():
            if (array := getattr(self, name)) is not None:
                put(name, inference.read_only(array, ndim, name))
        self._check()

    def _check(self) -> None:
        p = len(self.exog_names)
        for name in _ARRAYS:
            if (array := getattr(self, name)) is not None and array.shape[-1] != p:
                raise ArgumentError(f"{name} does not match the {p} names in exog_names")
        if self.covariance.shape != (p, p):
            raise ArgumentError(f"covariance must be {p} x {p}")
        if self.conditional and len(self.conditional) != p:
            raise ArgumentError(f"conditional does not match the {p} names in exog_names")
        if not set(self.weak) <= set(self.exog_names):
            raise ArgumentError("weak names columns that are not in exog_names")
        if self.among is not None and self.among < 1:
            raise ArgumentError("among must be at least 1")
        if self.noise_degrees is not None and self.privacy_covariance is None:
            raise ArgumentError("noise_degrees needs privacy_covariance")
        if self.interval_method not in INTERVAL_METHODS:
            raise ArgumentError(f"interval_method must be one of {INTERVAL_METHODS}")
        if (self.interval_draws is None) != (self.interval_method == "noise-aware"):
            raise ArgumentError('interval_draws belong only to interval_method="bootstrap"')

    @property
    def params(self) -> pd.Series:
        """The coefficients, in the user's units; NaN where the law given a choice has no median."""
        if self.conditional:
            return self._series(given_choice.centers(self.conditional))
        return self._series(self.coefficients)

    @property
    def bse(self) -> pd.Series:
        """Standard errors: sampling error and privacy noise together."""
        return self._series(inference.root(np.diag(self.covariance)))

    @property
    def bse_sampling(self) -> pd.Series:
        """Standard errors that sampling alone would give; see `sampling_errors`."""
        return self._series(self.sampling_errors)

    @property
    def bse_privacy(self) -> pd.Series:
        """Standard errors that the privacy noise alone would give."""
        return self._series(self.privacy_errors)

    @property
    def marks(self) -> pd.Series:
        """What the release shows of each coefficient, where `method` is "adaptive".

        "above noise", where it shows enough of it; "wide", where much of the interval is a guess at
        what the release does not show, so that the fit without privacy may differ by more; "too few
        rows to say", where the noise hides it and there is no interval.
        """
        if self.method != "adaptive":
            raise NotReleased(f'marks belongs to method="adaptive"; this was "{self.method}".')
        found = [marks.mark(self.weak.get(name)) for name in self.exog_names]
        return self.claim.marked_series(pd.Series(found, list(self.exog_names), dtype=object))

    @property
    def tvalues(self) -> pd.Series:
        """Coefficient over standard error; statsmodels' name for z as well."""
        return self._series(inference.z_values(self.params.to_numpy(), self.bse.to_numpy()))

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values, by the law of `conf_int`."""
        if self.conditional:
            return self._series(given_choice.pvalues(self.conditional))
        each = self.combinations(np.eye(len(self.exog_names)))
        alone = each.pvalues(np.zeros(len(self.exog_names)))
        return self._series(np.minimum(alone * (self.among or 1), 1.0))

    @property
    def rsquared(self) -> float:
        """R-squared, computed from the released matrix."""
        return _released(self.explained, "rsquared", _WHY.format(self.method))

    @property
    def scale(self) -> float:
        """The residual variance, in squared units of the response."""
        return _released(self.error_variance, "scale", _WHY.format(self.method))

    @property
    def df_model(self) -> float:
        """The number of columns less the intercept."""
        return float(len(self.exog_names) - ("Intercept" in self.exog_names))

    @property
    def df_resid(self) -> float:
        """The number of rows less the columns, where the number of rows is public."""
        return _released(self.error_df, "df_resid", "the number of rows is private")

    def conf_int(self, alpha: float = 0.05, cols: ArrayLike | None = None) -> pd.DataFrame:
        """Return intervals of level 1 - alpha, columns 0 and 1, by the law of `pvalues`.

        A coefficient lies in its interval, and 0 lies outside exactly where the p-value is below
        alpha. `cols` are the places of the coefficients that are wanted; default all. Where the
        terms were chosen from the same look, alpha is shared among all columns on offer: then about
        a share alpha of the intervals of chosen ones miss, at most, whatever was chosen.
        """
        laws, each = self.conditional, self.combinations(np.eye(len(self.exog_names)))
        level = inference.level(alpha) / (self.among or 1)
        limits = given_choice.intervals(laws, alpha) if laws else each.intervals(level)
        table = self.claim.marked(pd.DataFrame(limits, index=list(self.exog_names)))
        return table if cols is None else table.iloc[inference.places(cols, len(table))]

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients, sampling and privacy noise together."""
        given_choice.refuse(self, "cov_params")
        names = list(self.exog_names)
        return self.claim.marked(pd.DataFrame(self.covariance, names, names, copy=True))

    def t_test(self, r_matrix: Constraints) -> Contrast:
        """Test linear constraints on the coefficients, against the law of their errors.

        Parameters
        ----------
        r_matrix : str, list of str, array, or tuple (R, q)
            "bsqft - lat = 0", several between commas, or rows of R with R beta = q.
        """
        given_choice.refuse(self, "t_test")
        rows, target = linear_constraints(r_matrix, self.exog_names)
        return Contrast(self.combinations(rows), target, self.claim)

    def combinations(self, rows: Vector) -> Combinations:
        """Return combinations r'beta for the rows r of an (m, p) array, with their law."""
        return Combinations(
            rows,
            self.coefficients,
            self.covariance,
            self.interval_draws,
            self.privacy_covariance,
            self.noise_degrees,
        )

    def predict(self, exog: pd.DataFrame | None = None) -> pd.Series:
        """Return predicted means for the rows of a table: its index kept, NaN where a row has one.

        Parameters
        ----------
        exog : DataFrame
            A table of the analyst's own, with the raw columns of the formula.
        """
        given_choice.refuse_means(self)
        rows = designs.design_rows(self, exog)
        mean = inference.combined(rows.to_numpy(dtype=np.float64), self.coefficients)
        return self.claim.marked_series(pd.Series(mean, index=rows.index))

    def get_prediction(self, exog: pd.DataFrame | None = None) -> Prediction:
        """Return predicted means with standard errors; see `Prediction.summary_frame`."""
        given_choice.refuse(self, "get_prediction")
        rows, variance = designs.design_rows(self, exog), self.error_variance
        combinations = self.combinations(rows.to_numpy(dtype=np.float64))
        scale = float("nan") if variance is None else variance
        return Prediction(combinations, rows.index, scale, self.claim)

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the coefficients with their intervals; see `dpreg.results.plots.coefficients`."""
        from dpreg.results import plots

        return plots.coefficients(self, ax, alpha)

    @property
    def _subject(self) -> str:
        return self.formula

    def _series(self, values: Vector) -> pd.Series:
        return self.claim.marked_series(pd.Series(values, list(self.exog_names), copy=True))

    def _renamed(self, yname: str | None, xname: Sequence[str] | None) -> Self:
        if xname is None and yname is None:
            return self
        names = self.exog_names if xname is None else tuple(xname)
        if len(names) != len(self.exog_names):
            raise ArgumentError(f"xname must hold {len(self.exog_names)} names, got {len(names)}.")
        new = dict(zip(self.exog_names, names, strict=True))
        weak = {new[name]: why for name, why in self.weak.items()}
        return replace(self, endog_names=yname or self.endog_names, exog_names=names, weak=weak)


def _released(value: float | None, name: str, reason: str) -> float:
    if value is not None:
        return value
    raise NotReleased(f"{name} is not released: {reason}.")
