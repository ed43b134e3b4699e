"""What every table is to the rest of dpreg: public names, and passes that add integers.

A **pass** goes through all rows once and comes back with a vector of integers, the sum over the
rows of what a `Tally` makes of each: counts, exact moments. Integer addition is associative and
commutative, so the sum is the same, bit for bit, whatever holds the rows: one array, a file read in
pieces by several threads, the partitions of a cluster, each summed where it is.

Why a retried task is harmless. On a cluster a task may be run again (a worker died, a node was
slow), and a tally that tosses coins, which half a row goes to, tosses them anew. All that a task
made of its rows leaves it as **one** vector, in which every row of the partition stands exactly
once, under the coin of that attempt; every engine adds exactly one attempt's vector for each
partition, whole. So each row is in one half and not in the other, its coin is a fair one that no
row's value had a say in, and the result is distributed as if nothing had failed. Two passes, one
for each half, would draw twice; so would handing on parts of a task's result separately, since a
lost part would come from another attempt than its siblings.

Public about a table
    Its **column names**, as the container spells them; under replace-one its **number of rows**.
    Nothing else. What a column holds is said by the schema, by ``levels=[...]`` in a formula, by
    ``bounds=`` of a call: by somebody who wrote it down, and never by the table.

Kinds are not public
    What a container calls a column (float64, object, bool, category; Arrow's, a database's or
    Spark's type) is often inferred from its rows: one missing cell turns a column of truths into
    one of objects, one word turns numbers into text. A `Kind` therefore never decides what is
    bought, drawn, named, computed or released, nor what a warning says:

    - a *declared* column is read cell by cell as its declaration says, whatever its kind
      (`dpreg.cells`);
    - a column that a call uses and nobody declares is read as numbers, cell by cell, and is
      `Unbounded`: its bounds are bought. That holds for every kind that is read at all. One warning
      names all such columns before the charge (`dpreg.formula.bounds.announce`);
    - blocks of `dpreg.sample_aggregate` hold columns in types that follow from the schema
      (`dpreg.api.aggregate`).

What a kind may still do
    Refuse, before anything is charged or read: `Source.check` stops a call that uses a column of
    text, labels or dates which nobody declared, so that no budget is burned on a column of missing
    cells. The cost of that courtesy: whether the call is refused tells the curator what the
    container says of the column. Where the container inferred it, that is a fact about the rows; it
    is named in an error message, before anything is released, and a declaration ends it.

    Only the kinds known *before the charge* count. Chunks, partitions and record batches that come
    later are read cell by cell, whatever kinds they come as.

Tested in `tests/sources/test_local.py` and `tests/sources/test_table.py`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, islice
from operator import add
from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpreg.cells import Kind
from dpreg.columns import Columns, ColumnType, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError, did_you_mean, shown
from dpreg.running import restore_interrupts, threads

_T = TypeVar("_T")

_END = object()
_SHOWN: Final = 20
"""Names of columns that an error lists."""

CHUNK_ROWS = 1 << 15
"""Most rows of a chunk of few columns, unless asked otherwise: threads that take more at a time
wait less for each other, and a chunk of twenty columns still fits a cache."""
PART_ROWS = 1 << 18
"""Rows of a part, of tables that know of no parts of their own."""

_MOST_CELLS = 5 << 19
_BLOCK_ROWS = 1 << 13  # what moments are multiplied by at a time
_LEAST_ROWS = 1 << 12

_THREADED_PIECES = 4  # a table of fewer chunks is read sooner by one thread than threads start
_MOST_THREADS = 8

Chunk: TypeAlias = dict[str, NDArray[Any]]
"""Some rows of some columns, as `LocalSource.chunks` says."""

Advance: TypeAlias = Callable[[int], object] | None
"""Called with the number of parts of a table that have been finished since its last call."""

Integers: TypeAlias = NDArray[np.object_] | NDArray[np.int64]
"""A vector of integers. Engines add them as Python's, which are exact whatever their size."""


class Tally(Protocol):
    """What a pass adds up: a function from rows to a vector of integers.

    It holds public facts and coins, never rows; it is pickled and sent where the rows are, and one
    instance may be called by several threads at a time. The vector's length is public, and is the
    same for no rows at all.
    """

    def __call__(self, chunks: Iterable[tuple[int, Chunk]], /) -> Integers:
        """Sum over some of the rows.

        Parameters
        ----------
        chunks : iterable of (int, Chunk)
            With the place of a chunk's first row in the whole table, where the pass was asked for
            positions; on a cluster without that, in its partition.
        """


