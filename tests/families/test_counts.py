"""Rows' own caps for counts: what they take off is added back, and nothing leaves its limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from families.test_looks import DELTA, Stored, logit_rows, looked
from scipy.stats import nbinom, poisson

import dpreg
from dpreg.families import count_clips
from dpreg.families import looks as module
from dpreg.families.aim import aimed
from dpreg.families.count_clips import tried_caps
from dpreg.families.counts import Table, capped, count_law
from dpreg.families.family import Poisson
from dpreg.families.location import FamilyLocation
from dpreg.families.rows import FamilyRows
from dpreg.families.working import choose_clips
from dpreg.privacy.budget import Budget

COUNTS = Poisson(20.0)


def counted(n=5000, scatter=0.0, size=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z, _, truth = logit_rows(rng, n, 3, size=size)
    mean = np.exp(0.7 + z[:, 1:-1] @ truth[1:])
    if scatter:
        mean = mean * rng.gamma(1 / scatter, scatter, n)
    y = np.minimum(rng.poisson(mean), 20)
    return np.column_stack([z[:, :-1], y / 10 - 1]), y


def counts_law(mean, scatter, usual):
    """Return Poisson's law, or the negative binomial one of the module, of one mean."""
    varied = 1 + (scatter - 1) * (1 + mean / usual) / 2
    return poisson(mean) if scatter == 1 else nbinom(mean / (varied - 1), 1 / varied)


