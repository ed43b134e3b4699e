"""The arguments of a plan, checked: public facts and assumptions.

Tested in `tests/planning/test_planner.py` and `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dpreg import arguments
from dpreg.errors import ArgumentError, shown
from dpreg.looks.model import Asked
from dpreg.planning.arguments import chance_of, check_asked, rows_of_table, sized
from dpreg.privacy.budget import exact
from dpreg.privacy.mechanisms import MECHANISMS
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, inclusions, positive, truth

__all__ = ["Facts"]

_MOST_EFFECTS: Final = {"select": 12, "ols": 200}  # work
_MOST_CANDIDATES: Final = 1000  # work
_LEAST_CLIP: Final = Fraction(1, 10**6)  # precision
_METHODS: Final = {"select": ("auto", "adaptive", "pcls"), "ols": ("auto", "adaptive", "gram")}
_ALONE: Final = ("objective", "ssp", "adassp")
"""Methods of `dp_ols` that give coefficients alone."""
_PAPERS: Final[dict[str, Any]] = {
    "mechanism": "auto", "radius": None, "penalty": "auto", "sigma2": None,
}  # fmt: skip
_CHOICE: Final[dict[str, Any]] = {"keep": ("Intercept",), "fit": "auto", "max_terms": None}
_LINEAR: Final[dict[str, Any]] = {
    **_PAPERS, "sigma": None, "candidates": None, "clip": 1.0, "center": True,
}  # fmt: skip
_TARGET: Final[dict[str, Any]] = {
    "effects": None, "chance": 0.8, "false_inclusions": 0.1,  # by definition: as in `dpreg.plan`
}  # fmt: skip
_ROWS: Final[dict[str, Any]] = {"spread": None, "noise": None, "correlation": 0.0, "like": None}
_FAMILY: Final[dict[str, Any]] = dict.fromkeys(
    ("mean", "spread", "scatter", "response_cap", "noise")
)
_KNOWN: Final = dict.fromkeys(("offset", "exposure", "trials"))
"""Arguments that only `dpreg.plan_glm` has."""
_DEFAULTS: Final = {
    **(_CHOICE | _LINEAR | _TARGET | _ROWS | _FAMILY | _KNOWN),
    **{"of": "glm", "method": "auto"},
}
_REFUSED: Final = {
    ("select", False): (("a linear model", _FAMILY),),
    ("ols", False): (("a linear model", _FAMILY), ('of="ols"', _PAPERS | _CHOICE)),
    ("select", True): (
        ("a plan with family=", _LINEAR),
        ('of="select" with family=', _ROWS),
    ),
    ("glm", True): (("a plan with family=", _LINEAR), ('of="glm"', _TARGET | _CHOICE)),
}
"""Arguments that a plan has not, and their defaults."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a caller of a plan said; `asked` is of a family, None in a linear model.

    ``papers`` are the given arguments that only the paper's methods have: with one of them "auto"
    takes "pcls".
    """

    of: str
    effects: dict[str, float]
    sigma: float
    n: int | None
    eps: float | None
    delta: Fraction
    chance: float
    candidates: int | None
    formula: str | None
    schema: Any
    sd: dict[str, float]
    correlation: float
    like: Any
    method: str
    papers: tuple[str, ...]
    mechanism: str
    protection: Protection
    keep: tuple[str, ...]
    max_terms: int | None
    rho: Fraction
    clip: Fraction
    center: bool
    penalty: Fraction | str
    sigma2: Fraction | None
    false_inclusions: Fraction
    fit: str | None
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

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Facts:
        """Check every argument; errors say which to change, and how."""
        call = {**_DEFAULTS, **call}
        call["method"] = arguments.renamed_method(call["method"])
        family = call["family"] is not None
        of = str(choice(call["of"], "of", ("select", "glm") if family else tuple(_METHODS)))
        _check_given(call, of, family)
        check_asked(call["n"], call["eps"])
        clip = positive(call["clip"], "clip", Fraction(1))
        if clip < _LEAST_CLIP:
            raise ArgumentError(
                f"clip must be at least {float(_LEAST_CLIP):g} here; got {shown(call['clip'])}."
            )
        sigma2, spread = call["sigma2"], call["spread"]
        delta = exact(call["delta"], "delta")
        if not 0 <= delta < 1:
            raise ArgumentError(
                f"delta must be at least 0 and below 1; got {shown(call['delta'])}."
            )
        noise = choice(call["noise"], "noise", ("gaussian", "matrix-laplace", None))
        if noise == "gaussian" and not delta:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        method, papers = _method(call, of, family)
        counts = "binomial" if family and call["family"] == "binomial" else "counts"
        most = call["max_terms"]
        return cls(
            of=of,
            effects={} if of == "glm" else _named(call["effects"], of, family),
            sigma=1.0 if family else sized(call["sigma"], "sigma"),
            n=None if call["n"] is None else rows_of_table(call["n"]),
            eps=None if call["eps"] is None else sized(call["eps"], "eps"),
            delta=delta,
            chance=chance_of(call["chance"]),
            candidates=_candidates(call["candidates"]),
            formula=call["formula"],
            schema=call["schema"],
            sd=_deviations(call["sd"], call["like"]),
            correlation=_correlation(call["correlation"], call["like"]),
            like=call["like"],
            method=method,
            papers=papers,
            mechanism=_mechanism(call["mechanism"]),
            protection=Protection(
                choice(call["neighbors"], "neighbors", NEIGHBORS),
                _contributions(call["contributions"]),
            ),
            keep=_kept(call["keep"], call["formula"], family),
            max_terms=None if most is None else count(most, "max_terms", 0),
            rho=_radius(call["radius"], clip) / clip,
            clip=clip,
            center=truth(call["center"], "center"),
            penalty=_penalty(call["penalty"], sigma2),
            sigma2=None if sigma2 is None else Fraction(sized(sigma2, "sigma2")) / clip**2,
            false_inclusions=inclusions(call["false_inclusions"]),
            fit=call["fit"],
            noise=noise,
            asked=Asked.of(call) if family else None,
            mean=0.0 if call["mean"] is None else sized(call["mean"], "mean"),
            spread=_SPREAD[counts] if spread is None else sized(spread, "spread"),
            scatter=1.0 if call["scatter"] is None else sized(call["scatter"], "scatter"),
        )


_SPREAD: Final = {"binomial": 1.0, "counts": 0.5}
"""The predictor's standard deviation, where the caller names none: a supposition."""


