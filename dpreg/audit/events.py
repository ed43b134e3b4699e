"""Events that tell two tables apart, and what they prove about eps.

Statement
---------
Let a call be (eps, delta)-DP, and let an event S be fixed before the runs that count it. Then
P(S) <= exp(eps) P'(S) + delta for neighbours. If with the confidence asked for P(S) >= low and
P'(S) <= high (Clopper and Pearson 1934, one-sided each, exact for the binomial law), then

    eps >= ln((low - delta) / high)

with that confidence. The event is chosen on one half of the runs and counted on the other, so that
choosing among thousands costs nothing (as in DP-Auditorium, Kong et al. 2023).

Search
------
Every observable gives elementary events: a text equals a value, a number lies below a threshold or
repeats. Thresholds are quantiles, and the 1, 2, 4, 8, ... lowest and highest numbers, since what
delta hides is rare. Boosted over these (AdaBoost on stumps, Freund and Schapire 1997), their
weighted sum approximates the log likelihood ratio of the two tables, whose upper sets are the most
powerful events (Neyman and Pearson); the elementary events and the thresholds of the sum compete.

Everything that an observer could see of one call, as a flat mapping.

That is more than the result: whether the call raised and with which words, its warnings and which
of them came before the charge, what it printed or logged, what it charged, how long its pickle is,
and how many bits of each number are used (where noise is added in floats the low bits show what it
was added to: Mironov 2012). Time and memory are not observed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import math
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from logging.handlers import QueueHandler
from queue import SimpleQueue
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpreg.arrays import Floats
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Entry, Ledger

Call: TypeAlias = Callable[[Any, Ledger], Any]
"""A public call: given a table and a ledger to charge, it returns a result."""

Seen: TypeAlias = float | str
"""One observable of one run: a number, or a text."""

BEFORE: Final = "warned before the charge"
NOTHING: Final = "nothing"
"""What a call raised that ended well."""

PUBLIC: Final = ("raised", BEFORE, "logged", "printed", "charged")
"""Observables that no noise reaches: they may not differ between neighbours, ever.

