"""Families: means, weights, limits, against scipy."""

import numpy as np
import pytest
from scipy.special import expit, logit

from dpreg.families.family import Binomial, Poisson

ETA = np.linspace(-30, 30, 2001)


def test_a_binomials_mean_and_weight():
    mean, weight = Binomial().moments(ETA)
    held = np.clip(ETA, -12, 12)
    np.testing.assert_allclose(mean, expit(held), rtol=1e-14)
    np.testing.assert_allclose(weight, expit(held) * expit(-held), rtol=1e-14)
    assert Binomial().predictor(0.2) == pytest.approx(logit(0.2))
    assert Binomial().cap == 1


def test_a_poissons_mean_and_weight():
    family = Poisson(20.0)
    mean, weight = family.moments(ETA)
    np.testing.assert_allclose(mean, np.exp(np.clip(ETA, np.log(20) - 12, np.log(20))), rtol=1e-14)
    assert (weight == mean).all()
    assert family.predictor(3.0) == pytest.approx(np.log(3))
    assert family.predictor(0.0) == family.limits[0]


@pytest.mark.parametrize("family", [Binomial(), Poisson(50.0)])
def test_the_middle_of_normal_predictors_gives_back_their_mean(family):
    z = np.random.default_rng(0).standard_normal(200_000) * 0.8 - 0.7
    mean = float(family.moments(z)[0].mean())
    assert family.centre(mean, 0.64) == pytest.approx(-0.7, abs=0.03)
