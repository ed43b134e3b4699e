r"""Rows that a plan makes up, or is given, to stand for those to come, and what calls say of them.

No confidential row is read. Made-up raw columns are uniform between their bounds, or normal about
the middle of them where `sd` gives a standard deviation and no other term is made of the column;
levels are equally frequent, or as frequent as `sd` of their 0/1 columns implies; columns with
bounds (0, 1) and an `sd` hold 0 and 1. Numbers are drawn from normal ones with one correlation
between any two. The formula then makes its own columns of them: powers, products and levels are
related as they will be. Without a formula there is one term a column, in [-1, 1]. Everything comes
from a fixed seed, so that a plan is the same every time.

Real columns seldom fill their bounds. *Skewed* rows are the second assumption that a plan without
``like=`` makes: numbers bunch at the lower end, the median a tenth of the way up, with a long tail
upwards, each level but the first has 5% of the rows, and residuals have a long tail as well.

With ``like=``, rows of another table take their place: an earlier year's, a synthetic file.

A linear model's response is that of the stated effects. Its residuals are normal, exactly
uncorrelated with the columns, or have the shape of those of ``like=``. A family's is drawn from the
model: effects, or an equal part of each column in the linear predictor, whose middle is such that
the mean response is as stated. Where ``like=`` has the response of a family, its own stands.

What a call would say is the median over its own releases of these rows, each with noise of its own:
the looks (`dpreg.looks.expected`), or the one release of ``method="gram"``.

Tested in `tests/planning/test_assumed.py`, `tests/planning/test_fitted.py` and
`tests/planning/test_glm.py`.
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

from dpreg.api.context import exclusive_groups
from dpreg.api.looks import FamilyModel, LinearModel, LookedModel, columns_of
from dpreg.arrays import Floats
from dpreg.columns import LEAST_EPS, Numeric
from dpreg.errors import ArgumentError, shown
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram
from dpreg.formula.design import Design, build_design
from dpreg.looks.described import Described
from dpreg.looks.expected import Expected, expected_looks, expected_moments
from dpreg.looks.families import Family, Linear, family_of
from dpreg.looks.law import NARROW, estimates
from dpreg.looks.loop import Seen, look_at_chosen, point_of_chosen
from dpreg.looks.plan import LookPlan
from dpreg.planning.facts import Facts
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.schema import Schema
from dpreg.selection.space import build_space
from dpreg.sources import LocalSource, as_source

NONE: Final = "no interval"
WIDE: Final = "wide"
_DRAWS: Final = 21
"""Releases that a prediction is the median of: a standard error moves by 5 to 20% a release. With 9
the eps that was found for the n that was found at eps = 1 was off by up to 5%."""
_MORE_DRAWS: Final = 45
"""The same where releases disagree. With 9, three of 69 cells of `tests/planning/test_fitted.py` at
which noise rules were planned .8 to 3 times as calls had it, or with intervals that few calls had;
python -m pytest -m audit tests/planning/test_fitted.py; 2026-11-24."""
_APART: Final = 2.0
"""Releases disagree where the middle half of a coefficient's errors spans such a factor."""
_UNIFORM: Final = 1 / 3  # by definition: variance of a column that is uniform on [-1, 1]
_ROWS: Final = (4096, 1 << 15)  # work
"""Rows that are made up: so many at least, and more of a rare response."""
_EVENTS: Final = 400  # work: ones, or successes, that made-up rows should hold
_MOST_ROWS: Final = 100_000  # work
"""Rows of ``like=`` that are used: the first ones."""
_LOW: Final = 0.1
"""Of the way between the bounds: the median of skewed numbers."""
_SKEW: Final = 0.7
"""Standard deviation of their logarithms."""
_RARE: Final = 0.05
"""Share of the rows that has a level, in skewed rows."""
_SEEDS: Final = {"columns": 24, "responses": 36, "releases": 37}  # by definition
_STEPS: Final = 12  # precision: of the fit without privacy
_FAR: Final = 60.0  # precision: beyond every linear predictor
_SIZES: Final = 1e-60, 1e60  # precision
_LEFT: Final = 1e-7  # precision: least share of a column's variance that the others may leave of it


