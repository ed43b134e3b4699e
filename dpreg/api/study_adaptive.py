"""`selection_study` of ``method="adaptive"``: from arguments to simulated looks.

Tested in `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from dpreg.api.adaptive import looks_or_reason
from dpreg.errors import ArgumentError
from dpreg.formula.bounds import check_table
from dpreg.formula.design import undeclared
from dpreg.request import SelectionRequest, count
from dpreg.schema import Schema
from dpreg.selection.preparation import design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader, showing
from dpreg.study.adaptive import simulate_choices
from dpreg.study.results import AdaptiveStudy, facts_of

__all__ = ["OF_ALL", "adaptive_study"]

OF_ALL: Final[Mapping[str, Any]] = {
    "shares": None,
    "draws": 1,
    "fit": None,
    "unsafe_seed": None,
}
"""Arguments of `dp_select` that are the same in every study of a selection."""
_SAME: Final[Mapping[str, Any]] = {
    "method": "adaptive",
    **OF_ALL,
}


def adaptive_study(
    call: Mapping[str, Any], budgets: tuple[Any, ...], deltas: tuple[Any, ...]
) -> AdaptiveStudy:
    """Simulate selections by looks under each eps and delta.

    Parameters
    ----------
    call : mapping
        The arguments of `selection_study`.
    budgets, deltas : tuple
        Combined.
    """
    requests = [
        SelectionRequest.of({**call, **_SAME, "eps": eps, "delta": delta})
        for eps, delta in product(budgets, deltas)
    ]
    shown, draws = showing(call["progress"]), count(call["draws"], "draws", 2)
    seed = count(call["seed"], "seed", 0)
    first, known = requests[0], Schema.from_any(call["schema"])
    reader = Reader(as_source(call["data"]), False)
    unbounded = undeclared(first.formula, known, reader.source)
    if unbounded:
        raise ArgumentError(
            f"a study buys no bounds: declare those of {', '.join(unbounded)} in the schema."
        )
    design = design_of(first, known)
    space = space_of(first, design)
    if len(design.columns) < 2:
        raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
    check_table(reader, design.types, (), counted=False)
    settings = []
    for request in requests:
        plan = looks_or_reason(
            design,
            reader,
            request.budget,
            request.protection,
            method="adaptive",
            noise=None,
            passes=1,
            rows=reader.source.rows,
            chooses=True,
        )
        assert not isinstance(plan, str)
        settings.append((request, plan))
    law = simulate_choices(settings, design, space, reader, draws=draws, seed=seed, progress=shown)
    return AdaptiveStudy(
        **facts_of(design, space, first),
        settings=tuple((r.budget.eps, r.budget.delta, plan.mechanism) for r, plan in settings),
        draws=draws,
        law=law,
    )