Names, warnings after the charge and lines of the budget table may follow from what was released,
as the selected model does; they are weighed as every other number is.
"""

_CAP: Final = Budget(Fraction(10**400), Fraction(999, 1000))


@dataclass(frozen=True, slots=True)
class Observation:
    """What one run showed.

    Attributes
    ----------
    seen : mapping of str to float or str
        Every observable by its name. Those of `PUBLIC` are always there.
    charged : Budget
        What the ledger holds after the run.
    """

    seen: Mapping[str, Seen]
    charged: Budget


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


def observe(call: Call, data: Any) -> Observation:
    """Run a call once, with a fresh ledger, and note everything that it shows.

    Whatever the call raises, except KeyboardInterrupt, is an observation and not an error.
    """
    logged, printed = SimpleQueue[logging.LogRecord](), io.StringIO()
    log = QueueHandler(logged)  # which writes a record's text when it comes
    result: Any = None
    error = NOTHING
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
    fields = dict(_flat("", result)) if error == NOTHING else {}
    records = [logged.get() for _ in range(logged.qsize())]
    told = [f"{item.category.__name__}: {item.message}" for item in warned]
    seen: dict[str, Seen] = {
        "raised": error,
        BEFORE: "\n".join(told[: ledger.before]),
        "warnings": "\n".join(told),
        "logged": "\n".join(f"{one.name}: {one.message}" for one in records),
        "printed": printed.getvalue(),
        "charged": "\n".join(f"{entry.what}: {entry.budget}" for entry in ledger.entries),
        "steps": _steps(getattr(result, "budget", "")),
        "names": "\n".join(sorted(fields)),
    }
    seen["pickle length"] = float(_pickled(result))
    bits = {
        f"{name} (bits used)": float(_bits(value))
        for name, value in fields.items()
        if isinstance(value, float)
    }
    return Observation(seen | fields | bits, ledger.spent)


def _pickled(result: Any) -> int:
    """Return the length of a pickle, or 0 where there is none."""
    try:
        return len(pickle.dumps(result))
    except (pickle.PicklingError, AttributeError, TypeError):
        return 0


def _steps(budget: Any) -> str:
    """Return the steps of a budget table and their mechanisms, or the text of another object."""
    if isinstance(budget, pd.DataFrame) and {"step", "mechanism"} <= set(budget.columns):
        return "\n".join(f"{row.step}: {row.mechanism}" for row in budget.itertuples())
    return str(budget)


def _bits(value: float) -> int:
    """Return the length of a number's significand without its trailing zeros."""
    if value == 0 or not math.isfinite(value):
        return 0
    whole, _ = value.as_integer_ratio()
    return (whole // (whole & -whole)).bit_length()


def _plain(value: Any) -> Any:
    """Return what a result's JSON holds, or the value itself where it is not a result."""
    written = getattr(value, "to_dict", None)
    if callable(written):  # a table's, too
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
        told = (isinstance(value, int) and abs(value) >= 2**1000) or math.isnan(value)
        yield name, str(value) if told else float(value)
    else:
        yield name, str(value)


_ROUNDS: Final = 25
_THRESHOLDS: Final = 40
_REPEATS: Final = 3
_NEVER: Final = "(absent)"

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Elementary:
    """An observable compared with a value: "equals" (texts and numbers) or "below" (numbers)."""

    name: str
    relation: str
    value: Seen

    def __str__(self) -> str:
        """Write it in words."""
        sign = "=" if self.relation == "equals" else "<="
        return f"{self.name} {sign} {self.value!r}"


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outcomes: a weighted sum of elementary events lies above a threshold.

    `first` is whether the event is likelier under the first table.
    """

    parts: tuple[Elementary, ...]
    weights: tuple[float, ...]
    threshold: float
    first: bool

    def holds(self, runs: Sequence[Mapping[str, Seen]]) -> Bools:
        """Return in which runs it happened."""
        return _sums(_held(self.parts, runs), self.weights) > self.threshold

    def __str__(self) -> str:
        """Write it in words, the heaviest parts first."""
        if len(self.parts) == 1:
            return f"{'' if self.weights[0] > 0 else 'not '}{self.parts[0]}"
        named = zip(self.weights, map(str, self.parts), strict=True)
        order = sorted(named, key=lambda item: -abs(item[0]))
        listed = "; ".join(f"{weight:+.2f} {part}" for weight, part in order[:4])
        return f"a weighted sum over {len(order)} events above {self.threshold:.2f}: {listed}"


def bound(counts: tuple[int, int], runs: int, delta: float, miss: float) -> float:
    """Return a lower confidence bound of eps from two counts; `miss` is the chance to be wrong.

    Parameters
    ----------
    counts : (int, int)
        How often an event happened, first on the table where it is likelier.
    runs : int
        Of each table.
    delta, miss : float
    """
    first, second = counts
    low = float(betaincinv(first, runs - first + 1, miss / 2)) if first else 0.0
    high = float(betaincinv(second + 1, runs - second, 1 - miss / 2)) if second < runs else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def search(
    first: Sequence[Mapping[str, Seen]], second: Sequence[Mapping[str, Seen]], delta: float
) -> Event | None:
    """Find the event that tells the training runs of two tables apart best; None if all agree.

    There are as many of either table.
    """
    assert len(first) == len(second)
    parts = _elementary([*first, *second])
    if not parts:
        return None
    table = _held(parts, [*first, *second])
    labels = np.repeat([True, False], [len(first), len(second)])
    chosen, weights = _boosted(table, labels)
    cuts = np.unique(np.quantile(_sums(table[:, chosen], weights), np.linspace(0, 1, _THRESHOLDS)))
    best: tuple[float, Event | None] = (-math.inf, None)
    for columns, weighed, threshold in (
        *(([column], np.ones(1), 0.0) for column in range(len(parts))),
        *((chosen, weights, float(cut)) for cut in cuts),
    ):
        picked, sums = tuple(parts[column] for column in columns), _sums(table[:, columns], weighed)
        for sign in (1.0, -1.0):
            inside = sign * sums > sign * threshold
            proved, forth = _proved(inside, labels, delta)
            if proved > best[0]:
                turned = tuple(float(sign * weight) for weight in weighed)
                best = proved, Event(picked, turned, sign * threshold, forth)
    return best[1]


def _proved(inside: Bools, labels: Bools, delta: float) -> tuple[float, bool]:
    """Return what an event proves on the training runs, and whether the first table has it more."""
    counts = int((inside & labels).sum()), int((inside & ~labels).sum())
    forth, back = (bound(two, len(labels) // 2, delta, 0.1) for two in (counts, counts[::-1]))
    return max(forth, back), forth >= back


def _boosted(table: Bools, labels: Bools) -> tuple[list[int], Floats]:
    """Choose elementary events and weights by AdaBoost."""
    signs = np.where(labels, 1.0, -1.0)
    votes = np.where(table, 1.0, -1.0)
    mass = np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum())
    weights: dict[int, float] = {}
    for _ in range(_ROUNDS):
        edge = (mass * signs) @ votes
        column = int(np.argmax(np.abs(edge)))
        strength = min(abs(float(edge[column])), 1 - 1e-6)
        if strength < 1e-9:
            break
        weight = math.copysign(0.5 * math.log((1 + strength) / (1 - strength)), edge[column])
        weights[column] = weights.get(column, 0.0) + weight
        mass = mass * np.exp(-weight * signs * votes[:, column])
        mass /= mass.sum()
    return list(weights), np.array(list(weights.values()))


def _held(parts: Sequence[Elementary], runs: Sequence[Mapping[str, Seen]]) -> Bools:
    """Return which elementary event holds in which run, an array of shape (runs, parts)."""
    numbers = {name: _numbers(name, runs) for name in {part.name for part in parts}}
    table = np.empty((len(runs), len(parts)), dtype=bool)
    for column, part in enumerate(parts):
        if part.relation == "below":
            table[:, column] = numbers[part.name] <= float(part.value)
        else:
            table[:, column] = [seen.get(part.name, _NEVER) == part.value for seen in runs]
    return table


def _sums(held: Bools, weights: Sequence[float] | Floats) -> Floats:
    """Add the weights of the events that hold in a run, and take off those of the others."""
    return np.asarray(np.where(held, 1.0, -1.0) @ np.asarray(weights), dtype=np.float64)


def _numbers(name: str, runs: Sequence[Mapping[str, Seen]]) -> Floats:
    """Return an observable's numbers, NaN where it is a text or absent."""
    values = (seen.get(name) for seen in runs)
    return np.array([value if isinstance(value, float) else math.nan for value in values])


def _elementary(runs: Sequence[Mapping[str, Seen]]) -> list[Elementary]:
    """List the elementary events that some runs, but not all, show."""
    names = sorted({name for seen in runs for name in seen})
    parts: list[Elementary] = []
    for name in names:
        values = [seen.get(name, _NEVER) for seen in runs]
        counts = Counter(values)
        if len(counts) == 1:
            continue
        parts += [
            Elementary(name, "equals", value)
            for value, times in counts.items()
            if times >= _REPEATS
        ]
        numbers = np.sort(_numbers(name, runs))
        numbers = numbers[~np.isnan(numbers)]
        parts += [Elementary(name, "below", float(cut)) for cut in _cuts(numbers)]
    return parts


def _cuts(numbers: Floats) -> Floats:
    """Return thresholds for sorted numbers: quantiles, and ever rarer tails."""
    size = numbers.size
    tails = 2 ** np.arange(max(1, size.bit_length() - 2))
    middle = np.linspace(0, size - 1, _THRESHOLDS).astype(int)
    places = np.unique(np.concatenate([middle, tails - 1, size - 1 - tails]))
    return np.unique(numbers[places[(places >= 0) & (places < size)]])
