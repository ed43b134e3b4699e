r"""Rows that a plan makes up, or is given, to stand for those to come, and what calls say of them.

No confidential row is read. Made-up raw columns are uniform between their bounds; levels are
equally frequent, or as frequent as `sd` of their 0/1 columns implies; columns with bounds (0, 1)
and an `sd` hold 0 and 1. Numbers are drawn from normal ones with one correlation between any two.
The formula then makes its own columns of them: powers, products and levels are related as they will
be. A column that `sd` speaks of is drawn towards its mean until it varies so much given the others.
Without a formula there is one term a column, in [-1, 1]. Everything comes from a fixed seed, so
that a plan is the same every time.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.linalg import cholesky

from dpreg.api.context import exclusive_groups
from dpreg.arrays import CELL_BITS, Floats
from dpreg.columns import LEAST_EPS, Numeric
from dpreg.errors import ArgumentError, shown
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram
from dpreg.formula.design import Design, build_design
from dpreg.looks.expected import Expected, expected_moments
from dpreg.looks.families import Family, Linear
from dpreg.looks.law import NARROW, estimates
from dpreg.looks.loop import Seen, look, look_at_chosen, point_of_chosen
from dpreg.looks.model import LinearModel, LookedModel, columns_of
from dpreg.looks.plan import LookPlan
from dpreg.looks.records import Described
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
_SEEDS: Final = {"columns": 24, "looks": 35, "responses": 36, "releases": 37}  # by definition
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
    beta : float64 array, shape (p,)
        Coefficients of all stored columns without the constant.
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
    design : Design
    model : LookedModel
    """

    names: tuple[str, ...]
    beta: Floats
    units: tuple[tuple[int, ...], ...]
    sigma: float
    models: int
    widest: int
    given: Mapping[int, float]
    labels: tuple[str, ...]
    places: tuple[int, ...]
    design: Design
    model: LookedModel

    def each(self, values: Floats) -> list[Floats]:
        """Return the values of the columns of each term with an effect."""
        return [values[[j - 1 for j in unit]] for unit in self.units[: len(self.names)]]

    @property
    def scaled(self) -> tuple[float, ...]:
        """|beta|_1 of each term in stored units (response divided by its scale and clip)."""
        return tuple(float(own.sum()) for own in self.each(np.abs(self.beta)))


def _designed(facts: Facts) -> tuple[Design, LookedModel]:
    """Build the design, as the call that is planned would; without a formula of numbers."""
    asked, told = facts.asked, facts.request
    if asked is not None:
        known, model = asked.model(str(facts.formula), Schema.from_any(facts.schema))
        design = model.design(known, told.keep)
        model.check(design, (), "plan" if facts.chooses else "plan_glm")
        family = model.family(design)
        if facts.mean >= family.cap:
            said = shown(facts.mean)
            raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {said}.")
        return design, model
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
    labels, offered, free = names[1:], space.units, set().union(*space.unit_columns)
    if facts.formula is None:
        labels = (*effects, *(f"column {j}" for j in range(len(effects) + 1, len(names))))
        offered, place = labels, {name: j for j, name in enumerate(effects, 1)}
    else:
        place = {name: j for j, name in enumerate(names) if j}
        place |= {term.name: term.columns[0] for term in design.terms if len(term.columns) == 1}
        place.pop("Intercept", None)
    _check_known(effects, [name for name in place if place[name] in free], "effects")
    _check_known(facts.sd, place, "sd")
    at = [place[name] for name in effects]
    if len(set(at)) < len(at):
        raise ArgumentError("effects names one column twice, by its term and by its own name.")
    beta = np.zeros(len(names) - 1)
    for j, value in zip(at, effects.values(), strict=True):
        beta[j - 1] = value / (design.response.width / design.columns[j].width)
    given = {place[name]: sd / design.columns[place[name]].width for name, sd in facts.sd.items()}
    sigma = facts.sigma / design.response.width
    sizes = [*np.abs(beta[beta != 0]), sigma, *(sd**2 for sd in given.values())]
    if not all(_SIZES[0] <= size <= _SIZES[1] for size in sizes):
        raise ArgumentError(
            "effects, sigma or sd are out of all proportion to the bounds of the schema: in scaled "
            "units they must lie between 1e-60 and 1e60."
        )
    both = zip(offered, space.unit_columns, strict=True)
    units = sorted(both, key=lambda one: not set(at) & set(one[1]))
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
        units=tuple(columns for _, columns in units),
        sigma=sigma,
        models=space.size,
        widest=len(space.keep_columns) + sum(widths),
        given=given,
        labels=labels,
        places=tuple(j - 1 for j in at),
        design=design,
        model=model,
    )


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
    known = {design.columns[j].name: sd * design.columns[j].width for j, sd in given.items()}
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
    blocks = []
    for chunk in source.chunks(read, _MOST_ROWS):
        nobody = np.zeros(len(next(iter(chunk.values()))))  # whatever stands there is not used
        blocks.append(design.block({outcome: nobody, **chunk}))
    z = np.concatenate([block[block[:, 0] > 0] for block in blocks])[:_MOST_ROWS]
    x = np.ascontiguousarray(z[:, 1:-1])
    numbers = [j - 1 for j in given if not design.columns[j].levels]
    if numbers:
        wanted = np.array([given[j + 1] for j in numbers]) / deviations_of(x)[numbers]
        means = x[:, numbers].mean(axis=0)
        x[:, numbers] = np.clip(means + (x[:, numbers] - means) * wanted, -1.0, 1.0)
    if len(x) <= 2 * x.shape[1] + 2:
        raise ArgumentError(
            "like must have complete rows of the formula's columns, more than twice as many as "
            "the formula has columns."
        )
    response = np.ascontiguousarray(z[:, -1]) if own else None
    return x, _residuals(x, response, skewed=skewed), response


