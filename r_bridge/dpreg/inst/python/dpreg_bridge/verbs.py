"""What R can ask for. A function of dpreg goes by its own name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import dpreg
from dpreg.errors import ArgumentError, shown
from dpreg.results.base import from_json
from dpreg.results.regression import RegressionResults
from dpreg.schema import Schema
from dpreg.study.results import AdaptiveStudy
from dpreg_bridge.aggregate import close_run, open_run, send_estimates
from dpreg_bridge.expressions import codes, row_test
from dpreg_bridge.files import dataset, read, report
from dpreg_bridge.ledgers import adopt, charged_to, ledger, verify
from dpreg_bridge.sources import close_source, new_stream, open_source
from dpreg_bridge.unreleased import adaptive_study, plan_view, selection_study
from dpreg_bridge.views import declared
from dpreg_bridge.words import INTERCEPT, Column, Words

__all__ = ["VERBS", "WITH_WORDS", "library_verb"]


def library_verb(name: str) -> Callable[..., Any]:
    """Wrap a public function of dpreg: lists become tuples, a ledger's path a ledger."""
    function = getattr(dpreg, name)
    return lambda **arguments: function(**_settled(arguments))


def _settled(arguments: dict[str, Any]) -> dict[str, Any]:
    if "keep" in arguments:
        arguments["keep"] = tuple(arguments["keep"] or ())
    if arguments.get("budget") is not None:
        arguments["budget"] = charged_to(arguments["budget"])
    return arguments


def _schema(schema: Any) -> dict[str, Any]:
    """Read a schema as any call does."""
    return declared(Schema.from_any(schema).to_dict())


def _plan(verb: str, words: Words, **arguments: Any) -> dict[str, Any]:
    """Plan, effects and standard deviations by R's names of coefficients."""
    if "data" in arguments:
        arguments["like"] = arguments.pop("data")
    names: dict[str, str] = {}
    if arguments.get("formula") is not None:
        columns = words.columns(arguments["formula"], arguments["schema"])
        names = words.units(columns)
        for argument in ("effects", "sd"):
            if (given := arguments.get(argument)) is not None:
                arguments[argument] = _by_python(given, argument, names, columns)
    return plan_view(getattr(dpreg, verb)(**_settled(arguments)), names)


def _by_python(
    given: Any, argument: str, names: Mapping[str, str], columns: Mapping[str, Column]
) -> dict[str, float]:
    """Name numbers as Python does that R names as its coefficients, or terms of one column."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{argument} need names, those of coefficients.")
    python = {name: name for name in names} | {r: name for name, r in names.items()}
    if unknown := [name for name in given if name not in python]:
        known = [shown(column.name) for name, column in columns.items() if name != INTERCEPT[0]]
        raise ArgumentError(
            f"{argument}: {shown(unknown[0])} is not a coefficient of the formula; these are "
            f"{', '.join(known)}."
        )
    return {python[name]: value for name, value in given.items()}


def _selection_study(words: Words, **arguments: Any) -> dict[str, Any]:
    result = dpreg.selection_study(**_settled(arguments))
    if isinstance(result, AdaptiveStudy):
        return adaptive_study(result, words, arguments["schema"])
    return selection_study(result, words, arguments["schema"])


def _conditional_law(text: str, level: float) -> dict[str, Any]:
    """Return limits and p-values of coefficients with a law given their choice, by file of 0.2."""
    fit = RegressionResults.from_json(text)
    return {"limits": fit.conf_int(1 - level).to_numpy(), "pvalues": fit.pvalues.to_numpy()}


def _has_module(name: str) -> bool:
    """Return whether Python has a module, without importing it."""
    return importlib.util.find_spec(name) is not None


VERBS: Final[dict[str, Callable[..., Any]]] = {
    "has_module": _has_module,
    "ledger": ledger,
    "verify_ledger": verify,
    "adopt_ledger": adopt,
    "schema": _schema,
    "codes": codes,
    "row_test": row_test,
    "read": read,
    "result": from_json,
    "conditional_law": _conditional_law,
    "report": report,
    "dataset": dataset,
    "open_run": open_run,
    "send_estimates": send_estimates,
    "close_run": close_run,
    "new_stream": new_stream,
    "open_source": open_source,
    "close_source": close_source,
}
"""Errands that are no single function of dpreg."""

WITH_WORDS: Final[dict[str, Callable[..., Any]]] = {
    "plan": partial(_plan, "plan"),
    "plan_glm": partial(_plan, "plan_glm"),
    "selection_study": _selection_study,
}
"""Those that R's words come into, as the first argument."""
