"""Draws a `Report` as text, HTML, LaTeX or CSV, with statsmodels' tables.

Formats are copies: nothing of statsmodels' is changed. Every character of every name is escaped
for where it goes. This is the only file that imports statsmodels.iolib.
"""

from __future__ import annotations

import copy
import csv
import html
import io
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from dpreg.errors import printable
from dpreg.results.lines import fold
from dpreg.results.report import Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from statsmodels.iolib.table import SimpleTable

__all__ = ["Summary"]

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

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line's \\ a bare [ would open an optional argument
    '"': "{''}",  # \textquotedbl is not in LaTeX's default encoding
}


class _Head(str):
    """A cell of a header row."""

    __slots__ = ()


class Summary:
    """The printable page of a result.

    `print` it for text; notebooks show its HTML. It holds strings only.

    Parameters
    ----------
    report : Report
    """

    __slots__ = ("report",)

    def __init__(self, report: Report) -> None:
        self.report = report

    @property
    def tables(self) -> list[SimpleTable]:
        """The tables as statsmodels' `SimpleTable`, in order."""
        return [_table(block) for block in self.report.blocks if not isinstance(block, Paragraph)]

    def as_text(self) -> str:
        """Return the page as text of 78 columns; a table that is wider goes on below itself."""
        stamp = [self.report.stamp.center(_WIDTH).rstrip()] if self.report.stamp else []
        title = textwrap.wrap(printable(self.report.title), _WIDTH)
        lines = [*stamp, *(line.center(_WIDTH).rstrip() for line in title)]
        in_text = False
        for block in self.report.blocks:
            if not in_text or not isinstance(block, Paragraph):
                lines.append("=" * _WIDTH)
            in_text = isinstance(block, Paragraph)
            if isinstance(block, Paragraph):
                lines.append(_wrapped(block))
            else:
                lines.append(("\n" + "=" * _WIDTH + "\n").join(map(_text_table, parts(block))))
        return "\n".join([*lines, "=" * _WIDTH, *stamp])

    def as_html(self) -> str:
        """Return the page as an HTML fragment."""
        stamp = [f'<p style="{_STAMP_STYLE}">{html.escape(self.report.stamp or "")}</p>']
        lines = ['<div class="dpreg">', *stamp[: bool(self.report.stamp)]]
        lines.append(f"<p><strong>{_to_html(self.report.title)}</strong></p>")
        for block in self.report.blocks:
            if isinstance(block, Paragraph):
                label, text = _to_html(_label(block)), _to_html(block.text)
                lines.append(f'<p style="{_TEXT_STYLE}"><strong>{label}</strong> {text}</p>')
            else:
                table = str(_table(block).as_html())
                table = table.replace("<table ", f'<table style="{_TABLE_STYLE}" ', 1)
                lines.append(f'<div style="overflow-x: auto">{table}</div>')
        return "\n".join([*lines, *stamp[: bool(self.report.stamp)], "</div>"])

    def as_latex(self) -> str:
        r"""Return the page as LaTeX for the body of a document; it needs no package.

        Tables are as wide as a page of the standard classes at 10 points, and long ones are cut
        into several, so that they break over pages.
        """
        stamp = [rf"\begin{{center}}\textbf{{{_to_latex(self.report.stamp or '')}}}\end{{center}}"]
        lines = [*stamp[: bool(self.report.stamp)]]
        lines.append(rf"\begin{{center}}\textbf{{{_to_latex(self.report.title)}}}\end{{center}}")
        for block in self.report.blocks:
            if isinstance(block, Paragraph):
                label, text = _to_latex(_label(block)), _to_latex(block.text)
                lines.append(rf"{{\noindent\raggedright\textbf{{{label}}} {text}\par}}")
            else:
                lines += [
                    _latex_table(page)
                    for part in parts(block, _LATEX_WIDTH)
                    for page in _pages(part)
                ]
        return "\n".join([*lines, *stamp[: bool(self.report.stamp)]]) + "\n"

    def as_csv(self) -> str:
        """Return the page as comma-separated values; labels and texts are rows of their own."""
        stamp = [[self.report.stamp]] if self.report.stamp else []
        rows: list[Sequence[str]] = [*stamp, [self.report.title]]
        for block in self.report.blocks:
            if isinstance(block, Paragraph):
                rows.append([block.label, block.text])
            elif isinstance(block, Facts):
                rows += [*block.left, *block.right]
            else:
                rows += _one_line(_cells(block))
        text = io.StringIO()
        plain = [[printable(cell) for cell in row] for row in [*rows, *stamp]]
        csv.writer(text, lineterminator="\n").writerows(plain)
        return text.getvalue()

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.as_html()

    def _repr_latex_(self) -> str:
        return self.as_latex()


