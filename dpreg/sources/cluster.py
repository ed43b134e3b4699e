"""What sources have in common whose rows stay on a cluster: one vector a partition, added there.

The workers do what `LocalSource` does at home, each for its own partitions; integers are all that
comes back. What a failure tells is settled here too: the engine, and the class of the exception.
Its text may quote rows (a user's own plan says what it likes), so neither the text nor the
exception itself, which a traceback or a debugger would show as the cause, goes along. Workers
shield what dpreg does there in the same way; what a plan's own steps put into an engine's log is
the plan's.

Rows of persons (`dpreg.sources.persons`) are read where they are and sent on as numbers that
float64 holds exactly, so that nobody rounds them; the engine's shuffle, by a part of the keyed hash
of the id, brings the rows of a person together; `keep` does the rest, as for any table. Which rows
of a person are kept follows from that person's rows alone, and not from what else is in the
partition, so that a partition that is computed anew is the same.

Statement. Every chunk of a pass over a `SpreadSource` holds all kept rows of each of its persons.

Proof. The shuffle brings all rows of a person into one partition, which one task reads; it gathers
them all before it makes a `KeptSource` of them, and that source's chunks are such. QED

Tested in `tests/sources/test_cluster.py`, `tests/sources/test_persons.py`,
`tests/sources/test_dask.py` and `tests/sources/test_spark.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import metadata
from typing import ClassVar, Final, TypeVar

import numpy as np

from dpreg.arrays import Floats
from dpreg.cells import Kind
from dpreg.columns import Columns, ColumnType, Unbounded
from dpreg.errors import DataError
from dpreg.sources.base import CHUNK_ROWS, Advance, Chunk, Integers, Source, Tally, find_column
from dpreg.sources.kept import KeptSource, count_rows
from dpreg.sources.persons import PERSON, Persons, keep, matrix_of

_T = TypeVar("_T")

_OURS: Final = metadata.version("dpreg")

HASH: Final = ("hash0", "hash1", "hash2", "hash3")
"""Columns of a sent row that hold a person's hash, in parts of 32 bits."""


class EngineFailure(DataError):
    """An engine could not make a pass."""


def shielded(engine: str, work: Callable[[], _T]) -> _T:
    """Return what `work` does; let no more of an error out than the name of its class.

    An error on the way out of an interrupt is the interrupt.
    """
    stopped = False
    try:
        return work()
    except EngineFailure as error:  # a worker's, whose text is ours
        failed = str(error)
    except Exception as error:
        stopped = interrupted(error)
        failed = f"{engine} failed while it read the rows: {type(error).__name__}"
    if stopped:  # here, where no exception is under way that it could hold
        raise KeyboardInterrupt
    raise EngineFailure(failed)


def interrupted(error: BaseException | None) -> bool:
    """Return whether an interrupt led there: a connection that it broke off may fail afterwards."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def version_teller() -> Callable[[], str]:
    """Return a function that tells which dpreg a Python has; it is sent whole, as it may have none.

    Another version may send vectors of another shape or meaning, and the pass fails when the ledger
    has been charged. Versions are public. Workers that join later are not asked.
    """

    def version() -> str:
        from importlib import metadata

        try:
            return metadata.version("dpreg")
        except metadata.PackageNotFoundError:
            return ""

    return version


def check_versions(engine: str, ask: Callable[[], Iterable[str]]) -> None:
    """Refuse, before anything is charged, workers without the dpreg of this process."""
    others = sorted(set(shielded(engine, ask)) - {_OURS})
    if others:
        told = " and ".join(f"dpreg {other}" if other else "no dpreg" for other in others)
        raise DataError(
            f"this process has dpreg {_OURS}, and workers of {engine} have {told}: install the "
            "same version for all of them"
        )


class ClusterSource(Source):
    """A source whose rows are where an engine keeps them. See `Source` for what it promises."""

    unit = "partition"
    engine: ClassVar[str]
    """The engine's name in messages."""

    def total(
        self, columns: Columns, tally: Tally, *, positions: bool = False, advance: Advance = None
    ) -> Integers:
        """Make one pass where the rows are; see `Source.total`.

        How far it has come, the engine's own pages show.
        """
        self.check(columns)
        vector = shielded(self.engine, lambda: self._total(dict(columns), tally, positions))
        if advance is not None and self.parts is not None:
            advance(self.parts)
        return tally(()) if vector is None else vector

    def kept(self, columns: Columns, persons: Persons) -> SpreadSource:
        """Return the rows that are kept of each person, of the columns that a call uses.

        Nothing is computed yet.
        """
        read = persons.read_with(columns)
        self.check(read)
        sent = self._together(Sending(read, tuple(columns), persons))
        return SpreadSource(sent, columns, persons)

    @abstractmethod
    def _together(self, sending: Sending) -> ClusterSource:
        """Return what `sending` makes of the rows, with all of a person's in one partition."""

    @abstractmethod
    def _total(self, columns: Columns, tally: Tally, positions: bool) -> Integers | None:
        """Add what `tally` makes of each partition; None where there is none with a row."""


