"""The printed page of a plan, and its picture; matplotlib is an extra, imported when asked for.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpreg.paths import catalogue
from dpreg.planning.chances import Situation, least_rows, theorem_41, theorem_42
from dpreg.privacy.budget import decimal_string
from dpreg.request import choice
from dpreg.results.plots import STYLES, literal, new_axes
from dpreg.results.summary import Block, Facts, Grid, Paragraph, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns: TypeAlias = dict[str, tuple[str, str | Callable[[Any], str]]]
"""The columns of a table that are shown: their heads, and how their values are written."""
_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""
_POINTS: Final = 25
_MOST: Final = {"n": 1e18, "eps": 1e30}  # work: what `plan` takes


def words(name: str, **numbers: Any) -> str:
    """Return a text of ``words.toml``."""
    return str(catalogue("words.toml", "dpreg.planning")[name]).format(**numbers)


def columns(name: str) -> Columns:
    """Return the columns of a table, as ``words.toml`` has them."""
    told = catalogue("words.toml", "dpreg.planning")["columns"][name]
    return {key: (head, _FORMS.get(form, form)) for key, (head, form) in told.items()}


def laid_out(name: str, **told: Any) -> Facts:
    """Return the facts of a page, laid out as ``words.toml`` has it, but for those without text."""
    left, right = (
        tuple((label, text) for label, form in side.items() if (text := form.format(**told)))
        for side in catalogue("words.toml", "dpreg.planning")["facts"][name].values()
    )
    return Facts(left, right)


def plain(value: Any) -> str:
    """Write a part of a setting."""
    return value if isinstance(value, str) else f"{value:g}"


def share(value: float) -> str:
    """Write a probability as the slides do: .85, or 1 and 0 where it rounds to them."""
    text = f"{value:.3f}"
    return {"1.000": "1", "0.000": "0"}.get(text, text.lstrip("0"))


_FORMS: Final = {"plain": plain, "share": share}


def report(plan: Any) -> Summary:
    """Return the page of a plan."""
    facts = plan.facts
    kind = plan.method if facts.chooses else "glm" if facts.family else "fit"
    blocks: list[Block] = [_facts(plan, kind)]
    if facts.family:
        blocks.insert(0, Paragraph("Formula", facts.formula))
    if facts.chooses:
        blocks.append(_found(plan, kind))
    elif kind == "fit":
        blocks.append(_table(plan.coefficients, columns("measures")))
    if not (kind == "fit" or plan.errors.empty):
        blocks.append(_table(plan.errors, columns("errors")))
    said = {}
    if facts.chooses:
        said["Useless"] = f"{plan.useless:.3g} terms without an effect are expected."
        said["Rule"] = words(f"rule-{kind}", miss=1 - facts.chance, n=plan.rule_of_thumb)
    said |= {f"[{i}]": note for i, note in enumerate(_notes(plan), 1)}
    said |= {
        "Reading": words(f"reading-{kind}") if kind in ("adaptive", "fit") else "",
        "Method": "" if facts.family else _way(plan),
    }
    if kind == "pcls":
        said["Theorem 4.1"] = _promise(plan, theorem_41)
        said["Theorem 4.2"] = f'(method="pcpl") {_promise(plan, theorem_42)}'
    said["Assumed"] = _assumed(plan, kind)
    blocks += [Paragraph(label, text) for label, text in said.items() if text]
    title = "Plan of a private " + ("selection" if facts.chooses else "regression")
    return Summary(title, None, tuple(blocks))


def _facts(plan: Any, kind: str) -> Facts:
    request, stated, missing = plan.facts.request, plan.stated, plan.errors["std err"].isna()
    intervals = "expected" if plan.enough else "may be missing"
    if missing.any():
        intervals = "none" if missing.all() else "not of all coefficients"
    looks = plan.looks()
    fewer = len(looks.shares()) - len(looks.shares(curved=bool(plan.facts.family)))
    number = looks.most - fewer
    told = {
        "plan": plan,
        "found": {"n": "", "eps": "", plan.solved: " (found)"},
        "delta": decimal_string(request.budget.delta),
        "effects": len(stated.names),
        "terms": len(stated.units),
        "models": f"{stated.models:,}" if stated.models < 10**12 else f"{stated.models:.2e}",
        "columns": len(plan.rows.described.columns),
        "looks": f"adaptive: {number} looks" if plan.adaptive else f"{plan.method}: one look",
        "noise": plan.mechanism if plan.adaptive else plan.facts.noise or "",
        "intervals": intervals if len(missing) else "",
    }
    if kind == "pcls":
        (phi, psi), squared = plan.paper.charges, float(request.clip) ** 2
        told |= {"phi": phi * squared, "psi": psi * squared, "scale": squared / plan.paper.rate}
        told |= {"radius": float(request.rho * request.clip)}
    return laid_out(kind, **told)


# ---- tables ------------------------------------------------------------------------------------


def grid(table: pd.DataFrame, columns: Columns, aligns: str, title: str = "") -> Grid:
    """Draw what a table has of these columns."""
    told = [(form, table[name]) for name, (_, form) in columns.items() if name in table]
    cells = [[form(v) if callable(form) else format(v, form) for v in own] for form, own in told]
    heads = tuple(head for name, (head, _) in columns.items() if name in table)
    return Grid(heads, tuple(zip(*cells, strict=True)), aligns, title)


def _table(table: pd.DataFrame, columns: Columns, head: str = "") -> Grid:
    named, shown = table.assign(**{"": table.index}), {"": (head, str), **columns}
    return grid(named, shown, "l" + "r" * sum(name in table for name in columns))


def _found(plan: Any, kind: str) -> Grid:
    """Return for each effect what it changes, what that is measured against, and its chance."""
    told, found, clip = plan.stated, plan.detection, float(plan.facts.request.clip)
    unit = clip**2 if kind == "pcls" else 1.0
    cells = {
        "effect": np.array(told.scaled) * clip,
        "sd": [float(own.max()) ** 0.5 for own in told.each(plan.rows.variance)],
        "own": found.own * unit,
        "wanted": found.wanted * unit,
        "chance": found.each,
    }
    table = pd.DataFrame(cells, index=list(told.names))
    shown = _table(table, columns("gains" if kind == "adaptive" else "falls"), "term")
    more = {"all of them": found.all, "exactly them": found.right}
    last = tuple((name, "", "", "", "", f"{chance:.3f}") for name, chance in more.items())
    return replace(shown, rows=(*shown.rows, *last))


# ---- notes -------------------------------------------------------------------------------------


def _notes(plan: Any) -> list[str]:
    """Return what a call would warn of, and what would make the plan itself wrong."""
    facts, told, notes = plan.facts, plan.stated, list(plan.notes)
    if facts.family or not facts.chooses:
        return notes
    length, paper = sum(told.scaled), plan.paper
    if plan.method == "pcls" and length > float(facts.request.rho):
        notes.append(words("radius-binds", length=length * float(facts.request.clip)))
    clipped = 2 * float(ndtr(-1 / math.sqrt(float(paper.strength.sum()) + paper.sigma2)))
    if clipped > _CLIPPED:
        notes.append(words("clipped", clipped=clipped))
    return notes


def _way(plan: Any) -> str:
    """Say which method "auto" takes here, and what the other would need."""
    facts, kind = plan.facts, "others"
    if plan.adaptive:
        kind = "adaptive"
    elif facts.method == "auto" and facts.request.fit == "share":
        kind = "share"
    elif plan.unsuited:
        kind = "unsuited"
    return words(f"way-{kind}", plan=plan, instead="pcls" if facts.chooses else "gram")


def _assumed(plan: Any, kind: str) -> str:
    """Say which rows the figures are made of, and what they suppose."""
    used = words("used-like" if plan.rows.like else "used-none")
    if kind in ("pcls", "adaptive"):
        return f"{used} {words('assumed-family' if plan.facts.family else f'assumed-{kind}')}"
    columns = words("columns-like" if plan.skewed is None else "columns-skewed")
    return f"{used} {columns} {words(f'assumed-{kind}')}"


def _promise(plan: Any, theorem: Callable[[Situation], float]) -> str:
    """Say what a theorem promises here, and from which n it promises what is wanted."""
    at, chance = plan.situation, plan.facts.chance
    promise = theorem(at)
    rows = least_rows(theorem, at, chance) * plan.n / plan.paper.rows
    narrow = "" if at.wide_enough else "; it also asks for a larger radius"
    here = "promises nothing here"
    if promise > 0:
        here = f"promises the right model with chance at least {promise:.3f}"
    later = f"; {chance:g} from n = {rows:,.3g}" if promise < chance else ""
    return f"{here}{later}{narrow}."


# ---- the picture ---------------------------------------------------------------------------------


def picture(plan: Any, over: str, ax: Axes | None = None) -> Axes:
    """Draw the chance of each effect, and of all, over n or eps; the plan's own is marked."""
    choice(over, "over", tuple(_MOST))
    centre, rows = float(getattr(plan, over)), over == "n"
    values = centre * np.geomspace(1 / 8, 8, _POINTS)
    values = values[values <= _MOST[over]]
    plans = [plan.at(**{over: max(2, round(v)) if rows else float(v)}) for v in values]
    axes, thin = new_axes(ax, 7), dict[str, Any](linewidth=1.1, markersize=3.5, markevery=6)
    each = np.array([one.detection.each for one in plans]).T
    for name, line, style in zip(plan.stated.names, each, cycle(STYLES[1:]), strict=False):
        axes.plot(values, line, label=literal(name), **thin, **style)
    together = [one.found for one in plans]
    axes.plot(values, together, color="0.0", linewidth=1.8, label="all of them")
    axes.plot([centre], [plan.found], marker="o", color="0.0", linestyle="none")
    told, at = f"{plan.n:,} rows, eps {plan.eps:g}: {plan.found:.2f}", (centre, plan.found)
    axes.annotate(told, at, xytext=(8, -12), textcoords="offset points", fontsize="small")
    axes.set_xscale("log")
    ticks = centre * 2.0 ** np.arange(-3, 4)
    axes.set_xticks(ticks, [f"{t:,.0f}" if rows else f"{t:.3g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.03, 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("rows n" if rows else "eps of the whole call")
    axes.set_ylabel("chance of being found")
    mechanism = plan.mechanism if plan.adaptive else plan.paper.mechanism
    other = f"eps {plan.eps:g}" if rows else f"n {plan.n:,}"
    used = "rows of like used" if plan.rows.like else "no data used"
    axes.set_title(f"Plan at {other}, {mechanism}; {used}", fontsize="medium")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), handlelength=3.2)
    return axes
