import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpreg.cells import LevelCoder, kind_of, number, number_text, truth

INF = math.inf


class Text(str):
    """Text whose own code, if it ran, would raise."""

    def __eq__(self, other):
        raise AssertionError

    __hash__ = str.__hash__

    def __str__(self):
        raise AssertionError

    strip = lower = __str__


class Float(float):
    def __float__(self):
        raise AssertionError


class Anything:
    """A cell that claims to equal all others and raises when it is used as a number."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("1")

    def __float__(self):
        raise AssertionError

    def __bool__(self):
        raise AssertionError


MISSING = [
    None,
    pd.NA,
    pd.NaT,
    math.nan,
    np.float32("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    complex(1, 2),
    complex(0, math.nan),
    np.complex64(1j),
    datetime.date(2020, 1, 1),
    datetime.timedelta(days=1),
    pd.Timestamp("2020-01-01"),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    pd.Period("2020", "Y"),
    pd.Interval(0, 1),
    b"1",
    [1],
    (1,),
    {"a": 1},
    np.array(1.0),
    Anything(),
    Text("7"),
    Float(7),
    object,
]

NUMBERS = [
    (0, 0.0),
    (3, 3.0),
    (-0.0, 0.0),
    (np.int8(3), 3.0),
    (np.uint64(2**64 - 1), 2.0**64),
    (2**53 + 1, 2.0**53),
    (10**400, INF),
    (-(10**400), -INF),
    (1e308, 1e308),
    (INF, INF),
    (np.float16(0.5), 0.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.longdouble("1e4000"), INF),
    (True, 1.0),
    (np.False_, 0.0),
    (Decimal("1.50"), 1.5),
    (Decimal("-1e400"), -INF),
    (Fraction(1, 4), 0.25),
    (Fraction(10**400, 3), INF),
    (Fraction(-(10**400), 3), -INF),
    (complex(2, 0), 2.0),
    (np.complex128(2), 2.0),
    ("1", 1.0),
    ("01", 1.0),
    (" 3 ", 3.0),
    ("\t-2.5\n", -2.5),
    ("1e3", 1000.0),
    ("1e400", INF),
    ("-inf", -INF),
    ("Infinity", INF),
    (np.str_("7"), 7.0),
]

NOT_NUMBER_TEXTS = ["", " ", "1_000", "1,5", "0x10", "True", "1 2", "nan", "abc", "1\0", "\ud800"]


@pytest.mark.parametrize(("cell", "meaning"), NUMBERS)
def test_a_number_means_its_float64(cell, meaning):
    with np.errstate(all="raise"):
        got = number(cell)
    assert type(got) is float
    assert got == meaning


@pytest.mark.parametrize("cell", MISSING + NOT_NUMBER_TEXTS)
def test_anything_else_is_missing_as_a_number(cell):
    assert math.isnan(number(cell))


@pytest.mark.parametrize("cell", MISSING)
def test_what_is_missing_as_a_number_is_missing_as_a_truth_and_a_level(cell):
    assert math.isnan(truth(cell))
    for levels in (["1", "nan", "None", "<NA>"], [0, 1, 2]):
        coder = LevelCoder(levels)
        assert coder.cell(cell) == -1
        assert coder.cells([cell, "1"]).tolist() == [-1, coder.cell("1")]


@pytest.mark.parametrize("cell", [1, 1.0, True, np.True_, "1", "1.0", "true", " TRUE ", "True"])
def test_true(cell):
    assert truth(cell) == 1.0


@pytest.mark.parametrize("cell", [0, -0.0, False, np.False_, "0", "00", "false", "FALSE"])
def test_false(cell):
    assert math.copysign(1.0, truth(cell)) == 1.0
    assert truth(cell) == 0.0


@pytest.mark.parametrize("cell", [2, 0.5, -1, math.inf, "yes", "t", "", "nan"])
def test_no_truth(cell):
    assert math.isnan(truth(cell))


@pytest.mark.parametrize("cell", [1, 1.0, np.int8(1), np.float32(1), Decimal("1.00"), 1 + 0j, "1"])
def test_a_number_matches_the_level_spelt_like_it(cell):
    assert LevelCoder(["0", "1", "01", "1.0", "True"]).cell(cell) == 1


def test_text_matches_only_its_own_spelling():
    coder = LevelCoder(["1", "01", "cc"])
    texts = ["1", "01", "001", "1.0", " 1", "CC", "cc ", "cc", Text("cc"), np.str_("01")]
    codes = [0, 1, -1, -1, -1, -1, -1, 2, -1, 1]
    assert [coder.cell(text) for text in texts] == codes
    assert coder.cells(texts).tolist() == codes


def test_truths_match_the_levels_true_and_false():
    coder = LevelCoder(["False", "True", "1", "0"])
    assert coder.cells([True, np.False_, 1, 0, "True", "true"]).tolist() == [1, 0, 2, 3, 1, -1]


def test_levels_that_are_numbers_match_by_number():
    coder = LevelCoder([1, 2, 0.5])
    cells = ["01", " 2 ", True, 1, 1.0, 0.5, "5e-1", Decimal("0.5"), 3, "x", None, math.inf]
    codes = [0, 1, 0, 0, 0, 2, 2, 2, -1, -1, -1, -1]
    assert [coder.cell(cell) for cell in cells] == codes
    assert coder.cells(cells).tolist() == codes


@pytest.mark.parametrize(
    "levels", [["a", "b"], ["2", "b", "1", "0.5", "1e3", "inf", "nan"], [3, 1, 2.5], ["1.0", "1"]]
)
def test_many_numbers_are_coded_as_one_by_one(levels):
    values = np.array([math.nan, -INF, -0.0, 0.5, 1, 2, 2.5, 3, 1000, 1e308, INF])
    coder = LevelCoder(levels)
    assert coder.numbers(values).tolist() == [coder.cell(value) for value in values]
    assert coder.numbers(values).dtype == np.int32
    assert coder.numbers(values[:0]).tolist() == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (-0.0, "0"), (0.1, "0.1"), (1e15, "1000000000000000"), (1e300, "1e+300")],
)
def test_spelling_of_numbers(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series([1.5]), "numeric"),
        (pd.Series([1], dtype="int8"), "numeric"),
        (pd.Series([1], dtype="Int64"), "numeric"),
        (pd.Series([1], dtype="Float32"), "numeric"),
        (pd.Series([1j]), "numeric"),
        (pd.Series([0], dtype="Sparse[int]"), "numeric"),
        (pd.Series([True]), "bool"),
        (pd.Series([True], dtype="boolean"), "bool"),
        (pd.Series([True], dtype="Sparse[bool]"), "bool"),
        (pd.Series(["a"]), "string"),
        (pd.Series(["a"], dtype="string"), "string"),
        (pd.Series(["a"], dtype=object), "object"),
        (pd.Series(["a"], dtype="category"), "category"),
        (pd.Series([True], dtype="category"), "category"),
        (pd.Series([pd.Timestamp(0)]), "datetime"),
        (pd.Series([pd.Timestamp(0, tz="UTC")]), "datetime"),
        (pd.Series([pd.Timedelta(0)]), "datetime"),
        (pd.Series([pd.Period("2020", "Y")]), "datetime"),
        (pd.Series([pd.Interval(0, 1)]), "other"),
    ],
)
def test_kind_is_told_by_the_dtype_alone(column, kind):
    assert kind_of(column.dtype) == kind
    assert kind_of(column.iloc[:0].dtype) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("int64[pyarrow]", "numeric"),
        ("double[pyarrow]", "numeric"),
        ("bool[pyarrow]", "bool"),
        ("string[pyarrow]", "string"),
        ("timestamp[s][pyarrow]", "datetime"),
        ("date32[day][pyarrow]", "datetime"),
        ("duration[s][pyarrow]", "datetime"),
        ("binary[pyarrow]", "other"),
    ],
)
def test_kind_of_arrow_dtypes(name, kind):
    pytest.importorskip("pyarrow")
    assert kind_of(pd.Series([], dtype=name).dtype) == kind


def test_kind_of_other_arrow_dtypes():
    pa = pytest.importorskip("pyarrow")
    assert kind_of(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))) == "category"
    assert kind_of(pd.ArrowDtype(pa.decimal128(5, 2))) == "numeric"
    assert kind_of(pd.ArrowDtype(pa.list_(pa.int8()))) == "other"
    assert kind_of(pd.ArrowDtype(pa.null())) == "object"
