"""`plan`: what a private selection would find, before any data are touched.

Effects become stored units (`sizes`), the mechanism's law predicts what is drawn (`detection`),
and the paper's theorems are shown alongside (`theorems`). Nothing here reads rows or spends budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from dpreg import arguments
from dpreg.errors import ArgumentError
from dpreg.planning.arguments import rows_of_table, sized
from dpreg.planning.results import Call, Plan
from dpreg.planning.sizes import Stated, from_formula, from_numbers
from dpreg.privacy.budget import exact
from dpreg.privacy.mechanisms import MECHANISMS
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, inclusions, positive

__all__ = ["plan"]

_MOST_EFFECTS: Final = 12
_MOST_CANDIDATES: Final = 1000
_MOST_ROWS: Final = 10**12
_MOST_EPS: Final = 10.0**6
_LEAST_CLIP: Final = Fraction(1, 10**6)


def plan(
    effects: Any,
    *,
    sigma: float,
    n: int | None = None,
    eps: Any = None,
    chance: float = 0.8,
    candidates: int | None = None,
    formula: str | None = None,
    schema: Any = None,
    sd: Mapping[str, float] | None = None,
    mechanism: str = "auto",
    neighbors: str = "replace-one",
    contributions: int = 1,
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    radius: Any = None,
    clip: Any = 1.0,
    center: bool = True,
    penalty: Any = "auto",
    sigma2: Any = None,
    false_inclusions: Any = 0.1,
    fit: str | None = "split",
) -> Plan:
    """Predict what `dpreg.dp_select` would find. Uses no data, spends nothing.

    Give `n` and `eps` for the chance of finding the effects; give one of them for the least other
    one at which all of them are found with chance `chance`.

    Parameters
    ----------
    effects : mapping, number or sequence of numbers
        Coefficients by column. With `formula` and `schema`: of design columns, in their own units
        (``{"bsqft": 0.12, "county[T.cc]": 70}``; a term of one column may be named as it is).
        Without: in scaled units, columns and response in [-1, 1], by any names.
    sigma : float
        Standard deviation of the errors, in the units of the response (scaled units without a
        formula).
    n : int, optional
        Rows of the table.
    eps : number, optional
        The most that the whole call may cost.
    chance : float
        Wanted where n or eps is to be found.
    candidates : int, optional
        Terms outside `keep`, those with an effect included, where no formula is given, at most
        1,000; default: those with an effect alone.
    formula, schema : optional
        As for `dpreg.dp_select`: units, scales and the number of candidates come from them.
    sd : mapping, optional
        Standard deviation of a column **given the other columns**, in the column's units. Default:
        as if uniform between its bounds, or evenly spread over its levels.
    mechanism, neighbors, contributions, keep, max_terms, radius, clip, center, penalty, sigma2, \