# ---- what was stated, in stored units ------------------------------------------------------------


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
    design : Design
    model : LookedModel
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
    design: Design
    model: LookedModel

    def each(self, values: Floats) -> list[Floats]:
        """Return the values of the columns of each term with an effect."""
        return [values[[j - 1 for j in unit]] for unit in self.units[: len(self.names)]]

    @property
    def scaled(self) -> tuple[float, ...]:
        """|beta|_1 of each term in stored units (response divided by its scale and clip)."""
        return tuple(float(own.sum()) for own in self.each(np.abs(self.beta)))

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation given the rest, in stored units, the largest of a term."""
        return tuple(float(own.max()) for own in self.each(np.sqrt(self.variance)))

    @property
    def exclusive(self) -> list[tuple[int, ...]]:
        """The 0/1 columns of each factor that has several."""
        return exclusive_groups(self.design, range(len(self.design.columns)))


def _designed(facts: Facts) -> tuple[Design, LookedModel]:
    """Build the design, as the call that is planned would; without a formula of numbers."""
    asked, told = facts.asked, facts.request
    if asked is not None:
        known, model = asked.model(str(facts.formula), Schema.from_any(facts.schema))
        design = model.design(known, told.keep)
        model.check(design, (), facts.family, "plan" if facts.chooses else "plan_glm")
        family = family_of(facts.family, design.response.hi)
        if facts.mean >= family.cap:
            said = shown(facts.mean)
            raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {said}.")
        return design, FamilyModel.of(model, facts.family)
    formula, schema = facts.formula, facts.schema
    if formula is None:
        total = len(facts.effects) if facts.candidates is None else facts.candidates
        if total < len(facts.effects):
            raise ArgumentError(
                f"candidates must be at least {len(facts.effects)}, the number of effects."
            )
        names = [f"x{j}" for j in range(1, total + 1)]
        formula, schema = f"y ~ {' + '.join(names)}", dict.fromkeys(("y", *names), (-1, 1))
    design = build_design(formula, schema, keep=told.keep, clip=told.clip, center=told.center)
    return design, LinearModel()


def stated(facts: Facts) -> Stated:
    """State what a caller said, in stored units: of a formula, or of columns in [-1, 1]."""
    (design, model), effects = _designed(facts), facts.effects
    most, names = facts.request.max_terms, tuple(column.name for column in design.columns)
    space = build_space(design.terms, names, keep=design.keep, max_terms=most)
    both, free = zip(space.units, space.unit_columns, strict=True), set().union(*space.unit_columns)
    units = [(name, tuple(columns)) for name, columns in both]
    if facts.formula is None:
        labels = (*effects, *(f"column {j}" for j in range(len(effects) + 1, len(names))))
        units = [(label, columns) for label, (_, columns) in zip(labels, units, strict=True)]
        place = {name: j for j, name in enumerate(effects, 1)}
    else:
        labels, place = names[1:], {name: j for j, name in enumerate(names) if j}
        place |= {term.name: term.columns[0] for term in design.terms if term.columns[1:] == ()}
        place.pop("Intercept", None)
    _check_known(effects, [name for name in place if place[name] in free], "effects")
    _check_known(facts.sd, place, "sd")
    at = [place[name] for name in effects]
    if len(set(at)) < len(at):
        raise ArgumentError("effects names one column twice, by its term and by its own name.")
    scales = design.response.width / np.array([column.width for column in design.columns[1:]])
    beta = np.zeros(len(scales))
    for j, value in zip(at, effects.values(), strict=True):
        beta[j - 1] = value / scales[j - 1]
    given = {place[name]: sd / design.columns[place[name]].width for name, sd in facts.sd.items()}
    variance = np.array([_variance(design, j, given) for j in range(1, len(names))])
    sigma = facts.sigma / design.response.width
    sizes = [*np.abs(beta[beta != 0]), sigma, *(variance[j - 1] for j in free)]
    if not all(_SIZES[0] <= size <= _SIZES[1] for size in sizes):
        raise ArgumentError(
            "effects, sigma or sd are out of all proportion to the bounds of the schema: in scaled "
            "units they must lie between 1e-60 and 1e60."
        )
    units.sort(key=lambda one: not set(at) & set(one[1]))
    found = tuple(name for name, columns in units if set(at) & set(columns))
    if most is not None and most < len(found):
        raise ArgumentError(
            f"max_terms={most} leaves no room for {len(found)} terms with an effect: no model "
            "holds them all."
        )
    widths = sorted((len(columns) for _, columns in units), reverse=True)[:most]
    return Stated(
        names=found,
        beta=beta,
        variance=variance,
        units=tuple(columns for _, columns in units),
        sigma=sigma,
        models=space.size,
        widest=len(space.keep_columns) + sum(widths),
        given=given,
        labels=labels,
        places=tuple(j - 1 for j in at),
        scales=scales,
        design=design,
        model=model,
    )


def _variance(design: Design, j: int, given: Mapping[int, float]) -> float:
    """Variance of a stored column: as given, or evenly spread over its bounds or levels."""
    column = design.columns[j]
    if j in given:
        return given[j] ** 2
    term = next(term for term in design.terms if j in term.columns)
    spread = (column.hi - column.lo) / (2 * column.width)
    if len(term.columns) > 1 and term.exclusive:
        level = 1 / (len(term.columns) + 1)
        return level * (1 - level) * (2 * spread) ** 2
    declared = design.schema.get(term.factors[0]) if len(term.factors) == 1 else None
    two_points = declared is not None and not isinstance(declared, Numeric)
    return spread**2 if two_points else spread**2 * _UNIFORM


def _check_known(given: Iterable[str], known: Iterable[str], name: str) -> None:
    listed = list(dict.fromkeys(known))
    unknown = [item for item in given if item not in listed]
    if unknown:
        raise ArgumentError(
            f"{name} names {', '.join(map(repr, unknown))}; the columns are {', '.join(listed)}."
        )


# ---- columns, and the shape of residuals ---------------------------------------------------------


def assumed(
    design: Design,
    given: Mapping[int, float],
    correlation: float,
    like: Any = None,
    *,
    skewed: bool = False,
    least: int = _ROWS[0],
) -> tuple[Floats, Floats, Floats | None]:
    """Make up rows of a design, or make them of another table's rows, in stored units.

    Returns the columns without the constant, (m, p); residuals of mean square 1, (m,); and the
    response of rows of another table, where they have it.

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
    rows = max(least, 4 * (len(design.columns) - 1))
    table = _raw(design, known, correlation, rows, skewed=skewed) if like is None else like
    source, outcome = as_source(table), design.needed[0]
    if not isinstance(source, LocalSource):
        raise ArgumentError("like must be a table of this process, such as a DataFrame or a file.")
    missing = [name for name in design.needed[1:] if name not in source.names]
    if missing:
        raise ArgumentError(f"like lacks columns of the formula: {', '.join(missing)}.")
    own = like is not None and outcome in source.names
    read = {name: kind for name, kind in design.types.items() if own or name != outcome}
    blocks = [design.block(_with(design, chunk, own)) for chunk in source.chunks(read, _MOST_ROWS)]
    z = np.concatenate([block[block[:, 0] > 0] for block in blocks])[:_MOST_ROWS]
    x = np.ascontiguousarray(z[:, 1:-1])
    if len(x) <= 2 * x.shape[1] + 2:
        raise ArgumentError(
            "like must have complete rows of the formula's columns, more than twice as many as "
            "the formula has columns."
        )
    response = np.ascontiguousarray(z[:, -1]) if own else None
    return x, _residuals(x, response, skewed=skewed), response