def deviations_of(x: Floats) -> Floats:
    """Return the standard deviation of each column given the others, in these rows: (p,)."""
    scale, inverse = _precision(x)
    return np.asarray(scale / np.sqrt(np.maximum(np.diag(inverse), 1.0)))


def explained_by(x: Floats, beta: Floats, units: Iterable[Sequence[int]]) -> Floats:
    """Return the variance that each set of columns, from 1, explains given the others."""
    (scale, inverse), found = _precision(x), []
    for at in ([j - 1 for j in unit] for unit in units):
        own = scale[at] * beta[at]
        found.append(own @ np.linalg.pinv(inverse[np.ix_(at, at)], hermitian=True) @ own)
    return np.array(found)


def _precision(x: Floats) -> tuple[Floats, Floats]:
    """Return the columns' standard deviations, and the inverse of their correlations."""
    centred = x - x.mean(axis=0)
    moments = centred.T @ centred / len(centred)
    scale = np.sqrt(np.maximum(np.diag(moments), np.finfo(float).tiny))
    return scale, np.linalg.pinv(moments / np.outer(scale, scale), hermitian=True)


def _raw(
    design: Design, known: Mapping[str, float], correlation: float, rows: int, *, skewed: bool
) -> pd.DataFrame:
    """Make up the raw columns that a formula reads."""
    numeric = [name for name in design.needed[1:] if isinstance(design.schema[name], Numeric)]
    normal = dict(zip(numeric, _normal(rows, len(numeric), correlation).T, strict=True))
    rng = np.random.default_rng([_SEEDS["columns"], 1])
    table: dict[str, Any] = {}
    for name in design.needed[1:]:
        declared = design.schema[name]
        if isinstance(declared, Numeric):
            table[name] = _numbers(declared, normal[name], known.get(name), skewed=skewed)
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
    if (low, high) == (0, 1) and (skewed or spread is not None):
        share = _RARE
        if spread is not None:
            share = 0.5 - math.sqrt(max(0.25 - spread**2, 0.0))  # by definition
        at_least_two = max(round(share * len(normal)), 2)
        return (np.argsort(np.argsort(-normal)) < at_least_two).astype(float)
    way = np.minimum(_LOW * np.exp(_SKEW * normal), 1.0)
    if not skewed:
        way = (np.argsort(np.argsort(normal)) + 0.5) / len(normal)
    return np.asarray(low + (high - low) * way)


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
    variance : (p,) array
        Of all stored columns given the others.
    strength : (k,) array
        What each term with an effect explains, given the other terms: a variance.
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
    variance: Floats = field(repr=False)
    strength: Floats = field(repr=False)
    like: bool

    @classmethod
    def of(cls, facts: Facts, told: Stated, *, skewed: bool = False) -> Rows:
        """Assume rows for a call; `skewed` ones are of the second kind of the module."""
        rare = facts.mean if facts.family != "binomial" else min(facts.mean, 1 - facts.mean)
        more = min(_EVENTS / max(rare, 1 / _ROWS[1]), _ROWS[1]) if facts.family else 0
        design, model, least = told.design, told.model, max(_ROWS[0], int(more))
        family, described = model.family(design), model.described(design)
        at = columns_of(model, design)
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
        return cls(
            family=family,
            described=described,
            z=np.column_stack([np.ones(len(y)), x, y]),
            beta=beta,
            places=tuple(range(len(described.columns) + 1))[-len(at) :],
            names=tuple(("Intercept", *told.labels)[j] for j in at),
            to_user=model.to_user_units(design, at),
            variance=deviations_of(x) ** 2,
            strength=explained_by(x, told.beta, told.units[: len(told.names)]),
            like=facts.like is not None,
        )

    def only(self, places: Sequence[int]) -> Rows:
        """Return the same rows for a model of some of the coefficients."""
        at = [self.places.index(place) for place in places]
        units = self.to_user[0][np.ix_(at, at)], self.to_user[1][at]
        names = tuple(self.names[i] for i in at)
        return replace(self, places=tuple(places), names=names, to_user=units)

    def looked(self, plan: LookPlan, n: int, draw: int) -> tuple[Expected, Seen]:
        """Look at a table of n rows that these stand for; each draw has noise of its own."""
        rng = np.random.default_rng([_SEEDS["looks"], draw])
        rows = Expected(plan, self.described, self.z, n, rng)
        return rows, look(rows, self.family)

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
    if described.trials is None:
        return np.ones(len(z))
    return described.trials.of(np.ldexp(z.T, CELL_BITS))


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


