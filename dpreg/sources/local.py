"""Sources whose rows this process reads: in pieces, by several threads where it pays."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError
from dpreg.running import restore_interrupts
from dpreg.running import threads as threads_allowed
from dpreg.sources.base import Chunk, Integers, NamedSource, Tally, added, tallied

__all__ = ["CHUNK_ROWS", "LocalSource", "Piece", "rows_of"]

CHUNK_ROWS = 1 << 15
"""Most rows of a chunk of few columns, unless asked otherwise: threads that take more at a time
wait less for each other, and a chunk of twenty columns still fits a cache."""

_MOST_CELLS = 5 << 19
_BLOCK_ROWS = 1 << 13  # what moments are multiplied by at a time
_LEAST_ROWS = 1 << 12

_THREADED_PIECES = 4  # a table of fewer chunks is read sooner by one thread than threads start
_MOST_THREADS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows that are still to be turned into a chunk.

    Attributes
    ----------
    rows : int
        How many.
    read : callable
        Makes the chunk. It may run in any thread, once.
    part : int
        Which row group or block they belong to; never falls from one piece to the next.
    """

    rows: int
    read: Callable[[], Chunk]
    part: int


class LocalSource(NamedSource):
    """A source whose rows this process reads.

    Attributes
    ----------
    hold : bool
        Whether a call that makes several passes may keep the rows (`dpreg.sources.held`).
    """

    hold: bool = True

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None where only a pass would tell."""

    @property
    def unit(self) -> str:
        """What one part is called, in the singular."""
        return "block"

    @property
    def keeps_order(self) -> bool:
        """Whether every pass gives the rows in the same order: not what runs a query again."""
        return True

    @property
    def fleeting(self) -> bool:
        """Whether another pass would parse text, run a query or a function again, or find nothing.

        Several passes then go over rows that the first one kept.
        """
        return not (self.keeps_order and self.rereadable)

    @abstractmethod
    def count(self) -> int:
        """Count the rows, where `rows` is None."""

    @abstractmethod
    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        """Cut the rows into pieces of at most `size` and at least one row, in the table's order.

        Called with checked arguments. An error of the engine comes out as a DataError.
        """

    def chunks(
        self,
        columns: Mapping[str, ColumnType],
        size: int = CHUNK_ROWS,
        *,
        advance: Callable[[int], object] | None = None,
    ) -> Iterator[Chunk]:
        """Read some columns, chunk by chunk, in the table's order.

        Parameters
        ----------
        columns : mapping of str to ColumnType
            As for `Source.total`.
        size : int
            Largest number of rows in a chunk.
        advance : callable, optional
            As for `Source.total`.

        Returns
        -------
        iterator of dict
            One array per column, all of the chunk's length. `Numeric` and `Unbounded`: float64,
            NaN where missing, infinities kept, not clipped. `Boolean`: float64 0/1, NaN where
            missing. `Categorical`: int32 codes into its levels, -1 where missing or undeclared.
            The arrays may be views of the table: do not write into them. A table of no rows gives
            no chunk.

        Raises
        ------
        DataError
            As `check_columns` says; before a row is read.
        """
        return (chunk for _, chunk in _Queue(self._checked(columns, size), advance))

    def total(
        self,
        columns: Mapping[str, ColumnType],
        tally: Tally,
        *,
        positions: bool = False,
        advance: Callable[[int], object] | None = None,
    ) -> Integers:
        """Make one pass, in several threads where there are chunks for them; see `Source.total`."""
        queue = _Queue(self._checked(columns, rows_of(len(columns))), advance)
        threads = threads_allowed(_MOST_THREADS)
        if threads == 1 or queue.is_short():
            return added([tallied(tally, queue)])
        with ThreadPoolExecutor(threads) as pool:
            running = [pool.submit(tallied, tally, queue) for _ in range(threads)]
            try:
                sums = [one.result() for one in running]
            except BaseException:
                queue.close()
                raise
        return added(sums)

    def _checked(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        if size < 1:
            raise ArgumentError("size, the number of rows in a chunk, must be a positive integer")
        self._check(columns)
        return self._pieces(columns, size)


def rows_of(columns: int) -> int:
    """Return the rows of a chunk: of many columns it has fewer, and takes no more memory."""
    rows = _MOST_CELLS // max(columns, 1) // _BLOCK_ROWS * _BLOCK_ROWS
    return max(_LEAST_ROWS, min(CHUNK_ROWS, rows))


def _read(piece: Piece) -> Chunk:
    with np.errstate(all="ignore"):  # no warning may tell of a cell
        return piece.read()


class _Queue:
    """Pieces for several threads: each takes the next one, and turns it into a chunk by itself.

    Taking is what reads a file, one piece at a time under a lock; turning into a chunk, and all
    that a tally does with it, runs side by side. Who makes the pieces may import Polars only now,
    so Python's handling of Ctrl-C is put back once they have begun to come.
    """

    def __init__(self, pieces: Iterator[Piece], advance: Callable[[int], object] | None) -> None:
        self._pieces = pieces
        self._advance = advance
        self._lock = threading.Lock()
        self._start = 0
        self._part = 0
        self._ahead: list[Piece] = []

    def is_short(self) -> bool:
        """Look whether only a few pieces are left."""
        for piece in self._pieces:
            self._ahead.append(piece)
            if len(self._ahead) >= _THREADED_PIECES:
                break
        restore_interrupts()
        self._ahead.reverse()
        return len(self._ahead) < _THREADED_PIECES

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._ahead = []
            self._pieces = iter(())

    def __iter__(self) -> Iterator[tuple[int, Chunk]]:
        while True:
            with self._lock:
                piece = self._ahead.pop() if self._ahead else next(self._pieces, None)
                if piece is None:
                    self._finish()
                    return
                start, self._start = self._start, self._start + piece.rows
                self._tell(piece.part)
            yield start, _read(piece)

    def _tell(self, part: int) -> None:
        if self._advance is not None and part > self._part:
            self._advance(part - self._part)
        self._part = max(part, self._part)

    def _finish(self) -> None:
        if self._start:
            self._tell(self._part + 1)
        self._start = 0
