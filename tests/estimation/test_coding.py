"""What one person can change in the released cells: searched over rows, corners first."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpreg.estimation.sums import CELL_UNITS, GRID_ONE, Coding, _coding
from dpreg.privacy.protection import Protection

NEIGHBORS = ("replace-one", "add-remove")
CODINGS = [
    (neighbors, mechanism, grouped, complete)
    for neighbors, mechanism, grouped, complete in product(
        NEIGHBORS, ("laplace", "gaussian"), (False, True), (False, True)
    )
    if not complete or (neighbors == "replace-one" and not grouped)
]


def sensitivity(coding, neighbors, k, grouped):
    change = coding.sensitivity(Protection(neighbors, k), grouped)
    return change.l1, change.l2_squared


def row_sums(row):
    """The sums of one row of grid integers; None is an incomplete row."""
    if row is None:
        return [0] * 5
    return [1, *row, *(u * u for u in row)]


def cells(coding, row, group):
    """Stacked cells of a table of one row in two groups (group None: in neither)."""
    empty = [0] * coding.cells
    assert coding.encode([0] * (1 + 2 * coding.columns)) == empty
    own = coding.encode(row) if row is not None and group is not None else empty
    return np.array([own if group == g else empty for g in (0, 1)], dtype=object).ravel()


def rows_to_try(d, seed=0):
    one = GRID_ONE
    corners = [-one, one, 0, one // 2, -one // 2, round(one * 0.7071), 1]
    rng = np.random.default_rng(seed)
    found = [tuple(row) for row in product(corners, repeat=d)][:: 1 if d == 1 else 2]
    found += [tuple(int(u) for u in rng.integers(-one, one + 1, d)) for _ in range(20)]
    return [row_sums(row) for row in found]


def worst_change(coding, neighbors, grouped, d):
    """Largest L1 and squared L2 changes by one row, in units of 1."""
    rows = rows_to_try(d)
    tables = [None, *((row, group) for row in rows for group in ((0, 1) if grouped else (0,)))]
    vectors = [cells(coding, *(table or (None, None))) for table in tables]
    if neighbors == "add-remove":
        changes = [v - vectors[0] for v in vectors]
    else:
        first = vectors[: len(vectors)]
        changes = [v - w for v in first for w in vectors]
    l1 = max(sum(abs(c) for c in change) for change in changes)
    l2 = max(sum(c * c for c in change) for change in changes)
    return Fraction(int(l1), CELL_UNITS), Fraction(int(l2), CELL_UNITS**2)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(("neighbors", "mechanism", "grouped", "complete"), CODINGS)
def test_no_row_changes_more_and_some_row_changes_as_much(
    neighbors, mechanism, grouped, complete, degree, d
):
    coding = _coding(d, degree, grouped, Protection(neighbors), complete, mechanism)
    l1, l2 = worst_change(coding, neighbors, grouped, d)
    claimed = sensitivity(coding, neighbors, 1, grouped)
    first, second = Fraction(claimed[0], CELL_UNITS), Fraction(claimed[1], CELL_UNITS**2)
    assert l1 <= first
    assert l2 <= second
    if mechanism == "laplace":
        assert l1 == first  # tight: no noise is wasted
    else:
        assert l2 >= second * Fraction(97, 100)


@pytest.mark.parametrize("k", [1, 3])
def test_k_rows_change_k_times_as_much(k):
    coding = _coding(1, 2, False, Protection("replace-one"), False, "laplace")
    one = sensitivity(coding, "replace-one", 1, False)
    assert sensitivity(coding, "replace-one", k, False) == (k * one[0], k * k * one[1])
    low, high = (cells(coding, [k, s * k * GRID_ONE, k * GRID_ONE**2], 0) for s in (-1, 1))
    assert sum(abs(high - low)) == sensitivity(coding, "replace-one", k, False)[0]


@pytest.mark.parametrize(
    ("mutant", "neighbors", "grouped"),
    [
        (Coding(False, 2, 1, Fraction(1)), "replace-one", False),  # a heavier count
        (Coding(False, 2, 1, Fraction(3, 4)), "replace-one", True),  # groups forgotten
        (Coding(True, 2, 1), "replace-one", False),  # the other relation's sensitivity
        (Coding(False, 1, 2, Fraction(5, 2)), "replace-one", False),
    ],
)
def test_mutants_are_caught(mutant, neighbors, grouped):
    claims = {
        (False, Fraction(1)): 2,
        (False, Fraction(3, 4)): sensitivity(mutant, neighbors, 1, False)[0] / CELL_UNITS,
        (True, Fraction(0)): sensitivity(mutant, "add-remove", 1, False)[0] / CELL_UNITS,
        (False, Fraction(5, 2)): 4,
    }
    l1, _ = worst_change(mutant, neighbors, grouped, mutant.columns)
    assert l1 > claims[mutant.bernstein, mutant.weight]


def test_squares_of_full_weight_would_not_be_free():
    """The statement's 1/2 before the square matters: u and u^2 themselves reach 9/4, not 2."""
    grid = np.linspace(-1, 1, 401)
    for weight, bound in ((0.5, 2.0), (1.0, 2.25)):
        change = np.abs(grid[:, None] - grid) + weight * np.abs(grid[:, None] ** 2 - grid**2)
        assert change.max() == pytest.approx(bound)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize(("neighbors", "mechanism", "grouped", "complete"), CODINGS)
def test_cells_are_read_back(neighbors, mechanism, grouped, complete, degree, d):
    coding = _coding(d, degree, grouped, Protection(neighbors), complete, mechanism)
    rng = np.random.default_rng(3)
    u = rng.integers(-GRID_ONE, GRID_ONE + 1, (50, d))
    sums = [50, *map(int, u.sum(0)), *map(int, (u * u).sum(0))]
    coded = coding.encode(sums)
    assert len(coded) == coding.cells
    read = coding.decoder() @ (np.array(coded, dtype=float) / CELL_UNITS)
    assert read[0] == pytest.approx(0 if complete else 50)
    np.testing.assert_allclose(read[1 : d + 1], u.sum(0) / GRID_ONE, atol=1e-9)
    if degree == 2:
        expected = (u.astype(float) ** 2).sum(0) / GRID_ONE**2 - (25 if complete else 0)
        np.testing.assert_allclose(read[d + 1 :], expected, atol=1e-9)


def test_bernstein_cells_are_a_point_of_a_simplex():
    for row in rows_to_try(1):
        for degree in (1, 2):
            coded = Coding(True, degree, 1).encode(row)
            assert min(coded) >= 0
            assert sum(coded) == CELL_UNITS
