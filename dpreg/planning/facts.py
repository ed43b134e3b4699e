"""The arguments of a plan, checked: public facts and assumptions.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dpreg import arguments
from dpreg.errors import ArgumentError, shown
from dpreg.planning.arguments import chance_of, check_asked, rows_of_table, sized
from dpreg.privacy.budget import exact
from dpreg.privacy.mechanisms import MECHANISMS
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, inclusions, positive, truth

__all__ = ["Facts"]

_MOST_EFFECTS: Final = {"select": 12, "ols": 200}
_MOST_CANDIDATES: Final = 1000
_LEAST_CLIP: Final = Fraction(1, 10**6)
_METHODS: Final = {"select": ("auto", "adaptive", "pcls"), "ols": ("auto", "adaptive", "gram")}
_ALONE: Final = ("objective", "ssp", "adassp")
"""Methods of `dp_ols` that give coefficients alone."""
_SELECTING: Final[Mapping[str, Any]] = {
    "keep": ("Intercept",),
    "mechanism": "auto",
    "radius": None,
    "penalty": "auto",
    "sigma2": None,
    "fit": "auto",
    "max_terms": None,
}
"""Arguments that only a selection has, and their defaults."""
_PAPERS: Final = ("mechanism", "radius", "penalty", "sigma2")


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a caller of `dpreg.plan` said.

    ``papers`` are the given arguments that only the paper's methods have: with one of them "auto"
    takes "pcls".
    """

    effects: dict[str, float]
    sigma: float
    n: int | None
    eps: float | None
    delta: Fraction
    of: str
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

    @classmethod
    def of_call(cls, call: Mapping[str, Any]) -> Facts:
        """Check every argument; errors say which to change, and how."""
        of = str(choice(call["of"], "of", tuple(_METHODS)))
        n, eps = call["n"], call["eps"]
        chance = chance_of(call["chance"])
        check_asked(n, eps)
        clip = positive(call["clip"], "clip", Fraction(1))
        if clip < _LEAST_CLIP:
            raise ArgumentError(
                f"clip must be at least {float(_LEAST_CLIP):g} here; got {shown(call['clip'])}."
            )
        formula, candidates, max_terms = call["formula"], call["candidates"], call["max_terms"]
        _check_units(formula, call["schema"], candidates, call["like"])
        call = {**call, "method": arguments.renamed_method(call["method"])}
        method, papers = _method(call, of)
        sigma2 = call["sigma2"]
        return cls(
            effects=_named(call["effects"], of),
            sigma=sized(call["sigma"], "sigma"),
            n=None if n is None else rows_of_table(n),
            eps=None if eps is None else sized(eps, "eps"),
            delta=_delta(call["delta"]),
            of=of,
            chance=chance,
            candidates=None if candidates is None else _candidates(candidates),
            formula=formula,
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
            keep=_kept(call["keep"], formula) if of == "select" else ("Intercept",),
            max_terms=None if max_terms is None else count(max_terms, "max_terms", 0),
            rho=_radius(call["radius"], clip) / clip,
            clip=clip,
            center=truth(call["center"], "center"),
            penalty=_penalty(call["penalty"], sigma2),
            sigma2=None if sigma2 is None else Fraction(sized(sigma2, "sigma2")) / clip**2,
            false_inclusions=inclusions(call["false_inclusions"]),
            fit=choice(call["fit"], "fit", ("auto", "same", "fresh", "split", "share", None)),
        )


def _method(call: Mapping[str, Any], of: str) -> tuple[str, tuple[str, ...]]:
    """Return the method that was asked for, and the paper's arguments that were given."""
    if of == "ols" and isinstance(call["method"], str) and call["method"] in _ALONE:
        raise ArgumentError(
            f'method="{call["method"]}" gives no standard errors, and those are what is planned: '
            'plan method="auto".'
        )
    method = str(choice(call["method"], "method", _METHODS[of]))
    given = [name for name, usual in _SELECTING.items() if call[name] != usual]
    if of == "ols":
        if given:
            raise ArgumentError(f'of="ols" has no {", ".join(given)}: only a selection has.')
        return method, ()
    papers = tuple(name for name in given if name in _PAPERS)
    if call["fit"] == "share":
        papers = (*papers, 'fit="share"')
    if method == "adaptive" and papers:
        raise ArgumentError(f'method="adaptive" has no {", ".join(papers)}: these are for "pcls".')
    if call["fit"] == "split" and method != "pcls" and not papers:
        raise ArgumentError('fit="split" is for "pcls": looks fit by "fresh". Plan one of these.')
    if method == "pcls" and call["fit"] in ("same", "fresh"):
        raise ArgumentError(f'fit="{call["fit"]}" needs method="adaptive".')
    return method, papers


def _check_units(formula: object, schema: object, candidates: object, like: object) -> None:
    if formula is None:
        if schema is not None:
            raise ArgumentError("schema needs a formula as well; without both, units are scaled.")
        if like is not None:
            raise ArgumentError("like needs a formula and a schema, which say what to read of it.")
    elif schema is None or candidates is not None:
        raise ArgumentError("with a formula give schema, and not candidates: the formula has them.")


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


def _delta(delta: object) -> Fraction:
    number = exact(delta, "delta")
    if not 0 <= number < 1:
        raise ArgumentError(f"delta must be at least 0 and below 1; got {shown(delta)}.")
    return number


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


def _candidates(candidates: object) -> int:
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


def _kept(keep: object, formula: str | None) -> tuple[str, ...]:
    """Check `keep` as far as no formula is needed for it."""
    kept = arguments.names(keep, "keep")
    if formula is None and kept != ("Intercept",):
        raise ArgumentError("keep names terms of a formula: give formula and schema.")
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
