r"""Run a user's estimator on blocks of rows so that only a block's value gets out.

A block's value is a function of the block alone: the numbers that the estimator returns, checked
and clipped to public bounds, or the midpoint of the bounds where it raises, returns something of
another shape or a number that is not finite, or exceeds the caller's time limit. dpreg raises,
warns and prints nothing that depends on it, and counts no failures.

What the estimator itself does is the caller's responsibility: it should print and log nothing, and
keep no state between calls, since a block's value would then depend on other blocks. Random numbers
are not such state: each block has streams of its own (`dpreg.estimation.streams`). With a time
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
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.arrays import Floats, Places
from dpreg.cells import number
from dpreg.columns import Numeric
from dpreg.errors import ArgumentError, SchemaError
from dpreg.estimation.streams import put_back, start
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.ledger.receipts import unnoted
from dpreg.running import silenced

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = [
    "Estimator",
    "Limits",
    "Rows",
    "block_values",
    "corrected",
    "evaluations",
    "limits_of",
    "rows_of",
]

Estimator: TypeAlias = Callable[[Any], Any]
"""Takes a block, of the same type as the data; returns a number or d numbers."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Data from whose rows blocks can be taken."""

    count: int
    take: Callable[[Places], Any]


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


def rows_of(data: Any) -> Rows:
    """Say how blocks are taken from data, each a fresh copy whose labels are 0, 1, 2, ...

    Parameters
    ----------
    data : DataFrame or Series whose columns' types do not depend on rows; array; or list
        A block is of the same type. An array's cells are numbers, each read on its own
        (`dpreg.cells`), whatever its dtype: blocks are float64.

    Raises
    ------
    ArgumentError
        For anything else, and for arrays of text, dates or records.
    """
    if isinstance(data, pd.DataFrame | pd.Series):
        return Rows(len(data), lambda index: data.iloc[index].reset_index(drop=True))
    if isinstance(data, np.ndarray) and data.ndim >= 1:
        cells = _numbers_of(np.asarray(data))
        return Rows(len(cells), lambda index: cells[index].astype(np.float64, copy=False))
    if isinstance(data, list):
        return Rows(len(data), lambda index: [data[i] for i in index])
    raise ArgumentError(
        "data must be a DataFrame, a Series, an array, a list, or a mapping of names to arrays; "
        f"got {type(data).__name__}."
    )


def _numbers_of(data: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose cells float64 can hold, NaN where a cell is not a number."""
    match data.dtype.kind:
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
    rows: Rows,
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
    rows : Rows
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
    values = np.empty((len(blocks), size))
    with put_back():
        for place, (block, seed) in enumerate(zip(blocks, seeds, strict=True)):
            found = _value(estimator, rows, block, size, correct_bias, timeout, seed)
            values[place] = limits.clip(found)
    return values


def _value(
    estimator: Estimator,
    rows: Rows,
    block: Places,
    size: int,
    correct: bool,
    timeout: float | None,
    seed: int,
) -> Floats:
    """Return d numbers, NaN where there are none."""
    if not block.size:
        return np.full(size, np.nan)

    def work() -> Floats:
        start(seed)
        wanted = evaluations(block, correct)
        found = [_attempt(estimator, rows, wanted[0], size)]
        if np.isfinite(found[0]).all():
            found += [_attempt(estimator, rows, part, size) for part in wanted[1:]]
        return corrected(found, [part.size for part in wanted[: len(found)]])

    if timeout is None:
        return work()
    return _in_time(work, size, timeout)


def _attempt(estimator: Estimator, rows: Rows, index: Places, size: int) -> Floats:
    """Call the estimator once, in silence; NaN for whatever is not d real numbers.

    What it returned ends in silence too: it may warn when it does, as a coroutine that nobody
    awaited.
    """
    failed = np.full(size, np.nan)
    found = None
    with _silence():
        try:
            found = estimator(rows.take(index))
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
    with silenced(), unnoted(), np.errstate(all="ignore"):
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


def time_limits_work() -> bool:
    """Return whether processes can be forked here."""
    return sys.platform != "win32"
