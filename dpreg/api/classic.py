"""`dp_mean`, `dp_suffstats` and `dp_quantile`: what an analyst asks before choosing a model.

Read downwards: arguments become `Choices` and `Columns` (`dpreg.api.inputs`); noise is planned from
public facts; the ledger is charged; the rows are read once; a result is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final, Unpack

import numpy as np

from dpreg.api import inputs
from dpreg.api.arguments import OfColumns
from dpreg.api.context import recorded
from dpreg.api.inputs import Bought, Choices, Columns
from dpreg.arrays import Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.estimation import histogram, sums
from dpreg.options import Amount, Amounts, Cells, Table
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ranks import RANK_UNIT, cell_counts
from dpreg.request import Arguments, checked, choice
from dpreg.results import inference
from dpreg.results.classic import ClassicResults
from dpreg.sources import Integers


def _mean(call: Arguments) -> ClassicResults:
    columns = inputs.columns_of(call, Choices.of(call))
    _, fields = _sums(columns, "gaussian", call["budget"], "mean", sums.mean_estimates)
    return ClassicResults(statistic="mean", names=columns.names, **fields)


def _suffstats(call: Arguments) -> ClassicResults:
    choices = Choices.of(call)
    family = str(choice(call["family"], "family", tuple(sums.FAMILIES)))
    chosen = sums.FAMILIES[family]
    if family == "bernoulli" and call["bounds"] is None and call["schema"] is None:
        call = {**call, "bounds": (0, 1)}
    columns = inputs.columns_of(call, choices)
    for name, (lo, hi) in columns.bounds.items():
        if lo < chosen.lowest or hi > chosen.highest:
            raise ArgumentError(
                f"bounds of {name!r} reach outside the support of family={family!r}, "
                f"[{chosen.lowest:g}, {chosen.highest:g}]."
            )
    if family == "bernoulli" and any(pair != (0.0, 1.0) for pair in columns.bounds.values()):
        raise ArgumentError('family="bernoulli" needs bounds=(0, 1).')
    estimate = partial(sums.family_estimates, family)
    released, fields = _sums(columns, family, call["budget"], f"{family} statistics", estimate)
    bounds = [*columns.bounds.values()]
    told = [v for line in released for v in sums.sufficient_statistics(line, bounds)]
    return ClassicResults(
        statistic=family,
        names=_named(columns, chosen.parameters),
        sufficient=np.array(told),
        sufficient_names=_named(columns, ("n", "sum x", "sum x^2")[: 1 + chosen.degree]),
        **fields,
    )


def _sums(
    columns: Columns,
    family: str,
    budget: Ledger | None,
    step: str,
    estimate: Callable[..., Sequence[sums.Estimate]],
) -> tuple[list[sums.NoisySums], dict[str, Any]]:
    """Plan, charge, read and release the columns' sums, group by group; return fields as well."""
    choices, account = columns.choices, columns.choices.account()
    coding, fitted = sums.plan(
        len(columns.names),
        columns.lines,
        degree=sums.FAMILIES[family].degree,
        grouped=columns.by is not None,
        cost=choices.budget,
        protection=choices.protection,
        complete=columns.complete,
        noise=choices.noise,
    )
    part = account.line(step, f"discrete {fitted.mechanism}", fitted.cost)
    account.charge(budget, f"{step}: {', '.join(columns.names)}")
    tally = partial(_summed, columns.bounds, columns.lines)
    exact = columns.total(tally, step).reshape(columns.lines, -1)
    rows = columns.reader.rows if columns.complete else None
    released = sums.release(exact, coding, fitted, part=part, rows=rows)
    bounds, most = [*columns.bounds.values()], columns.public_rows
    estimates = [one for line in released for one in estimate(line, bounds, most)]
    counts = None if columns.complete else np.array([line.count for line in released])
    fields = columns.fields(account, fitted.mechanism) | {"counts": counts}
    return released, fields | inputs.estimate_fields(estimates, columns.bounds)


def _summed(bounds: Mapping[str, inputs.Pair], groups: int, grouped: inputs.Grouped) -> Integers:
    """Add up count, sums and sums of squares of each group's rows."""
    rows = (
        (np.column_stack([sums.to_grid(chunk[name], *pair) for name, pair in bounds.items()]), at)
        for chunk, at in grouped
    )
    return sums.accumulate(rows, len(bounds), groups).ravel()


def _named(columns: Columns, names: Sequence[str]) -> tuple[str, ...]:
    """Name some numbers of each column."""
    heads = [f"{column}: " for column in columns.names] if len(columns.names) > 1 else [""]
    return tuple(head + name for head in heads for name in names)


