"""A table as one call reads it: its passes are counted, and shown while they take long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tqdm import tqdm

from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.base import Chunk, Integers, Source, Tally
from dpreg.sources.local import LocalSource

__all__ = ["Reader", "showing"]

_PATIENCE = 1.0
"""Seconds before a bar appears that nobody asked for."""


def showing(progress: object) -> bool:
    """Tell whether bars are to be shown: None means where stderr is a terminal.

    Calls ask it before they charge: anything but True, False and None is an ArgumentError.
    """
    if not isinstance(progress, bool | None):
        raise ArgumentError(f"progress must be True, False or None; got {progress!r}.")
    return sys.stderr.isatty() if progress is None else progress


class Reader:
    """Makes the passes of one call.

    Parameters
    ----------
    source : Source
    progress : bool or None
        Whether a bar on stderr counts row groups or partitions, never rows; None: where stderr is
        a terminal and the pass takes more than a second.

    Attributes
    ----------
    passes : int
        How often the rows have been gone through. Public: it follows from the call's arguments.
        Counting the rows of a table that does not know how many it has reads no value, and is not
        one of them.
    """

    __slots__ = ("_counted", "_progress", "passes", "source")

    def __init__(self, source: Source, progress: bool | None = None) -> None:
        self.source = source
        self.passes = 0
        self._progress = progress
        self._counted: int | None = None

    @property
    def rows(self) -> int:
        """Number of rows, counted where the table does not know it; private under add-remove."""
        known = self.source.rows if self._counted is None else self._counted
        if known is None:
            known = self._counted = self.source.count()
        return known

    def learn(self, rows: int) -> None:
        """Note the number of rows that a pass came across."""
        self._counted = rows

    def require(self, passes: int, counts: bool = False) -> None:
        """Refuse a table that cannot be gone through as often as a call must.

        Parameters
        ----------
        passes : int
        counts : bool
            Whether the number of rows must be known before the first of them.
        """
        uncounted = counts and self.source.rows is None
        if passes + uncounted > 1 and not self.source.rereadable:
            raise DataError(
                f"data can be read once, and this call must read it {passes + uncounted} times: "
                "give a function that opens it anew, or a table that stays"
            )

    def total(
        self,
        columns: Mapping[str, ColumnType],
        tally: Tally,
        what: str,
        *,
        positions: bool = False,
    ) -> Integers:
        """Make one pass; `what` is read for, in a word or two, names its bar."""
        with self._pass(what) as advance:
            return self.source.total(columns, tally, positions=positions, advance=advance)

    def chunks(self, columns: Mapping[str, ColumnType], what: str) -> Iterator[Chunk]:
        """Make one pass chunk by chunk, where `source` is a `LocalSource`."""
        assert isinstance(self.source, LocalSource)
        with self._pass(what) as advance:
            yield from self.source.chunks(columns, advance=advance)

    @contextmanager
    def _pass(self, what: str) -> Iterator[Callable[[int], object]]:
        """Count a pass, and show it while it lasts."""
        self.passes += 1
        with tqdm(
            desc=what,
            total=self.source.parts,
            unit=f" {self.source.unit}",
            disable=not showing(self._progress),
            delay=0.0 if self._progress else _PATIENCE,
            leave=False,
            file=sys.stderr,
        ) as bar:
            yield bar.update
