from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from dpreg.privacy.mechanisms.coins import Coins, assign_blocks, block_seeds


@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 64, 100])
def test_blocks_are_uniform_and_independent(blocks, rng):
    rows = 60_000
    drawn = assign_blocks(rows, blocks, rng=rng)
    assert drawn.shape == (rows,)
    assert drawn.min() >= 0
    assert drawn.max() < blocks
    pairs = np.bincount(drawn[:-1:2] * blocks + drawn[1::2], minlength=blocks**2)
    if blocks < 10 and blocks > 1:
        expected = rows / 2 / blocks**2
        statistic = ((pairs - expected) ** 2 / expected).sum()
        assert chi2.sf(statistic, blocks**2 - 1) > 1e-7


def test_coins_are_fair_and_never_repeat():
    coins = Coins.of(2)
    tossed = coins.labels(0, 40_000)
    assert abs(tossed.mean() - 0.5) < 0.02
    assert (tossed != coins.labels(0, 40_000)).any()
    assert coins.labels(0, 0).shape == (0,)


@pytest.mark.parametrize("groups", [1, 2, 3, 200])
def test_seeded_coins_follow_from_the_place_of_a_row(groups):
    """Pieces read in any order, by any engine, get the labels of the whole."""
    coins = Coins.of(groups, np.random.default_rng(5))
    assert coins == Coins.of(groups, np.random.default_rng(5))
    whole = coins.labels(0, 1000)
    for cut in (1, 2, 3, 4, 5, 511, 999):
        pieces = coins.labels(cut, 1000 - cut), coins.labels(0, cut)
        assert (np.concatenate(pieces[::-1]) == whole).all()
    counts = np.bincount(coins.labels(17, 60_000), minlength=groups)
    assert chi2.sf(((counts - 60_000 / groups) ** 2).sum() * groups / 60_000, groups) > 1e-7


def test_numpy_state_plays_no_part_in_secure_coins(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a NumPy generator was asked")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    monkeypatch.setattr(np.random, "rand", refuse)
    Coins.of(2).labels(0, 10)


def test_seeds_of_blocks_are_all_different_and_leave_a_seeded_run_s_other_draws_alone():
    assert len({*block_seeds(1_000), *block_seeds(1_000)}) == 2_000
    assert max(block_seeds(100)).bit_length() > 110  # but once in 2**1700
    one, two = (np.random.default_rng(4) for _ in range(2))
    seeds = [block_seeds(5, rng=one), block_seeds(5, rng=one)]
    assert seeds == [block_seeds(5, rng=two), block_seeds(5, rng=two)]
    assert seeds[0] != seeds[1]
    assert one.random() == np.random.default_rng(4).random()


def _released(rows, place_of_coins):
    """The law of two noisy sums, one of each half, over all streams of fair coins."""
    reach = np.arange(-12, 17)
    law = np.zeros((reach.size, reach.size))
    for stream in product((0, 1), repeat=len(rows)):
        halves = place_of_coins(stream, rows)
        sums = [sum(r for r, half in zip(rows, halves, strict=True) if half == h) for h in (0, 1)]
        one, two = (np.exp(-np.abs(reach - total)) for total in sums)
        law += np.outer(one, two)
    return law / 2 ** len(rows)


def test_rows_keep_their_coins_where_one_is_inserted():
    """The statement, with noise of eps = 1 in each half: a row lies in one of them."""
    worst = {}
    ways = {
        "coins": lambda stream, rows: stream,
        "places": lambda _, rows: [i % 2 for i in range(len(rows))],
    }
    for name, way in ways.items():
        worst[name] = max(
            np.abs(np.log(_released(rows, way) / _released((*rows[:i], 1, *rows[i:]), way))).max()
            for rows in product((0, 1), repeat=3)
            for i in range(4)
        )
    assert worst["coins"] <= 1 + 1e-9
    assert worst["places"] > 2  # halves by places alone: all later rows change theirs
