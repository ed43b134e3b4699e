"""From effects as a user states them to effects in stored units. Public facts only.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design, build_design
from dpreg.planning.detection import Effects
from dpreg.schema import Numeric, Schema
from dpreg.selection.space import build_space

__all__ = ["Stated", "column_variance", "from_formula", "from_numbers"]

_LEAST: Final = 1e-60
_MOST: Final = 1e60
_UNIFORM: Final = 1 / 3
"""Variance of a column that is uniform on [-1, 1]."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Effects as they will be printed, and as the law wants them.

    Attributes
    ----------
    names : tuple of str
        Terms with an effect.
    scaled : tuple of float
        |beta|_1 of each term in stored units (response divided by its scale and clip).
    deviations : tuple of float
        Standard deviation of the columns given the rest, in stored units (the largest of a term).
    effects : Effects
    models : int
        Size of the space.
    widest : int
        Columns of the largest model, kept ones included.
    kappa : float
        Least variance of a free column, in stored units.
    beta : float64 array, shape (p,)
        Coefficients of all stored columns without the constant.
    units : tuple of tuples of int
        The columns of each term on offer, from 1; those with an effect first.
    given : mapping of int to float
        Stated standard deviations given the others, in stored units, by column.
    labels : tuple of str
        The columns' names, p of them.
    scales : float64 array, shape (p,)
        Own units of the response over those of each column, for one of a stored coefficient.
    design : Design or None
        None where units are scaled.
    """

    names: tuple[str, ...]
    scaled: tuple[float, ...]
    deviations: tuple[float, ...]
    effects: Effects
    models: int
    widest: int
    kappa: float
    beta: Floats
    units: tuple[tuple[int, ...], ...]
    given: Mapping[int, float]
    labels: tuple[str, ...]
    scales: Floats
    design: Design | None

    @property
    def sigma(self) -> float:
        """Residual standard deviation, in stored units."""
        return math.sqrt(self.effects.sigma2)

    @property
    def exclusive(self) -> tuple[tuple[int, ...], ...]:
        """The 0/1 columns of each factor that has several."""
        terms = () if self.design is None else self.design.terms
        return tuple(t.columns for t in terms if t.exclusive and len(t.columns) > 1)


def from_numbers(
    effects: Mapping[str, float],
    sigma: float,
    *,
    candidates: int | None,
    sd: Mapping[str, float],
    clip: Fraction,
    max_terms: int | None,
) -> Stated:
    """Take effects and sigma in scaled units: columns and response in [-1, 1]."""
    total = len(effects) if candidates is None else candidates
    if total < len(effects):
        raise ArgumentError(f"candidates must be at least {len(effects)}, the number of effects.")
    _known(sd, effects, "sd")
    _room(max_terms, len(effects))
    most = total if max_terms is None else min(max_terms, total)
    variance = {name: sd[name] ** 2 if name in sd else _UNIFORM for name in effects}
    beta = {name: value / float(clip) for name, value in effects.items()}
    return Stated(
        names=tuple(effects),
        scaled=tuple(abs(beta[name]) for name in effects),
        deviations=tuple(variance[name] ** 0.5 for name in effects),
        effects=Effects(
            strength=np.array([beta[name] ** 2 * variance[name] for name in effects]),
            columns=np.ones(len(effects), dtype=np.int64),
            useless=np.ones(total - len(effects), dtype=np.int64),
            sigma2=(sigma / float(clip)) ** 2,
        ),
        models=2**total if most == total else sum(math.comb(total, s) for s in range(most + 1)),
        widest=most + 1,
        kappa=min([*variance.values(), _UNIFORM]),
        beta=np.array([*beta.values(), *[0.0] * (total - len(beta))]),
        units=tuple((j + 1,) for j in range(total)),
        given={place: sd[name] for place, name in enumerate(effects, 1) if name in sd},
        labels=(*effects, *(f"column {j + 1}" for j in range(len(effects), total))),
        scales=np.full(total, float(clip)),
        design=None,
    )


def from_formula(
    effects: Mapping[str, float],
    sigma: float,
    formula: str,
    schema: Any,
    *,
    keep: Iterable[str],
    sd: Mapping[str, float],
    clip: Fraction,
    center: bool,
    max_terms: int | None,
) -> Stated:
    """Take coefficients of design columns in their own units, and sigma in the response's."""
    design = build_design(formula, Schema.from_any(schema), keep=keep, clip=clip, center=center)
    names = tuple(column.name for column in design.columns)
    space = build_space(design.terms, names, keep=design.keep, max_terms=max_terms)
    place = {name: j for j, name in enumerate(names) if j}
    place |= {term.name: term.columns[0] for term in design.terms if term.columns[1:] == ()}
    place.pop("Intercept", None)
    free = {j for columns in space.unit_columns for j in columns}
    _known(effects, [name for name in place if place[name] in free], "effects")
    _known(sd, place, "sd")
    response = design.response.width
    if len({place[name] for name in effects}) < len(effects):
        raise ArgumentError("effects names one column twice, by its term and by its own name.")
    beta = {
        place[name]: value * design.columns[place[name]].width / response
        for name, value in effects.items()
    }
    known = {place[name]: value for name, value in sd.items()}
    variance = {j: column_variance(design, j, known) for j in free}
    with_effect = [
        (unit, columns)
        for unit, columns in zip(space.units, space.unit_columns, strict=True)
        if any(j in beta for j in columns)
    ]
    _room(max_terms, len(with_effect))
    sizes = [*(abs(value) for value in beta.values() if value), sigma / response]
    sizes += variance.values()
    if not all(_LEAST <= size <= _MOST for size in sizes):
        raise ArgumentError(
            "effects, sigma or sd are out of all proportion to the bounds of the schema: in scaled "
            "units they must lie between 1e-60 and 1e60."
        )
    others = [c for c in space.unit_columns if not any(j in beta for j in c)]
    return Stated(
        names=tuple(unit for unit, _ in with_effect),
        scaled=tuple(sum(abs(beta.get(j, 0.0)) for j in columns) for _, columns in with_effect),
        deviations=tuple(max(variance[j] for j in columns) ** 0.5 for _, columns in with_effect),
        effects=Effects(
            strength=np.array(
                [sum(beta.get(j, 0.0) ** 2 * variance[j] for j in c) for _, c in with_effect]
            ),
            columns=np.array([len(c) for _, c in with_effect], dtype=np.int64),
            useless=np.array([len(c) for c in others], dtype=np.int64),
            sigma2=(sigma / response) ** 2,
        ),
        models=space.size,
        widest=len(names) if design.has_intercept else len(names) - 1,
        kappa=min(variance.values()),
        beta=np.array([beta.get(j, 0.0) for j in range(1, len(names))]),
        units=(*(columns for _, columns in with_effect), *map(tuple, others)),
        given={j: value / design.columns[j].width for j, value in known.items()},
        labels=names[1:],
        scales=np.array([response / column.width for column in design.columns[1:]]),
        design=design,
    )


def column_variance(design: Design, j: int, sd: Mapping[int, float]) -> float:
    """Variance of a stored column: from `sd`, or evenly spread over its bounds or levels."""
    column = design.columns[j]
    if j in sd:
        return (sd[j] / column.width) ** 2
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
