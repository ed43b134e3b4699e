"""Cuts CSV files into blocks of whole lines.

A line ends with a line feed, a carriage return, or both. Where a file is cut changes nothing: each
line comes in one block, and one longer than 16 MB, its end apart, in none.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from dpreg.sources.arrow_library import pa
from dpreg.sources.csv_quotes import LINE_END

__all__ = ["MARK", "Malformed", "line_blocks"]

MARK = b"\xef\xbb\xbf"  # that some programs put before UTF-8
_BLOCK = 1 << 21  # bytes read at a time
_LONGEST_ROW = 1 << 24


class Malformed:
    """Counts lines that make no row: of more or fewer cells than the header, with an open quote."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, row: Any) -> str:
        """Count a row that pyarrow cannot split into the header's columns, and leave it out."""
        self.rows += 1
        return "skip"


def line_blocks(path: str, malformed: Malformed, size: int = _BLOCK) -> Generator[bytes]:
    """Cut a file into blocks of whole lines, in this thread; count those that are too long.

    pyarrow's own streams read ahead in threads that outlive a reader, and Python does not end
    well while such a thread calls it: for a handler of malformed rows, or for a file's bytes.
    """
    with pa.input_stream(path, compression="detect") as stream:
        rest, too_long = b"", False
        for read in _reads(stream, size):
            raw = read
            if too_long:  # what is left of a line that was given up
                found = LINE_END.search(raw)
                too_long, raw = found is None, raw[found.end() :] if found else b""
            end = max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1
            if not end:
                rest += raw
                if len(rest) > _LONGEST_ROW:
                    rest, too_long = b"", True
                    malformed.rows += 1
                continue
            # Only the line that began in what was read before can be too long now.
            start = LINE_END.search(raw)
            if rest and start and len(rest) + start.start() > _LONGEST_ROW:
                rest, raw, end = b"", raw[start.end() :], end - start.end()
                malformed.rows += 1
            if rest or end:
                yield _utf8(b"".join([rest, memoryview(raw)[:end]]))
            rest = raw[end:]
    if rest:
        yield _utf8(rest + b"\n")


def _reads(stream: Any, size: int) -> Iterator[bytes]:
    """Read a file in pieces, none of which ends between a carriage return and its line feed."""
    held = stream.read(len(MARK)).removeprefix(MARK)
    while more := stream.read(size):
        raw, held = held + more, b""
        if raw.endswith(b"\r"):
            raw, held = raw[:-1], b"\r"
        yield raw
    if held:
        yield held


def _utf8(block: bytes) -> bytes:
    """Replace text that is not UTF-8: pyarrow prints the bytes of a malformed row that has some."""
    if block.isascii():
        return block
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode(errors="replace").encode()
    return block