def deviations_of(x: Floats) -> Floats:
    """Return the standard deviation of each column given the others, in these rows: (p,)."""
    centred = x - x.mean(axis=0)
    moments = centred.T @ centred / len(centred)
    scale = np.sqrt(np.maximum(np.diag(moments), np.finfo(float).tiny))
    inverse = np.diag(np.linalg.pinv(moments / np.outer(scale, scale), hermitian=True))
    return np.asarray(scale / np.sqrt(np.maximum(inverse, 1.0)))


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
    value = (declared.lo + declared.hi) / 2 if isinstance(declared, Numeric) else 0.0
    rows = len(next(iter(chunk.values())))
    return {**chunk, design.needed[0]: np.full(rows, value)}


def _raw(
    design: Design, known: Mapping[str, float], correlation: float, rows: int, *, skewed: bool
) -> pd.DataFrame:
    """Make up the raw columns that a formula reads."""
    numeric = [name for name in design.needed[1:] if isinstance(design.schema[name], Numeric)]
    normal = dict(zip(numeric, _normal(rows, len(numeric), correlation).T, strict=True))
    inflation = inflated(len(numeric), correlation)
    rng = np.random.default_rng([_SEEDS["columns"], 1])
    table: dict[str, Any] = {}
    for name in design.needed[1:]:
        declared = design.schema[name]
        if isinstance(declared, Numeric):
            spread = known[name] * inflation if name in known else None
            table[name] = _numbers(declared, normal[name], spread, skewed=skewed)
            continue
        levels = list(getattr(declared, "levels", (False, True)))
        shares = _shares([known.get(f"{name}[T.{level}]") for level in levels[1:]], skewed=skewed)
        counts = np.diff(np.round(np.cumsum([0.0, *shares]) * rows).astype(int))
        table[name] = np.array(levels, dtype=object)[
            rng.permutation(np.repeat(np.arange(len(levels)), counts))
        ]
    return pd.DataFrame(table)


