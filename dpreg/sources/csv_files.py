"""CSV files: text in every cell, so that no row has a say in how another is read.

A file is UTF-8 with commas between cells, and quotes around those that hold commas, quotes (twice)
or ends of lines (RFC 4180); its first line is the header, which is public. Every cell is text and
means what `dpreg.cells` says of it, in a column of kind "object", as of a table of lists; an empty
cell is missing; blank lines are no rows.

A row with more or fewer cells than the header counts as a row of which every cell is missing, each
of its lines as one; such rows come last in their file's order. What is between two quotes is one
cell: a quote that is opened and not closed takes the lines after it along, up to the next quote or
the end, or is an error where these are more than 16 MB. So write files with a library, never by
pasting text between commas; where that cannot be had, Parquet has no such trap. Bytes that are no
UTF-8 become U+FFFD.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpreg.cells import Kind, number
from dpreg.columns import ColumnType
from dpreg.errors import DataError
from dpreg.sources.arrow_batches import batch_pieces, guarded, guarded_batches
from dpreg.sources.arrow_cells import batch_reader
from dpreg.sources.arrow_library import pa
from dpreg.sources.base import Chunk, find_column
from dpreg.sources.local import LocalSource, Piece
from dpreg.sources.meaning import meaning_of

__all__ = ["CsvSource"]

_BLOCK = 1 << 21  # bytes parsed at a time
_HEADER_BLOCK = 1 << 16
_LONGEST_ROW = 1 << 24
_MARK = b"\xef\xbb\xbf"  # that some programs put before UTF-8

# A cell in quotes, opened where a cell starts; up to the end, where it is not closed.
_QUOTED = re.compile(rb'(?:^|[,\r\n])"[^"]*+(?:""[^"]*+)*+"?')


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
            for batch in _batches(path, header, header[:1], malformed):
                total += batch.num_rows
            total += malformed.rows
        return total

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        missing = partial(_missing_chunk, columns)
        for part, (path, header) in enumerate(zip(self._paths, self._headers, strict=True)):
            malformed, read = _Malformed(), None
            for batch in _batches(path, header, columns, malformed):
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

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, row: Any) -> str:
        self.rows += 1 + row.text.count("\n")
        return "skip"


def _missing_chunk(columns: Mapping[str, ColumnType], rows: int) -> Chunk:
    return {name: np.repeat(meaning_of(how).cells([None]), rows) for name, how in columns.items()}


def _batches(
    path: str, header: tuple[str, ...], columns: Iterable[str], malformed: _Malformed
) -> Iterator[Any]:
    """Parse a file's rows, block by block."""
    failed = f"{path} cannot be read as CSV: it is damaged, or a quote is never closed"
    blocks = guarded_batches(_blocks(path), failed)
    for place, block in enumerate(blocks):
        names = header if place else None
        parse = partial(_parsed, block, names, [*columns], malformed)
        yield from guarded(parse, failed).to_batches()


def _header(path: str) -> tuple[str, ...]:
    failed = f"{path} cannot be read as CSV, or has no line with a header"
    blocks = _blocks(path, _HEADER_BLOCK)
    block = guarded(lambda: next(blocks, b""), failed)
    blocks.close()
    names: list[str] = guarded(lambda: _parsed(block, None, [], _Malformed()).column_names, failed)
    if any(letter in name for name in names for letter in "\0\ufffd"):
        raise DataError(f"{failed} in UTF-8")
    if any(math.isfinite(number(name)) for name in names):
        # Not which: a row must not end in a message.
        raise DataError(
            f"the first line of {path} holds numbers, where the names of the columns must be: "
            "write a header above the rows"
        )
    return tuple(names)


def _blocks(path: str, size: int = _BLOCK) -> Generator[bytes]:
    """Cut a file into blocks of whole rows, in this thread.

    pyarrow's own streams read ahead in threads that outlive a reader, and Python does not end
    well while such a thread calls it: for a handler of malformed rows, or for a file's bytes.
    """
    with pa.input_stream(path, compression="detect") as stream:
        rest = stream.read(len(_MARK)).removeprefix(_MARK)
        while raw := stream.read(size):
            rest += raw
            end = _end_of_rows(rest)
            if end:
                yield _utf8(rest[:end])
                rest = rest[end:]
            elif len(rest) > _LONGEST_ROW:
                raise ValueError("no end of a row")
    if rest.strip(b"\r\n"):
        yield _utf8(rest if rest.endswith(b"\n") else rest + b"\n")


def _end_of_rows(block: bytes) -> int:
    """Find where the last row that a block holds whole ends; the block starts with a row."""
    end = block.rfind(b"\n") + 1
    if b'"' in block:
        for cell in _QUOTED.finditer(block):
            if cell.end() >= end:  # up to here, no later quote opens a cell
                if cell.start() < end:
                    return block.rfind(b"\n", 0, cell.start() + 1) + 1
                break
    return end


def _utf8(block: bytes) -> bytes:
    """Replace what is no UTF-8: pyarrow prints the bytes of a malformed row that is none."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode(errors="replace").encode()
    return block


def _parsed(
    block: bytes, names: Sequence[str] | None, columns: list[str], malformed: _Malformed
) -> Any:
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        csv.ParseOptions(newlines_in_values=True, invalid_row_handler=malformed),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(columns, pa.large_string()),
            include_columns=columns,  # none are all of them
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
