"""Studies of selections: from a grid of settings to what a call under each would choose.

By the paper's method the law of the drawn model is exact where models are listed: rows are read
once and scores computed once per radius; each setting then costs one evaluation of the mechanism's
law (`dpreg.selection.probabilities`), or repeated draws from the tree where the space is too large
to list. The stages up to the draw are those of `dpreg.dp_select` with ``fit=None``.

No closed form gives the law of several looks at given rows, so they are made again and again, with
seeded noise of the very law of a private call.

Beside both stands the choice that needs no privacy: least squares with BIC, over the same models.
All that leaves this room is curator-only.

Studies check their arguments as `dpreg.dp_select` does, run its stages up to the draw, and take the
law of the draw in place of a draw.

Tested in `tests/study/test_selection.py`, `tests/study/test_adaptive.py` and
`tests/study/test_bic.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from dpreg.api.select import ByLooks, choose_by_looks
from dpreg.arrays import MOMENT_BITS, Bools, Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design, undeclared
from dpreg.looks.families import Linear
from dpreg.moments import Moments, read_moments
from dpreg.options import PCLS, Amount, Amounts, MethodLike, SchemaLike, Table, unpacked
from dpreg.planning.facts import sized
from dpreg.privacy.account import Account
from dpreg.privacy.budget import exact
from dpreg.privacy.composition import DrawPlan
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.request import Arguments, SelectionRequest, answered_by, count, method_of, names
from dpreg.running import bar
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.contest import Contest
from dpreg.selection.draws import LARGEST_LIST, Searched
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.run import Preparation
from dpreg.selection.scoring import candidates as constrained
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space, design_of, space_of
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.search import Tree
from dpreg.sources import as_source
from dpreg.sources.reader import Reader, showing
from dpreg.study.results import AdaptiveStudy, Law, SelectionStudy, Setting
from dpreg.study.simulation import several

_LARGEST_TABLE: Final = 2**27
"""Models times settings: a gigabyte of probabilities."""
_LISTED: Final = 2**16
"""Spaces up to this size are listed, where nothing else was asked for."""
_LEAST: Final = 1e-12
"""Relative changes smaller than this are rounding."""
_NOISELESS: Final = Fraction(2**20)
"""A rate per grid unit at which the tree's noise decides nothing but ties."""

Units: TypeAlias = tuple[int, ...]
Outcome: TypeAlias = tuple[Units, ...]
"""What one draw gives: the units of one set, or of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """The rows of a study, and the models on offer.

    Attributes
    ----------
    request : SelectionRequest
        Any of those that are studied together: they share formula and space.
    design : Design
    space : Space
    moments : Moments
        Exact.
    draws, seed : int
        Of what has to be drawn.
    progress : bool
        Whether to show bars.
    """

    request: SelectionRequest
    design: Design
    space: Space
    moments: Moments
    draws: int
    seed: int
    progress: bool

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of `dpreg.study.results.Study` that no setting changes."""
        design, space, request = self.design, self.space, self.request
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
            "rows": self.moments.rows,
        }

    def least_squares(self, models: Bools) -> tuple[Floats, Floats]:
        """Return BIC and R-squared of each model's least squares fit, (K,)."""
        bic, left = least_squares(self.space.columns(models), self.moments)
        return bic, 1 - left / total_squares(self.design, self.moments)

    def best_by_bic(self) -> Units:
        """Return the units that least squares with BIC chooses: of all models, or by steps."""
        if self.space.size > _LISTED:
            return bic_by_steps(self.space, self.moments)
        models = self.space.models()
        return tuple(np.flatnonzero(models[self.least_squares(models)[0].argmin()]))

    def tallied(
        self, drawn: Sequence[Sequence[Outcome]], bic: Outcome, more: Iterable[Outcome] = ()
    ) -> tuple[list[Outcome], Bools, Floats]:
        """Return the outcomes that were drawn, under BIC, or named; as sets (K, m, q); shares."""
        counts = [Counter(own) for own in drawn]
        distinct = sorted({bic, *more}.union(*counts))
        shares = np.array([[own[one] / own.total() for own in counts] for one in distinct])
        size = len(self.space.units)
        sets = [_table(part, size) for part in zip(*distinct, strict=True)]
        return distinct, np.stack(sets, axis=1), shares


def _table(units: Sequence[Iterable[int]], size: int) -> Bools:
    """Return models as rows of a table over all units."""
    table = np.zeros((len(units), size), dtype=np.bool_)
    for row, model in zip(table, units, strict=True):
        row[list(model)] = True
    return table


