"""A table as one call reads it: its passes are counted, and shown while they take long."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from numpy.typing import NDArray

from dpreg.columns import Columns, ColumnType, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError, shown
from dpreg.running import bar, threads
from dpreg.schema import contradictions
from dpreg.sources.base import Chunk, Integers, LocalSource, Source, Tally
from dpreg.sources.cluster import ClusterSource, SpreadSource
from dpreg.sources.kept import HeldSource, KeptSource, Make, kept_source
from dpreg.sources.persons import Persons

DOUBT = "dpreg: does the schema say what is meant?"

_PATIENCE = 1.0
"""Seconds before a bar appears that nobody asked for."""


def showing(progress: object) -> bool:
    """Tell whether bars are to be shown: None means where stderr is a terminal.

    Calls ask it before they charge: anything but True, False and None is an ArgumentError.
    """
    if not isinstance(progress, bool | None):
        raise ArgumentError(f"progress must be True, False or None; got {shown(progress)}.")
    return sys.stderr.isatty() if progress is None else progress


class RowTest(Protocol):
    """What says of each row, by itself, whether a call is about it: `dpreg.formula.where`."""

    def read_with(self, columns: Columns, /) -> dict[str, ColumnType]:
        """Return a call's columns and those that the test reads."""

    def blanked(self, chunk: Chunk, columns: Columns, /) -> Chunk:
        """Return some columns of a chunk, with missing cells in rows that fail."""


def _passing(
    tally: Tally, where: RowTest, columns: Columns, chunks: Iterable[tuple[int, Chunk]]
) -> Integers:
    """Tally rows of which those that fail a test have missing cells."""
    return tally((start, where.blanked(chunk, columns)) for start, chunk in chunks)


