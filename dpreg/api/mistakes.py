"""Mistakes that public facts reveal: errors before anything is charged or read.

Column names are public, and so is the number of rows under replace-one. Where only the rows could
show a mistake, nothing is said.

Tested in `tests/api/test_twenty_mistakes.py`.
"""

from __future__ import annotations

from dpreg.errors import ArgumentError, DataError, SchemaError, did_you_mean
from dpreg.schema import Schema
from dpreg.sources import Source
from dpreg.sources.reader import Reader

__all__ = ["check_known_rows", "check_schema_names"]


def check_schema_names(schema: Schema, source: Source) -> None:
    """Refuse a schema that declares a column which the table does not have.

    Raises
    ------
    SchemaError
        If a key is spelt nearly like a column of the table, which it names.
    DataError
        If no column has a similar name: then the table seems to lack one.
    """
    names = source.names
    for name in schema:
        if name in names:
            continue
        if near := did_you_mean(name, names, ""):
            raise SchemaError(
                f"the schema declares {name!r}, and the table has no column {name!r}{near}"
            )
        raise DataError(
            f"the table has no column {name!r}, which the schema declares: leave it out of the "
            "schema, or add the column to the table."
        )


def check_known_rows(reader: Reader, n_is_public: bool, *, columns: int | None = None) -> None:
    """Refuse a table with too few rows, where their number is public and known without a pass.

    Parameters
    ----------
    reader : Reader
    n_is_public : bool
    columns : int, optional
        The columns of a least-squares fit, the constant included; None where nothing is fitted.

    Raises
    ------
    DataError
        If there are no rows.
    ArgumentError
        If there are fewer rows than columns.
    """
    rows = reader.source.rows if n_is_public else None
    if rows == 0:
        raise DataError("the table has no rows: nothing can be estimated from it.")
    if rows is not None and columns is not None and rows < columns:
        raise ArgumentError(
            f"{rows:,} rows cannot determine {columns:,} coefficients: use fewer terms, or choose "
            "some of them with dp_select."
        )
