"""What R can ask for. A function of dpreg goes by its own name; its result is shown by `view`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Final

import dpreg
from dpreg.formula.design import build_design
from dpreg.privacy.budget import decimal_string, exact
from dpreg.privacy.ledger import Ledger
from dpreg.schema import Schema
from dpreg_bridge.aggregate import close_run, open_run, send_estimates
from dpreg_bridge.sources import close_source, new_stream, open_source
from dpreg_bridge.views import plan_view, view

__all__ = ["VERBS", "library_verb"]


def library_verb(name: str) -> Callable[..., Any]:
    """Wrap a public function of dpreg: lists become tuples, a ledger's path a ledger."""
    function = getattr(dpreg, name)

    def call(**arguments: Any) -> Any:
        if "keep" in arguments:
            arguments["keep"] = tuple(arguments["keep"] or ())
        if arguments.get("budget") is not None:
            arguments["budget"] = Ledger.open(arguments["budget"])
        return view(function(**arguments))

    return call


def _ledger(path: str, eps: Any = None, delta: Any = 0) -> dict[str, Any]:
    """Make or open a ledger's file and tell what it holds."""
    if eps is None:
        ledger = Ledger.open(path)
    else:
        ledger = Ledger(dpreg.Budget(exact(eps, "eps"), exact(delta, "delta")), path)
    entries = ledger.entries
    return {
        "path": str(ledger.path),
        "cap": _pair(ledger.cap),
        "spent": _pair(ledger.spent),
        "remaining": _pair(ledger.remaining),
        "what": tuple(entry.what for entry in entries),
        "eps": tuple(decimal_string(entry.budget.eps) for entry in entries),
        "delta": tuple(decimal_string(entry.budget.delta) for entry in entries),
        "when": tuple(entry.when for entry in entries),
    }


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
    return plan_view(dpreg.plan(**arguments), labels or {})


def _selection_study(**arguments: Any) -> dict[str, Any]:
    """Study; R needs the levels in the schema to name columns."""
    shown: dict[str, Any] = library_verb("selection_study")(**arguments)
    return shown | {"schema": _schema(arguments["schema"])}


def _has_module(name: str) -> bool:
    """Tell whether Python has a module, without importing it."""
    return importlib.util.find_spec(name) is not None


def _pair(budget: Any) -> tuple[str, str]:
    return decimal_string(budget.eps), decimal_string(budget.delta)


VERBS: Final[dict[str, Callable[..., Any]]] = {
    "has_module": _has_module,
    "ledger": _ledger,
    "schema": _schema,
    "columns": _columns,
    "plan": _plan,
    "selection_study": _selection_study,
    "open_run": open_run,
    "send_estimates": send_estimates,
    "close_run": close_run,
    "new_stream": new_stream,
    "open_source": open_source,
    "close_source": close_source,
}
"""Errands that are no single function of dpreg."""
