"""Frozen requests: every public choice of one call, checked once and passed down the pipeline.

Checks of single arguments, shared by all public calls.

Each returns the value as an exact one, or raises an ArgumentError that names the argument, what it
got, and what to change.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Final, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np

from dpreg.columns import LEAST_DELTA, LEAST_EPS, MOST_EPS, MOST_ROWS
from dpreg.errors import ArgumentError, UnknownArgument, did_you_mean, printable, quotable, shown
from dpreg.options import grouped, unpacked
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget, decimal_string, exact, settled
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.running import warn

Arguments: TypeAlias = Mapping[str, Any]
"""All arguments of a call, by name."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MEANT: Final[Mapping[str, tuple[str, ...]]] = {
    "eps": ("epsilon",),
    "unsafe_seed": ("seed", "random_state", "rng"),
    "seed": ("random_state", "rng"),
    "data": ("df",),
    "person": ("id",),
    "budget": ("ledger",),
    "by": ("groupby",),
    "q": ("quantiles",),
    "where": ("subset", "query", "filter"),
    "cov_type": ("vcov",),
    "bounds": ("lower", "upper"),
}
"""Arguments, and other libraries' names of them."""
_NOT_HERE: Final[Mapping[str, str]] = {
    "weights": "all rows count alike here; dp_ols takes weights",
    "offset": "dp_ols, and dp_glm and dp_select with a family, take an offset",
    "alpha": "levels of intervals are chosen when they are read, as in conf_int(alpha=0.05)",
    "missing": "a row with a missing value is left out",
    **dict.fromkeys(
        ("cov_type", "cov_kwds", "vcov", "robust", "cluster"),
        "standard errors of another kind are sums over the rows' residuals, which are not "
        "released; those that are count sampling and the noise",
    ),
}
"""Arguments that calls do not have, and why."""

_LEAST_INCLUSIONS: Final = Fraction("1e-200")
_LONGEST_TERM: Final = 80


def _unknown(call: str, known: Collection[str], name: str) -> UnknownArgument:
    """Say that a call lacks an argument, and which was meant or why there is none."""
    head = f"{call}() has no argument {shown(printable(name))}"
    if meant := [one for one, names in _MEANT.items() if one in known and name in names]:
        seeded = "; results with it can be repeated and are not private"
        return UnknownArgument(
            f"{head}; did you mean {meant[0]!r}?{seeded if meant[0] == 'unsafe_seed' else ''}"
        )
    why = _NOT_HERE.get(name)
    return UnknownArgument(f"{head}: {why}." if why else head + did_you_mean(name, known))


def defaults_of(signature: inspect.Signature) -> dict[str, Any]:
    """Return the defaults of a call's arguments."""
    named = signature.parameters.items()
    return {name: one.default for name, one in named if one.default is not one.empty}


