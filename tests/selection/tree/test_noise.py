"""Random bits and arrivals."""

import math
from collections import Counter

import flint
import numpy as np
import pytest
from scipy.stats import kstest

from dpreg.selection.tree import noise as tree_noise
from dpreg.selection.tree.noise import Arrival, Bits, exponential_noise, gumbel_noise, outward


@pytest.mark.parametrize(("n", "k"), [(5, 0), (5, 2), (6, 3), (7, 6), (4, 4)])
def test_subsets_are_uniform(n: int, k: int) -> None:
    bits = Bits(np.random.default_rng(n + k))
    draws = 300 * math.comb(n, k)
    seen = Counter(frozenset(bits.choose(n, k).tolist()) for _ in range(draws))
    assert all(len(subset) == k for subset in seen)
    statistic = sum((x - 300) ** 2 / 300 for x in seen.values())
    assert len(seen) == math.comb(n, k)
    assert statistic < len(seen) + 6 * math.sqrt(2 * len(seen))


def test_large_subsets_come_from_sorted_keys() -> None:
    bits = Bits(np.random.default_rng(1))
    seen = np.zeros(60)
    for _ in range(3_000):
        chosen = bits.choose(60, 25)
        assert len(set(chosen.tolist())) == 25
        seen[chosen] += 1
    assert np.abs(seen / 3_000 - 25 / 60).max() < 6 * math.sqrt(0.25 / 3_000)


def test_integers_below_are_uniform_and_fresh() -> None:
    bits = Bits()
    seen = Counter(bits.below(6) for _ in range(6_000))
    assert sorted(seen) == list(range(6))
    assert max(abs(x - 1_000) for x in seen.values()) < 200
    assert bits.below(1) == 0
    assert len({bits.word(192) for _ in range(200)}) == 200  # buffers are refilled, not repeated
    assert len(bits.take(10_000)) == 10_000


@pytest.mark.parametrize(
    ("law", "cdf"),
    [
        (gumbel_noise, lambda v: math.exp(-math.exp(-v))),
        (exponential_noise, lambda v: -math.expm1(-v)),
    ],
)
def test_arrivals_are_maxima_below_their_cap(law: object, cdf: object) -> None:
    """F(v)**N is uniform without a cap, (F(v) / F(cap))**N with one."""
    bits = Bits(np.random.default_rng(2))
    with flint.ctx.workprec(tree_noise.PRECISION):
        free, capped = [], []
        for _ in range(2_000):
            cap = Arrival(None, 50, bits, law)
            below = Arrival(cap, 7, bits, law)
            v, w = float(cap.noise), float(below.noise)
            assert w < v
            free.append(cdf(v) ** 50)
            capped.append((cdf(w) / cdf(v)) ** 7)
    assert kstest(free, "uniform").pvalue > 1e-6
    assert kstest(capped, "uniform").pvalue > 1e-6


def test_refining_narrows_the_same_number() -> None:
    bits = Bits(np.random.default_rng(3))
    with flint.ctx.workprec(tree_noise.PRECISION):
        arrival = Arrival(Arrival(None, 10**40, bits, gumbel_noise), 3, bits, gumbel_noise)
        before = arrival.noise
    with flint.ctx.workprec(1024):
        arrival.refine(1024, bits)
        after = arrival.noise
        assert before.contains(after)
        assert after.rad() < before.rad() * 2**-700


def test_outward_ends_enclose_the_ball() -> None:
    with flint.ctx.workprec(192):
        ball = flint.arb(1) / 3
        lo, hi = outward(ball)
        assert flint.arb(lo) < ball < flint.arb(hi)
        assert hi - lo < 1e-15
