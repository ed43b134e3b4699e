"""The arguments of a plan, checked: public facts and assumptions.

Tested in `tests/planning/test_planner.py` and `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dpreg import request as arguments
from dpreg.errors import ArgumentError, shown
from dpreg.looks.model import Asked
from dpreg.looks.plan import NOISES
from dpreg.privacy.budget import exact
from dpreg.privacy.protection import NOISES as ALL_NOISES
from dpreg.request import SelectionRequest, choice

_LARGEST: Final = 10**30
_MOST_ROWS: Final = 10**18
_MOST_EFFECTS: Final = {"select": 12, "ols": 200}  # work
_MOST_CANDIDATES: Final = 1000  # work
_LEAST_CLIP: Final = Fraction(1, 10**6)  # precision
_METHODS: Final = {"select": ("auto", "adaptive", "pcls"), "ols": ("auto", "adaptive", "gram")}
_PAPERS: Final = ("mechanism", "radius", "penalty", "sigma2")
_CHOICE: Final = ("keep", "fit", "max_terms")
_LINEAR: Final = (*_PAPERS, "sigma", "candidates", "clip", "center")
_TARGET: Final = ("effects", "chance", "false_inclusions")
_ROWS: Final = ("spread", "noise", "correlation", "like", "exposure", "trials")
_FAMILY: Final = ("mean", "spread", "scatter")
_REFUSED: Final = {
    ("select", False): (("a linear model", _FAMILY),),
    ("ols", False): (("a linear model", _FAMILY), ('of="ols"', _PAPERS + _CHOICE)),
    ("select", True): (("a plan with family=", _LINEAR), ('of="select" with family=', _ROWS)),
    ("glm", True): (("a plan with family=", _LINEAR), ('of="glm"', _TARGET + _CHOICE)),
}
"""Arguments that a plan has not, by what it is of and whether it has a family."""
_SPREAD: Final = {"binomial": 1.0, "counts": 0.5}
"""The predictor's standard deviation, where the caller names none: a supposition."""


def sized(value: object, name: str, *, signed: bool = False) -> float:
    """Return a number whose size lies between 1e-30 and 1e30, positive unless `signed`."""
    number = exact(value, name) if signed else arguments.positive(value, name)
    if not 1 <= abs(number) * _LARGEST <= _LARGEST**2:
        raise ArgumentError(f"{name} must lie between 1e-30 and 1e30 in size; got {shown(value)}.")
    return float(number)


def rows_of_table(n: object) -> int:
    """Return a number of rows, at least 2."""
    rows = arguments.count(n, "n", 2)
    if rows > _MOST_ROWS:
        raise ArgumentError(f"n must be at most {_MOST_ROWS:.0e}.")
    return rows


