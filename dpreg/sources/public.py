"""The contract for inputs: what of a table is public, and what enforces it.

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
    Refuse, before anything is charged or read: `check_columns` stops a call that uses a column of
    text, labels or dates which nobody declared, so that no budget is burned on a column of missing
    cells. The cost of that courtesy: whether the call is refused tells the curator what the
    container says of the column. Where the container inferred it, that is a fact about the rows; it
    is named in an error message, before anything is released, and a declaration ends it.

    Only the kinds known *before the charge* count. Chunks, partitions and record batches that come
    later are read cell by cell, whatever kinds they come as.

Tested in `tests/sources/test_table.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dpreg.cells import Kind
from dpreg.columns import ColumnType, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError

__all__ = ["Kinds", "check_columns"]


class Kinds(Protocol):
    """What has columns of some kind each."""

    def kind(self, name: str, /) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""


def check_columns(source: Kinds, columns: Mapping[str, ColumnType]) -> None:
    """Refuse, before a row is read, a table that cannot be read as declared.

    Parameters
    ----------
    source : Source
    columns : mapping of str to ColumnType

    Raises
    ------
    DataError
        If a column is absent or its name repeated, or holds a NUL; or if it is `Unbounded`, that is
        undeclared, and its kind is text, labels, dates, or nothing that is read; or if it is to
        name persons, and its kind is dates or nothing that is read.

    Notes
    -----
    A *declared* column is read cell by cell whatever its kind: dates in a column of numbers are
    missing cells. To refuse the kind would tell of the rows wherever it was inferred from them: a
    list of dates is a column of dates until one row of it is a number.
    """
    for name, declared in columns.items():
        if "\0" in name:  # names of dpreg's own, such as that of persons' coins, begin so
            raise DataError(f"column {name!r} has a NUL character in its name: rename it")
        if not isinstance(declared, ColumnType):
            raise ArgumentError(f"column {name!r} is to be read as no known type of column")
        kind = source.kind(name)
        if isinstance(declared, PersonId) and kind in ("datetime", "other"):
            raise DataError(
                f"person={name!r} holds neither numbers nor text: name a column of ids that are"
            )
        if not isinstance(declared, Unbounded):
            continue
        if kind == "datetime":
            raise DataError(
                f"column {name!r} holds dates or times: make a number of it (days since a fixed "
                "date, say), or leave it out"
            )
        if kind == "other":
            raise DataError(f"column {name!r} holds neither numbers nor labels: leave it out")
        if kind in ("string", "category"):
            raise DataError(
                f"column {name!r} holds text or labels and the schema "
                f'does not declare it: add {name!r}: ["level", ...] to the schema, or '
                f"{name!r}: (lowest, highest) if it denotes numbers"
            )