def by_looks(plan: LookPlan, rows: Rows, n: int, draw: int) -> Told:
    """Say what looks say of a table of n rows: of all its columns, or of those that are chosen."""
    one, seen = rows.looked(plan, n, draw)
    places: Sequence[int] = rows.places
    among = range(len(rows.described.columns) + 1) if plan.chooses else None
    if plan.later:
        at = list(places[1:])
        own = rows.described.only(tuple(rows.described.columns[place - 1] for place in at))
        later = replace(one, described=own, plan=plan.at_chosen(len(at)))
        seen = look_at_chosen(later, seen, point_of_chosen(seen, at), [0, *at])
        places, among = range(len(at) + 1), None
    found = estimates(seen, places, rows.names, rows.to_user, among=among)
    marked = [found.marks.get(name, NARROW) != NARROW for name in rows.names]
    return np.diag(found.covariance), np.diag(found.sampling), marked


def by_moments(plan: LookPlan, rows: Rows, n: int, draw: int, told: Stated, noise: Any) -> Told:
    """Say what one release of all moments says: ``method="gram"``."""
    moments, places = expected_moments(rows.z, n), rows.places
    cost = Budget(max(plan.cost.eps, LEAST_EPS), plan.cost.delta)  # no call costs less
    account = Account(plan.protection, cost, np.random.default_rng([_SEEDS["releases"], draw]))
    part = account.line("coefficients", "gram release", cost)
    account.charge(None, "a plan")
    exclusive = exclusive_groups(told.design, places)
    noisy = release_gram(moments, places, exclusive=exclusive, part=part, noise=noise)
    fit, unit = fit_gram(noisy, rows=n), rows.to_user[0]
    whole, sampled = (np.diag(unit @ one @ unit.T) for one in (fit.cov, fit.sampling.whole))
    return whole, sampled, [False] * len(places)


def predicted(release: Callable[[int], Told], names: Sequence[str]) -> pd.DataFrame:
    """Return the medians of what the releases of a call would say.

    Returns
    -------
    DataFrame
        "std err", its parts "sampling" and "privacy", and "mark": nothing, "wide", or "no
        interval", where the numbers are missing; by coefficient, in the user's units.
    """
    found: list[Told] = []
    for draws in (_DRAWS, _MORE_DRAWS):
        found += map(release, range(len(found), draws))
        whole, sampled, marked = (np.array(part) for part in zip(*found, strict=True))
        if _agree(whole):
            break
    none = np.isnan(whole).mean(axis=0) > 0.5
    wide = marked.mean(axis=0) > 0.5
    # Missing numbers of few releases do not count.
    medians = (pd.DataFrame(part).median().to_numpy() for part in (whole, sampled))
    total, sampling = (np.where(none, np.nan, median) for median in medians)
    sampling = np.minimum(sampling, total)
    columns = {"std err": total, "sampling": sampling, "privacy": total - sampling}
    table = pd.DataFrame(columns, index=list(names)) ** 0.5
    return table.assign(mark=np.where(none, NONE, np.where(wide, WIDE, "")))


def _agree(whole: Floats) -> bool:
    """Whether the releases agree: all or none have an interval, and their errors are alike."""
    hidden = np.isnan(whole).mean(axis=0)
    if np.any((hidden > 0) & (hidden < 1)):
        return False
    low, high = np.quantile(whole[:, hidden == 0], (0.25, 0.75), axis=0)  # by definition
    return bool((high <= _APART**2 * low).all())
