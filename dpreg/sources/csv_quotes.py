"""Lines of CSV files, and quotes that are opened and not closed by the end of their line."""

from __future__ import annotations

import re

import numpy as np

__all__ = ["LINE_END", "after_last_line", "is_line_by_line", "without_open_quotes"]

# A cell in quotes, opened where a cell starts, up to the end of its line where it is not closed.
_QUOTED = re.compile(rb'(?:^|[,\r\n])"[^"\r\n]*+(?:""[^"\r\n]*+)*+(?P<close>"?)')
LINE_END = re.compile(rb"\r\n|\r|\n")
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_STEP = 1 << 12


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
            kept.append(block[start:first])
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
    if not (letters == _QUOTE).any():
        return True
    if rows != _lines(letters):
        return False
    bare = len(block) - (2 if block[-2:] == b"\r\n" else 1)
    last = bytes(block[after_last_line(block, 0, bare) :])
    return not without_open_quotes(last)[1]


def _lines(letters: np.ndarray) -> int:
    """Count the ends of lines."""
    newlines, returns = letters == _NEWLINE, letters == _RETURN
    both = np.count_nonzero(returns[:-1] & newlines[1:])
    return np.count_nonzero(newlines) + np.count_nonzero(returns) - both


def after_last_line(block: memoryview, start: int, stop: int) -> int:
    """Return the place after the last end of a line within `block[start:stop]`; 0 if it has none."""
    while start < stop:
        low = max(start, stop - _STEP)
        letters = bytes(block[low:stop])
        place = max(letters.rfind(b"\n"), letters.rfind(b"\r"))
        if place >= 0:
            return low + place + 1
        stop = low
    return 0
