"""When each note is shown: what released and public numbers say of a result, free of charge.

The catalogue, ``notes.toml``, has the text and the severity of each. Where a note follows from what
kind of result this is, its place and its conditions stand there as well, in the `words` of this
module; what follows from a number stands here, under the same name.

Why a standard error is what it is: the rules that fired, and the numbers that they used.

All of it is released or public, and is read from what the result holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import Boolean, Categorical, Numeric
from dpreg.estimation.tuning import TUNING
from dpreg.paths import catalogue
from dpreg.privacy.budget import decimal_string
from dpreg.privacy.noise import OBJECTIVE
from dpreg.schema import Schema

if TYPE_CHECKING:
    from dpreg.results.claim import PrivacyClaim
    from dpreg.results.classic import ClassicResults
    from dpreg.results.regression import RegressionResults

_FEW_COMPLETE: Final = 0.75
"""Below this share of complete rows, gaps are worth a question; half where noise hides more."""
_COUNT_NOISE: Final = 500.0
"""About eight times the sd of a released number of rows, at eps = 1."""
_HUGE_Z: Final = 1000.0
"""A z beyond it is hardly of rows: bounds or the budget may have been mistyped."""
_AT_BOUND: Final = 0.01
"""An estimate within this share of the declared range of an end of it lies at the bound."""
_LARGE_RESIDUAL: Final = 0.45
"""Residual sd as a share of the response's range; at half the range no column explains a thing."""
_LARGE_SHARE: Final = 0.05
"""A term that must explain more than this of all that bounds allow is hardly ever chosen."""
_RADIUS_USED: Final = 0.9
"""Share of the radius from which on it may have bound the selection."""
_MANY_BINS: Final = 20  # by definition
"""A histogram of more bins is printed as a picture; `conf_int` has its intervals."""

_FIELDS: Final = ("ridged", "conditional", "among", "stabilities", "looks", "blocks")
"""Fields whose names are words where they hold something."""

Told = Iterator["Note"]
_NOTES: Final = catalogue("notes.toml")


@dataclass(frozen=True, slots=True)
class Note:
    """A note as it is shown: its name in the catalogue, whether it is severe, and its text."""

    name: str
    severe: bool
    text: str


def worded(name: str, *of: Any, **numbers: Any) -> str:
    """Return a text of the catalogue, with numbers or with fields of what it is of."""
    return str(_NOTES[name]["text"]).format(*of, **numbers)


def _note(name: str, *of: Any, **numbers: Any) -> Note:
    return Note(name, _NOTES[name].get("severe", False), worded(name, *of, **numbers))


def _stored(text: str) -> Note:
    """Return a note that a call wrote."""
    names = (name for name, entry in _NOTES.items() if entry.get("words", "\0") in text)
    name = next(names, "call")
    return Note(name, name != "call", text)


def of(result: Any, alpha: float = 0.05) -> list[Note]:
    """Return all notes on a result, in the order of its page; none stands twice."""
    found: dict[str, Note] = {}
    for note in _told(result, fitted(result), alpha):
        found.setdefault(note.text, note)
    return list(found.values())


def _told(result: Any, fit: Any, alpha: float) -> Told:
    chosen = hasattr(result, "selected")
    place = "rule" if chosen else "estimates" if fit is None else "errors"
    if chosen:
        yield from at("draws", result)
        yield from () if fit is None else at("errors", fit, nested=True)
    yield from measured(result)
    yield from at(place, result, alpha=alpha)
    if result.kind == "classic" and result.lower is None and result.blocks is not None:
        yield _note("interval-of-blocks", degrees=max(result.blocks - 1, 1))
    yield from map(_stored, result.notes)
    yield from () if fit is None else map(_stored, fit.notes)
    yield from (_note("steps", steps=text) for text in steps(result.claim))
    yield from () if fit is None else at("last", fit)


def measured(result: Any) -> Told:
    """Say what the released numbers tell."""
    fit = fitted(result)
    if hasattr(result, "selected"):
        yield from _of_choice(result)
    if fit is not None:
        yield from _of_fit(result, fit)
    if result.kind == "classic":
        yield from _of_estimates(result)