false_inclusions, fit
        As for `dpreg.dp_select`. The default ``fit="split"`` selects with half of the rows.

    Returns
    -------
    Plan
        Printable; ``.found``, ``.each``, ``.n``, ``.eps``, ``.plot()``.

    Raises
    ------
    ArgumentError
        For a bad argument, or where no n or eps reaches `chance`.

    Notes
    -----
    Assumed (`dpreg.planning.detection`): a linear model with normal errors; columns uncorrelated,
    or `sd` given the rest; nothing clipped; the radius does not bind. Against simulation the
    predicted chances are within five points.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> dpreg.plan({"dose": 0.2, "age": 0.1}, sigma=0.25, eps=1, candidates=10, chance=0.9).n
    27752
    """
    wanted = float(positive(chance, "chance"))
    if not wanted < 1:
        raise ArgumentError(f"chance must lie between 0 and 1; got {chance!r}.")
    if not isinstance(center, bool):
        raise ArgumentError("center must be True or False.")
    if sd is not None and not isinstance(sd, Mapping):
        raise ArgumentError("sd must be a mapping of column names to standard deviations.")
    if n is None and eps is None:
        raise ArgumentError("give n, eps or both: the other one is what is planned.")
    whole = positive(clip, "clip", Fraction(1))
    if whole < _LEAST_CLIP:
        raise ArgumentError(f"clip must be at least {float(_LEAST_CLIP):g} here; got {clip!r}.")
    spread = sized(sigma, "sigma")
    named = _named(effects)
    deviations = {name: sized(value, "sd") for name, value in (sd or {}).items()}
    stated = _stated(
        named,
        spread,
        formula,
        schema,
        deviations,
        candidates=None if candidates is None else _candidates(candidates),
        keep=_kept(keep, formula),
        clip=whole,
        center=center,
        max_terms=None if max_terms is None else count(max_terms, "max_terms", 0),
    )
    call = Call(
        stated=stated,
        n=0 if n is None else rows_of_table(n),
        eps=0.0 if eps is None else sized(eps, "eps"),
        chance=wanted,
        mechanism=_mechanism(mechanism),
        protection=Protection(
            choice(neighbors, "neighbors", NEIGHBORS), _contributions(contributions)
        ),
        rho=_radius(radius, whole) / whole,
        clip=whole,
        penalty=_penalty(penalty, sigma2),
        sigma2=None if sigma2 is None else Fraction(sized(sigma2, "sigma2")) / whole**2,
        false_inclusions=inclusions(false_inclusions),
        fit=choice(fit, "fit", ("split", "share", None)),
    )
    solved = None
    if n is None:
        call, solved = replace(call, n=_least_rows(call)), "n"
    elif eps is None:
        call, solved = replace(call, eps=_least_eps(call)), "eps"
    return Plan(call, solved, call.predict())


def _named(effects: Any) -> dict[str, float]:
    if isinstance(effects, Mapping) or hasattr(effects, "items"):  # or a Series
        named = {str(name): value for name, value in effects.items()}
    else:
        several = isinstance(effects, Iterable) and not isinstance(effects, str)
        values = list(effects) if several else [effects]
        named = {f"x{i}": value for i, value in enumerate(values, 1)}
    if not 1 <= len(named) <= _MOST_EFFECTS:
        raise ArgumentError(f"effects must hold 1 to {_MOST_EFFECTS} coefficients.")
    if not all(exact(value, "effects") for value in named.values()):
        raise ArgumentError("an effect of zero is none: count it among the candidates.")
    return {name: sized(value, "effects", signed=True) for name, value in named.items()}


def _candidates(candidates: object) -> int:
    number = count(candidates, "candidates")
    if number > _MOST_CANDIDATES:
        raise ArgumentError(f"candidates must be at most {_MOST_CANDIDATES:,}; got {candidates!r}.")
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


def _stated(
    effects: dict[str, float],
    sigma: float,
    formula: str | None,
    schema: Any,
    sd: dict[str, float],
    *,
    candidates: int | None,
    keep: Iterable[str],
    clip: Fraction,
    center: bool,
    max_terms: int | None,
) -> Stated:
    if formula is None:
        if schema is not None:
            raise ArgumentError("schema needs a formula as well; without both, units are scaled.")
        return from_numbers(
            effects, sigma, candidates=candidates, sd=sd, clip=clip, max_terms=max_terms
        )
    if schema is None or candidates is not None:
        raise ArgumentError("with a formula give schema, and not candidates: the formula has them.")
    return from_formula(
        effects,
        sigma,
        formula,
        schema,
        keep=keep,
        sd=sd,
        clip=clip,
        center=center,
        max_terms=max_terms,
    )


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


def _least_rows(call: Call) -> int:
    def reached(rows: float) -> bool:
        return replace(call, n=round(rows)).predict().all >= call.chance

    low, high = _bracket(reached, 8.0, float(_MOST_ROWS), "n", call)
    while high - low > max(1.0, 5e-4 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return math.ceil(high)


def _least_eps(call: Call) -> float:
    def reached(eps: float) -> bool:
        return replace(call, eps=eps).predict().all >= call.chance

    low, high = _bracket(reached, 1e-4, _MOST_EPS, "eps", call)
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    step = 10.0 ** (math.floor(math.log10(high)) - 3)
    return float(f"{math.ceil(high / step) * step:.4g}")  # four digits, upwards


def _bracket(
    reached: Callable[[float], bool], first: float, last: float, name: str, call: Call
) -> tuple[float, float]:
    """Double until the chance is reached; between the last two values it is first reached."""
    high = first
    while not reached(high):
        high *= 2
        if high > last:
            other = "eps" if name == "n" else "n"
            raise ArgumentError(
                f"no {name} up to {last:.0e} finds all effects with chance {call.chance:g}: raise "
                f"{other} or lower the penalty."
            )
    return high / 2, high
