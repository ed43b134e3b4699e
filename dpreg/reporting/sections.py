"""The sections of a release report, each a piece of HTML; every text is escaped.

Tested in `tests/reporting/test_page.py`.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Container, Iterable
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.privacy.budget import ALL_ROWS, decimal_string
from dpreg.reporting.figures import figures
from dpreg.reporting.markup import as_json, pairs, section, table, text
from dpreg.results import notes
from dpreg.results.base import Released
from dpreg.results.classic import ClassicResults
from dpreg.results.glm import GLMResults
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.results.histogram import HistogramResults
from dpreg.results.record import ReleaseRecord
from dpreg.results.regression import RegressionResults
from dpreg.results.report import Block, Grid, Paragraph, Report
from dpreg.results.selection import SelectionResults
from dpreg.results.summary import Summary

__all__ = [
    "asked", "assumed", "findings", "head", "ledger", "privacy", "title", "verification",
]  # fmt: skip

_MOST_LINES: Final = 60


def title(result: Released) -> str:
    """Name the release."""
    match result:
        case SelectionResults():
            return f"Variables for {result.response}"
        case GLMResults():
            return f"{result.family.capitalize()} regression of {result.endog_names}"
        case RegressionResults():
            return f"Linear regression of {result.endog_names}"
        case HistogramResults():
            return f"Histogram of {result.column}"
        case ClassicResults():
            return f"Estimates: {result.statistic}"
    return "Release"


def head(result: Released) -> str:
    """Say what this is, when it was released, and its price."""
    record = result.record
    when = "at a time that was not recorded" if record is None else _when(record)
    stamp = result.claim.stamp
    mark = "" if stamp is None else f'<p class="stamp">{text(stamp)}</p>'
    spent = result.spent
    rows = getattr(result, "nobs", None)
    facts = [
        ("privacy loss, eps", decimal_string(spent.eps)),
        ("delta", decimal_string(spent.delta)),
        ("neighbouring tables", result.neighbors),
        ("rows a person", "all" if result.claim.whole else str(result.contributions)),
        ("rows", "private" if rows is None else f"{rows:,}"),
    ]
    boxes = "".join(
        f'<div class="fact"><b>{text(value)}</b><span>{text(name)}</span></div>'
        for name, value in facts
    )
    return (
        f"{mark}<h1>{text(title(result))}</h1>"
        f'<p class="sub">Release report. Released {text(when)}.</p>'
        f'<div class="facts">{boxes}</div>'
    )


def asked(result: Released) -> str:
    """Say what was asked: the call and its public arguments."""
    record = result.record
    if record is None:
        kind = getattr(result, "formula", None)
        told = {} if kind is None else {"formula": kind}
        return section("What was asked", pairs(told) + "<p>The call was not recorded.</p>")
    shown = {name: value for name, value in record.arguments.items() if name != "schema"}
    body = pairs({"call": record.call, **shown})
    schema = getattr(result, "schema", None) or record.arguments.get("schema")
    if schema:
        lines = [(name, as_json(declared)) for name, declared in schema.items()]
        body += "<p>Declared as public, column by column:</p>" + table(
            ("column", "bounds or levels"), lines[:_MOST_LINES]
        )
        if len(lines) > _MOST_LINES:
            body += f"<p>And {len(lines) - _MOST_LINES} more columns.</p>"
    return section("What was asked", body)


def privacy(result: Released) -> str:
    """State the claim in words and in numbers."""
    claim = result.claim
    words = f'<p class="claim">{text(claim.sentence)}</p>'
    factor = ""
    if not claim.seeded and claim.spent.delta == 0:
        eps = float(claim.spent.eps)
        most = f"a factor of {np.exp(eps):,.3g}" if eps < 50 else "an astronomical factor"
        # Data that differ are, under add-remove, one row left out and another added: exp(2 eps).
        other = "left out" if claim.neighbors == "add-remove" else "different"
        factor = (
            "<p>In other words: whatever anybody concludes from this release about one person, "
            f"its odds would change by at most {most} if that person's data were {other}.</p>"
        )
    rows = [
        (
            spend.step,
            spend.mechanism,
            decimal_string(spend.eps),
            decimal_string(spend.delta),
            "all" if spend.rows == ALL_ROWS else spend.rows,
            spend.note,
        )
        for spend in claim.spends
    ]
    total = ("together", "", *claim.spent.as_decimal(), "", "")
    lines = table(
        ("step", "mechanism", "eps", "delta", "rows read", "note"), [*rows, total], (2, 3)
    )
    return section("The privacy statement", words + factor + lines)


def ledger(result: Released) -> str:
    """Say where the release stands in its ledger."""
    record = result.record
    if record is None or record.ledger is None:
        body = (
            "<p>No ledger was charged, so nobody keeps track of what this release reveals together "
            "with others from the same data.</p>"
        )
        return section("Budget and ledger", body)
    place = record.ledger
    cap, spent = Fraction(place.cap_eps), Fraction(place.spent_eps)
    share = 100 * float(spent / cap) if cap else 100.0
    width = min(max(share, 0.5), 100)
    body = pairs(
        {
            "ledger": place.ledger,
            "entry": place.entry,
            "charged with this release": str(result.spent),
            "charged up to here": _budget(place.spent_eps, place.spent_delta),
            "cap": _budget(place.cap_eps, place.cap_delta),
            "head of the chain": place.head,
        }
    )
    body += (
        f'<div class="gauge"><i style="width: {width:.1f}%"></i></div>'
        f"<p>After this release {share:.1f}% of the data set's eps was used.</p>"
    )
    return section("Budget and ledger", body)


def findings(result: Released) -> str:
    """Show the tables and plots."""
    report = result.summary(full=True).report
    told = notes.steps(result.claim)
    blocks = _numbered(block for block in report.blocks if not _is_told(block, told))
    page = Summary(Report(report.title, report.stamp, blocks))
    tables = f'<div class="summary">{page.as_html()}</div>'
    return section("What was found", tables + figures(result))


def assumed(result: Released) -> str:
    """List what the claim and the numbers rest on."""
    one = "one row" if result.contributions == 1 else f"at most {result.contributions} rows"
    owns = f"A person is assumed to own {one} of the table; anyone who owns more is protected less."
    if result.claim.person is not None:
        counted = f"of whose rows {one} counted"
        counted = "whose rows were all summed" if result.claim.whole else counted
        owns = f"A person is one value of {result.claim.person}, {counted}."
    told = [
        owns,
        "Formula, schema, the call's arguments and the table's column names are public; none of "
        "them was taken from the rows.",
        "Values outside declared bounds are clipped to them. A row with a missing or undeclared "
        "value in a column that the call needs counts for nothing, or as the call's documentation "
        "says.",
    ]
    if result.neighbors == "replace-one" and result.claim.person is None:
        told.append("The number of rows is public.")
    bought = [
        name for name, how in (getattr(result, "bounds", None) or {}).items()
        if isinstance(how, str) and how == "private"
    ]  # fmt: skip
    if bought:
        told.append(f"Bounds of {', '.join(bought)} were estimated privately, at the cost above.")
    if isinstance(result, RegressionResults) and result.method == "adaptive":
        told.append(f"{notes.assumption(result).text} Privacy does not rest on it.")
    elif isinstance(result, GLMResults | GLMSelectionResults):
        told.append(
            "Standard errors and intervals rest on independent rows whose mean is that of the "
            "model. Privacy does not rest on it."
        )
    elif isinstance(result, SelectionResults | RegressionResults):
        told.append(
            "Standard errors and intervals rest on a linear model with errors of one variance. "
            "Privacy does not rest on it."
        )
    told += [*result.claim.caveats, *getattr(result, "notes", ())]
    if result.seeded:
        told.insert(0, "The noise was seeded: nothing is private, and this must not be released.")
    items = "".join(f"<li>{text(line)}</li>" for line in dict.fromkeys(told))
    return section("What was assumed", f"<ul>{items}</ul>")


def verification(result: Released) -> str:
    """Say how to check the release, and leave room for a signature."""
    digest = hashlib.sha256(result.to_json().encode()).hexdigest()
    steps = [
        "<p>The saved result (<code>result.json</code>) is the release; this page only shows it. "
        "It is the result of this page if its fingerprint is</p>"
        f'<pre>{digest}</pre><p>which Python prints with</p><pre>python -c "import dpreg, hashlib; '
        "print(hashlib.sha256(dpreg.load('result.json').to_json().encode()).hexdigest())\"</pre>"
    ]
    record = result.record
    if record is not None and record.ledger is not None:
        steps.append(
            "<p>That it was paid for, and that the ledger still says so:</p>"
            "<pre>dpreg ledger verify LEDGER --result result.json</pre>"
            "<p>The chain of the ledger has no key. Whoever may write to it could compute it anew, "
            "but not so that it still holds the head above: keep this page where they cannot.</p>"
        )
    if record is not None:
        made = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        steps.append(f"<p>Made by {text(made)}.</p>")
    steps.append(
        '<div class="sign"><div>reviewed by</div><div>signature</div><div>date</div></div>'
    )
    return section("How to verify", "".join(steps))


def _is_told(block: Block, notes: Container[str]) -> bool:
    """Return whether earlier sections already show a block of the summary: claim or budget."""
    if isinstance(block, Paragraph):
        return block.label == "Privacy" or block.text in notes
    return isinstance(block, Grid) and block.headers[:2] == ("step", "mechanism")


def _numbered(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Give the notes numbers without gaps."""
    numbers = itertools.count(1)
    return tuple(
        Paragraph(f"[{next(numbers)}]", block.text)
        if isinstance(block, Paragraph) and block.label[1:-1].isdigit()
        else block
        for block in blocks
    )


def _when(record: ReleaseRecord) -> str:
    return record.when.replace("T", " ").replace("+00:00", " UTC")


def _budget(eps: str, delta: str) -> str:
    return f"eps={eps}" if delta == "0" else f"eps={eps}, delta={delta}"
