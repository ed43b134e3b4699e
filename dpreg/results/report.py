"""The page that a summary prints, as plain data: what stands on it, not how it looks.

`page` makes a `Report` from a result; `summary` draws it as text, HTML, LaTeX or CSV.

Tested in `tests/results/test_page.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Block", "Facts", "Grid", "Paragraph", "Report"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels with values, side by side in two columns.

    Attributes
    ----------
    left, right : tuple of (label, value)
    """

    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table.

    Attributes
    ----------
    headers : tuple of str
        A line break in a header is drawn in text, and is a blank elsewhere.
    rows : tuple of tuples of str
    aligns : str
        One of "l", "r", "c" for each column.
    title : str
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    aligns: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that wraps, after a label."""

    label: str
    text: str


Block = Facts | Grid | Paragraph


@dataclass(frozen=True, slots=True)
class Report:
    """A page: a title, a stamp for its head and foot where there is one, and blocks.

    `paper` has the blocks that LaTeX shows, where these are others.
    """

    title: str
    stamp: str | None
    blocks: tuple[Block, ...]
    paper: tuple[Block, ...] = ()

    def titled(self, title: str | None) -> Report:
        """Return the page under another title; None keeps it."""
        return self if title is None else replace(self, title=title)
