"""Joint tests of several combinations of coefficients, against the law of their errors.

The statistic is (R b - q)' [R V R']^+ (R b - q), V the covariance that `cov_params` returns. For
one constraint the p-value is that of `t_test`. For several it follows the same law:

- normal errors: chi-squared with the rank of R degrees of freedom;
- matrix-Laplace noise: all errors share one mixing variable W (`dpreg.results.reference`), and
  S + W P <= max(1, W) (S + P) for the sampling and privacy parts of V. So
  mean_i P(chi2 > statistic / max(1, W_i)) is at least the exact p-value;
- bootstrap draws: the share of draws at least as far from the estimate as q is, in the metric of
  the statistic, counting q itself as one more draw. It is never below 1 / (B + 1).

Tested in `tests/test_statsmodels_names.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.results import inference, reference
from dpreg.results.claim import PrivacyClaim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dpreg.results.contrast import Combinations, Contrast

__all__ = ["PairwiseTests", "WaldTerms", "WaldTest", "level_rows", "pairwise", "wald"]


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

    def __str__(self) -> str:
        """Say statistic, p-value and degrees of freedom in a line."""
        stamp = f" {self.claim.stamp}" if self.claim.stamp else ""
        return (
            f"<Wald test (chi2): statistic={self.statistic:.6g}, p-value={self.pvalue:.6g}, "
            f"df_constraints={self.df_constraints}>{stamp}"
        )

    __repr__ = __str__


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

    def __str__(self) -> str:
        """Print the table."""
        stamp = self.table.attrs.get("privacy")
        return self.summary_frame().to_string() + (f"\n{stamp}" if stamp else "")

    __repr__ = __str__


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
    result_frame: pd.DataFrame = field(repr=False)

    def __str__(self) -> str:
        """Print the table."""
        stamp = self.result_frame.attrs.get("privacy")
        return self.result_frame.to_string() + (f"\n{stamp}" if stamp else "")

    __repr__ = __str__


def wald(combinations: Combinations, target: Floats) -> tuple[float, float, int]:
    """Return statistic, p-value and rank of a joint test; NaN where the release allows none."""
    rows = combinations.rows
    rank = int(np.linalg.matrix_rank(rows))
    covariance = rows @ inference.known(combinations.covariance) @ rows.T
    away = combinations.estimates() - target
    finite = [np.isfinite(each).all() for each in (covariance, away, combinations.errors())]
    if not all(finite):
        return float("nan"), float("nan"), rank
    inverse = np.linalg.pinv(covariance, hermitian=True)
    statistic = float(away @ inverse @ away)
    if len(rows) == 1:
        return statistic, float(combinations.pvalues(target)[0]), rank
    if combinations.draws is not None:
        apart = combinations.draws @ rows.T - combinations.estimates()
        farther = np.einsum("bi,ij,bj->b", apart, inverse, apart) >= statistic
        return statistic, float((1 + farther.sum()) / (1 + len(farther))), rank
    wider = np.maximum(reference.mixing(combinations.degrees), 1.0)
    return statistic, float(chdtrc(rank, np.maximum(statistic, 0.0) / wider).mean()), rank


def level_rows(columns: Mapping[str, int], term: str, levels: Sequence[str], size: int) -> Floats:
    """Return the coefficients of each level of a factor as rows (levels, size).

    Parameters
    ----------
    columns : mapping of str to int
        The factor's columns as patsy names them, "g[T.b]", "g[S.b]" or "g[b]", and their places.
    term : str
    levels : sequence of str
        All levels, in their declared order.
    size : int
        Of the whole vector of coefficients.
    """
    rows = np.zeros((len(levels), size))
    coded = {name[len(term) + 1 : -1]: place for name, place in columns.items()}
    marks = {text[:2] for text in coded if text[:2] in ("T.", "S.")}
    mark = next(iter(marks)) if len(marks) == 1 and len(coded) < len(levels) else ""
    for row, level in zip(rows, levels, strict=True):
        if mark + level in coded:
            row[coded[mark + level]] = 1.0
        elif mark == "S.":
            row[list(coded.values())] = -1.0
    if np.count_nonzero(rows.any(axis=0)) != len(coded):
        raise ArgumentError(f"{term!r} is not a single factor, so it has no pairs of levels.")
    return rows


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