def _part(value: object, name: str) -> float:
    if not 0 <= (number := exact(value, name)) < 1:
        raise ArgumentError(f"{name} must be at least 0 and below 1; got {shown(value)}.")
    return float(number)


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a caller of a plan said; `asked` is of a family, None in a linear model.

    ``request`` is what `dpreg.dp_select` makes of the arguments that both have; ``papers`` are the
    given ones that only the paper's methods have: with one of them "auto" takes "pcls".
    """

    of: str
    effects: dict[str, float]
    sigma: float
    n: int | None
    eps: float | None
    chance: float
    candidates: int | None
    formula: str | None
    schema: Any
    sd: dict[str, float]
    correlation: float
    like: Any
    method: str
    papers: tuple[str, ...]
    request: SelectionRequest
    noise: str | None
    asked: Asked | None
    mean: float
    spread: float
    scatter: float

    @property
    def chooses(self) -> bool:
        """Whether terms are chosen."""
        return self.of == "select"

    @property
    def family(self) -> str:
        """The family's name; empty in a linear model."""
        return "" if self.asked is None else self.asked.family

    @property
    def mechanism(self) -> str:
        """Of the paper's method."""
        named = self.request.mechanism
        return "permute-and-flip" if named == "auto" else named

    @property
    def sigma2(self) -> Fraction | None:
        """The residual variance that was told, in stored units."""
        told = self.request.sigma2
        return told / self.request.clip**2 if isinstance(told, Fraction) else None

    @classmethod
    def of_call(cls, call: Mapping[str, Any], usual: Mapping[str, Any]) -> Facts:
        """Check every argument; errors say which to change, and how.

        `usual` are the defaults of all arguments of `dpreg.plan`, and of all options.
        """
        call = {**usual, **call}
        call["method"] = arguments.renamed_method(call["method"])
        family = call["family"] is not None
        of = str(choice(call["of"], "of", ("select", "glm") if family else tuple(_METHODS)))
        given = {name for name, value in call.items() if _differs(value, usual.get(name))}
        _check_given(call, of, family, given)
        if call["n"] is None and call["eps"] is None:
            raise ArgumentError("give n, eps or both: the one left out is what is found.")
        method = _method(call, of, family)
        request = _request(call, method, of)
        shared = ('fit="share"',) if request.fit == "share" else ()
        papers = (*(name for name in _PAPERS if name in given), *shared)
        if call["formula"] is None and request.keep != ("Intercept",):
            raise ArgumentError("keep names terms of a formula: give formula and schema.")
        if family and "Intercept" not in request.keep:
            raise ArgumentError('with family= the intercept is in every model: keep "Intercept".')
        noises: tuple[str, ...] = NOISES if method == "adaptive" else ()
        noises = ALL_NOISES if of == "ols" and method != "adaptive" else noises
        noise = choice(call["noise"], "noise", (*noises, None))
        if noise == "gaussian" and not request.budget.delta:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        spread = _SPREAD["binomial" if call["family"] == "binomial" else "counts"]

        def size(name: str, none: float = 1.0) -> float:
            return none if call[name] is None else sized(call[name], name)

        return cls(
            of=of,
            effects={} if of == "glm" else _named(call["effects"], of),
            sigma=1.0 if family else size("sigma"),
            n=None if call["n"] is None else rows_of_table(call["n"]),
            eps=None if call["eps"] is None else sized(call["eps"], "eps"),
            chance=_chance(call["chance"]),
            candidates=_candidates(call["candidates"]),
            formula=call["formula"],
            schema=call["schema"],
            sd=_deviations(call["sd"], call["like"]),
            correlation=_correlation(call["correlation"], call["like"]),
            like=call["like"],
            method=method,
            papers=papers,
            request=request,
            noise=noise,
            asked=Asked.of(call) if family else None,
            mean=size("mean", 0.0),
            spread=size("spread", spread),
            scatter=size("scatter"),
        )


def _request(call: Mapping[str, Any], method: str, of: str) -> SelectionRequest:
    """Check what a plan and `dpreg.dp_select` both have as the latter does, and its size."""
    sized(call["contributions"], "contributions")
    _part(call["delta"], "delta")
    formula = "y ~ x" if call["formula"] is None else call["formula"]
    told = {"formula": formula, "method": method if of == "select" else "auto", "eps": 1}
    if of != "select":
        told["noise"] = None
    request = SelectionRequest.of({**_USUAL, **call, **told})
    if request.draws > 1:
        raise ArgumentError("draws: a plan is of one draw.")
    if request.clip < _LEAST_CLIP:
        least = float(_LEAST_CLIP)
        raise ArgumentError(f"clip must be at least {least:g} here; got {shown(call['clip'])}.")
    for name in _PAPERS[1:]:
        if call[name] == "private":
            raise ArgumentError(f'a plan spends nothing: {name} must be a number, not "private".')
        if isinstance(value := getattr(request, name), Fraction) and value:
            sized(value, name, signed=True)
    return request


_USUAL: Final[dict[str, Any]] = {
    "units": "term", "hierarchy": "none", "shares": None, "unsafe_seed": None, "person": None,
}  # fmt: skip
"""Arguments of `dpreg.dp_select` that no plan has."""


