"""Cuts CSV files into blocks of whole lines.

A line ends with a line feed, a carriage return, or both. Where a file is cut changes nothing: each
line comes in one block, and one longer than 16 MB, its end apart, in none.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from dpreg.sources.arrow_library import pa
from dpreg.sources.csv_quotes import LINE_END, after_last_line

__all__ = ["MARK", "Malformed", "line_blocks"]

MARK = b"\xef\xbb\xbf"  # that some programs put before UTF-8
_BLOCK = 1 << 21  # bytes read at a time
_LONGEST_ROW = 1 << 24
_RETURN = ord("\r")


class Malformed:
    """Counts lines that make no row: of more or fewer cells than the header, with an open quote."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, row: Any) -> str:
        """Count a row that pyarrow cannot split into the header's columns, and leave it out."""
        self.rows += 1
        return "skip"


def line_blocks(path: str, malformed: Malformed, size: int = _BLOCK) -> Generator[memoryview]:
    """Cut a file into blocks of whole lines, in this thread; count those that are too long.

    Each block lies in memory of Arrow's that holds what was read and the start of its first line,
    so that it need not be copied: what is left over goes to the next one.

    pyarrow's own streams read ahead in threads that outlive a reader, and Python does not end
    well while such a thread calls it: for a handler of malformed rows, or for a file's bytes.
    """
    with pa.input_stream(path, compression="detect") as stream:
        rest, held = b"", stream.read(len(MARK)).removeprefix(MARK)
        too_long, more = False, True
        while more:
            read = _read(stream, rest + held, size)
            begin, fresh = 0, len(rest)
            more = len(read) > fresh + len(held)
            # No line ends between a carriage return and its line feed, which may come next.
            whole = len(read) - (more and read[-1] == _RETURN)
            held = bytes(read[whole:])
            if too_long:  # what is left of a line that was given up
                found = LINE_END.search(read, fresh, whole)
                too_long, begin = found is None, found.end() if found else whole
                fresh = begin
            end = after_last_line(read, fresh, whole)
            if not end:
                rest = bytes(read[begin:whole])
                if len(rest) > _LONGEST_ROW:
                    rest, too_long = b"", True
                    malformed.rows += 1
                continue
            # Only the line that began in what was read before can be too long now.
            first = LINE_END.search(read, fresh, whole) if begin < fresh else None
            if first and first.start() - begin > _LONGEST_ROW:
                begin = first.end()
                malformed.rows += 1
            if begin < end:
                yield _utf8(read[begin:end])
            rest = bytes(read[end:whole])
    if rest:
        yield _utf8(memoryview(rest + b"\n"))


def _read(stream: Any, before: bytes, size: int) -> memoryview:
    """Read up to `size` bytes, none at the file's end, behind those that are there already."""
    buffer = memoryview(pa.allocate_buffer(len(before) + size)).cast("B")
    buffer[: len(before)] = before
    return buffer[: len(before) + stream.readinto(buffer[len(before) :])]


def _utf8(block: memoryview) -> memoryview:
    """Replace text that is not UTF-8: pyarrow prints the bytes of a malformed row that has some."""
    if np.frombuffer(block, dtype=np.int8).min() >= 0:
        return block
    raw = bytes(block)
    try:
        raw.decode()
    except UnicodeDecodeError:
        return memoryview(raw.decode(errors="replace").encode())
    return block
