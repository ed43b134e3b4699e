"""Attributes that statistics packages have and a private release cannot: each says why."""

from __future__ import annotations

from dpreg.errors import NotReleased

__all__ = ["NeverReleased", "Withheld", "WithoutRows"]

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
_ROBUST = "it needs the squared residual of every row. `bse` assumes a constant residual variance"


class Withheld:
    """An attribute that is named only to say why it is not released.

    Reading it raises `NotReleased`, an AttributeError, so `hasattr` is False.
    """

    __slots__ = ("name", "reason")

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.name = "this attribute"

    def __set_name__(self, owner: type, name: str) -> None:
        """Remember the attribute's name for the message."""
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Withheld:
        """Raise, unless looked up on the class."""
        if instance is None:
            return self
        raise NotReleased(f"{self.name} is not released: {self.reason}.")


class NeverReleased:
    """What statsmodels' results of a linear model offer and dpreg's never will."""

    __slots__ = ()

    resid = Withheld(_ROWS)
    wresid = Withheld(_ROWS)
    resid_pearson = Withheld(_ROWS)
    fittedvalues = Withheld(_ROWS)
    influence = Withheld(_INFLUENCE)
    get_influence = Withheld(_INFLUENCE)
    outlier_test = Withheld(_INFLUENCE)
    llf = Withheld(_LIKELIHOOD)
    aic = Withheld(_LIKELIHOOD)
    bic = Withheld(_LIKELIHOOD)
    info_criteria = Withheld(_LIKELIHOOD)
    ssr = Withheld(_SUMS)
    ess = Withheld(_SUMS)
    centered_tss = Withheld(_SUMS)
    uncentered_tss = Withheld(_SUMS)
    mse_model = Withheld(_SUMS)
    mse_total = Withheld(_SUMS)
    fvalue = Withheld(_TESTS)
    f_pvalue = Withheld(_TESTS)
    f_test = Withheld(_TESTS)
    compare_f_test = Withheld(_TESTS)
    compare_lr_test = Withheld(_TESTS)
    compare_lm_test = Withheld(_TESTS)
    get_robustcov_results = Withheld(_ROBUST)
    HC0_se = Withheld(_ROBUST)
    HC1_se = Withheld(_ROBUST)
    HC2_se = Withheld(_ROBUST)
    HC3_se = Withheld(_ROBUST)
    cov_HC0 = Withheld(_ROBUST)
    cov_HC1 = Withheld(_ROBUST)
    cov_HC2 = Withheld(_ROBUST)
    cov_HC3 = Withheld(_ROBUST)
    condition_number = Withheld(_MOMENTS)
    eigenvals = Withheld(_MOMENTS)
    normalized_cov_params = Withheld(_MOMENTS)
    el_test = Withheld(_EMPIRICAL)
    conf_int_el = Withheld(_EMPIRICAL)
    initialize = Withheld("it attaches a model with its raw rows to a result")


class WithoutRows:
    """What statsmodels' models hold and the public part of one does not: the rows."""

    __slots__ = ()

    endog = Withheld(_ROWS)
    exog = Withheld(_ROWS)
    data = Withheld(_ROWS)
    fit = Withheld(_FITTING)
