"""Checks of single arguments, shared by all public calls. Tested in `tests/test_request.py`.

Each returns the value as an exact one, or raises an ArgumentError that names the argument, what it
got, and what to change.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from dpreg.errors import (
    ArgumentError,
    UnknownArgument,
    did_you_mean,
    printable,
    quotable,
    shown,
)
from dpreg.options import grouped
from dpreg.privacy.budget import Budget, decimal_string, exact, settled
from dpreg.ranges import LEAST_DELTA, LEAST_EPS, MOST_EPS, MOST_ROWS
from dpreg.running import warn

__all__ = [
    "budget_of",
    "choice",
    "column",
    "count",
    "inclusions",
    "known_alone",
    "names",
    "owned",
    "penalty",
    "positive",
    "refuse_unknown",
    "renamed_method",
    "settle_budget",
    "text",
    "truth",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "epsilon": ("eps",),
    "seed": ("unsafe_seed", "seed"),
    "random_state": ("unsafe_seed", "seed"),
    "rng": ("unsafe_seed", "seed"),
    "df": ("data",),
    "id": ("person",),
    "ledger": ("budget",),
    "groupby": ("by",),
    "quantiles": ("q",),
    "subset": ("where",),
    "query": ("where",),
    "filter": ("where",),
    "vcov": ("cov_type",),
    "lower": ("bounds",),
    "upper": ("bounds",),
}
"""Other libraries' names of arguments, and those that stand for them here."""
_NO_ROW_ERRORS: Final = (
    "standard errors of another kind are sums over the rows' residuals, which are not released; "
    "those that are count sampling and the noise"
)
_NOT_HERE: Final[Mapping[str, str]] = {
    "weights": "all rows count alike here; dp_ols takes weights",
    "offset": "dp_ols, and dp_glm and dp_select with a family, take an offset",
    "alpha": "levels of intervals are chosen when they are read, as in conf_int(alpha=0.05)",
    "missing": "a row with a missing value is left out",
    "cov_type": _NO_ROW_ERRORS,
    "cov_kwds": _NO_ROW_ERRORS,
    "vcov": _NO_ROW_ERRORS,
    "robust": _NO_ROW_ERRORS,
    "cluster": _NO_ROW_ERRORS,
}
"""Arguments that calls do not have, and why."""

_LEAST_INCLUSIONS: Final = Fraction("1e-200")
_LONGEST_TERM: Final = 80


def refuse_unknown(call: str, known: Collection[str], given: Iterable[str]) -> None:
    """Raise UnknownArgument for a name that a call lacks, saying which was meant; see no value."""
    for name in given:
        if name in known:
            continue
        head = f"{call}() has no argument {shown(printable(name))}"
        meant = [one for one in _MEANT.get(name, ()) if one in known]
        if meant:
            seeded = "; results with it can be repeated and are not private"
            raise UnknownArgument(
                f"{head}; did you mean {meant[0]!r}?{seeded if meant[0] == 'unsafe_seed' else ''}"
            )
        why = _NOT_HERE.get(name)
        raise UnknownArgument(f"{head}: {why}." if why else head + did_you_mean(name, known))


def known_alone(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a public call that no account is charged for: arguments that it lacks are refused."""
    known = inspect.signature(call).parameters

    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        grouped(call.__name__, kwargs)
        refuse_unknown(call.__name__, known, kwargs)
        return call(*args, **kwargs)

    return wrapped


def settle_budget(arguments: MutableMapping[str, Any]) -> tuple[str, ...]:
    """Put for an eps and a delta of arithmetic what they stand for, and return notes that say so.

    What stands there afterwards is used, charged, claimed and recorded.
    """
    notes = []
    for name in ("eps", "delta"):
        value = arguments.get(name)
        taken = settled(value)
        if taken is not value and isinstance(taken, Decimal):
            arguments[name] = taken
            notes.append(
                f"{name} had more digits than anybody types, as sums and quotients do: "
                f"{decimal_string(Fraction(taken))} was taken, charged and claimed. Text is taken "
                "to its last digit."
            )
    return tuple(notes)


def text(value: object, name: str) -> str:
    """Return `value` if it is a string, else raise ArgumentError."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string; got {type(value).__name__}.")
    return value


