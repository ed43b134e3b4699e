"""Quotes of CSV files that are opened and not closed by the end of their line."""

from __future__ import annotations

import re

import numpy as np

__all__ = ["LINE_END", "without_open_quotes"]

# A cell in quotes, opened where a cell starts, up to the end of its line where it is not closed.
_QUOTED = re.compile(rb'(?:^|[,\r\n])"[^"\r\n]*+(?:""[^"\r\n]*+)*+(?P<close>"?)')
LINE_END = re.compile(rb"\r\n|\r|\n")
_QUOTE, _NEWLINE, _RETURN = b'"\n\r'
_ENDS = np.isin(np.arange(256), [*b",\n\r"])  # letters that a cell ends before


def without_open_quotes(block: bytes) -> tuple[bytes, int]:
    """Take out the lines with a quote that is open at their end, and count them.

    Parameters
    ----------
    block : bytes
        Whole lines.
    """
    if b'"' not in block or _only_whole_cells_quoted(block):
        return block, 0
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


def _only_whole_cells_quoted(block: bytes) -> bool:
    """Tell whether quotes stand around whole cells of one line alone: then none is open.

    That is so where quotes come in pairs, the first of each at the start of a cell, and no line
    ends between them. (A second one that were doubled would be followed by a first one that stands
    at no start.)
    """
    letters = np.frombuffer(block, dtype=np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    first, second = quotes[::2], quotes[1::2]
    if len(first) != len(second):
        return False
    before = letters[first - 1]
    starts = _ENDS[before] | (first == 0)
    if not starts.all():
        return False
    lines = np.flatnonzero((letters == _NEWLINE) | (letters == _RETURN))
    return bool((np.searchsorted(lines, first) == np.searchsorted(lines, second)).all())