def _numbers(declared: Numeric, normal: Floats, spread: float | None, *, skewed: bool) -> Floats:
    low, high = declared.lo, declared.hi
    if spread is None and skewed and (low, high) == (0, 1):
        return (normal > ndtri(1 - _RARE)).astype(float)
    if spread is None:
        way = np.minimum(_LOW * np.exp(_SKEW * normal), 1.0) if skewed else ndtr(normal)
        return np.asarray(low + (high - low) * way)
    if (low, high) == (0, 1):
        share = 0.5 - math.sqrt(max(0.25 - spread**2, 0.0))  # by definition
        at_least_two = max(round(share * len(normal)), 2)
        return (np.argsort(np.argsort(-normal)) < at_least_two).astype(float)
    return np.asarray(np.clip((low + high) / 2 + spread * normal, low, high))


def _shares(stated: Sequence[float | None], *, skewed: bool) -> list[float]:
    """Return the shares of levels: equal, or as 1/sd^2 = 1/share + 1/share of the base has it."""
    levels = len(stated) + 1
    if not any(stated):
        rare = min(_RARE, 0.5 / levels) if skewed else 1 / levels
        return [1 - rare * (levels - 1), *[rare] * (levels - 1)]

    def shares(base: float) -> list[float]:
        others = [base if sd is None else 1 / max(sd**-2 - 1 / base, 1.0) for sd in stated]
        return [base, *others]

    # The largest share of the base with which all of them add up to 1, or nearly so.
    gaps = {base: abs(sum(shares(base)) - 1) for base in np.linspace(1, 0, 1001)[1:-1]}
    found = shares(min(gaps, key=lambda base: (round(gaps[base], 2), -base)))
    return [share / sum(found) for share in found]


def _normal(rows: int, columns: int, correlation: float) -> Floats:
    """Draw normal columns whose means, variances and correlations are as asked for, exactly."""
    drawn = np.random.default_rng(_SEEDS["columns"]).standard_normal((rows, columns + 1))
    drawn -= drawn.mean(axis=0)
    drawn = np.linalg.qr(drawn)[0] * math.sqrt(rows)
    return np.asarray(
        drawn[:, 1:] * math.sqrt(1 - correlation) + drawn[:, :1] * math.sqrt(correlation)
    )


def inflated(columns: int, correlation: float) -> float:
    """Return a column's standard deviation over that given the others: equal correlations."""
    others = columns - 1
    explained = others * correlation**2 / (1 + (others - 1) * correlation)
    return 1.0 if columns < 2 else 1 / math.sqrt(1 - explained)


def _residuals(x: Floats, response: Floats | None, *, skewed: bool) -> Floats:
    """Return residuals of mean square 1, orthogonal to the constant and the columns."""
    drawn = np.random.default_rng([_SEEDS["columns"], 2]).standard_normal(len(x))
    if skewed:
        drawn = np.exp(_SKEW * drawn)
    basis = np.linalg.qr(np.column_stack([np.ones(len(x)), x]))[0]
    start = drawn if response is None else response
    left = start - basis @ (basis.T @ start)
    size = math.sqrt(float(np.square(left).mean()))
    return drawn if size <= _LEFT else np.asarray(left / size)


