"""`selection_study` of ``method="staged"``: from arguments to simulated looks.

Tested in `tests/study/test_staged.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from dpreg.api.staged import looks_or_reason
from dpreg.errors import ArgumentError
from dpreg.formula.bounds import check_table
from dpreg.formula.design import undeclared
from dpreg.request import SelectionRequest, count
from dpreg.schema import Schema
from dpreg.selection.preparation import design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader, showing
from dpreg.study.base import facts_of
from dpreg.study.staged import simulate_choices
from dpreg.study.staged_results import StagedStudy

__all__ = ["OF_ALL", "staged_study"]

_PAPERS: Final[Mapping[str, Any]] = {
    "radius": None,
    "penalty": ("auto",),
    "mechanism": ("permute-and-flip",),
    "sigma2": None,
    "engine": "auto",
}
"""Arguments of the paper's method in a study, and their defaults."""
OF_ALL: Final[Mapping[str, Any]] = {
    "shares": None,
    "draws": 1,
    "fit": None,
    "expected_rows": None,
    "unsafe_seed": None,
}
"""Arguments of `dp_select` that are the same in every study of a selection."""
_SAME: Final[Mapping[str, Any]] = {
    "method": "staged",
    "mechanism": "auto",
    "radius": None,
    "penalty": "auto",
    "sigma2": None,
    "engine": "auto",
    **OF_ALL,
}


def staged_study(
    call: Mapping[str, Any], budgets: tuple[Any, ...], deltas: tuple[Any, ...]
) -> StagedStudy:
    """Simulate staged selections under each eps and delta.

    Parameters
    ----------
    call : mapping
        The arguments of `selection_study`.
    budgets, deltas : tuple
        Combined.
    """
    given = [name for name, usual in _PAPERS.items() if call[name] != usual]
    if given:
        raise ArgumentError(
            f'method="staged" has no {", ".join(given)}: leave out what belongs to "pcls".'
        )
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
        raise ArgumentError('method="staged" needs columns to look at: use method="pcls".')
    check_table(reader, design.types, (), counted=False)
    settings = []
    for request in requests:
        plan = looks_or_reason(
            design,
            reader,
            request.budget,
            request.protection,
            method="staged",
            noise=None,
            passes=1,
            expected_rows=None,
            instead="pcls",
        )
        assert not isinstance(plan, str)
        settings.append((request, plan))
    law = simulate_choices(settings, design, space, reader, draws=draws, seed=seed, progress=shown)
    return StagedStudy(
        **facts_of(design, space, first),
        settings=tuple((r.budget.eps, r.budget.delta, plan.mechanism) for r, plan in settings),
        draws=draws,
        law=law,
    )
