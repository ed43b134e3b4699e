"""Labels of a page, broken into lines at sensible places.

Tested in `tests/results/test_summary.py`.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["fold"]

_PIECES: Final = re.compile(r"[\[(]?[^\s\[(:_]*[:_]?\s*")


def fold(label: str, limit: int) -> list[str]:
    """Break a label into lines: at blanks, before brackets, after colons and underscores.

    A piece that is still too long is cut, and what is left over has at least four characters, so
    that no line is a lone bracket.
    """
    lines, line = [], ""
    for piece in _PIECES.findall(label):
        if len(line) + len(piece.rstrip()) > limit and line:
            lines.append(line.rstrip())
            line = "  "
        line += piece
        while len(line.rstrip()) > limit:
            cut = min(limit, len(line.rstrip()) - 4)
            lines.append(line[:cut])
            line = "  " + line[cut:]
    return [*lines, line.rstrip()]
