"""Parquet files, decoded column by column and a few thousand rows at a time.

Only the needed columns are opened. Pages are decoded as their rows are asked for, from a small
buffer for each column, so memory does not grow with the row groups: Arrow's dataset scanner, which
decodes whole row groups ahead, took three to five times the memory and was no faster beside a
tally. Decoding is one thread's at a time, and leaves the others to convert and to tally.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpreg.cells import Kind
from dpreg.columns import Categorical, ColumnType
from dpreg.errors import DataError
from dpreg.sources.arrow_batches import batch_pieces, guarded, guarded_batches
from dpreg.sources.arrow_cells import batch_reader, kind_of_arrow
from dpreg.sources.base import find_column
from dpreg.sources.local import LocalSource, Piece
from dpreg.sources.stamps import Stamp, check_same, stamp

__all__ = ["ParquetSource"]

_BUFFER = 1 << 18  # bytes read ahead in each column
_BUFFERS = 1 << 25  # and in all of them together, where they are more than a hundred or so
_LEAST_BUFFER = 1 << 14
_DECODED = 1 << 15  # rows decoded at a time, or as many as a chunk of many columns has
_LEAST_DECODED = 1 << 12
_SMALL_DICTIONARY = 1 << 16  # bytes; beyond, decoding text as text is sooner done


@dataclass(frozen=True, slots=True)
class _File:
    """What a footer says."""

    path: str
    stamp: Stamp
    schema: Any  # pyarrow.Schema
    metadata: Any  # pyarrow.parquet.FileMetaData


class ParquetSource(LocalSource):
    """A source of Parquet files of the same columns, one after the other.

    Parameters
    ----------
    paths : sequence of str
        At least one.

    Raises
    ------
    DataError
        If a footer cannot be read. While rows are read, if a file is damaged, or not what it was
        when it was opened: the ledger stays charged.
    """

    __slots__ = ("_files",)

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = tuple(_opened(path) for path in paths)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names of the first file, repeats included."""
        return tuple(self._files[0].schema.names)

    @property
    def rows(self) -> int:
        """Number of rows, from the footers; private under add-remove."""
        return sum(file.metadata.num_rows for file in self._files)

    @property
    def parts(self) -> int:
        """Row groups of all files."""
        return sum(file.metadata.num_row_groups for file in self._files)

    @property
    def unit(self) -> str:
        """What one part is called."""
        return "row group"

    def kind(self, name: str) -> Kind:
        """Return what the files call a column; "object" where they differ and some may be numbers.

        Writers infer a column's type from its cells, in each file anew. What they made of it has
        no say in how a declared column is read.

        Raises
        ------
        DataError
            Where the name is absent or repeated, or a later file lacks it.
        """
        find_column(self.names, name)
        first = self._files[0].path
        for file in self._files:
            if file.schema.names.count(name) != 1:
                raise DataError(f"{first} has a column {name!r} and {file.path} has not")
        return _together(kind_of_arrow(file.schema.field(name).type) for file in self._files)

    def count(self) -> int:
        """Return `rows`."""
        return self.rows

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        before = 0
        for file in self._files:
            yield from _file_pieces(file, columns, size, before)
            before += file.metadata.num_row_groups

    def __repr__(self) -> str:
        """Show names and kinds, as far as all files have the columns."""
        return f"Source({', '.join(f'{name}: {self._shown_kind(name)}' for name in self.names)})"

    def _shown_kind(self, name: str) -> str:
        if self.names.count(name) > 1:
            return "repeated"
        try:
            return self.kind(name)
        except DataError:
            return "not in all files"


def _together(kinds: Iterable[Kind]) -> Kind:
    """Return the kind of a column that comes in several pieces; one without a cell has no say."""
    known = [kind for kind in dict.fromkeys(kinds) if kind != "object"]
    if len(known) == 1 or (known and not {"numeric", "bool"} & set(known)):
        return known[0]
    return "object"


def _opened(path: str) -> _File:
    def work() -> _File:
        first = stamp(path)
        with _parquet_file(path, [], 1) as file:
            return _File(path, first, file.schema_arrow, file.metadata)

    return guarded(work, _failed(path))


def _parquet_file(path: str, labels: list[str], columns: int) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(
        path,
        read_dictionary=labels,
        buffer_size=max(_LEAST_BUFFER, min(_BUFFER, _BUFFERS // columns)),
        pre_buffer=False,
        page_checksum_verification=True,  # where the writer left any
    )


def _failed(path: str) -> str:
    return f"{path} cannot be read as Parquet: it is damaged, cut short, or something else"


def _file_pieces(
    known: _File, columns: Mapping[str, ColumnType], size: int, before: int
) -> Iterator[Piece]:
    failed = _failed(known.path)
    check_same(known.path, known.stamp)
    labels = [name for name, how in columns.items() if _is_cheap_dictionary(known, name, how)]
    file = guarded(lambda: _parquet_file(known.path, labels, len(columns)), failed)
    try:
        if not file.metadata.equals(known.metadata):
            raise DataError(f"{known.path} has changed since it was opened")
        read = None
        decoded = max(_LEAST_DECODED, min(_DECODED, size))
        for group in range(known.metadata.num_row_groups):
            rows = 0
            batches = file.iter_batches(decoded, [group], list(columns), use_threads=False)
            for batch in guarded_batches(batches, failed):
                read = read or batch_reader(batch.schema, columns)
                yield from batch_pieces(batch, read, size, before + group)
                rows += batch.num_rows
            if rows != known.metadata.row_group(group).num_rows:
                raise DataError(f"{failed} (rows are missing)")
    finally:
        file.close()


def _is_cheap_dictionary(file: _File, name: str, how: ColumnType) -> bool:
    """Tell whether a column of labels lies in the file as codes into a small dictionary."""
    if not isinstance(how, Categorical) or kind_of_arrow(file.schema.field(name).type) != "string":
        return False
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        places = range(group.num_columns)
        column = next((c for c in map(group.column, places) if c.path_in_schema == name), None)
        if column is None or not column.has_dictionary_page:
            return False
        if column.data_page_offset - column.dictionary_page_offset > _SMALL_DICTIONARY:
            return False
    return True