class Reader:
    """Makes the passes of one call.

    Parameters
    ----------
    source : Source
    progress : bool or None
        Whether a bar on stderr counts row groups or partitions, never rows; None: where stderr is
        a terminal and the pass takes more than a second.
    persons : Persons, optional
        Whose rows they are: passes go through the rows that are kept of each person, in a table
        that this process reads after one pass to choose them. Chunks then hold whole persons, and
        `dpreg.sources.persons.PERSON` and `COIN` beside the columns that a pass asks for.

    where : RowTest, optional
        Which rows the call is about: all others are read as rows of missing cells.

    Attributes
    ----------
    passes : int
        How often the rows have been gone through, where they are or where the first pass kept them
        (`hold`). Public: it follows from the call's arguments. Counting the rows of a table that
        does not know how many it has reads no value, and is not one of them.
    counted : int or None
        Number of rows that a pass came across; who counts them in a pass notes it here.
    held : HeldSource or None
        Where the first pass keeps rows.
    """

    def __init__(
        self,
        source: Source,
        progress: bool | None = None,
        persons: Persons | None = None,
        where: RowTest | None = None,
    ) -> None:
        self.source = source
        self.where = where
        self.persons = persons
        self.passes = 0
        self._columns: Columns = {}
        self.held: HeldSource | None = None
        self._kept: KeptSource | SpreadSource | None = None
        self._progress = progress
        self.counted: int | None = None

    @property
    def rows(self) -> int:
        """Number of rows, counted where the table does not know it; private under add-remove.

        With persons that of the kept rows, private under both relations.
        """
        source = self._read()
        if self.counted is None and isinstance(source, HeldSource) and source.rows is None:
            with self._pass("rows", counts=False) as seen:
                self.counted = source.count(seen.update)
        elif self.counted is None:
            self.counted = source.count() if source.rows is None else source.rows
        return self.counted

    @property
    def person_count(self) -> int:
        """Number of persons with a row, whatever is missing in it; see `dpreg.sources.persons`.

        Private under add-remove, public under replace-one. On a cluster it takes a pass of its own,
        which is not counted. Only for a reader that has `persons`.
        """
        self._read()
        assert self._kept is not None
        return self._kept.person_count

    def settle(self, columns: Columns, tell: bool = True) -> None:
        """Check, before the charge, all columns that the call is going to read.

        Where progress is shown, stderr says which of them the table seems to contradict: to the
        curator alone, since kinds may have been inferred from rows.

        Raises
        ------
        DataError
            As `Source.check` says; or if the column of ids is one of them.
        ArgumentError
            If `DPREG_THREADS` is no number of threads.
        """
        threads(1)  # refuses what the passes would refuse after the charge
        read = dict(columns if self.where is None else self.where.read_with(columns))
        tell = tell and read != self._columns  # what was told once is not told again
        self._columns = read
        self.source.check(read if self.persons is None else self.persons.read_with(read))
        if tell and showing(self._progress):
            told = {n: c for n, c in columns.items() if not isinstance(c, Unbounded | PersonId)}
            for doubt in contradictions(told, [(name, self.source.kind(name)) for name in told]):
                print(f"{DOUBT} {doubt}", file=sys.stderr)

    @property
    def rereadable(self) -> bool:
        """Whether the table can be gone through several times, or its rows may be held for it."""
        return self.source.rereadable or (isinstance(self.source, LocalSource) and self.source.hold)

    def hold(self) -> None:
        """Have a fleeting table's rows kept at the first pass, where its owner lets them be.

        Call it before the charge, when all columns have been settled.
        """
        source = self.source
        if isinstance(source, LocalSource) and source.fleeting and source.hold:
            named = self._columns if self.persons is None else self.persons.read_with(self._columns)
            self.held = self.held or HeldSource(source, named)

    def every_row(self, columns: Columns) -> Reader:
        """Return a reader that brings all rows of each person, and counts on."""
        assert self.persons is not None
        found = Reader(self.source, self._progress, replace(self.persons, rows=None), self.where)
        found.settle(columns, tell=False)
        found.held, found.passes = self.held, self.passes
        return found

    def making(self, columns: Columns, make: Make) -> Reader:
        """Return a reader of what is made of rows that are held, `MADE`, which counts on."""
        assert self.held is not None
        where, found = self.where, Reader(self.source, self._progress)
        read = columns if where is None else where.read_with(columns)

        def made(chunk: Chunk) -> NDArray[Any]:
            return make(chunk if where is None else where.blanked(chunk, columns))

        found.held, found.passes = self.held.making(read, made), self.passes
        return found

    def require(self, passes: int, counts: bool = False) -> None:
        """Refuse a table that cannot be gone through as often as a call must; else see to it.

        Parameters
        ----------
        passes : int
        counts : bool
            Whether the number of rows must be known before the first of them.
        """
        if self.persons is not None:
            return  # rows that are kept have been brought here, or are on a cluster
        uncounted = counts and self.source.rows is None
        if passes + uncounted > 1 and not self.rereadable:
            raise DataError(
                f"data can be read once, and this call must read it {passes + uncounted} times: "
                "let its rows be held, or give a table that stays"
            )
        if passes + uncounted > 1:
            self.hold()

    def total(
        self, columns: Columns, tally: Tally, what: str, *, positions: bool = False
    ) -> Integers:
        """Make one pass; `what` is read for, in a word or two, names its bar."""
        source, read = self._read(), columns
        if self.where is not None:
            read = self.where.read_with(columns)
            tally = partial(_passing, tally, self.where, dict(columns))
        with self._pass(what) as seen:
            return source.total(read, tally, positions=positions, advance=seen.update)

    def chunks(self, columns: Columns, what: str) -> Iterator[Chunk]:
        """Make one pass chunk by chunk, where `source` is a `LocalSource`."""
        source, where = self._read(), self.where
        assert isinstance(source, LocalSource)
        read = columns if where is None else where.read_with(columns)
        with self._pass(what) as seen:
            for chunk in source.chunks(read, advance=seen.update):
                yield chunk if where is None else where.blanked(chunk, columns)

    def _read(self) -> Source:
        """Return what passes go through: the table, or rows of it that were kept."""
        source = self.held or self.source
        if self.persons is None:
            return source
        if self._kept is None and isinstance(source, LocalSource):
            with self._pass("rows of persons") as seen:
                self._kept = kept_source(source, self._columns, self.persons, seen.update)
        elif self._kept is None:
            if not isinstance(source, ClusterSource):
                raise ArgumentError(f"person needs rows that can be grouped, and not {source!r}")
            self._kept = source.kept(self._columns, self.persons)
        return self._kept

    def _pass(self, what: str, *, counts: bool = True) -> Any:
        """Count a pass, and return the bar that shows it while it lasts."""
        self.passes += counts
        return bar(
            desc=what,
            total=self.source.parts,
            unit=f" {self.source.unit}",
            shown=showing(self._progress),
            delay=0.0 if self._progress else _PATIENCE,
            leave=False,
        )
