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
    """Refuse a schema that seems to misspell a column of the table.

    One codebook may serve many tables: a schema may declare columns that this one lacks.

    Raises
    ------
    SchemaError
        If a key that no column has is spelt nearly like a column which no key declares.
    """
    names = source.names
    undeclared = [name for name in names if name not in schema]
    for name in schema:
        if name not in names and (near := did_you_mean(name, undeclared, "")):
            raise SchemaError(
                f"the schema declares {name!r}, and the table has no column {name!r}{near}"
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
