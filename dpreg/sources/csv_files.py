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

Blocks of whole lines are parsed by pyarrow, several at a time: numbers as numbers as long as Arrow
agrees on every cell of a file, where they mean what their text means; else as text, whose meaning
is read like that of any Arrow table (`dpreg.sources.arrow_cells`). A block with quotes is parsed as
it is; only if that made fewer rows than it has lines are those with an open quote looked for, taken
out, and the block parsed anew.

Where a file is cut into blocks changes nothing: each line comes in one block, and one longer than
16 MB, its end apart, in none.

Tested in `tests/sources/test_files.py` and `tests/sources/test_csv_quotes.py`.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from dpreg.cells import Kind, number
from dpreg.columns import Columns, Numeric, Unbounded
from dpreg.errors import DataError
from dpreg.paths import check_same, stamp
from dpreg.running import threads
from dpreg.sources.arrow import batch_pieces
from dpreg.sources.arrow_cells import pa
from dpreg.sources.base import LocalSource, Piece, find_column, guarded, guarded_items, slices
from dpreg.sources.numpy_cells import missing_chunk

MARK = b"\xef\xbb\xbf"  # that some programs put before UTF-8
_BLOCK = 1 << 21  # bytes read at a time
_HEADER_BLOCK = 1 << 16
_LONGEST_ROW = 1 << 24
_MOST_THREADS = 8
_TEXT, _NUMBER = pa.large_string(), pa.float64()

LINE_END = re.compile(rb"\r\n|\r|\n")
_HEADER = re.compile(rb"[\r\n]*+[^\r\n]++(?:\r\n|\r|\n|\Z)")
# A cell in quotes, opened where a cell starts, up to the end of its line where it is not closed.
_QUOTED = re.compile(rb'(?:^|[,\r\n])"[^"\r\n]*+(?:""[^"\r\n]*+)*+(?P<close>"?)')

Parsed: TypeAlias = tuple[list[Any], int]
"""Record batches of a block's rows, and how many of its lines make no row of them."""


