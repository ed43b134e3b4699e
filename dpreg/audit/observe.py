"""Everything that an observer could see of one call, as a flat mapping.

That is more than the result: whether the call raised and with which words, its warnings and which
of them came before the charge, what it printed or logged, what it charged, how long its pickle is,
and how many bits of each number are used (where noise is added in floats the low bits show what it
was added to: Mironov 2012). Time and memory are not observed.

Tested in `tests/audit/test_audit_call.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import math
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd

from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Entry, Ledger

Call: TypeAlias = Callable[[Any, Ledger], Any]
"""A public call: given a table and a ledger to charge, it returns a result."""

Seen: TypeAlias = float | str
"""One observable of one run: a number, or a text."""

BEFORE: Final = "warned before the charge"

PUBLIC: Final = ("raised", BEFORE, "logged", "printed", "charged")
"""Observables that no noise reaches: they may not differ between neighbours, ever.

Names, warnings after the charge and lines of the budget table may follow from what was released,
as the selected model does; they are weighed as every other number is.
"""

_CAP: Final = Budget(Fraction(10**400), Fraction(999, 1000))
_BITS: Final = 53


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


class _Watched(Ledger):
    """A ledger that notes how many warnings had come when it was first charged."""

    def __init__(self, warned: list[warnings.WarningMessage]) -> None:
        super().__init__(_CAP)
        self.warned = warned
        self.before: int | None = None

    def charge(
        self, budget: Budget, what: str, unit: str = "", *, analyst: str | None = None
    ) -> Entry:
        """Charge as any ledger does."""
        entry = super().charge(budget, what, unit, analyst=analyst)
        if self.before is None:
            self.before = len(self.warned)
        return entry


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

    Whatever the call raises, except KeyboardInterrupt, is an observation and not an error.
    """
    log, printed = _Log(), io.StringIO()
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
            ledger = _Watched(warned)
            try:
                result = call(data, ledger)
            except KeyboardInterrupt:
                raise
            except BaseException as raised:  # a panic of a compiled library is not an Exception
                error = f"{type(raised).__name__}: {raised}"
    finally:
        root.removeHandler(log)
    fields = dict(_flat("", result)) if error == "nothing" else {}
    told = [f"{item.category.__name__}: {item.message}" for item in warned]
    seen: dict[str, Seen] = {
        "raised": error,
        BEFORE: _joined(told[: ledger.before]),
        "warnings": _joined(told),
        "logged": _joined(log.lines),
        "printed": printed.getvalue(),
        "charged": _joined(f"{entry.what}: {entry.budget}" for entry in ledger.entries),
        "steps": _steps(getattr(result, "budget", "")),
        "names": _joined(sorted(fields)),
    }
    seen["pickle length"] = float(_pickled(result))
    bits = {
        f"{name} (bits used)": float(_bits(value))
        for name, value in fields.items()
        if isinstance(value, float)
    }
    return Observation(seen | fields | bits, ledger.spent, error != "nothing")


def _pickled(result: Any) -> int:
    """Return the length of a pickle, or 0 where there is none."""
    try:
        return len(pickle.dumps(result))
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0


def _steps(budget: Any) -> str:
    """Return the steps of a budget table and their mechanisms, or the text of another object."""
    if isinstance(budget, pd.DataFrame) and {"step", "mechanism"} <= set(budget.columns):
        return _joined(f"{row.step}: {row.mechanism}" for row in budget.itertuples())
    return str(budget)


def _bits(value: float) -> int:
    """Return the length of a number's significand without its trailing zeros."""
    if value == 0 or not math.isfinite(value):
        return 0
    whole = int(abs(math.frexp(value)[0]) * 2**_BITS)
    return _BITS + 1 - (whole & -whole).bit_length()


def _joined(lines: Any) -> str:
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return what a result's JSON holds, or the value itself where it is not a result."""
    written = getattr(value, "to_dict", None)
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_dict()
    if callable(written):
        return written()
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value


def _flat(name: str, value: Any) -> Iterator[tuple[str, Seen]]:
    """Walk through nested mappings and sequences; every leaf is a number or a text."""
    value = _plain(value)
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
        huge = isinstance(value, int) and abs(value) >= 2**1000
        yield name, str(value) if huge else float(value)
    else:
        yield name, str(value)
