"""CSV files: text in every cell, so that no row has a say in how another is read.

A file is UTF-8 with commas between cells, and quotes around those that hold commas, quotes (twice)
or ends of lines (RFC 4180); its first line is the header, which is public. Every cell is text and
means what `dpreg.cells` says of it, in a column of kind "object", as of a table of lists; an empty
cell is missing; blank lines are no rows.

A row with more or fewer cells than the header counts as a row of which every cell is missing, each
of its lines as one; such rows come last in their file's order. What is between two quotes is one
cell, however long: a quote that is opened and not closed takes the lines after it along, up to the
next quote, or ends in an error. Write files with a library, never by pasting text between commas;
where that cannot be had, Parquet has no such trap. Bytes that are no UTF-8 become U+FFFD.
"""

from __future__ import annotations

import codecs
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpreg.cells import Kind, number
from dpreg.columns import ColumnType
from dpreg.errors import DataError
from dpreg.sources.arrow_batches import batch_pieces, guarded, guarded_batches
from dpreg.sources.arrow_cells import batch_reader
from dpreg.sources.arrow_library import pa
from dpreg.sources.base import Chunk, LocalSource, Piece, find_column
from dpreg.sources.meaning import meaning_of

__all__ = ["CsvSource"]

_BLOCK = 1 << 22  # bytes parsed at a time; a row must fit


class CsvSource(LocalSource):
    """A source of CSV files of the same columns, in any order, one file after the other.

    Parameters
    ----------
    paths : sequence of str
        At least one.

    Raises
    ------
    DataError
        If a file cannot be opened, or its first line looks like a row. While rows are read, if a
        file is damaged: the ledger stays charged.
    """

    __slots__ = ("_headers", "_paths")

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._headers = tuple(_header(path) for path in self._paths)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names of the first file, repeats included."""
        return self._headers[0]

    @property
    def rows(self) -> None:
        """Not known before a pass."""
        return None

    @property
    def parts(self) -> int:
        """Files."""
        return len(self._paths)

    @property
    def unit(self) -> str:
        """What one part is called."""
        return "file"

    def kind(self, name: str) -> Kind:
        """Return "object", whatever the cells.

        Raises
        ------
        DataError
            Where the name is absent or repeated in one of the files.
        """
        find_column(self.names, name)
        for path, header in zip(self._paths, self._headers, strict=True):
            if header.count(name) != 1:
                raise DataError(f"{self._paths[0]} has a column {name!r} and {path} has not")
        return "object"

    def count(self) -> int:
        """Count the rows by parsing the files, without a look at a cell."""
        total = 0
        for path, header in zip(self._paths, self._headers, strict=True):
            malformed = _Malformed()
            for batch in _batches(path, header[:1], malformed):
                total += batch.num_rows
            total += malformed.rows
        return total

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        missing = partial(_missing_chunk, columns)
        for part, path in enumerate(self._paths):
            malformed, read = _Malformed(), None
            for batch in _batches(path, columns, malformed):
                read = read or batch_reader(batch.schema, columns)
                yield from batch_pieces(batch, read, size, part)
            for start in range(0, malformed.rows, size):
                rows = min(size, malformed.rows - start)
                yield Piece(rows, partial(missing, rows), part)

    def __repr__(self) -> str:
        """Show names and kinds; whether all files have them is another question."""
        return f"Source({', '.join(f'{name}: object' for name in self.names)})"


class _Malformed:
    """Counts rows of more or fewer cells than the header, which pyarrow would refuse."""

    __slots__ = ("_lock", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self._lock = threading.Lock()

    def __call__(self, row: Any) -> str:
        with self._lock:
            self.rows += 1 + row.text.count("\n")
        return "skip"


class _Utf8:
    """A stream of bytes with whatever is no UTF-8 replaced, ASCII never.

    pyarrow hands malformed rows over as text, and prints the bytes of one that is none.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._ready = b""

    @property
    def closed(self) -> bool:
        return bool(self._raw.closed)

    def close(self) -> None:
        self._raw.close()

    def read(self, size: int) -> bytes:
        """Read at most so many bytes; none at the end."""
        at_end = False
        while not self._ready and not at_end:
            raw = self._raw.read(size)
            at_end = not raw
            self._ready = self._decoder.decode(raw, at_end).encode()
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken


def _missing_chunk(columns: Mapping[str, ColumnType], rows: int) -> Chunk:
    return {name: np.repeat(meaning_of(how).cells([None]), rows) for name, how in columns.items()}


def _batches(path: str, columns: Iterable[str], malformed: _Malformed) -> Iterator[Any]:
    failed = _failed(path)
    reader = guarded(lambda: _reader(path, list(columns), malformed), failed)
    return guarded_batches(reader, failed)


def _failed(path: str) -> str:
    return f"{path} cannot be read as CSV: it is damaged, or a quote is never closed"


def _reader(path: str, columns: list[str], malformed: _Malformed) -> Any:
    from pyarrow import csv

    return csv.open_csv(
        pa.PythonFile(_Utf8(pa.input_stream(path, compression="detect")), "r"),
        csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        csv.ParseOptions(newlines_in_values=True, invalid_row_handler=malformed),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(columns, pa.large_string()),
            include_columns=columns,
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _header(path: str) -> tuple[str, ...]:
    def work() -> tuple[str, ...]:
        with _reader(path, [], _Malformed()) as reader:  # no columns: all of them
            return tuple(reader.schema.names)

    failed = f"{path} cannot be read as CSV, or has no line with a header"
    names = guarded(work, failed)
    if any(letter in name for name in names for letter in "\0\ufffd"):
        raise DataError(f"{failed} in UTF-8")
    if any(math.isfinite(number(name)) for name in names):
        # Not which: a row must not end in a message.
        raise DataError(
            f"the first line of {path} holds numbers, where the names of the columns must be: "
            "write a header above the rows"
        )
    return names
