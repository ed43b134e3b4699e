"""The steps of `sample_aggregate` but for the estimator: check, charge, draw the blocks, release.

Whoever runs the estimator sends the blocks' values in between: `dpreg.api.aggregate` for Python,
and the R package for functions of R, which must not run inside a call of Python's.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.inputs import Choices, group_codes, grouping, spend_of
from dpreg.errors import ArgumentError, DataError
from dpreg.estimation import aggregate
from dpreg.estimation.aggregate import AGGREGATES
from dpreg.estimation.blocks import Limits, limits_of
from dpreg.estimation.classic import Estimate
from dpreg.estimation.histogram import count_noise
from dpreg.privacy.budget import Budget, BudgetTable, Spend
from dpreg.request import choice, count, positive
from dpreg.results.classic import ClassicResults
from dpreg.schema import ColumnType, Schema
from dpreg.sources import TableSource, check_columns
from dpreg.sources.table import frame_source, mapping_source

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["Aggregate", "Groups"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the number of blocks, where it is private."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The column that groups the rows, if any."""

    source: TableSource | None = None
    name: str = ""
    how: ColumnType | None = None
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Any, by: Any, schema: Any) -> Groups:
        """Check the column's name and declaration; read no row."""
        if by is None:
            return cls()
        if not isinstance(by, str) or not isinstance(data, pd.DataFrame | Mapping):
            raise ArgumentError("by must be the name of a column of a DataFrame or mapping.")
        if isinstance(data, Mapping) and by not in data:
            raise DataError(f"data has no column {by!r}.")
        if isinstance(data, pd.DataFrame):
            source = frame_source(data)
        else:
            source = mapping_source({by: data[by]})
        how, levels = grouping(by, Schema.from_any(schema))
        check_columns(source, {by: how})
        return cls(source, by, how, levels)

    def labels(self, rows: int) -> NDArray[np.int64]:
        """Read each row's group: -1 for none, 0 without grouping."""
        if self.source is None or self.how is None:
            return np.zeros(rows, dtype=np.int64)
        codes = [
            group_codes(chunk[self.name])
            for chunk in self.source.chunks({self.name: self.how}, max(rows, 1))
        ]
        return np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What a call asks for, but for the estimator and the rows.

    Attributes
    ----------
    choices : Choices
    names : tuple of str
        Of the d numbers that the estimator returns.
    limits : Limits
    way : str
        One of `AGGREGATES`.
    blocks : int or None
    correct_bias : bool
    timeout : float or None
        Seconds for all that is done with one block.
    """

    choices: Choices
    names: tuple[str, ...]
    limits: Limits
    way: str
    blocks: int | None
    correct_bias: bool
    timeout: float | None

    @classmethod
    def checked(
        cls,
        *,
        eps: Any,
        delta: Any = 0,
        bounds: Any,
        blocks: Any = None,
        correct_bias: Any = True,
        aggregation: Any = "auto",
        neighbors: Any = "replace-one",
        contributions: Any = 1,
        timeout: Any = None,
        noise: Any = None,
        unsafe_seed: Any = None,
    ) -> Aggregate:
        """Check the arguments of `sample_aggregate` that bear these names."""
        choices = Choices.checked(
            eps=eps,
            delta=delta,
            neighbors=neighbors,
            contributions=contributions,
            noise=noise,
            unsafe_seed=unsafe_seed,
        )
        if not isinstance(correct_bias, bool):
            raise ArgumentError("correct_bias must be True or False.")
        way = str(choice(aggregation, "aggregation", AGGREGATES))
        names, limits = limits_of(bounds)
        given = None if blocks is None else count(blocks, "blocks")
        if given is not None and given > 2**31:
            raise ArgumentError("blocks must be at most 2**31.")
        seconds = None if timeout is None else float(positive(timeout, "timeout"))
        return cls(choices, names, limits, way, given, correct_bias, seconds)

    def steps(
        self, rows: int, grouped: Groups, budget: Ledger | None
    ) -> Generator[list[Indices], Floats, ClassicResults]:
        """Run the call but for the estimator, which is its caller's to run.

        The first `next` charges the ledger, and only then is a row read or noise drawn.

        Parameters
        ----------
        rows : int
        grouped : Groups
        budget : Ledger or None

        Yields
        ------
        list of B index arrays
            The blocks of one group, or of all rows. What must be sent back is the value of each
            block, (B, d), within `limits`: a function of the block's rows alone.

        Returns
        -------
        ClassicResults
        """
        choices = self.choices
        lines = max(len(grouped.levels), 1)
        # Block values of all groups that one person can change: a replaced row may change groups.
        moved = choices.contributions * (2 if grouped.levels and choices.n_is_public else 1)
        whole = choices.budget.eps
        spends = BudgetTable(contributions=choices.contributions)
        counting = None
        if self.blocks is None and not choices.n_is_public:
            counting = count_noise(
                1,
                eps=whole * _COUNT_SHARE,
                delta=Fraction(0),
                neighbors=choices.neighbors,
                contributions=choices.contributions,
                noise="laplace",
            )
            spends = spends + spend_of("number of rows", counting)
        public = aggregate.Averaging.planned(
            len(self.names), lines, whole, choices.budget.delta, moved, choices.noise
        ).noise
        total = Budget(whole, public.delta)
        if budget is not None:
            budget.charge(total, "sample_aggregate")
        # How eps is divided among the steps may follow the released number of rows.
        rng = choices.rng()
        each = whole / (len(self.names) * moved)
        known = rows + (0 if counting is None else counting.draw(1, rng)[0])
        size = self.blocks or aggregate.default_blocks(max(known, 1) // lines, each)
        window_eps = Fraction(0)
        if self.way == "winsorized" or (self.way == "auto" and aggregate.window_pays(size, each)):
            window_eps = whole * aggregate.window_share(size, each)
            spends = spends + Spend("window of block values", "permute-and-flip", window_eps)
        averaging = aggregate.Averaging.planned(
            len(self.names),
            lines,
            whole - spends.total.eps,
            choices.budget.delta,
            moved,
            public.mechanism,
        )
        spends = spends + spend_of("average over blocks", averaging.noise)
        labels = grouped.labels(rows)
        estimates: list[Estimate] = []
        for line in range(lines):
            members = np.flatnonzero(labels == line)
            values = yield [
                members[part] for part in aggregate.draw_blocks(members.size, size, rng)
            ]
            within = self.limits
            if window_eps:
                within = aggregate.window(
                    values, self.limits, eps=window_eps, contributions=moved, rng=rng
                )
            estimates += averaging.release(within.clip(values), within, rng)
        return ClassicResults(
            statistic="sample and aggregate",
            names=self.names,
            by=grouped.name or None,
            groups=grouped.levels,
            estimates=np.array([one.value for one in estimates]),
            se_sampling=np.array([one.sampling for one in estimates]),
            se_privacy=np.array([one.privacy for one in estimates]),
            nobs=rows if choices.n_is_public else None,
            blocks=size,
            bounds={
                name: np.array(pair)
                for name, *pair in zip(
                    self.names, self.limits.lower, self.limits.upper, strict=True
                )
            },
            noise=averaging.noise.mechanism,
            eps=choices.budget.eps,
            delta=choices.budget.delta,
            claim=choices.claim(spends),
            notes=("Intervals do not account for bias that remains in the blocks' estimates.",),
        )