def words(result: Any, *, nested: bool = False, alpha: float = 0.05) -> frozenset[str]:
    """Return what holds of a result, or of coefficients `nested` within one.

    The catalogue's conditions are made of these words: the kind of a result and what follows here.
    """
    told: dict[str, Any] = {name: getattr(result, name, None) for name in _FIELDS}
    if result.kind == "histogram":
        told["picture"] = is_picture(result)
    elif result.kind == "classic":
        told |= {
            "released": result.lower is not None,
            "same-level": alpha == result.alpha,
            "ones": result.share_rows is not None,
        }
    elif hasattr(result, "selected"):
        told |= {
            "draws": result.draws > 1,
            "rule": result.false_inclusions is not None,
            "groups": result.alternatives,
            "by-looks": result.by_looks,
        }
    else:
        told |= {
            "errors": has_errors(result),
            "adaptive": result.method == "adaptive",
            "old": result.method == "staged",  # the looks of dpreg 0.2
            result.fit: True,
            result.interval_method: True,
            "mixed": result.noise_degrees is not None,
            "person": result.claim.person is not None,
            "nested": nested,
            "stretched": any(look.stretch > 1 for look in result.looks[-1:]),
            "alone": any(look.mechanism == OBJECTIVE for look in result.looks[-1:]),
        }
    return frozenset([result.kind, *(word for word, so in told.items() if so)])


def at(place: str, result: Any, *, nested: bool = False, alpha: float = 0.05) -> Told:
    """Give the catalogue's notes of a place whose conditions hold of a result."""
    holds = words(result, nested=nested, alpha=alpha)
    for name, entry in _NOTES.items():
        if place in entry.get("at", ()) and any(_meets(each, holds) for each in entry["when"]):
            parts = {part: line(part, result, nested=nested) for part in entry.get("parts", ())}
            yield _note(name, result, **parts)


def line(place: str, result: Any, *, nested: bool = False) -> str:
    """Return what stands at a place as one text."""
    return "".join(note.text for note in at(place, result, nested=nested))


def _meets(condition: str, holds: frozenset[str]) -> bool:
    """Whether all words of a condition hold, and none that it has with !."""
    return all((word.strip("!") in holds) != word.startswith("!") for word in condition.split())


def has_errors(fit: RegressionResults) -> bool:
    """Whether there are standard errors; some methods, and fits of few rows, have none."""
    return not fit.bse.isna().all()


def is_picture(result: Any) -> bool:
    """Whether a histogram has too many bins for a table."""
    return result.kind == "histogram" and len(result.labels) > _MANY_BINS and not result.groups


def fitted(result: Any) -> Any:
    """Return the coefficients of a result; None where it has none."""
    if result.kind in ("classic", "histogram"):
        return None
    return result.regression if hasattr(result, "selected") else result


def steps(claim: PrivacyClaim) -> list[str]:
    """Return what the budget's steps have to say: short notes in one paragraph, long ones alone."""
    told = [f"{spend.step}: {spend.note}" for spend in claim.spends if spend.note]
    long = [note for note in told if ";" in note]
    short = "; ".join(note for note in told if note not in long)
    parts = [worded("parallel")] * any(spend.rows != "all" for spend in claim.spends)
    return [*long, *[short] * bool(short), *parts]


