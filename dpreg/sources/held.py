"""Rows that the first pass keeps for the later ones.

Text takes longer to parse than to sum, a query runs as long each time, and a stream can be read
once. So where a call makes several passes over such a table, its first pass keeps what it reads:
the cells of the columns that the call uses, 8 bytes a number and 4 a label, in memory up to
`dpreg.sources.spool.HELD_BYTES` and beyond in a file without a name (see there what reads and what
removes it). Where they go shows in time, memory and disk space only, as the number of rows does
anyway.

Statement. All passes give each row the same values and places as one pass over the table itself.

Proof. The first pass hands on the chunks of the table, and keeps these very chunks, whole and by
their place in the order of the table; what a function or an engine lent is copied. Each later one
hands on what was kept, in that order, cut into pieces. QED
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.cells import Kind
from dpreg.columns import ColumnType
from dpreg.sources import spool
from dpreg.sources.base import Chunk, Integers, find_column
from dpreg.sources.local import LocalSource, Piece, rows_of

__all__ = ["HeldSource"]

_Cells: TypeAlias = Callable[[slice], NDArray[Any]]


@dataclass(frozen=True, slots=True, repr=False)
class _Rows:
    """Some kept rows: how to read each column of them."""

    rows: int
    part: int
    cells: Mapping[str, _Cells]

    def chunk(self, names: Sequence[str], part: slice) -> Chunk:
        """Read some columns of some of the rows."""
        return {name: self.cells[name](part) for name in names}


class HeldSource(LocalSource):
    """A table whose rows are kept at the first pass.

    Parameters
    ----------
    source : LocalSource
    columns : mapping of str to ColumnType
        All that any pass asks for.
    """

    def __init__(self, source: LocalSource, columns: Mapping[str, ColumnType]) -> None:
        self._source = source
        self._columns = dict(columns)
        self._kept: list[_Rows | None] | None = None  # once the first pass has ended
        self._bytes = 0
        self._file: spool.File | None = None
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are kept."""
        return tuple(self._columns)

    @property
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None before the first pass."""
        if self._kept is None:
            return self._source.rows
        return sum(one.rows for one in self._kept if one is not None)

    @property
    def parts(self) -> int | None:
        """As of the table."""
        return self._source.parts

    @property
    def unit(self) -> str:
        """As of the table."""
        return self._source.unit

    def kind(self, name: str) -> Kind:
        """Return what the table calls a column. DataError where it is not kept."""
        find_column(self.names, name)
        return self._source.kind(name)

    def count(self, advance: Callable[[int], object] | None = None) -> int:
        """Count the rows, and keep them."""
        return int(self.total(self._columns, _count, advance=advance)[0])

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        names = tuple(columns)
        if self._kept is None:
            return self._first(names, min(size, rows_of(len(self._columns))))
        return _again(self._kept, names, size)

    def _first(self, names: Sequence[str], size: int) -> Iterator[Piece]:
        kept: list[_Rows | None] = []
        for place, piece in enumerate(self._source._pieces(self._columns, size)):
            kept.append(None)
            yield replace(piece, read=partial(self._keep, kept, place, piece, names))
        self._kept = kept

    def _keep(
        self, kept: list[_Rows | None], place: int, piece: Piece, names: Sequence[str]
    ) -> Chunk:
        chunk = piece.read()
        cells = {name: self._stored(chunk[name]) for name in self._columns}
        kept[place] = _Rows(piece.rows, piece.part, cells)
        return {name: chunk[name] for name in names}

    def _stored(self, cells: NDArray[Any]) -> _Cells:
        with self._lock:
            self._bytes += cells.nbytes
            if self._bytes > spool.HELD_BYTES:
                if self._file is None:
                    self._file = spool.File()
                start, dtype = self._file.append(cells), cells.dtype
                return partial(_from_file, self._file, start, len(cells), dtype)
        lent = cells.base is not None and not self._source.keeps_order
        return (cells.copy() if lent else cells).__getitem__


def _again(kept: Iterable[_Rows | None], names: Sequence[str], size: int) -> Iterator[Piece]:
    for held in kept:
        assert held is not None  # a pass ends when all of its pieces have been read
        for start in range(0, held.rows, size):
            part = slice(start, min(start + size, held.rows))
            yield Piece(part.stop - start, partial(held.chunk, names, part), held.part)


def _from_file(
    file: spool.File, start: int, rows: int, dtype: np.dtype[Any], part: slice
) -> NDArray[Any]:
    first, last, _ = part.indices(rows)
    return file.read(start + first * dtype.itemsize, (last - first,), dtype)


def _count(chunks: Iterable[tuple[int, Chunk]]) -> Integers:
    return np.array([sum(len(next(iter(chunk.values()))) for _, chunk in chunks)], dtype=object)
