r"""Find a model that no add, drop or swap improves.

Two starts are walked downhill: the empty model and the full one. A step takes the best single add
or drop; where none helps, the best swap of one unit for another. With a hierarchy an add brings
what the unit needs, a drop takes along what needs the unit. The criterion falls at every step, so
that the walk ends. `dpreg.staged.choice.certify` says whether a better model exists.

Tested in `tests/staged/choice/test_certify.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.sweeps import Fit

__all__ = ["descend", "search"]

_LEAST: Final = 1e-9
"""Changes smaller than this, relative to the criterion or to 1, are rounding."""
_AFRESH: Final = 20
"""Steps after which a walk's matrix is made anew."""


def search(
    problem: Problem,
    response: Response | None = None,
    *,
    starts: Iterable[Model] | None = None,
    forbidden: Model = frozenset(),
    forced: Model = frozenset(),
) -> Model:
    """Return the best model found.

    Parameters
    ----------
    problem : Problem
    response : Response, optional
        Another left-hand side than the released one.
    starts : iterable of models, optional
        Where to walk from; by default nothing, and everything where the space has no upper limit.
    forbidden, forced : sets of units
        Never in, always in. With a hierarchy each must leave a model possible.
    """
    response = problem.response if response is None else response
    if not problem.size:
        return frozenset()
    if starts is None:
        everything = frozenset(range(problem.size))
        starts = (frozenset(), everything) if problem.most == problem.size else (frozenset(),)
    best, least = None, np.inf
    for start in starts:
        first = _legal(problem, start, forbidden, forced)
        found = descend(problem, response, first, forbidden, forced)
        value = problem.criterion(found, response)
        if best is None or value < least - _LEAST * max(1.0, abs(least)):
            best, least = found, value
    assert best is not None
    return best


def descend(
    problem: Problem, response: Response, model: Model, forbidden: Model, forced: Model
) -> Model:
    """Walk downhill from a model until no add, drop or swap improves it."""
    fit = best = Fit(problem, response, model)
    steps, most = 0, _AFRESH
    while True:
        step = _step(problem, fit, forbidden, forced)
        if step is not None and steps < most:
            for unit in sorted(fit.model ^ step):
                fit = fit.toggled(unit)
            steps += 1
        elif not steps:
            return fit.model
        else:
            # Rounding builds up along the walk: what counts is the fit from the Gram matrix itself.
            fit, steps = Fit(problem, response, fit.model), 0
            if fit.criterion < best.criterion - _LEAST * max(1.0, abs(best.criterion)):
                best = fit
            elif most == 1:
                return best.model
            else:
                fit, most = best, 1


def _step(problem: Problem, fit: Fit, forbidden: Model, forced: Model) -> Model | None:
    if problem.simple:
        return _simple_step(problem, fit, forbidden, forced)
    return _closed_step(problem, fit, forbidden, forced)


def _simple_step(problem: Problem, fit: Fit, forbidden: Model, forced: Model) -> Model | None:
    """Take the best step where units are single columns and need nothing else."""
    least = -_LEAST * max(1.0, abs(fit.criterion))
    barred = np.zeros(problem.size, dtype=np.bool_)
    barred[list(forbidden | forced)] = True
    held = int(fit.inside.sum())
    changes = np.where(barred, np.inf, fit.changes())
    if held >= problem.most:
        changes[~fit.inside] = np.inf
    if held <= problem.space.min_units:
        changes[fit.inside] = np.inf
    at = int(np.argmin(changes))
    if changes[at] < least:
        return fit.model ^ {at}
    leave, enter, table = fit.swaps()
    if not table.size:
        return None
    table[barred[leave]] = np.inf
    table[:, barred[enter]] = np.inf
    row, column = np.unravel_index(int(np.argmin(table)), table.shape)
    if table[row, column] < least:
        return fit.model ^ {int(leave[row]), int(enter[column])}
    return None


def _closed_step(problem: Problem, fit: Fit, forbidden: Model, forced: Model) -> Model | None:
    """Take the best step where units are blocks of columns or need each other."""
    now, model = fit.criterion, fit.model
    least = now - _LEAST * max(1.0, abs(now))
    toggles = [_toggle(problem, model, unit) for unit in range(problem.size)]
    singles = [m for m in toggles if _may(problem, m, forbidden, forced)]
    best = min(singles, key=lambda m: _criterion(problem, fit, m), default=None)
    if best is not None and _criterion(problem, fit, best) < least:
        return best
    best, value = None, least
    for unit in sorted(model):
        smaller = _toggle(problem, model, unit)
        if not _may(problem, smaller, forbidden, forced, at_least=False):
            continue
        within = fit
        for gone in sorted(model - smaller):
            within = within.toggled(gone)
        changes = within.changes()
        base = within.criterion
        for other in range(problem.size):
            if other in model:
                continue
            larger = _toggle(problem, smaller, other)
            if unit in larger or not _may(problem, larger, forbidden, forced):
                continue
            if len(larger) == len(smaller) + 1:
                score = base + float(changes[other])
            else:
                score = _criterion(problem, within, larger)
            if score < value:
                best, value = larger, score
    return best


def _criterion(problem: Problem, fit: Fit, model: Model) -> float:
    """Return a model's criterion from a fit a few units away."""
    for unit in sorted(fit.model ^ model):
        fit = fit.toggled(unit)
    return fit.criterion


def _toggle(problem: Problem, model: Model, unit: int) -> Model:
    """Add a unit with what it needs, or drop it with what needs it."""
    needs = problem.space.requires
    if unit in model:
        above = {u for u in model if needs and unit in needs[u]}
        return model - above - {unit}
    return model | {unit} | set(needs[unit] if needs else ())


def _may(
    problem: Problem, model: Model, forbidden: Model, forced: Model, *, at_least: bool = True
) -> bool:
    """Whether a model is within the space and what is forbidden or forced."""
    if model & forbidden or not forced <= model or len(model) > problem.most:
        return False
    return not at_least or len(model) >= problem.space.min_units


def _legal(problem: Problem, model: Model, forbidden: Model, forced: Model) -> Model:
    """Return a legal model near the one asked for."""
    needs = problem.space.requires
    model = (model | forced) - forbidden
    if needs:
        model = frozenset().union(*({u, *needs[u]} for u in forced)) | frozenset(
            u for u in model if not forbidden.intersection(needs[u])
        )
        model = frozenset(u for u in model if model.issuperset(needs[u]))
    for unit in sorted(model - forced, reverse=True):
        if len(model) <= problem.most:
            break
        smaller = _toggle(problem, model, unit) if unit in model else model
        model = smaller if forced <= smaller else model
    for unit in range(problem.size):
        if len(model) >= problem.space.min_units:
            break
        if unit not in model | forbidden:
            larger = _toggle(problem, model, unit)
            model = larger if _may(problem, larger, forbidden, forced, at_least=False) else model
    return model
