"""Pieces of HTML; every text is escaped. Tested in `tests/reporting/test_page.py`."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpreg.errors import printable

__all__ = ["as_json", "number", "pairs", "section", "table", "text"]


def section(name: str, body: str) -> str:
    """Return a section under its heading."""
    return f"<h2>{text(name)}</h2>\n{body}"


def pairs(told: dict[str, Any]) -> str:
    """Return a table of names and values."""
    rows = "".join(
        f"<tr><th>{text(name.replace('_', ' '))}</th>"
        f'<td class="mono">{text(as_json(value))}</td></tr>'
        for name, value in told.items()
    )
    return f'<table class="asked">{rows}</table>' if rows else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Return a table; `numbers` are the places of columns of numbers."""
    kinds = [' class="number"' if place in numbers else "" for place in range(len(heads))]
    top = "".join(f"<th{kind}>{text(name)}</th>" for kind, name in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{text(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def number(value: float) -> str:
    """Write a number with four digits."""
    return f"{value:,.4g}" if np.isfinite(value) else "not known"


def as_json(value: Any) -> str:
    """Write a declared value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def text(text: object) -> str:
    """Escape a text for HTML, control characters too."""
    return html.escape(printable(str(text)), quote=True)
