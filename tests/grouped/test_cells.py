"""Cells that are made row by row are those of the dense matrix."""

from functools import reduce

import numpy as np
import pytest

from dpreg.grouped import Group, GroupedCells, Layout
from dpreg.moments import Moments


def grouped() -> GroupedCells:
    """One group of two columns between the constant and the response."""
    group = Group(np.array([1, 2]), np.array([0, 0]))
    layout = Layout(4, (group,))
    cross = [[5 << 40, 3 << 40], [7, -9]]
    return GroupedCells(
        layout, np.array([8 << 40, 11, 13, *np.transpose(cross).ravel(), *cross[0]])
    )


ROWS = (
    (8 << 40, 5 << 40, 3 << 40, 11),
    (5 << 40, 5 << 40, 0, 7),
    (3 << 40, 0, 3 << 40, -9),
    (11, 7, -9, 13),
)


def test_a_sequence_of_rows_of_integers() -> None:
    cells = grouped()
    assert len(cells) == 4
    assert tuple(cells) == ROWS
    assert cells == ROWS
    assert cells[-1] == ROWS[3]
    assert cells[1:3] == ROWS[1:3]
    assert all(type(cell) is int for row in cells for cell in row)
    with pytest.raises(IndexError):
        cells[4]


def test_cells_that_differ_are_not_equal() -> None:
    plain = GroupedCells(Layout(4), np.array([8 << 40, 5 << 40, 3 << 40, 11, *range(6)]))
    assert grouped() != plain
    assert grouped() != ROWS[:3]
    assert grouped() != 4


def test_adding_beyond_int64() -> None:
    cells = grouped()
    twice = tuple(tuple(2 * cell for cell in row) for row in ROWS)
    assert cells + cells == twice
    many = reduce(lambda sums, _: sums + sums, range(40), cells)
    assert many[0][0] == 8 << 80
    assert (many + many)[3][3] == 13 << 41


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_just_leave_int64_do_not_wrap(sign: int) -> None:
    half = sign * (2**62 + 5)
    layout = Layout(2)
    one = GroupedCells(layout, np.array([half, sign, half - sign], dtype=np.int64))
    assert tuple(one + one) == ((2 * half, 2 * sign), (2 * sign, 2 * (half - sign)))
    less = GroupedCells(layout, np.array([half - sign, 0, 0], dtype=np.int64))
    assert (one + less)[0][0] == (less + one)[0][0] == 2 * half - sign


def test_moments_add_where_their_cells_are_laid_out_alike() -> None:
    one = Moments(8, grouped())
    assert one == Moments(8, ROWS)
    assert one + one == Moments(16, tuple(tuple(2 * cell for cell in row) for row in ROWS))
    with pytest.raises(AssertionError):
        GroupedCells(Layout(3), np.zeros(5, dtype=np.int64))
    with pytest.raises(AssertionError):
        grouped() + GroupedCells(Layout(3), np.zeros(6, dtype=np.int64))


def test_rest_that_is_not_zero() -> None:
    """Columns that are -1 but where the code names them: one row each, then an incomplete one."""
    one = 1 << 20
    group = Group(np.array([1, 2]), np.array([-one, -one]))
    layout = Layout(4, (group,))
    z = np.array([[one, one, -one, 3], [one, -one, one, 5], [one, -one, -one, 7], [0, 0, 0, 0]])
    u = z[:, 1:3] + one * (z[:, :1] > 0)
    flat = z[:, [0, 3]].T @ z[:, [0, 3]]
    cross = z[:, [0, 3]].T @ u
    vector = np.concatenate([flat[np.triu_indices(2)], cross.T.ravel(), (u * u).sum(axis=0)])
    assert tuple(GroupedCells(layout, vector)) == tuple(map(tuple, (z.T @ z).tolist()))
