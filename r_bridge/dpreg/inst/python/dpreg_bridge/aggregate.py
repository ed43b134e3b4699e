"""`sample_aggregate` for R: Python draws the blocks and releases, R runs the estimator in between.

A function of R's called from Python could leave by a jump that Python never sees, and R's garbage
collector would run inside Python's call. So each step is a call of its own: R asks for the blocks'
rows, works out the estimates by itself, and hands them over for the next step. Runs wait here under
a number until they end or R closes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.aggregate import Aggregate, Blocks, block_table
from dpreg.api.context import now, record_of
from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import corrected, evaluations
from dpreg.privacy.ledger.handle import kept
from dpreg.request import settle_budget
from dpreg.results.claim import ReleaseRecord
from dpreg.results.classic import ClassicResults
from dpreg_bridge.ledgers import charged_to
from dpreg_bridge.values import NA_INTEGER
from dpreg_bridge.views import view
from dpreg_bridge.words import Words

__all__ = ["close_run", "open_run", "send_estimates"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(slots=True)
class _Run:
    """A call whose estimator R is running.

    `wanted` are the rows of each block's estimates, `seeds` those of its random numbers, `record`
    what the call was, with the time of the charge and its place in its ledger.
    """

    asked: Aggregate
    steps: Generator[Blocks, Floats, ClassicResults]
    notes: tuple[str, ...]
    record: ReleaseRecord | None = None
    wanted: list[list[Indices]] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def expect(self, blocks: Blocks) -> None:
        self.wanted = [evaluations(block, self.asked.correct_bias) for block in blocks.rows]
        self.seeds = [seed % 2**31 for seed in blocks.seeds]  # as large as R's can be

    def values(self, estimates: Floats) -> Floats:
        """Make the blocks' values of their estimates, a row each."""
        found, start = [], 0
        for rows in self.wanted:
            end = start + len(rows)
            sizes = [part.size for part in rows]
            found.append(self.asked.limits.clip(corrected([*estimates[start:end]], sizes)))
            start = end
        return np.array(found)


_runs: Final[dict[int, _Run]] = {}
_numbers: Final = itertools.count(1)


def open_run(
    data: pd.DataFrame | None = None,
    rows: int = 0,
    by: Any = None,
    schema: Any = None,
    budget: Any = None,
    analyst: str | None = None,
    **asked: Any,
) -> dict[str, Any]:
    """Check and charge the call; hand R the columns as declared, and the first blocks' rows.

    Parameters
    ----------
    data : DataFrame, optional
        The columns that are declared, and `person`.
    rows : int
        How many R has, where they are no table's but numbers, which stay there.
    by, schema, budget, analyst, **asked
        The arguments of `dpreg.sample_aggregate`; `budget` is a ledger's path.
    """
    notes = settle_budget(asked)
    checked = Aggregate.of(asked)
    held = np.empty((rows, 0)) if data is None else data
    told = {"data": held, "by": by, "schema": schema, "where": None, "progress": False}
    table = block_table(checked, told)
    ledger = None if budget is None else charged_to(budget)
    if analyst is not None:
        if ledger is None:
            raise ArgumentError("analyst says on whose account the budget is charged: give budget.")
        ledger = ledger.for_analyst(analyst)
    run = _Run(checked, checked.steps(table, ledger), notes)
    started = now()
    with kept() as receipt:
        run.expect(next(run.steps))
    told = {**asked, "by": by, "schema": schema}
    run.record = record_of("sample_aggregate", told, receipt, started)
    number = next(_numbers)
    _runs[number] = run
    return _asking(number, run) | {"columns": None if data is None else _columns(table.held)}


def send_estimates(run: int, data: pd.DataFrame) -> dict[str, Any]:
    """Take the estimates that were asked for, a row each; ask for more or give the result."""
    going = _runs[run]
    try:
        going.expect(going.steps.send(going.values(data.to_numpy(dtype=np.float64))))
    except StopIteration as end:
        close_run(run)
        notes = (*going.notes, *end.value.notes)
        return {"result": view(replace(end.value, record=going.record, notes=notes), Words())}
    return _asking(run, going)


def close_run(run: int) -> None:
    """Forget a run that R will not finish, or that has ended."""
    _runs.pop(run, None)


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    """Lay out the columns that blocks have: a list with levels is a factor, one without logical."""
    return {str(name): _column(cells) for name, cells in frame.items()}


def _column(cells: pd.Series[Any]) -> Any:
    if isinstance(cells.dtype, pd.CategoricalDtype):
        codes = cells.cat.codes.to_numpy(np.int32)
        return {
            "values": np.where(codes < 0, NA_INTEGER, codes + 1).astype(np.int32),
            "levels": tuple(map(str, cells.cat.categories)),
        }
    numbers = cells.to_numpy(np.float64, na_value=np.nan)
    return {"values": numbers} if cells.dtype == "boolean" else numbers


def _asking(number: int, run: _Run) -> dict[str, Any]:
    """List rows, counted from 1, of all estimates of all blocks; `calls` make a block."""
    parts = [part for wanted in run.wanted for part in wanted]
    rows = np.concatenate(parts) if parts else np.zeros(0)
    return {
        "run": number,
        "size": len(run.asked.names),
        "rows": (rows + 1).astype(np.int32),
        "sizes": np.array([part.size for part in parts], dtype=np.int32),
        "calls": np.array([len(wanted) for wanted in run.wanted], dtype=np.int32),
        "seeds": np.array(run.seeds, dtype=np.int32),
        "timeout": run.asked.timeout,
    }