# ---- rows of a call ------------------------------------------------------------------------------


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
        As for `dpreg.looks.law.estimates`.
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

    @classmethod
    def of(cls, facts: Facts, told: Stated, *, skewed: bool = False) -> Rows:
        """Assume rows for a call; `skewed` ones are of the second kind of the module."""
        rare = facts.mean if facts.family != "binomial" else min(facts.mean, 1 - facts.mean)
        more = min(_EVENTS / max(rare, 1 / _ROWS[1]), _ROWS[1]) if facts.family else 0
        design, model, least = told.design, told.model, max(_ROWS[0], int(more))
        family, described = model.family(design), model.described(design)
        at = columns_of(model, design)
        units = model.to_user_units(design, at)
        x, residuals, y = assumed(
            design, told.given, facts.correlation, facts.like, skewed=skewed, least=least
        )
        beta = None
        if not facts.family:
            y = (x - x.mean(axis=0)) @ told.beta + told.sigma * residuals
            y = np.clip(y, -1.0, 1.0)
            beta = np.append(float(np.mean(y) - x.mean(axis=0) @ told.beta), told.beta)
        elif y is None:
            y, beta = _responses(facts, told, family, described, x)
        deviations = deviations_of(x)
        ratios = deviations.copy()
        deviations[[j - 1 for j in told.given]] = list(told.given.values())
        ratios = (ratios / deviations)[[j - 1 for j in described.columns]]
        by_place = np.append(1.0, ratios)[-len(at) :]
        return cls(
            family=family,
            described=described,
            z=np.column_stack([np.ones(len(y)), x, y]),
            beta=beta,
            places=tuple(range(len(described.columns) + 1))[-len(at) :],
            names=tuple(("Intercept", *told.labels)[j] for j in at),
            to_user=(units[0] * by_place, units[1]),
            ratios=ratios,
            deviations=deviations,
            like=facts.like is not None,
        )

    def only(self, places: Sequence[int]) -> Rows:
        """Return the same rows for a model of some of the coefficients."""
        at = [self.places.index(place) for place in places]
        units = self.to_user[0][np.ix_(at, at)], self.to_user[1][at]
        names = tuple(self.names[i] for i in at)
        return replace(self, places=tuple(places), names=names, to_user=units)

    def looked(self, plan: LookPlan, n: int, draws: int) -> tuple[tuple[Expected, Seen], ...]:
        """Look so many times at a table of n rows that these stand for."""
        return expected_looks(plan, self.family, self.described, self.z, n, draws=draws)

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
        for _ in range(_STEPS):
            terms = self.family.terms(x @ beta + beyond)
            information = (x.T * (times * terms.weight)) @ x
            step = np.linalg.pinv(information) @ (x.T @ (y - times * terms.mean))
            beta = beta + step / max(1.0, float(np.abs(x @ step).max()) / 4)
        if linear:
            scatter = float(np.square(y - x @ beta).mean())
        unit = self.to_user[0]
        covariance = scatter * len(self.z) / rows * unit @ np.linalg.pinv(information) @ unit.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))


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
    from scipy.optimize import brentq  # slow to import, and seldom needed

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

    def above(middle: float) -> float:
        return float(family.terms(eta + middle).mean.mean()) - facts.mean

    reach = _FAR + float(np.abs(eta).max())
    middle = brentq(above, -reach, reach, xtol=1e-12)
    mean, rng = family.terms(eta + middle).mean, np.random.default_rng(_SEEDS["responses"])
    if family.name == "binomial":
        times = _times(described, np.column_stack([eta, columns]))
        y = rng.binomial(np.maximum(times, 0).astype(int), np.clip(mean, 0, 1)).astype(float)
    else:
        y = np.minimum(_counts(rng, mean, facts.scatter), family.cap)
    base, unit = described.response
    return np.asarray((y - base) / unit), np.append(middle - float(x.mean(axis=0) @ slopes), slopes)


def _counts(rng: np.random.Generator, mean: Floats, scatter: float) -> Floats:
    """Draw counts whose variance is `scatter` times the mean."""
    if scatter > 1:
        few = np.maximum(mean, 1e-12) / (scatter - 1)
        return rng.negative_binomial(few, 1 / scatter).astype(float)
    if scatter == 1:
        return rng.poisson(mean).astype(float)
    noise = rng.standard_normal(len(mean)) * np.sqrt(scatter * mean)
    return np.asarray(np.maximum(np.rint(mean + noise), 0.0))


# ---- what a call says of them --------------------------------------------------------------------

