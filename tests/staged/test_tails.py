"""What lies beyond a cut: the table of normal residuals, and the rule for others."""

import numpy as np
import pytest
from scipy.stats import norm

from dpreg.staged.tails import Heaviness, heaviness, kept, normal_cut, spared


@pytest.mark.parametrize("k", [1.0, 1.7, 3.0, 5.0])
def test_normal_residuals_tell_their_cut(k):
    scatter = norm.expect(lambda z: min(z * z, k * k)) / k**2
    assert normal_cut(scatter) == pytest.approx(k, rel=1e-3)
    assert kept(scatter) == pytest.approx(norm.cdf(k) - norm.cdf(-k), abs=1e-3)
    assert heaviness(scatter, 0.0, 1 / k**2, 0.0).found == pytest.approx(0.0, abs=2e-3)


def test_a_mean_of_cut_residuals_varies_a_little_more():
    cuts = np.array([0.8, 1.3, 1.7, 2.6, 4.0])
    scatter = [norm.expect(lambda z, k=k: min(z * z, k * k)) for k in cuts]
    slow = scatter / (norm.cdf(cuts) - norm.cdf(-cuts)) ** 2
    assert spared(cuts) == pytest.approx(slow, rel=2e-3)
    assert list(slow) == sorted(slow, reverse=True)
    assert spared(np.array([8.0, 27.0])) == pytest.approx(1.0, abs=1e-6)


def test_what_is_hardly_more_than_noise_counts_as_none_and_may_be_some():
    faint, clear = (
        Heaviness(value, noise, skew=-value, skew_noise=noise) for value, noise in
        ((0.1, 0.2), (0.4, 0.02))
    )  # fmt: skip
    assert (faint.likely, faint.likely_skew, faint.possible_skew) == (0.0, 0.0, 0.1)
    assert clear.likely == clear.likely_skew == pytest.approx(0.4, rel=0.01)
    assert clear.possible_skew == pytest.approx(0.4, rel=0.01)
    assert Heaviness(-1.0, 0.0).likely == 0.0
    assert Heaviness(-1.0, 0.0).possible_skew > 0.0
    for one in (faint, clear):
        assert one.most_skew > max(one.likely_skew, one.skew_noise)


def test_light_tails_and_far_cuts_move_less():
    light, heavy = Heaviness(-0.3, 0.01), Heaviness(0.2, 0.01)
    assert light.beyond(0.4, 1.7) == 0.0
    moved = [heavy.beyond(0.4, k) for k in (1.7, 3.5, 5.5)]
    assert moved[0] > 2 * moved[1] > 4 * moved[2] > 0
    assert heavy.slope(0.4, 3.0, 4) > Heaviness(0.0, 0.0).slope(0.4, 3.0, 4) > 0
    assert heavy.slope(0.4, 3.0, 16) == heavy.slope(0.4, 3.0, 4) / 2


def test_rows_that_lie_far_out_lose_weight_at_any_radius():
    near, far = Heaviness(0.0, 0.0, far=1e-4), Heaviness(0.0, 0.0, far=0.03)
    hidden = Heaviness(0.0, 0.0, far=-0.01, far_noise=0.02)
    assert near.left(1.0) == far.left(1.0) == 0.1
    assert near.left(1.5) < hidden.left(1.5) < far.left(1.5) == pytest.approx(0.03)
    # the same share, farther out: rows reach farther
    wide = Heaviness(0.0, 0.0, far=0.03, reach=1.4)
    assert wide.left(1.5 * 1.4) == pytest.approx(0.03)
    assert wide.fall < far.fall


SKEWED = {
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: np.exp(0.8 * rng.standard_normal(n)),
    "count": lambda rng, n: rng.poisson(rng.gamma(1.0, 2.0, n)).astype(float),
}


@pytest.mark.parametrize("name", SKEWED)
def test_the_rule_meets_the_mean_that_is_cut_off(name):
    """With the cuts of a look whose omega is a tenth too large, as it is with noise."""
    e = SKEWED[name](np.random.default_rng(4), 1_000_000)
    e = (e - e.mean()) / (1.1 * e.std())
    narrow, full = (np.square(np.clip(e, -k, k)).mean() / 1.7**2 for k in (1.7, 3.0))
    found = heaviness(float(narrow), 0.0, float(full), 0.0)
    s = 1.7 / normal_cut(float(narrow))
    cut = np.clip(e, -3.0, 3.0)
    skew = float((cut * np.abs(cut)).mean()) / s**2
    for k in (1.7, 2.5, 3.0, 4.0):  # beyond errs on the large side
        moved = (e - np.clip(e, -k * s, k * s)).mean() / s
        assert 0.6 < found.beyond(skew, k) / moved < 4.0


def test_symmetric_residuals_move_nothing_however_heavy():
    e = np.random.default_rng(5).standard_t(3, 1_000_000)
    skew = float((np.clip(e, -4, 4) * np.minimum(np.abs(e), 4)).mean())
    assert Heaviness(0.25, 0.0).beyond(abs(skew), 1.7) < 0.003


def test_an_outer_excess_that_noise_may_make_alone_is_drawn_to_nothing():
    seen, chance = Heaviness(0.0, 0.0, 0.5, 0.1), Heaviness(0.0, 0.0, 7.5, 1.5)
    assert seen.bent == pytest.approx(0.45**2, rel=0.05)
    assert Heaviness(0.0, 0.0, 5.0, 0.1).bent == pytest.approx(0.49)
    assert Heaviness(0.0, 0.0, 3.0, 1.5).bent < 0.1 < chance.bent
    assert Heaviness(0.0, 0.0, 2.0, 1.5).bent == 0.0
