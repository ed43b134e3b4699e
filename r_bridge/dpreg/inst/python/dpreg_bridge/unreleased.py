"""What R gets of studies and plans: numbers that no mechanism released, in R's shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpreg.planning import Plan, RegressionPlan
from dpreg.results.summary import Grid, Summary
from dpreg.study.results import SIMULATED, AdaptiveStudy, SelectionStudy
from dpreg.study.simulation import OBSERVED, SimulationStudy
from dpreg_bridge.pages import laid_out

__all__ = ["adaptive_study", "plan_view", "selection_study", "simulation_study"]


def selection_study(result: SelectionStudy) -> dict[str, Any]:
    """Lay a study of selections out."""
    law = result.law
    settings = list(zip(*(setting.key for setting in result.settings), strict=True))
    return {
        "privacy": result.privacy,
        "page": _page(result),
        "n_models": str(result.n_models),
        "exact": result.exact,
        "candidates": result.candidates,
        "kept": result.kept,
        "settings": {
            "eps": np.array(settings[0], dtype=np.float64),
            "radius": np.array(settings[1], dtype=np.float64),
            "penalty": tuple(map(str, settings[2])),
            "mechanism": tuple(settings[3]),
        },
        "models": law.models.astype(np.float64),
        "probabilities": np.asarray(law.probabilities),
        "frequencies": result.frequencies.to_numpy(dtype=np.float64),
        "frequency_errors": result.frequency_errors.to_numpy(dtype=np.float64),
        "agreement": result.agreement[["same score", "bic"]].to_numpy(dtype=np.float64),
        "same_score": np.asarray(result.chosen, dtype=np.float64) + 1,
        "bic": int(law.bic) + 1,
        "rsquared": result.relative_rsquared[["relative", "expected", "bic"]].to_numpy(np.float64),
    }


def adaptive_study(result: AdaptiveStudy) -> dict[str, Any]:
    """Lay a study of selections by looks out."""
    eps, delta, mechanism = zip(*(setting.key for setting in result.settings), strict=True)
    return {
        "privacy": result.privacy,
        "page": _page(result),
        "n_models": str(result.n_models),
        "draws": result.law.draws,
        "candidates": result.candidates,
        "kept": result.kept,
        "settings": {
            "eps": np.array(eps, dtype=np.float64),
            "delta": np.array(delta, dtype=np.float64),
            "mechanism": tuple(mechanism),
        },
        "bic": np.array(result.held, dtype=np.float64),
        "reported": result.frequencies.to_numpy(dtype=np.float64),
        "in_groups": result.alternatives.to_numpy(dtype=np.float64),
        "best": result.best.to_numpy(dtype=np.float64),
        "outcomes": _frame(result.outcomes),
    }


def simulation_study(result: SimulationStudy) -> dict[str, Any]:
    """Lay a study on simulated data out."""
    design = result.design
    leak = OBSERVED in design.bound and len(design.bound) > 1
    return {
        "privacy": SIMULATED,
        "page": _page(result),
        "beta": design.beta,
        "sigma": design.sigma,
        "datasets": design.datasets,
        "n_models": 2 ** len(design.beta) - (not design.empty),
        "proportions": _frame(result.proportions),
        "best": _frame(result.best.reset_index()),
        "leak": _frame(result.price_of_the_leak.reset_index()) if leak else None,
    }


def _page(result: SelectionStudy | AdaptiveStudy | SimulationStudy) -> list[dict[str, Any]]:
    """Lay out the page of a study, but for the formula, which R has in its own words."""
    blocks = result.summary().blocks
    return [laid_out(block) for block in blocks if getattr(block, "label", "") != "Formula"]


def _frame(table: pd.DataFrame) -> dict[str, Any]:
    """Lay out columns by R's manner of naming; a penalty that is "auto" is a missing number."""
    return {
        re.sub(r"[ /]", ".", str(name)): _cells(table.iloc[:, place])
        for place, name in enumerate(table.columns)
    }


def _cells(column: pd.Series[Any]) -> Any:
    values = [np.nan if value == "auto" else value for value in column]
    if any(isinstance(value, str) for value in values):
        return tuple(value if isinstance(value, str) else f"{value:g}" for value in values)
    return np.array(values, dtype=np.float64)


def plan_view(result: Plan | RegressionPlan, labels: Mapping[str, str]) -> dict[str, Any]:
    """Lay a plan out for R, with R's `labels` of Python's terms and columns in its page."""
    common: dict[str, Any] = {
        "n": result.n,
        "eps": float(result.eps),
        "solved": result.solved,
        "text": _labelled(result.summary(), labels).as_text(),
    }
    if result.facts.family:
        common |= {
            "of": "glm",
            "enough": result.enough,
            "mechanism": result.mechanism,
            "notes": result.notes,
            "columns": tuple(map(str, result.errors.index)),
            "coefficients": _frame(result.errors),
        }
        return common | (_found(result) if isinstance(result, Plan) else {})
    common |= {
        "method": result.method,
        "terms": tuple(map(str, result.each.index)),
        "each": result.each.to_numpy(dtype=np.float64),
        "rows_needed": result.rows_needed,
    }
    if isinstance(result, RegressionPlan):
        return common | {
            "of": "ols",
            "overlap": result.overlap,
            "same": result.same,
            "coefficients": _frame(result.coefficients),
        }
    return common | _found(result) | {"rule_of_thumb": int(result.rule_of_thumb)}


def _found(result: Plan) -> dict[str, Any]:
    """Lay out what a choice is expected to find."""
    return {
        "of": "select",
        "terms": tuple(map(str, result.each.index)),
        "each": result.each.to_numpy(dtype=np.float64),
        "found": float(result.found),
        "right": float(result.right),
        "useless": float(result.useless),
    }


def _labelled(page: Summary, labels: Mapping[str, str]) -> Summary:
    blocks = [
        replace(block, rows=tuple((labels.get(row[0], row[0]), *row[1:]) for row in block.rows))
        if isinstance(block, Grid)
        else block
        for block in page.blocks
    ]
    return replace(page, blocks=tuple(blocks))
