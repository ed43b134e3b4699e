r"""Moments with one more level: the rows of a factor that none of its columns names.

*Statement.* A release of a model with an intercept may hold the cells of a factor's last level too,
in the coding that leaves it out: under the same bounds, so at no cost in accuracy or budget.

*Proof.* On a complete row at most one of the group's columns is 1, so r = 1 - (their sum) is 0 or
1, and 0 wherever one of them is 1: with r among them they are an exclusive group still. The bounds
of `dpreg.privacy.gram_sensitivity` hold for any exclusive group and depend on the number of groups
and single columns, not on how many columns a group has. Its cells are differences of exact
integers. QED

Without it the last level's sums are what the constant's cells leave over, and the noise of all
other levels adds up in them: for L levels its standard deviation is sqrt(L) times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from dpreg.estimation.gram import ExactMoments

__all__ = ["WithRest"]

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WithRest:
    """Exact moments of (1, x_1..x_p, r, y), from those of (1, x_1..x_p, y).

    Parameters
    ----------
    moments : Moments
    levels : tuple of int
        z indices of the factor's 0/1 columns, at most one of them not zero in a row.
    """

    moments: ExactMoments
    levels: tuple[int, ...]

    @property
    def cells(self) -> Sequence[Row]:
        """(D + 1) x (D + 1), in units of 2**-40; r is the last but one, the response the last."""
        return _Cells(self.moments.cells, self.levels)

    @property
    def group(self) -> str:
        """The rows that were summed, as the budget table names them."""
        return self.moments.group


class _Cells(Sequence[Row]):
    """Rows of the extended matrix, each made when it is asked for."""

    def __init__(self, cells: Sequence[Row], group: tuple[int, ...]) -> None:
        self._cells = cells
        self._last = len(cells) - 1
        inside = frozenset(group)
        rest = [0] * (self._last + 2)
        for j in range(self._last + 1):
            if j not in inside:
                row = cells[j]
                rest[j + (j == self._last)] = row[0] - sum(row[a] for a in group)
        rest[self._last] = rest[0]
        self._rest = tuple(rest)

    def __len__(self) -> int:
        return self._last + 2

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(len(self))[place])
        place = range(len(self))[place]
        if place == self._last:
            return self._rest
        row = self._cells[min(place, self._last)]
        return (*row[: self._last], self._rest[place], row[self._last])
