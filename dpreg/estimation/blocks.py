"""Run a user's estimator on blocks of rows so that only a block's value gets out.

A block's value is a function of the block alone: the numbers that the estimator returns, checked
and clipped to public bounds, or the midpoint of the bounds where it raises, returns something of
another shape or a number that is not finite, or exceeds the caller's time limit. dpreg raises,
warns and prints nothing that depends on it, and counts no failures.

What the estimator itself does is the caller's responsibility: it should print and log nothing, and
keep no state between calls, since a block's value would then depend on other blocks. Random numbers
are not such state: each block has streams of its own (`dpreg.estimation.blocks`). With a time
limit each call runs in a forked process that is killed when the time is up, and state that it
changes dies with it. A time
limit makes values depend on the machine's load, and running times depend on rows in any case:
anyone who can observe them learns more than the budget says.

Bias correction
---------------
*Statement.* Let the estimator on m rows have expectation theta + b/m + O(m^-2), as maximum
likelihood has in regular models. Split the block's rows into g parts of m_1 .. m_g rows (row i into
part i mod g) and let t_(-j) be the estimate without part j. Then

    g t - sum_j (1 - m_j/m) t_(-j)

has bias O(m^-2); where t is the mean of something it returns t itself; its variance is that of t up
to O(m^-2).

*Proof.* E t_(-j) = theta + b/(m - m_j) + O(m^-2). The weights sum to g - 1, so theta has the
coefficient g - (g - 1) = 1; the terms in b are g b/m - sum_j (1 - m_j/m) b/(m - m_j)
= g b/m - g b/m = 0. A mean of influences over rows: row i, in part p, has the coefficient
g/m - sum_(j != p) (1 - m_j/m)/(m - m_j) = g/m - (g - 1)/m = 1/m, as in t. (Delete-a-group
jackknife: Quenouille 1956; Busing, Meijer and van der Leeden 1999.) Of the second-order terms, of
variance O(m^-2), those of two rows in one part cancel and those in different parts get the factor
g/(g - 1): the variance of that order is g/(g - 1) times what it was, 4/3 for g = 4.

*Why it is needed* (Smith 2008, 2011). The mean over B blocks of n/B rows has bias b B/n without
correction, noise of scale 1/(B eps). For both to be small against n^(-1/2), B must be small against
n^(1/2) and large against n^(1/2)/eps: impossible unless eps grows. Corrected, the bias is of order
(B/n)^2, so that B need only be small against n^(3/4): possible as soon as eps n^(1/4) is large.
Smith corrects with the model's own bias formula; the jackknife does it for any estimator.

Row i of the block into part i mod g: coins assigned rows to blocks, so the order within a block
follows no pattern of the table.

Random numbers of an estimator's own: a stream for each block that no other block has moved.

Python's `random` and NumPy's global generator belong to the process. Left alone, a block would
begin where the block before it stopped, which depends on the rows of that one: one changed row
could then move the value of every block that follows, where the sensitivity allows for one. And in
forked processes each block would begin at the same number, so that the noise of an estimator that
draws would not average out.

Statement
---------
Let each block begin with both generators started from a seed of its own, and let the seeds be
independent of the rows. For an estimator that is a function of its block and of what it draws from
these generators (or from the system's entropy), the seeds fixed, tables that differ in rows of one
block give the other blocks equal values.

Proof. After `start` both generators are functions of the seed alone: `random.seed` and `MT19937`
set their whole states, the pair of normal numbers that each may hold back included. So a value is a
function of (block, seed). Averaging over the seeds, whose law is the same for both tables, keeps
(eps, delta). In threads that run estimators at once the generators are shared, and this holds
of none of them: with a time limit, which gives each block a process, it holds there too.

Sample and aggregate (Smith 2008, 2011): a private average of an estimator over blocks.

Independent coins send each row to one of B blocks, B public; `dpreg.estimation.blocks` computes a
number (or d of them) in each, within public bounds. Two ways to average:

*mean* (2008): the average of the block values plus noise in proportion to the width of the bounds;
*winsorized* (2011): private centre and scale of the block values give a window that holds nearly
all of them, values are clipped to it, and noise is in proportion to the window, which shrinks as
blocks grow. The window is bought with 150/B of the eps that a value of one person has (half of it
at most): what it needs, whatever B.

Statement
---------
Both are eps-DP ((eps, delta) with Gaussian noise) under both relations, for any estimator that is a
function of its block (and of fresh random numbers).

Proof
-----
Fix the coins: neighbours may be taken to agree on the blocks of all common rows, though under
add-remove these have other places ("Rows keep their coins" in `dpreg.privacy.mechanisms.coins`),
and k rows lie in at most k blocks. So at most k of the B values change, each within the bounds,
and B is fixed, under both relations. Window: the centre is the median of the values, the scale a
quantile of their distances from that released centre; each is a choice by rank among public
candidates, T = a B, N = B fixed, range 2k (`dpreg.privacy.ranks`), three and two fifths of eps_w/d
in each of d coordinates.
Average: given the window the clipped values in [-1, 1] units are B rows of a table in which at most
k rows are replaced and none is missing: `dpreg.estimation.sums` with a public count, L1 sensitivity
2 k d, squared L2 4 k^2 d, squares included. The steps compose in sequence. Averaging over the coins
keeps both.

The squares, free of charge, estimate the variance s^2 of block values; the standard error of the
average from sampling is s/sqrt(B), whatever the estimator: no formula for its variance is needed.

*Groups.* Where a public column splits the rows, each group has B blocks of its own. Under
add-remove k rows change at most k block values of all groups together. A replaced row may leave one
group and join another, which changes one value in each: k rows at most 2k. With `moved` for that
number, a choice calibrated to it loses at most eps_w j/moved where j values of its group change
(its range is linear in them), which sums to eps_w over groups; and the averages of all groups are
one vector whose changes obey the triangle inequality over the moved values, as above with moved
for k.

*Persons.* Where the table says whose row each row is, all kept rows of a person have one coin
(`dpreg.sources.persons`): without groups they lie in one block, and one value changes, whatever k.
With L groups they lie in at most k of them, in one block of each; a replaced person's rows leave at
most k and join at most k, the same block in each: at most min(k, L), or min(2k, L), values change.

*Window.* The centre is one of 2**16 points between the bounds. A stretch without values is chosen
with odds of about (its width over the spread of the values) exp(-B eps_c/(4k)), eps_c what the
centre costs: hence `TUNING.window_blocks`. The scale w is the least power of two (times the bounds'
width) with half of the distances within it, and the window reaches 5w to both sides: 3.4 to 6.7
standard deviations of a normal law. Half, because a scale that is far too wide then misses its rank
by half of all blocks. Smaller reaches cut skew block values, and intervals cover too seldom.

*Blocks.* By default B = n^(5/8)/(2 sqrt(e)), e = eps/(d k) and at most 1: between n^(1/2)/e, below
which noise dominates, and n^(3/4), above which bias does; at least the 200/e that a window needs,
and at most n/20. At n = 10,000 and eps = 1 that is 200 blocks of 50 rows.
"""

