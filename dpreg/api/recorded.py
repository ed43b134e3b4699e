"""What every public call does around its work: account, interrupts, NumPy's warnings, record."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Final, Literal, ParamSpec, TypeVar

import numpy as np

from dpreg.arguments import refuse_unknown, settle_budget
from dpreg.errors import ArgumentError
from dpreg.options import Options, grouped
from dpreg.privacy.budget import decimal_string
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.handle import Receipt, kept
from dpreg.results.claim import LedgerPosition, ReleaseRecord, minute
from dpreg.running import restore_interrupts
from dpreg.schema import Schema

__all__ = ["charged_at", "now", "position", "public_arguments", "recorded"]

_P = ParamSpec("_P")
_R = TypeVar("_R", bound=Any)
_log = logging.getLogger("dpreg.calls")

_NUMERICAL: Final[Literal["ignore", "warn"]] = "ignore"
"""What NumPy does about an overflow or an invalid value: a warning could reveal rows or noise."""
_NOT_PUBLIC: Final = ("data", "estimator", "budget", "analyst", "progress", "unsafe_seed")
"""Rows, what may hold rows, who paid, and what makes no difference to a private result."""


def recorded(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a public call: its result gets a release record.

    With ``analyst=`` the call's ledger is charged on that analyst's account. Python's own handling
    of Ctrl-C is put back first: Polars, where it is imported, replaces it. NumPy's numerical
    warnings are off: whether one appears would depend on rows and noise.
    """
    signature = inspect.signature(call)

    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        restore_interrupts()
        grouped(call.__name__, kwargs)
        refuse_unknown(call.__name__, signature.parameters, kwargs)
        analyst = kwargs.get("analyst")
        if analyst is not None:
            ledger = kwargs.get("budget")
            if not isinstance(ledger, Ledger):
                raise ArgumentError(
                    "analyst says on whose account the budget is charged: give budget=Ledger(...)."
                )
            kwargs["budget"] = ledger.for_analyst(analyst)  # type: ignore[arg-type]
        given = signature.bind_partial(*args, **kwargs)
        notes = settle_budget(given.arguments)
        started = now()
        with kept() as receipt, np.errstate(all=_NUMERICAL):
            result = call(*given.args, **given.kwargs)
        _log.info("%s finished", call.__name__)
        record = ReleaseRecord(
            call=call.__name__,
            when=charged_at(receipt, started),
            arguments=public_arguments(given.arguments),
            ledger=position(receipt),
        )
        if notes:
            return replace(result, record=record, notes=(*notes, *result.notes))
        return replace(result, record=record)

    return wrapped


def now() -> datetime:
    """Tell the time."""
    return datetime.now(UTC)


def charged_at(receipt: Receipt, started: datetime) -> str:
    """Return the time that a record tells: of the last charge, or of the start without one."""
    return minute(datetime.fromisoformat(receipt[-1][1].when) if receipt else started)


def position(receipt: Receipt) -> LedgerPosition | None:
    """Return where the last charge of a call stands, None where there was none."""
    if not receipt:
        return None
    facts, line = receipt[-1]
    cap, spent = facts.caps.total, line.spent
    return LedgerPosition(
        ledger=facts.identity,
        entry=line.number,
        head=str(line.position),
        cap_eps=decimal_string(cap.eps),
        cap_delta=decimal_string(cap.delta),
        spent_eps=decimal_string(spent.eps),
        spent_delta=decimal_string(spent.delta),
    )


def public_arguments(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are public and can be written down.

    Left out are tables and whatever may hold rows: `data`, an `x` that is columns and not their
    names, functions; and paths, which describe a machine. A schema is written out.
    """
    shown = {}
    for name, value in told.items():
        if name in _NOT_PUBLIC or (name == "x" and told.get("data") is None):
            continue
        if name == "schema":
            # A path would describe the machine; what the file declares is in the result.
            if isinstance(value, Mapping | Schema):
                shown[name] = Schema.from_any(value).to_dict()
            continue
        try:
            shown[name] = _plain(value)
        except TypeError:
            continue
    return shown


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, Fraction):
        return decimal_string(value)
    if isinstance(value, float | Decimal):
        return str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Options):
        return _plain(value.told())
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    raise TypeError
