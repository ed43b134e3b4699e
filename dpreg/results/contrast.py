"""Linear combinations of released coefficients: tests of constraints, and predictions.

Both are rows r'beta with an interval; the names are those of statsmodels' `ContrastResults` and
`PredictionResults`. Constraints are arrays, or text such as "bsqft - lat = 0": patsy reads it, as
statsmodels has it do, by a parser of its own over the coefficients' names, which evaluates nothing
as Python.

Of joint tests the statistic is (R b - q)' [R V R']^+ (R b - q), V the covariance that `cov_params`
returns. For one constraint the p-value is that of `t_test`. For several it follows the same law:

- normal errors: chi-squared with the rank of R degrees of freedom;
- matrix-Laplace noise: all errors share one mixing variable W (`dpreg.results.inference`), and
  S + W P <= max(1, W) (S + P) for the sampling and privacy parts of V. So
  mean_i P(chi2 > statistic / max(1, W_i)) is at least the exact p-value;
- bootstrap draws: the share of draws at least as far from the estimate as q is, in the metric of
  the statistic, counting q itself as one more draw. It is never below 1 / (B + 1).

Tested in `tests/results/test_contrast.py` and `tests/test_statsmodels_names.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from patsy import DesignInfo, PatsyError
from scipy.special import chdtrc

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.estimation import inference as drawn
from dpreg.results import inference, tables
from dpreg.results.claim import PrivacyClaim
from dpreg.results.summary import Printed, Summary

if TYPE_CHECKING:
    from dpreg.results.regression import RegressionResults


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contrast(Printed):
    """Linear combinations R beta + c of a fit's p coefficients, tested against q.

    Where the fit has draws, intervals and p-values follow `dpreg.estimation.inference`; under
    matrix-Laplace noise errors have the law of `dpreg.results.inference`, and not the normal one.

    Attributes
    ----------
    rows : (m, p) array
        R.
    fit : RegressionResults
    target : (m,) array
        q.
    known : (m,) array
        c: offsets of predictors; 0 in tests of constraints.
    """

    rows: Floats
    fit: RegressionResults
    target: Floats
    known: Floats
    distribution = "norm"

    @property
    def effect(self) -> Floats:
        """R beta + c (m,)."""
        return self._linear() + self.known

    @property
    def sd(self) -> Floats:
        """Standard errors of R beta (m,)."""
        return inference.root(inference.variances(self.fit.covariance, self.rows))

    @property
    def statistic(self) -> Floats:
        """(R beta - q) over its standard error (m,)."""
        return inference.z_values(self.effect - self.target, self.sd)

    tvalue = statistic
    """The same as `statistic`; statsmodels has both names."""

    @property
    @np.errstate(over="ignore", invalid="ignore")
    def pvalue(self) -> Floats:
        """Two-sided p-values (m,), from the law of `conf_int`."""
        linear, target, draws = self._linear(), self.target - self.known, self.fit.interval_draws
        if draws is not None:
            return drawn.pvalues(linear, draws @ self.rows.T, target)
        return inference.pvalues(linear - target, *self._variances(), self.fit.noise_degrees)

    @np.errstate(over="ignore", invalid="ignore")
    def conf_int(self, alpha: float = 0.05) -> Floats:
        """Return intervals of R beta + c (m, 2), of level 1 - alpha."""
        level, linear, draws = inference.level(alpha), self._linear(), self.fit.interval_draws
        if draws is not None:
            limits = inference.drawn_intervals(linear, draws, self.rows, level)
        else:
            half = inference.quantiles(*self._variances(), self.fit.noise_degrees, level)
            limits = np.column_stack([linear - half, linear + half])
        return limits + self.known[:, None]

    def _linear(self) -> Floats:
        """Return R beta (m,)."""
        return inference.combined(self.rows, self.fit.coefficients)

    @np.errstate(over="ignore", invalid="ignore")
    def _variances(self) -> tuple[Floats, Floats]:
        """Return the variances (m,) that are normal and that are mixed."""
        whole, privacy = np.square(self.sd), self.fit.privacy_covariance
        if privacy is None or self.fit.noise_degrees is None:
            return whole, np.zeros(len(whole))
        noise = inference.variances(privacy, self.rows)
        return whole - noise, noise

    def summary_frame(
        self, alpha: float = 0.05, *, xname: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return a table with a row for each constraint, columns as in statsmodels.

        Rows are named c0, c1, ..., or as `xname` says.
        """
        heads = ["coef", "std err", "z", "P>|z|", "Conf. Int. Low", "Conf. Int. Upp."]
        parts = [self.effect, self.sd, self.statistic, self.pvalue, self.conf_int(alpha)]
        names = list(xname) if xname else [f"c{i}" for i in range(len(self.target))]
        return self.fit.claim.marked(pd.DataFrame(np.column_stack(parts), names, heads))

    def summary(self, alpha: float = 0.05) -> Summary:
        """Return the printable table."""
        table = tables.contrast(self, inference.level(alpha))
        return Summary("Test for constraints", self.fit.claim.stamp, (table,))

    __repr__ = Printed.__str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prediction:
    """Predicted means for the rows of a new table, with standard errors.

    Attributes
    ----------
    means : Contrast
        A row for each row of the table; NaN where it lacks a value.
    index : pandas.Index
        Of the table.
    """

    means: Contrast
    index: pd.Index

    @property
    def predicted_mean(self) -> Floats:
        """Predicted means (m,)."""
        return self.means.effect

    @property
    def se_mean(self) -> Floats:
        """Standard errors of the means (m,): sampling error and privacy noise together."""
        return self.means.sd

    @property
    def scale(self) -> float:
        """The residual variance; NaN where none was released."""
        variance = self.means.fit.error_variance
        return float("nan") if variance is None else variance

    @property
    def se_obs(self) -> Floats:
        """Standard errors for a new observation (m,)."""
        return inference.root(np.square(self.se_mean) + self.scale)

    def conf_int(self, obs: bool = False, alpha: float = 0.05) -> Floats:
        """Return intervals (m, 2) of the means, or with `obs` of new observations."""
        limits = self.means.conf_int(alpha)
        if not obs:
            return limits
        return inference.observation_intervals(self.predicted_mean, limits, self.scale, alpha)

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return means, standard errors and both intervals, indexed as the table."""
        ends = [self.conf_int(obs, alpha) for obs in (False, True)]
        limits = [f"{of}_ci_{end}" for of in ("mean", "obs") for end in ("lower", "upper")]
        heads = ["mean", "mean_se", *limits]
        table = np.column_stack([self.predicted_mean, self.se_mean, *ends])
        return self.means.fit.claim.marked(pd.DataFrame(table, self.index, heads))

    def __repr__(self) -> str:
        """Name what it is; the rows of the table and what is predicted for them stay out."""
        return self.means.fit.claim.titled("Prediction of means: see summary_frame()")


@dataclass(frozen=True, slots=True, repr=False)
class WaldTest:
    """A joint test of R beta = q.

    Attributes
    ----------
    statistic, pvalue : float
    df_constraints : int
        The rank of R.
    claim : PrivacyClaim
    """

    statistic: float
    pvalue: float
    df_constraints: int
    claim: PrivacyClaim
    distribution = "chi2"

    def __repr__(self) -> str:
        """Say statistic, p-value and degrees of freedom in a line."""
        return self.claim.titled(
            f"Wald test (chi2): statistic={self.statistic:.6g}, p-value={self.pvalue:.6g}, "
            f"df_constraints={self.df_constraints}"
        )


def _printed(table: pd.DataFrame) -> str:
    """Return a table as text, with the stamp beneath if there is one."""
    return "\n".join([table.to_string(), *table.attrs.values()])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class WaldTerms:
    """A joint test for each term of the formula: that all its coefficients are 0.

    Attributes
    ----------
    table : DataFrame
        A row for each term; statistic, pvalue, df_constraint.
    """

    table: pd.DataFrame
    distribution = "chi2"

    def summary_frame(self) -> pd.DataFrame:
        """Return the table with statsmodels' headings."""
        return self.table.set_axis(["chi2", "P>chi2", "df constraint"], axis=1)

    def __repr__(self) -> str:
        return _printed(self.summary_frame())


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PairwiseTests:
    """Differences between the levels of a factor, with p-values corrected for their number.

    Attributes
    ----------
    contrast : Contrast
        The uncorrected tests.
    contrast_labels : tuple of str
        "b-a" is the coefficient of level b less that of level a.
    result_frame : DataFrame
        As `Contrast.summary_frame`, with the columns pvalue-METHOD and reject-METHOD.
    """

    contrast: Contrast
    contrast_labels: tuple[str, ...]
    result_frame: pd.DataFrame

    def summary_frame(self) -> pd.DataFrame:
        """Return `result_frame`."""
        return self.result_frame

    def __repr__(self) -> str:
        return _printed(self.result_frame)


