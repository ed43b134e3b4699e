"""Ledgers for R: one handle for each account that this process has charged or looked at.

A handle remembers the last head that it saw, and so notices an account that was rolled back or
replaced since. A new handle knows nothing; so R's calls share one, by the places that R names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

import dpreg
from dpreg.errors import BudgetError, shown
from dpreg.privacy.budget import Budget, decimal_string, exact, settled
from dpreg.privacy.ledger import Caps, Ledger

__all__ = ["adopt", "charged_to", "ledger", "verify"]

_NEED_EPS: Final = ("delta", "analyst_cap", "period_cap", "period")

_handles: Final[dict[tuple[str, str | None], Ledger]] = {}
"""By the ledger's place and its witness's."""


def charged_to(place: str | Sequence[str]) -> Ledger:
    """Return the handle on the account at a path or address, or at that and its witness's."""
    path, witness = (place, None) if isinstance(place, str) else place
    if (path, witness) not in _handles:
        _handles[path, witness] = Ledger.open(path, witness=witness)
    return _handles[path, witness]


def ledger(
    path: str, eps: Any = None, delta: Any = 0, read_only: bool = False, **options: Any
) -> dict[str, Any]:
    """Make or open an account and return what it holds.

    Parameters
    ----------
    path : str
    eps, delta : exact numbers
        The cap; without eps an account that exists is opened as it is.
    read_only : bool
    **options
        Of `Ledger`; caps are numbers, mappings of "eps" and "delta", or mappings of names to these.
    """
    if eps is None:
        given = options | ({"delta": delta} if delta else {})
        useless = [name for name in _NEED_EPS if name in given]
        if useless:
            listed = ", ".join(map(shown, useless))
            raise BudgetError(
                f"{listed} needs eps as well; without, a ledger is opened with its own caps."
            )
        opened = Ledger.open(path, read_only=read_only, **options)
    else:
        for name in {"analyst_cap", "period_cap"} & options.keys():
            options[name] = _cap(options[name], name)
        total = _cap({"eps": eps, "delta": delta}, "")
        opened = Ledger(total, path, read_only=read_only, **options)
    if not read_only:
        _handles[path, options.get("witness")] = opened
    return _told(opened)


def verify(path: str | Sequence[str], head: str | None = None) -> dict[str, Any]:
    """Go through a whole account."""
    found = charged_to(path).verify(head)
    return {"head": found.head, "entries": found.entries, "spent": _pair(found.spent)}


def adopt(path: str, reason: str, witness: str | None = None) -> dict[str, Any]:
    """Let an account be charged where it lies now, by a handle that saw nothing before."""
    handle = Ledger.open(path)
    handle.adopt(reason, witness=witness)
    _handles[path, witness] = handle
    return _told(handle)


def _told(opened: Ledger) -> dict[str, Any]:
    entries = opened.entries
    return {
        "path": str(opened.path),
        "witness": None if opened.witness is None else str(opened.witness),
        "cap": _pair(opened.cap),
        "spent": _pair(opened.spent),
        "remaining": _pair(opened.remaining),
        "caps": _other_caps(opened.caps),
        "entries": pd.DataFrame(
            {
                "what": [entry.what for entry in entries],
                "eps": [decimal_string(entry.budget.eps) for entry in entries],
                "delta": [decimal_string(entry.budget.delta) for entry in entries],
                "when": [entry.when for entry in entries],
                "analyst": [entry.analyst for entry in entries],
                "period": [entry.period for entry in entries],
                "unit": [entry.unit for entry in entries],
            },
            dtype=object,
        ),
        "head": opened.head,
        "identity": opened.identity,
    }


def _other_caps(caps: Caps) -> pd.DataFrame:
    """Lay out the caps of analysts (of each, or by name) and of a period, a row each."""
    rows: list[tuple[str, Budget]] = []
    if isinstance(caps.analyst, Budget):
        rows.append(("each analyst", caps.analyst))
    elif caps.analyst is not None:
        rows += [(f"analyst {name}", cap) for name, cap in caps.analyst.items()]
    if caps.period is not None:
        rows.append((f"each {caps.every}", caps.period))
    told = [(of, decimal_string(cap.eps), decimal_string(cap.delta)) for of, cap in rows]
    return pd.DataFrame(told, columns=["of", "eps", "delta"], dtype=object)


def _cap(given: Any, name: str) -> Any:
    """Read a cap: R's numbers may come in lists of one."""
    match given:
        case [one]:
            return _cap(one, name)
        case {"eps": eps, **rest} if rest.keys() <= {"delta"}:
            inner = f"{name}: " if name else ""
            delta = exact(settled(rest.get("delta", 0)), f"{inner}delta")
            return dpreg.Budget(exact(settled(eps), f"{inner}eps"), delta)
        case dict() if name == "analyst_cap":
            return {analyst: _cap(cap, f"{name}${analyst}") for analyst, cap in given.items()}
        case int() | float() | str() | None:
            return None if given is None else settled(given)
    raise BudgetError(
        f"{name} must be a number, the eps, or c(eps = 1, delta = 1e-6)"
        f"{', or a named list of such' if name == 'analyst_cap' else ''}."
    )


def _pair(budget: Budget) -> pd.Series[Any]:
    return pd.Series({"eps": decimal_string(budget.eps), "delta": decimal_string(budget.delta)})
