"""CSV files: text in every cell, so that no row has a say in how another is read.

A file is UTF-8 with commas between cells, and quotes around those that hold commas or quotes
(twice); its first line that is not blank is the header, which is public. Every cell is text and
means what `dpreg.cells` says of it, in a column of kind "object", as of a table of lists; an empty
cell is missing. Bytes that are no UTF-8 become U+FFFD.

**A row is a line**, every line after the header, blank ones included: so what stands in one line
has no say in how another is read, and changing a line changes one row. RFC 4180 would let a cell in
quotes go on over several lines; then one quote that is opened and never closed would swallow the
rows after it. Here a quote that is open at the end of its line spoils that line alone.

A line with more or fewer cells than the header, with such a quote, or longer than 16 MB counts as a
row of which every cell is missing; such rows come last in their file's order. A cell with an end of
a line in it makes as many of them as it has lines: Parquet holds such text.

Blocks of whole lines are parsed by pyarrow, several at a time. Columns of numbers are parsed as
such, which gives each cell the number that its text denotes; where Arrow takes a cell of a block
for none, the block is parsed anew as text, and the column stays text in the blocks that follow. A
block with quotes is parsed as it is; only if that made fewer rows than it has lines are those with
an open quote looked for, taken out, and the block parsed anew.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from dpreg.cells import Kind, number
from dpreg.columns import ColumnType, Numeric, Unbounded
from dpreg.errors import DataError
from dpreg.running import threads as threads_allowed
from dpreg.sources.arrow_batches import batch_pieces, guarded, guarded_batches
from dpreg.sources.arrow_cells import batch_reader
from dpreg.sources.arrow_library import pa
from dpreg.sources.base import find_column
from dpreg.sources.csv_blocks import MARK, Malformed, line_blocks
from dpreg.sources.csv_quotes import is_line_by_line, without_open_quotes
from dpreg.sources.local import LocalSource, Piece
from dpreg.sources.meaning import missing_chunk
from dpreg.sources.stamps import check_same, stamp

__all__ = ["CsvSource"]

_HEADER_BLOCK = 1 << 16
_MOST_THREADS = 8
_TEXT = pa.large_string()

_HEADER = re.compile(rb"[\r\n]*+[^\r\n]++(?:\r\n|\r|\n|\Z)")


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
        file is damaged, or not what it was when it was opened: the ledger stays charged.
    """

    __slots__ = ("_headers", "_paths", "_stamps")

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._stamps = tuple(stamp(path) for path in self._paths)
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

    @property
    def fleeting(self) -> bool:
        """Text takes longer to parse than to sum."""
        return True

    def kind(self, name: str) -> Kind:
        """Return "object", whatever the cells.

        Raises
        ------
        DataError
            Where the name is absent or repeated in one of the files.
        """
        if name not in self.names:
            # Without the names that it has: a file without a header would show its first row.
            raise DataError(f"the first line of {self._paths[0]} names no column {name!r}")
        find_column(self.names, name)
        for path, header in zip(self._paths, self._headers, strict=True):
            if header.count(name) != 1:
                raise DataError(f"{self._paths[0]} has a column {name!r} and {path} has not")
        return "object"

    def count(self) -> int:
        """Count the rows by parsing the files, without a look at a cell."""
        total = 0
        for path, header in zip(self._paths, self._headers, strict=True):
            malformed = Malformed()
            for batch in _batches(path, header, _Columns(header[:1]), malformed):
                total += batch.num_rows
            total += malformed.rows
        return total

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        missing = partial(missing_chunk, columns)
        for part, (path, header) in enumerate(zip(self._paths, self._headers, strict=True)):
            check_same(path, self._stamps[part])
            malformed, read, schema = Malformed(), None, None
            for batch in _batches(path, header, _Columns.of(columns), malformed):
                if read is None or batch.schema != schema:
                    read, schema = batch_reader(batch.schema, columns), batch.schema
                yield from batch_pieces(batch, read, size, part)
            for start in range(0, malformed.rows, size):
                rows = min(size, malformed.rows - start)
                yield Piece(rows, partial(missing, rows), part)

    def __repr__(self) -> str:
        """Show names and kinds; whether all files have them is another question."""
        return f"Source({', '.join(f'{name}: object' for name in self.names)})"


