"""`sample_aggregate`: any estimator made private, by averaging it over random blocks of rows.

What blocks are taken from: lists, arrays, or declared columns of a table, brought here once.

*Statement.* What the estimator gets of one block is a function of that block's rows, of the schema
and of the type of `data`: so one person's rows change the values of the blocks that they are in,
and no others. `dpreg.estimation.blocks` rests on this.

*Proof.* Only declared columns are taken from a table, a frame or a mapping. Each cell is read on
its own, as declared (`dpreg.cells`); a column's type follows from its declaration; categories are
the schema's levels; the frame that blocks are taken from is made here, without ``attrs``, and its
labels are 0, 1, 2, ... in every block. A Series comes as float64, or as `schema` declares its name.
An array comes as float64, cell by cell; an item of a list is handed over as it is.

The container's own types would not do: pandas turns a column of integers into one of floats, or of
objects, as soon as one cell is missing, and a category that a single row has is listed in every
block.

The steps of `sample_aggregate` except the estimator: check, charge, draw the blocks, release.

Whoever runs the estimator sends the blocks' values in between: `dpreg.api.aggregate` for Python,
and the R package for functions of R, which must not run inside a call of Python's.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import cycle
from typing import Any, Final, Self, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.arguments import Every
from dpreg.api.context import open_table, recorded
from dpreg.api.inputs import Bought, Choices, estimate_fields, group_codes, grouping
from dpreg.arrays import Floats, Ints, Places
from dpreg.columns import Boolean, Categorical, ColumnType, Unbounded
from dpreg.errors import ArgumentError
from dpreg.estimation import blocks
from dpreg.estimation.blocks import Estimator, Limits
from dpreg.estimation.sums import Estimate
from dpreg.formula.where import Where, where_of
from dpreg.options import Amount, Bounds, Table
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms.coins import block_seeds
from dpreg.privacy.noise import VectorNoise
from dpreg.request import Arguments, checked, choice, count, defaults_of, optional, positive, truth
from dpreg.results.classic import ClassicResults
from dpreg.results.notes import worded
from dpreg.schema import Schema
from dpreg.sources import LocalSource, as_source
from dpreg.sources.base import find_column
from dpreg.sources.persons import COIN
from dpreg.sources.reader import Reader, showing

_CLUSTERS: Final = ("dask", "dask_expr", "pyspark")


@dataclass(eq=False, repr=False, kw_only=True)
class BlockTable:
    """Rows of which blocks are taken: a list's, an array's, or columns that are brought here.

    Blocks of columns are DataFrames, or Series where `one` column was given as such.

    Attributes
    ----------
    held : DataFrame, Series, array, list or None
        The rows, once they are here.
    reader : Reader or None
        Of a table.
    columns : mapping of str to ColumnType
        What is read of it.
    by : str or None
        The column that groups the rows, if any.
    groups : tuple of str
        Its levels, from the schema.
    where : Where or None
        Rows that fail this test are in no block.
    labels : array of int
        Each row's group, once they are here: -1 for none, 0 without grouping.
    coins : array or None
        Of the persons whose rows they are, where that is known.
    """

    held: Any = None
    reader: Reader | None = None
    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    by: str | None = None
    groups: tuple[str, ...] = ()
    where: Where | None = None
    one: bool = False
    labels: Ints = field(init=False)
    coins: Floats | None = field(init=False, default=None)

    @property
    def by_person(self) -> bool:
        """Whether they are the kept rows of persons, who have coins."""
        return self.reader is not None and self.reader.persons is not None

    def count(self) -> int | None:
        """Count the rows before they are read; None where only reading them tells."""
        if self.reader is None:
            return len(self.held)
        source = self.reader.source
        return None if source.rows is None and not source.rereadable else self.reader.rows

    def read(self) -> int:
        """Have the rows here, and return their number."""
        if self.reader is None:
            self.labels = np.zeros(len(self.held), dtype=np.int64)
            return len(self.held)
        parts, passing = [], [np.zeros(0, dtype=np.bool_)]
        names = (*self.columns, COIN) if self.by_person else tuple(self.columns)
        for chunk in self.reader.chunks(self.columns, "rows"):
            parts.append({name: chunk[name] for name in names})
            if self.where is not None:
                passing.append(self.where.passes(chunk))

        def whole(name: str, how: ColumnType | None = None) -> NDArray[Any]:
            # Always a copy: a chunk may be a view of the caller's table.
            first = np.zeros(0, np.int32 if isinstance(how, Categorical) else np.float64)
            return np.concatenate([first, *(part.pop(name) for part in parts)])

        cells = {name: whole(name, how) for name, how in self.columns.items()}
        frame = pd.DataFrame(
            {name: _column(self.columns[name], own) for name, own in cells.items()}
        )
        self.held = frame.iloc[:, 0] if self.one else frame
        if self.by_person:
            self.coins = whole(COIN)
        self.labels = np.zeros(len(frame), dtype=np.int64)
        if self.by is not None:
            self.labels = group_codes(cells[self.by])
        if self.where is not None:
            self.labels[~np.concatenate(passing)] = -1
        return len(frame)


def _column(how: ColumnType, cells: NDArray[Any]) -> Any:
    """Return a column of blocks; its type follows from its declaration."""
    match how:
        case Categorical(levels):
            return pd.Categorical.from_codes(cells, dtype=pd.CategoricalDtype(list(levels)))
        case Boolean():
            return pd.arrays.BooleanArray(cells == 1, np.isnan(cells))
        case _:
            return cells


def block_table(asked: Choices, call: Arguments) -> BlockTable:
    """Settle from public facts what blocks are taken from; read no row.

    Parameters
    ----------
    asked : Choices
    call : mapping
        Its arguments data, by, schema, where and progress. Of tables `data` may be one that this
        process can read: blocks are DataFrames of the columns that `schema` declares. `by` is one
        of these, with levels. Rows that fail `where` are in no group, and so in no block.

    Raises
    ------
    ArgumentError, SchemaError, DataError
    """
    data, by, declared = call["data"], call["by"], Schema.from_any(call["schema"])
    showing(call["progress"])
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column of the data.")
    if isinstance(data, np.ndarray | list | pd.Series):
        for name, given in (("by", by), ("person", asked.protection.person)):
            if given is not None:
                raise ArgumentError(
                    f"{name} must be the name of a column of a DataFrame, mapping or table."
                )
        if call["where"] is not None:
            raise ArgumentError("where tests columns of a DataFrame, mapping or table.")
    if isinstance(data, np.ndarray | list):
        if declared:
            raise ArgumentError(
                f"data is {'a list' if isinstance(data, list) else 'an array'}, whose items are "
                "rows without columns, and schema declares columns: leave schema out; or give a "
                "DataFrame or mapping, or for several files a glob, a folder, or a tuple of paths."
            )
        return BlockTable(
            held=data if isinstance(data, list) else blocks.numbers_of(np.asarray(data))
        )
    test = None if call["where"] is None else where_of(call["where"], declared)
    call = {**call, "where": None}  # rows that fail are brought, and put into no block
    if one := isinstance(data, pd.Series):
        name = data.name if isinstance(data.name, str) else "x"
        reader, _ = open_table(asked, call, as_source({name: data}))
        columns = {name: declared.get(name, Unbounded())}
    else:
        source = _local_source(data, declared)
        reader, _ = open_table(asked, call, source)
        known = {*source.names, *(() if test is None else test.columns), by}
        columns = {name: how for name, how in declared.items() if name in known}
        if not columns:
            find_column(source.names, next(iter(declared)))
    levels = () if by is None else grouping(by, declared)[1]
    reader.settle(columns)
    reader.require(1)
    return BlockTable(reader=reader, columns=columns, by=by, groups=levels, where=test, one=one)


def _local_source(data: Any, declared: Schema) -> LocalSource:
    """Take a table as one that this process reads, of columns that are declared."""
    spread = type(data).__module__.partition(".")[0] in _CLUSTERS
    source = None if spread else as_source(data)
    if not isinstance(source, LocalSource):
        raise ArgumentError(
            f"data is a {type(data).__name__}, whose rows are spread over a cluster, and an "
            "estimator needs a block's rows together. Bring the columns that it needs here, by "
            ".compute() of a Dask or .toPandas() of a Spark DataFrame; or call dp_mean, "
            "dp_quantile, dp_histogram or dp_suffstats, which add up where the rows are."
        )
    if not declared:
        raise ArgumentError(
            "schema must declare the columns that the estimator is to get of this table: what is "
            "inferred from rows would make a block's value depend on other blocks."
        )
    return source


_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the number of blocks, where it is private."""

