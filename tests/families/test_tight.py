"""A smaller cap for a look at counts: chosen where few counts come near the public one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from families.test_looks import DELTA, logit_rows, looked
from scipy.stats import nbinom, poisson

import dpreg
from dpreg.families.family import Poisson
from dpreg.families.tight import excess, restored, tightened
from dpreg.privacy.budget import Budget


def counted(n=5000, scatter=0.0, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z, _, truth = logit_rows(rng, n, 3, size=size)
    mean = np.exp(0.7 + z[:, 1:-1] @ truth[1:])
    if scatter:
        mean = mean * rng.gamma(1 / scatter, scatter, n)
    y = np.minimum(rng.poisson(mean), 20)
    return np.column_stack([z[:, :-1], y / 10 - 1]), y


def test_the_mean_excess_is_that_of_counts():
    mean, counts = np.array([0.5, 3.0, 12.0]), np.arange(2000)[:, None]
    laws = {1.0: poisson(mean), 2.0: nbinom(mean, 0.5), 5.0: nbinom(mean / 4, 0.2)}
    for scatter, law in laws.items():
        for cap in (6.0, 9.5):
            wanted = (np.maximum(counts - cap, 0) * law.pmf(counts)).sum(axis=0)
            np.testing.assert_allclose(excess(mean, cap, scatter), wanted, rtol=0.02, atol=1e-4)
    assert (excess(mean, 1e4, 2.0) == 0).all()
    large = np.array([50.0, 200.0])
    wanted = (np.maximum(counts - 150, 0) * nbinom(large / 2, 1 / 3).pmf(counts)).sum(axis=0)
    np.testing.assert_allclose(excess(large, 150.0, 3.0), wanted, rtol=0.05, atol=0.05)


def test_what_a_cap_cuts_off_is_added_back_on_average():
    rng = np.random.default_rng(2)
    x = np.clip(rng.standard_normal((200_000, 3)) / 4, -1, 1)
    y = np.minimum(rng.poisson(np.exp(0.5 + x @ [1.0, -0.8, 0.0])), 20)
    z = np.column_stack([np.ones(len(x)), x, y / 10 - 1])
    seen, _ = looked(z, 10**6, 3, family=Poisson(20.0), response=(10.0, 10.0))
    look = seen.looks[-1]
    fit = replace(look.fit, family=replace(Poisson(20.0), cap=5.0, declared=20.0), dispersion=1.0)
    location, zero = look.location, np.zeros_like(look.cells)
    back = restored(fit, location, zero)[:-1, -1]
    u = np.column_stack([np.ones(len(z)), (z[:, 1:-1] - fit.center) @ fit.whitening.T])
    mean = np.exp(fit.intercept + z[:, 1:-1] @ fit.slopes)
    length = np.sqrt((u * u).sum(axis=1))
    unit = np.sqrt(location.mean_weight)
    farthest = np.maximum(mean, 5 - mean) * length / unit
    norms = mean * length**2 / location.mean_weight
    omega = np.minimum(np.minimum(location.score / farthest, location.information / norms), 1)
    cut = u.T @ (omega * np.maximum(y - 5, 0)) / unit
    assert cut[0] > 1000
    np.testing.assert_allclose(back, cut, atol=0.1 * cut[0])
    uncapped = replace(fit, family=Poisson(20.0))
    assert (restored(uncapped, location, look.cells) == look.cells).all()


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_a_cap_far_above_the_counts_is_lowered_and_one_that_cuts_is_not(delta):
    z, _ = counted()
    seen, account = looked(z, 2, 3, family=Poisson(20.0), response=(10.0, 10.0), delta=delta)
    caps = [look.location.family.cap for look in seen.looks]
    assert all(cap > 4 for cap in caps)
    assert min(caps) < 18
    assert all(look.location.family.most == 20 for look in seen.looks)
    assert account.table().total == Budget(Fraction(2), delta)
    fit = seen.looks[-1].fit
    wide = replace(fit, dispersion=8.0, mean=8.0, intercept=fit.intercept + 1.5)
    assert tightened(seen.plan, wide, Fraction(1, 2))[0].family.cap > caps[-1]


def test_no_noise_no_cut():
    z, _ = counted(20_000)
    seen, _ = looked(z, 10**6, 3, family=Poisson(20.0), response=(10.0, 10.0))
    assert seen.looks[-1].location.family.cap > 15


def test_means_may_lie_beyond_a_lowered_cap():
    family = replace(Poisson(20.0), cap=6.0, declared=20.0)
    assert family.limits == Poisson(20.0).limits
    assert family.moments(np.array([np.log(15.0)]))[0] == pytest.approx(15)
    assert family.most == 20


def test_what_is_cut_off_is_small_beside_the_errors():
    """Scattered counts, whose tail is longer than Poisson's: no bias that errors do not cover."""
    names, gaps = ["x0", "x1", "x2"], []
    schema = {**dict.fromkeys(names, (-1, 1)), "y": (0, 20)}
    for seed in range(15):
        z, y = counted(20_000, scatter=0.3, seed=seed)
        data = pd.DataFrame(z[:, 1:-1], columns=names).assign(y=y)
        asked = {"delta": 1e-6, "family": "poisson", "schema": schema, "unsafe_seed": seed}
        loud = dpreg.dp_glm("y ~ x0 + x1 + x2", data, 1, **asked)
        quiet = dpreg.dp_glm("y ~ x0 + x1 + x2", data, 1e6, **asked)
        gaps.append((loud.coefficients - quiet.coefficients) / loud.bse.to_numpy())
    assert np.abs(np.mean(gaps, axis=0)).max() < 0.9
    assert np.sqrt(np.mean(np.square(gaps))) < 1.2
