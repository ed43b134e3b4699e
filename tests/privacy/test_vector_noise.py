from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import bought, paid

from dpreg.errors import ArgumentError, BudgetError
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import fit_noise
from dpreg.privacy.protection import AccountError, Protection, VectorChange


def fitted(mechanism="laplace", eps="1", delta="0", l1=3, l2_squared=5):
    bound = VectorChange(l1=l1, l2_squared=l2_squared, protection=Protection("replace-one"))
    return fit_noise(mechanism, bound, cells=4, cost=Budget(eps, delta))


@pytest.mark.parametrize("eps", ["1", "0.1", "1/3", "7", "2000"])
def test_the_scale_is_never_below_what_privacy_needs(eps):
    noise = fitted(eps=eps)
    assert Fraction(noise.scale) * Fraction(eps) >= 3
    assert noise.scale == pytest.approx(3 / float(Fraction(eps)))
    assert noise.cost.delta == 0
    noise.draw(4, paid(noise))


@pytest.mark.parametrize(("mechanism", "delta"), [("laplace", "0"), ("gaussian", "1e-6")])
@pytest.mark.parametrize("seeded", [False, True])
def test_draws_have_the_stated_variance(mechanism, delta, seeded):
    noise = fitted(mechanism, "0.5", delta)
    rng = np.random.default_rng(0) if seeded else None
    drawn = np.array(noise.draw(20_000, paid(noise, rng)), dtype=float)
    assert drawn.var() == pytest.approx(noise.variance, rel=0.1)
    assert drawn.mean() == pytest.approx(0, abs=6 * drawn.std() / 20_000**0.5)


def test_gaussian_noise_costs_delta():
    assert fitted("gaussian", delta="1e-6").cost.delta == Fraction(1, 10**6)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_negative_share_of_eps_is_refused(mechanism):
    with pytest.raises(BudgetError, match="eps"):
        fitted(mechanism, "-1/100", "1e-6")


@pytest.mark.parametrize("change", [{"eps": "1e-200"}, {"eps": "1e-390"}, {"l1": 10**330}])
def test_noise_beyond_all_measure_is_refused_and_not_an_overflow(change):
    with pytest.raises(ArgumentError, match="eps is too small"):
        fitted(**change)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_huge_eps_leaves_no_noise_and_overflows_nowhere(mechanism):
    noise = fitted(mechanism, "1e390", "1e-6", l1=2**42, l2_squared=2**84)
    assert noise.cost.eps == 10**390
    assert np.isfinite([noise.scale, noise.variance]).all()
    assert max(map(abs, noise.draw(20, paid(noise)))) < 2**20


def test_noise_is_drawn_for_what_it_was_fitted_to_and_once():
    noise = fitted(eps="1/2")
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.draw(4, bought("1/4"))
    part = paid(noise)
    noise.draw(4, part)
    with pytest.raises(AccountError, match="drawn from before"):
        noise.draw(4, part)
