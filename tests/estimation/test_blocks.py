import gc
import logging
import os
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import Limits, block_values, corrected, evaluations, numbers_of, taken
from dpreg.estimation.tuning import TUNING

LIMITS = Limits((0.0,), (10.0,))
PAIR = Limits((0.0, -4.0), (10.0, 2.0))


def values(estimator, data, *, limits=LIMITS, blocks=None, correct_bias=False, timeout=None):
    parts = blocks or list(np.array_split(np.arange(len(data)), 4))
    return block_values(
        estimator,
        data,
        parts,
        limits,
        correct_bias=correct_bias,
        timeout=timeout,
        seeds=range(len(parts)),
    )


def failing(how):
    """An estimator that fails on blocks that hold the value 99."""

    def estimator(block):
        return how() if (np.asarray(block) == 99).any() else 3.0

    return estimator


def raising(problem):
    def how():
        raise problem

    return how


def warned():
    warnings.warn("the block holds 99", stacklevel=1)
    np.log(np.array([-1.0]))
    return np.nan


class Odd:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("99")


class Late:
    """Warns at its end."""

    def __array__(self, dtype=None, copy=None):
        return np.array(99.0)

    def __del__(self):
        warnings.warn("the block holds 99", stacklevel=1)


async def awaited():
    return 99.0


FAILURES = {
    "raises": raising(ValueError("99")),
    "exits": raising(SystemExit(99)),
    "base": raising(BaseException("99")),
    "recurses": raising(RecursionError()),
    "memory": raising(MemoryError()),
    "nan": lambda: np.nan,
    "infinite": lambda: -np.inf,
    "vector": lambda: [1.0, 2.0],
    "matrix": lambda: np.ones((1, 1)),
    "empty": list,
    "none": lambda: None,
    "text": lambda: "ninety-nine",
    "complex": lambda: 1 + 2j,
    "warns": warned,
    "odd": Odd,
    "coroutine": awaited,
    "late": lambda: [Late(), None],
    "series": lambda: pd.Series({"a": 1.0, "b": 2.0}),
}


@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize("correct_bias", [False, True])
@pytest.mark.parametrize("how", FAILURES.values(), ids=FAILURES)
def test_a_failing_block_has_the_midpoint_and_nothing_is_heard_of_it(
    how, correct_bias, timeout, capfd, caplog, recwarn
):
    data = np.zeros(64)
    data[5] = 99
    with caplog.at_level(logging.DEBUG):
        found = values(failing(how), data, correct_bias=correct_bias, timeout=timeout)
    assert found.ravel().tolist() == [5.0, 3.0, 3.0, 3.0]
    assert capfd.readouterr() == ("", "")
    # A Spark session of other tests in this process logs when its garbage is collected.
    assert not [record for record in caplog.records if "py4j" not in record.pathname]
    assert not list(recwarn)


def test_a_value_that_warns_at_its_end_is_not_heard(recwarn):
    assert (values(lambda block: Late(), np.zeros(8)) == 10.0).all()
    gc.collect()
    assert not recwarn.list


def test_only_the_number_that_is_not_finite_becomes_its_midpoint():
    found = values(lambda block: [np.nan, 7.0], np.zeros(8), limits=PAIR)
    assert found[0].tolist() == [5.0, 2.0]


def test_a_value_is_clipped():
    assert values(lambda block: 1e300, np.zeros(8))[0, 0] == 10.0


def test_a_part_that_fails_leaves_the_uncorrected_value():
    def estimator(block):
        if len(block) < 16:
            raise ValueError
        return 4.0

    assert (values(estimator, np.zeros(64), correct_bias=True) == 4.0).all()


def test_global_states_are_put_back():
    before = (np.geterr(), list(warnings.filters))

    def estimator(block):
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return np.array([1.0]) / 0

    values(estimator, np.zeros(8))
    assert (np.geterr(), list(warnings.filters)) == before


def test_an_interruption_at_the_keyboard_comes_through():
    with pytest.raises(KeyboardInterrupt):
        values(lambda block: raising(KeyboardInterrupt())(), np.zeros(8))


def test_exceptions_do_not_keep_blocks_alive():
    class Telling(Exception):
        pass

    def estimator(block):
        raise Telling(block)

    values(estimator, np.zeros(8))
    gc.collect()
    assert not [x for x in gc.get_objects() if isinstance(x, Telling)]


def test_a_time_limit_kills_the_block_and_gives_the_midpoint():
    data = np.zeros(8)
    data[0] = 99
    started = time.monotonic()
    found = values(failing(lambda: time.sleep(60)), data, timeout=2.0)
    assert found.ravel().tolist() == [5.0, 3.0, 3.0, 3.0]
    assert time.monotonic() - started < 20


def test_with_a_time_limit_state_dies_with_the_process():
    calls = []

    def estimator(block):
        calls.append(1)
        return len(calls)

    assert values(estimator, np.zeros(8), timeout=20.0).ravel().tolist() == [1.0] * 4
    assert calls == []


