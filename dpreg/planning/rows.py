"""Rows that a plan assumes for a call, responses and all, and what least squares says of them.

Columns are those of `dpreg.planning.rows`. A linear model's response is that of the stated
effects. A family's is drawn from the model with a fixed seed: effects, or an equal part of each
column in the linear predictor, whose middle is such that the mean response is as stated. Where
``like=`` has the response of a family, its own stands.

From effects as a user states them to effects in stored units. Public facts only.

Rows that a plan makes up, or is given, to stand for those to come. No confidential row is read.

Made-up raw columns are uniform between their bounds, or normal about the middle of them where `sd`
gives a standard deviation and no other term is made of the column; levels are equally frequent, or
as frequent as `sd` of their 0/1 columns implies; columns with bounds (0, 1) and an `sd` hold 0 and
1. Numbers are drawn from normal ones with one correlation between any two. The formula then makes
its own columns of them: powers, products and levels are related as they will be. Residuals are
normal, exactly uncorrelated with the columns. All of it comes from a fixed seed, so that a plan is
the same every time.

Real columns seldom fill their bounds. *Skewed* rows are the second assumption that a plan without
``like=`` makes: numbers bunch at the lower end, the median a tenth of the way up, with a long tail
upwards, each level but the first has 5% of the rows, and residuals have a long tail as well.

With ``like=``, rows of another table take their place: an earlier year's, a synthetic file. Where
it has the response, its residuals give theirs their shape.

What a call would say of assumed rows: standard errors, and which coefficients have none.

The call's own release is made of the rows that are assumed, `DRAWS` times, each with noise of its
own: the looks (`dpreg.looks.expected`), or the one release of ``method="gram"``. What is predicted
is the median over them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.linalg import cholesky
from scipy.special import ndtr, ndtri

from dpreg.arrays import Bools, Floats
from dpreg.columns import Numeric as Numeric_assumed
from dpreg.errors import ArgumentError, shown
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram
from dpreg.formula.design import Design, build_design
from dpreg.looks.chosen import point_of_chosen
from dpreg.looks.described import Described
from dpreg.looks.estimates import NARROW, estimates
from dpreg.looks.expected import Expected, expected_looks, expected_moments
from dpreg.looks.families import Family, Linear, family_of
from dpreg.looks.loop import Seen, look_at_chosen
from dpreg.looks.model import Model
from dpreg.looks.plan import LookPlan
from dpreg.planning.chances import Effects
from dpreg.planning.facts import Facts
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.ranges import LEAST_EPS
from dpreg.schema import Numeric, Schema
from dpreg.selection.space import Space, build_space
from dpreg.sources import LocalSource, as_source

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


_ROWS: Final = 4096  # work
_SEED_assumed: Final = 24
_MOST_assumed: Final = 100_000
"""Rows of ``like=`` that are used: the first ones."""
_LOW: Final = 0.1
"""Of the way between the bounds: the median of skewed numbers."""
_SKEW: Final = 0.7
"""Standard deviation of their logarithms."""
_RARE: Final = 0.05
"""Share of the rows that has a level, in skewed rows."""
_ALONE: Final = 1e-7
"""Least share of a column's variance that the others may leave of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Assumed:
    """Rows in stored units, whose columns are those of a design without the constant.

    Attributes
    ----------
    x : (m, p) array
    shape : (m,) array
        Residuals of mean square 1.
    given : mapping of int to float
        Standard deviations given the others, of columns by their place in `x`, as stated.
    like : bool
        Whether they are rows of another table.
    own : (m,) array or None
        The stored response of these, where they have it.
    """

    x: Floats = field(repr=False)
    shape: Floats = field(repr=False)
    given: Mapping[int, float]
    like: bool = False
    own: Floats | None = field(default=None, repr=False)

    def deviations(self) -> Floats:
        """Return the standard deviation of each column given the others, in these rows: (p,)."""
        centred = self.x - self.x.mean(axis=0)
        moments = centred.T @ centred / len(centred)
        scale = np.sqrt(np.maximum(np.diag(moments), np.finfo(float).tiny))
        inverse = np.diag(np.linalg.pinv(moments / np.outer(scale, scale), hermitian=True))
        return np.asarray(scale / np.sqrt(np.maximum(inverse, 1.0)))

    def stated(self) -> Floats:
        """Return them as they were stated, or else as they are in these rows: (p,)."""
        found = self.deviations()
        found[list(self.given)] = list(self.given.values())
        return found

    def response(self, beta: Floats, sigma: float) -> Floats:
        """Return the response, (m,), of coefficients (p,) and a residual standard deviation."""
        explained = (self.x - self.x.mean(axis=0)) @ beta
        return np.asarray(np.clip(explained + sigma * self.shape, -1.0, 1.0))


