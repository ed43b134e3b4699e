"""What R gets of a result: released numbers and public facts, as the fields of R's object.

Names of terms and coefficients are R's, and their order is that of R's formula. R adds what Python
cannot say: the call, its formulas and the expressions that compute columns from new rows. It keeps
the JSON so that Python can have the whole result back (for `dpreg.load`); whatever R prints or
computes with is spelt out beside it, so that R needs no Python for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.errors import NotReleased
from dpreg.privacy.budget import decimal_string
from dpreg.results import notes
from dpreg.results.claim import Look, ReleasedLook, ReleaseRecord
from dpreg.results.classic import ClassicResults, Estimates, HistogramResults
from dpreg.results.glm import GLMResults
from dpreg.results.page import page
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import GLMSelectionResults, SelectionResults
from dpreg.results.summary import Block, Facts, Paragraph
from dpreg.study.simulation import SimulationStudy
from dpreg_bridge.pages import laid_out
from dpreg_bridge.unreleased import simulation_study
from dpreg_bridge.values import NA_INTEGER
from dpreg_bridge.words import Column, Words, named_in_lists

__all__ = ["declared", "view"]


def view(result: Any, words: Words) -> Any:
    """Lay a result out for R, its terms and columns in R's words; anything else is as it is."""
    lay_out = _VIEWS.get(type(result))
    return result if lay_out is None else lay_out(result, words)