def test_garbage_from_before_the_fork_is_not_collected_in_a_process_with_a_time_limit():
    here = os.getpid()

    class Waits:
        """Garbage that ends at once where it was made, and waits in a fork."""

        def __init__(self):
            self.itself = self

        def __del__(self):
            if os.getpid() != here:
                time.sleep(60)

    def estimator(block):
        gc.collect()
        return 1.0

    gc.disable()
    try:
        Waits()
        found = values(estimator, np.zeros(8), timeout=20.0)
    finally:
        gc.enable()
    assert found.ravel().tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "data",
    [
        np.arange(12.0),
        np.arange(24.0).reshape(12, 2),
        list(range(12)),
        pd.Series(range(12), index=range(40, 52)),
        pd.DataFrame({"a": range(12)}, index=range(40, 52)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_blocks_are_fresh_copies_of_the_data_s_own_type(data):
    seen = []

    def estimator(block):
        seen.append(block)
        if isinstance(block, np.ndarray):
            block[:] = -1
        if isinstance(block, pd.DataFrame | pd.Series):
            assert list(block.index) == [0, 1]
            block.iloc[0] = -1
        return 1.0

    before = str(data)
    found = values(estimator, data, blocks=[np.array([7, 3])])
    assert found.tolist() == [[1.0]]
    assert type(seen[0]) is type(data)
    assert str(data) == before


@pytest.mark.parametrize("cells", [["a"], [b"a"], ["2020-01-01"]])
def test_arrays_without_numbers_are_refused(cells):
    array = np.array(cells, dtype="M8[D]" if "-" in str(cells) else None)
    with pytest.raises(ArgumentError, match="declare the columns in schema"):
        numbers_of(array)


@pytest.mark.parametrize("odd", [None, "3", "word", 2**70, True, 1.5, 1j])
def test_a_block_of_an_array_is_of_floats_whatever_other_rows_hold(odd):
    plain, mixed = np.array([1, 2, 3]), numbers_of(np.array([1, 2, odd], dtype=object))
    first = np.array([0, 1])
    assert taken(plain, first).dtype == taken(mixed, first).dtype == np.float64
    assert taken(plain, first).tolist() == taken(mixed, first).tolist()


def test_the_jackknife_removes_the_bias_of_order_one_over_m():
    """The plug-in square of a mean has bias sd^2/m exactly; corrected it has none."""
    rng = np.random.default_rng(0)
    data = rng.normal(1.0, 2.0, 36_000)
    blocks = [*np.arange(36_000).reshape(-1, 18), np.arange(3)]
    limits = Limits((-1e6,), (1e6,))

    def square(block):
        return block.mean() ** 2

    plain = values(square, data, limits=limits, blocks=blocks[:-1])
    fixed = values(square, data, limits=limits, blocks=blocks[:-1], correct_bias=True)
    error = plain.std() / np.sqrt(len(plain))
    assert plain.mean() - 1 == pytest.approx(4 / 18, abs=4 * error)
    assert fixed.mean() - 1 == pytest.approx(0, abs=4 * error)
    small = values(square, data, limits=limits, blocks=blocks[-1:], correct_bias=True)
    assert small[0, 0] == square(data[:3])  # too few rows for parts


def test_the_jackknife_returns_a_mean_itself():
    data = np.random.default_rng(1).random(1_003)
    for size in (8, 9, 10, 11, 1_003):
        found = values(np.mean, data, blocks=[np.arange(size)], correct_bias=True)
        assert found[0, 0] == pytest.approx(data[:size].mean(), abs=1e-12)


def test_the_jackknife_inflates_second_order_variance_by_g_over_g_minus_one():
    rng = np.random.default_rng(2)
    data = rng.normal(size=(6_000, 16)).ravel()
    blocks = list(np.arange(data.size).reshape(-1, 16))
    limits = Limits((-1e6,), (1e6,))
    # At mean 0 the square of the mean has second-order terms only.
    spreads = [
        values(lambda b: b.mean() ** 2, data, limits=limits, blocks=blocks, correct_bias=c).var()
        for c in (False, True)
    ]
    # Off-diagonal terms: 2 m (m - 1)/m^4 before, times g/(g - 1) after (squared, 3/4 of the pairs).
    off = 2 * 15 / 16**3
    diagonal = 2 / 16**3
    assert spreads[0] == pytest.approx(off + diagonal, rel=0.15)
    assert spreads[1] == pytest.approx(
        2 * 12 / 16**3 * (TUNING.parts / (TUNING.parts - 1)) ** 2, rel=0.15
    )


def test_a_block_is_corrected_from_its_evaluations():
    block = np.arange(100, 118)
    assert [rows.tolist() for rows in evaluations(block, False)] == [block.tolist()]
    assert len(evaluations(block[: 2 * TUNING.parts - 1], True)) == 1
    whole, *others = evaluations(block, True)
    assert whole.tolist() == block.tolist()
    dropped = [sorted(set(block) - set(rows)) for rows in others]
    assert [rows[0] for rows in dropped] == [100, 101, 102, 103]
    assert sorted(row for part in dropped for row in part) == block.tolist()
    sizes = [rows.size for rows in (whole, *others)]
    biased = [np.array([3.0 + 5.0 / size]) for size in sizes]
    assert corrected(biased, sizes)[0] == pytest.approx(3.0, abs=1e-12)
    without = [*biased[:-1], np.array([np.nan])]
    assert corrected(without, sizes)[0] == biased[0][0]
    failed = [np.array([np.nan]), *biased[1:]]
    assert np.isnan(corrected(failed, sizes)[0])


def test_estimators_in_two_threads_are_silent_and_leave_the_filters_as_they_were(recwarn):
    before = list(warnings.filters)
    inside, left = threading.Event(), threading.Event()

    def slow(block):
        if not inside.is_set():
            inside.set()
            assert left.wait(9)
            warnings.warn(f"the block holds {block.sum()}", stacklevel=1)
        return 1.0

    def first(block):
        thread.start()
        assert inside.wait(9)
        return 1.0

    thread = threading.Thread(target=values, args=(slow, np.zeros(8)))
    values(first, np.zeros(8), blocks=[np.arange(8)])
    left.set()
    thread.join()
    assert not recwarn.list
    assert list(warnings.filters) == before