def declared(
    run: Callable[[str, dict[str, Any], dict[str, Any]], Any],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a public call of its signature and page, and refuse what it lacks, seeing no value.

    `run` gets the call's name, what it was given, by name, and the defaults of all arguments.
    """

    def made(call: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(call)
        known, defaults = signature.parameters, defaults_of(signature)

        @wraps(call)
        def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            grouped(call.__name__, kwargs, defaults)
            for name in kwargs:
                if name not in known:
                    raise _unknown(call.__name__, known, name)
            call(*args, **kwargs)  # does nothing: Python names by it what is missing
            given = signature.bind_partial(*args, **kwargs).arguments
            result: _R = run(call.__name__, dict(given), defaults)
            return result

        return wrapped

    return made


def answered_by(
    answer: Callable[[Arguments], Any],
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a public call that no account is charged for; `answer` gets all arguments by name."""
    return declared(lambda _, given, defaults: answer(defaults | given))


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


def formula_text(value: object, name: str) -> str:
    """Return a formula as text, be it an R formula of rpy2's, which may call no function of R."""
    if type(value).__name__ == "Formula" and type(value).__module__.startswith("rpy2."):
        value = re.sub(r"\^(?= ?\d)", "**", " ".join(str(value).split()))
        if re.search(r"[\w.]\(|[%|]", value):
            raise ArgumentError(
                f"{name} calls functions of R: write it as text with Python's, such as "
                '"np.log(y) ~ C(g) + I(x ** 2)".'
            )
    return text(value, name)


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


def count(value: object, name: str, least: int = 1, most: int | None = None, mend: str = "") -> int:
    """Return `value` if it is an integer between two others, else raise ArgumentError."""
    number = exact(value, name)
    if number.denominator != 1 or number < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {shown(value)}.")
    if most is not None and number > most:
        raise ArgumentError(f"{name} must be at most {most:,}; got {shown(value)}.{mend}")
    return int(number)


def optional(value: object, name: str, check: Callable[..., Any], *rest: Any) -> Any:
    """Return None for None, and anything else as `check` does."""
    return None if value is None else check(value, name, *rest)


def positive(value: object, name: str, most: Fraction | None = None) -> Fraction:
    """Return `value` exactly if it lies in (0, most], else raise ArgumentError."""
    number = exact(value, name)
    if number <= 0 or (most is not None and number > most):
        upper = "" if most is None else f" and at most {most}"
        raise ArgumentError(f"{name} must be above 0{upper}; got {shown(value)}.")
    return number


def budget_of(eps: object, delta: object) -> Budget:
    """Return what a call may cost; reject what lies beyond `dpreg.columns`."""
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


def inclusions(value: object, name: str = "false_inclusions") -> Fraction:
    """Return an expected number of useless terms that a penalty can be computed for."""
    number = positive(value, name)
    if number < _LEAST_INCLUSIONS:
        raise ArgumentError("false_inclusions must be at least 1e-200: less is never seen.")
    return number


def penalty(value: object, name: str = "penalty") -> Fraction | str:
    """Return a penalty: "auto", "bic", or a number of at least 0."""
    if isinstance(value, str) and value in ("auto", "bic"):
        return value
    try:
        number = exact(value, name)
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


def method_of(value: object, name: str, allowed: tuple[str, ...]) -> str:
    """Return a method if it is one of `allowed`; warn where it has a name of dpreg 0.2."""
    if value == "staged":
        warn('method="staged" is now method="adaptive".')
        value = "adaptive"
    return str(choice(value, name, allowed))


SHARES: Final[Mapping[str, Fraction]] = {
    "bounds": Fraction(1, 10),
    "radius": Fraction(1, 10),
    "sigma2": Fraction(1, 20),
    "count": Fraction(1, 50),
    "profile": Fraction(3, 20),
    "fit": Fraction(1, 2),
}
"""Steps that `shares` may name, and the part of eps that each takes when it is needed.

"bounds", "radius", "sigma2" and "count" are parts of the whole eps; "fit" (of ``fit="share"``, and
of ``fit="fresh"``, which unless told otherwise takes .2, or .15 for a linear model without delta)
is a part of what these leave, "profile" (PCPL's bound on the residuals) of what is left to select
with.

Chosen by ``python -m benchmarks.shares`` on randhie, King County and simulated Bay Area rows:
a radius share of .1 finds the right end of the grid or its neighbour with probability .97 to .98
(.05: .74 to .80); a profile share of .15 gives .90 to 1.00 of the best rate (.1: .64, .2: .86 at
worst); a sigma2 share of .05 has a relative error of .004 to .16. Bounds of ten columns would need
about half of eps at 20,000 rows: .1 is for 100,000 rows or few undeclared columns, and the warning
says so.
"""


def _bought_or(value: object, name: str) -> Fraction | str | None:
    """Return None, "private" for what the budget buys, or a positive number."""
    bought = isinstance(value, str) and value == "private"
    return "private" if bought else optional(value, name, positive)


def shares_of(
    value: object, name: str, steps: Collection[str], rest: str
) -> Mapping[str, Fraction]:
    """Return each step's share of eps; the steps are the call's, and `rest` takes what is left."""
    if not isinstance(value, Mapping | None):
        raise ArgumentError(
            'shares must be a mapping of steps to parts of eps, such as {"bounds": 0.2}; got '
            f"{type(value).__name__}."
        )
    checked = {}
    for step, share in (value or {}).items():
        if step not in steps:
            raise ArgumentError(f"shares may name {', '.join(steps)}; got {shown(step)}.")
        checked[step] = positive(share, f"shares[{step!r}]")
    if sum(checked.values()) >= 1:
        raise ArgumentError(f"shares must add up to less than 1: the {rest} needs the rest.")
    return checked


def checked(check: Callable[..., Any], *rest: Any) -> Any:
    """Make a field of a request that is the argument of its name, as `check` returns it."""
    return field(metadata={"check": lambda value, name: check(value, name, *rest)})


def checked_fields(kind: type[Any], call: Arguments) -> dict[str, Any]:
    """Return the fields of a dataclass that are arguments of a call, each as its check returns it.

    See `checked`.
    """
    checks = {one.name: one.metadata["check"] for one in fields(kind) if "check" in one.metadata}
    return {name: check(call[name], name) for name, check in checks.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What every public call lets its caller choose, as exact values.

    A request is made from the arguments of the call that it belongs to, by their names, and the
    options of its method and family.

    Attributes
    ----------
    budget : Budget
        The most that the whole call may cost.
    protection : Protection
    seed : int or None
        None unless privacy was given up by ``unsafe_seed``.
    """

    budget: Budget
    protection: Protection
    seed: int | None

    @classmethod
    def of(cls, call: Arguments) -> Self:
        """Check every argument; errors name the argument and say how to put it right."""
        call = unpacked({"delta": 0, **call})
        budget = budget_of(call["eps"], call["delta"])
        relation = choice(call["neighbors"], "neighbors", NEIGHBORS)
        seed, rows, person = call["unsafe_seed"], call["contributions"], call.get("person")
        fewer = " Let person= name a column of ids, and use fewer rows of each."
        own = 1 if rows is None else count(rows, "contributions", 1, MOST_ROWS, fewer)
        if person is not None and not isinstance(person, str):
            raise ArgumentError(
                f"person must be the name of the column of ids; got {type(person).__name__}."
            )
        told = {
            "budget": budget,
            "protection": Protection(relation, own, person, rows is not None),
            "seed": optional(seed, "unsafe_seed", count, 0),
        }
        request = cls(**cls.settled(told | checked_fields(cls, call), call))
        if getattr(request, "noise", None) == "gaussian" and budget.delta == 0:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        return request

    @classmethod
    def settled(cls, told: dict[str, Any], call: Arguments) -> dict[str, Any]:
        """Return all fields, those too that depend on several arguments."""
        return told

    def account(self) -> Account:
        """Open the call's account; with a seed, what it draws is **not private**."""
        rng = None if self.seed is None else np.random.default_rng(self.seed)
        return Account(self.protection, self.budget, rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaRequest(Request):
    """What a call of a formula lets its caller choose, and what `remarks` tell a reader of it."""

    formula: str = checked(formula_text)
    shares: Mapping[str, Fraction] = checked(shares_of, ("bounds",), "fit")
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRequest(FormulaRequest):
    """Everything that a caller of `dpreg.dp_select` chose, as exact values.

    ``radius`` is None for "private"; ``penalty`` is "auto", "bic" or a number; ``sigma2`` is None,
    "private" or a number; ``fit`` is "auto" only where the method is.
    """

    method: str = checked(method_of, ("auto", "adaptive", "pcls", "pcpl"))
    mechanism: str = checked(choice, ("auto", "permute-and-flip", "exponential", "laplace"))
    units: str = checked(choice, ("term", "column"))
    keep: tuple[str, ...] = checked(names)
    max_terms: int | None = checked(optional, count, 0)
    hierarchy: str = checked(choice, ("none", "strong"))
    clip: Fraction = checked(positive, Fraction(1))
    center: bool = checked(truth)
    penalty: Fraction | str = checked(penalty)
    sigma2: Fraction | str | None = checked(_bought_or)
    false_inclusions: Fraction = checked(inclusions)
    shares: Mapping[str, Fraction] = checked(shares_of, SHARES, "selection")
    draws: int = checked(count)
    fit: str | None = checked(choice, ("auto", "same", "fresh", "split", "share", None))
    engine: str = checked(choice, ("auto", "enumerate", "tree"))
    radius: Fraction | None = checked(_bought_or)
    radius_source: str

    @classmethod
    def settled(cls, told: dict[str, Any], call: Arguments) -> dict[str, Any]:
        """Settle the radius by the clip, and the way of fitting by the method."""
        if call.get("noise") is not None:
            raise ArgumentError("noise: a selection takes the one with the least error itself.")
        radius, clip = told["radius"], told["clip"]
        told["radius_source"] = {None: "default", "private": "private"}.get(radius, "given")
        told["radius"] = {None: clip, "private": None}.get(radius, radius)
        if told["radius"] and not Fraction(1, 2**64) <= told["radius"] / clip <= 2**64:
            raise ArgumentError("radius must lie between 2**-64 and 2**64 times clip.")
        if told["fit"] == "auto" != told["method"]:
            told["fit"] = "fresh" if told["method"] == "adaptive" else "split"
        return told

    def __post_init__(self) -> None:
        """Refuse arguments that do not go together."""
        looks, papers = self.method == "adaptive", self.method in ("pcls", "pcpl")
        if looks and self.papers:
            raise ArgumentError(
                f'method="adaptive" has no {", ".join(self.papers)}: leave out what belongs to '
                '"pcls" and "pcpl", or name one of these.'
            )
        if looks and self.fit == "share":
            raise ArgumentError(
                'fit="share" belongs to "pcls" and "pcpl": with method="adaptive" use fit="fresh", '
                'one more look at the chosen columns, "same" or None.'
            )
        if self.fit == "split" and not papers and not self.papers:
            raise ArgumentError(
                'fit="split" belongs to "pcls" and "pcpl": looks fit the chosen terms by '
                'fit="fresh", further looks at all rows. Use that; a linear model may name one of '
                "these methods."
            )
        if papers and self.fit in ("same", "fresh"):
            raise ArgumentError(
                f'fit="{self.fit}" needs method="adaptive": use fit="split", "share" or None.'
            )
        if self.method == "pcpl" and self.budget.delta == 0:
            raise ArgumentError('method="pcpl" needs delta above 0, such as delta=1e-6.')
        protection = self.protection
        rows_cross_halves = (
            protection.contributions > 1
            and protection.neighbors == "add-remove"
            and protection.person is None
        )
        if self.method == "pcpl" and self.fit == "split" and rows_cross_halves:
            raise ArgumentError(
                'method="pcpl" with fit="split" is not proved under neighbors="add-remove" with '
                "contributions above 1, unless person= keeps a person's rows together: use "
                'fit="share", fit=None or method="pcls".'
            )
        if self.penalty == "bic" and self.sigma2 is None:
            raise ArgumentError('penalty="bic" needs sigma2, a number or "private".')

    def as_pcls(self) -> Self:
        """Return what PCLS answers for "auto": it fits in the nearest way that it has."""
        nearest = {"auto": "split", "same": "split", "fresh": "share"}
        return replace(self, method="pcls", fit=nearest.get(self.fit or "", self.fit))

    @property
    def papers(self) -> tuple[str, ...]:
        """The given shares that only the paper's methods have."""
        both = ("bounds", "fit") if self.fit == "fresh" else ("bounds",)
        return tuple(f"shares[{step!r}]" for step in self.shares if step not in both)

    @property
    def needs_count(self) -> bool:
        """Whether a noisy number of rows must be bought: n is private and something uses it."""
        uses_rows = self.method == "pcpl" or (
            isinstance(self.sigma2, Fraction) and self.penalty in ("auto", "bic")
        )
        return not self.protection.n_is_public and uses_rows and self.sigma2 != "private"

    @property
    def known_sigma2(self) -> Fraction | None:
        """The residual variance in stored units, where it is a number."""
        return self.sigma2 / self.clip**2 if isinstance(self.sigma2, Fraction) else None

    @property
    def rho(self) -> Fraction:
        """The radius in stored units, R / c; only where the radius is a number."""
        if self.radius is None:
            raise ArgumentError("the radius is estimated privately and not known yet.")
        return self.radius / self.clip
