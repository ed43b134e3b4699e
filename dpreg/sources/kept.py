"""Rows that a call keeps: those of a fleeting table for later passes, and those of persons.

Text takes longer to parse than to sum, a query runs as long each time, and a stream can be read
once. So where a call makes several passes over such a table, its first pass keeps what it reads
(`HeldSource`): the cells of the columns that the call uses, 8 bytes a number and 4 a label; or what
is made of them, where all passes ask for that.

Where rows are those of persons (`dpreg.sources.persons`), a table that this process reads is gone
through once: its rows are brought together by person, those to be kept are chosen, and
these stay until the call ends (`KeptSource`), 8 bytes a cell. Later passes read them and not the
table; so a stream that can be read once will do. On a cluster every pass reads the table, brings
each person's rows together, and tallies what is kept (`dpreg.sources.cluster`).

Both are in memory up to `HELD_BYTES`, and beyond in a file without a name. Where they go shows in
time, memory and disk space only, as the number of rows does anyway. Rows of persons that go to a
file are sorted into 256 parts by the first byte of the keyed hash of the id, so that all rows of a
person are in one part; then part by part each person's rows are put next to each other, and written
to a second file, from which the passes read. No more than a part, or the limit, is in memory.

Statement. All passes over a `HeldSource` give each row the same values and places as one pass over
the table itself.

Proof. The first pass hands on the chunks of the table, and keeps these very chunks, whole and by
their place in the order of the table; what a function or an engine lent is copied. Each later one
hands on what was kept, in that order, cut into pieces. QED

Statement. Every chunk of every pass over a `KeptSource` holds all kept rows of each of its persons.

Proof. A block holds whole persons with the rows of each next to each other, since their hash
decides the part of the file and `keep` returns them so; and a block is cut where the hash changes,
and nowhere else (`_cuts`). QED

The files
---------
Only this process can read them, and nothing removes them but their end. On POSIX systems
`tempfile.TemporaryFile` makes a file that has no name, or drops the name before anything is
written, with access for the user alone; the system frees it when its last descriptor is closed, by
this process or by its end, whatever ends it (a signal that cannot be caught, too). On Windows the
file is opened so that the system deletes it when it is closed, likewise. A forked child holds the
descriptor as long as it lives. ``TMPDIR`` says where; rows are not encrypted there, as they are
not in swapped memory.

Tested in `tests/sources/test_held.py`, `tests/sources/test_persons.py`,
`tests/sources/test_spool.py` and `tests/sources/test_together_forms.py`.
"""

from __future__ import annotations

import math
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Places
from dpreg.cells import Kind
from dpreg.columns import Columns, Unbounded
from dpreg.sources.base import (
    PART_ROWS,
    Advance,
    Chunk,
    Integers,
    LocalSource,
    Piece,
    find_column,
    guarded,
    rows_of,
    slices,
)
from dpreg.sources.persons import Persons, keep, matrix_of, persons_of, unpacked

MADE: Final = "made"
"""What is made of rows, as chunks name it."""
Make: TypeAlias = Callable[[Chunk], NDArray[Any]]

Rows: TypeAlias = NDArray[np.float64]
"""Rows as `dpreg.sources.persons.matrix_of` writes them, the two halves of the hash first."""

HELD_BYTES = 1 << 29
"""Cells of a table that are kept in memory: of 4.2 million rows of 16 columns. Where rows of
persons are put in order, twice as much is in use meanwhile."""
_WRITE_BYTES = 1 << 26
"""Rows that are sorted and written at a time, where they go to a file."""
_READ_ROWS = 1 << 18
"""Rows that are read at a time: each id among them is hashed once."""
_PARTS: Final = 256
_FAILED: Final = (
    "the temporary file for the rows failed: the disk may be full. Set TMPDIR to a folder with "
    "room for the table"
)


class File:
    """A file without a name, which goes with this object."""

    def __init__(self) -> None:
        # Without a buffer: what did not fit on a disk is not written again when it is closed.
        self.cells: Any = guarded(
            lambda: tempfile.TemporaryFile(prefix="dpreg-", buffering=0),  # noqa: SIM115
            _FAILED,
        )
        self._end = 0
        self.lock = threading.Lock()
        self.close = weakref.finalize(self, self.cells.close)

    def append(self, cells: NDArray[Any]) -> _Filed:
        """Write an array; return what reads it."""
        filed = _Filed(self, self._end, cells.shape, cells.dtype)
        self._end += cells.nbytes

        def write() -> None:
            self.cells.seek(filed.start)
            left = np.ascontiguousarray(cells).reshape(-1).view(np.uint8).data
            while left:
                left = left[self.cells.write(left) :]

        if cells.nbytes:
            guarded(write, _FAILED)
        return filed


