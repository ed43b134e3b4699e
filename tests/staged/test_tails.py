"""What lies beyond a cut: the table of normal residuals, and the rule for others."""

import numpy as np
import pytest
from scipy.stats import norm

from dpreg.staged.tails import Heaviness, beyond, heaviness, kept, normal_cut


@pytest.mark.parametrize("k", [1.0, 1.7, 3.0, 5.0])
def test_normal_residuals_tell_their_cut(k):
    scatter = norm.expect(lambda z: min(z * z, k * k)) / k**2
    assert normal_cut(scatter) == pytest.approx(k, rel=1e-3)
    assert kept(scatter) == pytest.approx(norm.cdf(k) - norm.cdf(-k), abs=1e-3)
    assert heaviness(scatter, 0.0, 1 / k**2, 0.0).found == pytest.approx(0.0, abs=2e-3)


def test_what_is_hardly_more_than_noise_counts_as_none_and_may_be_some():
    faint, clear = Heaviness(0.1, 0.2), Heaviness(0.4, 0.02)
    assert (faint.likely, faint.possible) == (0.0, 0.2)
    assert clear.likely == pytest.approx(0.4, rel=0.01)
    assert clear.possible == 0.4
    assert Heaviness(-1.0, 0.0).likely == 0.0
    assert Heaviness(-1.0, 0.0).possible > 0.0
    for one in (faint, clear):
        assert one.most > max(one.likely, one.noise)


SKEWED = {
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "lognormal": lambda rng, n: np.exp(0.8 * rng.standard_normal(n)),
    "count": lambda rng, n: rng.poisson(rng.gamma(1.0, 2.0, n)).astype(float),
}


@pytest.mark.parametrize("name", SKEWED)
def test_the_rule_meets_the_mean_that_is_cut_off(name):
    e = SKEWED[name](np.random.default_rng(4), 1_000_000)
    e = e - e.mean()
    e /= e.std()
    cut, wide = 1.7, 3.0
    narrow, full = (np.square(np.clip(e, -k, k)).mean() / cut**2 for k in (cut, wide))
    found = heaviness(float(narrow), 0.0, float(full), 0.0)
    s = cut / normal_cut(float(narrow))
    for k in (2.5, 3.0, 4.0):
        own = np.maximum(np.abs(e) / s - k, 0).mean() - 2 * (norm.pdf(k) - k * norm.sf(k))
        assert 0.5 < beyond(found.likely, k) / own < 3.0
