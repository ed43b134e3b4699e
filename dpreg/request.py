"""The frozen request: every public choice of one call, checked once, that travels the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.sensitivity import NEIGHBORS

__all__ = ["SHARES", "SelectionRequest", "choice", "count", "inclusions", "names", "positive"]

METHODS: Final = ("pcls", "pcpl")
MECHANISMS: Final = ("auto", "permute-and-flip", "exponential", "laplace")
UNITS: Final = ("term", "column")
HIERARCHIES: Final = ("none", "strong")
FITS: Final = ("split", "share", None)
ENGINES: Final = ("auto", "enumerate", "tree")
_LEAST_INCLUSIONS: Final = Fraction("1e-200")
SHARES: Final[Mapping[str, Fraction]] = {
    "bounds": Fraction(1, 10),
    "radius": Fraction(1, 10),
    "sigma2": Fraction(1, 20),
    "count": Fraction(1, 50),
    "profile": Fraction(3, 20),
    "fit": Fraction(1, 2),
}
"""Steps that `shares` may name, and the part of eps that each takes when it is needed.

"bounds", "radius", "sigma2" and "count" are parts of the whole eps; "fit" (of ``fit="share"``) is a
part of what these leave, "profile" (PCPL's bound on the residuals) of what is left to select with.

Chosen by ``python -m benchmarks.shares`` on randhie, King County and simulated Bay Area rows:
a radius share of .1 finds the right end of the grid or its neighbour with probability .97 to .98
(.05: .74 to .80); a profile share of .15 gives .90 to 1.00 of the best rate (.1: .64, .2: .86 at
worst); a sigma2 share of .05 has a relative error of .004 to .16. Bounds of ten columns would need
about half of eps at 20,000 rows: .1 is for 100,000 rows or few undeclared columns, and the warning
says so.
"""


def choice(value: object, name: str, allowed: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `allowed`, else raise ArgumentError listing them."""
    if isinstance(value, str | None) and value in allowed:
        return value
    listed = ", ".join(repr(item) for item in allowed)
    raise ArgumentError(f"{name} must be one of {listed}; got {value!r}.")


def count(value: object, name: str, least: int = 1) -> int:
    """Return `value` if it is an integer of at least `least`, else raise ArgumentError."""
    number = exact(value, name)
    if number.denominator != 1 or number < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}; got {value!r}.")
    return int(number)


def positive(value: object, name: str, most: Fraction | None = None) -> Fraction:
    """Return `value` exactly if it lies in (0, most], else raise ArgumentError."""
    number = exact(value, name)
    if number <= 0 or (most is not None and number > most):
        upper = "" if most is None else f" and at most {most}"
        raise ArgumentError(f"{name} must be above 0{upper}; got {value!r}.")
    return number


def inclusions(value: object) -> Fraction:
    """Return an expected number of useless terms that a penalty can be computed for."""
    number = positive(value, "false_inclusions")
    if number < _LEAST_INCLUSIONS:
        raise ArgumentError("false_inclusions must be at least 1e-200: less is never seen.")
    return number


def names(value: object, name: str) -> tuple[str, ...]:
    """Return term names as a tuple, else raise ArgumentError."""
    if isinstance(value, str):
        raise ArgumentError(f'{name} must be a tuple of term names, such as ("{value}",).')
    if not isinstance(value, Iterable):
        raise ArgumentError(f"{name} must hold term names (strings); got {type(value).__name__}.")
    listed = tuple(value)
    if not all(isinstance(item, str) for item in listed):
        raise ArgumentError(f"{name} must hold term names (strings).")
    return listed


