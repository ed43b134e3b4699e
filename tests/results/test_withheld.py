"""Names that statistics packages have and a private release cannot: they say why."""

import pytest

from dpreg.errors import NotReleased
from dpreg.results.base import Withheld
from dpreg.results.regression import OfFormula

NAMES = [name for name, value in vars(OfFormula).items() if isinstance(value, Withheld)]


@pytest.mark.parametrize("name", NAMES)
def test_each_says_its_name_and_why_and_is_no_attribute(name, make_regression):
    with pytest.raises(NotReleased, match=f"^{name} is not released: .*\\.$"):
        getattr(make_regression(), name)
    assert not hasattr(make_regression(), name)


def test_residuals_and_fitted_values_are_among_them():
    assert {"resid", "fittedvalues", "ssr", "llf", "centered_tss"} <= set(NAMES)


def test_on_the_class_it_is_the_descriptor():
    assert isinstance(OfFormula.resid, Withheld)
    assert OfFormula.resid.name == "resid"


def test_a_name_cannot_be_given_a_value(make_regression):
    with pytest.raises(AttributeError):
        object.__setattr__(make_regression(), "resid", 1)
