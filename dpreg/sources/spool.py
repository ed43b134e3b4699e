"""Rows in memory up to a public limit, else in a file without a name.

`dpreg.sources.held` keeps rows that later passes would have to parse again. Here rows of persons
are collected to bring them together. A table with more of them than the limit goes to a temporary
file, sorted into 256 parts by the first byte of the keyed hash of the id, so that all rows of a
person are in one part; then part by part each person's rows are put next to each other, and written
to a second file, from which the passes read. No more than a part, or the limit, is in memory.

The files
---------
Only this process can read them, and nothing removes them but their end. On POSIX systems
`tempfile.TemporaryFile` makes a file that has no name, or drops the name before anything is
written, with access for the user alone; the system frees it when its last descriptor is closed, by
this process or by its end, whatever ends it (a signal that cannot be caught, too). On Windows the
file is opened so that the system deletes it when it is closed, likewise. A forked child holds the
descriptor as long as it lives. ``TMPDIR`` says where; rows are not encrypted there, as they are
not in swapped memory. Whether rows are many enough to go to a file shows in time and disk space
only, as their number does anyway.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import DataError
from dpreg.sources.persons import starts_of

__all__ = ["HELD_BYTES", "Blocks", "File", "Rows", "Settle", "Spool"]

Rows: TypeAlias = NDArray[np.float64]
"""Rows as `dpreg.sources.persons.matrix_of` writes them, the two halves of the hash first."""

Settle: TypeAlias = Callable[[Rows], Rows]
"""Puts rows of the same person next to each other, given all rows of some persons."""

_PARTS: Final = 256
HELD_BYTES = 1 << 29
"""Cells of a table that are kept in memory: of 4.2 million rows of 16 columns. Where rows of
persons are put in order, twice as much is in use meanwhile."""
_WRITE_BYTES = 1 << 26
"""Rows that are sorted and written at a time, where they go to a file."""
_TURNED_ROWS: Final = 1 << 9
_FLOAT: Final = np.dtype(np.float64)


class File:
    """A file without a name, which goes with this object."""

    def __init__(self) -> None:
        self._file: Any = _guarded(_opened)
        self._end = 0
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, self._file.close)

    def append(self, cells: NDArray[Any]) -> int:
        """Write an array; return its place."""
        start, self._end = self._end, self._end + cells.nbytes

        def write() -> None:
            self._file.seek(start)
            left = _bytes_of(np.ascontiguousarray(cells))
            while left:
                left = left[self._file.write(left) :]

        if cells.nbytes:
            _guarded(write)
        return start

    def read(
        self, start: int, shape: tuple[int, ...], dtype: np.dtype[Any] = _FLOAT
    ) -> NDArray[Any]:
        """Read an array."""
        cells = np.empty(shape, dtype)

        def read() -> None:
            self._file.seek(start)
            left = _bytes_of(cells)
            while left:
                found = self._file.readinto(left)
                if not found:
                    raise OSError
                left = left[found:]

        if cells.nbytes:
            with self._lock:  # two passes may be under way
                _guarded(read)
        return cells


def _bytes_of(cells: NDArray[Any]) -> memoryview:
    return cells.reshape(-1).view(np.uint8).data


def _opened() -> Any:
    # Without a buffer: what did not fit on a disk is not written again when the file is closed.
    return tempfile.TemporaryFile(prefix="dpreg-", buffering=0)


def _guarded(work: Callable[[], Any]) -> Any:
    """Let no more of a failure out than that there was one."""
    try:
        return work()
    except OSError:
        failed = "the temporary file for the rows failed: the disk may be full"
    raise DataError(f"{failed}. Set TMPDIR to a folder with room for the table")


@dataclass(frozen=True, slots=True, repr=False)
class Blocks:
    """All rows, in blocks that each hold whole persons, the rows of each next to each other.

    Attributes
    ----------
    rows : int
    persons : int
        Different ids, whatever else is missing in their rows.
    """

    rows: int
    persons: int
    _held: Rows | None = None
    _file: File | None = None
    _places: tuple[tuple[int, int], ...] = ()
    _words: int = 0

    def __iter__(self) -> Iterator[Rows]:
        """Go through the blocks: arrays of shape (2 + columns, rows), in the order of hashes."""
        if self._held is not None:
            yield self._held
        if self._file is not None:
            for start, rows in self._places:
                yield self._file.read(start, (self._words, rows))


class Spool:
    """Collects rows.

    Parameters
    ----------
    words : int
        Numbers a row.
    """

    def __init__(self, words: int) -> None:
        self._words = words
        self._waiting: list[Rows] = []
        self._bytes = 0
        self._file: File | None = None
        self._parts: list[list[tuple[int, int]]] = [[] for _ in range(_PARTS)]

    def add(self, rows: Rows) -> None:
        """Take some rows."""
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > (HELD_BYTES if self._file is None else _WRITE_BYTES):
            self._write()

    def blocks(self, settle: Settle) -> Blocks:
        """Bring persons' rows together. Call it once, when all rows have been taken.

        Parameters
        ----------
        settle : callable
            Called with all rows of some persons. It may leave rows out, and no person.
        """
        if self._file is None:
            held = np.concatenate([*self._waiting, np.empty((0, self._words))])
            self._waiting.clear()
            settled = _turned(settle(held))
            return Blocks(settled.shape[1], len(starts_of(settled[:2])), settled)
        self._write()
        rows, persons, places, file = 0, 0, [], File()
        for part in self._parts:
            if part:
                read = [self._file.read(start, (n, self._words)) for start, n in part]
                settled = _turned(settle(np.concatenate(read)))
                places.append((file.append(settled), settled.shape[1]))
                rows += settled.shape[1]
                persons += len(starts_of(settled[:2]))
        self._file.close()
        return Blocks(rows, persons, None, file, tuple(places), self._words)

    def _write(self) -> None:
        """Write what is held, by parts."""
        if self._file is None:
            self._file = File()
        while self._waiting:
            some = [self._waiting.pop()]
            while self._waiting and sum(one.nbytes for one in some) < _WRITE_BYTES:
                some.append(self._waiting.pop())
            rows = np.concatenate(some)
            part = rows[:, 0].view(np.uint64) >> np.uint64(56)
            order = np.argsort(part, kind="stable")
            start = self._file.append(rows[order])
            for which, n in enumerate(np.bincount(part.astype(np.intp), minlength=_PARTS).tolist()):
                if n:
                    self._parts[which].append((start, n))
                start += n * self._words * rows.itemsize
        self._bytes = 0


def _turned(rows: Rows) -> Rows:
    """Put columns first, as a pass reads them; a few rows at a time, which stay in the cache."""
    turned = np.empty(rows.shape[::-1])
    for start in range(0, len(rows), _TURNED_ROWS):
        part = slice(start, start + _TURNED_ROWS)
        turned[:, part] = rows[part].T
    return turned
