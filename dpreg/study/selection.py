"""From a grid of settings to the law of the drawn model under each: exact where models are listed.

Rows are read once and scores computed once per radius; each setting then costs one evaluation of
the mechanism's law (`dpreg.selection.probabilities`), or repeated draws from the tree where the
space is too large to list. The stages up to the draw are those of `dpreg.dp_select` with
``fit=None``. All that leaves this room is curator-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.moments import Moments
from dpreg.privacy.mechanisms import effective_t
from dpreg.request import SelectionRequest
from dpreg.running import bar
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.contest import Contest
from dpreg.selection.engine import LARGEST_LIST
from dpreg.selection.preparation import Preparation, design_of, prepare, space_of
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.sampler import Tree
from dpreg.sources.reader import Reader
from dpreg.study.bic import NOISELESS, bic_by_steps, bic_choice, total_squares
from dpreg.study.law import Law, Setting
from dpreg.study.results import SelectionStudy, facts_of

__all__ = ["study"]

_LISTED: Final = 2**16
"""Spaces up to this size are listed by ``engine="auto"``."""

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
    law = (
        _listed_law(cases, design, space, moments, progress)
        if listed
        else _drawn_law(cases, design, space, moments, draws, seed, progress)
    )
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


# ---- models listed: exact --------------------------------------------------------------------


def _listed_law(
    cases: Sequence[_Case], design: Design, space: Space, moments: Moments, progress: bool
) -> Law:
    models = space.models()
    columns = space.columns(models)
    scores = {case.problem.rho: case.problem.scores(columns) for case in _by_radius(cases)}
    probabilities = np.empty((len(models), len(cases)))
    chosen = np.empty(len(cases), dtype=np.int64)
    for s, case in enumerate(bar(cases, unit=" settings", shown=progress)):
        totals = case.contest.totals(scores[case.problem.rho], models, space)
        chosen[s] = int(totals.argmin())
        probabilities[:, s] = selection_probabilities(totals, case.rate, case.setting.mechanism)
    bic, bic_rsquared = bic_choice(columns, design, moments)
    return Law(
        models=models,
        probabilities=probabilities,
        rsquared=_rsquared(cases, scores, design, moments),
        chosen=chosen,
        bic=bic,
        bic_rsquared=bic_rsquared,
        draws=None,
    )


# ---- models drawn from the tree --------------------------------------------------------------


def _drawn_law(
    cases: Sequence[_Case],
    design: Design,
    space: Space,
    moments: Moments,
    draws: int,
    seed: int,
    progress: bool,
) -> Law:
    rng = np.random.default_rng(seed)
    found: list[list[tuple[int, ...]]] = []
    best: list[tuple[int, ...]] = []
    for case in bar(cases, unit=" settings", shown=progress):
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
    columns = space.columns(models)
    scores = {case.problem.rho: case.problem.scores(columns) for case in _by_radius(cases)}
    at = place[bic_units]
    return Law(
        models=models,
        probabilities=counts / draws,
        rsquared=_rsquared(cases, scores, design, moments),
        chosen=np.array([place[units] for units in best], dtype=np.int64),
        bic=at,
        bic_rsquared=bic_choice(columns[at : at + 1], design, moments)[1],
        draws=draws,
    )


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


# ---- what both share -------------------------------------------------------------------------


def _rsquared(
    cases: Sequence[_Case],
    scores: dict[Fraction, Ints],
    design: Design,
    moments: Moments,
) -> Floats:
    """R-squared of each model's constrained fit, (K, S); scores are floors, so half a unit more."""
    total = max(total_squares(design, moments), 1e-300)
    squares = float(moments.as_float()[-1, -1])
    by_radius = {
        case.problem.rho: 1
        - (squares + (scores[case.problem.rho] + 0.5) * float(case.problem.grid)) / total
        for case in _by_radius(cases)
    }
    return np.stack([by_radius[case.problem.rho] for case in cases], axis=1)


def _by_radius(cases: Sequence[_Case]) -> list[_Case]:
    """One case for each radius."""
    return list({case.problem.rho: case for case in cases}.values())
