"""The table of `benchmarks.beside`, and what each method needs."""

from __future__ import annotations

from typing import Any

OURS = (
    "dpreg",
    "dpreg, bounds bought",
    "dpreg, objective",
    "dpreg, objective, .4 for bounds",
)

NEEDS = {
    "dpreg": "bounds",
    "dpreg, bounds bought": "nothing but rows",
    "dpreg, objective": "bounds",
    "dpreg, objective, .4 for bounds": "nothing but rows",
    "dpreg, choice": "bounds",
    "tukey": "delta, 1,000 p rows",
    "kendall": "delta, 1,000 k rows",
    "newton": "bounds, delta, residual sd",
    "binagg-published": "bounds, delta; one column",
    "binagg": "bounds, delta",
    "issp-floor": "cannot be run",
    "privacyunbiased": "bounds, delta",
    "udp": "bounds of coefficients, delta",
    "dprivstats": "bounds of y; columns public",
    "adassp": "bounds, delta",
    "boosted": "bounds, delta, rounds",
    "dp-gd": "bounds, delta, rate",
    "objective": "bounds, cut",
}
"""Beside rows and a budget; with what hindsight chose here and a call would have to be given."""
_FREE = ("tukey", "kendall", "issp-floor")
"""Without bounds: beside dpreg with bounds bought."""


def loses(name: str, found: dict[str, Any], methods: dict[str, Any]) -> tuple[bool, bool]:
    """Whether dpreg loses to a method by a tenth: in error, and in intervals."""
    ours = methods.get("dpreg, bounds bought" if name in _FREE else "dpreg")
    if name.startswith("dpreg") or ours is None or found["excess"] is None:
        return False, False
    error = ours["excess"] is None or found["excess"] < 0.9 * ours["excess"]
    if found.get("held", 0.0) < 0.93:
        return error, False
    return error, ours.get("held", 0.0) < 0.93 or found["width"] < 0.9 * ours["width"]


def table(lines: list[dict[str, Any]]) -> str:
    """Methods down, cells across: error, and in brackets what intervals hold and their width."""
    heads = [
        f"{one['cell']} ({one['whose']}); {one['eps']:.3g}, {one['delta']:.2g}" for one in lines
    ]
    rows = [f"| method | needs | {' | '.join(heads)} |", "|---" * (len(lines) + 2) + "|"]
    for name in NEEDS:
        if any(name in line["methods"] for line in lines):
            entries = [_entry(name, line["methods"]) for line in lines]
            rows.append(f"| {name} | {NEEDS[name]} | {' | '.join(entries)} |")
    return "\n".join(rows)


def _entry(name: str, methods: dict[str, Any]) -> str:
    if name not in methods:
        return "-"
    found = methods[name]
    if found["excess"] is None:
        return "no answer"
    error, intervals = loses(name, found, methods)
    text = _bold(_short(found["excess"]), error)
    if "held" in found:
        told = f"{found['held']:.2f}, {_short(found['width'])}"
        text += f" ({_bold(told, intervals)})"
    return text if found["answers"] == 1 else f"{text}; answers {found['answers']:.2g}"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}" if value < 1000 else f"{value:.0e}"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text
