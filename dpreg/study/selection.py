"""Studies of selections: from a grid of settings to what a call under each would choose.

By the paper's method the law of the drawn model is exact where models are listed: rows are read
once and scores computed once per radius; each setting then costs one evaluation of the mechanism's
law (`dpreg.selection.probabilities`), or repeated draws from the tree where the space is too large
to list. The stages up to the draw are those of `dpreg.dp_select` with ``fit=None``.

No closed form gives the law of several looks at given rows, so they are made again and again, with
seeded noise of the very law of a private call.

Beside both stands the choice that needs no privacy: least squares with BIC, over the same models.
All that leaves this room is curator-only.

Tested in `tests/study/test_selection.py`, `tests/study/test_adaptive.py` and
`tests/study/test_bic.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.arrays import MOMENT_BITS, Bools, Floats, Ints
from dpreg.choice import choose
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.looks.described import Described
from dpreg.looks.families import Linear
from dpreg.looks.loop import laws_for_choice, look
from dpreg.looks.plan import LookPlan
from dpreg.looks.table import Table
from dpreg.moments import Moments, read_moments
from dpreg.privacy.account import Account
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.request import SelectionRequest
from dpreg.running import bar
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.contest import Contest
from dpreg.selection.draws import LARGEST_LIST
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.run import Preparation, design_of, prepare, space_of
from dpreg.selection.scoring import candidates as constrained
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.search import Tree
from dpreg.sources.reader import Reader
from dpreg.study.results import AdaptiveStudy, Drawn, Law, SelectionStudy, Setting

_LARGEST_TABLE: Final = 2**27
"""Models times settings: a gigabyte of probabilities."""
_LISTED: Final = 2**16
"""Spaces up to this size are listed, where nothing else was asked for."""
_LEAST: Final = 1e-12
"""Relative changes smaller than this are rounding."""
_NOISELESS: Final = Fraction(2**20)
"""A rate per grid unit at which the tree's noise decides nothing but ties."""


def _facts(design: Design, space: Space, request: SelectionRequest) -> dict[str, Any]:
    """Return the fields of `Study`; `request` is any of those that were studied together."""
    return {
        "formula": design.formula,
        "response": design.response.name,
        "kept": design.keep,
        "candidates": space.units,
        "n_models": space.size,
        "neighbors": request.protection.neighbors,
        "contributions": request.protection.contributions,
        "units": request.units,
        "hierarchy": request.hierarchy,
        "max_terms": request.max_terms,
    }


def _table(units: Sequence[Iterable[int]], size: int) -> Bools:
    """Return models as rows of a table over all units."""
    table = np.zeros((len(units), size), dtype=np.bool_)
    for row, model in zip(table, units, strict=True):
        row[list(model)] = True
    return table


# ---- the paper's method --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Case:
    """A setting at its radius: what a mechanism compares."""

    setting: Setting
    problem: Problem
    contest: Contest
    rate: Fraction

    def tree(self, space: Space, rate: Fraction, mechanism: str | None = None) -> Tree:
        return Tree(
            self.problem,
            space,
            mechanism=mechanism or self.setting.mechanism,
            t=rate,
            phi_int=self.contest.phi,
            psi_int=self.contest.psi,
            transform=self.contest.transform,
        )


def study(
    requests: Sequence[SelectionRequest],
    schema: object,
    reader: Reader,
    *,
    draws: int,
    seed: int,
    progress: bool,
) -> SelectionStudy:
    """Compute the law of the drawn model for each request; the requests share formula and space."""
    bounds = Schema.from_any(schema)
    prepared = [prepare(request, bounds, reader) for request in requests]
    first = requests[0]
    if unbounded := prepared[0].unbounded:
        raise ArgumentError(
            f"a study buys no bounds: declare those of {', '.join(unbounded)} in the schema."
        )
    design = design_of(first, prepared[0].schema)
    space = space_of(first, design)
    listed = _is_listed(requests, space)
    moments = run.read_rows(first, design, reader).selecting
    problems = {request.rho: Problem(moments, request.rho) for request in requests}
    cases = [
        _case(request, preparation, problems[request.rho], space, moments)
        for request, preparation in zip(requests, prepared, strict=True)
    ]
    shown = bar(cases, unit=" settings", shown=progress)
    if listed:
        models = space.models()
        scores, fits = _fits(cases, models, design, space, moments)
        chances = np.empty((len(models), len(cases)))
        chosen = np.empty(len(cases), dtype=np.int64)
        for s, case in enumerate(shown):
            totals = case.contest.totals(scores[case.problem.rho], models, space)
            chosen[s] = int(totals.argmin())
            chances[:, s] = selection_probabilities(totals, case.rate, case.setting.mechanism)
        bic, fit = bic_choice(space.columns(models), design, moments)
        law = Law(models, chances, fits, chosen, bic, fit, None)
    else:
        law = _drawn_law(shown, cases, design, space, moments, draws, seed)
    settings = tuple(case.setting for case in cases)
    facts = _facts(design, space, first)
    return SelectionStudy(**facts, rows=moments.rows, settings=settings, law=law)


