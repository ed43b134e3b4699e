"""From effects as a user states them to effects in stored units. Public facts only.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import Numeric
from dpreg.errors import ArgumentError, shown
from dpreg.formula.design import Design, build_design
from dpreg.looks.families import family_of
from dpreg.looks.model import Model
from dpreg.planning.detection import Effects
from dpreg.planning.facts import Facts
from dpreg.schema import Schema
from dpreg.selection.space import Space, build_space

__all__ = ["Stated", "stated"]

_LEAST: Final = 1e-60
_MOST: Final = 1e60
_UNIFORM: Final = 1 / 3  # by definition: variance of a column that is uniform on [-1, 1]


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """Effects as they will be printed, and as laws want them.

    Attributes
    ----------
    names : tuple of str
        Terms with an effect.
    beta, variance : float64 arrays, shape (p,)
        Of all stored columns without the constant: coefficients, and variances given the rest.
    units : tuple of tuples of int
        The columns of each term on offer, from 1; those with an effect first.
    sigma : float
        Residual standard deviation, in stored units.
    models : int
        Size of the space.
    widest : int
        Columns of the largest model, kept ones included.
    given : mapping of int to float
        Stated standard deviations given the others, in stored units, by column.
    labels : tuple of str
        The columns' names, p of them.
    places : tuple of int
        Of the stated effects among the columns, in the caller's order.
    scales : float64 array, shape (p,)
        Own units of the response over those of each column, for one of a stored coefficient.
    design : Design or None
        None where units are scaled.
    model : Model or None
        Of a family.
    """

    names: tuple[str, ...]
    beta: Floats
    variance: Floats
    units: tuple[tuple[int, ...], ...]
    sigma: float
    models: int
    widest: int
    given: Mapping[int, float]
    labels: tuple[str, ...]
    places: tuple[int, ...]
    scales: Floats
    design: Design | None = None
    model: Model | None = None

    def _each(self, values: Floats) -> list[Floats]:
        """Return the values of the columns of each term with an effect."""
        units = self.units[: len(self.names)]
        return [values[[j - 1 for j in unit]] for unit in units]

    @property
    def scaled(self) -> tuple[float, ...]:
        """|beta|_1 of each term in stored units (response divided by its scale and clip)."""
        return tuple(float(own.sum()) for own in self._each(np.abs(self.beta)))

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation given the rest, in stored units, the largest of a term."""
        return tuple(float(own.max()) for own in self._each(np.sqrt(self.variance)))

    @property
    def effects(self) -> Effects:
        """What the law of the paper's mechanism asks about."""
        widths = np.array([len(unit) for unit in self.units], dtype=np.int64)
        strength = [float(own.sum()) for own in self._each(self.beta**2 * self.variance)]
        count = len(self.names)
        return Effects(np.array(strength), widths[:count], widths[count:], self.sigma**2)

    @property
    def kappa(self) -> float:
        """Least variance of a free column, in stored units."""
        return float(min(self.variance[[j - 1 for unit in self.units for j in unit]]))

    @property
    def exclusive(self) -> tuple[tuple[int, ...], ...]:
        """The 0/1 columns of each factor that has several."""
        terms = () if self.design is None else self.design.terms
        return tuple(t.columns for t in terms if t.exclusive and len(t.columns) > 1)

    @property
    def columns(self) -> tuple[int, ...]:
        """The stored columns that have coefficients."""
        if self.model is None or self.design is None:
            return tuple(range(1, len(self.beta) + 1))
        return self.model.places(self.design)[0]

    def varying(self, deviations: Floats) -> Stated:
        """Return the same effects of columns that vary so, given the others."""
        return replace(self, variance=deviations**2)


def stated(facts: Facts) -> Stated:
    """State what a caller said, in the units of a formula or in scaled ones."""
    return _from_numbers(facts) if facts.formula is None else _from_formula(facts)


def _from_numbers(facts: Facts) -> Stated:
    """Take effects and sigma in scaled units: columns and response in [-1, 1]."""
    effects, sd, clip, most = (
        facts.effects,
        facts.sd,
        float(facts.request.clip),
        facts.request.max_terms,
    )
    total = len(effects) if facts.candidates is None else facts.candidates
    if total < len(effects):
        raise ArgumentError(f"candidates must be at least {len(effects)}, the number of effects.")
    _known(sd, effects, "sd")
    _room(most, len(effects))
    most = total if most is None else min(most, total)
    more = total - len(effects)
    variance = [sd[name] ** 2 if name in sd else _UNIFORM for name in effects]
    return Stated(
        names=tuple(effects),
        beta=np.array([value / clip for value in effects.values()] + [0.0] * more),
        variance=np.array([*variance, *[_UNIFORM] * more]),
        units=tuple((j + 1,) for j in range(total)),
        sigma=facts.sigma / clip,
        models=2**total if most == total else sum(math.comb(total, s) for s in range(most + 1)),
        widest=most + 1,
        given={place: sd[name] for place, name in enumerate(effects, 1) if name in sd},
        labels=(*effects, *(f"column {j + 1}" for j in range(len(effects), total))),
        places=tuple(range(len(effects))),
        scales=np.full(total, clip),
    )


