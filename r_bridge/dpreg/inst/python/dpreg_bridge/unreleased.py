"""What R gets of studies and plans: numbers that no mechanism released, in R's shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.planning import Plan, RegressionPlan
from dpreg.results.summary import Grid, Summary
from dpreg.study.results import SIMULATED, AdaptiveStudy, SelectionStudy
from dpreg.study.simulation import OBSERVED, SimulationStudy
from dpreg_bridge.pages import laid_out
from dpreg_bridge.words import Words

__all__ = ["adaptive_study", "plan_view", "selection_study", "simulation_study"]


def selection_study(result: SelectionStudy, words: Words, schema: Any) -> dict[str, Any]:
    """Lay a study of selections out; `schema` declares its columns."""
    law, study = result.law, _Choice.of(result, words, schema)
    eps, radius, penalty, mechanism = zip(*(one.key for one in result.settings), strict=True)
    settings = pd.DataFrame(
        {
            "eps": np.array(eps, dtype=np.float64),
            "radius": np.array(radius, dtype=np.float64),
            "penalty": list(map(str, penalty)),
            "mechanism": list(mechanism),
        }
    )
    models = law.models.astype(np.bool_)[:, study.order]
    names = np.array([" + ".join((*study.kept, *np.array(study.terms)[own])) for own in models])
    likely = np.argsort(-law.probabilities.mean(axis=1), kind="stable")
    agreement, rsquared = result.agreement, result.relative_rsquared
    return study.common(settings) | {
        "exact": result.exact,
        "names": tuple(names[likely]),
        "models": models[likely],
        "probabilities": np.asarray(law.probabilities)[likely],
        "frequencies": study.by_term(result.frequencies),
        "frequency_errors": study.by_term(result.frequency_errors),
        "agreement": settings.assign(
            **{
                "same.score": agreement["same score"].to_numpy(dtype=np.float64),
                "bic": agreement["bic"].to_numpy(dtype=np.float64),
                "same.score.choice": list(names[np.asarray(result.chosen)]),
                "bic.choice": names[law.bic],
            }
        ),
        "relative_rsquared": settings.assign(
            **{
                name: rsquared[name].to_numpy(dtype=np.float64)
                for name in ("relative", "expected", "bic")
            }
        ),
    }


def adaptive_study(result: AdaptiveStudy, words: Words, schema: Any) -> dict[str, Any]:
    """Lay a study of selections by looks out; `schema` declares its columns."""
    study = _Choice.of(result, words, schema)
    eps, delta, mechanism = zip(*(setting.key for setting in result.settings), strict=True)
    settings = pd.DataFrame(
        {
            "eps": np.array(eps, dtype=np.float64),
            "delta": np.array(delta, dtype=np.float64),
            "mechanism": list(mechanism),
        }
    )
    held = np.asarray(result.held, dtype=np.bool_)[study.order]
    return study.common(settings) | {
        "draws": result.law.draws,
        "bic": tuple(np.array(study.terms)[held]),
        "reported": study.by_term(result.frequencies),
        "in_groups": study.by_term(result.alternatives),
        "best": study.by_term(result.best),
        "outcomes": pd.concat([settings, _frame(result.outcomes)], axis=1),
    }


@dataclass(frozen=True, slots=True)
class _Choice:
    """What may be chosen, in R's words and in the order of its formula."""

    result: SelectionStudy | AdaptiveStudy
    words: Words
    order: list[int]
    terms: tuple[str, ...]
    kept: tuple[str, ...]
    names: Mapping[str, str]

    @classmethod
    def of(cls, result: SelectionStudy | AdaptiveStudy, words: Words, schema: Any) -> _Choice:
        columns = words.columns(result.formula, schema)
        units = words.units(columns)
        order = words.order(result.candidates, columns)
        terms = tuple(units[result.candidates[j]] for j in order)
        names = {name: units[name] for name in (*result.kept, *result.candidates)}
        return cls(result, words, order, terms, tuple(units[n] for n in result.kept), names)

    def by_term(self, table: pd.DataFrame) -> NDArray[np.float64]:
        return table.to_numpy(dtype=np.float64)[self.order]

    def common(self, settings: pd.DataFrame) -> dict[str, Any]:
        return {
            "privacy": self.result.privacy,
            "n_models": float(self.result.n_models),
            "settings": settings,
            "page": _page(self.result, self.words, self.names),
            "terms": self.terms,
        }


def simulation_study(result: SimulationStudy, _: Words) -> dict[str, Any]:
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


def _page(
    result: SelectionStudy | AdaptiveStudy | SimulationStudy,
    words: Words | None = None,
    names: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Lay out the page of a study, but for the formula, which R has in its own words."""
    blocks = result.summary().blocks
    kept = [block for block in blocks if getattr(block, "label", "") != "Formula"]
    return [laid_out(block, words, names) for block in kept]


def _frame(table: pd.DataFrame) -> pd.DataFrame:
    """Name columns in R's manner; a penalty that is "auto" is a missing number."""
    names = [re.sub(r"^(?=\d)", "X", re.sub(r"[^\w.]", ".", str(name))) for name in table.columns]
    columns = [_cells(table.iloc[:, place]) for place in range(len(names))]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def _cells(column: pd.Series[Any]) -> Any:
    values = [np.nan if value == "auto" else value for value in column]
    if any(isinstance(value, str) for value in values):
        return [value if isinstance(value, str) else f"{value:g}" for value in values]
    return np.array(values, dtype=np.float64)


def plan_view(result: Plan | RegressionPlan, labels: Mapping[str, str]) -> dict[str, Any]:
    """Lay a plan out for R, with R's `labels` of Python's terms and columns."""

    def named(index: Iterable[Any]) -> list[str]:
        return [labels.get(str(name), str(name)) for name in index]

    def by_name(table: pd.DataFrame) -> pd.DataFrame:
        return _frame(table).set_axis(named(table.index))

    def each() -> pd.Series[Any]:
        return result.each.set_axis(named(result.each.index)).astype(np.float64)

    told: dict[str, Any] = {
        "n": result.n,
        "eps": float(result.eps),
        "solved": result.solved,
        "text": _labelled(result.summary(), labels).as_text(),
    }
    if result.facts.family:
        told |= {
            "of": "glm",
            "enough": result.enough,
            "mechanism": result.mechanism,
            "notes": result.notes,
            "coefficients": by_name(result.errors),
        }
    else:
        told |= {"method": result.method, "each": each(), "rows_needed": result.rows_needed}
    if isinstance(result, Plan):
        told |= {
            "of": "select",
            "each": each(),
            "found": float(result.found),
            "right": float(result.right),
            "useless": float(result.useless),
        }
        return told if result.facts.family else told | {"rule_of_thumb": int(result.rule_of_thumb)}
    if result.facts.family:
        return told
    return told | {
        "of": "ols",
        "overlap": result.overlap,
        "same": result.same,
        "coefficients": by_name(result.coefficients),
    }


def _labelled(page: Summary, labels: Mapping[str, str]) -> Summary:
    blocks = [
        replace(block, rows=tuple((labels.get(row[0], row[0]), *row[1:]) for row in block.rows))
        if isinstance(block, Grid)
        else block
        for block in page.blocks
    ]
    return replace(page, blocks=tuple(blocks))
