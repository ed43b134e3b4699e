"""A cut normal law: against quadrature, against simulation, far out in the tails."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpreg.results.inference import Truncated

TWO_SIDED = np.array([[-np.inf, -2.0], [2.0, np.inf]])


@pytest.fixture
def rng():
    return np.random.default_rng(20)


def test_without_a_cut_it_is_the_usual_interval():
    law = Truncated(1.3, 0.5, np.array([[-np.inf, np.inf]]))
    assert law.center() == pytest.approx(1.3)
    assert law.interval(0.05) == pytest.approx((1.3 - 1.959964 * 0.5, 1.3 + 1.959964 * 0.5))
    assert law.p_value() == pytest.approx(2 * norm.sf(2.6))


@pytest.mark.parametrize("beta", [-3.0, 0.0, 0.7, 5.0])
def test_the_conditional_distribution_is_that_of_quadrature(beta):
    sets = np.array([[-np.inf, -2.0], [0.5, 1.0], [2.0, np.inf]])
    law = Truncated(2.5, 0.8, sets)

    def mass(low, high):
        return quad(lambda x: norm.pdf(x, beta, 0.8), max(low, -12), min(high, 14))[0]

    below = mass(-12, -2) + mass(0.5, 1) + mass(2, 2.5)
    assert law.below(beta) == pytest.approx(below / (below + mass(2.5, 14)), abs=1e-7)


def test_far_out_nothing_overflows():
    law = Truncated(2.001, 0.05, TWO_SIDED)
    low, high = law.interval(0.05)
    assert low <= law.center() <= high
    assert np.isfinite([low, high]).all()
    assert law.below(-40.0) == pytest.approx(1.0)
    assert law.below(40.0) == pytest.approx(0.0, abs=1e-12)


def test_a_set_too_small_to_tell_gives_an_infinite_interval():
    law = Truncated(1.0, 1.0, np.array([[1.0 - 1e-6, 1.0 + 1e-6]]))
    low, high = law.interval(0.05)
    assert low == -np.inf
    assert high == np.inf


@pytest.mark.parametrize("truth", [0.0, 1.0, 2.2, 5.0])
def test_intervals_cover_and_estimates_are_median_unbiased_given_the_cut(truth, rng):
    draws = rng.normal(truth, 1.0, 6000)
    seen = draws[np.abs(draws) > 2.0][:600]
    laws = [Truncated(float(t), 1.0, TWO_SIDED) for t in seen]
    covered = np.mean([a.below(truth) for a in laws] > np.array(0.025))
    inside = np.mean([0.025 <= a.below(truth) <= 0.975 for a in laws])
    above = np.mean([a.below(truth) > 0.5 for a in laws])
    error = 4 * np.sqrt(0.25 / len(seen))
    assert covered == pytest.approx(0.975, abs=error)
    assert inside == pytest.approx(0.95, abs=error)
    assert above == pytest.approx(0.5, abs=error)
    if truth == 0.0:  # an interval that forgets the cut never covers zero here
        assert not (np.abs(seen) <= 1.96).any()


def test_estimate_interval_and_p_value_agree(rng):
    for t in [*rng.uniform(2.0, 6.0, 20), -2.3]:
        law = Truncated(float(t), 1.0, TWO_SIDED)
        low, high = law.interval(0.05)
        assert low <= law.center() <= high
        assert (low <= 0 <= high) == (law.p_value() >= 0.05)
