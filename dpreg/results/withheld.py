"""Attributes that statistics packages have and a private release cannot: each says why."""

from __future__ import annotations

from dpreg.errors import NotReleased

__all__ = ["NeverReleased", "Withheld"]

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
    "its null law ignores the privacy noise. Use t_test() for linear combinations, whose standard "
    "errors include it"
)
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
    model = Withheld("a statsmodels model holds the raw rows. The formula is in `formula`")
    influence = Withheld(_INFLUENCE)
    get_influence = Withheld(_INFLUENCE)
    outlier_test = Withheld(_INFLUENCE)
    llf = Withheld(_LIKELIHOOD)
    aic = Withheld(_LIKELIHOOD)
    bic = Withheld(_LIKELIHOOD)
    ssr = Withheld(
        "an exact sum over the rows is not private. `scale` estimates the residual variance"
    )
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
