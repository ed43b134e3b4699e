"""Ledgers for R: one handle for each account that this process has charged or looked at.

A handle remembers the last head that it saw, and so notices an account that was rolled back or
replaced since. A new handle knows nothing; so R's calls share one, by the places that R names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import dpreg
from dpreg.privacy.budget import Budget, decimal_string, exact, settled
from dpreg.privacy.ledger import Caps, Ledger

__all__ = ["adopt", "charged_to", "ledger", "verify"]

_handles: Final[dict[tuple[str, str | None], Ledger]] = {}
"""By the ledger's place and its witness's."""


def charged_to(place: str | Sequence[str]) -> Ledger:
    """Return the handle on the account at a path or address, or at that and its witness's."""
    path, witness = (place, None) if isinstance(place, str) else place
    if (path, witness) not in _handles:
        _handles[path, witness] = Ledger.open(path, witness=witness)
    return _handles[path, witness]


def ledger(
    path: str,
    eps: Any = None,
    delta: Any = 0,
    analyst_cap: Any = None,
    period_cap: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Make or open an account and return what it holds.

    Parameters
    ----------
    path : str
    eps, delta : exact numbers
        The cap; without eps an account that exists is opened as it is.
    analyst_cap, period_cap : pair of numbers, or mapping of names to pairs
    **options
        Of `Ledger`.
    """
    if eps is None:
        options.pop("period", None)
        opened = Ledger.open(path, **options)
    else:
        opened = Ledger(
            _budget([eps, delta]),
            path,
            analyst_cap=_caps(analyst_cap),
            period_cap=None if period_cap is None else _budget(period_cap, "period_cap"),
            **options,
        )
    if not options.get("read_only"):
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
        "identity": opened.identity,
        "head": opened.head,
        "cap": _pair(opened.cap),
        "spent": _pair(opened.spent),
        "remaining": _pair(opened.remaining),
        "caps": _other_caps(opened.caps),
        "entries": {
            "what": tuple(entry.what for entry in entries),
            "eps": tuple(decimal_string(entry.budget.eps) for entry in entries),
            "delta": tuple(decimal_string(entry.budget.delta) for entry in entries),
            "when": tuple(entry.when for entry in entries),
            "analyst": tuple(entry.analyst for entry in entries),
            "period": tuple(entry.period for entry in entries),
            "unit": tuple(entry.unit for entry in entries),
        },
    }


def _other_caps(caps: Caps) -> dict[str, Any]:
    """Lay out the caps of analysts (of each, or by name) and of a period, a row each."""
    rows: list[tuple[str, Budget]] = []
    if isinstance(caps.analyst, Budget):
        rows.append(("each analyst", caps.analyst))
    elif caps.analyst is not None:
        rows += [(f"analyst {name}", cap) for name, cap in caps.analyst.items()]
    if caps.period is not None:
        rows.append((f"each {caps.every}", caps.period))
    return {
        "of": tuple(name for name, _ in rows),
        "eps": tuple(decimal_string(cap.eps) for _, cap in rows),
        "delta": tuple(decimal_string(cap.delta) for _, cap in rows),
    }


def _caps(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _budget(pair, f"analyst_cap${name}") for name, pair in given.items()}
    return None if given is None else _budget(given, "analyst_cap")


def _budget(pair: Any, name: str = "") -> Budget:
    eps, delta = pair
    inner = f"{name}: " if name else ""
    return dpreg.Budget(exact(settled(eps), f"{inner}eps"), exact(settled(delta), f"{inner}delta"))


def _pair(budget: Budget) -> tuple[str, str]:
    return decimal_string(budget.eps), decimal_string(budget.delta)