# ---- the paper's method --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Case:
    """A setting at its radius: what a mechanism compares, and how it draws."""

    setting: Setting
    problem: Problem
    contest: Contest
    plan: DrawPlan

    @classmethod
    def of(cls, prepared: Preparation, problem: Problem, studied: Studied) -> _Case:
        request, plan = prepared.request, prepared.plan
        unit, moments = request.clip**2, studied.moments
        # Where n is private dp_select uses a noisy count: here it is taken at its true value.
        tuning = run.Tuning(rho=request.rho, sigma2=request.known_sigma2, rows=moments.rows)
        contest = run.contest_of(prepared, tuning, problem, moments)
        phi, psi = run.penalties(prepared, tuning, contest, studied.space)
        price, radius = request.penalty, float(request.rho * request.clip)
        told = price if isinstance(price, str) else float(price)
        key = float(request.budget.eps), radius, told, plan.mechanism
        setting = Setting(key, phi * unit, psi * unit)
        return cls(setting, problem, contest.priced(phi, psi, studied.space), plan)

    def tree(self, space: Space, plan: DrawPlan) -> Tree:
        return Searched(self.problem, space, self.contest, plan).tree


def study_paper(
    requests: Sequence[SelectionRequest], reader: Reader, known: Schema, **drawn: Any
) -> SelectionStudy:
    """Compute the law of the drawn model for each request; `drawn` is for `Studied`."""
    first, design = requests[0], design_of(requests[0], known)
    prepared = [run.prepare(one, design, reader, one.account()) for one in requests]
    space = space_of(first, design)
    made = _listed_law if is_listed(requests, space) else _drawn_law
    moments = run.read_rows(first, design, reader).selecting
    studied = Studied(request=first, design=design, space=space, moments=moments, **drawn)
    problems = {one.rho: Problem(moments, one.rho) for one in requests}
    cases = [_Case.of(one, problems[one.request.rho], studied) for one in prepared]
    law, chosen = made(cases, studied)
    settings = tuple(case.setting for case in cases)
    return SelectionStudy(**studied.facts, settings=settings, law=law, chosen=chosen)


def is_listed(requests: Sequence[SelectionRequest], space: Space) -> bool:
    """Whether all models are listed; refuse what would not fit into memory."""
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


def _listed_law(cases: Sequence[_Case], studied: Studied) -> tuple[Law, Ints]:
    """Compute the law of each case over all models, and its choice without noise."""
    space = studied.space
    models = space.models()
    scores, fits = _fits(cases, models, studied)
    chances, chosen = np.empty(fits.shape), np.empty(len(cases), dtype=np.int64)
    for s, case in enumerate(bar(cases, unit=" settings", shown=studied.progress)):
        totals = case.contest.totals(scores[case.problem.rho], models, space)
        chosen[s] = int(totals.argmin())
        width, mechanism = case.contest.score_range.width, case.plan.mechanism
        rate = effective_t(case.plan.eps_each, width, mechanism)
        chances[:, s] = selection_probabilities(totals, rate, mechanism)
    bic, own = studied.least_squares(models)
    best = int(bic.argmin())
    return Law(models, chances, fits, best, float(own[best])), chosen


def _drawn_law(cases: Sequence[_Case], studied: Studied) -> tuple[Law, Ints]:
    """Estimate the law of each case from draws of the tree."""
    rng, space = np.random.default_rng(studied.seed), studied.space
    found: list[list[Outcome]] = []
    best: list[Outcome] = []
    for case in bar(cases, unit=" settings", shown=studied.progress):
        bits, tree = Bits(rng), case.tree(space, case.plan)
        found.append([(tree.draw(bits).units,) for _ in range(studied.draws)])
        eps = _NOISELESS * case.contest.score_range.width
        sure = replace(case.plan, mechanism="permute-and-flip", eps_each=eps)
        best.append((case.tree(space, sure).draw(bits).units,))
    bic = (studied.best_by_bic(),)
    distinct, sets, shares = studied.tallied(found, bic, best)
    models, at = sets[:, 0], distinct.index(bic)
    fits, chosen = _fits(cases, models, studied)[1], np.array([distinct.index(one) for one in best])
    own = float(studied.least_squares(models)[1][at])
    return Law(models, shares, fits, at, own, studied.draws), chosen


