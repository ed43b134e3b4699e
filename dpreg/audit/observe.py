"""Everything that an observer could see of one call, as a flat mapping.

That is more than the result: whether the call raised and with which words, its warnings, what it
printed or logged, what it charged, and how long its pickle is.

Tested in `tests/audit/test_audit_call.py`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

__all__ = ["PUBLIC", "Call", "Observation", "Seen", "observe"]

Call: TypeAlias = Callable[[Any, Ledger], Any]
"""A public call: given a table and a ledger to charge, it returns a result."""

Seen: TypeAlias = float | str
"""One observable of one run: a number, or a text."""

PUBLIC: Final = ("raised", "warnings", "logged", "printed", "charged", "budget", "names")
"""Observables that no noise reaches: they may not differ between neighbours, ever."""

_CAP: Final = Budget(Fraction(10**90), Fraction(999, 1000))


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run showed.

    Attributes
    ----------
    seen : mapping of str to float or str
        Every observable by its name. Those of `PUBLIC` are always there.
    charged : Budget
        What the ledger holds after the run.
    raised : bool
        Whether the call ended with an exception.
    """

    seen: Mapping[str, Seen]
    charged: Budget
    raised: bool


class _Log(logging.Handler):
    """Keeps the text of every record."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record's text."""
        self.lines.append(f"{record.name}: {record.getMessage()}")


def observe(call: Call, data: Any) -> Observation:
    """Run a call once, with a fresh ledger, and note everything that it shows.

    An exception of the call is an observation, not an error; KeyboardInterrupt is neither.
    """
    ledger, log, printed = Ledger(_CAP), _Log(), io.StringIO()
    result: Any = None
    error = "nothing"
    root = logging.getLogger()
    root.addHandler(log)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            try:
                result = call(data, ledger)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
    finally:
        root.removeHandler(log)
    fields = dict(_flat("", _plain(result))) if error == "nothing" else {}
    seen: dict[str, Seen] = {
        "raised": error,
        "warnings": _joined(f"{item.category.__name__}: {item.message}" for item in warned),
        "logged": _joined(log.lines),
        "printed": printed.getvalue(),
        "charged": str(ledger.spent),
        "budget": str(getattr(result, "budget", "")),
        "names": _joined(sorted(fields)),
    }
    seen["pickle length"] = float(len(pickle.dumps(result))) if error == "nothing" else 0.0
    return Observation(seen | fields, ledger.spent, error != "nothing")


def _joined(lines: Any) -> str:
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return what a result's JSON holds, or the value itself where it is no result."""
    written = getattr(value, "to_dict", None)
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_dict()
    return written() if callable(written) else value


def _flat(name: str, value: Any) -> Iterator[tuple[str, Seen]]:
    """Walk through nested mappings and sequences; every leaf is a number or a text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, np.ndarray):
        yield from _flat(name, value.tolist())
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield f"{name}.length", float(len(value))
        for place, inner in enumerate(value):
            yield from _flat(f"{name}[{place}]", inner)
    elif isinstance(value, int | float | np.number) and not isinstance(value, bool):
        yield name, float(value)
    else:
        yield name, str(value)
