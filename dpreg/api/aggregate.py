"""`sample_aggregate`: any estimator made private, by averaging it over random blocks of rows.

Tested in `tests/api/test_blockwise.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpreg.api.block_table import block_table
from dpreg.api.blockwise import Aggregate
from dpreg.api.recorded import recorded
from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import Estimator, block_values, time_limits_work
from dpreg.signatures import Amount, Bounds, SchemaLike, Table
from dpreg.sources.persons import Persons

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger
    from dpreg.results.classic import ClassicResults

__all__ = ["sample_aggregate"]


@recorded
def sample_aggregate(
    estimator: Estimator,
    data: Table,
    *,
    eps: Amount,
    delta: Amount = 0,
    bounds: Bounds | Sequence[Sequence[float]],
    blocks: int | None = None,
    correct_bias: bool = True,
    aggregation: str = "auto",
    neighbors: str = "replace-one",
    contributions: int = 1,
    person: str | None = None,
    by: str | None = None,
    schema: SchemaLike = None,
    where: str | None = None,
    timeout: float | None = None,
    noise: str | None = None,
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> ClassicResults:
    """Make any estimator private by averaging it over random blocks of rows (Smith 2008, 2011).

    Parameters
    ----------
    estimator : callable
        Takes a block, of the type that `data` says, returns one number or d. It must be a function
        of the block and of random numbers: no state between calls. Python's `random` and NumPy's
        global generator are started anew for each block, and are the caller's again at the end;
        other libraries' generators it must start itself. Where it raises,
        returns another shape or a number that is not finite, the block counts as the midpoint
        of the bounds; nothing is said about it. Warnings inside are dropped; what it prints or
        logs is its own author's matter.
    data : table, Series, array or list
        What a block holds must not depend on rows of other blocks, and a dtype that was inferred
        from rows does. So a column's type in a block follows from its declaration, and each cell is
        read on its own.

        A *table* is what `dpreg.sources.as_source` takes: a DataFrame or a mapping of names to
        arrays; a path or glob of Parquet or CSV files, or a tuple of them (the items of a list are
        rows); an Arrow, Polars or DuckDB table, or a stream of one; a function that returns chunks.
        All columns that `schema` declares, and no others, are brought into this process in one
        pass, for an estimator needs a block's rows together. Blocks are pandas DataFrames with
        labels 0, 1, 2, ..., whose columns are float64 for bounds (NaN where missing; not clipped to
        the bounds), nullable "boolean" for bool, and Categorical with all declared levels, in their
        order, for levels (any other label is missing).

        Blocks of a *Series* are Series, of float64 or as `schema` declares its name. Blocks of an
        *array* are arrays of float64; cells that are not numbers are NaN. Blocks of a *list* are
        lists of its items.

        Dask and Spark DataFrames are refused: bring the columns here by ``.compute()`` or
        ``.toPandas()``, or call `dp_mean`, `dp_quantile`, `dp_histogram` or `dp_suffstats`, which
        add up where the rows are. Missing values are the estimator's to handle.
    eps, delta : number or decimal string
        The most that the whole call may cost; delta is spent only on Gaussian noise.
    bounds : (lo, hi), or sequence of such pairs, or mapping of name to (lo, hi)
        Public bounds of each number that the estimator returns; a mapping names them.
    blocks : int, optional
        B. Default: n^(5/8)/(2 sqrt(e)) with e = eps/(d k), at least 200/e and at most n/20 (n over
        the number of groups with `by`). Under add-remove n is private and a fiftieth of eps buys a
        noisy one for this; where the noise would exceed a million rows, `blocks` must be given. A
        block without rows counts as the midpoint of the bounds: where n is public, blocks with
        fewer than two rows each on average are refused; where it is private, a note of the result
        warns.
    correct_bias : bool
        Whether to remove the bias of order 1/(rows of a block) by a jackknife over four parts, at
        five calls a block instead of one; see `dpreg.estimation.blocks`.
    aggregation : {"auto", "winsorized", "mean"}
        "winsorized" buys a window of the block values with up to half of eps, so that noise is in
        proportion to their spread; "mean" (2008) adds noise in proportion to the bounds' width.
        "auto": the former where B eps/(d k) is at least 200.
    neighbors : {"replace-one", "add-remove"}
    contributions : int
    person : str, optional
        The column that says whose row it is, which `schema` does not declare. At most
        `contributions` rows of each person are used, drawn at random. They are in one block, so
        `contributions` costs nothing without `by`. Ids that are numbers are one person if they
        agree in 15 digits: put a letter before ids of more digits.
    by : str, optional
        A column of a table whose levels `schema` declares: an
        estimate in each of its groups, of B blocks each. Under replace-one a person's rows may
        leave one group and join another, so that noise is twice as large as without groups.
    schema : mapping, Schema or path, optional
        Needed for a table: the columns that the estimator gets, and `by`.
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows are excluded, and how many pass is
        private (`dpreg.formula.where`).
    timeout : float, optional
        Seconds for each block; later its value is the midpoint. Each block then runs in a forked
        process that is killed at the limit (not on Windows). At most a million; off by default. A
        time limit makes results depend on the machine's load.
    noise : {None, "laplace", "gaussian"}
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show a bar on stderr while a table is read, for the curator's eyes only; default where
        stderr is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    ClassicResults
        `bse_sampling` comes from the spread of block values, whatever the estimator. What remains
        of the bias is not in the intervals.

    Raises
    ------
    ArgumentError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read. After the charge, which
        stands: where an engine fails while it reads, DataError; where n is public and `blocks` are
        too many for a stream that can be read only once, ArgumentError. Exceptions raised by
        the estimator are suppressed, except KeyboardInterrupt.

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
    >>> import dpreg
    >>> import numpy as np
    >>> waits = np.random.default_rng(0).exponential(size=20_000)
    >>> result = dpreg.sample_aggregate(np.median, waits, eps=1, bounds=(0, 10))
    >>> bool(abs(result.params["theta0"] - np.log(2)) < 0.2)
    True
    """
    asked = Aggregate.of(locals())
    if not callable(estimator):
        raise ArgumentError("estimator must be callable: it takes a block and returns numbers.")
    if asked.timeout is not None and not time_limits_work():
        raise ArgumentError("timeout needs processes that can be forked: leave it out on Windows.")
    persons = Persons.of(asked.choices.protection, asked.choices.seed)
    table = block_table(data, by, schema, progress, persons, where)
    steps = asked.steps(table, budget)
    blocks_of = next(steps)
    while True:
        values = block_values(
            estimator,
            table.rows,
            blocks_of.rows,
            asked.limits,
            correct_bias=asked.correct_bias,
            timeout=asked.timeout,
            seeds=blocks_of.seeds,
        )
        try:
            blocks_of = steps.send(values)
        except StopIteration as end:
            result: ClassicResults = end.value
            return result