@dataclass(frozen=True, slots=True, repr=False)
class _Filed:
    """An array in a file: ranges of it are read when they are asked for."""

    file: File
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __getitem__(self, part: slice) -> NDArray[Any]:
        first, last, _ = part.indices(self.shape[0])
        shape = (last - first, *self.shape[1:])
        row = self.dtype.itemsize * math.prod(shape[1:])

        def read() -> NDArray[Any]:
            self.file.cells.seek(self.start + first * row)
            found = np.fromfile(self.file.cells, self.dtype, math.prod(shape))
            if found.size < math.prod(shape):
                raise OSError
            return found.reshape(shape)

        with self.file.lock:  # two passes may be under way
            return guarded(read, _FAILED)


_Kept: TypeAlias = NDArray[Any] | _Filed


class HeldSource(LocalSource):
    """A table whose rows are kept at the first pass.

    Parameters
    ----------
    source : LocalSource
    columns : mapping of str to ColumnType
        All that any pass asks for.
    """

    __slots__ = ("_kept",)

    def __init__(self, source: LocalSource, columns: Columns) -> None:
        self.names = tuple(columns)
        self.rows, self.parts, self.unit = source.rows, source.parts, source.unit
        self._source = source
        self._columns = dict(columns)
        self._kept: list[tuple[Piece, dict[str, _Kept]]] | None = None  # once a pass has ended
        self._bytes = 0
        self._file: File | None = None
        self._lock = threading.Lock()

    def kind(self, name: str) -> Kind:
        """Return what the table calls a column. DataError where it is not kept."""
        find_column(self.names, name)
        return self._source.kind(name)

    def count(self, advance: Advance = None) -> int:
        """Count the rows, and keep them."""
        return int(self.total(self._columns, count_rows, advance=advance)[0])

    def making(self, columns: Columns, make: Make) -> HeldSource:
        """Return what keeps what is made of each chunk of some columns, row by row, as MADE.

        It reads the rows that are kept; or, before any are, the table.
        """
        source = self._source if self._kept is None else self
        found = HeldSource(_MadeSource(source, columns, make), {MADE: Unbounded()})
        found._bytes = self._bytes
        return found

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        if self._kept is not None:
            for piece, cells in self._kept:
                wanted = {name: cells[name] for name in columns}
                for part in slices(piece.rows, size):
                    yield Piece(part.stop - part.start, partial(_cut, wanted, part), piece.part)
            return
        kept: list[tuple[Piece, dict[str, _Kept]]] = []
        for piece in self._source._pieces(self._columns, min(size, rows_of(len(self._columns)))):
            cells = {}
            kept.append((replace(piece, read=dict), cells))  # without what it is read from
            yield replace(piece, read=partial(self._keep, piece, cells, columns))
        self._kept = kept
        self.rows = sum(piece.rows for piece, _ in kept)

    def _keep(self, piece: Piece, cells: dict[str, _Kept], names: Collection[str]) -> Chunk:
        chunk = piece.read()
        cells.update({name: self._stored(chunk[name]) for name in self._columns})
        return {name: chunk[name] for name in names}

    def _stored(self, cells: NDArray[Any]) -> _Kept:
        with self._lock:
            self._bytes += cells.nbytes
            if self._bytes > HELD_BYTES:
                self._file = self._file or File()
                return self._file.append(cells)
        return cells if cells.base is None else cells.copy()


class _MadeSource(LocalSource):
    """What is made of each chunk of a table."""

    def __init__(self, source: LocalSource, columns: Columns, make: Make) -> None:
        self.names, self.rows = (MADE,), source.rows
        self.parts, self.unit = source.parts, source.unit
        self._source, self._columns, self._make = source, columns, make

    def kind(self, name: str) -> Kind:
        """Return "numeric"."""
        return "numeric"

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        for piece in self._source._pieces(self._columns, size):
            yield replace(piece, read=partial(self._made, piece))

    def _made(self, piece: Piece) -> Chunk:
        return {MADE: self._make(piece.read())}


def _cut(cells: Mapping[str, _Kept], part: slice) -> Chunk:
    return {name: column[part] for name, column in cells.items()}


def count_rows(chunks: Iterable[tuple[int, Chunk]]) -> Integers:
    """Count rows, of at least one column."""
    return np.array([sum(len(next(iter(chunk.values()))) for _, chunk in chunks)], dtype=object)