def declared(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a schema out as R users write it."""

    def vector(items: Sequence[Any]) -> Any:
        return tuple(items) if isinstance(items[0], str) else np.array(items, dtype=np.float64)

    def one(spec: Any) -> Any:
        if isinstance(spec, Mapping):
            return {"levels": vector(spec["levels"])}
        return np.zeros(0, dtype=np.bool_) if isinstance(spec, str) else vector(spec)

    return {name: one(spec) for name, spec in schema.items()}


def _claimed(result: Any, words: Words, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Lay out what every released result has; `names` are R's of what its page and notes list."""
    spends, told = list(result.claim.spends), notes.of(result)
    said = {b.label: b.text for b in page(result, 0.05).blocks if isinstance(b, Paragraph)}
    kept = [block for block in page(result, 0.05, full=True).blocks if _kept(block)]
    return {
        "nobs": result.nobs,
        "neighbors": result.neighbors,
        "contributions": result.contributions,
        "eps": float(result.spent.eps),
        "delta": float(result.spent.delta),
        "budget": pd.DataFrame(
            {
                "step": [spend.step for spend in spends],
                "mechanism": [spend.mechanism for spend in spends],
                "rows": [spend.rows for spend in spends],
                "eps": [decimal_string(spend.budget.eps) for spend in spends],
                "delta": [decimal_string(spend.budget.delta) for spend in spends],
                "note": [spend.note for spend in spends],
            }
        ),
        "privacy": result.privacy,
        "seeded": result.seeded,
        "notes": tuple(words.text(named_in_lists(note.text, names or {})) for note in told),
        "severe": np.array([note.severe for note in told], dtype=np.bool_),
        "screen": {name: said[name] for name in ("Rows", "Cost", "Assumes")},
        "page": [laid_out(block, words, names) for block in kept],
        "passes": result.passes,
        "record": _record(result.record),
        "schema": declared(getattr(result, "schema", {})),
        "python": {"formula": getattr(result, "formula", None), "json": result.to_json()},
    }


_OWN: Final = {"coef", "std err"}
"""Tables that R makes of numbers, as their level may be another, and with R's names."""


def _kept(block: Block) -> bool:
    if isinstance(block, Paragraph):
        return block.label.startswith(("Marked", "Weak", "Never selected"))
    return isinstance(block, Facts) or _OWN.isdisjoint(block.headers)


def _record(record: ReleaseRecord | None) -> dict[str, Any] | None:
    """Lay out when and by what a result was released; its arguments are in the R call."""
    if record is None:
        return None
    place = record.ledger
    return {
        "call": record.call,
        "when": record.when,
        "versions": dict(record.versions),
        "ledger": None if place is None else asdict(place),
    }


def _looks(result: SelectionResults | RegressionResults) -> pd.DataFrame | None:
    """Lay out a row for each look; what was released of the moments is in the JSON."""
    told: Sequence[Look | ReleasedLook] = result.looks or result.releases
    if not told:
        return None
    common = {
        "look": np.arange(1, len(told) + 1, dtype=np.int32),
        "rows": [""] * len(told),
        "mechanism": [look.mechanism for look in told],
        "share": [decimal_string(look.share) for look in told],
    }
    if not result.looks:
        limits = np.array([(*look.limits, math.nan, math.nan)[:2] for look in result.releases])
        own = {"column.limit": limits[:, 0], "score.limit": limits[:, 1]}
        rows = [look.kind for look in result.releases]
    elif isinstance(result, GLMResults | GLMSelectionResults):
        # Their looks limit the information and the score of each row.
        own = _numbers(
            {
                "information.limit": [_or_nan(look.radius) ** 2 for look in result.looks],
                "score.limit": [
                    math.nan if look.radius is None else look.width for look in result.looks
                ],
                "relative.weight": [look.weight for look in result.looks],
            }
        )
        rows = ["box" if look.radius is None else "at a fit" for look in result.looks]
    else:
        own = _numbers(
            {
                "radius": [_or_nan(look.radius) for look in result.looks],
                "residual.clip": [look.width for look in result.looks],
                "stretch": [look.stretch for look in result.looks],
                "power": [look.power for look in result.looks],
            }
        )
        own["opened"] = np.array([look.opened for look in result.looks], dtype=np.bool_)
        own |= _numbers({"mean.weight": [look.weight for look in result.looks]})
        rows = ["box" if look.radius is None else "located" for look in result.looks]
    return pd.DataFrame({**common, "rows": rows, **own})


def _numbers(columns: Mapping[str, Iterable[float]]) -> dict[str, NDArray[Any]]:
    return {name: np.array([*values], dtype=np.float64) for name, values in columns.items()}


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


def _fields(result: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(result, name) for name in names}


_OF_CANDIDATES: Final = (
    *("selection_frequencies", "frequency_errors"),
    *("level", "level_errors", "stability"),  # the last in files of dpreg 0.2
)


def _selection(result: SelectionResults, words: Words) -> dict[str, Any]:
    fit = result.regression
    columns = words.columns(result.formula, result.schema)
    units = words.units(columns)
    order = words.order(result.candidates, columns)

    def named(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(units[name] for name in names)

    def ordered(names: Sequence[str]) -> tuple[str, ...]:
        return named(names[j] for j in words.order(names, columns))

    def by_candidate(name: str) -> pd.Series[Any] | None:
        values = _or_none(result, name)
        return None if values is None else values.iloc[order].set_axis(ordered(result.candidates))

    known = {name: units[name] for name in (*result.kept, *result.candidates)}
    terms = (*named(result.kept), *ordered(result.candidates))
    groups = [named(group) for group in result.alternatives]
    of_candidates = {name: by_candidate(name) for name in _OF_CANDIDATES}
    drawn = Counter(tuple(term in named(model) for term in terms) for model in result.models)
    fitted = {} if fit is None else {name: columns[name].name for name in fit.exog_names}
    return {
        "selected": ordered(result.reported),
        "selected_terms": tuple(columns[n].term if n in columns else n for n in result.reported),
        "candidates": ordered(result.candidates),
        "kept": named(result.kept),
        **of_candidates,
        "models": [named(model) for model in result.models],
        "which": np.array([model for model, _ in drawn.most_common()], dtype=np.bool_),
        "counts": pd.Series(
            [count for _, count in drawn.most_common()], range(1, len(drawn) + 1), dtype=np.int32
        ),
        "n_models": float(result.n_models),
        "columns": {
            units[unit]: tuple(columns[name].name for name in own)
            for unit, own in result.columns.items()
        },
        "best": ordered(result.best) or None,
        "groups": groups,
        "terms": _terms(terms, len(result.kept), ordered(result.reported), groups, of_candidates),
        "false_inclusions": result.false_inclusions,
        "looks": _looks(result),
        **_claimed(result, words, fitted | known),
        "settings": _fields(
            result,
            *("method", "mechanism", "engine", "units", "hierarchy", "max_terms", "radius"),
            *("radius_source", "clip", "center", "penalty", "phi", "psi", "sigma2", "bounds"),
        ),
        "regression": None if fit is None else view(fit, words),
    }


def _terms(
    terms: Sequence[str],
    kept: int,
    selected: Sequence[str],
    groups: Sequence[Sequence[str]],
    of_candidates: Mapping[str, pd.Series[Any] | None],
) -> pd.DataFrame:
    """Lay out a row for each term, those first that are `kept` in every model."""
    group = {term: place for place, own in enumerate(groups, 1) for term in own}

    def column(name: str, of_kept: float) -> list[float]:
        values = of_candidates[name]
        told = [math.nan] * (len(terms) - kept) if values is None else [*values]
        return [of_kept] * kept + told

    return pd.DataFrame(
        {
            "term": list(terms),
            "kept": np.arange(len(terms)) < kept,
            "selected": np.isin(terms, selected),
            "frequency": column("selection_frequencies", 1.0),
            "level": column("level", math.nan),
            "se": column("level_errors", math.nan),
            "group": np.array([group.get(term, NA_INTEGER) for term in terms], dtype=np.int32),
        }
    )


def _glm_selection(result: GLMSelectionResults, words: Words) -> dict[str, Any]:
    return _selection(result, words) | _fields(result, "family", "link", "converged")


def _regression(result: RegressionResults, words: Words) -> dict[str, Any]:
    columns = words.columns(result.design_formula or result.formula, result.schema)
    own = [columns[name] for name in result.exog_names]
    order = words.order(result.exog_names, columns)
    names = tuple(own[j].name for j in order)

    def vector(values: Any) -> pd.Series[Any] | None:
        return None if values is None else pd.Series(np.asarray(values)[order], index=names)

    marks, variance = _or_none(result, "marks"), _or_none(result, "scale")
    weak = result.weak if marks is None else {}
    shown = {name: column.name for name, column in zip(result.exog_names, own, strict=True)}
    return {
        "coefficients": vector(result.params),
        "estimates": vector(result.coefficients),
        "vcov": result.covariance[np.ix_(order, order)],
        "privacy_vcov": None
        if result.privacy_covariance is None
        else result.privacy_covariance[np.ix_(order, order)],
        "noise_degrees": result.noise_degrees,
        "se_sampling": vector(result.bse_sampling),
        "se_privacy": vector(result.bse_privacy),
        "sigma": None if variance is None else math.sqrt(max(variance, 0.0)),
        "r.squared": _or_none(result, "rsquared"),
        "df.residual": _or_none(result, "df_resid"),
        "complete_rows": result.complete_rows,
        "interval_method": result.interval_method,
        "interval_draws": None
        if result.interval_draws is None
        else result.interval_draws[:, order],
        "column_widths": vector(result.column_widths),
        "design": _recipe(own, order, words),
        "ridged": result.ridged,
        "conditional": True if result.conditional else None,
        "among": result.among,
        "weak": pd.Series({shown[name]: why for name, why in weak.items()}, dtype=object),
        "marks": vector(marks),
        "cov_type": result.cov_type,
        "looks": _looks(result),
        **_claimed(result, words, shown),
        "settings": _fields(
            result, "method", "noise", "scaling", "fit", "clip", "center", "bounds", "ridge"
        ),
    }


def _recipe(columns: Sequence[Column], order: Sequence[int], words: Words) -> dict[str, Any]:
    """Lay out of what each column is the product, in Python's order, and the places in R's."""
    return {
        "columns": [
            {
                "term": words.terms.get(column.term, column.term),
                "labels": column.labels,
                "ends": column.ends,
            }
            for column in columns
        ],
        "order": np.array(order, dtype=np.int32) + 1,
    }


def _glm(result: GLMResults, words: Words) -> dict[str, Any]:
    scale = _or_none(result, "scale")
    return _regression(result, words) | {
        "family": result.family,
        "link": result.link,
        "converged": result.converged,
        "dispersion": math.nan if scale is None else scale,
        "success": result.success,
    }


def _estimates(result: Estimates, words: Words, extra: Mapping[str, Any]) -> dict[str, Any]:
    groups = result.groups or ("",)
    term = result.labels * len(groups)
    group = tuple(group for group in groups for _ in result.labels)
    sampling, privacy = result.bse_sampling.to_numpy(), result.bse_privacy.to_numpy()
    frame = pd.DataFrame(
        {
            **({} if result.by is None else {result.by: group}),
            "term": term,
            "estimate": np.asarray(result.estimates),
            "std.error": np.sqrt(sampling**2 + privacy**2),
            "se_sampling": sampling,
            "se_privacy": privacy,
            **extra,
        }
    )
    labels = term if result.by is None else tuple(map(":".join, zip(group, term, strict=True)))
    return {
        "statistic": result.kind,
        "estimates": frame,
        "coefficients": frame["estimate"].set_axis(labels),
        "noise": result.noise,
        "by": result.by,
        "share_rows": result.share_rows,
        **_claimed(result, words),
    }


def _classic(result: ClassicResults, words: Words) -> dict[str, Any]:
    return _estimates(result, words, {}) | {
        "statistic": result.statistic,
        "lower": result.lower,
        "upper": result.upper,
        "level": None if result.alpha is None else 1 - result.alpha,
        "complete_rows": result.counts,
        "sufficient": result.sufficient,
        "sufficient_names": result.sufficient_names,
        "blocks": result.blocks,
        "bounds": {name: np.asarray(pair) for name, pair in result.bounds.items()},
        "ends": notes.ends_of(result),
    }


def _histogram(result: HistogramResults, words: Words) -> dict[str, Any]:
    cells = {
        "counts": np.asarray(result.bin_counts).ravel(),
        "probabilities": np.asarray(result.probabilities).ravel(),
    }
    return _estimates(result, words, cells) | _fields(result, "edges", "column", "binning")


def _or_none(result: Any, name: str) -> Any:
    """Read what may not have been released."""
    try:
        return getattr(result, name)
    except NotReleased:
        return None


_VIEWS: Final[dict[type, Callable[[Any, Words], dict[str, Any]]]] = {
    SelectionResults: _selection,
    GLMSelectionResults: _glm_selection,
    RegressionResults: _regression,
    GLMResults: _glm,
    ClassicResults: _classic,
    HistogramResults: _histogram,
    SimulationStudy: simulation_study,
}
