"""The page of a release report: sections in order, one file, nothing fetched from a network.

What it says stands in ``report.toml``; here is when, and with which numbers. Its pictures are SVG
inside the page; matplotlib is an extra.

Tested in `tests/results/test_report.py`.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.errors import ArgumentError, printable
from dpreg.paths import catalogue, packaged, write_text
from dpreg.privacy.budget import Budget
from dpreg.results import notes, page, tables
from dpreg.results.base import Released
from dpreg.results.selection import SelectionResults
from dpreg.sources.files import check_not_data

_MOST_LINES: Final = 60


def write_report(result: Released, path: str | os.PathLike[str]) -> None:
    """Write a release report: one HTML file, which needs no network and prints well.

    It says what was asked, what privacy is claimed, in words and in numbers, where the release
    stands in its ledger, what was found, how large the privacy noise is beside the sampling error,
    what was assumed, and how to verify all this.

    Parameters
    ----------
    result : a result of any of dpreg's calls
    path : path-like
        Written whole or not at all.

    Raises
    ------
    ArgumentError
        If `result` is not a released result, or `path` ends like a table's file.
    DataError
        If the file cannot be written.
    """
    check_not_data(path)
    write_text(path, report_html(result))


def report_html(result: Released) -> str:
    """Return the report as the text of an HTML file."""
    if not isinstance(result, Released):
        raise ArgumentError(f"a report is made from a result; got {type(result).__name__}.")
    found = page.page(result, 0.05, full=True)
    summary = {"summary": Html(found.as_html()), "figures": _figures(result)}
    parts = {
        "": _head(result, found.title),
        "What was asked": _asked(result),
        "The privacy statement": _privacy(result),
        "The ledger": _ledger(result),
        "What was found": _said("summary", **summary),
        "What was assumed": _assumed(result),
        "How to verify": _verification(result),
    }
    body = "\n".join(
        f"<section>\n{f'<h2>{name}</h2>' * bool(name)}\n{part}\n</section>"
        for name, part in parts.items()
    )
    return _said("page", title=found.title, style=Html(packaged("report.css")), body=Html(body))


def _head(result: Released, title: str) -> str:
    """Say what this is, when it was released, and its price."""
    record, claim = result.record, result.claim
    when = "at a time that was not recorded"
    if record is not None:
        when = record.when.replace("T", " ").replace("+00:00", " UTC")
    facts = catalogue("report.toml")["facts"].items()
    boxes = "".join(_said("fact", value=tables.fact(of, result), name=name) for name, of in facts)
    stamp = _said("stamp", stamp=claim.stamp) if claim.stamp else ""
    return _said("head", title=title, when=when, facts=Html(boxes), stamp=Html(stamp))


def _asked(result: Released) -> str:
    """Say what was asked: the call and its public arguments."""
    record, schema = result.record, getattr(result, "schema", None)
    if record is None:
        formula = getattr(result, "formula", None)
        return _pairs({"formula": formula} if formula else {}) + _said("unrecorded")
    told = {name: value for name, value in record.arguments.items() if name != "schema"}
    declared = schema or record.arguments.get("schema") or {}
    lines = [
        f"<tr><td>{_text(name)}</td><td>{_text(how)}</td></tr>"
        for name, how in [*declared.items()][:_MOST_LINES]
    ]
    left = len(declared) - len(lines)
    more = _said("more", left=left) if left else ""
    table = f"<table>{_said('columns')}{''.join(lines)}</table>{more}"
    return _pairs({"call": record.call, **told}) + (_said("declared") + table) * bool(lines)


def _privacy(result: Released) -> str:
    """State the claim, and what it means for odds."""
    claim, eps, odds = result.claim, float(result.claim.spent.eps), ""
    if not claim.seeded and claim.spent.delta == 0:
        most = f"a factor of {np.exp(eps):,.3g}" if eps < 50 else "an astronomical factor"
        # Data that differ are, under add-remove, one row left out and another added: exp(2 eps).
        other = "left out" if claim.neighbors == "add-remove" else "different"
        odds = _said("odds", most=most, other=other)
    return _said("claim", claim=claim.sentence) + odds


def _ledger(result: Released) -> str:
    """Say where the release stands in its ledger."""
    if result.record is None or result.record.ledger is None:
        return _said("no-ledger")
    place = result.record.ledger
    cap = Fraction(place.cap_eps)
    share = 100 * float(Fraction(place.spent_eps) / cap) if cap else 100.0
    told = {
        "ledger": place.ledger,
        "entry": place.entry,
        "charged with this release": str(result.spent),
        "charged up to here": _budget(place.spent_eps, place.spent_delta),
        "cap": _budget(place.cap_eps, place.cap_delta),
        "head of the chain": place.head,
    }
    width = f"{min(max(share, 0.5), 100):.1f}"
    return _pairs(told) + _said("used", width=width, share=f"{share:.1f}")


def _figures(result: Released) -> Html:
    """Return the plots that suit a result; a line that says why where there are none."""
    try:
        from matplotlib import pyplot
    except ImportError:
        return _said("no-figures")
    told: list[tuple[Any, str, dict[str, str]]] = []
    fit = notes.fitted(result)
    if isinstance(result, SelectionResults):
        told.append((result, "looks" if result.by_looks else "draws", {"kind": "frequencies"}))
    if fit is not None or result.kind == "histogram":
        held = result if fit is None else fit
        told.append((held, "bins" if fit is None else "coefficients", {}))
    drawn = []
    # Text stays text, and no date or version of a machine gets into the file.
    plain: Any = {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "dpreg"}
    for held, caption, how in told:
        text = io.StringIO()
        with pyplot.rc_context(plain):
            figure = held.plot(**how).figure
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
            pyplot.close(figure)
        svg = re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>", "", text.getvalue(), flags=re.DOTALL)
        drawn.append(_said("figure", caption=_said("captions", caption), svg=Html(svg)))
    return Html("\n".join(drawn))


def _assumed(result: Released) -> str:
    """List what the claim and the numbers rest on."""
    claim, fit = result.claim, notes.fitted(result)
    rows = "one row" if claim.contributions == 1 else f"at most {claim.contributions} rows"
    bounds: Mapping[str, Any] = getattr(result, "bounds", None) or {}
    bought = [name for name, how in bounds.items() if isinstance(how, str) and how == "private"]
    owns = "owns" if claim.person is None else "whole" if claim.whole else "person"
    law = "" if fit is None else notes.line("assumption", fit)
    told = [*["seeded"] * claim.seeded, owns, "public", "clipped"]
    told += ["rows"] * (claim.neighbors == "replace-one" and claim.person is None)
    told += ["bought"] * bool(bought) + ["law"] * bool(law)
    parts = {"rows": rows, "person": claim.person, "names": ", ".join(bought), "law": law}
    lines = [_said("assumed", name, **parts) for name in told]
    items = "".join(f"<li>{line}</li>" for line in [*lines, *map(_text, claim.caveats)])
    return f"<ul>{items}</ul>"


def _verification(result: Released) -> str:
    """Say how to check the release, and leave room for a signature."""
    digest, record = hashlib.sha256(result.to_json().encode()).hexdigest(), result.record
    steps = [_said("verify", digest=digest)]
    if record is not None and record.ledger is not None:
        steps.append(_said("verify-ledger"))
    if record is not None:
        made = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        steps.append(_said("made-by", versions=made))
    return "".join([*steps, _said("sign")])


# Pieces of HTML; every text is escaped.


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def _said(*name: str, **parts: Any) -> Html:
    """Return a text of ``report.toml``, with what is put in escaped unless it is HTML."""
    text: Any = catalogue("report.toml")
    for each in name:
        text = text[each]
    return Html(text.format(**{key: _text(part) for key, part in parts.items()}))


def _pairs(told: Mapping[str, Any]) -> str:
    """Return a table of names and values."""
    rows = "".join(
        f'<tr><th>{_text(name.replace("_", " "))}</th><td class="mono">{_text(value)}</td></tr>'
        for name, value in told.items()
    )
    return f'<table class="asked">{rows}</table>' if rows else ""


def _text(value: Any) -> str:
    """Escape a text, or the JSON of another value, for HTML, control characters too."""
    if isinstance(value, Html):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return html.escape(printable(text), quote=True)


def _budget(eps: str, delta: str) -> str:
    return str(Budget(Fraction(eps), Fraction(delta)))