def wald(contrast: Contrast) -> WaldTest:
    """Test all constraints jointly; statistic and p-value are NaN where the release allows none."""
    rows, fit = contrast.rows, contrast.fit
    rank = int(np.linalg.matrix_rank(rows))
    covariance = rows @ inference.known(fit.covariance) @ rows.T
    away = contrast.effect - contrast.target
    if not all(np.isfinite(each).all() for each in (covariance, away, contrast.sd)):
        return WaldTest(float("nan"), float("nan"), rank, fit.claim)
    inverse = np.linalg.pinv(covariance, hermitian=True)
    statistic = float(away @ inverse @ away)
    if len(rows) == 1:
        pvalue = contrast.pvalue[0]
    elif fit.interval_draws is not None:
        apart = fit.interval_draws @ rows.T - contrast.effect
        farther = np.einsum("bi,ij,bj->b", apart, inverse, apart) >= statistic
        pvalue = (1 + farther.sum()) / (1 + len(farther))
    else:
        wider = np.maximum(inference.mixing(fit.noise_degrees), 1.0)
        pvalue = chdtrc(rank, np.maximum(statistic, 0.0) / wider).mean()
    return WaldTest(statistic, float(pvalue), rank, fit.claim)


def pairwise(
    contrast: Contrast, labels: Sequence[str], method: str | Sequence[str], alpha: float
) -> PairwiseTests:
    """Correct the p-values of a contrast, by statsmodels' `multipletests`.

    A pair without a p-value is counted among them, and is never told apart.
    """
    from statsmodels.stats.multitest import multipletests  # slow to import, and seldom needed

    frame, unknown = contrast.summary_frame(xname=labels), np.isnan(contrast.pvalue)
    for each in [method] if isinstance(method, str) else method:
        try:
            values = np.where(unknown, np.nextafter(1, 0), contrast.pvalue)
            reject, corrected, *_ = multipletests(values, alpha=alpha, method=each)
        except ValueError:
            raise ArgumentError(
                f'method must be one that multipletests knows, such as "hs"; got {shown(each)}.'
            ) from None
        frame[f"pvalue-{each}"] = np.where(unknown, np.nan, corrected)
        frame[f"reject-{each}"] = reject & ~unknown
    return PairwiseTests(contrast, tuple(labels), frame)


