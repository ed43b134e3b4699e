"""Intervals hold every value that NumPy computes, and are exact where they can be."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpreg.errors import FormulaError, SchemaError
from dpreg.formula.design import build_design
from dpreg.formula.expressions import Interval, NotFiniteError
from dpreg.formula.syntax import read_factor

REASONABLE = st.floats(-50, 50, allow_subnormal=True)
EXTREME = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def bounds(draw, numbers=REASONABLE):
    a, b = draw(numbers), draw(numbers)
    assume(a != b)
    return Interval(min(a, b), max(a, b))


def expressions():
    numbers = st.sampled_from(["0.5", "1", "2", "3", "0.1", "7e-3", "1e3"])
    leaves = st.sampled_from(["x", "z", "w"]) | numbers
    powers = st.sampled_from(["0", "1", "2", "3", "4", "7", "40", "0.5", "1.5", "-1", "-2", "-3"])

    def grown(inner):
        return st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(inner, powers).map(lambda t: f"({t[0]}) ** ({t[1]})"),
            st.tuples(inner, inner).map(lambda t: f"({t[0]}) ** ({t[1]})"),
            st.tuples(st.sampled_from(["log", "log1p", "exp", "sqrt", "abs"]), inner).map(
                lambda t: f"np.{t[0]}({t[1]})"
            ),
            inner.map(lambda e: f"(-{e})"),
            st.tuples(inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
        )

    return st.recursive(leaves, grown, max_leaves=8)


def points(interval, rng):
    """Draw cells of a column: inside, and at and beside the ends and other special places."""
    a, b = interval.lo, interval.hi
    special = [v for v in (0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-300) if v in interval]
    special += [a, b, math.nextafter(a, b), math.nextafter(b, a)]
    inside = a + (b - a) * rng.random(100)
    return np.clip(rng.permutation(np.concatenate([inside, rng.choice(special, 100)])), a, b)


@settings(max_examples=500)
@given(expressions(), bounds(), bounds(), bounds(), st.integers(0, 2**32))
def test_computed_values_lie_inside(code, x, z, w, seed):
    try:
        spec = read_factor(f"I({code})")
    except FormulaError:
        assume(False)
    columns = {"x": x, "z": z, "w": w}
    try:
        interval = spec.bounds(columns)
    except NotFiniteError:
        assume(False)
    rng = np.random.default_rng(seed)
    cells = {name: points(interval, rng) for name, interval in columns.items()}
    with np.errstate(all="ignore"):
        values = np.atleast_1d(spec.values(cells))
    assert not np.isnan(values).any()
    assert (values >= interval.lo).all()
    assert (values <= interval.hi).all()


@given(bounds(EXTREME), bounds(EXTREME), st.sampled_from("+-*/"))
def test_arithmetic_encloses_exact_corners(a, b, symbol):
    apply = {
        "+": lambda p, q: p + q,
        "-": lambda p, q: p - q,
        "*": lambda p, q: p * q,
        "/": lambda p, q: p / q,
    }[symbol]
    try:
        found = apply(a, b)
    except NotFiniteError:
        assume(False)
    corners = [apply(Fraction(p), Fraction(q)) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
    assert Fraction(found.lo) <= min(corners)
    assert Fraction(found.hi) >= max(corners)
    # and no wider than the next float
    assert Fraction(math.nextafter(found.lo, math.inf)) > min(corners) or found.lo == min(corners)
    assert Fraction(math.nextafter(found.hi, -math.inf)) < max(corners) or found.hi == max(corners)


def test_exact_results_are_not_widened():
    x = Interval(1.0, 5.0)
    one = Interval(1.0, 1.0)
    assert x - one == Interval(0.0, 4.0)
    assert (x - one).sqrt().lo == 0.0
    assert x.log().lo == 0.0
    assert Interval(-2.0, 1.0) ** Interval(2.0, 2.0) == Interval(0.0, 4.0)
    assert Interval(-2.0, 1.0) * Interval(-2.0, 1.0) == Interval(-2.0, 4.0)
    assert Interval(-2.0, 1.0).absolute() == Interval(0.0, 2.0)
    assert Interval(-2.0, 1.0) ** Interval(0.0, 0.0) == one
    assert Interval(0.1, 0.2) + Interval(0.2, 0.3) != Interval(0.1 + 0.2, 0.2 + 0.3)


@pytest.mark.parametrize(
    ("factor", "columns"),
    [
        ("np.log(x)", ["x"]),
        ("np.log(x - 1)", ["x"]),
        ("np.log(z)", ["z"]),
        ("np.log1p(z)", ["z"]),
        ("np.sqrt(z)", ["z"]),
        ("I(1 / x)", ["x"]),
        ("I(x / z)", ["x", "z"]),
        ("I(x ** -1)", ["x"]),
        ("I(z ** 0.5)", ["z"]),
        ("I(z ** x)", ["z", "x"]),
        ("I(0 ** x)", ["x"]),
        ("I((-1) ** x)", ["x"]),
        ("np.exp(1000 * x)", ["x"]),
        ("I((1e200 * x) ** 2)", ["x"]),
        ("I(x * 1e308 * 10)", ["x"]),
        ("bs(np.log(x), knots=[1], lower_bound=0, upper_bound=2)", ["x"]),
        ("np.log(x) > 0", ["x"]),
    ],
)
def test_an_interval_that_is_not_finite_is_an_error_of_the_schema(factor, columns):
    schema = {"y": (0, 1), "x": (0, 4), "z": (-1, 1)}
    with pytest.raises(SchemaError) as raised:
        build_design(f"y ~ {factor}", schema)
    assert factor.replace(" ** ", "")[:4] in str(raised.value).replace(" ** ", "")
    assert all(repr(column) in str(raised.value) for column in columns)
    assert "Declare bounds" in str(raised.value)


@pytest.mark.parametrize(
    "formula", ["y ~ I(x**3):z", "y ~ I(x * z) * I(z**2)", "y ~ I(1e300 * x):z"]
)
def test_a_product_beyond_float64_is_an_error_of_the_schema(formula):
    schema = {"y": (0, 1), "x": (0, 1e100), "z": (-1e100, 1)}
    with pytest.raises(SchemaError, match="not bounded"):
        build_design(formula, schema)


@pytest.mark.parametrize(
    "factor",
    ["I(x ** 0)", "I(0 * x)", "x > 9", "I(x > -1)", "x == 7", "x != 7", "I(x * 1e-320 ** 2)"],
)
def test_zero_width_is_an_error_of_the_schema(factor):
    with pytest.raises(SchemaError, match="constant under the declared bounds of 'x'"):
        build_design(f"y ~ {factor}", {"y": (0, 1), "x": (0, 4)})
    with pytest.raises(SchemaError):
        build_design(f"I(1 * ({factor})) ~ x", {"y": (0, 1), "x": (0, 4)})


@pytest.mark.parametrize(
    ("lo", "hi", "ends"),
    [(-3, 1, (0, 3)), (-1, 3, (0, 3)), (1, 3, (1, 3)), (-3, -1, (1, 3)), (0, 0, (0, 0))],
)
def test_absolute_values_reach_as_far_as_the_farther_end(lo, hi, ends):
    found = Interval(float(lo), float(hi)).absolute()
    assert (found.lo, found.hi) == ends


@pytest.mark.parametrize("power", [2, 4, 40])
def test_even_powers_reach_down_to_zero(power):
    found = Interval(-1.0, 2.0) ** Interval(float(power), float(power))
    assert found.lo == 0.0
    assert found.hi >= 2.0**power


def test_functions_are_widened_by_a_few_units():
    x = Interval(2.0, 3.0)
    for found, lo, hi in ((x.log(), np.log(2.0), np.log(3.0)), (x.exp(), np.exp(2.0), np.exp(3.0))):
        assert lo - 100 * np.spacing(lo) < found.lo <= lo - 4 * np.spacing(lo)
        assert hi + 4 * np.spacing(hi) <= found.hi < hi + 100 * np.spacing(hi)