def _of_fit(result: Any, fit: Any) -> Told:
    """Say what the released numbers tell of coefficients."""
    if fit.complete_rows is not None and result.nobs is not None:
        rows = result.nobs / (2 if fit.fit == "split" else 1)
        kinds = Schema(fit.schema).values()
        levels = any(isinstance(kind, Categorical | Boolean) for kind in kinds)
        yield from _gaps(result, fit.complete_rows, rows, levels=levels)
    if lost := [name for name, why in fit.weak.items() if why.startswith("too few rows")]:
        yield _note("hidden-by-noise", names=_listed(lost))
    if fit.kind != "regression":
        return
    response, name = _range(fit), fit.endog_names
    slopes = [(j, name) for j, name in enumerate(fit.exog_names) if name != "Intercept"]
    if response is not None and fit.error_variance is not None:
        sd, width = float(np.sqrt(max(fit.error_variance, 0.0))), response.hi - response.lo
        if sd >= _LARGE_RESIDUAL * width:
            ends = {"lo": response.lo, "hi": response.hi}
            yield _note("residual-as-wide-as-the-bounds", sd=sd, response=name, **ends)
    given = fit.conditional or fit.among
    if response is not None and fit.column_widths is not None and not given:
        ends = fit.conf_int().to_numpy()
        with np.errstate(over="ignore", invalid="ignore"):
            reach = 2 * (ends[:, 1] - ends[:, 0]) * fit.column_widths  # over the declared range
        if names := [slope for j, slope in slopes if reach[j] > 2 * (response.hi - response.lo)]:
            yield _note("nothing-known", names=_listed(names), response=name)
    z = np.abs(fit.tvalues.to_numpy())
    if names := [slope for j, slope in slopes if z[j] > _HUGE_Z]:
        yield _note("huge-z", names=_listed(names), response=name)
    rare = [column for column, why in fit.weak.items() if why == "rare level"]
    if rare and fit.ridged:
        yield _note("rare-levels", names=_listed(rare))


def _gaps(result: Any, complete: float, rows: float, *, levels: bool) -> Told:
    chosen = result.record is not None and "where" in result.record.arguments
    few = max(_FEW_COMPLETE * rows - _COUNT_NOISE / float(result.eps), rows / 2)
    if not chosen and complete < few:
        name = "rows-missing-or-levels" if levels else "rows-missing"
        yield _note(name, complete=max(complete, 0), rows=rows)


def _range(fit: Any) -> Numeric | None:
    """Return the declared bounds of a linear model's response."""
    found = Schema(fit.schema).get(fit.endog_names) if fit.kind == "regression" else None
    return found if isinstance(found, Numeric) else None


def _of_choice(result: Any) -> Told:
    """Say what the released numbers tell of a choice.

    A model is charged psi for a term and phi for a column, in squared units of the scaled
    response, whose squares add up to at most clip^2 a row. All of these are public.
    """
    fit, n, eps = result.regression, result.nobs, decimal_string(result.eps)
    if result.method == "pcls" and n is not None and result.psi is not None:
        rows = n / (2 if fit is not None and fit.fit == "split" else 1)
        charged = float(result.psi) + float(result.phi or 0)
        if (share := charged / (rows * float(result.clip) ** 2)) >= _LARGE_SHARE:
            told = f"{share:.0%}" if share < 1 else "all"
            wanted = int(float(f"{n * share / _LARGE_SHARE:.2g}"))
            numbers = {"told": told, "wanted": wanted, "enough": _LARGE_SHARE}
            yield _note("few-rows-for-a-term", rows=n, eps=eps, **numbers)
    chosen = [term for term in result.selected if term in result.candidates]
    if not chosen and not result.alternatives and result.candidates:
        yield _note("none-selected", rows=f"{n:,} rows" if n else "the number of rows", eps=eps)
    if result.radius is not None:
        used, radius = _length(fit), float(result.radius)
        if used is not None and used >= _RADIUS_USED * radius:
            yield _note("radius-may-bind", used=used, radius=radius)
        elif used is None and result.radius_source == "default" and len(result.candidates) > 1:
            yield _note("default-radius", radius=radius)


def _length(fit: Any) -> float | None:
    """Return sum |b_j| w_j / half the response's range, as the radius is measured."""
    response = None if fit is None else _range(fit)
    if response is None or fit.column_widths is None:
        return None
    slopes = np.array([name != "Intercept" for name in fit.exog_names], dtype=bool)
    lengths = np.abs(fit.coefficients * fit.column_widths)[slopes]
    return float(lengths.sum() / ((response.hi - response.lo) / 2))


