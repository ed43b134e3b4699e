"""`dp_quantile`: quantiles of bounded columns, with intervals that assume no law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.inputs import (
    Choices,
    Columns,
    Grouped,
    columns_of,
    common_fields,
    fraction_of,
    public_count,
)
from dpreg.errors import ArgumentError
from dpreg.estimation.histogram import count_noise
from dpreg.estimation.quantile import Quantile, candidate_grid, check_eps, private_quantile
from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.privacy.ranks import RANK_UNIT, cell_counts
from dpreg.results import inference
from dpreg.results.classic import ClassicResults
from dpreg.sources import Integers

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_quantile"]

_COUNT_SHARE: Final = Fraction(1, 20)
"""The part of eps that buys the number of values for the intervals."""


def dp_quantile(
    x: Any,
    q: Any,
    data: Any = None,
    *,
    bounds: Any = None,
    eps: Any,
    schema: Any = None,
    neighbors: str = "replace-one",
    contributions: int = 1,
    by: str | None = None,
    complete: bool = False,
    alpha: float = 0.05,
    budget: Ledger | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> ClassicResults:
    """Release quantiles of bounded columns, with intervals that assume no law of the values.

    Each quantile is three choices among public grid points, for itself and for the ends of its
    interval (`dpreg.estimation.quantile`). Several quantiles and columns share eps equally. A
    twentieth of eps buys the number of values, unless `complete` says that it is n.

    Parameters
    ----------
    x, data, bounds, eps, schema, neighbors, contributions, by, complete, budget, progress, \
unsafe_seed
        As in `dp_mean`; a missing value counts for nothing in its own column.
    q : number or list of numbers in (0, 1)
        Taken to the nearest multiple of 2**-16.
    alpha : float
        The released intervals have level 1 - alpha.

    Returns
    -------
    ClassicResults
        `conf_int()` holds the released intervals. At another level than `alpha` they are
        stretched as normal ones would be.

    Raises
    ------
    ArgumentError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read.
    """
    choices = Choices.checked(
        eps=eps,
        delta=0,
        neighbors=neighbors,
        contributions=contributions,
        noise=None,
        unsafe_seed=unsafe_seed,
    )
    q = np.ravel(q) if isinstance(q, np.ndarray) else q
    asked = list(q) if isinstance(q, list | tuple | np.ndarray) else [q]
    if not asked:
        raise ArgumentError("q holds no quantile.")
    shares = [round(fraction_of(one, "q") * RANK_UNIT) for one in asked]
    level = inference.level(float(fraction_of(alpha, "alpha")))
    columns = columns_of(x, data, bounds, schema, by, progress=progress)
    known = public_count(complete, choices, columns)
    whole = choices.budget.eps
    count_eps = Fraction(0) if known else whole * _COUNT_SHARE
    each = (whole - count_eps) / (len(shares) * len(columns.names))
    check_eps(each, choices.neighbors, choices.contributions, grouped=by is not None)
    cells = columns.lines * len(columns.names)
    spends = BudgetTable(contributions=choices.contributions)
    counting = None
    if not known:
        per_column = count_eps / len(columns.names)
        counting = count_noise(
            cells,
            eps=per_column,
            delta=Fraction(0),
            neighbors=choices.neighbors if by is not None else "add-remove",
            contributions=choices.contributions,
            noise="laplace",
        )
        spends = spends + Spend("number of values", "discrete laplace", count_eps)
    names = []
    for name in columns.names:
        for one in asked:
            label = f"q{float(fraction_of(one, 'q')):g}"
            names.append(label if len(columns.names) == 1 else f"{name}: {label}")
            spends = spends + Spend(f"{name}: {label} and interval", "permute-and-flip", each)
    choices.charge(budget, spends, f"dp_quantile: {', '.join(columns.names)}")
    rng = choices.rng()
    grids = {name: candidate_grid(*columns.bounds[name]) for name in columns.names}
    counted = _cells(columns, grids)
    found: list[Quantile] = []
    most = columns.rows if choices.n_is_public else None
    for line in range(columns.lines):
        for name in columns.names:
            cell = counted[name][line]
            number = float(columns.rows) if known else float(cell.sum())
            if counting is not None:
                number += counting.draw(1, rng)[0]
            if most is not None:
                number = min(number, float(most))
            found += [
                private_quantile(
                    cell,
                    grids[name],
                    share,
                    count=number,
                    eps=each,
                    alpha=level,
                    neighbors=choices.neighbors,
                    contributions=choices.contributions,
                    grouped=by is not None,
                    rng=rng,
                )
                for share in shares
            ]
    return ClassicResults(
        statistic="quantile",
        names=tuple(names),
        lower=np.array([one.lower for one in found]),
        upper=np.array([one.upper for one in found]),
        alpha=level,
        **common_fields(
            choices, columns, [one.estimate for one in found], spends, "permute-and-flip"
        ),
    )


def _cells(columns: Columns, grids: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.int64]]:
    """Count each column's values in the cells of its grid, group by group."""
    vector = columns.total(_CellTally(grids, columns.lines), "quantiles").astype(np.int64)
    sizes = [columns.lines * grid.size for grid in grids.values()]
    parts = np.split(vector, np.cumsum(sizes)[:-1])
    return {name: part.reshape(columns.lines, -1) for name, part in zip(grids, parts, strict=True)}


@dataclass(frozen=True, slots=True)
class _CellTally:
    """Counts each column's values in the cells of its grid, group by group."""

    grids: dict[str, NDArray[np.float64]]
    groups: int

    def __call__(self, grouped: Grouped) -> Integers:
        counted = {
            name: np.zeros((self.groups, grid.size), dtype=np.int64)
            for name, grid in self.grids.items()
        }
        for chunk, labels in grouped:
            for name, grid in self.grids.items():
                values = np.clip(chunk[name], grid[0], grid[-1])
                for line in range(self.groups):
                    there = values[(labels == line) & ~np.isnan(values)]
                    counted[name][line] += cell_counts(there, grid)
        return np.concatenate([cells.ravel() for cells in counted.values()])