def _cells(block: Facts | Grid) -> list[list[str]]:
    """Return a block's rows; cells of a header row are `_Head`."""
    if isinstance(block, Grid):
        return [[_Head(cell) for cell in block.headers], *map(list, block.rows)]
    pairs = zip_longest(block.left, block.right, fillvalue=("", ""))
    return [[_colon(a), x, "", _colon(b), y] for (a, x), (b, y) in pairs]


def _aligns(block: Facts | Grid) -> str:
    return block.aligns if isinstance(block, Grid) else "lrllr"


def _table(block: Facts | Grid, rows: list[list[str]] | None = None, **text: Any) -> SimpleTable:
    """Return a statsmodels table, its formats copied."""
    # Printing alone needs them, and they are slow to import.
    from statsmodels.iolib.table import SimpleTable
    from statsmodels.iolib.tableformatting import fmt_base

    aligns = _aligns(block)
    base = {**copy.deepcopy(fmt_base), "data_aligns": aligns}
    plain = {"table_dec_above": None, "table_dec_below": None, "data_fmts": ["%s"]}
    html_cells = [partial(_html_cell, align=align) for align in aligns]
    table = SimpleTable(
        rows or _one_line(_cells(block)),
        txt_fmt={**base, **plain, "colwidths": None, **text},
        html_fmt={"data_fmts": html_cells, "data_aligns": aligns},
        ltx_fmt={"data_fmts": [_latex_cell], "data_aligns": aligns, "replacements": {}},
    )
    if isinstance(block, Grid):
        heads = [row for row in table if row and isinstance(row[0].data, _Head)]
        heads[-1].add_format("txt", row_dec_below="-")
        heads[-1].add_format("latex", row_dec_below=r"\midrule")
    return table


def parts(block: Facts | Grid, width: int = _WIDTH) -> list[Facts | Grid]:
    """Cut a table that is too wide into several with the same first column."""
    if isinstance(block, Facts):
        return [block]
    widths = _widths(_wrapped_rows(_cells(block), _limits(block)))
    first = min(max(map(len, (block.headers[0], *(row[0] for row in block.rows)))), _LABEL)
    groups: list[list[int]] = [[]]
    room = width - first
    for column, wide in enumerate(widths[1:], 1):
        if room < wide + 1 and groups[-1]:
            groups.append([])
            room = width - first
        groups[-1].append(column)
        room -= wide + 1
    if len(groups) == 1:
        return [block]
    return [
        Grid(
            tuple(block.headers[j] for j in (0, *group)),
            tuple(tuple(row[j] for j in (0, *group)) for row in block.rows),
            "".join(block.aligns[j] for j in (0, *group)),
        )
        for group in groups
    ]


