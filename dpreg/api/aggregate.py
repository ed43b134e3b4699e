"""`sample_aggregate`: any estimator made private, by averaging it over random blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.inputs import Choices, group_codes, grouping, spend_of
from dpreg.errors import ArgumentError, DataError, SchemaError
from dpreg.estimation import aggregate
from dpreg.estimation.aggregate import AGGREGATES
from dpreg.estimation.blocks import Estimator, Limits, block_values, rows_of, time_limits_work
from dpreg.estimation.classic import Estimate
from dpreg.estimation.histogram import count_noise
from dpreg.privacy.budget import Budget, BudgetTable, Spend
from dpreg.request import choice, count, positive
from dpreg.results.classic import ClassicResults
from dpreg.schema import ColumnType, Numeric, Schema
from dpreg.sources import Source, as_source, check_columns

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["sample_aggregate"]

_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the number of blocks, where it is private."""


def sample_aggregate(
    estimator: Estimator,
    data: Any,
    *,
    eps: Any,
    delta: Any = 0,
    bounds: Any,
    blocks: int | None = None,
    correct_bias: bool = True,
    aggregation: str = "auto",
    neighbors: str = "replace-one",
    contributions: int = 1,
    by: str | None = None,
    schema: Any = None,
    timeout: float | None = None,
    noise: str | None = None,
    budget: Ledger | None = None,
    unsafe_seed: int | None = None,
) -> ClassicResults:
    """Make any estimator private by averaging it over random blocks of rows (Smith 2008, 2011).

    Parameters
    ----------
    estimator : callable
        Takes a block, of the same type as `data`, returns one number or d. It must be a function
        of the block (and of fresh random numbers): no state between calls. Where it raises,
        returns another shape or a number that is not finite, the block counts as the midpoint
        of the bounds; nothing is said about it. Warnings inside are dropped; what it prints or
        logs is its own author's matter.
    data : DataFrame, Series, array, list, or mapping of names to arrays of one length
        Missing values are the estimator's to handle. Column names and dtypes count as public.
    eps, delta : number or decimal string
        What the whole call may cost; delta is spent only on Gaussian noise.
    bounds : (lo, hi), or sequence of such pairs, or mapping of name to (lo, hi)
        Public bounds of each number that the estimator returns; a mapping names them.
    blocks : int, optional
        B. Default: n^(5/8)/(2 sqrt(e)) with e = eps/(d k), at least 200/e and at most n/20 (n over
        the number of groups with `by`). Under add-remove n is private and a fiftieth of eps buys a
        noisy one for this.
    correct_bias : bool
        Whether to remove the bias of order 1/(rows of a block) by a jackknife over four parts, at
        five calls a block instead of one; see `dpreg.estimation.blocks`.
    aggregation : {"auto", "winsorized", "mean"}
        "winsorized" buys a window of the block values with up to half of eps, so that noise is in
        proportion to their spread; "mean" (2008) adds noise in proportion to the bounds' width.
        "auto": the former where B eps/(d k) is at least 200.
    neighbors : {"replace-one", "add-remove"}
    contributions : int
    by : str, optional
        A column of `data` (a DataFrame or mapping) whose levels `schema` declares: an estimate in
        each of its groups, of B blocks each. Under replace-one a person's rows may leave one group
        and join another, so that noise is twice as large as without groups.
    schema : mapping, Schema or path, optional
    timeout : float, optional
        Seconds for each block; later its value is the midpoint. Each block then runs in a forked
        process that is killed at the limit (not on Windows). Off by default. A time limit makes
        results depend on the machine's load.
    noise : {None, "laplace", "gaussian"}
    budget : Ledger, optional
        An account to charge, before a row is read.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    ClassicResults
        `bse_sampling` comes from the spread of block values, whatever the estimator. What remains
        of the bias is not in the intervals.

    Raises
    ------
    ArgumentError, DataError, BudgetError
        From public facts alone and before anything is charged or read. An exception of the
        estimator never comes out (but KeyboardInterrupt does).

    Notes
    -----
    How long the call takes depends on the rows.

    References
    ----------
    Smith, A. (2008). Efficient, differentially private point estimators. arXiv:0809.4794.
    Smith, A. (2011). Privacy-preserving statistical estimation with optimal convergence rates.
    STOC.

    Examples
    --------
    >>> import numpy as np
    >>> from dpreg.api.aggregate import sample_aggregate
    >>> waits = np.random.default_rng(0).exponential(size=20_000)
    >>> result = sample_aggregate(np.median, waits, eps=1, bounds=(0, 10))
    >>> bool(abs(result.params["theta0"] - np.log(2)) < 0.2)
    True
    """
    choices = Choices.checked(
        eps=eps,
        delta=delta,
        neighbors=neighbors,
        contributions=contributions,
        noise=noise,
        unsafe_seed=unsafe_seed,
    )
    if not callable(estimator):
        raise ArgumentError("estimator must be callable: it takes a block and returns numbers.")
    if not isinstance(correct_bias, bool):
        raise ArgumentError("correct_bias must be True or False.")
    way = str(choice(aggregation, "aggregation", AGGREGATES))
    names, limits = _limits(bounds)
    given = None if blocks is None else count(blocks, "blocks")
    if given is not None and given > 2**31:
        raise ArgumentError("blocks must be at most 2**31.")
    seconds = None if timeout is None else float(positive(timeout, "timeout"))
    if seconds is not None and not time_limits_work():
        raise ArgumentError("timeout needs processes that can be forked: leave it out on Windows.")
    rows = rows_of(data)
    grouped = _grouping_of(data, by, schema)
    lines = max(len(grouped.levels), 1)
    # Block values of all groups that one person can change: a replaced row may change groups.
    moved = choices.contributions * (2 if grouped.levels and choices.n_is_public else 1)
    whole = choices.budget.eps
    spends = BudgetTable(contributions=choices.contributions)
    counting = None
    if given is None and not choices.n_is_public:
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
        len(names), lines, whole, choices.budget.delta, moved, choices.noise
    ).noise
    total = Budget(whole, public.delta)
    if budget is not None:
        budget.charge(total, "sample_aggregate")
    # How eps is divided among the steps may follow the released number of rows.
    rng = choices.rng()
    each = whole / (len(names) * moved)
    known = rows.count + (0 if counting is None else counting.draw(1, rng)[0])
    size = aggregate.default_blocks(max(known, 1) // lines, each) if given is None else given
    window_eps = Fraction(0)
    if way == "winsorized" or (way == "auto" and aggregate.window_pays(size, each)):
        window_eps = whole * aggregate.window_share(size, each)
        spends = spends + Spend("window of block values", "permute-and-flip", window_eps)
    averaging = aggregate.Averaging.planned(
        len(names),
        lines,
        whole - spends.total.eps,
        choices.budget.delta,
        moved,
        public.mechanism,
    )
    spends = spends + spend_of("average over blocks", averaging.noise)
    labels = grouped.labels(rows.count)
    estimates: list[Estimate] = []
    for line in range(lines):
        members = np.flatnonzero(labels == line)
        parts = [members[part] for part in aggregate.draw_blocks(members.size, size, rng)]
        values = block_values(
            estimator, rows, parts, limits, correct_bias=correct_bias, timeout=seconds
        )
        within = limits
        if window_eps:
            within = aggregate.window(values, limits, eps=window_eps, contributions=moved, rng=rng)
        estimates += averaging.release(within.clip(values), within, rng)
    return ClassicResults(
        statistic="sample and aggregate",
        names=names,
        by=by,
        groups=grouped.levels,
        estimates=np.array([one.value for one in estimates]),
        se_sampling=np.array([one.sampling for one in estimates]),
        se_privacy=np.array([one.privacy for one in estimates]),
        nobs=rows.count if choices.n_is_public else None,
        blocks=size,
        bounds={
            name: np.array(pair)
            for name, *pair in zip(names, limits.lower, limits.upper, strict=True)
        },
        noise=averaging.noise.mechanism,
        eps=choices.budget.eps,
        delta=choices.budget.delta,
        claim=choices.claim(spends),
        notes=("Intervals do not account for bias that remains in the blocks' estimates.",),
    )


@dataclass(frozen=True, slots=True)
class _Grouping:
    """The column that groups the rows, if any."""

    source: Source | None = None
    name: str = ""
    how: ColumnType | None = None
    levels: tuple[str, ...] = ()

    def labels(self, rows: int) -> NDArray[np.int64]:
        """Read each row's group: -1 for none, 0 without grouping."""
        if self.source is None or self.how is None:
            return np.zeros(rows, dtype=np.int64)
        codes = [
            group_codes(chunk[self.name])
            for chunk in self.source.chunks({self.name: self.how}, max(rows, 1))
        ]
        return np.concatenate(codes) if codes else np.zeros(0, dtype=np.int64)


def _grouping_of(data: Any, by: Any, schema: Any) -> _Grouping:
    if by is None:
        return _Grouping()
    if not isinstance(by, str) or not isinstance(data, pd.DataFrame | Mapping):
        raise ArgumentError("by must be the name of a column of a DataFrame or mapping.")
    if isinstance(data, Mapping) and by not in data:
        raise DataError(f"data has no column {by!r}.")
    source = as_source(data if isinstance(data, pd.DataFrame) else {by: data[by]})
    how, levels = grouping(by, Schema.from_any(schema))
    check_columns(source, {by: how})
    return _Grouping(source, by, how, levels)


def _limits(bounds: Any) -> tuple[tuple[str, ...], Limits]:
    """Read the bounds of the estimator's numbers."""
    if isinstance(bounds, Mapping):
        pairs = list(bounds.values())
        names = tuple(str(name) for name in bounds)
    else:
        if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str):
            raise ArgumentError("bounds must be (lo, hi), a list of such pairs, or a mapping.")
        several = len(bounds) > 0 and isinstance(bounds[0], Sequence | np.ndarray)
        pairs = list(bounds) if several else [bounds]
        names = tuple(f"theta{j}" for j in range(len(pairs)))
    checked = []
    for name, pair in zip(names, pairs, strict=True):
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise ArgumentError(f"bounds of {name} must be (lowest, highest).")
        try:
            checked.append(Numeric(*pair))
        except SchemaError as err:
            raise ArgumentError(f"bounds of {name}: {err}") from None
    if not checked:
        raise ArgumentError("bounds hold no pair: the estimator must return something.")
    return names, Limits(tuple(b.lo for b in checked), tuple(b.hi for b in checked))