class _Columns:
    """Columns of a file that are read, and which of them are parsed as numbers so far."""

    __slots__ = ("names", "numbers")

    def __init__(self, names: Sequence[str], numbers: Sequence[str] = ()) -> None:
        self.names = [*names]
        self.numbers = frozenset(numbers)

    @classmethod
    def of(cls, columns: Mapping[str, ColumnType]) -> _Columns:
        """Parse as numbers what is declared so, or not at all."""
        numbers = [n for n, how in columns.items() if isinstance(how, Numeric | Unbounded)]
        return cls([*columns], numbers)

    def parsed(
        self, block: memoryview | bytes, header: Sequence[str], malformed: Malformed
    ) -> list[Any]:
        """Parse a block of lines, each of them for itself."""
        table, bad = self._tried(block, header)
        if table is None or not is_line_by_line(memoryview(block), table.num_rows + bad):
            block, taken = without_open_quotes(bytes(block))
            if not block:
                malformed.rows += taken
                return []
            if taken:
                table, bad = self._tried(block, header)
                malformed.rows += taken
        if table is not None:
            malformed.rows += bad
            return list(table.to_batches())
        table = _parsed(block, header, dict.fromkeys(self.names, _TEXT), malformed)
        self.numbers -= {name for name in self.numbers if not _are_numbers(table[name])}
        return list(table.to_batches())

    def _tried(self, block: memoryview | bytes, header: Sequence[str]) -> tuple[Any, int]:
        """Parse columns of numbers as such; no table where one of them has another cell."""
        numbers, counted = self.numbers, Malformed()
        types = {name: pa.float64() if name in numbers else _TEXT for name in self.names}
        try:
            return _parsed(block, header, types, counted), counted.rows
        except pa.ArrowInvalid:
            return None, 0


def _are_numbers(column: Any) -> bool:
    try:
        column.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _batches(
    path: str, header: tuple[str, ...], columns: _Columns, malformed: Malformed
) -> Iterator[Any]:
    """Parse a file's rows, block by block, several of them at a time."""
    failed = f"{path} cannot be read as CSV: it is damaged"
    blocks = guarded_batches(line_blocks(path, malformed), failed)

    def work(block: memoryview) -> tuple[list[Any], int]:
        spoilt = Malformed()
        return guarded(lambda: columns.parsed(block, header, spoilt), failed), spoilt.rows

    for batches, spoilt in _ahead(work, _without_header(blocks)):
        malformed.rows += spoilt
        yield from batches


def _without_header(blocks: Iterator[memoryview]) -> Iterator[memoryview]:
    headed = False
    for whole in blocks:
        block = whole
        if not headed:
            found = _HEADER.match(whole)
            headed = found is not None
            block = whole[found.end() if found else len(whole) :]
        if block:
            yield block


def _ahead(
    work: Callable[[memoryview], tuple[list[Any], int]], blocks: Iterator[memoryview]
) -> Iterator[tuple[list[Any], int]]:
    """Work on blocks in several threads, a few blocks ahead; results come in order."""
    threads = threads_allowed(_MOST_THREADS)
    if threads == 1:
        yield from map(work, blocks)
        return
    waiting: deque[Future[tuple[list[Any], int]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


def _header(path: str) -> tuple[str, ...]:
    failed = f"{path} cannot be read as CSV, or has no line with a header"
    blocks = line_blocks(path, Malformed(), _HEADER_BLOCK)
    block = guarded(lambda: next(blocks, memoryview(b"")), failed)
    blocks.close()
    line = _HEADER.match(block)
    first = line[0].lstrip(b"\r\n") if line else b""
    names: list[str] = guarded(lambda: _parsed(first, None, {}, Malformed()).column_names, failed)
    if any(letter in name for name in names for letter in "\0\ufffd"):
        raise DataError(f"{failed} in UTF-8")
    if any(math.isfinite(number(name)) for name in names):
        # Not which: a row must not end in a message.
        raise DataError(
            f"the first line of {path} holds numbers, where the names of the columns must be: "
            "write a header above the rows"
        )
    return tuple(names)


def _parsed(
    block: memoryview | bytes,
    names: Sequence[str] | None,
    types: Mapping[str, Any],
    malformed: Malformed,
) -> Any:
    from pyarrow import csv

    # pyarrow drops a mark at the start of what it is given; one that stands there is the cell's.
    if block[: len(MARK)] == MARK:
        block = MARK + bytes(block)
    return csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
        csv.ParseOptions(invalid_row_handler=malformed, ignore_empty_lines=False),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=types,
            include_columns=[*types],  # none are all of them
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
