"""Attributes that statistics packages have and a private release cannot: each says why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dpreg.errors import NotReleased

__all__ = ["NeverReleased", "Withheld", "WithoutRows", "withholding"]

_T = TypeVar("_T")

_ROWS = (
    "there is one number for each row, and each would disclose that row. Use predict() on a table "
    "that you may see, and `scale` for the size of residuals"
)
_INFLUENCE = (
    "influence measures single rows, and bounding what a single row can tell is what differential "
    "privacy does"
)
_LIKELIHOOD = (
    "it is computed from the exact residual sum of squares. To choose between models privately, "
    "use dp_select"
)
_TESTS = (
    "an F statistic comes from exact sums of squares, and its null law ignores the privacy noise. "
    "Use wald_test() or t_test(), whose law includes it"
)
_SUMS = (
    "an exact sum over the rows is not private. `scale` estimates the residual variance and "
    "`rsquared` the share that is explained"
)
_MOMENTS = (
    "it is computed from the exact moments of the columns. `cov_params()` is the covariance of the "
    "released coefficients"
)
_EMPIRICAL = "empirical likelihood weighs every single row. Use conf_int() and t_test()"
_FITTING = "a released model holds no rows to fit again. Call dp_ols with the table"
_ROBUST = (
    "it needs the squared residual of every row. Where `cov_type` is 'HC' or 'cluster', `bse` is "
    "robust by the scores' released spread"
)


class Withheld:
    """An attribute that is named only to say why it is not released.

    Reading it raises `NotReleased`, an AttributeError, so `hasattr` is False.
    """

    __slots__ = ("name", "reason")

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    def __get__(self, instance: object, owner: type | None = None) -> Withheld:
        """Raise, unless looked up on the class."""
        if instance is None:
            return self
        raise NotReleased(f"{self.name} is not released: {self.reason}.")


def withholding(reasons: Mapping[str, str]) -> Callable[[type[_T]], type[_T]]:
    """Return a class decorator that withholds names, listed with blanks between by their reason."""

    def decorate(owner: type[_T]) -> type[_T]:
        for reason, names in reasons.items():
            for name in names.split():
                setattr(owner, name, Withheld(name, reason))
        return owner

    return decorate


@withholding(
    {
        _ROWS: "resid wresid resid_pearson fittedvalues",
        _INFLUENCE: "influence get_influence outlier_test",
        _LIKELIHOOD: "llf aic bic info_criteria",
        _SUMS: "ssr ess centered_tss uncentered_tss mse_model mse_total",
        _TESTS: "fvalue f_pvalue f_test compare_f_test compare_lr_test compare_lm_test",
        _ROBUST: (
            "get_robustcov_results HC0_se HC1_se HC2_se HC3_se cov_HC0 cov_HC1 cov_HC2 cov_HC3"
        ),
        _MOMENTS: "condition_number eigenvals normalized_cov_params",
        _EMPIRICAL: "el_test conf_int_el",
        "it attaches a model with its raw rows to a result": "initialize",
    }
)
class NeverReleased:
    """What statsmodels' results of a linear model offer and dpreg's never will."""

    __slots__ = ()


@withholding(
    {
        _ROWS: "endog exog data",
        _FITTING: "fit",
    }
)
class WithoutRows:
    """What statsmodels' models hold and the public part of one does not: the rows."""

    __slots__ = ()