from __future__ import annotations

import contextlib
import gc
import math
import multiprocessing
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.random import Generator, mtrand
from numpy.typing import NDArray

from dpreg.arrays import Floats, Places
from dpreg.cells import number
from dpreg.columns import Numeric
from dpreg.errors import ArgumentError, SchemaError
from dpreg.estimation import sums
from dpreg.estimation.sums import Coding, Estimate, mean_estimates
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger.handle import kept
from dpreg.privacy.mechanisms.choice import noise_scale
from dpreg.privacy.mechanisms.coins import assign_blocks, groups_of_coins
from dpreg.privacy.noise import VectorNoise
from dpreg.privacy.protection import Protection, Transformation
from dpreg.privacy.ranks import RANK_UNIT, cell_counts, choose_rank, fixed_range
from dpreg.running import silenced


def start(seed: int) -> None:
    """Start Python's and NumPy's global generators from a seed, whatever they were before."""
    random.seed(seed)
    mtrand.set_bit_generator(np.random.MT19937(seed))


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Give the caller both generators back as they were, whatever is done to them inside."""
    pythons, numpys = random.getstate(), mtrand.get_bit_generator()
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(pythons)
        mtrand.set_bit_generator(numpys)
        np.random.set_state(state)  # noqa: NPY002  (the normal number held back is not in numpys)


Estimator: TypeAlias = Callable[[Any], Any]
"""Takes a block, of the same type as the data; returns a number or d numbers."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Public bounds of the d numbers that an estimator returns."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    @property
    def midpoint(self) -> Floats:
        """What stands for a block on which the estimator failed."""
        low, high = np.array(self.lower), np.array(self.upper)
        return np.asarray(low + (high - low) / 2, dtype=np.float64)

    def clip(self, values: Floats) -> Floats:
        """Bring values within the bounds; one that is not finite becomes its midpoint."""
        finite = np.where(np.isfinite(values), values, self.midpoint)
        return np.asarray(np.clip(finite, self.lower, self.upper), dtype=np.float64)