def of_numbers(
    columns: int, given: Mapping[int, float], correlation: float, *, skewed: bool = False
) -> Assumed:
    """Make up rows of columns in [-1, 1].

    Parameters
    ----------
    columns : int
    given : mapping of int to float
        Standard deviations given the others.
    correlation : float
        In [0, 1).
    skewed : bool
        See the module.
    """
    rows = max(_ROWS, 4 * columns)
    normal = _normal(rows, columns, correlation)
    x = 2 * (_bunched(normal) if skewed else ndtr(normal)) - 1
    for j, sd in given.items():
        x[:, j] = np.clip(sd * _inflation(columns, correlation) * normal[:, j], -1, 1)
    return Assumed(x, _residuals(x, None, skewed=skewed), given)


def of_formula(
    design: Design,
    given: Mapping[int, float],
    correlation: float,
    like: Any = None,
    *,
    skewed: bool = False,
    least: int = _ROWS,
) -> Assumed:
    """Make up rows of a design, or make them of another table's rows.

    Parameters
    ----------
    design : Design
    given : mapping of int to float
        Standard deviations given the others, in stored units, by column of the design, from 1.
    correlation : float
        In [0, 1), between any two raw columns of numbers.
    like : table, optional
        With the raw columns of the formula; the response may be missing.
    skewed : bool
        See the module.
    least : int
        Rows to make up at least.
    """
    known = {
        design.columns[j].name: sd * design.columns[j].width
        for j, sd in given.items()
        if _alone(design, j)
    }
    rows = max(least, 4 * len(design.columns))
    table = _raw(design, known, correlation, rows, skewed=skewed) if like is None else like
    source, outcome = _local(table), design.needed[0]
    missing = [name for name in design.needed[1:] if name not in source.names]
    if missing:
        raise ArgumentError(f"like lacks columns of the formula: {', '.join(missing)}.")
    own = like is not None and outcome in source.names
    read = {name: kind for name, kind in design.types.items() if own or name != outcome}
    blocks = [
        design.block(_with(design, chunk, own)) for chunk in source.chunks(read, _MOST_assumed)
    ]
    z = np.concatenate([block[block[:, 0] > 0] for block in blocks])[:_MOST_assumed]
    x = z[:, 1:-1]
    if len(x) <= 2 * x.shape[1] + 2:
        raise ArgumentError(
            "like must have complete rows of the formula's columns, more than twice as many as "
            "the formula has columns."
        )
    response = np.ascontiguousarray(z[:, -1]) if own else None
    shape = _residuals(x, response, skewed=skewed)
    stated = {j - 1: sd for j, sd in given.items()}
    return Assumed(np.ascontiguousarray(x), shape, stated, like=like is not None, own=response)


def _local(table: Any) -> LocalSource:
    source = as_source(table)
    if not isinstance(source, LocalSource):
        raise ArgumentError("like must be a table of this process, such as a DataFrame or a file.")
    return source


def _alone(design: Design, j: int) -> bool:
    """Whether no other term is made of the raw column too.

    Given its powers and products a column varies little, whatever its own spread is.
    """
    own = next(term for term in design.terms if j in term.columns)
    words = {word for factor in own.factors for word in re.findall(r"\w+", factor)}
    others = [factor for term in design.terms if term is not own for factor in term.factors]
    return not any(words & set(re.findall(r"\w+", factor)) for factor in others)


def _with(design: Design, chunk: Mapping[str, Any], own: bool) -> Mapping[str, Any]:
    """Return a chunk with a response, in the middle of its bounds where it has none of its own."""
    if own:
        return chunk
    declared = design.schema[design.needed[0]]
    value = (declared.lo + declared.hi) / 2 if isinstance(declared, Numeric_assumed) else 0.0
    rows = len(next(iter(chunk.values())))
    return {**chunk, design.needed[0]: np.full(rows, value)}


