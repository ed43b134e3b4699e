"""What R gets of a result: released numbers and public facts, in R's shapes, and the JSON.

R keeps the JSON so that Python can have the whole result back (to predict, or for `dpreg.load`);
whatever R prints or computes with is spelt out beside it, so that R needs no Python for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

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
from dpreg.study.results import AdaptiveStudy, SelectionStudy
from dpreg.study.simulation import SimulationStudy
from dpreg_bridge.pages import laid_out
from dpreg_bridge.unreleased import adaptive_study, selection_study, simulation_study

__all__ = ["view"]


def view(result: Any) -> dict[str, Any]:
    """Lay a result out for R."""
    return _VIEWS[type(result)](result)


def _claimed(result: Any) -> dict[str, Any]:
    """Lay out what every released result has."""
    spends, told = list(result.claim.spends), notes.of(result)
    said = {b.label: b.text for b in page(result, 0.05).blocks if isinstance(b, Paragraph)}
    return {
        "json": result.to_json(),
        "formula": getattr(result, "formula", None),
        "schema": getattr(result, "schema", None),
        "nobs": result.nobs,
        "neighbors": result.neighbors,
        "contributions": result.contributions,
        "eps": float(result.spent.eps),
        "delta": float(result.spent.delta),
        "privacy": result.privacy,
        "seeded": result.seeded,
        "notes": tuple(note.text for note in told),
        "severe": np.array([note.severe for note in told], dtype=np.float64),
        "screen": {name: said[name] for name in ("Rows", "Cost", "Assumes")},
        "page": [laid_out(block) for block in page(result, 0.05, full=True).blocks if _kept(block)],
        "passes": result.passes,
        "record": _record(result.record),
        "budget": {
            "step": tuple(spend.step for spend in spends),
            "mechanism": tuple(spend.mechanism for spend in spends),
            "rows": tuple(spend.rows for spend in spends),
            "eps": tuple(decimal_string(spend.budget.eps) for spend in spends),
            "delta": tuple(decimal_string(spend.budget.delta) for spend in spends),
            "note": tuple(spend.note for spend in spends),
        },
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


def _looks(looks: Sequence[Look], family: bool = False) -> dict[str, Any] | None:
    """Lay out a row for each look; the moments themselves are in the JSON."""
    if not looks:
        return None
    if family:  # whose looks limit the information and the score of each row
        return {
            "rows": tuple("box" if look.radius is None else "at a fit" for look in looks),
            "mechanism": tuple(look.mechanism for look in looks),
            "share": tuple(decimal_string(look.share) for look in looks),
            "information.limit": np.array([_or_nan(look.radius) ** 2 for look in looks]),
            "score.limit": np.array(
                [math.nan if look.radius is None else look.width for look in looks]
            ),
            "relative.weight": np.array([look.weight for look in looks], dtype=np.float64),
        }
    return {
        "rows": tuple("box" if look.radius is None else "located" for look in looks),
        "mechanism": tuple(look.mechanism for look in looks),
        "share": tuple(decimal_string(look.share) for look in looks),
        "radius": np.array([_or_nan(look.radius) for look in looks]),
        "residual.clip": np.array([look.width for look in looks], dtype=np.float64),
        "stretch": np.array([look.stretch for look in looks], dtype=np.float64),
        "power": np.array([look.power for look in looks], dtype=np.float64),
        "opened": np.array([look.opened for look in looks], dtype=np.float64),
        "mean.weight": np.array([look.weight for look in looks], dtype=np.float64),
    }


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


def _releases(looks: Sequence[ReleasedLook]) -> dict[str, Any] | None:
    """Lay out a row for each look of an adaptive fit; the sums themselves are in the JSON."""
    if not looks:
        return None
    limits = np.array([(*look.limits, math.nan, math.nan)[:2] for look in looks])
    return {
        "rows": tuple(look.kind for look in looks),
        "mechanism": tuple(look.mechanism for look in looks),
        "share": tuple(decimal_string(look.share) for look in looks),
        "column.limit": limits[:, 0],
        "score.limit": limits[:, 1],
    }


def _all_looks(result: SelectionResults | RegressionResults) -> dict[str, Any] | None:
    family = isinstance(result, GLMResults | GLMSelectionResults)
    return _looks(result.looks, family) or _releases(result.releases)


def _selection(result: SelectionResults) -> dict[str, Any]:
    fit = result.regression
    return {
        **_claimed(result),
        "response": result.response,
        "candidates": result.candidates,
        "kept": result.kept,
        "columns": result.columns,
        "models": [tuple(model) for model in result.models],
        "selected": tuple(result.selected),
        "n_models": str(result.n_models),
        "frequencies": result.selection_frequencies.to_numpy(dtype=np.float64),
        "frequency_errors": result.frequency_errors.to_numpy(dtype=np.float64),
        "method": result.method,
        "mechanism": result.mechanism,
        "engine": result.engine,
        "units": result.units,
        "hierarchy": result.hierarchy,
        "max_terms": result.max_terms,
        "radius": result.radius,
        "radius_source": result.radius_source,
        "clip": result.clip,
        "center": result.center,
        "penalty": result.penalty,
        "phi": result.phi,
        "psi": result.psi,
        "sigma2": result.sigma2,
        "bounds": result.bounds,
        "best": result.best,
        "groups": [tuple(group) for group in result.alternatives],
        **{name: _by_candidate(result, name) for name in ("level", "level_errors", "stability")},
        "false_inclusions": result.false_inclusions,
        "looks": _all_looks(result),
        "regression": None if fit is None else view(fit),
    }


def _by_candidate(result: SelectionResults, name: str) -> Any:
    values = _or_none(result, name)
    return None if values is None else values.to_numpy(np.float64)


def _glm_selection(result: GLMSelectionResults) -> dict[str, Any]:
    return {
        **_selection(result),
        "family": result.family,
        "link": result.link,
        "converged": result.converged,
    }


def _regression(result: RegressionResults) -> dict[str, Any]:
    marks = _or_none(result, "marks")
    return {
        **_claimed(result),
        "response": result.endog_names,
        "terms": result.exog_names,
        "coefficients": np.asarray(result.coefficients),
        "covariance": np.asarray(result.covariance),
        "privacy_covariance": result.privacy_covariance,
        "noise_degrees": result.noise_degrees,
        "se_sampling": result.bse_sampling.to_numpy(),
        "se_privacy": result.bse_privacy.to_numpy(),
        "residual_variance": _or_none(result, "scale"),
        "r_squared": _or_none(result, "rsquared"),
        "complete_rows": result.complete_rows,
        "df_model": result.df_model,
        "df_residual": _or_none(result, "df_resid"),
        "method": result.method,
        "noise": result.noise,
        "scaling": result.scaling,
        "fit": result.fit,
        "clip": result.clip,
        "center": result.center,
        "bounds": result.bounds,
        "ridged": result.ridged,
        "ridge": result.ridge,
        "interval_method": result.interval_method,
        "interval_draws": result.interval_draws,
        "column_widths": result.column_widths,
        "params": result.params.to_numpy(dtype=np.float64),
        "conditional": [
            {"estimate": law.estimate, "se": law.se, "intervals": law.intervals}
            for law in result.conditional
        ],
        "weak": result.weak if marks is None else {},
        "marks": None if marks is None else tuple(marks),
        "cov_type": result.cov_type,
        "among": result.among,
        "looks": _all_looks(result),
    }


def _glm(result: GLMResults) -> dict[str, Any]:
    return {
        **_regression(result),
        "family": result.family,
        "link": result.link,
        "converged": result.converged,
        "offset": result.offset,
        "success": result.success,
    }


def _estimates(result: Estimates) -> dict[str, Any]:
    groups = result.groups or ("",)
    return {
        "statistic": result.kind,
        "by": result.by,
        "group": tuple(group for group in groups for _ in result.labels),
        "term": result.labels * len(groups),
        "estimate": np.asarray(result.estimates),
        "se_sampling": result.bse_sampling.to_numpy(),
        "se_privacy": result.bse_privacy.to_numpy(),
        "share_rows": result.share_rows,
    }


def _classic(result: ClassicResults) -> dict[str, Any]:
    return {
        **_claimed(result),
        **_estimates(result),
        "statistic": result.statistic,
        "lower": result.lower,
        "upper": result.upper,
        "level": None if result.alpha is None else 1 - result.alpha,
        "complete_rows": result.counts,
        "sufficient": result.sufficient,
        "sufficient_names": result.sufficient_names,
        "blocks": result.blocks,
        "bounds": _pairs(result.bounds),
        "noise": result.noise,
    }


def _histogram(result: HistogramResults) -> dict[str, Any]:
    return {
        **_claimed(result),
        **_estimates(result),
        "counts": np.asarray(result.bin_counts),
        "probabilities": np.asarray(result.probabilities),
        "edges": result.edges,
        "column": result.column,
        "binning": result.binning,
        "noise": result.noise,
    }


def _pairs(bounds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(pair) for name, pair in bounds.items()}


def _or_none(result: Any, name: str) -> Any:
    """Read what may not have been released."""
    try:
        return getattr(result, name)
    except NotReleased:
        return None


_VIEWS: Final[dict[type, Callable[[Any], dict[str, Any]]]] = {
    SelectionResults: _selection,
    GLMSelectionResults: _glm_selection,
    RegressionResults: _regression,
    GLMResults: _glm,
    ClassicResults: _classic,
    HistogramResults: _histogram,
    SelectionStudy: selection_study,
    AdaptiveStudy: adaptive_study,
    SimulationStudy: simulation_study,
}
