"""What sources have in common whose rows stay on a cluster: one vector a partition, added there.

The workers do what `LocalSource` does at home, each for its own partitions; integers are all that
comes back. What a failure tells is settled here too: the engine, and the class of the exception.
Its text may quote rows (a user's own plan says what it likes), so neither the text nor the
exception itself, which a traceback or a debugger would show as the cause, goes along. Workers
shield what dpreg does there in the same way; what a plan's own steps put into an engine's log is
the plan's.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from dpreg.columns import ColumnType
from dpreg.errors import DataError
from dpreg.sources.base import Chunk, Integers, NamedSource, Tally, tallied
from dpreg.sources.persons import Persons
from dpreg.sources.words import Words, pack, unpack

__all__ = ["ClusterSource", "EngineFailure", "Finished", "PartitionTally", "shielded"]

_T = TypeVar("_T")


class EngineFailure(DataError):
    """An engine could not make a pass."""


def shielded(engine: str, work: Callable[[], _T]) -> _T:
    """Return what `work` does; let no more of an error out than the name of its class."""
    try:
        return work()
    except EngineFailure as error:  # a worker's, whose text is ours
        failed = str(error)
    except Exception as error:
        failed = f"{engine} failed while it read the rows: {type(error).__name__}"
    raise EngineFailure(failed)  # here, where no exception is under way that it could hold


@dataclass(frozen=True, slots=True)
class PartitionTally:
    """What a worker does with the rows of one partition.

    Attributes
    ----------
    columns : dict of str to ColumnType
    tally : Tally
    """

    columns: dict[str, ColumnType]
    tally: Tally

    def of(self, chunks: Iterable[Chunk], start: int = 0) -> Words:
        """Return the tally of chunks, the first row of which is in place `start`."""
        return pack(tallied(self.tally, _placed(chunks, start)))


def _placed(chunks: Iterable[Chunk], start: int) -> Iterator[tuple[int, Chunk]]:
    for chunk in chunks:
        yield start, chunk
        start += len(next(iter(chunk.values())))


class Finished:
    """Tells of finished partitions, of each once, however often and by whom it is reported.

    Parameters
    ----------
    advance : callable or None
    """

    def __init__(self, advance: Callable[[int], object] | None) -> None:
        self._advance = advance
        self._known: set[int] = set()
        self._over = False
        self._lock = threading.Lock()

    def report(self, partitions: Iterable[int]) -> None:
        """Note partitions by number."""
        with self._lock:
            fresh = set(partitions) - self._known
            self._known |= fresh
            if fresh and self._advance is not None and not self._over:
                self._advance(len(fresh))

    def close(self, parts: int | None = None) -> None:
        """Tell of the rest, where all went well, and listen to no late report."""
        with self._lock:
            rest = 0 if parts is None else parts - len(self._known)
            if rest > 0 and self._advance is not None and not self._over:
                self._advance(rest)
            self._over = True


class ClusterSource(NamedSource):
    """A source whose rows are where an engine keeps them. See `Source` for what it promises."""

    __slots__ = ()

    engine: ClassVar[str]
    """The engine's name in messages."""

    @property
    def rows(self) -> None:
        """None: only a pass would tell."""
        return None

    @property
    def unit(self) -> str:
        """What one part is called, in the singular."""
        return "partition"

    def count(self) -> int:
        """Count the rows where they are."""
        return shielded(self.engine, self._count)

    def total(
        self,
        columns: Mapping[str, ColumnType],
        tally: Tally,
        *,
        positions: bool = False,
        advance: Callable[[int], object] | None = None,
    ) -> Integers:
        """Make one pass where the rows are; see `Source.total`."""
        self._check(columns)
        work = PartitionTally(dict(columns), tally)
        finished = Finished(advance)
        try:
            words = shielded(self.engine, lambda: self._total(work, positions, finished))
            finished.close(self.parts)
        finally:
            finished.close()
        return unpack(pack(tally(())) if words is None else words)

    @abstractmethod
    def limited(self, columns: Mapping[str, ColumnType], persons: Persons) -> ClusterSource:
        """Return the rows that are kept of each person, by a group-by of the engine's own.

        Nothing is computed yet. Columns of numbers: "c0", "c1", ... in the order of `columns`,
        which `Persons.read_with` made, without that of ids; "coin"; and "person", which numbers the
        persons of a partition. All rows of a person are in one partition, one after the other, and
        it comes in that order.
        """

    @abstractmethod
    def _count(self) -> int:
        """Count the rows."""

    @abstractmethod
    def _total(self, work: PartitionTally, positions: bool, finished: Finished) -> Words | None:
        """Add what `work` makes of each partition; None where there is none with a row."""