def _raw(
    design: Design, known: Mapping[str, float], correlation: float, rows: int, *, skewed: bool
) -> pd.DataFrame:
    """Make up the raw columns that a formula reads."""
    needed = design.needed[1:]
    numeric = [name for name in needed if isinstance(design.schema[name], Numeric_assumed)]
    normal = dict(zip(numeric, _normal(rows, len(numeric), correlation).T, strict=True))
    rng = np.random.default_rng([_SEED_assumed, 1])
    table: dict[str, Any] = {}
    for name in needed:
        declared = design.schema[name]
        if isinstance(declared, Numeric_assumed):
            spread = known.get(name)
            inflated = None if spread is None else spread * _inflation(len(numeric), correlation)
            table[name] = _numbers(declared, normal[name], inflated, skewed=skewed)
            continue
        levels = list(getattr(declared, "levels", (False, True)))
        shares = _shares(levels, name, known, skewed=skewed)
        counts = np.diff(np.round(np.cumsum([0.0, *shares]) * rows).astype(int))
        table[name] = np.array(levels, dtype=object)[
            rng.permutation(np.repeat(np.arange(len(levels)), counts))
        ]
    return pd.DataFrame(table)


def _bunched(normal: Floats) -> Floats:
    """Return skewed numbers between 0 and 1."""
    return np.minimum(_LOW * np.exp(_SKEW * normal), 1.0)


def _numbers(
    declared: Numeric_assumed, normal: Floats, spread: float | None, *, skewed: bool = False
) -> Floats:
    low, high = declared.lo, declared.hi
    if spread is None and skewed:
        if (low, high) == (0, 1):
            return (normal > ndtri(1 - _RARE)).astype(float)
        return np.asarray(low + (high - low) * _bunched(normal))
    if spread is None:
        return np.asarray(low + (high - low) * ndtr(normal))
    if (low, high) == (0, 1):
        share = 0.5 - math.sqrt(max(0.5**2 - spread**2, 0.0))
        at_least_two = max(round(share * len(normal)), 2)
        return (np.argsort(np.argsort(-normal)) < at_least_two).astype(float)
    return np.asarray(np.clip((low + high) / 2 + spread * normal, low, high))


def _shares(
    levels: list[Any], name: str, known: Mapping[str, float], *, skewed: bool = False
) -> list[float]:
    """Return the shares of levels: equal, or as 1/sd^2 = 1/share + 1/share of the base has it."""
    stated = [known.get(f"{name}[T.{level}]") for level in levels[1:]]
    if not any(stated) and skewed:
        rare = min(_RARE, 0.5 / len(levels))
        return [1 - rare * (len(levels) - 1), *[rare] * (len(levels) - 1)]
    if not any(stated):
        return [1 / len(levels)] * len(levels)

    def shares(base: float) -> list[float]:
        others = [base if sd is None else 1 / max(sd**-2 - 1 / base, 1.0) for sd in stated]
        return [base, *others]

    # The largest share of the base with which all of them add up to 1, or nearly so.
    gaps = {base: abs(sum(shares(base)) - 1) for base in np.linspace(1, 0, 1001)[1:-1]}
    found = shares(min(gaps, key=lambda base: (round(gaps[base], 2), -base)))
    return [share / sum(found) for share in found]


def _normal(rows: int, columns: int, correlation: float) -> Floats:
    """Draw normal columns whose means, variances and correlations are as asked for, exactly."""
    drawn = np.random.default_rng(_SEED_assumed).standard_normal((rows, columns + 1))
    drawn -= drawn.mean(axis=0)
    drawn = np.linalg.qr(drawn)[0] * math.sqrt(rows)
    shared = drawn[:, :1] * math.sqrt(correlation)
    return np.asarray(drawn[:, 1:] * math.sqrt(1 - correlation) + shared)


def _inflation(columns: int, correlation: float) -> float:
    """Return a column's standard deviation over that given the others: equal correlations."""
    if columns < 2:
        return 1.0
    others = columns - 1
    explained = others * correlation**2 / (1 + (others - 1) * correlation)
    return 1 / math.sqrt(1 - explained)


def _residuals(x: Floats, response: Floats | None, *, skewed: bool = False) -> Floats:
    """Return residuals of mean square 1, orthogonal to the constant and the columns."""
    design = np.column_stack([np.ones(len(x)), x])
    drawn = np.random.default_rng([_SEED_assumed, 2]).standard_normal(len(x))
    if skewed:
        drawn = np.exp(_SKEW * drawn)
    basis = np.linalg.qr(design)[0]
    start = drawn if response is None else response
    left = start - basis @ (basis.T @ start)
    size = math.sqrt(float(np.square(left).mean()))
    if size <= _ALONE:
        return drawn
    return np.asarray(left / size)


