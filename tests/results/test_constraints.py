import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patsy import DesignInfo

from dpreg.errors import ArgumentError
from dpreg.results.contrast import linear_constraints

NAMES = ["Intercept", "a", "ab", "a:ab", "county[T.c c]", "np.log(x)", "I(a ** 2)", "x.y"]

TEXTS = [
    "a",
    "a - ab = 0",
    "a = ab",
    "a = ab = 0",
    "2*a + ab/4 - 3 = Intercept, np.log(x) = 1.5e0",
    "-(a - 2*(ab + 1)) = - - 1",
    "a:ab - a = .5",
    "county[T.c c] = 1, I(a ** 2) = 0",
    "3 * (a + 4) / 2 = 10",
    "  x.y=1e-3  ",
]


def test_deep_nesting_is_read_without_recursion():
    rows, _ = linear_constraints("(" * 5000 + "a" + ")" * 5000, NAMES)
    assert rows.tolist() == [[0, 1, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("text", TEXTS)
def test_text_means_what_it_means_to_patsy(text):
    theirs = DesignInfo(NAMES).linear_constraint(text)
    rows, target = linear_constraints(text, NAMES)
    np.testing.assert_allclose(rows, theirs.coefs)
    np.testing.assert_allclose(target, theirs.constants.ravel())


@pytest.mark.parametrize(
    "text",
    [
        "b", "a +", "a ab", "(a", "a)", "a ** 2", "a * ab", "a / 0", "1 = 2", "", "=", "a,",
        "abc", "2a", "a:b", "__import__('os')", "a - a",
        "(" * 5000 + "a",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(ArgumentError):
        linear_constraints(text, NAMES)


def test_an_error_names_the_coefficients():
    with pytest.raises(ArgumentError, match=r"unrecognized token.*Intercept, a, ab"):
        linear_constraints("a - bsqft", NAMES)


def test_arrays_and_lists():
    rows, target = linear_constraints([0, 1, -1], ["i", "a", "b"])
    np.testing.assert_array_equal(rows, [[0, 1, -1]])
    np.testing.assert_array_equal(target, [0])
    rows, target = linear_constraints((np.eye(3), [1, 2, 3]), ["i", "a", "b"])
    np.testing.assert_array_equal(target, [1, 2, 3])
    rows, _ = linear_constraints(["a = b", "i"], ["i", "a", "b"])
    np.testing.assert_array_equal(rows, [[0, 1, -1], [1, 0, 0]])


@pytest.mark.parametrize(
    "wrong", [[1, 2], [["x", 1, 2]], (np.eye(3), [1, 2]), None, np.ones((1, 1, 3))]
)
def test_arrays_of_the_wrong_shape_are_refused(wrong):
    with pytest.raises(ArgumentError):
        linear_constraints(wrong, ["i", "a", "b"])


@given(st.text(alphabet="ab()+-*/=,. 1e[]:", max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        rows, target = linear_constraints(text, ["a", "b", "a:b"])
    except ArgumentError:
        return
    assert rows.shape == (len(target), 3)
