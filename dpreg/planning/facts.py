"""The arguments of a plan, checked: public facts and assumptions.

Tested in `tests/planning/test_planner.py` and `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from dpreg import request as arguments
from dpreg.errors import ArgumentError, shown
from dpreg.looks.model import Asked
from dpreg.looks.plan import NOISES
from dpreg.privacy.budget import exact
from dpreg.privacy.protection import NOISES as ALL_NOISES
from dpreg.request import SelectionRequest, checked, checked_fields, choice, method_of, optional

_LARGEST: Final = 10**30
MOST_ROWS: Final = 10**18
_MOST_EFFECTS: Final = {"select": 12, "ols": 200}  # work
_MOST_CANDIDATES: Final = 1000  # work
_LEAST_CLIP: Final = Fraction(1, 10**6)  # precision
_METHODS: Final = {
    "select": ("auto", "adaptive", "pcls"),
    "ols": ("auto", "adaptive", "gram"),
    "family": ("auto", "adaptive"),
}
_PAPERS: Final = ("mechanism", "radius", "penalty", "sigma2")
_CHOICE: Final = ("keep", "fit", "max_terms")
_LINEAR: Final = (*_PAPERS, "sigma", "candidates", "clip", "center")
_TARGET: Final = ("effects", "chance", "false_inclusions")
_ROWS: Final = ("spread", "noise", "correlation", "like", "exposure", "trials")
_NEVER: Final[dict[str, Any]] = {
    "units": "term", "hierarchy": "none", "shares": None, "unsafe_seed": None, "person": None,
}  # fmt: skip
"""Arguments of `dpreg.dp_select` that no plan has."""


def sized(value: object, name: str, *, any_sign: bool = False) -> float:
    """Return a positive number, or 0 or one of any sign, whose products stay in float64.

    Its size lies between 1e-30 and 1e30.
    """
    number = exact(value, name) if any_sign else arguments.positive(value, name)
    if number and not 1 <= abs(number) * _LARGEST <= _LARGEST**2:
        raise ArgumentError(f"{name} must lie between 1e-30 and 1e30 in size; got {shown(value)}.")
    return float(number)


def _below_one(value: object, name: str, *, zero: bool) -> float:
    number = exact(value, name) if zero else arguments.positive(value, name)
    if not 0 <= number < 1 or not float(number) < 1:
        head = "be at least 0 and below 1" if zero else "lie between 0 and 1"
        raise ArgumentError(f"{name} must {head}; got {shown(value)}.")
    return float(number)


def _sized_or(value: object, name: str, none: float) -> float:
    return none if value is None else sized(value, name)


def _deviations(value: Any, name: str) -> dict[str, float]:
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must be a mapping of column names to standard deviations.")
    return {column: sized(sd, name) for column, sd in (value or {}).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a caller of a plan said; `asked` is of a family, None in a linear model.

    ``request`` is what `dpreg.dp_select` makes of the arguments that both have. The predictor's
    standard deviation, where the caller names none, is a supposition.
    """

    n: int | None = checked(optional, arguments.count, 2, MOST_ROWS)
    eps: float | None = checked(optional, sized)
    chance: float = checked(partial(_below_one, zero=False))
    candidates: int | None = checked(optional, arguments.count, 1, _MOST_CANDIDATES)
    sd: dict[str, float] = checked(_deviations)
    correlation: float = checked(partial(_below_one, zero=True))
    sigma: float = checked(_sized_or, 1.0)
    mean: float = checked(_sized_or, 0.0)
    scatter: float = checked(_sized_or, 1.0)
    spread: float
    of: str
    effects: dict[str, float]
    formula: str | None
    schema: Any
    like: Any
    method: str
    request: SelectionRequest
    noise: str | None
    asked: Asked | None

    @property
    def chooses(self) -> bool:
        """Whether terms are chosen."""
        return self.of == "select"

    @property
    def family(self) -> str:
        """The family's name; empty in a linear model."""
        return "" if self.asked is None else self.asked.family

    @classmethod
    def of_call(cls, call: Mapping[str, Any], usual: Mapping[str, Any]) -> Facts:
        """Check every argument; errors say which to change, and how.

        `usual` are the defaults of all arguments of `dpreg.plan`, and of all options.
        """
        call = {**usual, **call}
        family = call["family"] is not None
        of = str(choice(call["of"], "of", ("select", "glm") if family else ("select", "ols")))
        given = {name for name, value in call.items() if _differs(value, usual.get(name))}
        _check_given(call, of, family, given)
        named = method_of(call["method"], "method", _METHODS["family" if family else of])
        method = "adaptive" if family else named
        noises = NOISES if method == "adaptive" else ALL_NOISES if of == "ols" else ()
        noise, request = choice(call["noise"], "noise", (*noises, None)), _request(call, method, of)
        if family and "Intercept" not in request.keep:
            raise ArgumentError('with family= the intercept is in every model: keep "Intercept".')
        if noise == "gaussian" and not request.budget.delta:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        return cls(
            **checked_fields(cls, call),
            **{name: call[name] for name in ("formula", "schema", "like")},
            of=of,
            effects={} if of == "glm" else _named(call["effects"], of),
            spread=_sized_or(call["spread"], "spread", 1 if call["family"] == "binomial" else 0.5),
            method=method,
            request=request,
            noise=noise,
            asked=Asked.of(call) if family else None,
        )