def truth(value: object, name: str) -> bool:
    """Return `value` if it is True or False, else raise ArgumentError."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False.")
    return value


def choice(value: object, name: str, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `allowed`, else raise ArgumentError listing them."""
    if isinstance(value, str | None) and value in allowed:
        return value
    listed = ", ".join(repr(item) for item in allowed)
    raise ArgumentError(f"{name} must be one of {listed}; got {shown(value)}.")


def count(value: object, name: str, least: int = 1) -> int:
    """Return `value` if it is an integer of at least `least`, else raise ArgumentError."""
    number = exact(value, name)
    if number.denominator != 1 or number < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {shown(value)}.")
    return int(number)


def positive(value: object, name: str, most: Fraction | None = None) -> Fraction:
    """Return `value` exactly if it lies in (0, most], else raise ArgumentError."""
    number = exact(value, name)
    if number <= 0 or (most is not None and number > most):
        upper = "" if most is None else f" and at most {most}"
        raise ArgumentError(f"{name} must be above 0{upper}; got {shown(value)}.")
    return number


def budget_of(eps: object, delta: object) -> Budget:
    """Return what a call may cost; reject what lies beyond `dpreg.ranges`."""
    whole, part = positive(eps, "eps"), exact(delta, "delta")
    if not LEAST_EPS <= whole <= MOST_EPS:
        raise ArgumentError(
            f"eps must lie between 1e-6 and 1e6; got {shown(eps)}. Less buys nothing but noise, "
            "and more promises nothing."
        )
    if 0 < part < LEAST_DELTA:
        raise ArgumentError(
            f"delta must be 0, or at least 1e-300; got {shown(delta)}. Leave it out for a promise "
            "without one."
        )
    return Budget(whole, delta)  # type: ignore[arg-type]


def owned(value: object) -> int:
    """Return `contributions`, the most rows that one person may own, if it is plausible."""
    number = count(value, "contributions")
    if number > MOST_ROWS:
        raise ArgumentError(
            f"contributions must be at most {MOST_ROWS:,}; got {shown(value)}. Let person= name a "
            "column of ids, and use fewer rows of each."
        )
    return number


def inclusions(value: object) -> Fraction:
    """Return an expected number of useless terms that a penalty can be computed for."""
    number = positive(value, "false_inclusions")
    if number < _LEAST_INCLUSIONS:
        raise ArgumentError("false_inclusions must be at least 1e-200: less is never seen.")
    return number


def column(person: object) -> str | None:
    """Return the name of the column that says whose a row is, or None."""
    if person is not None and not isinstance(person, str):
        raise ArgumentError(
            f"person must be the name of the column of ids; got {type(person).__name__}."
        )
    return person


def penalty(value: object) -> Fraction | str:
    """Return a penalty: "auto", "bic", or a number of at least 0."""
    if isinstance(value, str) and value in ("auto", "bic"):
        return value
    try:
        number = exact(value, "penalty")
    except ArgumentError:
        raise ArgumentError(
            f'penalty must be "auto", "bic" or a finite number; got {shown(value)}.'
        ) from None
    if number < 0:
        raise ArgumentError(f"penalty must be at least 0; got {shown(value)}.")
    return number


def names(value: object, name: str) -> tuple[str, ...]:
    """Return term names as a tuple, else raise ArgumentError."""
    if isinstance(value, str):
        one = value if quotable(value) and len(value) <= _LONGEST_TERM else "x"
        raise ArgumentError(f'{name} must be a tuple of term names, such as ("{one}",).')
    if not isinstance(value, Iterable):
        raise ArgumentError(f"{name} must hold term names (strings); got {type(value).__name__}.")
    listed = tuple(value)
    if not all(isinstance(item, str) for item in listed):
        raise ArgumentError(f"{name} must hold term names (strings).")
    return listed


def renamed_method(method: object) -> object:
    """Return a method by today's name, with a warning where it is one of dpreg 0.2."""
    if method != "staged":
        return method
    warn('method="staged" is now method="adaptive".')
    return "adaptive"
