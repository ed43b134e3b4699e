"""Lines of CSV files, and quotes that are opened and not closed by the end of their line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["LINE_END", "after_last_line", "is_line_by_line", "without_open_quotes"]

# A cell in quotes, opened where a cell starts, up to the end of its line where it is not closed.
_QUOTED = re.compile(rb'(?:^|[,\r\n])"[^"\r\n]*+(?:""[^"\r\n]*+)*+(?P<close>"?)')
LINE_END = re.compile(rb"\r\n|\r|\n")
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_STEP = 1 << 18
_TAIL = 1 << 12

Letters: TypeAlias = NDArray[np.uint8]


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
            first = cell.start() + (block[cell.start()] in b"\r\n")
            first = max(block.rfind(b"\n", 0, first), block.rfind(b"\r", 0, first)) + 1
            end = LINE_END.search(block, cell.end())
            before = block[start:first]
            # A carriage return must not become one end of a line with a line feed that comes next.
            kept.append(before + b"\n" if before.endswith(b"\r") else before)
            start = end.end() if end else len(block)
            lines += 1
    return b"".join([*kept, block[start:]]), lines


def is_line_by_line(block: memoryview, rows: int) -> bool:
    """Tell whether a parser that let cells in quotes go on over lines read each as a row.

    Parameters
    ----------
    block : memoryview
        Whole lines.
    rows : int
        That the parser found, malformed ones included.

    Notes
    -----
    A row ends where a line ends, so each takes in one line at least: where they are as many as the
    lines, each is one line. No quote was open at the end of a line, then, but perhaps of the last
    one, behind which the parser had nothing to go on with. That one is looked at.
    """
    letters = np.frombuffer(block, dtype=np.uint8)
    if not any((part == _QUOTE).any() for part in _parts(letters)):
        return True
    if rows != _lines(letters):
        return False
    end = 2 if bytes(block[-2:]) == b"\r\n" else 1
    last = bytes(block[after_last_line(block, 0, len(block) - end) :])
    return not without_open_quotes(last)[1]


def _lines(letters: Letters) -> int:
    """Count the ends of lines."""
    newlines, returns = _count(letters, _NEWLINE), _count(letters, _RETURN)
    both = (letters[:-1] == _RETURN) & (letters[1:] == _NEWLINE) if returns and newlines else []
    return newlines + returns - int(np.count_nonzero(both))


def _count(letters: Letters, letter: int) -> int:
    return sum(int(np.count_nonzero(part == letter)) for part in _parts(letters))


def _parts(letters: Letters) -> Iterator[Letters]:
    """Cut a block into parts that a comparison of all their letters leaves in the cache."""
    return (letters[at : at + _STEP] for at in range(0, len(letters), _STEP))


def after_last_line(block: memoryview, start: int, stop: int) -> int:
    """Return the place after the last end of a line in `block[start:stop]`; 0 where none is."""
    while start < stop:
        low = max(start, stop - _TAIL)
        letters = bytes(block[low:stop])
        place = max(letters.rfind(b"\n"), letters.rfind(b"\r"))
        if place >= 0:
            return low + place + 1
        stop = low
    return 0
