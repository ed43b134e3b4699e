"""Checks of single arguments, shared by all public calls. Tested in `tests/test_request.py`.

Each returns the value as an exact one, or raises an ArgumentError that names the argument, what it
got, and what to change.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from dpreg.errors import ArgumentError, quotable, shown
from dpreg.privacy.budget import Budget, exact
from dpreg.ranges import LEAST_DELTA, LEAST_EPS, MOST_EPS, MOST_ROWS

__all__ = [
    "budget_of",
    "choice",
    "column",
    "count",
    "inclusions",
    "names",
    "owned",
    "penalty",
    "positive",
    "text",
    "truth",
]

_LEAST_INCLUSIONS: Final = Fraction("1e-200")
_LONGEST_TERM: Final = 80


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