def taken(data: Any, index: Places) -> Any:
    """Take a block from data, a fresh copy of the same type whose labels are 0, 1, 2, ...

    Parameters
    ----------
    data : DataFrame or Series whose columns' types do not depend on rows; array; or list
        Blocks of an array of `numbers_of` are float64.
    index : index array
    """
    if isinstance(data, pd.DataFrame | pd.Series):
        return data.iloc[index].reset_index(drop=True)
    if isinstance(data, np.ndarray):
        return data[index].astype(np.float64, copy=False)
    return [data[i] for i in index]


def numbers_of(data: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose cells float64 can hold, NaN where a cell is not a number.

    Each cell is read on its own (`dpreg.cells`), whatever its dtype.

    Raises
    ------
    ArgumentError
        For arrays of text, dates or records.
    """
    match data.dtype.kind if data.ndim else "":
        case "b" | "i" | "u" | "f":
            return data
        case "O" | "c":
            numbers = [number(cell) for cell in data.ravel().tolist()]
            return np.array(numbers, dtype=np.float64).reshape(data.shape)
    raise ArgumentError(
        "data is an array that holds no numbers: give a DataFrame or a mapping of names to arrays, "
        "and declare the columns in schema."
    )


def limits_of(bounds: Any) -> tuple[tuple[str, ...], Limits]:
    """Read the bounds of the estimator's numbers: their names, and the bounds.

    Parameters
    ----------
    bounds : (lo, hi), or sequence of such pairs, or mapping of name to (lo, hi)

    Raises
    ------
    ArgumentError
    """
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


def evaluations(block: Places, correct_bias: bool) -> list[Places]:
    """List the rows of which a block's value needs estimates.

    Parameters
    ----------
    block : index array, shape (m,)
    correct_bias : bool

    Returns
    -------
    list of index arrays
        The block; then, with the correction, the block without each of its g parts. A block of
        fewer than 2 g rows is not corrected.
    """
    if not correct_bias or block.size < 2 * TUNING.parts:
        return [block]
    part = np.arange(block.size) % TUNING.parts
    return [block, *(block[part != j] for j in range(TUNING.parts))]


def corrected(estimates: Sequence[Floats], sizes: Sequence[int]) -> Floats:
    """Return a block's value from the estimates on its `evaluations`.

    Parameters
    ----------
    estimates : sequence of (d,) arrays
        Without the correction, or where the first holds NaN, only the first counts. Of a block
        without rows none does.
    sizes : sequence of int
        Rows of each evaluation.

    Returns
    -------
    (d,) array
        The corrected value; the plain one where a part cannot be done without.
    """
    whole, *others = estimates
    if not sizes[0]:
        return np.full_like(whole, np.nan)
    if not others or not np.isfinite(whole).all():
        return whole
    value = TUNING.parts * whole
    for without, size in zip(others, sizes[1:], strict=True):
        value = value - size / sizes[0] * without
    return np.where(np.isfinite(value), value, whole)


def block_values(
    estimator: Estimator,
    data: Any,
    blocks: Sequence[Places],
    limits: Limits,
    *,
    correct_bias: bool,
    timeout: float | None,
    seeds: Sequence[int],
) -> Floats:
    """Return each block's value within the bounds, (B, d); curator-only.

    Parameters
    ----------
    estimator : callable
    data : DataFrame, Series, array or list
        As for `taken`.
    blocks : sequence of index arrays
        Disjoint.
    limits : Limits
    correct_bias : bool
    timeout : float or None
        Seconds for all that is done with one block.
    seeds : sequence of int
        Of each block's random numbers; independent of the rows.
    """
    size = len(limits.lower)

    def value(block: Places, seed: int) -> Floats:
        """Return d numbers, NaN where there are none."""

        def work() -> Floats:
            start(seed)
            wanted = evaluations(block, correct_bias)
            found = [_attempt(estimator, data, wanted[0], size)]
            if np.isfinite(found[0]).all():
                found += [_attempt(estimator, data, part, size) for part in wanted[1:]]
            return corrected(found, [part.size for part in wanted[: len(found)]])

        if not block.size:
            return np.full(size, np.nan)
        return work() if timeout is None else _in_time(work, size, timeout)

    with put_back():
        found = [limits.clip(value(*one)) for one in zip(blocks, seeds, strict=True)]
    return np.array(found, dtype=np.float64).reshape(-1, size)


def _attempt(estimator: Estimator, data: Any, index: Places, size: int) -> Floats:
    """Call the estimator once, in silence; NaN for whatever is not d real numbers.

    What it returned ends in silence too: it may warn when it does, as a coroutine that nobody
    awaited.
    """
    failed = np.full(size, np.nan)
    found = None
    with _silence():
        try:
            found = estimator(taken(data, index))
            values = np.array(found, dtype=np.float64)
            if values.shape != (size,) and not (size == 1 and values.shape == ()):
                return failed
            return values.reshape(size)
        except KeyboardInterrupt:
            raise  # the caller's own, at the keyboard
        except BaseException:  # SystemExit as well: whether it was raised depends on the block
            return failed
        finally:
            found = None


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop warnings and put NumPy's error state back, whatever the estimator does to either."""
    with silenced(), kept(apart=True), np.errstate(all="ignore"):
        yield


def _in_time(work: Callable[[], Floats], size: int, timeout: float) -> Floats:
    """Run in a forked process and kill it when the time is up."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, send), daemon=True)
    try:
        with _silence():  # forking with threads about is warned of from Python 3.12 on
            process.start()
        send.close()
        if receive.poll(timeout):
            try:
                most = 8 * size  # by definition: bytes of a float
                return np.frombuffer(receive.recv_bytes(most), dtype=np.float64)
            except (EOFError, OSError):
                return np.full(size, np.nan)
        return np.full(size, np.nan)
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
            process.close()
        receive.close()


def _child(work: Callable[[], Floats], send: Connection) -> None:
    gc.freeze()  # what was garbage before the fork may wait for threads that are not here
    send.send_bytes(np.ascontiguousarray(work()).tobytes())


AGGREGATES: Final = ("auto", "winsorized", "mean")
_LARGEST_SHARE: Final = Fraction(1, 2)
_CANDIDATES: Final = 1 << 16
_SCALES: Final = 24  # precision
_MEDIAN: Final = RANK_UNIT // 2


def default_blocks(rows: int, share: Fraction) -> int:
    """Return B, a public function of the (public or released) number of rows.

    Parameters
    ----------
    rows : int
    share : Fraction
        eps/(d k), for d numbers and k rows a person.
    """
    each = float(min(share, Fraction(1)))
    rate = math.pow(max(rows, 1), 0.625)  # by definition: the best rate of a mean of blocks
    wanted = max(rate / (2 * math.sqrt(each)), TUNING.window_blocks / each)
    return max(1, min(math.floor(wanted), rows // TUNING.rows_in_block))


def window_pays(blocks: int, share: Fraction) -> bool:
    """Tell, from public facts, whether there are blocks enough for a window to be found."""
    return blocks * share >= TUNING.window_blocks


def window_share(blocks: int, share: Fraction) -> Fraction:
    """Return the part of eps that buys the window: less of it the more blocks there are.

    Parameters
    ----------
    blocks : int
    share : Fraction
        eps/(d k), for d numbers and k rows a person.
    """
    return min(_LARGEST_SHARE, Fraction(TUNING.window_need) / (blocks * share))


def block_changes(
    protection: Protection, groups: int = 1, *, grouped: bool = False
) -> Transformation:
    """Say how many of all groups' block values a person can change; see the module.

    Their number is public under both relations. `grouped` says that a public column splits the
    rows into the L = `groups` groups.
    """
    moved = protection.contributions * (protection.changes if grouped else 1)
    if protection.person is not None:  # all of a person's rows have one coin
        moved = min(moved, groups)
    return Transformation(protection, Protection("replace-one", moved), joint=True)


def check_window(size: int, changes: Transformation, eps: Fraction) -> None:
    """Raise ArgumentError where eps is too small for a window: before it is charged.

    Parameters
    ----------
    size : int
        d.
    changes : Transformation
        From `block_changes`.
    eps : Fraction
        What the whole call may cost, the most that is left for window and average.
    """
    share = window_share(1, eps / (size * changes.after.contributions))
    width = fixed_range(changes.after).width
    noise_scale(eps * share / size * TUNING.window_scale, width, "permute-and-flip")


def draw_blocks(
    rows: int, blocks: int, rng: Generator | None = None, coins: Floats | None = None
) -> list[Places]:
    """Send each row to a block by its own coin; return each block's rows in their order.

    Or by `coins`, shape (rows,): those of the persons whose rows they are.
    """
    if coins is None:
        labels = assign_blocks(rows, blocks, rng=rng)
    else:
        labels = groups_of_coins(coins, blocks)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=blocks))
    return list(np.split(order, ends[:-1]))


def window(
    values: Floats,
    limits: Limits,
    *,
    part: Part,
    changes: Transformation,
) -> Limits:
    """Release a window that holds nearly all block values.

    Parameters
    ----------
    values : (B, d) array
        Within `limits`.
    limits : Limits
    part : Part
        What the window of this group may cost.
    changes : Transformation
        From `block_changes`.
    """
    size = values.shape[1]
    each = Fraction(1, size)
    bound = changes.then(fixed_range(changes.after))
    lower, upper = [], []
    parts = iter(part.split([each - each * TUNING.window_scale, each * TUNING.window_scale] * size))
    for column, low, high in zip(values.T, limits.lower, limits.upper, strict=True):
        grid = np.asarray(np.linspace(low, high, _CANDIDATES + 1), dtype=np.float64)
        cells = cell_counts(np.asarray(np.minimum(column, grid[-1]), dtype=np.float64), grid)
        place = choose_rank(cells, _MEDIAN, part=next(parts), bound=bound)
        centre = float(grid[place])
        scales = np.array([math.ldexp(high - low, j) for j in range(-_SCALES, 1)])
        distances = np.asarray(np.minimum(np.abs(column - centre), scales[-1]), dtype=np.float64)
        cells = cell_counts(distances, scales)
        place = choose_rank(cells, _MEDIAN, part=next(parts), bound=bound)
        half = TUNING.window_reach * float(scales[place])
        ends = max(centre - half, low), min(centre + half, high)
        if not ends[0] < ends[0] + (ends[1] - ends[0]) / 2 < ends[1]:
            ends = low, high  # no width in float64
        lower.append(ends[0])
        upper.append(ends[1])
    return Limits(tuple(lower), tuple(upper))


def plan_averages(
    size: int, groups: int, cost: Budget, changes: Transformation, noise: str | None = None
) -> tuple[Coding, VectorNoise]:
    """Plan averages of `size` numbers in each of `groups` groups, at one cost for all.

    Parameters
    ----------
    size, groups : int
    cost : Budget
    changes : Transformation
        From `block_changes`.
    noise : {None, "laplace", "gaussian"}
    """
    coding, fitted = sums.plan(
        size,
        groups,
        degree=2,
        grouped=False,
        cost=cost,
        protection=changes.after,
        complete=True,
        noise=noise,
    )
    return coding, replace(fitted, bound=changes.then(fitted.bound))


def release_averages(
    values: Floats, limits: Limits, planned: tuple[Coding, VectorNoise], part: Part
) -> tuple[Estimate, ...]:
    """Release the average of one group's block values, (B, d), within `limits`.

    `limits` are public, or released by `window`; `planned` is from `plan_averages`.
    """
    blocks, size = values.shape
    bounds = list(zip(limits.lower, limits.upper, strict=True))
    told = zip(values.T, limits.lower, limits.upper, strict=True)
    grid = np.column_stack([sums.to_grid(*each) for each in told])
    exact = sums.accumulate([(grid, np.zeros(blocks, dtype=np.int64))], size, 1)
    (noisy,) = sums.release(exact, *planned, rows=blocks, part=part)
    return mean_estimates(noisy, bounds, blocks)
