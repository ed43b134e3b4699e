"""The page of a release report: sections in order, one file, nothing fetched from a network.

The pictures of a report, as SVG inside the page; matplotlib is an extra.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from importlib import resources
from typing import Any, Final

import numpy as np

from dpreg.errors import ArgumentError, printable
from dpreg.paths import write_text
from dpreg.privacy.budget import ALL_ROWS, decimal_string
from dpreg.results import notes, page
from dpreg.results.base import Released
from dpreg.results.classic import HistogramResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.results.summary import Summary
from dpreg.results.tables import has_errors
from dpreg.sources.files import check_not_data

_WITHOUT: Final = (
    "<p>The plots are left out: they need matplotlib (<code>pip install dpreg[plot]</code>).</p>"
)


def figures(result: Released) -> str:
    """Return the plots that suit a result; a line that says why where there are none."""
    try:
        import matplotlib as mpl
    except ImportError:
        return _WITHOUT
    del mpl
    drawn = []
    if isinstance(result, SelectionResults):
        caption = "Filled dots: selected. A share of the released draws, not of the data."
        if result.by_looks:
            caption = "Filled dots: selected. Grey ones: one of several that could stand there."
        drawn.append(_figure(result, caption, kind="frequencies"))
        if result.regression is not None:
            drawn.append(_coefficients(result.regression))
    elif isinstance(result, RegressionResults):
        drawn.append(_coefficients(result))
    elif isinstance(result, HistogramResults):
        drawn.append(_figure(result, "Lines: 95% intervals, noise and sampling together."))
    return "\n".join(drawn)


def _coefficients(result: RegressionResults) -> str:
    caption = "Coefficients with 95% intervals, which include the privacy noise."
    return _figure(result, caption)


def _figure(result: Any, caption: str, **how: Any) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Text stays text, and no date or version of a machine gets into the file.
    with mpl.rc_context(
        {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "dpreg"}
    ):
        from matplotlib import pyplot

        axes = result.plot(**how)
        figure = axes.figure
        assert isinstance(figure, Figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return (
        f'<figure role="img" aria-label="{html.escape(caption)}">{svg}'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


# A page that may load nothing: what it shows is what is in it.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MOST_LINES: Final = 60
_SIGN: Final = '<div class="sign"><div>reviewed by</div><div>signature</div><div>date</div></div>'
_PARTS: Final = (
    '<p>The variance of each estimate has two parts:</p><p class="key"><span><i '
    'class="sampling"></i>sampling, as without privacy</span>'
    '<span><i class="noise"></i>privacy noise</span></p>'
)
_CHECK: Final = (
    'python -c "import dpreg, hashlib; '
    "print(hashlib.sha256(dpreg.load('result.json').to_json().encode()).hexdigest())\""
)


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
    found = page.findings(result, 0.05)
    parts = {
        "": _head(result, found.title),
        "What was asked": _asked(result),
        "The privacy statement": _privacy(result),
        "Budget and ledger": _ledger(result),
        "What was found": f'<div class="summary">{Summary(found).as_html()}</div>{figures(result)}',
        "Noise beside sampling error": _noise(result),
        "What was assumed": _assumed(result),
        "How to verify": _verification(result),
    }
    body = "\n".join(
        f"<section>\n{f'<h2>{name}</h2>' * bool(name)}\n{part}\n</section>"
        for name, part in parts.items()
        if part
    )
    style = resources.files("dpreg.reporting").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(found.title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _head(result: Released, title: str) -> str:
    """Say what this is, when it was released, and its price."""
    record, claim = result.record, result.claim
    when = "at a time that was not recorded"
    if record is not None:
        when = record.when.replace("T", " ").replace("+00:00", " UTC")
    facts = {
        "privacy loss, eps": decimal_string(claim.spent.eps),
        "delta": decimal_string(claim.spent.delta),
        "neighbouring tables": claim.neighbors,
        "rows a person": "all" if claim.whole else str(claim.contributions),
        "rows": "private" if result.nobs is None else f"{result.nobs:,}",
    }
    boxes = "".join(
        f'<div class="fact"><b>{_text(value)}</b><span>{name}</span></div>'
        for name, value in facts.items()
    )
    stamp = f'<p class="stamp">{claim.stamp}</p>' if claim.stamp else ""
    return (
        f'{stamp}<h1>{_text(title)}</h1><p class="sub">Release report. Released {_text(when)}.</p>'
        f'<div class="facts">{boxes}</div>'
    )


def _asked(result: Released) -> str:
    """Say what was asked: the call and its public arguments."""
    record, schema = result.record, getattr(result, "schema", None)
    if record is None:
        formula = getattr(result, "formula", None)
        return _pairs({"formula": formula} if formula else {}) + "<p>The call was not recorded.</p>"
    told = {name: value for name, value in record.arguments.items() if name != "schema"}
    lines = [
        (name, _json(how)) for name, how in (schema or record.arguments.get("schema") or {}).items()
    ]
    shown = _table(("column", "bounds or levels"), lines[:_MOST_LINES]) if lines else ""
    return (
        _pairs({"call": record.call, **told})
        + "<p>Declared as public, column by column:</p>" * bool(lines)
        + shown
        + _more(lines, "columns")
    )


def _privacy(result: Released) -> str:
    """State the claim in words and in numbers."""
    claim, eps, factor = result.claim, float(result.claim.spent.eps), ""
    if not claim.seeded and claim.spent.delta == 0:
        most = f"a factor of {np.exp(eps):,.3g}" if eps < 50 else "an astronomical factor"
        # Data that differ are, under add-remove, one row left out and another added: exp(2 eps).
        other = "left out" if claim.neighbors == "add-remove" else "different"
        factor = (
            "<p>In other words: whatever anybody concludes from this release about one person, "
            f"its odds would change by at most {most} if that person's data were {other}.</p>"
        )
    rows = [
        (
            *(spend.step, spend.mechanism, *spend.budget.as_decimal()),
            *("all" if spend.rows == ALL_ROWS else spend.rows, spend.note),
        )
        for spend in claim.spends
    ]
    heads = ("step", "mechanism", "eps", "delta", "rows read", "note")
    total = ("together", "", *claim.spent.as_decimal(), "", "")
    words = f'<p class="claim">{_text(claim.sentence)}</p>'
    return words + factor + _table(heads, [*rows, total], numbers=(2, 3))


def _ledger(result: Released) -> str:
    """Say where the release stands in its ledger."""
    if result.record is None or result.record.ledger is None:
        return (
            "<p>No ledger was charged, so nobody keeps track of what this release reveals together "
            "with others from the same data.</p>"
        )
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
    return _pairs(told) + (
        f'<div class="gauge"><i style="width: {min(max(share, 0.5), 100):.1f}%"></i></div>'
        f"<p>After this release {share:.1f}% of the data set's eps was used.</p>"
    )


def _noise(result: Released) -> str:
    """Set the privacy noise beside the sampling error."""
    fit = notes.fitted(result)
    told: Any = result if fit is None else fit
    if fit is None and hasattr(result, "selected"):
        return ""
    lines = []
    errors = (told.params, told.bse_sampling, told.bse_privacy, told.bse, told.noise_share)
    for label, *numbers, share in zip(told.params.index, *errors, strict=True):
        name = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        part = share if np.isfinite(share) else 0.0
        bar = (
            f'<div class="bar"><i class="sampling" style="width: {100 * (1 - part):.1f}%"></i>'
            f'<i class="noise" style="width: {100 * part:.1f}%"></i></div>'
        )
        cells = (f"{x:,.4g}" if np.isfinite(x) else "not known" for x in numbers)
        lines.append((_text(name), *cells, bar, f"{100 * part:.0f}%"))
    heads = ("", "estimate", "se, sampling", "se, noise", "se, both", "shares of the variance")
    shown = _table((*heads, "noise"), lines[:_MOST_LINES], numbers=(1, 2, 3, 4, 6), plain=False)
    return _PARTS + shown + _given(told) + _more(lines, "estimates")


def _given(fit: Any) -> str:
    """Say what coefficients are that come from the look that chose."""
    if getattr(fit, "among", None):
        return "<p>Estimates are those beside all candidates, chosen or not.</p>"
    if getattr(fit, "conditional", ()):
        return (
            "<p>Estimates are those given the choice of the model; standard errors are as if its "
            "terms had been given beforehand.</p>"
        )
    return ""


def _assumed(result: Released) -> str:
    """List what the claim and the numbers rest on."""
    claim, fit = result.claim, notes.fitted(result)
    one = "one row" if claim.contributions == 1 else f"at most {claim.contributions} rows"
    owns = f"A person is assumed to own {one} of the table; anyone who owns more is protected less."
    if claim.person is not None:
        counted = "whose rows were all summed" if claim.whole else f"of whose rows {one} counted"
        owns = f"A person is one value of {claim.person}, {counted}."
    told = [
        owns,
        "Formula, schema, the call's arguments and the table's column names are public; none of "
        "them was taken from the rows.",
        "Values outside declared bounds are clipped to them. A row with a missing or undeclared "
        "value in a column that the call needs is excluded, or as the call's documentation "
        "says.",
    ]
    if claim.neighbors == "replace-one" and claim.person is None:
        told.append("The number of rows is public.")
    bounds: Mapping[str, Any] = getattr(result, "bounds", None) or {}
    bought = [name for name, how in bounds.items() if isinstance(how, str) and how == "private"]
    if bought:
        told.append(f"Bounds of {', '.join(bought)} were estimated privately, at the cost above.")
    if fit is not None and has_errors(fit):
        told.append(f"{notes.assumption(fit).text} Privacy does not rest on it.")
    if claim.seeded:
        told.insert(0, "The noise was seeded: nothing is private, and this must not be released.")
    items = "".join(f"<li>{_text(line)}</li>" for line in [*told, *claim.caveats])
    return f"<ul>{items}</ul>"


def _verification(result: Released) -> str:
    """Say how to check the release, and leave room for a signature."""
    digest, record = hashlib.sha256(result.to_json().encode()).hexdigest(), result.record
    steps = (
        "<p>The saved result (<code>result.json</code>) is the release; this page only shows it. "
        "It is the result of this page if its fingerprint is</p>"
        f"<pre>{digest}</pre><p>which Python prints with</p><pre>{_CHECK}</pre>"
    )
    if record is not None and record.ledger is not None:
        steps += (
            "<p>That it was paid for, and that the ledger still says so:</p>"
            "<pre>dpreg ledger verify LEDGER --result result.json</pre>"
            "<p>The chain of the ledger has no key. Whoever may write to it could compute it anew, "
            "but not so that it still holds the head above: keep this page where they cannot.</p>"
        )
    if record is not None:
        made = ", ".join(f"{name} {version}" for name, version in record.versions.items())
        steps += f"<p>Made by {_text(made)}.</p>"
    return steps + _SIGN


# Pieces of HTML; every text is escaped.


def _pairs(told: Mapping[str, Any]) -> str:
    """Return a table of names and values."""
    rows = "".join(
        f"<tr><th>{_text(name.replace('_', ' '))}</th>"
        f'<td class="mono">{_text(_json(value))}</td></tr>'
        for name, value in told.items()
    )
    return f'<table class="asked">{rows}</table>' if rows else ""


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    plain: bool = True,
) -> str:
    """Return a table; `numbers` are the places of columns of numbers; cells that are HTML stay."""
    kinds = [' class="number"' if place in numbers else "" for place in range(len(heads))]
    made = _text if plain else str
    lines = [(heads, "th", _text), *((row, "td", made) for row in rows)]
    body = "".join(
        "<tr>"
        + "".join(f"<{tag}{k}>{how(cell)}</{tag}>" for k, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row, tag, how in lines
    )
    return f"<table>{body}</table>"


def _more(lines: Sequence[object], what: str) -> str:
    left = len(lines) - _MOST_LINES
    return f"<p>And {left} more {what}.</p>" if left > 0 else ""


def _json(value: Any) -> str:
    """Write a declared value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(text: object) -> str:
    """Escape a text for HTML, control characters too."""
    return html.escape(printable(str(text)), quote=True)


def _budget(eps: str, delta: str) -> str:
    return f"eps={eps}" if delta == "0" else f"eps={eps}, delta={delta}"
