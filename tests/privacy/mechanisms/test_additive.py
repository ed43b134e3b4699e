"""The samplers against their exact laws (chi-square at 1e-6), and mutants that the test rejects."""

import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from dpreg.privacy.mechanisms import additive
from dpreg.privacy.mechanisms.additive import (
    gaussian_noise,
    laplace_noise,
    laplace_variance,
)

ALPHA = 1e-6


def p_value(drawn, law):
    """Chi-square of draws against a dict of probabilities; rare points and the rest are pooled."""
    number = len(drawn)
    counts = dict.fromkeys(law, 0)
    outside = 0
    for point in drawn:
        if point in counts:
            counts[point] += 1
        else:
            outside += 1
    seen, expected = [outside], [number * max(1 - sum(law.values()), 0.0)]
    for point, probability in law.items():
        if number * probability >= 5:
            seen.append(counts[point])
            expected.append(number * probability)
        else:
            seen[0] += counts[point]
            expected[0] += number * probability
    expected = np.array(expected) * (number / np.sum(expected))
    return chisquare(seen, expected).pvalue


def gaussian_law(scale):
    k = np.arange(-60, 61)
    weight = np.exp(-(k**2) / (2 * scale**2))
    return dict(zip(k.tolist(), (weight / weight.sum()).tolist(), strict=True))


def laplace_law(scale):
    k = np.arange(-120, 121)
    q = np.exp(-1 / scale)
    return dict(zip(k.tolist(), ((1 - q) / (1 + q) * q ** np.abs(k)).tolist(), strict=True))


def test_opendp_gaussian():
    assert p_value(gaussian_noise(40_000, 2.5), gaussian_law(2.5)) > ALPHA


def test_opendp_laplace():
    assert p_value(laplace_noise(40_000, 2.5), laplace_law(2.5)) > ALPHA


def test_own_samplers_for_large_scales():
    below = random.Random(1).randrange
    drawn = [additive._gaussian(Fraction(5, 2), below) for _ in range(20_000)]
    assert p_value(drawn, gaussian_law(2.5)) > ALPHA
    drawn = [additive._laplace(Fraction(5, 2), below) for _ in range(20_000)]
    assert p_value(drawn, laplace_law(2.5)) > ALPHA
    huge = np.array(gaussian_noise(400, 2.0**60), dtype=float)
    assert 0.7 < huge.std() / 2.0**60 < 1.4
    huge = np.array(laplace_noise(400, 2.0**60), dtype=float)
    assert 0.5 < huge.var() / laplace_variance(2.0**60) < 2


def test_gaussian_mutant_is_rejected():
    assert p_value(gaussian_noise(40_000, 1.25), gaussian_law(2.5)) < ALPHA


def test_variances():
    k = np.arange(-4000, 4001)
    law = np.exp(-np.abs(k) / 7.5)
    assert laplace_variance(7.5) == pytest.approx((law / law.sum()) @ k**2, rel=1e-12)


def test_seeded_noise_has_the_same_variance():
    rng = np.random.default_rng(7)
    scale = 1e9
    assert np.var(np.array(laplace_noise(9000, scale, rng=rng), float)) == pytest.approx(
        laplace_variance(scale), rel=0.15
    )
    assert np.std(np.array(gaussian_noise(9000, scale, rng=rng), float)) == pytest.approx(
        scale, rel=0.05
    )


def test_saturation_is_undone(monkeypatch):
    """All of 200 draws would be the largest integer with probability 10**-204."""
    end = 2**63 - 1
    ends = np.array([end, -end - 1, 5] * 200)
    monkeypatch.setattr(additive, "opendp_noise", lambda name, scale: lambda zeros: ends)
    drawn = np.array(laplace_noise(600, 10.0), dtype=object)
    assert (drawn[::3] >= end).all()
    assert (drawn[1::3] <= -end - 1).all()
    assert (drawn[2::3] == 5).all()
    assert drawn.max() > end
    assert drawn.min() < -end - 1
