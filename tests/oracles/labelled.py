"""Exact moments of groups of rows, by labels: `dpreg.moments.accumulate` for several sets."""

from collections.abc import Iterable

from dpreg.arrays import Floats, Ints, to_grid
from dpreg.grouped import CodedRows, GroupedCells, Layout, Sums
from dpreg.moments import Moments


def accumulate_groups(
    blocks: Iterable[tuple[Floats, Ints]], size: int, groups: int
) -> tuple[Moments, ...]:
    """Sum z z' exactly over groups of rows; each row has its group in 0 .. groups - 1."""
    layout = Layout(size)
    sums = Sums(layout, groups)
    for block, labels in blocks:
        sums.add(CodedRows(to_grid(block), ()), labels)
    return tuple(
        Moments(int(rows), GroupedCells(layout, vector))
        for rows, vector in zip(sums.rows, sums.vectors(), strict=True)
    )
