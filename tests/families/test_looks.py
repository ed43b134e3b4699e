"""Looks at a family: what they release, what they cost, and that they find the fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit

import dpreg
from dpreg.choice import Evidence, priors
from dpreg.families import model
from dpreg.families.family import Binomial
from dpreg.families.for_choice import family_laws
from dpreg.families.law import _curved, family_law
from dpreg.families.looks import look_at_family
from dpreg.families.plan import FIRST, MORE, MOST_LOOKS, SECOND, plan_family
from dpreg.families.weighted import weighted_rows
from dpreg.families.working import choose_clips, draws, tried_clips
from dpreg.moments import accumulate
from dpreg.privacy.account import Account, AccountError
from dpreg.privacy.block_noise import blocks_gaussian, blocks_laplace
from dpreg.privacy.budget import Budget
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.protection import Protection
from dpreg.staged.coefficients import coefficients

DELTA = Fraction(1, 10**6)


class Stored:
    """Rows that are already stored."""

    types: ClassVar[dict[str, object]] = {}

    def __init__(self, z):
        self.z, self.size = z, z.shape[1]

    def block(self, _):
        return self.z.copy()


def logit_rows(rng, n, p, intercept=-0.5, size=3.0):
    x = np.clip(rng.standard_normal((n, p)) / 3, -1, 1)
    slopes = np.zeros(p)
    slopes[: max(p // 2, 1)] = size / np.sqrt(max(p // 2, 1))
    y = (rng.random(n) < expit(intercept + x @ slopes)) * 1.0
    return np.column_stack([np.ones(n), x, 2 * y - 1]), y, np.append(intercept, slopes)


def looked(z, eps, seed, family=None, response=(0.5, 0.5), offsets=0, known=(), **who):
    size = z.shape[1] - 2 - offsets
    delta, told = who.pop("delta", DELTA), who.pop("rows", None)
    protection = Protection(who.get("neighbors", "replace-one"), who.get("contributions", 1), None)
    plan = plan_family(size, Budget(Fraction(eps), delta), protection, offsets=offsets)
    account = Account(protection, plan.cost, np.random.default_rng(seed))
    opened = plan.open(account)
    account.charge(None, "a test")

    def read(vectors):
        moments = accumulate([vectors.block({})], vectors.size)
        return moments if told is None else replace(moments, rows=told)

    seen = look_at_family(
        read,
        Stored(z),
        family or Binomial(),
        opened,
        response=response,
        columns=range(1, size + 1),
        offsets=range(size + 1, size + 1 + offsets),
        known=known,
        public=protection.n_is_public,
    )
    return seen, account


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_tends_to_maximum_likelihood_as_the_noise_vanishes(delta):
    z, y, _ = logit_rows(np.random.default_rng(0), 5000, 4)
    theirs = sm.GLM(y, z[:, :-1], family=sm.families.Binomial()).fit()
    seen, _ = looked(z, 10**6, 1, delta=delta)
    fit = coefficients(family_law(seen.looks[-1]))
    np.testing.assert_allclose(fit.params, theirs.params, atol=0.02 * theirs.bse.max())
    np.testing.assert_allclose(np.sqrt(np.diag(fit.sampling)), theirs.bse, rtol=0.05)
    assert np.sqrt(np.diag(fit.privacy)).max() < 0.02 * theirs.bse.max()
    assert seen.looks[-1].middle == pytest.approx(1, abs=0.1)


def test_an_offset_of_known_slope_is_added():
    rng = np.random.default_rng(2)
    z, _, truth = logit_rows(rng, 20000, 3)
    o = rng.uniform(-1, 1, len(z))
    y = (rng.random(len(z)) < expit(z[:, :-1] @ truth + 1.5 * o)) * 1.0
    with_offset = np.column_stack([z[:, :-1], o, 2 * y - 1])
    seen, _ = looked(with_offset, 1000, 1, offsets=1, known=[1.5])
    fit = coefficients(family_law(seen.looks[-1]))
    theirs = sm.GLM(y, z[:, :-1], family=sm.families.Binomial(), offset=1.5 * o).fit()
    np.testing.assert_allclose(fit.params, theirs.params, atol=0.05 * theirs.bse.max())


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_parts_never_exceed_the_whole_and_all_is_spent(delta):
    for seed, eps in enumerate(("0.3", "1", "8", "1000")):
        z, _, _ = logit_rows(np.random.default_rng(seed), 3000, 5)
        seen, account = looked(z, eps, seed, delta=delta)
        shares = [FIRST, *(look.share for look in seen.looks)]
        assert sum(shares) == 1
        assert 3 <= len(shares) <= MOST_LOOKS
        assert shares[1] == SECOND
        assert set(shares[2:-1]) <= set(MORE)
        table = account.table()
        assert table.total == Budget(Fraction(eps), delta)


@pytest.mark.parametrize(
    ("later", "split"), [(Fraction(0), False), (Fraction(2, 5), False), (Fraction(0), True)]
)
def test_mu_squared_is_proved_for_every_cell_that_is_drawn(later, split):
    plan = plan_family(5, Budget(1, DELTA), Protection("replace-one"), later=later, split=split)
    looks = MOST_LOOKS - 1 + (split or later > 0)
    cells = len(plan.box_noise().cells) + looks * len(plan.noise(SECOND, 2**38, 1.0).cells)
    whole = Fraction(looks_ratio(Fraction(1), DELTA, cells)) ** 2
    assert max(plan.strength, plan.later) <= whole
    assert split or plan.strength + plan.later <= whole


def test_where_the_box_hides_all_columns_looks_begin_at_no_slopes():
    z, _, _ = logit_rows(np.random.default_rng(3), 4000, 15)
    for seed in range(5):
        seen, _ = looked(z, "0.5", seed, delta=Fraction(0))
        first = seen.looks[0].fit
        assert first.predicted_variance < 0.05
        assert 0 < first.mean < 1
    seen, _ = looked(z, 50, 1, delta=Fraction(0))
    assert seen.looks[0].fit.predicted_variance > 0.5


def test_a_mean_that_noise_puts_at_an_end_is_not_believed():
    z, _, _ = logit_rows(np.random.default_rng(3), 1000, 10, -2.5)
    for seed in range(10):
        seen, _ = looked(z, "0.5", seed, delta=Fraction(0))
        noise = seen.box_sd[0, -1] / 2 / seen.fit.rows
        assert min(seen.fit.mean, 1 - seen.fit.mean) >= min(noise / 2, 0.5) - 1e-9


def test_complete_rows_are_all_rows_where_noise_alone_says_fewer():
    z, _, _ = logit_rows(np.random.default_rng(6), 3000, 2)
    for seed in range(20):
        seen, _ = looked(z, 1, seed)
        short = 3000 - seen.box[0, 0]
        if short < 2 * seen.box_sd[0, 0]:
            assert seen.looks[0].fit.rows == 3000
    z[:1000] = 0.0
    seen, _ = looked(z, 4, 1)
    assert seen.fit.rows == pytest.approx(2000, abs=300)


def test_a_direction_that_the_noise_hides_bends_no_coefficient():
    """The working law has no columns there: what a look asks for along it must stand."""
    z, _, _ = logit_rows(np.random.default_rng(12), 20000, 3)
    last = looked(z, 4, 1)[0].looks[-1]
    hidden = replace(last.fit, spread=np.append(last.fit.spread[:-1], 0.0))
    theta, spread = np.array([0.02, 0.05, -0.05, 0.3]), np.zeros((4, 4))
    rows = weighted_rows(hidden, last.location)
    found = _curved(last, rows, theta, spread)
    assert found[-1] == pytest.approx(theta[-1], abs=1e-9)
    assert 0 < np.abs(found[:3] - theta[:3]).max() < 0.05


def test_a_longer_step_than_expected_is_not_shrunk():
    z, _, _ = logit_rows(np.random.default_rng(13), 20000, 3)
    last = looked(z, "0.5", 1)[0].looks[-1]
    cells, step = last.cells.copy(), np.array([0.0, 0.3, -0.3, 0.3])
    cells[:-1, -1] += cells[:-1, :-1] @ step
    expected, surprising = (
        family_law(replace(last, cells=cells, fit=replace(last.fit, signal=signal))).theta
        for signal in (0.5, 1e-4)
    )
    np.testing.assert_allclose(surprising, expected, atol=0.03)


def test_a_private_number_of_rows_is_not_used():
    z, _, _ = logit_rows(np.random.default_rng(6), 3000, 2)
    (told, _), (true, _) = (
        looked(z, 1, 7, neighbors="add-remove", rows=rows) for rows in (1, None)
    )
    np.testing.assert_array_equal(told.looks[-1].cells, true.looks[-1].cells)
    assert told.fit.rows == true.fit.rows
    public, _ = looked(z, 1, 7, rows=1)
    assert public.fit.rows < 100 < told.fit.rows


def test_the_sum_of_squared_residuals_is_never_released():
    """H, s and Q are what is added to the noise; the moments of f and of q with k are not."""
    z, y, _ = logit_rows(np.random.default_rng(4), 2000, 2)
    seen, _ = looked(z, 10**6, 5)
    last = seen.looks[-1]
    mean = expit(z[:, :-1] @ last.location.shift)
    u = np.column_stack(
        [np.ones(len(z)), z[:, 1:3] @ last.location.whitening.T + last.location.offset]
    )
    squares = ((y - mean) ** 2 * (u * u).sum(axis=1)).sum() / last.location.mean_weight
    assert last.cells[-1, -1] == pytest.approx(squares, rel=0.02)
    assert last.cells.shape == (4, 4)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_every_look_is_drawn_at_its_part(relation, k, delta):
    z, _, _ = logit_rows(np.random.default_rng(6), 2000, 3)
    seen, account = looked(z, 1, 7, neighbors=relation, contributions=k, delta=delta)
    for look in seen.looks:
        location, own = look.location, seen.plan.strength * look.share
        if delta:
            stored = look.clips.weight * location.residual**2 / location.information
            weight = Fraction(max(round(stored * 2**20), 1), 2**20)
            noise = blocks_gaussian(5, location.limit, weight, own, relation, k)
        else:
            share = Fraction(round(look.clips.weight * 2**20), 2**20)
            noise = blocks_laplace(5, location.limit, share, own, relation, k)
        units = look.noise_sd / noise.sd
        assert units[0, 0] == pytest.approx(location.information)
        assert units[0, -1] == pytest.approx(np.sqrt(location.information) * location.residual)
        assert units[-1, -1] == pytest.approx(location.score**2)
    with pytest.raises(AccountError):
        account.table().spends and seen.plan.open(account)


def test_scores_of_pure_looks_have_tails_and_their_law_says_so():
    plan = plan_family(6, Budget(Fraction(1)), Protection("replace-one", 1, None))
    assert (plan.mechanism, plan.degrees) == ("matrix-laplace", 4)
    assert plan_family(6, Budget(Fraction(1), DELTA), plan.protection).degrees is None
    noise = plan.noise(Fraction(1, 2), 2**40, 0.5)
    rng = np.random.default_rng(0)
    scores = np.array([noise.simulate(rng)[-1][:-1] for _ in range(4000)], dtype=float)
    kurtosis = (scores**4).mean() / (scores**2).mean() ** 2 - 3
    assert kurtosis == pytest.approx(6 / 8, abs=0.2)  # d = 7
    assert 3 / plan.degrees >= 6 / 8


def test_the_clips_of_least_predicted_error_are_a_public_rule():
    z, _, _ = logit_rows(np.random.default_rng(8), 2000, 3)
    seen, _ = looked(z, 1, 9)
    at = seen.looks[0].fit.situation()
    tried = tried_clips(at)
    quiet, loud = (choose_clips(at, tried, ratio, True) for ratio in (50.0, 0.05))
    assert quiet.score > loud.score
    assert quiet.error < loud.error
    assert quiet.loudness < 1 < loud.loudness
    one, two = (choose_clips(at, tried, 0.3, replaced) for replaced in (False, True))
    assert one.error < two.error
    assert (draws(3) == draws(3)).all()
    assert draws(3).shape == (1500, 4)


@pytest.mark.parametrize("delta", [DELTA, Fraction(0)])
def test_errors_are_of_the_stated_size(delta):
    rng = np.random.default_rng(10)
    z, y, _ = logit_rows(rng, 20000, 4)
    theirs = sm.GLM(y, z[:, :-1], family=sm.families.Binomial()).fit()
    gaps = []
    for seed in range(40):
        seen, _ = looked(z, 1, seed, delta=delta)
        fit = coefficients(family_law(seen.looks[-1]))
        gaps.append((fit.params - theirs.params) / np.sqrt(np.diag(fit.privacy)))
    assert 0.8 < np.sqrt(np.mean(np.square(gaps))) < 1.25


@pytest.mark.parametrize("family", ["poisson", "quasipoisson", "binomial"])
@pytest.mark.parametrize("reach", [90.0, 1e5])
def test_noise_in_a_wide_offset_ends_no_call(family, reach, monkeypatch):
    monkeypatch.setattr(model, "_FARTHEST", np.inf)  # calls refuse the second
    top, most = (2, 1) if family == "binomial" else (3, 10)
    rng = np.random.default_rng(0)
    for seed in range(6):
        data = pd.DataFrame({"a": rng.uniform(0, 5, 300), "y": rng.integers(0, top, 300), "o": 0.0})
        fit = dpreg.dp_glm(
            "y ~ a", data, eps=0.05, neighbors="add-remove", family=family, offset="o",
            schema={"a": (0, 5), "o": (-reach, reach), "y": (0, most)}, unsafe_seed=seed,
        )  # fmt: skip
        assert np.isfinite(fit.params).all() or fit.params.isna().all()


def test_a_choice_reads_the_law_over_its_own_priors():
    rng = np.random.default_rng(14)
    z, _, truth = logit_rows(rng, 20_000, 4)
    seen, _ = looked(z, 2, 5)
    laws = family_laws(seen.looks[-1], seen.plan.degrees)
    assert tuple(one.prior for one in laws) == priors(5)
    for one in laws:
        own = family_law(seen.looks[-1], seen.plan.degrees, one.prior)
        np.testing.assert_allclose(one.covariance, own.covariance)
        np.testing.assert_allclose(one.equations @ np.linalg.pinv(one.transform), own.k, atol=1e-6)
    look = Evidence(laws[0])
    assert [look.p([j]) < 1e-3 for j in range(1, 5)] == [slope != 0 for slope in truth[1:]]