_SEED: Final = 36
_WORK: Final = (4096, 1 << 15)
"""Rows that are made up: so many at least, and more of a rare response."""
_EVENTS: Final = 400  # work: ones, or successes, that made-up rows should hold
_HALVINGS: Final = 60
_STEPS: Final = 12  # precision: of the fit without privacy
_FAR: Final = 60.0  # precision: beyond every linear predictor


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that are assumed, and what they are rows of.

    Attributes
    ----------
    family : Family
    described : Described
    z : (m, D) array
        (1, x, y) in stored units.
    beta : (p + 1,) array or None
        Coefficients that responses were made with, in stored units, the intercept first; None
        where rows of another table have their own.
    places : tuple of int
        Of the coefficients among those that are looked at, 0 the constant.
    names : tuple of str
    to_user : (k, k) and (k,) arrays
        As for `dpreg.looks.estimates.estimates`.
    ratios : (p,) array
        Of each column looked at: its deviation given the others here, over the stated one.
    deviations : array
        Of all stored columns given the others, as stated or else as here.
    like : bool
        Whether they are rows of another table.
    """

    family: Family
    described: Described
    z: Floats = field(repr=False)
    beta: Floats | None = field(repr=False)
    places: tuple[int, ...]
    names: tuple[str, ...]
    to_user: tuple[Floats, Floats] = field(repr=False)
    ratios: Floats = field(repr=False)
    deviations: Floats = field(repr=False)
    like: bool

    def only(self, places: tuple[int, ...]) -> Rows:
        """Return the same rows for a model of some of the coefficients."""
        at = [self.places.index(place) for place in places]
        units = self.to_user[0][np.ix_(at, at)], self.to_user[1][at]
        names = tuple(self.names[i] for i in at)
        return replace(self, places=places, names=names, to_user=units)

    def plain(self, rows: float, scatter: float) -> Floats:
        """Return standard errors of the right model without privacy, in the user's units.

        Parameters
        ----------
        rows : float
        scatter : float
            Dispersion of a family; a linear model's is that of the rows.
        """
        described, linear = self.described, isinstance(self.family, Linear)
        x = self.z[:, [(0, *described.columns)[place] for place in self.places]]
        beyond = self.z[:, list(described.offsets)] @ np.array(described.known)
        y = described.response[0] + described.response[1] * self.z[:, -1]
        times, beta = _times(described, self.z), np.zeros(x.shape[1])
        if not linear:
            share = float(y.mean()) / max(float(times.mean()), 1e-300)
            beta[0] = self.family.predictor(share) - float(np.mean(beyond))
        information = np.eye(len(beta))
        for _ in range(1 if linear else _STEPS):
            terms = self.family.terms(x @ beta + beyond)
            information = (x.T * (times * terms.weight)) @ x
            step = np.linalg.pinv(information) @ (x.T @ (y - times * terms.mean))
            far = 1.0 if linear else max(1.0, float(np.abs(x @ step).max()) / 4)
            beta = beta + step / far
        if linear:
            scatter = float(np.square(y - x @ beta).mean())
        unit = self.to_user[0]
        covariance = scatter * len(self.z) / rows * unit @ np.linalg.pinv(information) @ unit.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))


def rows_of(facts: Facts, told: Stated, *, skewed: bool = False) -> Rows:
    """Assume rows for a call; `skewed` ones are of the second kind of `dpreg.planning.rows`."""
    assumed = _assumed(facts, told, skewed=skewed)
    design, model, at = told.design, told.model, (0, *told.columns)
    if design is None or model is None:
        family: Family = Linear()
        described = Described(at[1:], levels=() if design is None else design.levels)
        if design is not None and not design.has_intercept:
            at = at[1:]
        y = assumed.response(told.beta, told.sigma)
        middle = float(np.mean(y) - assumed.x.mean(axis=0) @ told.beta)
        beta: Floats | None = np.append(middle, told.beta)
        unit = np.eye(len(at)) * float(facts.request.clip), np.zeros(len(at))
        units = unit if design is None else design.to_user_units(at)
    else:
        family = family_of(facts.family, design.response.hi)
        described, units = model.described(design), model.to_user_units(design, at)
        if assumed.own is None:
            y, beta = _responses(facts, told, family, described, assumed.x)
        else:
            y, beta = assumed.own, None
    deviations = assumed.stated()
    ratios = (assumed.deviations() / deviations)[[j - 1 for j in described.columns]]
    by_place = np.append(1.0, ratios)[-len(at) :]
    return Rows(
        family=family,
        described=described,
        z=np.column_stack([np.ones(len(y)), assumed.x, y]),
        beta=beta,
        places=tuple(range(len(described.columns) + 1))[-len(at) :],
        names=tuple(("Intercept", *told.labels)[j] for j in at),
        to_user=(units[0] * by_place, units[1]),
        ratios=ratios,
        deviations=deviations,
        like=assumed.like,
    )


def _assumed(facts: Facts, told: Stated, *, skewed: bool) -> Assumed:
    if told.design is None:
        given = {j - 1: sd for j, sd in told.given.items()}
        return of_numbers(len(told.beta), given, facts.correlation, skewed=skewed)
    least, mean = _WORK[0], facts.mean
    if facts.family:
        rare = min(mean, 1 - mean) if facts.family == "binomial" else mean
        least = int(min(max(_EVENTS / max(rare, 1 / _WORK[1]), least), _WORK[1]))
    correlation, like = facts.correlation, facts.like
    return of_formula(told.design, told.given, correlation, like, skewed=skewed, least=least)


def _times(described: Described, z: Floats) -> Floats:
    """Return the numbers of trials."""
    trials = described.trials
    if trials is None:
        return np.ones(len(z))
    return np.asarray(np.rint(trials.scale[0] + trials.scale[1] * z[:, trials.column]))


def _responses(
    facts: Facts, told: Stated, family: Family, described: Described, columns: Floats
) -> tuple[Floats, Floats]:
    """Return stored responses, drawn from the model that is supposed, and its coefficients."""
    if not facts.mean:
        raise ArgumentError("give mean, or rows in like= that have the response.")
    x = columns[:, [j - 1 for j in described.columns]]
    slopes = told.beta[[j - 1 for j in described.columns]] * described.response[1]
    if not told.names:
        covariance = np.cov(x.T).reshape(x.shape[1], x.shape[1])
        held = covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12)
        equal = np.full(x.shape[1], facts.spread / np.sqrt(x.shape[1]))
        slopes = np.linalg.solve(cholesky(held, lower=True).T, equal)
    eta = (x - x.mean(axis=0)) @ slopes
    if described.offsets:
        eta = eta + columns[:, [j - 1 for j in described.offsets]] @ np.array(described.known)
    reach = _FAR + float(np.abs(eta).max())
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = float(family.terms(eta + middle).mean.mean()) > facts.mean
        low, high = (low, middle) if above else (middle, high)
    mean, rng = family.terms(eta + low).mean, np.random.default_rng(_SEED)
    if family.name == "binomial":
        times = _times(described, np.column_stack([eta, columns]))
        y = rng.binomial(np.maximum(times, 0).astype(int), np.clip(mean, 0, 1)).astype(float)
    else:
        y = np.minimum(_counts(rng, mean, facts.scatter), family.cap)
    base, unit = described.response
    beta = np.append(low - float(x.mean(axis=0) @ slopes), slopes)
    return np.asarray((y - base) / unit), beta


def _counts(rng: np.random.Generator, mean: Floats, scatter: float) -> Floats:
    """Draw counts whose variance is `scatter` times the mean."""
    if scatter > 1:
        few = np.maximum(mean, 1e-12) / (scatter - 1)
        return rng.negative_binomial(few, 1 / scatter).astype(float)
    if scatter == 1:
        return rng.poisson(mean).astype(float)
    noise = rng.standard_normal(len(mean)) * np.sqrt(scatter * mean)
    return np.asarray(np.maximum(np.rint(mean + noise), 0.0))


NONE: Final = "no interval"
WIDE: Final = "wide"
DRAWS: Final = 9
"""Releases that a prediction is the median of: a standard error moves by some 5% a release."""
_MORE: Final = 45
"""The same where releases disagree. With 9, three of 69 cells of `tests/planning/test_fitted.py` at
which noise rules were planned .8 to 3 times as calls had it, or with intervals that few calls had;
python -m pytest -m audit tests/planning/test_fitted.py; 2026-11-24."""
_APART: Final = 2.0
"""Releases disagree where the middle half of a coefficient's errors spans such a factor."""
_SEED_fitted: Final = 37

