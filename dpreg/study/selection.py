"""From a grid of settings to the law of the drawn model under each: exact where models are listed.

Rows are read once and scores computed once per radius; each setting then costs one evaluation of
the mechanism's law (`dpreg.selection.probabilities`), or repeated draws from the tree where the
space is too large to list. The stages up to the draw are those of `dpreg.dp_select` with
``fit=None``. All that leaves this room is curator-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.moments import Moments
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.request import SelectionRequest
from dpreg.running import bar
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.contest import Contest
from dpreg.selection.draws import LARGEST_LIST
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.run import Preparation, design_of, prepare, space_of
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.search import Tree
from dpreg.sources.reader import Reader
from dpreg.study.bic import LISTED, NOISELESS, bic_by_steps, bic_choice, total_squares
from dpreg.study.law import Law, Setting
from dpreg.study.results import SelectionStudy, facts_of

__all__ = ["study"]

_LARGEST_TABLE: Final = 2**27
"""Models times settings: a gigabyte of probabilities."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A setting at its radius: what a mechanism compares."""

    setting: Setting
    problem: Problem
    contest: Contest
    rate: Fraction


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
        law = _listed_law(shown, cases, design, space, moments)
    else:
        law = _drawn_law(shown, cases, design, space, moments, draws, seed)
    return SelectionStudy(
        **facts_of(design, space, first),
        rows=moments.rows,
        settings=tuple(case.setting for case in cases),
        law=law,
    )


def _is_listed(requests: Sequence[SelectionRequest], space: Space) -> bool:
    size, engine = space.size, requests[0].engine
    if engine == "auto":
        laplace = any(request.mechanism == "laplace" for request in requests)
        engine = "enumerate" if size <= (LARGEST_LIST if laplace else LISTED) else "tree"
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


def _listed_law(
    shown: Iterable[_Case],
    cases: Sequence[_Case],
    design: Design,
    space: Space,
    moments: Moments,
) -> Law:
    """Compute the law of each case, all models listed: exact."""
    models = space.models()
    scores, rsquared = _fits(cases, models, design, space, moments)
    probabilities = np.empty((len(models), len(cases)))
    chosen = np.empty(len(cases), dtype=np.int64)
    for s, case in enumerate(shown):
        totals = case.contest.totals(scores[case.problem.rho], models, space)
        chosen[s] = int(totals.argmin())
        probabilities[:, s] = selection_probabilities(totals, case.rate, case.setting.mechanism)
    bic, bic_rsquared = bic_choice(space.columns(models), design, moments)
    return Law(models, probabilities, rsquared, chosen, bic, bic_rsquared, None)


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
        bits = Bits(rng)
        tree = _tree(case, space, case.rate)
        found.append([tree.draw(bits).units for _ in range(draws)])
        best.append(_tree(case, space, NOISELESS, "permute-and-flip").draw(bits).units)
    bic_units = bic_by_steps(space, moments)
    distinct = sorted({*best, bic_units, *(units for drawn in found for units in drawn)})
    place = {units: i for i, units in enumerate(distinct)}
    models = np.zeros((len(distinct), len(space.units)), dtype=np.bool_)
    for i, units in enumerate(distinct):
        models[i, list(units)] = True
    counts = np.zeros((len(distinct), len(cases)), dtype=np.int64)
    for s, drawn in enumerate(found):
        np.add.at(counts[:, s], [place[units] for units in drawn], 1)
    chosen, bic = np.array([place[units] for units in best], dtype=np.int64), place[bic_units]
    _, rsquared = _fits(cases, models, design, space, moments)
    fit = bic_choice(space.columns(models[bic : bic + 1]), design, moments)[1]
    return Law(models, counts / draws, rsquared, chosen, bic, fit, draws)


def _tree(case: _Case, space: Space, rate: Fraction, mechanism: str | None = None) -> Tree:
    return Tree(
        case.problem,
        space,
        mechanism=mechanism or case.setting.mechanism,
        t=rate,
        phi_int=case.contest.phi,
        psi_int=case.contest.psi,
        transform=case.contest.transform,
    )


def _fits(
    cases: Sequence[_Case], models: Bools, design: Design, space: Space, moments: Moments
) -> tuple[dict[Fraction, Ints], Floats]:
    """Return scores by radius, and each model's R-squared within each case's radius, (K, S).

    Scores are floors, so that half a unit more is right in the mean.
    """
    problems, columns = {case.problem.rho: case.problem for case in cases}, space.columns(models)
    scores = {rho: problem.scores(columns) for rho, problem in problems.items()}
    total = max(total_squares(design, moments), 1e-300)
    squares = float(moments.as_float()[-1, -1])
    fits = {
        rho: 1 - (squares + (scores[rho] + 0.5) * float(problem.grid)) / total
        for rho, problem in problems.items()
    }
    return scores, np.stack([fits[case.problem.rho] for case in cases], axis=1)
