"""Looks at drawn or real rows without what a call does around them: for studies with many runs.

Rows are in the box already; limits, sums, noise, law and choice are dpreg's own, with noise from a
seed: never private. `tests/benchmarks/test_power.py` holds them against whole calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import dpreg
from benchmarks._power_cells import Cell
from dpreg.choice import Released
from dpreg.looks.expected import Expected
from dpreg.looks.families import Linear
from dpreg.looks.law import Estimates, estimates
from dpreg.looks.loop import Seen, laws_for_choice, look, look_at_chosen, point_of_chosen
from dpreg.looks.plan import plan_looks
from dpreg.looks.records import Described
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.protection import Protection

__all__ = ["Setting", "called", "choosing_laws", "fitted", "looked"]

Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """Public facts of one run; `whole` is the share of the budget that chooses."""

    eps: float
    delta: float = 0.0
    neighbors: str = "replace-one"
    whole: float = 1.0


def looked(
    x: np.ndarray, y: np.ndarray, setting: Setting, rng: np.random.Generator
) -> tuple[Expected, Seen]:
    """Look at rows as a choice does; return them and what was released."""
    z = np.column_stack([np.ones(len(x)), x, y])
    cost = Budget(exact(setting.eps, "eps"), exact(setting.delta, "delta"))
    later = 1 - Fraction(setting.whole).limit_denominator(1000)
    who = Protection(setting.neighbors)
    plan = plan_looks(x.shape[1], cost, who, chooses=True, later=later, holds=True)
    rows = Expected(plan, Described(tuple(range(1, x.shape[1] + 1))), z, len(z), rng)
    return rows, look(rows, Linear())


def choosing_laws(
    x: np.ndarray, y: np.ndarray, setting: Setting, rng: np.random.Generator
) -> tuple[Released, ...]:
    """Return the laws that terms are chosen from."""
    return laws_for_choice(looked(x, y, setting, rng)[1])


def called(cell: Cell, x: np.ndarray, y: np.ndarray, seed: int) -> tuple[list[int], list[Group]]:
    """Return the units that a whole call finds and its groups, for neighbours of any kind."""
    names = [f"x{u + 1}" for u in range(cell.p)]
    frame = pd.DataFrame(x, columns=names).assign(y=y)
    told: dict[str, Any] = {"neighbors": cell.neighbors}
    if cell.each:
        frame["who"] = np.arange(len(y)) // cell.each
        told["person"] = "who"
    found = dpreg.dp_select(
        "y ~ " + " + ".join(names),
        frame,
        eps=str(cell.eps),
        delta="1e-6" if cell.delta else 0,
        schema=dict.fromkeys([*names, "y"], (-1, 1)),
        method="adaptive",
        fit=None,
        progress=False,
        unsafe_seed=seed,
        **told,
    )
    place = names.index
    groups = [tuple(map(place, group)) for group in found.alternatives]
    return [place(name) for name in found.selected if name in names], groups


def fitted(rows: Expected, seen: Seen, places: Sequence[int], fit: str) -> Estimates:
    """Return the coefficients, in stored units, of the columns at some places, 0 among them."""
    names, units = list(map(str, places)), (np.eye(len(places)), np.zeros(len(places)))
    at = [place for place in places if place]
    if fit == "same":
        whole = range(len(rows.described.columns) + 1)
        return estimates(seen, places, names, units, among=whole)
    own = replace(
        rows,
        described=replace(rows.described, columns=tuple(at)),
        plan=rows.plan.at_chosen(len(at)),
    )
    later = look_at_chosen(own, seen, point_of_chosen(seen, at), [0, *at])
    return estimates(later, range(len(places)), names, units)