def _of_estimates(result: Any) -> Told:
    """Say what the released numbers tell of means and quantiles, and where intervals are rough."""
    if result.counts is not None and result.nobs is not None and result.blocks is None:
        complete, levels = float(result.counts.sum()), result.by is not None
        yield from _gaps(result, complete, result.nobs, levels=levels)
    low, high = ends_of(result).T
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.minimum(result.estimates - low, high - result.estimates) / (high - low)
    if result.statistic in ("mean", "quantile"):
        named = zip(_columns(result), off, low, high, strict=True)
        near = [f"{name} ({a:g} to {b:g})" for name, o, a, b in named if name and o < _AT_BOUND]
        if near:
            yield _note("at-a-bound", names=_listed(list(dict.fromkeys(near))))
    rows = 0.0 if result.counts is None else np.repeat(result.counts, len(result.names))
    if result.statistic == "mean" and result.counts is not None and (off * rows < TUNING.few).any():
        yield _note("few-off-an-end")


def _columns(result: ClassicResults) -> list[str | None]:
    """Return which column's bounds are those of each estimate."""
    named, found = list(result.bounds), []
    for label in np.tile(result.names, max(len(result.groups), 1)):
        name = next((one for one in named if label == one or label.startswith(f"{one}: ")), None)
        found.append(named[0] if name is None and len(named) == 1 else name)
    return found


def ends_of(result: ClassicResults) -> Floats:
    """Return the public bounds of each estimate, (m, 2); infinite where there are none."""
    wide = np.array([-np.inf, np.inf])
    return np.array([wide if name is None else result.bounds[name] for name in _columns(result)])


_MOST: Final = 6  # by definition
"""Names that a sentence lists."""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" * (len(names) > _MOST)
    return ", ".join(names[:_MOST]) + more


_TRACE: Final = catalogue("trace.toml")
Line = tuple[str, str, Any]


def traced(result: Any) -> Iterator[Line]:
    """Give a line for each rule of a trace: what it is at, the rule, and its number, or NaN."""
    claim, fit = result.claim, fitted(result)
    for spend in claim.spends:
        yield spend.step, f"eps of {spend.mechanism} noise", spend.budget.eps
        yield spend.step, f"delta of {spend.mechanism} noise", spend.budget.delta
    most = math.inf if claim.whole else claim.contributions
    yield "person", f"rows that count, under {claim.neighbors}", most
    for holder in (result, *([] if fit in (None, result) else [fit])):
        for name in ("looks", "releases"):
            for place, look in enumerate(getattr(holder, name, ()), 1):
                yield from _of_look(f"look {place}", look)
    if fit is not None:
        yield "fit", line("trace", fit), fit.noise_degrees or math.nan
        yield from _recorded("fit", fit if fit.ridged else replace(fit, ridge=None), _TRACE["fit"])
    elif hasattr(result, "selected"):
        return
    told = result if fit is None else fit
    weak = getattr(told, "weak", {})
    errors = zip(told.bse.index, told.bse, told.bse_sampling, told.bse_privacy, strict=True)
    for label, both, sampling, privacy in errors:
        yield str(label), "std err", both
        yield str(label), "sampling error", sampling
        yield str(label), "privacy noise", privacy
        if label in weak:
            yield str(label), f"mark: {weak[label].partition(':')[0]}", math.nan
    yield from (("notes", note.name, math.nan) for note in of(result) if note.severe)


def _recorded(at: str, holder: Any, rules: Mapping[str, str]) -> Iterator[Line]:
    told = ((rule, getattr(holder, name, None)) for name, rule in rules.items())
    yield from ((at, rule, value) for rule, value in told if value is not None)


def _of_look(at: str, look: Any) -> Iterator[Line]:
    of, kind = "eps" if look.mechanism == "matrix-laplace" else "mu^2", getattr(look, "kind", "")
    yield at, f"share of {of}, {kind or look.mechanism}", look.share
    limits = zip(_TRACE["limits"][kind or "box"], getattr(look, "limits", ()), strict=True)
    yield from ((at, rule, limit) for rule, limit in limits)
    yield from _recorded(at, look, _TRACE["look"])