# ---- rows of persons -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sending:
    """What a worker sends on of some rows: those with an id, as numbers.

    Attributes
    ----------
    columns : dict of str to ColumnType
        What is read.
    names : tuple of str
        The columns that the call uses.
    persons : Persons
    """

    columns: dict[str, ColumnType]
    names: tuple[str, ...]
    persons: Persons

    @property
    def labels(self) -> list[str]:
        """Names of what is sent: parts of the hash, and the call's columns by their places."""
        return [*HASH, *(f"c{place}" for place in range(len(self.names)))]

    def __call__(self, chunk: Chunk) -> dict[str, Floats]:
        """Write the rows of a chunk."""
        rows = matrix_of(chunk, self.names, self.persons.column)
        parts = np.ascontiguousarray(rows[:, :2]).view(np.uint32).astype(np.float64)
        return dict(zip(self.labels, [*parts.T, *rows[:, 2:].T], strict=True))


def _received(chunk: Chunk) -> Floats:
    """Return rows as `matrix_of` wrote them before they were sent."""
    parts = np.column_stack([chunk[name] for name in HASH]).astype(np.uint32)
    cells = [column for name, column in chunk.items() if name not in HASH]
    one_nan = (np.where(np.isnan(column), np.nan, column) for column in cells)
    return np.column_stack([parts.view(np.float64), *one_nan])


def _tally_kept(
    tally: Tally,
    columns: Columns,
    every: Columns,
    persons: Persons,
    chunks: Iterable[tuple[int, Chunk]],
) -> Integers:
    """Tally what is kept of a partition's rows, which come as they were sent."""
    parts = [_received(chunk) for _, chunk in chunks]
    rows = np.concatenate([*parts, np.empty((0, 2 + len(every)))])
    kept = KeptSource([keep(rows, persons.rows, persons.key)], every)
    return tally((0, piece.read()) for piece in kept._pieces(columns, CHUNK_ROWS))


class SpreadSource(Source):
    """Kept rows on a cluster.

    Parameters
    ----------
    sent : ClusterSource
        Rows as they were sent, with all of a person's in one partition.
    columns : mapping of str to ColumnType
        All that the call uses.
    persons : Persons
    """

    def __init__(self, sent: ClusterSource, columns: Columns, persons: Persons) -> None:
        self.names = tuple(columns)
        self.parts, self.unit = sent.parts, sent.unit
        self._sent, self._columns, self._persons = sent, dict(columns), persons

    @cached_property
    def person_count(self) -> int:
        """Number of ids, counted where they are; private under add-remove."""
        return int(self.total({}, _count_persons)[0])

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever the table calls the column."""
        find_column(self.names, name)
        return "numeric"

    def count(self) -> int:
        """Count the kept rows where they are."""
        return int(self.total({}, count_rows)[0])

    def total(
        self, columns: Columns, tally: Tally, *, positions: bool = False, advance: Advance = None
    ) -> Integers:
        """Make one pass where the rows are; see `Source.total`. No row has a place."""
        assert not positions
        work = partial(_tally_kept, tally, dict(columns), self._columns, self._persons)
        return self._sent.total(dict.fromkeys(self._sent.names, Unbounded()), work, advance=advance)


def _count_persons(chunks: Iterable[tuple[int, Chunk]]) -> Integers:
    """Count persons, in chunks that hold whole ones."""
    return np.array([sum(int(chunk[PERSON][-1]) + 1 for _, chunk in chunks)], dtype=np.int64)