Constraints = str | Sequence[str] | ArrayLike | tuple[ArrayLike, ArrayLike]


def linear_constraints(constraints: Constraints, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return (R, q), m x p and m: the constraints say R beta = q.

    Parameters
    ----------
    constraints : str, list of str, array, or tuple (R, q)
        Text may hold several constraints between commas, and "a = b = 0" means two. Without "=" an
        expression is set to 0. Names are those of `exog_names`.
    names : sequence of str
        The p coefficients' names.

    Raises
    ------
    ArgumentError
        Where the constraints cannot be read, with the names of the coefficients that there are.
    """
    texts = [constraints] if isinstance(constraints, str) else constraints
    if isinstance(texts, list | tuple) and texts and all(isinstance(one, str) for one in texts):
        constraints = ", ".join(texts)
    elif isinstance(constraints, tuple) and len(constraints) == 2:  # one q may stand for all rows
        matrix = np.atleast_2d(constraints[0])
        constraints = matrix, np.resize(constraints[1], np.shape(constraints[1]) or len(matrix))
    try:
        with np.errstate(all="raise"):
            found = DesignInfo(list(names)).linear_constraint(constraints)
    except (PatsyError, ArithmeticError, IndexError, TypeError, ValueError) as problem:
        told = isinstance(problem, PatsyError | ValueError)  # it gives up on "" by IndexError
        reason = str(problem).partition("\n")[0] if told else "it is not a linear expression"
        raise ArgumentError(
            f"constraint {str(constraints)[:200]!r} cannot be read: {reason[:200]}; "
            f"the coefficients are {', '.join(names)}"
        ) from None
    return np.asarray(found.coefs, dtype=np.float64), found.constants.ravel()