def _request(call: Mapping[str, Any], method: str, of: str) -> SelectionRequest:
    """Check what a plan and `dpreg.dp_select` both have as the latter does, and its size."""
    _below_one(call["delta"], "delta", zero=True)
    told = {"formula": call["formula"] or "y ~ x", "method": method, "eps": 1}
    if of != "select":
        told |= {"method": "auto", "noise": None}
    request = SelectionRequest.of({**_NEVER, **call, **told})
    if request.draws > 1:
        raise ArgumentError("draws: a plan is of one draw.")
    if request.clip < _LEAST_CLIP:
        raise ArgumentError(f"clip must be at least 1e-06 here; got {shown(call['clip'])}.")
    for name in _PAPERS[1:]:
        if call[name] == "private":
            raise ArgumentError(f'a plan spends nothing: {name} must be a number, not "private".')
        if isinstance(value := getattr(request, name), Fraction):
            sized(value, name, any_sign=True)
    return request


def _check_given(call: Mapping[str, Any], of: str, family: bool, given: set[str]) -> None:
    """Refuse what such a plan has not, and ask for what it needs."""
    formula, like = (call[name] is not None for name in ("formula", "like"))
    refused = (
        ('of="ols"', of == "ols", _PAPERS + _CHOICE),
        ('of="glm"', of == "glm", _TARGET + _CHOICE),
        ('of="select" with family=', family and of == "select", _ROWS),
        ("a plan with family=", family, _LINEAR),
        ("a plan without family=", not family, ("mean", "spread", "scatter")),
        ("a plan with a formula", formula, ("candidates",)),
        ("a plan without a formula", not formula and not family, ("schema", "like", "keep")),
        ("a plan with like=", like, ("sd", "correlation")),
    )
    for kind, holds, names in refused:
        listed = ", ".join(name for name in names if name in given)
        if holds and listed:
            raise ArgumentError(f"{kind} has no {listed}: leave it out.")
    needed = {
        "effects": of != "glm",
        "sigma": not family,
        "formula": family,
        "schema": family or formula,
        "mean": family and not (like and of == "glm"),
    }
    for name, wanted in needed.items():
        if wanted and call[name] is None:
            raise ArgumentError(f"a plan with{'' if family else 'out'} family= needs {name}.")
    if family and of == "select" and not hasattr(call["effects"], "items"):
        raise ArgumentError("effects must be a mapping of columns to numbers.")
    if call["n"] is None and call["eps"] is None:
        raise ArgumentError("give n, eps or both: the one left out is what is found.")


def _differs(given: Any, usual: Any) -> bool:
    return given is not None if usual is None else bool(given != usual)


def _named(effects: Any, of: str) -> dict[str, float]:
    if isinstance(effects, Mapping) or hasattr(effects, "items"):  # or a Series
        named = {str(name): value for name, value in effects.items()}
    else:
        several = isinstance(effects, Iterable) and not isinstance(effects, str)
        values = list(effects) if several else [effects]
        named = {f"x{i}": value for i, value in enumerate(values, 1)}
    if not 1 <= len(named) <= _MOST_EFFECTS[of]:
        raise ArgumentError(f"effects must hold 1 to {_MOST_EFFECTS[of]} coefficients.")
    numbers = {name: sized(value, "effects", any_sign=True) for name, value in named.items()}
    if of == "select" and not all(numbers.values()):
        raise ArgumentError("an effect of zero is not an effect: count it among the candidates.")
    return numbers