def _check_given(call: Mapping[str, Any], of: str, family: bool) -> None:
    """Refuse what such a plan has not, and ask for what it needs."""
    for who, usual in _REFUSED[of, family]:
        given = ", ".join(name for name, value in usual.items() if _differs(call[name], value))
        if given and usual is _FAMILY:
            raise ArgumentError(
                f'{given} needs family=, such as family="binomial": a linear model has none.'
            )
        if given:
            raise ArgumentError(f"{who} has no {given}: leave it out.")
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
    _check_units(call["formula"], call["schema"], call["candidates"], call["like"])


def _differs(given: Any, usual: Any) -> bool:
    if usual is None or given is None:
        return given is not usual
    return bool(given != usual)


def _method(call: Mapping[str, Any], of: str, family: bool) -> tuple[str, tuple[str, ...]]:
    """Return the method that was asked for, and the paper's arguments that were given."""
    method, fit = call["method"], call["fit"]
    if family:
        choice(fit, "fit", ("auto", "same", "fresh", None))
        choice(method, "method", ("auto", "adaptive"))
        return "adaptive", ()
    choice(fit, "fit", ("auto", "same", "fresh", "split", "share", None))
    if of == "ols":
        if isinstance(method, str) and method in _ALONE:
            raise ArgumentError(
                f'method="{method}" gives no standard errors, and those are what is planned: '
                'plan method="auto".'
            )
        return str(choice(method, "method", _METHODS[of])), ()
    method = str(choice(method, "method", _METHODS[of]))
    papers = tuple(name for name, usual in _PAPERS.items() if call[name] != usual)
    if fit == "share":
        papers = (*papers, 'fit="share"')
    if method == "adaptive" and papers:
        raise ArgumentError(f'method="adaptive" has no {", ".join(papers)}: these are for "pcls".')
    if fit == "split" and method != "pcls" and not papers:
        raise ArgumentError('fit="split" is for "pcls": looks fit by "fresh". Plan one of these.')
    if method == "pcls" and fit in ("same", "fresh"):
        raise ArgumentError(f'fit="{fit}" needs method="adaptive".')
    return method, papers


def _check_units(formula: object, schema: object, candidates: object, like: object) -> None:
    if formula is None:
        if schema is not None:
            raise ArgumentError("schema needs a formula as well; without both, units are scaled.")
        if like is not None:
            raise ArgumentError("like needs a formula and a schema, which say what to read of it.")
    elif schema is None or candidates is not None:
        raise ArgumentError("with a formula give schema, and not candidates: the formula has them.")


def _named(effects: Any, of: str, family: bool) -> dict[str, float]:
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
    number = float(exact(correlation, "correlation"))
    if not 0 <= number < 1:
        raise ArgumentError(
            f"correlation must be at least 0 and below 1; got {shown(correlation)}."
        )
    if number and like is not None:
        raise ArgumentError("give correlation or like: the rows of like have their own.")
    return number


def _candidates(candidates: object) -> int | None:
    if candidates is None:
        return None
    number = count(candidates, "candidates")
    if number > _MOST_CANDIDATES:
        raise ArgumentError(
            f"candidates must be at most {_MOST_CANDIDATES:,}; got {shown(candidates)}."
        )
    return number


def _contributions(contributions: object) -> int:
    number = count(contributions, "contributions")
    sized(number, "contributions")
    return number


def _kept(keep: object, formula: str | None, family: bool) -> tuple[str, ...]:
    """Check `keep` as far as no formula is needed for it."""
    kept = arguments.names(keep, "keep")
    if formula is None and kept != ("Intercept",):
        raise ArgumentError("keep names terms of a formula: give formula and schema.")
    if family and "Intercept" not in kept:
        raise ArgumentError('with family= the intercept is in every model: keep "Intercept".')
    return kept


def _radius(radius: object, clip: Fraction) -> Fraction:
    if radius is None:
        return clip
    sized(radius, "radius")
    return positive(radius, "radius")


def _mechanism(mechanism: str) -> str:
    chosen = str(choice(mechanism, "mechanism", ("auto", *MECHANISMS)))
    return "permute-and-flip" if chosen == "auto" else chosen


def _penalty(given: Any, sigma2: Any) -> Fraction | str:
    checked = arguments.penalty(given)
    if checked == "bic" and sigma2 is None:
        raise ArgumentError('penalty="bic" needs sigma2.')
    if isinstance(checked, Fraction) and checked:
        sized(checked, "penalty")
    return checked