def _designed(facts: Facts) -> tuple[Design, Model | None]:
    """Build the design, as the call that is planned would."""
    schema, formula = Schema.from_any(facts.schema), str(facts.formula)
    if facts.asked is None:
        told = facts.request
        design = build_design(formula, schema, keep=told.keep, clip=told.clip, center=told.center)
        return design, None
    known, model = facts.asked.model(formula, schema)
    design = model.design(known, facts.request.keep)
    model.check(design, (), facts.family, "plan" if facts.chooses else "plan_glm")
    family = family_of(facts.family, design.response.hi)
    if facts.mean >= family.cap:
        said = shown(facts.mean)
        raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {said}.")
    return design, model


def _from_formula(facts: Facts) -> Stated:
    """Take coefficients of design columns in their own units, and sigma in the response's."""
    (design, model), effects = _designed(facts), facts.effects
    names = tuple(column.name for column in design.columns)
    space = build_space(design.terms, names, keep=design.keep, max_terms=facts.request.max_terms)
    place = {name: j for j, name in enumerate(names) if j}
    place |= {term.name: term.columns[0] for term in design.terms if term.columns[1:] == ()}
    place.pop("Intercept", None)
    free = {j for columns in space.unit_columns for j in columns}
    _known(effects, [name for name in place if place[name] in free], "effects")
    _known(facts.sd, place, "sd")
    if len({place[name] for name in effects}) < len(effects):
        raise ArgumentError("effects names one column twice, by its term and by its own name.")
    widths = np.array([column.width for column in design.columns[1:]])
    response, beta = design.response.width, np.zeros(len(widths))
    for name, value in effects.items():
        beta[place[name] - 1] = value * widths[place[name] - 1] / response
    given = {place[name]: sd / widths[place[name] - 1] for name, sd in facts.sd.items()}
    variance = np.array([_variance(design, j, given) for j in range(1, len(names))])
    sizes = [*np.abs(beta[beta != 0]), facts.sigma / response, *(variance[j - 1] for j in free)]
    if not all(_LEAST <= size <= _MOST for size in sizes):
        raise ArgumentError(
            "effects, sigma or sd are out of all proportion to the bounds of the schema: in scaled "
            "units they must lie between 1e-60 and 1e60."
        )
    found, units = _effects_first(space, {place[name] for name in effects})
    _room(facts.request.max_terms, len(found))
    return Stated(
        names=found,
        beta=beta,
        variance=variance,
        units=units,
        sigma=facts.sigma / response,
        models=space.size,
        widest=len(names) if design.has_intercept else len(names) - 1,
        given=given,
        labels=names[1:],
        places=tuple(place[name] - 1 for name in effects),
        scales=response / widths,
        design=design,
        model=model,
    )


def _effects_first(
    space: Space, effects: set[int]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return the names of terms with an effect, and all terms' columns, theirs first."""
    both = list(zip(space.units, map(tuple, space.unit_columns), strict=True))
    found = [one for one in both if effects & set(one[1])]
    rest = [columns for _, columns in both if not effects & set(columns)]
    return tuple(name for name, _ in found), (*(columns for _, columns in found), *rest)


def _variance(design: Design, j: int, given: Mapping[int, float]) -> float:
    """Variance of a stored column: as given, or evenly spread over its bounds or levels."""
    column = design.columns[j]
    if j in given:
        return given[j] ** 2
    term = next(term for term in design.terms if j in term.columns)
    if len(term.columns) > 1 and term.exclusive:
        level = 1 / (len(term.columns) + 1)
        return level * (1 - level) * ((column.hi - column.lo) / column.width) ** 2
    declared = design.schema.get(term.factors[0]) if len(term.factors) == 1 else None
    spread = (column.hi - column.lo) / (2 * column.width)
    if declared is not None and not isinstance(declared, Numeric):
        return spread**2
    return spread**2 * _UNIFORM


def _room(max_terms: int | None, effects: int) -> None:
    if max_terms is not None and max_terms < effects:
        raise ArgumentError(
            f"max_terms={max_terms} leaves no room for {effects} terms with an effect: no model "
            "holds them all."
        )


def _known(given: Iterable[str], known: Iterable[str], name: str) -> None:
    listed = list(dict.fromkeys(known))
    unknown = [item for item in given if item not in listed]
    if unknown:
        raise ArgumentError(
            f"{name} names {', '.join(map(repr, unknown))}; the columns are {', '.join(listed)}."
        )