def _is_listed(requests: Sequence[SelectionRequest], space: Space) -> bool:
    size, engine = space.size, requests[0].engine
    if engine == "auto":
        laplace = any(request.mechanism == "laplace" for request in requests)
        engine = "enumerate" if size <= (LARGEST_LIST if laplace else _LISTED) else "tree"
    if engine == "enumerate" and size * len(requests) > _LARGEST_TABLE:
        raise ArgumentError(
            f"{size} models under {len(requests)} settings are too many to list: set max_terms, "
            'ask for fewer settings, or use engine="tree".'
        )
    return engine == "enumerate"


def _case(
    request: SelectionRequest,
    preparation: Preparation,
    problem: Problem,
    space: Space,
    moments: Moments,
) -> _Case:
    sigma2 = request.sigma2
    tuning = run.Tuning(
        rho=request.rho,
        sigma2=sigma2 / request.clip**2 if isinstance(sigma2, Fraction) else None,
        # Where n is private dp_select uses a noisy count: here it is taken at its true value.
        rows=moments.rows,
    )
    contest = run.contest_of(request, preparation, tuning, problem, moments)
    phi, psi = run.penalties(request, preparation, tuning, contest, space)
    mechanism = preparation.draws.mechanism
    setting = Setting(
        eps=request.budget.eps,
        radius=request.rho * request.clip,
        penalty=request.penalty,
        mechanism=mechanism,
        phi=phi * request.clip**2,
        psi=psi * request.clip**2,
    )
    rate = effective_t(preparation.draws.eps_each, contest.score_range.width, mechanism)
    return _Case(setting, problem, contest.priced(phi, psi, space), rate)


def _drawn_law(
    shown: Iterable[_Case],
    cases: Sequence[_Case],
    design: Design,
    space: Space,
    moments: Moments,
    draws: int,
    seed: int,
) -> Law:
    """Estimate the law of each case from draws of the tree."""
    rng = np.random.default_rng(seed)
    found: list[list[tuple[int, ...]]] = []
    best: list[tuple[int, ...]] = []
    for case in shown:
        bits, tree = Bits(rng), case.tree(space, case.rate)
        found.append([tree.draw(bits).units for _ in range(draws)])
        best.append(case.tree(space, _NOISELESS, "permute-and-flip").draw(bits).units)
    bic_units = bic_by_steps(space, moments)
    distinct = sorted({*best, bic_units, *(units for drawn in found for units in drawn)})
    place = {units: i for i, units in enumerate(distinct)}
    models, bic = _table(distinct, len(space.units)), place[bic_units]
    counts = np.zeros((len(distinct), len(cases)), dtype=np.int64)
    for s, drawn in enumerate(found):
        np.add.at(counts[:, s], [place[units] for units in drawn], 1)
    chosen = np.array([place[units] for units in best], dtype=np.int64)
    _, fits = _fits(cases, models, design, space, moments)
    fit = bic_choice(space.columns(models[bic : bic + 1]), design, moments)[1]
    return Law(models, counts / draws, fits, chosen, bic, fit, draws)


def _fits(
    cases: Sequence[_Case], models: Bools, design: Design, space: Space, moments: Moments
) -> tuple[dict[Fraction, Ints], Floats]:
    """Return scores by radius, and each model's R-squared within each case's radius, (K, S).

    Scores are floors, so that half a unit more is right in the mean.
    """
    problems, columns = {case.problem.rho: case.problem for case in cases}, space.columns(models)
    scores = {rho: problem.scores(columns) for rho, problem in problems.items()}
    total = _total_squares(design, moments)
    squares = float(moments.as_float()[-1, -1])
    fits = {
        rho: 1 - (squares + (scores[rho] + 0.5) * float(problem.grid)) / total
        for rho, problem in problems.items()
    }
    return scores, np.stack([fits[case.problem.rho] for case in cases], axis=1)


# ---- looks ---------------------------------------------------------------------------------------


def simulate_choices(
    settings: Sequence[tuple[SelectionRequest, LookPlan]],
    design: Design,
    space: Space,
    reader: Reader,
    *,
    draws: int,
    seed: int,
    progress: bool,
) -> AdaptiveStudy:
    """Make the looks `draws` times under each setting, and choose from each.

    Parameters
    ----------
    settings : sequence of (SelectionRequest, LookPlan)
        They share formula and space.
    design : Design
    space : Space
    reader : Reader
        Of rows that can be read again: three or four passes a draw.
    draws, seed : int
    progress : bool
        Whether to show a bar over the draws.
    """
    (moments,) = read_moments(reader, design)
    units = bic_by_steps(space, moments)
    if space.size <= _LISTED:
        models = space.models()
        units = tuple(np.flatnonzero(models[bic_choice(space.columns(models), design, moments)[0]]))
    bic = _table([units], len(space.units))
    drawing, drawn = bar(total=len(settings) * draws, unit=" draws", shown=progress), []
    for place, (request, plan) in enumerate(settings):
        rng, told = np.random.default_rng([seed, place]), []
        for _ in range(draws):
            told.append(_choose(request, plan, design, space, reader, rng))
            drawing.update()
        reported, best, grouped = (_table(own, bic.size) for own in zip(*told, strict=True))
        models, back = np.unique(best, axis=0, return_inverse=True)
        fits = rsquared(space.columns(models), design, moments)
        drawn.append(Drawn(reported, best, grouped, fits[back.ravel()]))
    drawing.close()
    budgets = [(request.budget, plan.mechanism) for request, plan in settings]
    return AdaptiveStudy(
        **_facts(design, space, settings[0][0]),
        rows=moments.rows,
        settings=tuple((budget.eps, budget.delta, noise) for budget, noise in budgets),
        draws=draws,
        drawn=tuple(drawn),
        held=bic[0],
        bic_rsquared=float(rsquared(space.columns(bic), design, moments)[0]),
    )


