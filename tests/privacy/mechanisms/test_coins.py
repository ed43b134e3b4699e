import numpy as np
import pytest
from scipy.stats import chi2

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import assign_blocks, split_coins


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


def test_split_coins_are_fair_and_never_repeat():
    coins = split_coins(40_000)
    assert coins.dtype == np.bool_
    assert abs(coins.mean() - 0.5) < 0.02
    assert (coins != split_coins(40_000)).any()
    assert split_coins(0).shape == (0,)


def test_seeded_coins_repeat():
    first = split_coins(100, rng=np.random.default_rng(5))
    assert (first == split_coins(100, rng=np.random.default_rng(5))).all()


def test_numpy_state_plays_no_part_in_secure_coins(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a NumPy generator was asked")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    monkeypatch.setattr(np.random, "rand", refuse)
    split_coins(10)


@pytest.mark.parametrize("blocks", [0, -1, 2**31 + 1])
def test_a_number_of_blocks_out_of_range_is_refused(blocks):
    with pytest.raises(ArgumentError):
        assign_blocks(3, blocks)