@recorded(_mean, OfColumns)
def dp_mean(
    x: Cells,
    data: Table = None,
    *,
    eps: Amount,
    delta: Amount = 0,
    noise: str | None = None,
    **others: Unpack[OfColumns],
) -> ClassicResults:
    """Release means of bounded columns with differential privacy.

    Count, sums and sums of squares are released together; the squares, which give the standard
    errors, and under replace-one the count, cost nothing (`dpreg.estimation.sums`).

    Parameters
    ----------
    x : str, list of str, array, Series, DataFrame or mapping
        Name(s) of columns of `data`; or the column(s) themselves, without `data`. A row with a
        missing value in any of the columns is left out; values outside the bounds are clipped
        to them.
    data : table, optional
        What `dpreg.sources.as_source` takes.
    eps, delta : number or decimal string
        The most that the whole call may cost; delta is spent only on Gaussian noise.
    noise : {None, "laplace", "gaussian"}
        None: the one with the least noise in the sums.

    Returns
    -------
    ClassicResults
        `params`, `bse` with `bse_sampling` and `bse_privacy`, `conf_int()`, `complete_rows`.

    Raises
    ------
    ArgumentError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read.

    References
    ----------
    Smith, A. (2008). Integrating differential privacy with statistical theory. Talk, NCHS/CDC.

    Examples
    --------
    >>> import dpreg
    >>> import numpy as np
    >>> ages = np.random.default_rng(0).uniform(20, 60, size=10_000)
    >>> result = dpreg.dp_mean(ages, bounds=(0, 120), eps=1)
    >>> bool(abs(result.params["x"] - 40) < 1), str(result.spent)
    (True, 'eps=1')
    """


@recorded(_suffstats, OfColumns)
def dp_suffstats(
    x: Cells,
    data: Table = None,
    *,
    eps: Amount,
    delta: Amount = 0,
    family: str = "gaussian",
    noise: str | None = None,
    **others: Unpack[OfColumns],
) -> ClassicResults:
    """Release an exponential family's sufficient statistics and its private maximum likelihood.

    Several columns are taken as independent, each with its own parameters, and released together.

    Parameters
    ----------
    x : str, list of str, array, Series, DataFrame or mapping
        Name(s) of columns of `data`; or the column(s) themselves, without `data`. A row with a
        missing value in any of them is left out; values outside the bounds are clipped.
    data : table, optional
        What `dpreg.sources.as_source` takes.
    eps, delta : number or decimal string
        The most that the whole call may cost; delta is spent only on Gaussian noise.
    noise : {None, "laplace", "gaussian"}
        None: the one with the least noise.
    family : {"gaussian", "bernoulli", "poisson", "exponential"}
        Bounds must lie in the family's support: (0, 1) for Bernoulli, which is the default there;
        not below 0 for Poisson and exponential. A tail beyond the bounds is clipped and biases
        the estimate.

    Returns
    -------
    ClassicResults
        `params` are the family's: mean and variance; probability; rate; rate. `bse_sampling` is
        the model's. `sufficient_statistics` holds the released count and sums.

    Raises
    ------
    ArgumentError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read.
    """


_COUNT_SHARE: Final = Fraction(1, 20)
"""The part of eps that buys the number of values for the intervals."""

_IN_NUMBERS: Final = frozenset("0123456789./eE+-_ ")


def _quantiles(q: Any, name: str) -> tuple[Fraction, ...]:
    """Return the quantiles that are asked for."""
    q = np.ravel(q) if isinstance(q, np.ndarray) else q
    asked = list(q) if isinstance(q, list | tuple | np.ndarray) else [q]
    if not asked:
        raise ArgumentError("q holds no quantile.")
    texts = [one for one in asked if isinstance(one, str) and one is not q]
    if not _IN_NUMBERS.issuperset("".join(texts)):  # a column of labels may stand here
        raise ArgumentError("q must hold numbers, not text.")
    return tuple(inputs.fraction_of(one, name) for one in asked)