Shown = tuple[Floats, Floats, Sequence[bool]]
"""Variances of both sources, of sampling alone, and which are marked, in the user's units."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What is expected of coefficients, in the user's units; NaN where no interval is.

    Attributes
    ----------
    names : tuple of str
    errors, sampling, privacy : (k,) arrays
        Standard errors, and their two parts.
    marks : tuple of str
        "", "wide" or "no interval", by coefficient.
    """

    names: tuple[str, ...]
    errors: Floats
    sampling: Floats
    privacy: Floats
    marks: tuple[str, ...]


def fitted(plan: LookPlan, rows: Rows, n: int) -> Fitted:
    """Predict what looks would say of a table of n rows."""
    found: list[Shown] = []
    for draws in (DRAWS, _MORE):
        looks = expected_looks(plan, rows.family, rows.described, rows.z, n, draws=draws)
        found = [_estimated(seen, rows, rows.places) for _, seen in looks]
        if _agree(found):
            break
    return _medians(found, rows.names)


def _agree(found: Sequence[Shown]) -> bool:
    """Whether releases say the same: all or none has an interval, and errors are alike."""
    whole = np.array([variance for variance, _, _ in found])
    hidden = np.isnan(whole).mean(axis=0)
    if np.any((hidden > 0) & (hidden < 1)):
        return False
    low, high = np.quantile(whole[:, hidden == 0], (0.25, 0.75), axis=0)  # by definition
    return bool((high <= _APART**2 * low).all())