class CsvSource(LocalSource):
    """A source of CSV files of the same columns, in any order, one file after the other.

    Names are those of the first file; parts are files.

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

    unit = "file"
    fleeting = True  # text takes longer to parse than to sum

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = [(path, stamp(path), _header(path)) for path in paths]
        self.names = self._files[0][2]
        self.parts = len(self._files)

    def kind(self, name: str) -> Kind:
        """Return "object", whatever the cells.

        Raises
        ------
        DataError
            Where the name is absent or repeated in one of the files.
        """
        first = self._files[0][0]
        if name not in self.names:
            # Without the names that it has: a file without a header would show its first row.
            raise DataError(f"the first line of {first} names no column {name!r}")
        find_column(self.names, name)
        for path, _, header in self._files:
            if header.count(name) != 1:
                raise DataError(f"{first} has a column {name!r} and {path} has not")
        return "object"

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        numbers = {name for name, how in columns.items() if isinstance(how, Numeric | Unbounded)}
        for part, (path, first, header) in enumerate(self._files):
            check_same(path, first)
            spoilt = 0
            kinds = {name: _NUMBER if name in numbers else _TEXT for name in columns}
            for batches, lines in _parsed_blocks(path, header, kinds or {header[0]: _TEXT}):
                spoilt += lines
                yield from batch_pieces(((part, batch) for batch in batches), columns, size)
            for cut in slices(spoilt, size):
                missing = partial(missing_chunk, columns, cut.stop - cut.start)
                yield Piece(cut.stop - cut.start, missing, part)


def _header(path: str) -> tuple[str, ...]:
    failed = f"{path} cannot be read as CSV, or has no line with a header"
    blocks = line_blocks(path, _HEADER_BLOCK)
    block, _ = guarded(lambda: next(blocks, (b"", 0)), failed)
    blocks.close()
    line = _HEADER.match(block)
    first = line[0].lstrip(b"\r\n") if line else b""
    names: list[str] = guarded(lambda: _table(first, None, {})[0].column_names, failed)
    if any(letter in name for name in names for letter in "\0\ufffd"):
        raise DataError(f"{failed} in UTF-8")
    if any(math.isfinite(number(name)) for name in names):
        # Not which: a row must not end in a message.
        raise DataError(
            f"the first line of {path} holds numbers, where the names of the columns must be: "
            "write a header above the rows"
        )
    return tuple(names)


# ---- lines ---------------------------------------------------------------------------------------


def line_blocks(path: str, size: int = _BLOCK) -> Generator[tuple[bytes, int]]:
    """Cut a file into blocks of whole lines, in this thread; count those that are too long.

    pyarrow's own streams read ahead in threads that outlive a reader, and Python does not end
    well while such a thread calls it: for a handler of malformed rows, or for a file's bytes.

    Yields
    ------
    block : bytes
        Lines, each with its end.
    spoilt : int
        How many further lines are too long.
    """
    with pa.input_stream(path, compression="detect") as stream:
        rest, held = b"", stream.read(len(MARK)).removeprefix(MARK)
        more, too_long = True, False
        while more:
            fresh = stream.read(size)
            block, more = rest + held + fresh, bool(fresh)
            # No line ends between a carriage return and its line feed, which may come next.
            whole = len(block) - (more and block.endswith(b"\r"))
            block, held = block[:whole], block[whole:]
            first = LINE_END.search(block, len(rest))
            if first is None:
                rest = b"" if too_long else block
                if len(rest) > _LONGEST_ROW:
                    rest, too_long = b"", True
                    yield b"", 1
                continue
            begin = spoilt = 0
            # Only the line that began in what was read before can be too long now.
            if too_long or first.start() > _LONGEST_ROW:
                begin, spoilt, too_long = first.end(), int(not too_long), False
            end = after_last_line(block, begin, len(block)) or begin
            yield _utf8(block[begin:end]), spoilt
            rest = block[end:]
    if rest:
        yield _utf8(rest + b"\n"), 0


def after_last_line(block: bytes, start: int, stop: int) -> int:
    """Return the place after the last end of a line in `block[start:stop]`; 0 where none is."""
    return max(block.rfind(b"\n", start, stop), block.rfind(b"\r", start, stop)) + 1


def _utf8(block: bytes) -> bytes:
    """Replace text that is not UTF-8: pyarrow prints the bytes of a malformed row that has some."""
    return block if block.isascii() else block.decode(errors="replace").encode()


def without_open_quotes(block: bytes) -> tuple[bytes, int]:
    """Take out the lines with a quote that is open at their end, and count them.

    Parameters
    ----------
    block : bytes
        Whole lines.
    """
    kept, start, lines = [], 0, 0
    for cell in _QUOTED.finditer(block):
        if not cell["close"]:
            first = after_last_line(block, 0, cell.start() + (block[cell.start()] in b"\r\n"))
            end = LINE_END.search(block, cell.end())
            before = block[start:first]
            # A carriage return must not become one end of a line with a line feed that comes next.
            kept.append(before + b"\n" if before.endswith(b"\r") else before)
            start = end.end() if end else len(block)
            lines += 1
    return b"".join([*kept, block[start:]]), lines


def is_line_by_line(block: bytes, rows: int) -> bool:
    """Tell whether a parser that let cells in quotes go on over lines read each as a row.

    Parameters
    ----------
    block : bytes
        Whole lines.
    rows : int
        That the parser found, malformed ones included.

    Notes
    -----
    A row ends where a line ends, so each takes in one line at least: where they are as many as the
    lines, each is one line. No quote was open at the end of a line, then, but perhaps of the last
    one, behind which the parser had nothing to go on with. That one is looked at.
    """
    if b'"' not in block:
        return True
    if rows != block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n"):
        return False
    end = 2 if block.endswith(b"\r\n") else 1
    last = block[after_last_line(block, 0, len(block) - end) :]
    return not without_open_quotes(last)[1]


# ---- rows ----------------------------------------------------------------------------------------


def parsed(block: bytes, header: Sequence[str], kinds: dict[str, Any]) -> Parsed:
    """Parse some columns of a block of whole lines, each of them for itself.

    `kinds` are their types; they all become text here once a cell is no number.
    """
    if not block:
        return [], 0
    table = None
    with suppress(pa.ArrowInvalid):
        table, bad = _table(block, header, kinds)
    if table is None:
        kinds.update(dict.fromkeys(kinds, _TEXT))
        table, bad = _table(block, header, kinds)
    if not is_line_by_line(block, table.num_rows + bad):
        rest, taken = without_open_quotes(block)
        if taken:
            batches, bad = parsed(rest, header, kinds)
            return batches, taken + bad
    return table.to_batches(), bad


def _parsed_blocks(path: str, header: Sequence[str], kinds: dict[str, Any]) -> Iterator[Parsed]:
    """Parse a file's rows, block by block: in several threads, a few blocks ahead, in order."""
    failed = f"{path} cannot be read as CSV: it is damaged"
    running = threads(_MOST_THREADS)
    pool = ThreadPoolExecutor(running)
    waiting: deque[Callable[[], Parsed]] = deque()

    def work(block: bytes, spoilt: int) -> Parsed:
        batches, lines = guarded(partial(parsed, block, header, kinds), failed)
        return batches, spoilt + lines

    try:
        headed = False
        for whole, spoilt in guarded_items(line_blocks(path), failed):
            block = whole
            if not headed:
                found = _HEADER.match(whole)
                headed, block = found is not None, whole[found.end() :] if found else b""
            one = partial(work, block, spoilt)
            waiting.append(one if running == 1 else pool.submit(one).result)
            if len(waiting) > running or running == 1:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()
    finally:
        pool.shutdown(cancel_futures=True)


def _table(block: bytes, header: Sequence[str] | None, kinds: Mapping[str, Any]) -> tuple[Any, int]:
    """Parse lines; return a table, and how many have more or fewer cells than `header`."""
    from pyarrow import csv

    bad: list[None] = []

    def skip(row: Any) -> str:
        bad.append(None)
        return "skip"

    # pyarrow drops a mark at the start of what it is given; one that stands there is the cell's.
    if block[: len(MARK)] == MARK:
        block = MARK + block
    table = csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=header),
        csv.ParseOptions(invalid_row_handler=skip, ignore_empty_lines=False),
        csv.ConvertOptions(
            check_utf8=False,
            column_types=kinds,
            include_columns=[*kinds],  # none are all of them
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    return table, len(bad)
