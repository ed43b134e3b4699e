"""Kept rows as tables: here, or on a cluster where they are (`dpreg.sources.persons`).

A table that this process reads is gone through once. Its rows are brought together by person, those
to be kept are chosen, and these stay until the call ends: 8 bytes a cell, of the columns that the
call uses, in memory or, where they are many, in a file without a name (`dpreg.sources.spool`).
Later passes read them and not the table; so a stream that can be read once will do. On a cluster
every pass reads the table, brings each person's rows together, and tallies what is kept.

Statement. Every chunk of every pass holds all kept rows of each of its persons.

Proof. Here: a block of `Spool` holds whole persons with the rows of each next to each other, since
their hash decides the part of the file and `keep` returns them so; and a block is cut where the
hash changes, and nowhere else (`_cuts`). On a cluster: the engine's shuffle, by a part of the hash,
brings all rows of a person into one partition; `keep` puts the rows of each next to each other and
`unpacked` numbers persons; the engine reads that partition in one task, in order, in pieces that it
cuts anywhere; `_whole` holds back the last person of each piece until the next piece begins with
another number, or nothing follows. QED

Tested in `tests/sources/test_persons.py` and `tests/sources/test_together_forms.py`.
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
from dpreg.sources.persons import COIN, PERSON, Persons, keep, matrix_of, starts_of, typed, unpacked
from dpreg.sources.spool import Blocks, Rows, Spool

__all__ = ["KeptSource", "SpreadSource", "kept_source"]

_PART_ROWS = 1 << 18
_READ_ROWS = 1 << 18
"""Rows that are read at a time: each id among them is hashed once."""


def kept_source(
    source: Source,
    columns: Mapping[str, ColumnType],
    persons: Persons,
    advance: Callable[[int], object] | None = None,
) -> KeptSource | SpreadSource:
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
    spool = Spool(2 + len(names))
    for chunk in source.chunks(read, _READ_ROWS, advance=advance):
        spool.add(matrix_of(chunk, names, persons.column))
    return KeptSource(spool.blocks(partial(keep, most=persons.rows, key=persons.key)), columns)


class KeptSource(LocalSource):
    """Kept rows in this process. Chunks hold whole persons, their numbers and their coins."""

    __slots__ = ("_blocks", "_columns")

    def __init__(self, blocks: Blocks, columns: Mapping[str, ColumnType]) -> None:
        self._blocks = blocks
        self._columns = dict(columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that the call uses."""
        return tuple(self._columns)

    @property
    def rows(self) -> int:
        """Number of kept rows; private under both relations."""
        return self._blocks.rows

    @property
    def person_count(self) -> int:
        """Number of ids; private under add-remove."""
        return self._blocks.persons

    @property
    def parts(self) -> int:
        """Blocks of 262,144 rows."""
        return -(-self.rows // _PART_ROWS)

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever the table calls the column."""
        find_column(self.names, name)
        return "numeric"

    def count(self) -> int:
        """Return `rows`."""
        return self.rows

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        """Cut blocks between persons: a person of more rows than `size` is one piece."""
        places = {name: place for place, name in enumerate(self._columns) if name in columns}
        before = 0
        for block in self._blocks:
            for part in _cuts(starts_of(block[:2]), block.shape[1], size):
                rows = part.stop - part.start
                read = partial(self._chunk, block[:, part], places)
                yield Piece(rows, read, (before + part.start) // _PART_ROWS)
            before += block.shape[1]

    def _chunk(self, rows: Rows, places: Mapping[str, int]) -> Chunk:
        chunk = unpacked(rows, places)
        return chunk | {name: typed(chunk[name], self._columns[name]) for name in places}


def _cuts(starts: NDArray[np.intp], rows: int, size: int) -> Iterator[slice]:
    """Cut rows into pieces of at most `size` and of whole persons, or of one person."""
    ends = np.append(starts[1:], rows)
    first = 0
    while first < rows:
        fit = int(np.searchsorted(ends, first + size, side="right"))  # persons that end in time
        last = int(ends[fit - 1]) if fit else 0
        if last <= first:
            last = int(ends[fit])
        yield slice(first, last)
        first = last


class SpreadSource:
    """Kept rows on a cluster: `kept` holds them as numbers, in columns c0, c1, ..., and coins."""

    __slots__ = ("_kept", "_persons", "_places")

    def __init__(self, kept: ClusterSource, columns: Mapping[str, ColumnType]) -> None:
        self._kept = kept
        self._places = {name: f"c{place}" for place, name in enumerate(columns)}
        self._persons: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that the call uses."""
        return tuple(self._places)

    @property
    def rows(self) -> None:
        """None: only a pass would tell."""
        return None

    @property
    def person_count(self) -> int:
        """Number of ids, counted where they are; private under add-remove."""
        if self._persons is None:
            self._persons = int(self.total({}, _count_persons)[0])
        return self._persons

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
        as_read = dict.fromkeys([*plain, "coin", "person"], Unbounded())
        return self._kept.total(as_read, _AsRead(tally, plain, names), advance=advance)


def _count_persons(chunks: Iterable[tuple[int, Chunk]]) -> Integers:
    """Count persons, in chunks that hold whole ones."""
    return np.array([sum(int(chunk[PERSON][-1]) + 1 for _, chunk in chunks)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _AsRead:
    """A tally of chunks whose columns have their own names and types again, and whole persons."""

    tally: Tally
    columns: dict[str, ColumnType]
    names: dict[str, str]

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        whole = _whole(chunk for _, chunk in chunks)
        return self.tally((start, self._chunk(chunk)) for start, chunk in whole)

    def _chunk(self, chunk: Chunk) -> dict[str, NDArray[Any]]:
        cells = {self.names[place]: typed(chunk[place], how) for place, how in self.columns.items()}
        numbers = chunk["person"].astype(np.int64)
        return {**cells, COIN: chunk["coin"], PERSON: numbers - numbers[0]}


def _whole(chunks: Iterable[Chunk]) -> Iterator[tuple[int, Chunk]]:
    """Cut a partition anew, between persons: its rows come by person, its chunks end anywhere."""
    start, waiting = 0, list[Chunk]()
    for chunk in chunks:
        numbers = chunk["person"]
        if not len(numbers):
            continue
        cut = int(np.searchsorted(numbers, numbers[-1]))  # where its last person begins
        if cut or (waiting and waiting[-1]["person"][-1] != numbers[-1]):
            ready = _joined([*waiting, {name: cells[:cut] for name, cells in chunk.items()}])
            yield start, ready
            start += len(ready["person"])
            waiting = []
        waiting.append({name: cells[cut:] for name, cells in chunk.items()})
    if waiting:
        yield start, _joined(waiting)


def _joined(chunks: list[Chunk]) -> Chunk:
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