Told = tuple[Floats, Floats, Sequence[bool]]
"""Variances of both sources, of sampling alone, and which are marked, in the user's units."""


def fitted(plan: LookPlan, rows: Rows, n: int) -> pd.DataFrame:
    """Predict what looks would say of a table of n rows.

    Returns
    -------
    DataFrame
        "std err", its parts "sampling" and "privacy", and "mark": nothing, "wide", or "no
        interval", where the numbers are missing; by coefficient, in the user's units.
    """
    found: list[Told] = []
    for draws in (_DRAWS, _MORE_DRAWS):
        looks = rows.looked(plan, n, draws)
        found = [_estimated(seen, rows, rows.places) for _, seen in looks]
        if _agree(found):
            break
    return _medians(found, rows.names)


def _agree(found: Sequence[Told]) -> bool:
    """Whether releases say the same: all or none has an interval, and errors are alike."""
    whole = np.array([variance for variance, _, _ in found])
    hidden = np.isnan(whole).mean(axis=0)
    if np.any((hidden > 0) & (hidden < 1)):
        return False
    low, high = np.quantile(whole[:, hidden == 0], (0.25, 0.75), axis=0)  # by definition
    return bool((high <= _APART**2 * low).all())


def fitted_chosen(plan: LookPlan, rows: Rows, n: int, *, fresh: bool) -> pd.DataFrame:
    """Predict what is said of chosen columns: by looks at them, or from the looks that chose."""
    taken, at = rows.looked(plan, n, _DRAWS), list(rows.places[1:])
    if not fresh:
        whole = range(len(rows.described.columns) + 1)
        return _medians([_estimated(s, rows, rows.places, whole) for _, s in taken], rows.names)
    own = rows.described.only(tuple(rows.described.columns[place - 1] for place in at))
    found = []
    for one, seen in taken:
        later = replace(one, described=own, plan=one.plan.at_chosen(len(at)))
        chosen = look_at_chosen(later, seen, point_of_chosen(seen, at), [0, *at])
        found.append(_estimated(chosen, rows, range(len(at) + 1)))
    return _medians(found, rows.names)


def fitted_once(
    plan: LookPlan, exclusive: Sequence[Sequence[int]], rows: Rows, n: int, noise: str | None
) -> pd.DataFrame:
    """Predict what one release of all moments would say: ``method="gram"``."""
    moments, places = expected_moments(rows.z, n), rows.places
    cost = Budget(max(plan.cost.eps, LEAST_EPS), plan.cost.delta)  # no call costs less
    found: list[Told] = []
    for draw in range(_DRAWS):
        account = Account(plan.protection, cost, np.random.default_rng([_SEEDS["releases"], draw]))
        part = account.line("coefficients", "gram release", cost)
        account.charge(None, "a plan")
        noisy = release_gram(moments, places, exclusive=exclusive, part=part, noise=noise)
        fit, unit = fit_gram(noisy, rows=n), rows.to_user[0]
        parts = fit.cov, fit.sampling.whole
        whole, sampled = (np.diag(unit @ part @ unit.T) for part in parts)
        found.append((whole, sampled, [False] * len(places)))
    return _medians(found, rows.names)


def _estimated(
    seen: Seen, rows: Rows, places: Sequence[int], among: Sequence[int] | None = None
) -> Told:
    found = estimates(seen, places, rows.names, rows.to_user, among=among)
    marked = [found.marks.get(name, NARROW) != NARROW for name in rows.names]
    return np.diag(found.covariance), np.diag(found.sampling), marked


def _medians(found: Sequence[Told], names: Sequence[str]) -> pd.DataFrame:
    """Return the medians of what several releases show."""
    whole, sampled, marked = (np.array(part) for part in zip(*found, strict=True))
    none = np.isnan(whole).mean(axis=0) > 0.5
    wide = marked.mean(axis=0) > 0.5
    # Missing numbers of few releases do not count.
    medians = (pd.DataFrame(part).median().to_numpy() for part in (whole, sampled))
    total, sampling = (np.where(none, np.nan, median) for median in medians)
    sampling = np.minimum(sampling, total)
    columns = {"std err": total, "sampling": sampling, "privacy": total - sampling}
    table = pd.DataFrame(columns, index=list(names)) ** 0.5
    return table.assign(
        mark=[NONE if n else WIDE if w else "" for n, w in zip(none, wide, strict=True)]
    )
