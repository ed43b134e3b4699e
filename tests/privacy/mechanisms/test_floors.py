"""Exact floors: bits are added to the same numbers, and no law is bent by stopping."""

import numpy as np
from flint import arb
from scipy.stats import chisquare, kstest

from dpreg.privacy.mechanisms import floors as module
from dpreg.privacy.mechanisms.floors import floors, normals

ALPHA = 1e-6


def p_value(number, draw=floors, bits=1):
    """Draw floor(7 u/4), 0 with probability 4/7: with one bit first, most have to ask for more."""
    counts = [0, 0]
    for _ in range(number):
        counts[draw(lambda uniforms: [7 * uniforms[0] / 4], 1, bits=bits)[0]] += 1
    return chisquare(counts, [number * 4 / 7, number * 3 / 7]).pvalue


def test_stopping_does_not_bend_the_law():
    assert p_value(12_000) > ALPHA


def test_a_mutant_that_draws_anew_is_caught():
    def redrawn(formula, count, *, bits):
        asked = []

        def once(number):
            if len(asked) == count:
                raise LookupError
            asked.append(number)
            return module.secrets.randbits(number)

        while True:
            asked.clear()
            try:
                return floors(formula, count, bits=bits, source=once)
            except LookupError:
                continue

    assert p_value(8000, redrawn, bits=3) < ALPHA


def test_a_mutant_that_takes_the_middle_is_caught():
    class Middle:
        def __init__(self, ball):
            self.ball = ball

        def floor(self):
            return self.ball.mid().floor()

    def middles(formula, count, *, bits):
        return floors(lambda uniforms: [Middle(v) for v in formula(uniforms)], count, bits=bits)

    assert p_value(8000, middles) < ALPHA


def test_numbers_that_are_not_decided_together_are_extended_together():
    asked = []

    def source(number):
        asked.append(number)
        return [0, 0b01110111, 0b01100101, 0b10101010][len(asked) - 1]

    found = floors(lambda u: [-(u[0].log()), 5 * u[1]], 2, bits=8, source=source)
    assert asked == [8, 8, 8, 8]  # the first ball holds zero: its logarithm is not finite
    assert found == [6, 2]  # -log(101.5/2**16) = 6.47, 5 * 119.7/256 = 2.3


def test_normals_are_normal():
    rng = np.random.default_rng(0)
    drawn = np.array(
        [[float(x) for x in normals([arb(u) for u in rng.uniform(size=2)])] for _ in range(5000)]
    )
    assert kstest(drawn.ravel(), "norm").pvalue > ALPHA
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.1
    assert abs(np.corrcoef((drawn**2).T)[0, 1]) < 0.1
