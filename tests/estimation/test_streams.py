"""What an estimator draws is its block's own, in this process and in forked ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import dpreg
from dpreg.estimation import blocks
from dpreg.estimation.blocks import put_back, start

ROWS = np.random.default_rng(0).normal(5, 1, 400)
WAYS = [None, 60.0]
BLOCKS = 10
"""With a timeout each is a process."""


@pytest.fixture(autouse=True)
def streams() -> Iterator[None]:
    with put_back():
        yield


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The block values of each call, in order."""
    honest, kept = blocks.block_values, []

    def noted(*args: object, **options: object) -> np.ndarray:
        kept.append(honest(*args, **options))
        return kept[-1]

    monkeypatch.setattr(blocks, "block_values", noted)
    return kept


def by_numpy(block: np.ndarray) -> float:
    whole = block[np.isfinite(block)]
    return float(np.mean(whole + np.random.normal(size=whole.size)))  # noqa: NPY002


def by_python(block: np.ndarray) -> float:
    whole = block[np.isfinite(block)]
    return float(np.mean([cell + random.gauss(0, 1) for cell in whole]))


def called(estimator: Callable[[np.ndarray], float], rows: np.ndarray, **options: object) -> None:
    """Call with the caller's generators started from one number, as a careful user may."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    call = {"bounds": (0, 10), "eps": 1, "blocks": BLOCKS, "correct_bias": False} | options
    dpreg.sample_aggregate(estimator, rows, **call)


@pytest.mark.parametrize("timeout", WAYS)
@pytest.mark.parametrize("correct_bias", [False, True])
@pytest.mark.parametrize("estimator", [by_numpy, by_python])
def test_one_changed_row_changes_one_block(estimator, correct_bias, timeout, seen):
    """The claim of `block_changes`; with coins and seeds fixed, as its proof has them."""
    other = ROWS.copy()
    other[7] = np.nan  # so that its block draws one number less
    for rows in (ROWS, other):
        called(estimator, rows, unsafe_seed=3, timeout=timeout, correct_bias=correct_bias)
    assert (seen[0] != seen[1]).sum() == 1


@pytest.mark.parametrize("timeout", WAYS)
def test_a_changed_row_changes_no_other_block_of_any_group(timeout, seen):
    table = {"a": ROWS, "g": np.array(["u", "v"] * 200)}
    other = table | {"a": np.where(np.arange(400) == 7, np.nan, ROWS)}
    for rows in (table, other):
        called(
            lambda block: by_numpy(block["a"].to_numpy()),
            rows,
            schema={"a": (0, 10), "g": ["u", "v"]},
            by="g",
            unsafe_seed=3,
            timeout=timeout,
        )
    changed = [int((a != b).sum()) for a, b in zip(seen[:2], seen[2:], strict=True)]
    assert changed == [0, 1]


@pytest.mark.parametrize("timeout", WAYS)
@pytest.mark.parametrize("draw", [lambda _: random.random(), lambda _: np.random.random()])  # noqa: NPY002
def test_blocks_draw_numbers_of_their_own_whatever_the_caller_has_seeded(draw, timeout, seen):
    for _ in range(2):
        called(draw, ROWS, timeout=timeout, bounds=(0, 1))
    numbers = np.concatenate(seen).ravel()
    assert numbers.size == 2 * BLOCKS
    assert np.unique(numbers).size == 2 * BLOCKS
    assert 0.1 < numbers.mean() < 0.9  # six standard deviations


@pytest.mark.parametrize("timeout", WAYS)
def test_seeded_runs_repeat_what_estimators_draw(timeout, seen):
    for _ in range(2):
        called(by_numpy, ROWS, unsafe_seed=5, timeout=timeout)
    assert (seen[0] == seen[1]).all()


def stopping(block: np.ndarray) -> float:
    by_numpy(block)
    by_python(block)
    np.random.seed(9)  # noqa: NPY002
    np.random.set_bit_generator(np.random.PCG64(2))
    raise KeyboardInterrupt


@pytest.mark.parametrize("estimator", [by_numpy, by_python, stopping])
def test_the_caller_s_generators_go_on_where_they_stood(estimator):
    def numbers() -> list[float]:
        return [random.gauss(0, 1), random.random(), np.random.normal(), np.random.random()]  # noqa: NPY002

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    numbers()  # of two normal numbers each holds the second back
    before = random.getstate(), np.random.get_bit_generator()
    with put_back():
        expected = numbers()
    try:
        dpreg.sample_aggregate(estimator, ROWS, bounds=(0, 10), eps=1, blocks=40)
    except KeyboardInterrupt:
        assert estimator is stopping
    assert (random.getstate(), np.random.get_bit_generator()) == before
    assert numbers() == expected


def test_a_start_forgets_whatever_was_before():
    drawn = []
    for before in (1, 2):
        np.random.set_bit_generator(np.random.PCG64(before))
        np.random.normal(), random.gauss(0, 1)  # noqa: NPY002
        start(2**100)
        drawn.append([np.random.normal(), random.gauss(0, 1), random.random()])  # noqa: NPY002
    assert drawn[0] == drawn[1]
    start(2**100 + 1)
    assert np.random.normal() != drawn[0][0]  # noqa: NPY002
