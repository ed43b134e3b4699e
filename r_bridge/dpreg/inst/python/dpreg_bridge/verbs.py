"""What R can ask for. A function of dpreg goes by its own name; its result is shown by `view`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Final

import dpreg
from dpreg.formula.design import build_design
from dpreg.schema import Schema
from dpreg_bridge.aggregate import close_run, open_run, send_estimates
from dpreg_bridge.files import dataset, load, report
from dpreg_bridge.ledgers import adopt, charged_to, ledger, verify
from dpreg_bridge.sources import close_source, new_stream, open_source
from dpreg_bridge.unreleased import plan_view
from dpreg_bridge.views import view

__all__ = ["VERBS", "library_verb"]


def library_verb(name: str) -> Callable[..., Any]:
    """Wrap a public function of dpreg: lists become tuples, a ledger's path a ledger."""
    function = getattr(dpreg, name)

    def call(**arguments: Any) -> Any:
        if "keep" in arguments:
            arguments["keep"] = tuple(arguments["keep"] or ())
        if arguments.get("budget") is not None:
            arguments["budget"] = charged_to(arguments["budget"])
        return view(function(**arguments))

    return call


def _schema(schema: Any) -> dict[str, Any]:
    """Read a schema as any call does."""
    return Schema.from_any(schema).to_dict()


def _columns(formula: str, schema: Any, keep: Any = ("Intercept",)) -> tuple[str, ...]:
    """Name the columns of a formula's model matrix; no rows are needed for it."""
    kept = tuple(keep or ())
    return tuple(column.name for column in build_design(formula, schema, keep=kept).columns)


def _plan(labels: Mapping[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Plan, and print the plan with R's names of terms."""
    if "keep" in arguments:
        arguments["keep"] = tuple(arguments["keep"] or ())
    if "data" in arguments:
        arguments["like"] = arguments.pop("data")
    return plan_view(dpreg.plan(**arguments), labels or {})


def _plan_glm(labels: Mapping[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    """Plan a model of a family, and print the plan with R's names of columns."""
    if "data" in arguments:
        arguments["like"] = arguments.pop("data")
    return plan_view(dpreg.plan_glm(**arguments), labels or {})


def _selection_study(**arguments: Any) -> dict[str, Any]:
    """Study; R needs the levels in the schema to name columns."""
    shown: dict[str, Any] = library_verb("selection_study")(**arguments)
    return shown | {"schema": _schema(arguments["schema"])}


def _has_module(name: str) -> bool:
    """Return whether Python has a module, without importing it."""
    return importlib.util.find_spec(name) is not None


VERBS: Final[dict[str, Callable[..., Any]]] = {
    "has_module": _has_module,
    "ledger": ledger,
    "verify_ledger": verify,
    "adopt_ledger": adopt,
    "schema": _schema,
    "columns": _columns,
    "plan": _plan,
    "plan_glm": _plan_glm,
    "load": load,
    "report": report,
    "dataset": dataset,
    "selection_study": _selection_study,
    "open_run": open_run,
    "send_estimates": send_estimates,
    "close_run": close_run,
    "new_stream": new_stream,
    "open_source": open_source,
    "close_source": close_source,
}
"""Errands that are no single function of dpreg."""
