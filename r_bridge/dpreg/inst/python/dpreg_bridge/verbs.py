"""What R can ask for. A function of dpreg goes by its own name; its result is shown by `view`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pandas as pd

import dpreg
from dpreg.privacy.budget import decimal_string, exact
from dpreg.privacy.ledger import Ledger
from dpreg.results.load import from_json
from dpreg_bridge.views import view

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


def _predict(json: str, data: pd.DataFrame, level: float) -> dict[str, Any]:
    """Predict from a result that R kept as JSON."""
    result: Any = from_json(json)
    prediction = result.get_prediction(data)
    alpha = 1 - level
    return {
        "fit": prediction.predicted_mean,
        "se": prediction.se_mean,
        "mean": prediction.conf_int(alpha=alpha),
        "observation": prediction.conf_int(obs=True, alpha=alpha),
    }


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


def _pair(budget: Any) -> tuple[str, str]:
    return decimal_string(budget.eps), decimal_string(budget.delta)


VERBS: Final[dict[str, Callable[..., Any]]] = {"predict": _predict, "ledger": _ledger}
"""Errands that are no single function of dpreg."""