def _text_table(block: Facts | Grid) -> str:
    if isinstance(block, Facts):
        rows, widths = _fact_rows(block)
    else:
        rows = _wrapped_rows(_cells(block), _limits(block))
        widths = _widths(rows)
        spare = _WIDTH - sum(widths) - len(widths) + 1
        widths = [w + spare // len(widths) for w in widths]
        widths[0] += spare % len(widths)
    text = _table(block, rows, colwidths=widths).as_text()
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _fact_rows(block: Facts) -> tuple[list[list[str]], list[int]]:
    """Share the width between two labels and two values; long values take several lines."""
    labels = [max(len(name) + 1 for name, _ in side) for side in (block.left, block.right)]
    values = [(_WIDTH - 5) // 2 - labels[0], (_WIDTH - 5) - (_WIDTH - 5) // 2 - labels[1]]
    widths = [labels[0], values[0], 1, labels[1], values[1]]
    return _wrapped_rows(_cells(block), widths), widths


def _wrapped_rows(rows: list[list[str]], limits: Sequence[int]) -> list[list[str]]:
    """Return rows in which no cell is wider than it may be: long ones go on below."""
    lines: list[list[str]] = []
    for row in rows:
        head = bool(row) and isinstance(row[0], _Head)
        cells = [_fold(cell, limit) for cell, limit in zip(row, limits, strict=True)]
        if head:  # short headers stand on the lowest line
            tall = max(map(len, cells))
            cells = [[""] * (tall - len(cell)) + cell for cell in cells]
        kind = _Head if head else str
        lines += [[kind(cell) for cell in line] for line in zip_longest(*cells, fillvalue="")]
    return lines


def _fold(cell: str, limit: int) -> list[str]:
    if isinstance(cell, _Head):
        return cell.split("\n")
    return fold(printable(cell), limit)


def _limits(block: Grid) -> list[int]:
    """Return how wide each column may be: the first takes what the others leave of a page."""
    others = [_WIDEST_CELL] * (len(block.headers) - 1)
    rows = _wrapped_rows([cells[1:] for cells in _cells(block)], others)
    left = _WIDTH - sum(_widths(rows)) - len(others) if others else _WIDTH
    return [max(left, _LABEL), *others]


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _wrapped(block: Paragraph) -> str:
    label = _label(block).ljust(_HANG - 1 if block.label[:1] != "[" else 0) + " "
    indent = " " * (len(label) if len(label) <= _HANG else 4)
    return textwrap.fill(
        label + printable(block.text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False
    )


def _pages(block: Facts | Grid) -> list[Facts | Grid]:
    """Cut a long table into several that fit on a page each."""
    if isinstance(block, Facts) or len(block.rows) <= _PAGE:
        return [block]
    pieces = [block.rows[i : i + _PAGE] for i in range(0, len(block.rows), _PAGE)]
    return [replace(block, rows=piece) for piece in pieces]


def _latex_table(block: Facts | Grid) -> str:
    text = str(_table(block).as_latex_tabular())
    for rule in ("toprule", "midrule", "bottomrule"):  # booktabs' names
        text = text.replace(f"\\{rule}", r"\hline")
    small = r"\footnotesize\setlength{\tabcolsep}{3pt}"
    return text.replace(r"\begin{tabular}", small + "\n" + r"\begin{tabular}", 1)


def _colon(label: str) -> str:
    return f"{label}:" if label else ""


def _label(block: Paragraph) -> str:
    return block.label if block.label.startswith("[") else _colon(block.label)


def _one_line(rows: list[list[str]]) -> list[list[str]]:
    """Put headers of several lines on one; names keep what they have."""
    return [
        [_Head(cell.replace("\n", " ")) if isinstance(cell, _Head) else cell for cell in row]
        for row in rows
    ]


def _to_html(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _to_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(text))


def _html_cell(cell: str, align: str) -> str:
    tag = "th" if isinstance(cell, _Head) or cell.endswith(":") else "td"
    line = "; border-bottom: 1px solid" if isinstance(cell, _Head) else ""
    style = f"text-align: {_SIDES[align]}; padding: 1px 10px{line}"
    return f'<{tag} style="{style}">{_to_html(cell)}</{tag}>'


def _latex_cell(cell: str) -> str:
    text = _to_latex(cell)
    if len(cell) > _LONG_CELL:
        for mark in (r"\_", ":"):
            text = text.replace(mark, mark + r"\allowbreak{}")
        for mark in ("(", "{[}"):
            text = text.replace(mark, r"\allowbreak{}" + mark)
        return rf"\parbox[t]{{0.3\linewidth}}{{\raggedright {text}}}"
    return rf"\textbf{{{text}}}" if isinstance(cell, _Head) and cell else text