class Source(ABC):
    """A table whose rows can be gone through, as often as `rereadable` says.

    Names and kinds are known before any row is read; of them names are public, and kinds may do no
    more than refuse. Rows are confidential: a source's repr, for the curator's eyes, shows names
    and kinds only, and a source cannot be pickled.

    An implementation must give every row the same values whatever the engine, the pieces, or the
    other rows. It raises and warns on public facts only: in `total`, before a row is read, or
    because the engine failed (a file cut short, a lost cluster); such an error says which engine
    and what kind of failure, and holds nothing of the rows.

    Attributes
    ----------
    names : tuple of str
        Column names in the table's order, repeats included; labels not of text are left out.
    rows : int or None
        Number of rows (private under add-remove); None where only a pass would tell.
    parts : int or None
        Row groups, partitions, blocks: what a progress bar counts. None where unknown.
    unit : str
        What one part is called, in the singular.
    rereadable : bool
        Whether more than one pass can be made.
    """

    names: tuple[str, ...]
    rows: int | None = None
    parts: int | None = None
    unit: str = "block"
    rereadable: bool = True

    @abstractmethod
    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""

    @abstractmethod
    def count(self) -> int:
        """Count the rows, where `rows` is None: reads no value, but may have to open every file."""

    @abstractmethod
    def total(
        self, columns: Columns, tally: Tally, *, positions: bool = False, advance: Advance = None
    ) -> Integers:
        """Make one pass.

        Parameters
        ----------
        columns : mapping of str to ColumnType
            What to read, and how: the schema's entry, or `Unbounded()` for a numeric column that
            the schema leaves undeclared. At least one.
        tally : Tally
        positions : bool
            Whether chunks must come with their place in the whole table. A cluster counts its
            partitions first: for seeded runs only.
        advance : callable, optional
            Told how many parts have been finished since the last call.

        Returns
        -------
        ndarray of object or of int64, one dimension
            The sum of the tally over all rows.

        Raises
        ------
        DataError
            As `check` says, before a row is read; or because the engine failed.
        """

    def check(self, columns: Columns) -> None:
        """Refuse, before a row is read, a pass over columns that cannot be read as declared.

        Raises
        ------
        DataError
            If a column is absent or its name repeated, or holds a NUL; or if it is `Unbounded`,
            that is undeclared, and its kind is text, labels, dates, or nothing that is read; or if
            it is to name persons, and its kind is dates or nothing that is read.
        ArgumentError
            If there is no column.

        Notes
        -----
        A *declared* column is read cell by cell whatever its kind: dates in a column of numbers are
        missing cells. To refuse the kind would tell of the rows wherever it was inferred from them:
        a list of dates is a column of dates until one row of it is a number.
        """
        if not columns:
            raise ArgumentError("a pass over the rows must read at least one column")
        for name, declared in columns.items():
            if "\0" in name:  # names of dpreg's own, such as that of persons' coins, begin so
                raise DataError(f"column {name!r} has a NUL character in its name: rename it")
            if not isinstance(declared, ColumnType):
                raise ArgumentError(f"column {name!r} is to be read as no known type of column")
            kind = self.kind(name)
            if isinstance(declared, PersonId) and kind in ("datetime", "other"):
                raise DataError(
                    f"person={name!r} holds neither numbers nor text: name a column of ids that are"
                )
            if not isinstance(declared, Unbounded):
                continue
            if kind == "datetime":
                raise DataError(
                    f"column {name!r} holds dates or times: make a number of it (days since a "
                    "fixed date, say), or leave it out"
                )
            if kind == "other":
                raise DataError(f"column {name!r} holds neither numbers nor labels: leave it out")
            if kind in ("string", "category"):
                raise DataError(
                    f"column {name!r} holds text or labels and the schema "
                    f'does not declare it: add {name!r}: ["level", ...] to the schema, or '
                    f"{name!r}: (lowest, highest) if it denotes numbers"
                )

    def __repr__(self) -> str:
        """Show names and kinds, and nothing of the rows, not even how many."""
        return f"Source({', '.join(f'{name}: {self._shown(name)}' for name in self.names)})"

    def _shown(self, name: str) -> str:
        if self.names.count(name) > 1:
            return "repeated"
        try:
            return self.kind(name)
        except DataError:
            return "not in all files"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise DataError("a source holds confidential rows and is not pickled: pickle the results")


def find_column(names: Sequence[str], name: str) -> int:
    """Return a column's place. DataError where the name is absent or repeated."""
    times = names.count(name)
    if not times:
        more = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        listed = f"; it has {', '.join(names[:_SHOWN])}{more}"
        raise DataError(f"the table has no column {shown(name)}{did_you_mean(name, names, listed)}")
    if times > 1:
        raise DataError(f"the table has several columns named {shown(name)}: keep or rename one")
    return names.index(name)


def tallied(tally: Tally, pieces: Iterable[tuple[int, Piece]]) -> Integers:
    """Turn pieces into chunks and tally them, with NumPy's numerical warnings off.

    One could tell of a row. A call turns them off for itself, but threads and other processes do
    not take over its state.
    """
    with np.errstate(all="ignore"):
        return tally((start, piece.read()) for start, piece in pieces)