def kept_source(
    source: LocalSource, columns: Columns, persons: Persons, advance: Advance = None
) -> KeptSource:
    """Read a table, and take the rows that are kept of each person.

    Parameters
    ----------
    source : LocalSource
    columns : mapping of str to ColumnType
        All that the call uses.
    persons : Persons
    advance : callable, optional
        As for `Source.total`.
    """
    spool = _Spool(columns, persons)
    for chunk in source.chunks(persons.read_with(columns), _READ_ROWS, advance=advance):
        spool.add(matrix_of(chunk, tuple(columns), persons.column))
    return spool.source()


class KeptSource(LocalSource):
    """Kept rows in this process. Chunks hold whole persons, their numbers and their coins.

    Parameters
    ----------
    blocks : sequence of arrays
        Each of all kept rows of some persons, as `keep` returns them.
    columns : mapping of str to ColumnType
        All that the call uses.
    file : File, optional
        Where the blocks go.

    Attributes
    ----------
    rows : int
        Number of kept rows; private under both relations.
    person_count : int
        Number of ids, whatever else is missing in their rows; private under add-remove.
    """

    __slots__ = ("_blocks",)

    def __init__(self, blocks: Iterable[Rows], columns: Columns, file: File | None = None) -> None:
        self.names = tuple(columns)
        self.rows = self.person_count = 0
        self._columns = dict(columns)
        self._blocks: list[_Kept] = []
        for rows in blocks:
            block = np.ascontiguousarray(rows.T)  # columns first, as a pass reads them
            self.rows += block.shape[1]
            self.person_count += len(persons_of(block))
            self._blocks.append(block if file is None else file.append(block))
        self.parts = -(-self.rows // PART_ROWS)

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever the table calls the column."""
        find_column(self.names, name)
        return "numeric"

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        """Cut blocks between persons: a person of more rows than `size` is one piece."""
        before = 0
        for kept in self._blocks:
            block = kept[:]
            for part in _cuts(persons_of(block), block.shape[1], size):
                read = partial(unpacked, block[:, part], self._columns, columns)
                yield Piece(part.stop - part.start, read, (before + part.start) // PART_ROWS)
            before += block.shape[1]


def _cuts(starts: Places, rows: int, size: int) -> Iterator[slice]:
    """Cut rows into pieces of at most `size` and of whole persons, or of one person."""
    ends = np.append(starts, rows)
    first = 0
    while first < rows:
        fit = int(np.searchsorted(ends, first + size, side="right")) - 1  # the last end in time
        last = int(ends[fit] if ends[fit] > first else ends[fit + 1])
        yield slice(first, last)
        first = last


class _Spool:
    """Collects rows of persons, of the columns that a call uses."""

    def __init__(self, columns: Columns, persons: Persons) -> None:
        self._columns, self._persons = columns, persons
        self._waiting: list[Rows] = []
        self._bytes = 0
        self._file: File | None = None
        self._parts: list[list[tuple[_Filed, slice]]] = [[] for _ in range(_PARTS)]

    def add(self, rows: Rows) -> None:
        """Take some rows."""
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > (HELD_BYTES if self._file is None else _WRITE_BYTES):
            self._write()

    def source(self) -> KeptSource:
        """Bring persons' rows together. Call it once, when all rows have been taken."""
        kept = partial(keep, most=self._persons.rows, key=self._persons.key)
        if self._file is None:
            held = np.concatenate([*self._waiting, np.empty((0, 2 + len(self._columns)))])
            self._waiting.clear()
            return KeptSource([kept(held)], self._columns)
        self._write()
        parts = ([filed[rows] for filed, rows in part] for part in self._parts if part)
        source = KeptSource((kept(np.concatenate(part)) for part in parts), self._columns, File())
        self._file.close()
        return source

    def _write(self) -> None:
        """Write what is held, by parts."""
        self._file = self._file or File()
        while self._waiting:
            some = [self._waiting.pop()]
            while self._waiting and sum(one.nbytes for one in some) < _WRITE_BYTES:
                some.append(self._waiting.pop())
            rows = np.concatenate(some)
            part = rows[:, 0].view(np.uint64) >> np.uint64(56)
            filed = self._file.append(rows[np.argsort(part, kind="stable")])
            ends = np.cumsum(np.bincount(part.astype(np.intp), minlength=_PARTS)).tolist()
            for which, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
                if start < end:
                    self._parts[which].append((filed, slice(start, end)))
        self._bytes = 0
