"""The table of `benchmarks.beside`, and what each method needs."""

from __future__ import annotations

from typing import Any

OURS = (
    "dpreg",
    "dpreg, bounds bought",
    "dpreg, objective",
    "dpreg, objective, a fifth for bounds",
)

NEEDS = {
    "dpreg": "bounds",
    "dpreg, bounds bought": "nothing but rows",
    "dpreg, objective": "bounds",
    "dpreg, objective, a fifth for bounds": "nothing but rows",
    "dpreg, choice": "bounds",
    "tukey": "delta, 1,000 p rows",
    "kendall": "delta, 1,000 k rows",
    "newton": "bounds, delta, residual sd",
    "binagg-published": "bounds, delta; one column",
    "binagg": "bounds, delta",
    "issp-floor": "cannot be run",
    "privacyunbiased": "bounds, delta",
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
    head = "| data (whose) | eps, delta | method | needs | error | held | width | answers |"
    rows = [head, "|---" * 8 + "|"]
    for line in lines:
        cost = f"{line['eps']:.3g}, {line['delta']:.2g}"
        for name, found in line["methods"].items():
            error, intervals = loses(name, found, line["methods"])
            told = [f"{line['cell']} ({line['whose']})", cost, name, NEEDS[name]]
            told.append(_cell(found["excess"], ".2g", error))
            told += [_cell(found.get(part), ".2f", intervals) for part in ("held", "width")]
            rows.append("| " + " | ".join([*told, f"{found['answers']:.2g}"]) + " |")
    return "\n".join(rows)


def _cell(value: float | None, form: str, bold: bool) -> str:
    if value is None:
        return "-"
    text = f"{value:{form}}" if value < 1000 else f"{value:.0e}"
    return f"**{text}**" if bold else text