_MOST_BLOCKS: Final = 10**7
_MOST_DOUBT: Final = 10**6
"""Standard error, in rows, of the noisy number of rows beyond which it says too little."""
_DOUBT: Final = 4
"""Standard errors of the number of rows below which it may be next to nothing."""

_LONGEST: Final = Fraction(10**6)
"""Seconds of a time limit: waiting for a process counts in milliseconds, in 31 bits."""

_NEAR: Final = 4.0
"""Standard errors from the midpoint within which an aggregate lies at it."""
_AT_MIDPOINT: Final = 1e-5
"""Or this part of half the bounds' width: so far a window about it reaches."""
_NO_SPREAD: Final = 1e-3
"""Spread of block values, as a part of half the bounds' width, that is next to nothing."""


def _seconds(timeout: object, name: str) -> float:
    """Return the seconds of a time limit."""
    return float(positive(timeout, name, _LONGEST))


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one group, or of all rows, whose values are wanted.

    Attributes
    ----------
    rows : list of B index arrays
    seeds : list of B int
        Of the random numbers of each block's estimator.
    """

    rows: list[Places]
    seeds: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Choices):
    """What a call asks for, except the estimator and the rows.

    Attributes
    ----------
    aggregation : str
        One of `AGGREGATES`.
    blocks : int or None
    correct_bias : bool
    timeout : float or None
        Seconds for all that is done with one block.
    names : tuple of str
        Of the d numbers that the estimator returns.
    limits : Limits
    """

    aggregation: str = checked(choice, blocks.AGGREGATES)
    blocks: int | None = checked(optional, count, 1, _MOST_BLOCKS)
    correct_bias: bool = checked(truth)
    timeout: float | None = checked(optional, _seconds)
    names: tuple[str, ...]
    limits: Limits

    @classmethod
    def of(cls, call: Arguments) -> Self:
        """Check the arguments of `sample_aggregate`; what is left out has its default."""
        defaults = defaults_of(inspect.signature(sample_aggregate))
        return super(Aggregate, cls).of({**defaults, **call})

    @classmethod
    def settled(cls, told: dict[str, Any], call: Arguments) -> dict[str, Any]:
        """Name the numbers that the estimator returns, by their bounds."""
        told["names"], told["limits"] = blocks.limits_of(call["bounds"])
        return told

    def steps(
        self, table: BlockTable, budget: Ledger | None
    ) -> Generator[Blocks, Floats, ClassicResults]:
        """Run the call, except the estimator, which the caller runs.

        The first `next` charges the ledger, and only then is a row read or noise drawn; nor are
        the rows counted before, unless their number is public and `blocks` is given.

        Parameters
        ----------
        table : BlockTable
        budget : Ledger or None

        Yields
        ------
        Blocks
            What must be sent back is the value of each block, (B, d), within `limits`: a function
            of the block's rows and of its seed alone.

        Returns
        -------
        ClassicResults

        Raises
        ------
        ArgumentError, BudgetError
            Before the charge, except where `blocks` are too many for a stream, whose (public)
            number of rows is known only once it has been read.
        """
        lines = max(len(table.groups), 1)
        if self.protection.person is not None and not table.by_person:
            raise ArgumentError(
                "person needs a table whose rows dpreg reads itself: leave it out here, and say by "
                "contributions how many rows one person may own."
            )
        changes = blocks.block_changes(self.protection, lines, grouped=table.by is not None)
        whole, account = self.budget.eps, self.account()
        counted = None
        if self.blocks is None and not self.protection.n_is_public:
            share = Budget(whole * _COUNT_SHARE)
            counted = Bought.counts(account, "number of rows", 1, share, single=True)
            _check_count(counted.noise)
        most = Budget(whole - account.total.eps, self.budget.delta)
        _, public = blocks.plan_averages(len(self.names), lines, most, changes, self.noise)
        if self.aggregation == "winsorized":
            blocks.check_window(len(self.names), changes, most.eps)
        if self.blocks is not None and self.protection.n_is_public:
            self._check_blocks(table.count(), lines)
        average = account.joint(
            "average over blocks",
            f"discrete {public.mechanism}",
            Budget(most.eps, public.cost.delta),
        )
        account.charge(budget, "sample_aggregate")
        # How eps is divided among the steps may follow the released number of rows.
        rows = table.read()
        if self.protection.n_is_public:
            self._check_blocks(rows, lines)
        each = whole / (len(self.names) * changes.after.contributions)
        known = rows + (0 if counted is None else counted.noise.draw(1, counted.part)[0])
        size = self.blocks or blocks.default_blocks(max(known, 1) // lines, each)
        size = min(size, _MOST_BLOCKS)  # noise has no largest value
        windows: tuple[Part, ...] | None = None
        if self.aggregation == "winsorized" or (
            self.aggregation == "auto" and blocks.window_pays(size, each)
        ):
            share = Budget(whole * blocks.window_share(size, each))
            part = average.release("window of block values", "permute-and-flip", share)
            windows = part.across(lines)
        rest = average.part()
        planned = blocks.plan_averages(len(self.names), lines, rest.cost, changes, public.mechanism)
        averages = rest.across(lines)
        labels, coins = table.labels, table.coins
        estimates: list[Estimate] = []
        for line in range(lines):
            members = np.flatnonzero(labels == line)
            mine = None if coins is None else coins[members]
            parts = blocks.draw_blocks(members.size, size, account.rng, mine)
            seeds = block_seeds(size, rng=account.rng)
            values = yield Blocks([members[part] for part in parts], seeds)
            within = self.limits
            if windows is not None:
                within = blocks.window(values, self.limits, part=windows[line], changes=changes)
            estimates += blocks.release_averages(
                within.clip(values), within, planned, averages[line]
            )
        pairs = zip(self.limits.lower, self.limits.upper, strict=True)
        parted = table.by is not None or table.where is not None
        bounds = dict(zip(self.names, pairs, strict=True))
        return ClassicResults(
            statistic="sample and aggregate",
            names=self.names,
            passes=1 if table.reader is None else table.reader.passes,
            blocks=size,
            **estimate_fields(estimates, bounds),
            **self.fields(account, table.by, table.groups, rows, public.mechanism),
            notes=(
                *self._failing(estimates, size),
                worded("bias"),
                *self._empty_blocks(parted, known, counted),
            ),
        )

    def _failing(self, estimates: list[Estimate], size: int) -> tuple[str, ...]:
        """Say, from released numbers, which aggregates look as if blocks were all midpoints."""
        limits, found = self.limits, []
        middles = zip(cycle(self.names), cycle(limits.midpoint), cycle(limits.upper), strict=False)
        for one, (name, middle, upper) in zip(estimates, middles, strict=False):
            half, error = upper - middle, math.hypot(one.sampling, one.privacy)
            spread = max(one.sampling * math.sqrt(size), error)
            near = max(_NEAR * error, _AT_MIDPOINT * half)
            if spread <= _NO_SPREAD * half and abs(one.value - middle) <= near:
                found.append(name)
        if not found:
            return ()
        return (worded("midpoints", names=", ".join(dict.fromkeys(found))),)

    def _check_blocks(self, rows: int | None, lines: int) -> None:
        """Refuse, where n is public, more blocks than have two rows each on average."""
        if self.blocks is None or rows is None or self.blocks * lines <= rows // 2:
            return
        each = f" in each of {lines} groups" if lines > 1 else ""
        raise ArgumentError(
            f"blocks={self.blocks}{each} are too many for {rows} rows: with fewer than two rows to "
            "a block many are empty, and an empty block counts as the midpoint of the bounds. Ask "
            "for far fewer, or leave blocks out."
        )

    def _empty_blocks(self, grouped: bool, known: int, counted: Bought | None) -> tuple[str, ...]:
        """Say, from arguments and the released number of rows, that blocks may be empty."""
        doubtful = counted is None or known < _DOUBT * math.sqrt(counted.noise.variance)
        if not grouped and (self.protection.n_is_public or not doubtful):
            return ()
        where = "in a group of few rows" if grouped else "unless rows are many times the blocks"
        return (worded("empty-blocks", where=where),)


def _check_count(counting: VectorNoise) -> None:
    """Refuse, from public facts, a number of rows that is little but noise: so would the blocks be.

    A table of a hundred rows would be cut into as many blocks as the noise happens to ask for.
    """
    error = math.sqrt(counting.variance)
    if error > _MOST_DOUBT:
        raise ArgumentError(
            "eps is too small to buy the number of rows, from which the number of blocks follows: "
            f"its noise would be about {error:,.0f} rows. Give blocks, or a larger eps."
        )


def _aggregate(call: Arguments) -> ClassicResults:
    asked, estimator = Aggregate.of(call), call["estimator"]
    if not callable(estimator):
        raise ArgumentError("estimator must be callable: it takes a block and returns numbers.")
    if asked.timeout is not None and sys.platform == "win32":
        raise ArgumentError("timeout needs processes that can be forked: leave it out on Windows.")
    table = block_table(asked, call)
    steps = asked.steps(table, call["budget"])
    blocks_of = next(steps)
    while True:
        values = blocks.block_values(
            estimator,
            table.held,
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


@recorded(_aggregate, Every)
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
    by: str | None = None,
    timeout: float | None = None,
    noise: str | None = None,
    **others: Unpack[Every],
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
    timeout : float, optional
        Seconds for each block; later its value is the midpoint. Each block then runs in a forked
        process that is killed at the limit (not on Windows). At most a million; off by default. A
        time limit makes results depend on the machine's load.
    noise : {None, "laplace", "gaussian"}

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
