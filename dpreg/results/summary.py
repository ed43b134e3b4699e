"""Draws a page as text, HTML, LaTeX or CSV, in the manner of statsmodels' tables.

Every character of every name is escaped for where it goes.

The page that a summary prints, as plain data: what stands on it, not how it looks.

`page` makes a `Summary` of a result, which draws itself as text, HTML, LaTeX or CSV.
"""

from __future__ import annotations

import csv
import html
import io
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, ClassVar, Final

from dpreg.errors import printable

if TYPE_CHECKING:
    from statsmodels.iolib.table import SimpleTable


Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels with values, side by side in two columns.

    Attributes
    ----------
    left, right : tuple of (label, value)
    """

    headers: ClassVar[Row] = ()
    aligns: ClassVar[str] = "lrllr"

    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Both columns, as rows of a table without headers."""
        pairs = zip_longest(self.left, self.right, fillvalue=("", ""))
        return tuple((_colon(a), x, "", _colon(b), y) for (a, x), (b, y) in pairs)


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

    headers: Row
    rows: tuple[Row, ...]
    aligns: str
    title: str = ""

    def columns(self, places: Sequence[int]) -> Grid:
        """Return some of the columns."""
        heads, *rows = (tuple(row[j] for j in places) for row in (self.headers, *self.rows))
        return Grid(heads, tuple(rows), "".join(self.aligns[j] for j in places))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text that wraps, after a label."""

    label: str
    text: str


Table = Facts | Grid
Block = Table | Paragraph


_WIDTH: Final = 78
_WIDEST_CELL: Final = 24
_LABEL: Final = 20
"""The least width of a first column that is worth more than cutting the table."""
_PAGE: Final = 45  # rows of a table in LaTeX
_LATEX_WIDTH: Final = 68
_LONG_CELL: Final = 24
_HANG: Final = 10
_STAMP_STYLE: Final = "color: #b00000; font-weight: bold; text-align: center"
_TEXT_STYLE: Final = "max-width: 60em; margin: 4px 0; text-align: left"
_TABLE_STYLE: Final = "border-collapse: collapse; margin: 8px 0; border: solid; border-width: 1px 0"
_SIDES: Final = {"l": "left", "r": "right", "c": "center"}
_PIECES: Final = re.compile(r"[\[(]?[^\s\[(:_]*[:_]?\s*")

_LATEX: Final = {
    **{mark: f"\\{mark}" for mark in "{}$&%#_"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line's \\ a bare [ would open an optional argument
    '"': "{''}",  # \textquotedbl is not in LaTeX's default encoding
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """The printable page of a result.

    `print` it for text; notebooks show its HTML. It holds strings only.

    Parameters
    ----------
    title : str
    stamp : str or None
        For its head and foot where there is one.
    blocks : tuple of Facts, Grid and Paragraph
    paper : tuple
        The blocks that LaTeX shows, where these are others.
    """

    title: str
    stamp: str | None
    blocks: tuple[Block, ...]
    paper: tuple[Block, ...] = ()

    @property
    def tables(self) -> list[SimpleTable]:
        """The tables as statsmodels' `SimpleTable`, in order."""
        from statsmodels.iolib.table import SimpleTable  # slow to import

        tables = [block for block in self.blocks if not isinstance(block, Paragraph)]
        return [SimpleTable([*_head(block), *block.rows]) for block in tables]

    def as_text(self) -> str:
        """Return the page as text of 78 columns; a table that is wider goes on below itself."""
        stamp = [self.stamp.center(_WIDTH).rstrip()] if self.stamp else []
        title = textwrap.wrap(printable(self.title), _WIDTH)
        lines = [*stamp, *(line.center(_WIDTH).rstrip() for line in title)]
        rule, before = "=" * _WIDTH, None
        for block in self.blocks:
            if isinstance(block, Paragraph):
                lines += [rule] * (before is not Paragraph) + [_wrapped(block)]
            else:
                lines += [line for part in _parts(block) for line in (rule, _text_table(part))]
            before = type(block)
        return "\n".join([*lines, rule, *stamp])

    def as_html(self) -> str:
        """Return the page as an HTML fragment."""
        stamp = [f'<p style="{_STAMP_STYLE}">{_to_html(self.stamp)}</p>'] if self.stamp else []
        title = f"<p><strong>{_to_html(self.title)}</strong></p>"
        blocks = map(_html_block, self.blocks)
        return "\n".join(['<div class="dpreg">', *stamp, title, *blocks, *stamp, "</div>"])

    def as_latex(self) -> str:
        r"""Return the page as LaTeX for the body of a document; it needs no package.

        Of a result this is the table of a paper, of three columns; ``summary(full=True)`` has the
        whole page. Tables are as wide as a page of the standard classes at 10 points, and long ones
        are cut into several, so that they break over pages.
        """
        stamp, title = (
            [rf"\begin{{center}}\textbf{{{_to_latex(text)}}}\end{{center}}"] * bool(text)
            for text in (self.stamp or "", self.title)
        )
        blocks = chain.from_iterable(map(_latex_block, self.paper or self.blocks))
        return "\n".join([*stamp, *title, *blocks, *stamp]) + "\n"

    def as_csv(self) -> str:
        """Return the page as comma-separated values; labels and texts are rows of their own."""
        stamp = [[self.stamp]] if self.stamp else []
        rows: list[Sequence[str]] = [*stamp, [self.title]]
        for block in self.blocks:
            if isinstance(block, Paragraph):
                rows.append([block.label, block.text])
            elif isinstance(block, Facts):
                rows += [*block.left, *block.right]
            else:
                rows += [*_head(block), *block.rows]
        text = io.StringIO()
        plain = [[printable(cell) for cell in row] for row in [*rows, *stamp]]
        csv.writer(text, lineterminator="\n").writerows(plain)
        return text.getvalue()

    __repr__ = as_text
    _repr_html_ = as_html
    _repr_latex_ = as_latex