def _choose(
    request: SelectionRequest,
    plan: LookPlan,
    design: Design,
    space: Space,
    reader: Reader,
    rng: np.random.Generator,
) -> tuple[tuple[int, ...], ...]:
    """Look once with seeded noise; return the terms found, those fitted, and those of groups."""
    account = Account(request.protection, request.budget, rng)
    opened = plan.open(account)
    account.charge(None, "a study")
    described = Described(tuple(range(1, len(design.columns))), levels=design.levels)
    seen = look(Table(reader, design, described, opened), Linear())
    alpha = float(request.false_inclusions)
    choice = choose(laws_for_choice(seen), space, false_inclusions=alpha)
    return choice.found, choice.model, tuple(unit for group in choice.groups for unit in group)


# ---- least squares with BIC ----------------------------------------------------------------------


def bic_by_steps(space: Space, moments: Moments) -> tuple[int, ...]:
    """Return units that no add, drop or swap improves: of low n log Q + columns log n.

    For spaces that are too large to list. The walk starts from the least model; a unit brings
    what it needs, and takes along what needs it.
    """
    units = frozenset(range(len(space.units)))
    needs = [frozenset(need) for need in space.requires] or [frozenset[int]()] * len(units)
    most = len(units) if space.max_units is None else space.max_units

    def added(model: frozenset[int]) -> set[frozenset[int]]:
        grown = {model | {u} | needs[u] for u in units - model}
        return {one for one in grown if len(one) <= most}

    def dropped(model: frozenset[int]) -> set[frozenset[int]]:
        return {model - {v for v in model if v == u or u in needs[v]} for u in model}

    def least(models: set[frozenset[int]]) -> tuple[float, frozenset[int]]:
        listed = sorted(models, key=sorted)
        values = _criterion(space.columns(_table(listed, len(units))), moments)
        return float(values.min()), listed[int(values.argmin())]

    model = frozenset[int]()
    while len(model) < space.min_units:
        model = least(added(model))[1]
    value = least({model})[0]
    while True:
        shorter = dropped(model)
        swaps = (one for fewer in shorter for one in added(fewer) if len(one) <= len(model))
        for steps in (added(model) | shorter, set(swaps)):
            near = {one for one in steps if len(one) >= space.min_units} - {model}
            found, step = least(near) if near else (value, model)
            if found < value - _LEAST * abs(value):
                value, model = found, step
                break
        else:
            return tuple(sorted(model))


def bic_choice(columns: Bools, design: Design, moments: Moments) -> tuple[int, float]:
    """Return the row of `columns` with the least BIC by least squares, and its R-squared."""
    best = int(_criterion(columns, moments).argmin())
    return best, float(rsquared(columns[best : best + 1], design, moments)[0])


def rsquared(columns: Bools, design: Design, moments: Moments) -> Floats:
    """Return the R-squared of each model's least squares fit, (K,)."""
    return np.asarray(1 - _residual(columns, moments) / _total_squares(design, moments))


def _total_squares(design: Design, moments: Moments) -> float:
    """Sum of squares of the stored response: about its mean if the formula has an intercept."""
    z = moments.as_float()
    about = z[0, -1] ** 2 / z[0, 0] if design.has_intercept and z[0, 0] else 0.0
    return max(float(z[-1, -1] - about), 1e-300)


def _criterion(columns: Bools, moments: Moments) -> Floats:
    """Return n log Q + columns log n of each model, (K,), of n complete rows."""
    rows = max(moments.cells[0][0] >> MOMENT_BITS, 2)
    floor = max(float(moments.as_float()[-1, -1]), 1.0) * 1e-15
    fits = rows * np.log(np.maximum(_residual(columns, moments), floor))
    return np.asarray(fits + math.log(rows) * columns.sum(axis=1))


def _residual(columns: Bools, moments: Moments) -> Floats:
    """Return the residual sum of squares of each model, (K,)."""
    z = moments.as_float()
    gram, cross, squares = z[:-1, :-1], z[:-1, -1], float(z[-1, -1])
    beta = constrained.solve(gram, cross, math.inf, columns).beta
    return np.asarray(squares + ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross)
