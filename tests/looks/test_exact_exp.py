"""The exponential: right to the last digit or so, and the same wherever a number stands."""

import numpy as np
from flint import arb, ctx

from dpreg.looks.families import _HIGH, _LOW, exp


def test_it_is_right_to_a_part_in_1e15():
    x = np.concatenate([np.random.default_rng(0).uniform(-700, 700, 300), [0.0, -0.0, 12.0, -12.0]])
    with ctx.workprec(120):
        truth = [arb(float(v)).exp() for v in x]
        errors = [
            abs(float((arb(float(ours)) / t - 1).mid()))
            for ours, t in zip(exp(x), truth, strict=True)
        ]
    assert max(errors) < 1e-15


def test_a_number_has_the_same_bits_wherever_it_stands():
    x = np.random.default_rng(1).uniform(-12, 12, 257)
    whole = exp(x)
    for start in range(0, 257, 7):
        for size in (1, 2, 3, 5, 8, 13):
            assert exp(x[start : start + size]).tobytes() == whole[start : start + size].tobytes()
    assert exp(np.repeat(x, 2)[::2]).tobytes() == whole.tobytes()
    assert exp(np.asfortranarray(np.outer(np.ones(3), x)))[1].tobytes() == whole.tobytes()


def test_the_first_part_of_ln_2_is_short_and_the_sum_is_exact():
    assert (_HIGH * 2**32) % 1 == 0  # at most 32 bits behind the point: products with n are exact
    with ctx.workprec(200):
        gap = arb(2).log() - arb(_HIGH) - arb(_LOW)
        assert abs(float(gap.mid())) < 1e-25