def _check_given(call: Mapping[str, Any], of: str, family: bool, given: set[str]) -> None:
    """Refuse what such a plan has not, and ask for what it needs."""
    for who, refused in _REFUSED[of, family]:
        listed = ", ".join(name for name in refused if name in given)
        if listed and refused is _FAMILY:
            raise ArgumentError(
                f'{listed} needs family=, such as family="binomial": a linear model has none.'
            )
        if listed:
            raise ArgumentError(f"{who} has no {listed}: leave it out.")
    needed = ("effects", "sigma")
    if family:
        told = of == "glm" and call["like"] is not None
        needed = ("formula", "schema", *(() if told else ("mean",)))
    for name in needed:
        if call[name] is None and family:
            raise ArgumentError(f"a plan with family= needs {name}.")
        if call[name] is None:
            raise ArgumentError(f"{name} is required, except with family=.")
    if family and of == "select" and not hasattr(call["effects"], "items"):
        raise ArgumentError(
            "effects, the coefficients to be found, are required: a mapping of columns to numbers."
        )
    if call["formula"] is not None:
        if call["schema"] is None or call["candidates"] is not None:
            raise ArgumentError(
                "with a formula give schema, and not candidates: the formula has them."
            )
    elif call["schema"] is not None:
        raise ArgumentError("schema needs a formula as well; without both, units are scaled.")
    elif call["like"] is not None:
        raise ArgumentError("like needs a formula and a schema, which say what to read of it.")


def _differs(given: Any, usual: Any) -> bool:
    if usual is None or given is None:
        return given is not usual
    return bool(given != usual)


def _method(call: Mapping[str, Any], of: str, family: bool) -> str:
    """Return the method that was asked for."""
    method = call["method"]
    if family:
        choice(call["fit"], "fit", ("auto", "same", "fresh", None))
        choice(method, "method", ("auto", "adaptive"))
        return "adaptive"
    if of == "ols" and isinstance(method, str) and method in ("objective", "ssp", "adassp"):
        raise ArgumentError(
            f'method="{method}" gives no standard errors, and those are what is planned: plan '
            'method="auto".'
        )
    return str(choice(method, "method", _METHODS[of]))


def _named(effects: Any, of: str) -> dict[str, float]:
    if isinstance(effects, Mapping) or hasattr(effects, "items"):  # or a Series
        named = {str(name): value for name, value in effects.items()}
    else:
        several = isinstance(effects, Iterable) and not isinstance(effects, str)
        values = list(effects) if several else [effects]
        named = {f"x{i}": value for i, value in enumerate(values, 1)}
    if not 1 <= len(named) <= _MOST_EFFECTS[of]:
        raise ArgumentError(f"effects must hold 1 to {_MOST_EFFECTS[of]} coefficients.")
    numbers = {name: exact(value, "effects") for name, value in named.items()}
    if of == "select" and not all(numbers.values()):
        raise ArgumentError("an effect of zero is not an effect: count it among the candidates.")
    return {
        name: sized(value, "effects", signed=True) if numbers[name] else 0.0
        for name, value in named.items()
    }


def _deviations(sd: Any, like: object) -> dict[str, float]:
    if sd is not None and not isinstance(sd, Mapping):
        raise ArgumentError("sd must be a mapping of column names to standard deviations.")
    if sd and like is not None:
        raise ArgumentError("give sd or like: the rows of like have their own deviations.")
    return {name: sized(value, "sd") for name, value in (sd or {}).items()}


def _correlation(correlation: object, like: object) -> float:
    number = _part(correlation, "correlation")
    if number and like is not None:
        raise ArgumentError("give correlation or like: the rows of like have their own.")
    return number


def _chance(chance: object) -> float:
    if not (number := float(arguments.positive(chance, "chance"))) < 1:
        raise ArgumentError(f"chance must lie between 0 and 1; got {shown(chance)}.")
    return number


def _candidates(candidates: object) -> int | None:
    if candidates is None:
        return None
    number = arguments.count(candidates, "candidates")
    if number > _MOST_CANDIDATES:
        raise ArgumentError(
            f"candidates must be at most {_MOST_CANDIDATES:,}; got {shown(candidates)}."
        )
    return number