def _level(alpha: object, name: str) -> float:
    """Return the level of the intervals."""
    return inference.level(float(inputs.fraction_of(alpha, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRequest(Choices):
    """What a caller of `dp_quantile` chose."""

    q: tuple[Fraction, ...] = checked(_quantiles)
    alpha: float = checked(_level)

    @property
    def shares(self) -> tuple[int, ...]:
        """The quantiles in 1 / RANK_UNIT."""
        return tuple(round(one * RANK_UNIT) for one in self.q)

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(f"q{float(one):g}" for one in self.q)


def _quantile(call: Arguments) -> ClassicResults:
    request = QuantileRequest.of(call)
    columns = inputs.columns_of(call, request)
    account, several = request.account(), len(columns.names)
    counting, parts = _opened(request, account, columns)
    account.charge(call["budget"], f"dp_quantile: {', '.join(columns.names)}")
    grids = {name: histogram.candidate_grid(*columns.bounds[name]) for name in columns.names}
    counted = _cells(columns, grids)
    found: list[histogram.Quantile] = []
    counts: list[tuple[Part, ...]] = []
    if counting is not None:
        each = counting.part.split([Fraction(1, several)] * several)
        counts = [own.across(columns.lines) for own in each]
    most = columns.public_rows
    for line, (at, name) in product(range(columns.lines), enumerate(columns.names)):
        cell = counted[name][line]
        number = float(columns.reader.rows) if columns.complete else float(cell.sum())
        if counting is not None:
            number += counting.noise.draw(1, counts[at][line])[0]
        if most is not None:
            number = min(number, float(most))
        found += [
            histogram.private_quantile(
                cell,
                grids[name],
                share,
                count=number,
                part=parts[name, one][line],
                alpha=request.alpha,
                grouped=columns.by is not None,
            )
            for one, share in enumerate(request.shares)
        ]
    return ClassicResults(
        statistic="quantile",
        names=_named(columns, request.labels),
        lower=np.array([one.lower for one in found]),
        upper=np.array([one.upper for one in found]),
        alpha=request.alpha,
        **inputs.estimate_fields([one.estimate for one in found], columns.bounds),
        **columns.fields(account, "permute-and-flip"),
    )


def _opened(
    request: QuantileRequest, account: Account, columns: Columns
) -> tuple[Bought | None, Mapping[tuple[str, int], tuple[Part, ...]]]:
    """Open the lines: of the numbers of values, unless they are known, and of each quantile.

    Every line is one release over all groups. Returns what buys the numbers of all columns, and a
    part for each column, quantile and group.
    """
    grouped, several, counting = columns.by is not None, len(columns.names), None
    whole, known = request.budget.eps, columns.complete
    count_eps = Fraction(0) if known else whole * _COUNT_SHARE
    each = Budget((whole - count_eps) / (len(request.shares) * several))
    histogram.check_eps(each.eps, request.protection, grouped=grouped)
    if not known:
        noise = histogram.count_noise(
            columns.lines * several,
            cost=Budget(count_eps / several),
            protection=request.protection,
            noise="laplace",
            single=not grouped,
        )
        part = account.line("number of values", "discrete laplace", Budget(count_eps))
        counting = Bought(noise, part)
    parts = {
        (name, place): account.line(
            f"{name}: {label} and interval", "permute-and-flip", each
        ).across(columns.lines)
        for name in columns.names
        for place, label in enumerate(request.labels)
    }
    return counting, parts


def _cells(columns: Columns, grids: dict[str, Floats]) -> dict[str, Ints]:
    """Count each column's values in the cells of its grid, group by group."""
    vector = columns.total(partial(_counted, grids, columns.lines), "quantiles").astype(np.int64)
    ends = np.cumsum([grid.size for grid in grids.values()])
    parts = np.split(vector.reshape(columns.lines, -1), ends[:-1], axis=1)
    return dict(zip(grids, parts, strict=True))


def _counted(grids: Mapping[str, Floats], groups: int, grouped: inputs.Grouped) -> Integers:
    """Count each column's values in the cells of its grid, group by group."""
    counted = {name: np.zeros((groups, grid.size), dtype=np.int64) for name, grid in grids.items()}
    for chunk, labels in grouped:
        for name, grid in grids.items():
            values = np.clip(chunk[name], grid[0], grid[-1])
            for line in range(groups):
                there = values[(labels == line) & ~np.isnan(values)]
                counted[name][line] += cell_counts(there, grid)
    return np.hstack([*counted.values()]).ravel()


@recorded(_quantile, OfColumns)
def dp_quantile(
    x: Cells,
    q: Amounts,
    data: Table = None,
    *,
    eps: Amount,
    alpha: float = 0.05,
    **others: Unpack[OfColumns],
) -> ClassicResults:
    """Release quantiles of bounded columns, with intervals that need no distribution.

    Each quantile is three choices among public grid points, for itself and for the ends of its
    interval (`dpreg.estimation.histogram`). Several quantiles and columns share eps equally. A
    twentieth of eps buys the number of values, unless `complete` says that it is n.

    Parameters
    ----------
    x : str, list of str, array, Series, DataFrame or mapping
        Name(s) of columns of `data`; or the column(s) themselves, without `data`. A missing value
        is left out of its own column; values outside the bounds are clipped.
    q : number or list of numbers in (0, 1)
        Taken to the nearest multiple of 2**-16.
    data : table, optional
        What `dpreg.sources.as_source` takes.
    eps : number or decimal string
        The most that the whole call may cost.
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
