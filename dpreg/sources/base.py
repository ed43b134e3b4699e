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

Tested in `tests/sources/test_local.py` and `tests/sources/test_table.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any, Final, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpreg.cells import Kind
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError, DataError, did_you_mean, shown
from dpreg.sources.public import check_columns

__all__ = [
    "Chunk",
    "Integers",
    "NamedSource",
    "Source",
    "Tally",
    "added",
    "find_column",
    "tallied",
]

_SHOWN: Final = 20
"""Names of columns that an error lists."""

Chunk: TypeAlias = dict[str, NDArray[Any]]
"""Some rows of some columns, as `LocalSource.chunks` says."""

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


@runtime_checkable
class Source(Protocol):
    """A table whose rows can be gone through, as often as `rereadable` says.

    Names and kinds are known before any row is read; of them names are public, and kinds may do no
    more than refuse (`dpreg.sources.public`). Rows are confidential: a source's repr, for the
    curator's eyes, shows names and kinds only, and a source cannot be pickled.

    An implementation must give every row the same values whatever the engine, the pieces, or the
    other rows. It raises and warns on public facts only: in `total`, before a row is read, or
    because the engine failed (a file cut short, a lost cluster); such an error says which engine
    and what kind of failure, and holds nothing of the rows.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included; labels not of text are left out."""

    @property
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None where only a pass would tell."""

    @property
    def parts(self) -> int | None:
        """Row groups, partitions, blocks: what a progress bar counts. None where unknown."""

    @property
    def unit(self) -> str:
        """What one part is called, in the singular."""

    @property
    def rereadable(self) -> bool:
        """Whether more than one pass can be made."""

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""

    def count(self) -> int:
        """Count the rows, where `rows` is None: reads no value, but may have to open every file."""

    def total(
        self,
        columns: Mapping[str, ColumnType],
        tally: Tally,
        *,
        positions: bool = False,
        advance: Callable[[int], object] | None = None,
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
            As `check_columns` says, before a row is read; or because the engine failed.
        """


def tallied(tally: Tally, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
    """Call a tally with NumPy's numerical warnings off: one could tell of a row.

    A call turns them off for itself, but threads and other processes do not take over its state.
    """
    with np.errstate(all="ignore"):
        return tally(chunks)


def added(vectors: Iterable[Integers]) -> Integers:
    """Add what several tallies made, at least one, in integers of any size.

    In int64 where they come so and their sum fits: objects take five times the memory.
    """
    several: list[NDArray[Any]] = [np.asarray(vector) for vector in vectors]
    if any(vector.dtype != np.int64 for vector in several) or sum(map(_most, several)) >= 2**63:
        several = [vector.astype(object) for vector in several]
    return np.asarray(reduce(add, several))


def _most(vector: NDArray[Any]) -> int:
    """Return the largest modulus."""
    return max(int(vector.max()), -int(vector.min())) if len(vector) else 0


def _listed(names: tuple[str, ...]) -> str:
    more = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"; it has {', '.join(names[:_SHOWN])}{more}"


def find_column(names: Iterable[str], name: str) -> int:
    """Return a column's place. DataError where the name is absent or repeated."""
    known = tuple(names)
    times = known.count(name)
    if not times:
        raise DataError(
            f"the table has no column {shown(name)}{did_you_mean(name, known, _listed(known))}"
        )
    if times > 1:
        raise DataError(f"the table has several columns named {shown(name)}: keep or rename one")
    return known.index(name)


class NamedSource(ABC):
    """What sources of every engine have in common: public facts are shown, rows never."""

    __slots__ = ()

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included; labels not of text are left out."""

    @property
    def parts(self) -> int | None:
        """Row groups, partitions, blocks: what a progress bar counts. None where unknown."""
        return None

    @property
    def rereadable(self) -> bool:
        """Whether more than one pass can be made."""
        return True

    @abstractmethod
    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""

    def _check(self, columns: Mapping[str, ColumnType]) -> None:
        """Refuse, from public facts, columns that cannot be read as declared."""
        if not columns:
            raise ArgumentError("a pass over the rows must read at least one column")
        check_columns(self, columns)

    def __repr__(self) -> str:
        """Show names and kinds, and nothing of the rows, not even how many."""
        names = self.names
        kinds = (
            f"{name}: {self.kind(name) if names.count(name) == 1 else 'repeated'}" for name in names
        )
        return f"Source({', '.join(kinds)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise DataError("a source holds confidential rows and is not pickled: pickle the results")