@dataclass(frozen=True, slots=True)
class SelectionRequest:
    """Everything that a caller of `dpreg.dp_select` chose, as exact values.

    ``radius`` is None for "private"; ``penalty`` is "auto", "bic" or a number; ``sigma2`` is None,
    "private" or a number; ``seed`` is None unless privacy was given up by ``unsafe_seed``.
    """

    formula: str
    budget: Budget
    method: str
    mechanism: str
    neighbors: str
    contributions: int
    units: str
    keep: tuple[str, ...]
    max_terms: int | None
    hierarchy: str
    radius: Fraction | None
    radius_source: str
    clip: Fraction
    center: bool
    penalty: Fraction | str
    sigma2: Fraction | str | None
    false_inclusions: Fraction
    shares: Mapping[str, Fraction]
    draws: int
    fit: str | None
    engine: str
    seed: int | None

    @classmethod
    def checked(
        cls,
        formula: str,
        eps: object,
        *,
        delta: object,
        method: object,
        mechanism: object,
        neighbors: object,
        contributions: object,
        units: object,
        keep: Iterable[str],
        max_terms: object,
        hierarchy: object,
        radius: object,
        clip: object,
        center: object,
        penalty: object,
        sigma2: object,
        false_inclusions: object,
        shares: Mapping[str, object] | None,
        draws: object,
        fit: object,
        engine: object,
        unsafe_seed: object,
    ) -> SelectionRequest:
        """Check every argument and return the request; errors name the argument and the mend."""
        if not isinstance(formula, str):
            raise ArgumentError(f"formula must be a string; got {type(formula).__name__}.")
        if not isinstance(center, bool):
            raise ArgumentError("center must be True or False.")
        budget = Budget(positive(eps, "eps"), exact(delta, "delta"))
        whole = positive(clip, "clip", Fraction(1))
        request = cls(
            formula=formula,
            budget=budget,
            method=choice(method, "method", METHODS),
            mechanism=choice(mechanism, "mechanism", MECHANISMS),
            neighbors=choice(neighbors, "neighbors", NEIGHBORS),
            contributions=count(contributions, "contributions"),
            units=choice(units, "units", UNITS),
            keep=names(keep, "keep"),
            max_terms=None if max_terms is None else count(max_terms, "max_terms", 0),
            hierarchy=choice(hierarchy, "hierarchy", HIERARCHIES),
            radius=_radius(radius, whole),
            radius_source={None: "default", "private": "private"}.get(
                radius if isinstance(radius, str | None) else "", "given"
            ),
            clip=whole,
            center=center,
            penalty=_penalty(penalty),
            sigma2=_sigma2(sigma2),
            false_inclusions=inclusions(false_inclusions),
            shares=_shares(shares),
            draws=count(draws, "draws"),
            fit=choice(fit, "fit", FITS),
            engine=choice(engine, "engine", ENGINES),
            seed=None if unsafe_seed is None else count(unsafe_seed, "unsafe_seed", 0),
        )
        _check_together(request)
        return request

    @property
    def needs_count(self) -> bool:
        """Whether a noisy number of rows must be bought: n is private and something uses it."""
        uses_rows = self.method == "pcpl" or (
            isinstance(self.sigma2, Fraction) and self.penalty in ("auto", "bic")
        )
        return self.neighbors == "add-remove" and uses_rows and self.sigma2 != "private"

    @property
    def rho(self) -> Fraction:
        """The radius in stored units, R / c; only where the radius is a number."""
        if self.radius is None:
            raise ArgumentError("the radius is estimated privately and not known yet.")
        return self.radius / self.clip


def _check_together(request: SelectionRequest) -> None:
    if request.method == "pcpl" and request.budget.delta == 0:
        raise ArgumentError('method="pcpl" needs delta above 0, such as delta=1e-6.')
    rows_cross_halves = request.contributions > 1 and request.neighbors == "add-remove"
    if request.method == "pcpl" and request.fit == "split" and rows_cross_halves:
        raise ArgumentError(
            'method="pcpl" with fit="split" is not proved under neighbors="add-remove" with '
            'contributions above 1: use fit="share", fit=None or method="pcls".'
        )
    if request.penalty == "bic" and request.sigma2 is None:
        raise ArgumentError('penalty="bic" needs sigma2, a number or "private".')


def _radius(radius: object, clip: Fraction) -> Fraction | None:
    if radius is None:
        return clip
    if isinstance(radius, str) and radius == "private":
        return None
    number = positive(radius, "radius")
    if not Fraction(1, 2**64) <= number / clip <= 2**64:
        raise ArgumentError("radius must lie between 2**-64 and 2**64 times clip.")
    return number


def _penalty(penalty: object) -> Fraction | str:
    if isinstance(penalty, str) and penalty in ("auto", "bic"):
        return penalty
    try:
        number = exact(penalty, "penalty")
    except ArgumentError:
        raise ArgumentError(
            f'penalty must be "auto", "bic" or a finite number; got {penalty!r}.'
        ) from None
    if number < 0:
        raise ArgumentError(f"penalty must be at least 0; got {penalty!r}.")
    return number


def _sigma2(sigma2: object) -> Fraction | str | None:
    if sigma2 is None or (isinstance(sigma2, str) and sigma2 == "private"):
        return sigma2
    return positive(sigma2, "sigma2")


def _shares(shares: Mapping[str, object] | None) -> Mapping[str, Fraction]:
    checked = {}
    for step, share in (shares or {}).items():
        if step not in SHARES:
            raise ArgumentError(f"shares may name {', '.join(SHARES)}; got {step!r}.")
        checked[step] = positive(share, f"shares[{step!r}]")
    if sum(checked.values()) >= 1:
        raise ArgumentError("shares must add up to less than 1: the selection needs the rest.")
    return checked
