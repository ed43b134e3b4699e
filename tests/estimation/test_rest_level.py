"""One more level in a release: exact, an exclusive group still, and within the same bounds."""

from itertools import product

import numpy as np
import pytest

from dpreg.estimation import gram as rest_level
from dpreg.estimation.gram import with_rest
from dpreg.moments import accumulate
from dpreg.privacy.proofs import CELL_UNITS, layout, sensitivity_l1, sensitivity_l2_squared
from dpreg.privacy.protection import Protection

GROUP = (2, 3)  # z = (1, x, two levels of three, y)


def one_more(z, group=GROUP):
    """Put in, row by row, what `with_rest` takes from sums."""
    rest = z[:, 0] - z[:, list(group)].sum(axis=1)
    return np.column_stack([z[:, :-1], rest, z[:, -1]])


def some_rows(rows=500):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, rows))
    level = rng.integers(0, 3, rows)
    z = np.column_stack([np.ones(rows), x, level == 1, level == 2, y]).astype(float)
    z[::7] = 0.0  # incomplete rows
    return z


def test_the_sums_are_those_of_rows_with_one_more_column():
    z = some_rows()
    assert cells_of(z) == tuple(accumulate([one_more(z)], 6).cells)


def cells_of(z):
    row = rest_level.with_rest(accumulate([z], 5).cells, GROUP)
    return tuple(row(place) for place in range(6))


def changes():
    """Return what one row at a corner adds to the released cells, for all corners."""
    triangle = layout((0, 1, 2, 3, 4), [(*GROUP, 4)])
    found = [np.zeros(len(triangle.cells))]
    for x, y, level in product((-1, 1), (-1, 1), range(3)):
        z = np.array([[1.0, x, level == 1, level == 2, y]])
        cells = cells_of(z)
        found.append(np.array([cells[i][j] / CELL_UNITS for i, j in triangle.cells]))
    return triangle, np.array(found)


def exceeds():
    triangle, found = changes()
    added = found - found[0]
    replaced = (found[1:, None] - found[1:]).reshape(-1, found.shape[1])
    for neighbors, moved in (("add-remove", added), ("replace-one", replaced)):
        l1, l2 = np.abs(moved).sum(axis=1).max(), (moved**2).sum(axis=1).max()
        if l1 > sensitivity_l1(triangle, Protection(neighbors)):
            return True
        if l2 > sensitivity_l2_squared(triangle, Protection(neighbors)):
            return True
    return False


def test_the_level_costs_nothing():
    """The bounds are those of the release without it, and no pair of corners exceeds them."""
    without, (triangle, _) = layout((0, 1, 2, 3), [GROUP]), changes()
    for neighbors in ("replace-one", "add-remove"):
        assert sensitivity_l1(triangle, Protection(neighbors)) == sensitivity_l1(
            without, Protection(neighbors)
        )
        for weight in (1, 3):
            own = sensitivity_l2_squared(triangle, Protection(neighbors), weight)
            assert own == sensitivity_l2_squared(without, Protection(neighbors), weight)
    assert not exceeds()


def test_a_level_that_forgets_the_others_is_caught(monkeypatch):
    """A column of ones is not exclusive to the levels: one row then moves cells of both."""
    monkeypatch.setattr(rest_level, "with_rest", lambda cells, _: with_rest(cells, ()))
    assert exceeds()


@pytest.mark.parametrize("rows", [0, 3])
def test_few_rows(rows):
    z = some_rows()[1 : 1 + rows]
    assert cells_of(z) == tuple(accumulate([one_more(z)], 6).cells)