def _fits(
    cases: Sequence[_Case], models: Bools, studied: Studied
) -> tuple[dict[Fraction, Ints], Floats]:
    """Return scores by radius, and each model's R-squared within each case's radius, (K, S).

    Scores are floors, so that half a unit more is right in the mean.
    """
    problems = {case.problem.rho: case.problem for case in cases}
    columns = studied.space.columns(models)
    scores = {rho: problem.scores(columns) for rho, problem in problems.items()}
    total = total_squares(studied.design, studied.moments)
    squares = float(studied.moments.as_float()[-1, -1])
    fits = {
        rho: 1 - (squares + (scores[rho] + 0.5) * float(problem.grid)) / total
        for rho, problem in problems.items()
    }
    return scores, np.stack([fits[case.problem.rho] for case in cases], axis=1)


# ---- looks ---------------------------------------------------------------------------------------


def study_looks(
    requests: Sequence[SelectionRequest], reader: Reader, known: Schema, **drawn: Any
) -> AdaptiveStudy:
    """Make the looks of each request again and again, and choose from each; as `study_paper`.

    The rows can be read again: three passes a draw.
    """
    ways = [ByLooks.of(request, (reader, known)) for request in requests]
    design = ways[0].context.trial
    for way in ways:
        way.refuses(reader.source.rows)
    space, (moments,) = space_of(requests[0], design), read_moments(reader, design)
    studied = Studied(request=requests[0], design=design, space=space, moments=moments, **drawn)
    rngs = [np.random.default_rng([studied.seed, place]) for place in range(len(ways))]
    found = [list[Outcome]() for _ in ways]
    turns = [place for place in range(len(ways)) for _ in range(studied.draws)]
    for place in bar(turns, unit=" draws", shown=studied.progress):
        found[place].append(_choose(ways[place], space, rngs[place]))
    asked = [(float(one.budget.eps), float(one.budget.delta)) for one in requests]
    keys = [(*pair, way.plan().mechanism) for pair, way in zip(asked, ways, strict=True)]
    units = studied.best_by_bic()
    bic: Outcome = (units, units, ())
    distinct, outcomes, shares = studied.tallied(found, bic)
    fits, at = studied.least_squares(outcomes[:, 1])[1], distinct.index(bic)
    law = Law(outcomes, shares, fits[:, None], at, float(fits[at]), studied.draws)
    return AdaptiveStudy(**studied.facts, settings=tuple(map(Setting, keys)), law=law)


def _choose(way: ByLooks, space: Space, rng: np.random.Generator) -> Outcome:
    """Look once with seeded noise; return the terms found, those fitted, and those of groups."""
    account = Account(way.request.protection, way.request.budget, rng)
    opened = way.open(account)
    account.charge(None, "a study")
    alpha = float(way.request.false_inclusions)
    choice = choose_by_looks(way.table(opened)[1], Linear(), space, alpha).choice
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
        values, _ = least_squares(space.columns(_table(listed, len(units))), moments)
        return float(values.min()), listed[int(values.argmin())]

    model = frozenset[int]()
    value = least({model})[0]
    while True:
        shorter = dropped(model)
        swaps = (one for fewer in shorter for one in added(fewer) if len(one) <= len(model))
        for steps in (added(model) | shorter, set(swaps)):
            near = steps - {model}
            found, step = least(near) if near else (value, model)
            if found < value - _LEAST * abs(value):
                value, model = found, step
                break
        else:
            return tuple(sorted(model))


def least_squares(columns: Bools, moments: Moments) -> tuple[Floats, Floats]:
    """Return n log Q + columns log n of each model's least squares fit, (K,), and Q, of n rows."""
    z, rows = moments.as_float(), max(moments.cells[0][0] >> MOMENT_BITS, 2)
    gram, cross, squares = z[:-1, :-1], z[:-1, -1], float(z[-1, -1])
    beta = constrained.solve(gram, cross, math.inf, columns).beta
    left = squares + ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross
    bic = rows * np.log(np.maximum(left, max(squares, 1.0) * 1e-15))  # precision
    return np.asarray(bic + math.log(rows) * columns.sum(axis=1)), left


def total_squares(design: Design, moments: Moments) -> float:
    """Sum of squares of the stored response: about its mean if the formula has an intercept."""
    z = moments.as_float()
    about = z[0, -1] ** 2 / z[0, 0] if design.has_intercept and z[0, 0] else 0.0
    return max(float(z[-1, -1] - about), 1e-300)


# ---- the call ------------------------------------------------------------------------------------

_SAME: Final[Mapping[str, Any]] = {"shares": None, "draws": 1, "fit": None, "unsafe_seed": None}
"""Arguments of `dp_select` that are the same in every study of a selection."""


