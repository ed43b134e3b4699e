"""Kept rows as tables: here in memory, on a cluster where they are (`dpreg.sources.persons`).

A table that this process reads is gone through once, its rows are held while those to be kept are
chosen, and those are held until the call ends: 8 bytes a cell, of the columns that the call uses.
Later passes read them and not the table; so a stream that can be read once will do. On a cluster
every pass reads the table, brings each person's rows together, and tallies what is kept.

Tested in `tests/sources/test_persons.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.cells import Kind
from dpreg.columns import ColumnType, Unbounded
from dpreg.errors import ArgumentError
from dpreg.sources.base import Chunk, Integers, Source, Tally, find_column
from dpreg.sources.cluster import ClusterSource
from dpreg.sources.local import LocalSource, Piece
from dpreg.sources.persons import COIN, Persons, keep, matrix_of, typed, unpacked

__all__ = ["KeptSource", "kept_source"]

_PART_ROWS = 1 << 18


def kept_source(
    source: Source,
    columns: Mapping[str, ColumnType],
    persons: Persons,
    advance: Callable[[int], object] | None = None,
) -> Source:
    """Take the kept rows of a table.

    Parameters
    ----------
    source : Source
    columns : mapping of str to ColumnType
        All that the call uses.
    persons : Persons
    advance : callable, optional
        As for `Source.total`. A table that this process reads is read here; one that is on a
        cluster is not.
    """
    read = persons.read_with(columns)
    if isinstance(source, ClusterSource):
        return SpreadSource(source.limited(read, persons), columns)
    if not isinstance(source, LocalSource):
        raise ArgumentError(f"person needs rows that can be grouped, and not {source!r}")
    names = tuple(columns)
    parts = [
        matrix_of(chunk, names, persons.column) for chunk in source.chunks(read, advance=advance)
    ]
    rows = np.concatenate([*parts, np.empty((0, 2 + len(names)))])
    parts.clear()
    kept = dict(unpacked(keep(rows, persons.rows, persons.key), names))
    return KeptSource(kept, columns)


class KeptSource(LocalSource):
    """Kept rows in memory. Every chunk holds the coins, too."""

    __slots__ = ("_cells", "_rows")

    def __init__(
        self, cells: Mapping[str, NDArray[np.float64]], columns: Mapping[str, ColumnType]
    ) -> None:
        self._rows = len(cells[COIN])
        self._cells = {name: typed(cells[name], how) for name, how in columns.items()}
        self._cells[COIN] = cells[COIN]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that the call uses."""
        return tuple(name for name in self._cells if name != COIN)

    @property
    def rows(self) -> int:
        """Number of kept rows; private under both relations."""
        return self._rows

    @property
    def parts(self) -> int:
        """Blocks of 262,144 rows."""
        return -(-self._rows // _PART_ROWS)

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever the table calls the column."""
        find_column(self.names, name)
        return "numeric"

    def count(self) -> int:
        """Return `rows`."""
        return self._rows

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        names = (*columns, COIN)

        def read(part: slice) -> Chunk:
            return {name: self._cells[name][part] for name in names}

        for start in range(0, self._rows, size):
            part = slice(start, min(start + size, self._rows))
            yield Piece(part.stop - start, partial(read, part), start // _PART_ROWS)


class SpreadSource:
    """Kept rows on a cluster: `kept` holds them as numbers, in columns c0, c1, ..., and coins."""

    __slots__ = ("_kept", "_places")

    def __init__(self, kept: ClusterSource, columns: Mapping[str, ColumnType]) -> None:
        self._kept = kept
        self._places = {name: f"c{place}" for place, name in enumerate(columns)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that the call uses."""
        return tuple(self._places)

    @property
    def rows(self) -> None:
        """None: only a pass would tell."""
        return None

    @property
    def parts(self) -> int | None:
        """Partitions."""
        return self._kept.parts

    @property
    def unit(self) -> str:
        """What one part is called, in the singular."""
        return self._kept.unit

    @property
    def rereadable(self) -> bool:
        """Whether more than one pass can be made."""
        return True

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever the table calls the column."""
        find_column(self.names, name)
        return "numeric"

    def count(self) -> int:
        """Count the kept rows where they are."""
        return self._kept.count()

    def total(
        self,
        columns: Mapping[str, ColumnType],
        tally: Tally,
        *,
        positions: bool = False,
        advance: Callable[[int], object] | None = None,
    ) -> Integers:
        """Make one pass where the rows are; see `Source.total`. No row has a place."""
        assert not positions
        plain = {self._places[name]: how for name, how in columns.items()}
        names = {place: name for name, place in self._places.items()}
        as_read = dict.fromkeys([*plain, "coin"], Unbounded())
        return self._kept.total(as_read, _AsRead(tally, plain, names), advance=advance)


@dataclass(frozen=True, slots=True)
class _AsRead:
    """A tally of chunks whose columns have their own names and types again."""

    tally: Tally
    columns: dict[str, ColumnType]
    names: dict[str, str]

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        return self.tally((start, self._chunk(chunk)) for start, chunk in chunks)

    def _chunk(self, chunk: Chunk) -> dict[str, NDArray[Any]]:
        cells = {self.names[place]: typed(chunk[place], how) for place, how in self.columns.items()}
        return {**cells, COIN: chunk["coin"]}