@pytest.mark.parametrize("scatter", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("most", [20.0, 7.5, 300.0])
def test_the_tables_are_those_of_the_law(scatter, most):
    law, y = count_law(Poisson(most), scatter, 2.0), np.arange(20_000)
    for mean in (0.05, 0.9, 3.0, 7.3, 0.4 * most):
        chances = counts_law(mean, scatter, 2.0).pmf(y)
        for cap in (1.0, 2.5, 6.0, 0.6 * most, most):
            kept = np.minimum(y, cap)
            wanted = ((np.minimum(y, most) - kept) * chances).sum()
            whole = np.minimum(y, most)
            spread = ((v**2 * chances).sum() - (v * chances).sum() ** 2 for v in (kept, whole))
            variance = next(spread) / next(spread) * (1 + (scatter - 1) * (1 + mean / 2) / 2) * mean
            eta, at = np.array([np.log(mean)]), np.array([cap])
            loose = most > 64  # beyond, counts are taken as continuous
            assert law.excess.of(eta, at) * mean == pytest.approx(
                wanted, abs=0.02 * mean * loose + 1e-3 * mean
            )
            assert law.variance.of(eta, at) * mean == pytest.approx(variance, rel=0.4)


def test_no_count_is_cut_where_all_are_small():
    assert count_law(Poisson(3.0), 2.0, 0.5) is None
    plan = looked(counted()[0], 1, 0, family=COUNTS, response=(10.0, 10.0))[0].plan
    fit = looked(counted()[0], 1, 0, family=COUNTS, response=(10.0, 10.0))[0].fit
    assert aimed(plan, replace(fit, family=Poisson(2.0)), Fraction(1, 2)).location.excess is None


def test_a_table_gives_a_number_the_same_bits_wherever_it_stands():
    law, rng = count_law(Poisson(500.0), 1.7, 4.0), np.random.default_rng(1)
    eta, cap = rng.uniform(-20, 20, 4001), rng.uniform(-1, 600, 4001)
    whole = law.excess.of(eta, cap)
    assert ((whole >= 0) & (whole <= 1)).all()
    for size in (1, 3, 64):
        pieces = [law.excess.of(eta[i : i + size], cap[i : i + size]) for i in range(0, 4001, size)]
        assert np.concatenate(pieces).tobytes() == whole.tobytes()
    assert law.excess.of(eta[::-1], cap[::-1]).tobytes() == whole[::-1].tobytes()
    with pytest.raises(ValueError, match="read-only"):
        law.excess.values[0] = 1


def test_a_residual_stays_within_the_score_s_reach():
    """Where fewer than a sixth of the counts are cut: what is cut at the limit has another mean."""
    law, rng = count_law(COUNTS, 2.0, 2.0), np.random.default_rng(2)
    mean = rng.uniform(0.1, 8, 3000)
    reach = np.maximum(mean, rng.uniform(0.5, 15, 3000))
    eta = np.log(mean)
    cap, taken = capped(law.excess, 20.0, eta, mean, reach)
    y = np.arange(4000)[:, None]
    varied = 1 + (1 + mean / 2) / 2
    beyond = nbinom(mean / (varied - 1), 1 / varied).sf(np.floor(cap))
    usual = beyond < 1 / 6
    assert usual.mean() > 0.8
    assert (cap - mean + taken <= reach * (1 + 1e-9))[usual].all()
    assert (mean - taken <= reach).all()
    assert (cap < 20)[usual].any()
    chances = nbinom(mean / (varied - 1), 1 / varied).pmf(y)
    kept = (np.minimum(y, cap) * chances).sum(axis=0) - mean + taken
    whole = (np.minimum(y, 20) * chances).sum(axis=0) - mean
    np.testing.assert_allclose(kept, whole, atol=2e-3)


def test_what_caps_take_off_is_added_back_whatever_the_columns_are():
    """Skewed columns, of which no working law knows: the score's mean is that without caps."""
    rng = np.random.default_rng(3)
    x = np.clip(np.exp(0.7 * rng.standard_normal((100_000, 2))) / 4 - 1, -1, 1)
    y = np.minimum(rng.poisson(np.exp(0.9 + x @ [1.4, -0.6])), 20)
    z = np.column_stack([np.ones(len(x)), x, y / 10 - 1])
    location = FamilyLocation.on_grid(
        COUNTS,
        whitening=np.eye(2) * 4,
        offset=[2.5, 2.5],
        slopes=[1.4, -0.6],
        intercept=0.9,
        mean_weight=1.5,
        information=40.0,
        score=3.0,
        excess=count_law(COUNTS, 1.0, 1.5).excess,
    )
    rows = FamilyRows(Stored(z), location, (1, 2), (), (10.0, 10.0))
    block = rows.block({})
    score = block[:, :3].T @ block[:, 3] * np.sqrt(location.information) * location.residual
    u = np.column_stack([np.ones(len(z)), x @ location.whitening.T + location.offset])
    constant, slopes = location.predictor.floats
    eta, wbar = constant + x @ slopes, location.mean_weight
    mean, bound, length = np.exp(eta), location.score * np.sqrt(wbar), np.sqrt((u * u).sum(axis=1))
    cap, _ = capped(location.excess, 20.0, eta, mean, np.maximum(bound / length, mean))
    omega = np.minimum(1, bound / (mean * length))
    omega = np.minimum(omega, location.information * wbar / (mean * length**2))
    whole = u.T @ (omega * (y - mean)) / np.sqrt(wbar)
    cut = u.T @ (omega * np.maximum(y - cap, 0)) / np.sqrt(wbar)
    assert cut[0] > 1000
    assert np.abs(score - whole).max() < 0.1 * cut[0]


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_scores_reach_less_far_the_louder_the_noise_is(delta):
    z, _ = counted()
    seen, account = looked(z, 2, 3, family=COUNTS, response=(10.0, 10.0), delta=delta)
    quiet, _ = looked(z, 10**6, 3, family=COUNTS, response=(10.0, 10.0), delta=delta)
    assert seen.looks[-1].location.score < 0.7 * quiet.looks[-1].location.score
    assert account.table().total == Budget(Fraction(2), delta)


def test_no_noise_no_cut():
    z, _ = counted(20_000)
    seen, _ = looked(z, 10**6, 3, family=COUNTS, response=(10.0, 10.0))
    location = seen.looks[-1].location
    eta = np.log(np.array([1.0, 2.0, 4.0]))
    reach = np.maximum(location.score * np.sqrt(location.mean_weight) / 2, np.exp(eta))
    assert (capped(location.excess, 20.0, eta, np.exp(eta), reach)[0] == 20).all()


def test_what_the_law_of_counts_may_get_wrong_is_weighed():
    seen, _ = looked(counted()[0], 1, 4, family=COUNTS, response=(10.0, 10.0))
    at = seen.fit.situation()
    law, doubted = (count_law(COUNTS, s, at.mean_weight) for s in (1.0, 2.0))
    tried = tried_caps(at, law, doubted)
    assert (np.diff(tried.biased[:-2, -1][np.isfinite(tried.biased[:-2, -1])]) <= 0).all()
    careless = replace(tried, biased=np.zeros_like(tried.biased))
    wary, bold = (choose_clips(at, t, 0.2, True) for t in (tried, careless))
    assert wary.score > bold.score
    assert wary.slope > bold.slope


def located():
    z, _ = counted()
    seen, _ = looked(z, 1, 0, family=COUNTS, response=(10.0, 10.0))
    return seen.fit


def test_only_loud_noise_gets_low_caps_and_only_where_a_law_is_stated():
    for family in (COUNTS, Poisson(20.0, quasi=True)):
        fit = replace(located(), family=family)
        at, law = fit.situation(), count_law(family, 1.0, fit.mean)
        tried = tried_caps(at, law, count_law(family, count_clips.doubted_scatter(family, 1), 2.0))
        assert tried.biased[tried.low].min() < np.inf or family.quasi
        for ratio in np.geomspace(1e-3, 10, 30):
            found = choose_clips(at, tried, ratio, True)
            usual = choose_clips(at, replace(tried, low=tried.low < False), ratio, True)
            best = choose_clips(at, replace(tried, biased=tried.biased + tried.low * 1e9), ratio, 1)
            loud = best.loudness > 16 and not family.quasi
            assert found.score == (usual if loud else best).score
        assert found.slope >= (0.75 if loud else 0.9)


def test_the_dispersion_is_that_of_counts_which_were_cut():
    found = []
    for seed in range(8):
        z, _ = counted(20_000, scatter=0.3, seed=seed)
        seen, _ = looked(z, 2, seed, family=COUNTS, response=(10.0, 10.0))
        quiet, _ = looked(z, 10**6, seed, family=COUNTS, response=(10.0, 10.0))
        assert seen.looks[-1].clips.efficiency < 0.99 * quiet.looks[-1].clips.efficiency
        found.append(seen.fit.dispersion / quiet.fit.dispersion)
    assert np.mean(found) == pytest.approx(1, abs=0.05)


def test_looks_keep_what_was_released(monkeypatch):
    """What a result saves are the noisy cells themselves: nothing is added to them afterwards."""
    z, released, own = counted()[0], [], module._release

    def release(*args):
        released.append(own(*args))
        return released[-1]

    monkeypatch.setattr(module, "_release", release)
    seen, _ = looked(z, 1, 5, family=COUNTS, response=(10.0, 10.0))
    assert len(released) == len(seen.looks)
    for look, (cells, sd) in zip(seen.looks, released, strict=True):
        assert look.cells.tobytes() == cells.tobytes()
        assert look.noise_sd.tobytes() == sd.tobytes()


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


@pytest.mark.parametrize("most", [1e15, 1e20, 1e30])
def test_a_huge_public_cap_ends_no_charged_call(most):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.standard_normal(50), "y": rng.poisson(5e4, 50)})
    for seed in range(6):
        dpreg.dp_glm(
            "y ~ x", data, "1e-6", delta="1e-300", family="poisson", unsafe_seed=seed,
            neighbors="add-remove", schema={"x": (-3, 3), "y": (0, most)},
        )  # fmt: skip


def test_a_table_of_two_predictors_is_straight_between_them():
    table = Table(0.0, np.array([0.0, 1.0, 3.0]), np.array([[0.0, 1.0, 3.0], [1.0, 2.0, 4.0]]))
    eta, cap = np.array([-1.0, 1 / 64, 9.0]), np.array([2.0, 0.5, 7.0])
    assert table.of(eta, cap).tolist() == [2.0, 1.0, 4.0]