def fitted_chosen(taken: Sequence[tuple[Expected, Seen]], rows: Rows, *, fresh: bool) -> Fitted:
    """Predict what is said of chosen columns: by looks at them, or from the looks that chose."""
    at = list(rows.places[1:])
    if not fresh:
        whole = range(len(rows.described.columns) + 1)
        return _medians([_estimated(s, rows, rows.places, whole) for _, s in taken], rows.names)
    columns = tuple(rows.described.columns[place - 1] for place in at)
    own = rows.described.only(columns)
    found = []
    for one, seen in taken:
        later = replace(one, described=own, plan=one.plan.at_chosen(len(columns)))
        point = point_of_chosen(seen, at)
        found.append(
            _estimated(look_at_chosen(later, seen, point, [0, *at]), rows, range(len(at) + 1))
        )
    return _medians(found, rows.names)


def fitted_once(
    plan: LookPlan, exclusive: Sequence[Sequence[int]], rows: Rows, n: int, noise: str | None
) -> Fitted:
    """Predict what one release of all moments would say: ``method="gram"``."""
    moments, places = expected_moments(rows.z, n), rows.places
    cost = Budget(max(plan.cost.eps, LEAST_EPS), plan.cost.delta)  # no call costs less
    found: list[Shown] = []
    for draw in range(DRAWS):
        account = Account(plan.protection, cost, np.random.default_rng([_SEED_fitted, draw]))
        part = account.line("coefficients", "gram release", cost)
        account.charge(None, "a plan")
        noisy = release_gram(moments, places, exclusive=exclusive, part=part, noise=noise)
        fit = fit_gram(noisy, rows=n)
        unit = rows.to_user[0]
        whole, sampled = (np.diag(unit @ part @ unit.T) for part in (fit.cov, fit.cov_sampling))
        found.append((whole, sampled, [False] * len(places)))
    return _medians(found, rows.names)


def _estimated(
    seen: Seen, rows: Rows, places: Sequence[int], among: Sequence[int] | None = None
) -> Shown:
    found = estimates(seen, places, rows.names, rows.to_user, among=among)
    marked = [found.marks.get(name, NARROW) != NARROW for name in rows.names]
    return np.diag(found.covariance), np.diag(found.sampling), marked


def _medians(found: Sequence[Shown], names: tuple[str, ...]) -> Fitted:
    """Return the medians of what several releases show."""
    whole, sampled, marked = (np.array(part) for part in zip(*found, strict=True))
    none = np.isnan(whole).mean(axis=0) > 0.5
    total, sampling = (_median(part, none) for part in (whole, sampled))
    sampling = np.minimum(sampling, total)
    wide = marked.mean(axis=0) > 0.5
    return Fitted(
        names=names,
        errors=np.sqrt(total),
        sampling=np.sqrt(sampling),
        privacy=np.sqrt(total - sampling),
        marks=tuple(
            NONE if hidden else WIDE if often else ""
            for hidden, often in zip(none, wide, strict=True)
        ),
    )


def _median(part: Floats, none: Bools) -> Floats:
    """Return the median over releases of what they show."""
    found = np.full(part.shape[1], np.nan)
    seen = np.logical_not(none)
    found[seen] = np.nanmedian(part[:, seen], axis=0)
    return found