def added(vectors: Iterable[Integers]) -> Integers:
    """Add what several tallies made, at least one, in integers of any size.

    In int64 where they come so and their sum fits: objects take five times the memory.
    """
    several: list[NDArray[Any]] = [np.asarray(vector) for vector in vectors]
    most = sum(max(int(vector.max()), -int(vector.min())) for vector in several if len(vector))
    if most >= 2**63 or any(vector.dtype != np.int64 for vector in several):
        several = [vector.astype(object) for vector in several]
    return np.asarray(reduce(add, several))


def guarded(work: Callable[[], _T], failed: str) -> _T:
    """Call an engine; its failure becomes a `DataError` that holds nothing of what it said.

    DuckDB, for one, quotes the cell that it could not cast.

    Parameters
    ----------
    work : callable
    failed : str
        What to say, from public facts; the exception's type is added.
    """
    try:
        return work()
    except Exception as error:
        kind = type(error).__name__
    # Outside the handler, so that the engine's exception is not even this one's context.
    raise DataError(f"{failed} ({kind})")


def guarded_items(items: Iterator[Any], failed: str) -> Iterator[Any]:
    """Go through what an engine hands over, guarded, and close it however that ends."""
    try:
        while (item := guarded(partial(next, items, _END), failed)) is not _END:
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            guarded(close, failed)


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

    def chunk(self) -> Chunk:
        """Make the chunk; no warning may tell of a cell."""
        with np.errstate(all="ignore"):
            return self.read()


def slices(rows: int, size: int) -> Iterator[slice]:
    """Cut rows into ranges of at most `size`."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


class LocalSource(Source):
    """A source whose rows this process reads: in pieces, by several threads where it pays.

    Attributes
    ----------
    hold : bool
        Whether a call that makes several passes may keep the rows (`dpreg.sources.kept`).
    fleeting : bool
        Whether another pass would parse text, run a query or a function again, or find nothing.
        Several passes then go over rows that the first one kept.
    """

    hold: bool = True
    fleeting: bool = False

    def count(self) -> int:
        """Return `rows`, or count them by going through those of the first column."""
        if self.rows is not None:
            return self.rows
        return sum(piece.rows for piece in self._pieces({}, CHUNK_ROWS))

    @abstractmethod
    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        """Cut the rows into pieces of at most `size` and at least one row, in the table's order.

        Called with checked arguments. An error of the engine comes out as a DataError.
        """

    def chunks(
        self, columns: Columns, size: int = CHUNK_ROWS, *, advance: Advance = None
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
            As `check` says; before a row is read.
        """
        if size < 1:
            raise ArgumentError("size, the number of rows in a chunk, must be a positive integer")
        self.check(columns)
        return (piece.chunk() for _, piece in placed(self._pieces(columns, size), advance))

    def total(
        self, columns: Columns, tally: Tally, *, positions: bool = False, advance: Advance = None
    ) -> Integers:
        """Make one pass, in several threads where there are chunks for them; see `Source.total`.

        Each thread takes the next piece, and turns it into a chunk by itself. Taking is what reads
        a file, one piece at a time under a lock; turning into a chunk, and all that a tally does
        with it, runs side by side.
        """
        self.check(columns)
        pieces = placed(self._pieces(columns, rows_of(len(columns))), advance)
        running, lock = threads(_MOST_THREADS), threading.Lock()
        ahead = list(islice(pieces, _THREADED_PIECES if running > 1 else 0))
        restore_interrupts()  # who makes the pieces may have imported Polars only now
        queue = chain(ahead, pieces)
        if len(ahead) < _THREADED_PIECES:
            return added([tallied(tally, queue)])

        def taken() -> Iterator[tuple[int, Piece]]:
            while True:
                with lock:
                    found = next(queue, None)
                if found is None:
                    return
                yield found

        with ThreadPoolExecutor(running) as pool:
            try:
                return added(pool.map(lambda _: tallied(tally, taken()), range(running)))
            except BaseException:
                with lock:
                    pieces.close()  # the other threads find nothing more
                raise


def placed(
    pieces: Iterable[Piece], advance: Advance = None, start: int = 0
) -> Generator[tuple[int, Piece]]:
    """Give each piece with the place of its first row; tell of the parts that are behind."""
    rows = part = 0
    for piece in pieces:
        if advance is not None and piece.part > part:
            advance(piece.part - part)
        yield start + rows, piece
        rows, part = rows + piece.rows, piece.part
    if advance is not None and rows:
        advance(1)


def rows_of(columns: int) -> int:
    """Return the rows of a chunk: of many columns it has fewer, and takes no more memory."""
    rows = _MOST_CELLS // max(columns, 1) // _BLOCK_ROWS * _BLOCK_ROWS
    return max(_LEAST_ROWS, min(CHUNK_ROWS, rows))