def _selection_study(asked: Arguments) -> Any:
    """Answer `selection_study`: a request a combination, all on the same rows."""
    call = {**unpacked(asked), "keep": names(asked["keep"], "keep")}
    if call["draws"] != 1 and isinstance(asked["method"], PCLS):
        raise ArgumentError("draws: a study computes the law of one draw.")
    looks = method_of(call["method"], "method", ("pcls", "adaptive")) == "adaptive"
    call["method"] = "adaptive" if looks else "pcls"
    told = ("eps", "delta") if looks else ("eps", "radius", "penalty", "mechanism")
    varied = {name: several(call[name], name) for name in told}
    if not looks:
        if any(exact(one, "delta") for one in several(call["delta"], "delta")):
            raise ArgumentError('delta is for method="adaptive": "pcls" is pure.')
        call["delta"] = 0
    for price in varied.get("penalty", ()):
        if price not in ("auto", "bic"):
            sized(price, "penalty", any_sign=True)
    drawn: dict[str, Any] = {
        "draws": count(asked["draws"], "draws", 2 if looks else 1),
        "seed": count(call["seed"], "seed", 0),
        "progress": showing(call["progress"]),
    }
    requests = [
        SelectionRequest.of({**call, **_SAME, **dict(zip(varied, one, strict=True))})
        for one in product(*varied.values())
    ]
    first, known = requests[0], Schema.from_any(call["schema"])
    for name, given in (("radius", varied.get("radius", ())), ("sigma2", (call["sigma2"],))):
        if "private" in given:
            raise ArgumentError(
                f'a study spends no budget: {name} must be a number, not "private".'
            )
    reader = Reader(as_source(call["data"]), not looks and call["progress"])
    if unbounded := undeclared(first.formula, known, reader.source):
        raise ArgumentError(
            f"a study buys no bounds: declare those of {', '.join(unbounded)} in the schema."
        )
    study = study_looks if looks else study_paper
    return study(requests, reader, known, **drawn)


@answered_by(_selection_study)
def selection_study(
    formula: str,
    data: Table,
    *,
    schema: SchemaLike,
    eps: Amounts = (1,),
    delta: Amounts = (0,),
    method: MethodLike = "pcls",
    neighbors: str = "replace-one",
    contributions: int = 1,
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,  # by definition: as of `dpreg.dp_select`
    draws: int = 200,  # work
    seed: int = 0,
    progress: bool | None = None,
) -> SelectionStudy | AdaptiveStudy:
    """Compute the law of a private selection under every combination of settings. Curator only.

    Nothing here is private and nothing may be released: the probabilities are exact functions of
    the confidential rows. Use it on public or simulated rows, or inside the curator's walls.

    Parameters
    ----------
    formula, data, schema
        As for `dpreg.dp_select`; every column of numbers needs declared bounds.
    eps : number or sequence of numbers
    delta : number or sequence of numbers
        Combined with eps; only for "adaptive".
    method : {"pcls", "adaptive"} or object
        "pcls" computes exact laws, under every eps and every radius, penalty and mechanism of
        ``dpreg.PCLS(radius=(1, 2), penalty=("auto", 10), mechanism=...)``, in all combinations;
        numbers are 0 or lie between 1e-30 and 1e30. Its engine "enumerate" lists the models and is
        exact; "tree" draws, `draws` times a setting, and gives standard errors; "auto" lists up to
        65,536 models (2**20 where laplace is asked for).
        "adaptive" makes the looks at these rows `draws` times under each eps and delta, with seeded
        noise.
    neighbors, contributions, units, keep, max_terms, hierarchy, false_inclusions
        As for `dpreg.dp_select`, one value for the whole study.
    draws, seed : int
        For the tree, and for "adaptive".
    progress : bool, optional
        Show bars on stderr, over the rows and over the settings; default where stderr is a
        terminal.

    Returns
    -------
    SelectionStudy or AdaptiveStudy
        With ``probabilities``, ``frequencies``, ``agreement``, ``relative_rsquared``, ``plot()``;
        for "adaptive" ``outcomes`` (found, useless, in groups), ``frequencies``, ``alternatives``.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError
        From public facts, before a row is read.

    Notes
    -----
    The laws are those of ``dp_select(..., fit=None, draws=1)``, all of eps spent on the draw and
    all rows read by it. Where `sigma2` is given under ``neighbors="add-remove"``, the noisy count
    that `dp_select` buys is charged, and taken at its true value.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> study = dpreg.selection_study("mdvis ~ disea + lpi", rand.data, schema=rand.schema,
    ...                               eps=(1, 10),
    ...                               method=dpreg.PCLS(penalty=(0, 10)))
    >>> study
    <SelectionStudy: mdvis, 4 models x 4 settings, exact; curator only: not private, do not release>
    >>> study.frequencies.attrs["privacy"]
    'curator only: not private, do not release'
    """