class Printed:
    """The part that results, plans and studies share: they are read as their `summary`."""

    __slots__ = ()

    def summary(self) -> Summary:
        """Return the printable page."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


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


def _head(block: Table) -> list[Row]:
    """Return a table's headers, each on one line; facts have none."""
    return [tuple(head.replace("\n", " ") for head in block.headers)] if block.headers else []


def _text_table(block: Table) -> str:
    if isinstance(block, Facts):  # two labels and two values share the width
        labels = [max(len(name) + 1 for name, _ in side) for side in (block.left, block.right)]
        half = (_WIDTH - 5) // 2
        widths = [labels[0], half - labels[0], 1, labels[1], _WIDTH - 5 - half - labels[1]]
        head, body = _folded(block, widths)
    else:
        head, body = _folded(block, _limits(block))
        widths = _widths(head + body)
        spare = _WIDTH - sum(widths) - len(widths) + 1
        widths = [width + spare // len(widths) for width in widths]
        widths[0] += spare % len(widths)
    sides = {"l": str.ljust, "r": str.rjust, "c": str.center}
    put = [sides[align] for align in block.aligns]
    rows = (zip(put, row, widths, strict=True) for row in head + body)
    lines = [" ".join(side(cell, width) for side, cell, width in row).rstrip() for row in rows]
    if head:
        lines.insert(len(head), "-" * (sum(widths) + len(widths) - 1))
    return "\n".join(lines)


def _folded(block: Table, limits: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Return the lines of head and body, in which no cell is wider than it may be."""
    upwards = [header.split("\n")[::-1] for header in block.headers]
    head: list[Row] = [*zip_longest(*upwards, fillvalue="")][::-1]  # short ones stand lowest
    body: list[Row] = []
    for row in block.rows:
        each = [fold(printable(cell), limit) for cell, limit in zip(row, limits, strict=True)]
        body += zip_longest(*each, fillvalue="")
    return head, body


def _limits(block: Grid) -> list[int]:
    """Return how wide each column may be: the first takes what the others leave of a page."""
    others = [_WIDEST_CELL] * (len(block.headers) - 1)
    head, body = _folded(block, [_WIDTH, *others])
    left = _WIDTH - sum(_widths(head + body)[1:]) - len(others)
    return [max(left, _LABEL), *others]


def _widths(rows: list[Row]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _parts(block: Table, width: int = _WIDTH) -> list[Table]:
    """Cut a table that is too wide into several with the same first column."""
    if isinstance(block, Facts):
        return [block]
    head, body = _folded(block, _limits(block))
    first = min(max(map(len, (block.headers[0], *(row[0] for row in block.rows)))), _LABEL)
    widths, groups = [first, *_widths(head + body)[1:]], [[0]]
    for column in range(1, len(widths)):
        wide = sum(widths[j] + 1 for j in (*groups[-1], column)) - 1
        if wide > width and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(column)
    return [block] if len(groups) == 1 else [block.columns(group) for group in groups]


def _wrapped(block: Paragraph) -> str:
    label = _label(block).ljust(_HANG - 1 if block.label[:1] != "[" else 0) + " "
    indent = " " * (len(label) if len(label) <= _HANG else 4)
    return textwrap.fill(
        label + printable(block.text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )


def _html_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        label, text = _to_html(_label(block)), _to_html(block.text)
        return f'<p style="{_TEXT_STYLE}"><strong>{label}</strong> {text}</p>'
    rows = [_html_row(row, block.aligns, head=True) for row in _head(block)]
    names = isinstance(block, Facts)
    rows += [_html_row(row, block.aligns, names=names) for row in block.rows]
    table = f'<table style="{_TABLE_STYLE}" class="simpletable">\n' + "\n".join(rows)
    return f'<div style="overflow-x: auto">{table}\n</table></div>'


def _html_row(row: Row, aligns: str, *, head: bool = False, names: bool = False) -> str:
    cells = []
    for cell, align in zip(row, aligns, strict=True):
        tag = "th" if head or (names and cell.endswith(":")) else "td"
        line = "; border-bottom: 1px solid" if head else ""
        style = f"text-align: {_SIDES[align]}; padding: 1px 10px{line}"
        cells.append(f'<{tag} style="{style}">{_to_html(cell)}</{tag}>')
    return f"<tr>{' '.join(cells)}</tr>"


def _latex_block(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        label, text = _to_latex(_label(block)), _to_latex(block.text)
        return [rf"{{\noindent\raggedright\textbf{{{label}}} {text}\par}}"]
    return [
        _latex_table(part, part.rows[at : at + _PAGE])
        for part in _parts(block, _LATEX_WIDTH)
        for at in range(0, max(len(part.rows), 1), _PAGE)
    ]


def _latex_table(block: Table, rows: tuple[Row, ...]) -> str:
    heads = [[f"\\textbf{{{_to_latex(c)}}}" if c else "" for c in row] for row in _head(block)]
    cells = [[_latex_cell(cell) for cell in row] for row in rows]
    head, body = ([" & ".join(line) + r" \\" for line in part] for part in (heads, cells))
    lines = [
        r"\begin{center}",
        r"\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{block.aligns}}}",
        *([r"\hline", *head] if head else []),
        *[r"\hline", *body, r"\hline"],
        *[r"\end{tabular}", r"\end{center}"],
    ]
    return "\n".join(lines)


def _latex_cell(cell: str) -> str:
    text = _to_latex(cell)
    if len(cell) <= _LONG_CELL:
        return text
    for mark in (r"\_", ":"):
        text = text.replace(mark, mark + r"\allowbreak{}")
    for mark in ("(", "{[}"):
        text = text.replace(mark, r"\allowbreak{}" + mark)
    return rf"\parbox[t]{{0.3\linewidth}}{{\raggedright {text}}}"


def _colon(label: str) -> str:
    return f"{label}:" if label else ""


def _label(block: Paragraph) -> str:
    return block.label if block.label.startswith("[") else _colon(block.label)


def _to_html(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _to_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(text))
