import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.errors import SchemaError


@pytest.mark.parametrize(
    ("lo", "hi"),
    [(105, 905), (np.int8(105), np.float64(905)), (Decimal("105"), Fraction(905)), (105.0, 905.0)],
)
def test_bounds_become_floats(lo, hi):
    numeric = Numeric(lo, hi)
    assert (type(numeric.lo), type(numeric.hi)) == (float, float)
    assert numeric == Numeric(105, 905)
    assert hash(numeric) == hash(Numeric(105, 905))
    assert repr(numeric) == "Numeric(105, 905)"


@pytest.mark.parametrize(
    ("lo", "hi", "says"),
    [
        (1, 1, "below"),
        (2, 1, "below"),
        (0.0, -0.0, "below"),
        (0, math.inf, "finite"),
        (math.nan, 1, "finite"),
        (0, 10**400, "finite"),
        (False, 1, "finite"),
        (0, np.True_, "finite"),
        ("0", 1, "finite"),
        (None, 1, "bound is None"),
        (0, 1j, "finite"),
        (np.timedelta64(0, "s"), 1, "is a date"),
        (-1.1e100, 1, "another unit"),
        (0, 0.9e-100, "another unit"),
        (0, 5e-324, "another unit"),
        (-1e308, 1e308, "another unit"),
        (1, np.nextafter(1, 2), "no width"),
        (2**60, 2**60 + 1, "below"),
    ],
)
def test_bounds_that_cannot_scale_a_column_are_refused(lo, hi, says):
    with pytest.raises(SchemaError, match=says):
        Numeric(lo, hi)


def test_levels_keep_their_order_and_become_plain():
    assert Categorical(["b", np.str_("a")]).levels == ("b", "a")
    assert Categorical(["b", "a"]) != Categorical(["a", "b"])
    levels = Categorical([1.0, np.int8(2), Decimal("0.5")]).levels
    assert levels == (1, 2, 0.5)
    assert [type(level) for level in levels] == [int, int, float]
    assert repr(Categorical(["b", "a"])) == "Categorical(['b', 'a'])"
    assert hash(Categorical((1, 2))) == hash(Categorical([1.0, 2.0]))


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        ([], "fewer than two"),
        (["a"], "fewer than two"),
        (["a", "b", "a"], "levels 1 and 3 are the same"),
        ([1, 2, 1.0], "levels 1 and 3 are the same"),
        (["a", 1], "all text or all numbers"),
        (["a", None], "all text or all numbers"),
        ([True, False], "declare bool"),
        ([1, True], "declare bool"),
        ([1, math.nan], "not finite"),
        ([2**53, 1], "too large"),
        ([np.int64(2**53 + 1), 1], "too large"),
        ("ab", "list or tuple"),
        ({"a", "b"}, "list or tuple"),
        (np.array(["a", "b"]), "not public"),
        (pd.Series(["a", "b"]), "not public"),
    ],
)
def test_levels_that_cannot_be_told_apart_are_refused(levels, says):
    with pytest.raises(SchemaError, match=says):
        Categorical(levels)


def test_a_message_about_levels_names_none_of_them():
    with pytest.raises(SchemaError) as caught:
        Categorical(["smith", "jones", "smith"])
    assert "smith" not in str(caught.value)


@pytest.mark.parametrize("value", [Numeric(0, 1), Categorical(["a", "b"]), Boolean(), Unbounded()])
def test_declarations_are_frozen_values(value):
    assert pickle.loads(pickle.dumps(value)) == value
    for name in ("lo", "levels", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, 3)
