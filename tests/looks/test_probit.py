"""A family that the package has not: one class, and every look, law and mark serves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import statsmodels.api as sm
from oracles.look_rows import Kind
from scipy.stats import norm

from dpreg.looks.families import Terms, exp
from dpreg.looks.law import estimates
from dpreg.looks.loop import look
from dpreg.privacy.protection import Protection

from .test_table import plan_of, table_of

REACH = 4.75
TAIL = [
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398),
    *(1.48851587, -0.82215223, 0.17087277),
]
"""Of erfc, by single operations, so that a row has the same bits wherever it stands."""


@dataclass(frozen=True)
class Probit:
    """Yes or no, with the normal distribution as link."""

    link: ClassVar[str] = "probit"
    ratio: ClassVar[str | None] = None
    blind: ClassVar[bool] = True
    dispersed: ClassVar[bool] = False
    name: ClassVar[str] = "probit"
    cap: ClassVar[float] = 1.0
    limits: ClassVar[tuple[float, float]] = (-REACH, REACH)

    def terms(self, eta):
        held = np.minimum(np.maximum(eta, -REACH), REACH)
        z = np.abs(held) / math.sqrt(2)
        t = 1 / (1 + 0.5 * z)
        power = np.full_like(t, TAIL[-1])
        for cell in TAIL[-2::-1]:
            power = power * t
            power += cell
        low = 0.5 * t * exp(power - z * z)
        mean = np.where(held >= 0, 1 - low, low)
        slope = exp(-0.5 * held * held) / math.sqrt(2 * math.pi)
        variance = low * (1 - low)
        return Terms(mean, slope * slope / variance, slope / variance)

    def predictor(self, mean):
        return float(np.clip(norm.ppf(min(max(mean, 0.0), 1.0)), *self.limits))

    def centre(self, mean, variance):
        return self.predictor(mean) * math.sqrt(1 + variance)

    def slope(self, mean, explained):
        return float(norm.pdf(self.predictor(mean)))


def seen_and_exact(n, eps, delta, seed=0):
    rng, p = np.random.default_rng(seed), 3
    x = np.clip(rng.normal(size=(n, p)) * 0.3, -1, 1)
    y = rng.random(n) < norm.cdf(-0.4 + x @ [1.5, -1.0, 0.0])
    z = np.column_stack([np.ones(n), x, 2.0 * y - 1])
    plan = plan_of(Protection("replace-one"), delta, p, eps=eps)
    seen = look(table_of(z, Kind(Probit(), (0.5, 0.5)), plan, p), Probit())
    link = sm.families.Binomial(sm.families.links.Probit())
    theirs = sm.GLM(y.astype(float), sm.add_constant(x), family=link).fit(cov_type="HC1")
    names = ["const", "a", "b", "c"]
    found = estimates(seen, range(p + 1), names, (np.eye(p + 1), np.zeros(p + 1)))
    return found, theirs


def test_its_terms_are_those_of_statsmodels():
    eta = np.linspace(-4.5, 4.5, 91)
    found, link = Probit().terms(eta), sm.families.links.Probit()
    np.testing.assert_allclose(found.mean, link.inverse(eta), atol=1e-6)
    weight = norm.pdf(eta) ** 2 / (norm.cdf(eta) * norm.sf(eta))
    np.testing.assert_allclose(found.weight, weight, rtol=1e-5)


def test_without_noise_looks_find_its_maximum_likelihood_and_robust_errors():
    found, theirs = seen_and_exact(20_000, 10**6, "1e-6")
    np.testing.assert_allclose(found.params, theirs.params, atol=0.005 * theirs.bse.max())
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), theirs.bse, rtol=0.005)
    assert not found.marks


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_with_noise_its_intervals_hold_the_fit_without(delta):
    held = []
    for seed in range(12):
        found, theirs = seen_and_exact(20_000, 1, delta, seed)
        errors = np.sqrt(np.diag(found.covariance))
        held.append(np.abs(found.params - theirs.params) <= 1.96 * errors)
        assert (errors < 12 * theirs.bse).all()
    assert np.mean(held) > 0.85
