"""The radius' scores and the noisy count; `test_private_radius` says how good the radius is."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.accounts import noisy_count, private_radius

from dpreg.moments import accumulate
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.mechanisms.choice import choose
from dpreg.selection.draws import RADII


def scores_as_first_written(norms):
    """The radius' scores before ranks had a module of their own, kept as the reference."""
    radii = np.array([float(radius) for radius in RADII])
    at_most = (norms[:, None] <= radii).sum(axis=0)
    below = np.concatenate([[0], at_most[:-1]])
    rank = round(Fraction(1, 2) * len(norms))
    return np.maximum(0, np.maximum(below - rank, rank - at_most)).astype(np.int64)


@pytest.fixture
def seen(monkeypatch):
    """The scores that reach the mechanism, with the range that is claimed for them."""
    log = []

    def spy(scores, *, score_range, **options):
        log.append((scores, score_range))
        return choose(scores, score_range=score_range, **options)

    monkeypatch.setattr(choice, "choose", spy)
    return log


@pytest.mark.parametrize("size", [1, 2, 5, 50, 201])
def test_scores_of_the_radius_are_what_they_were(seen, size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        odd = [0.0, 0.5, 1.0, 16.0, 16.1, 64.0, 1e9, np.inf, np.nan]
        norms = rng.choice([*odd, *rng.gamma(1, 3, 5)], size)
        private_radius(norms, eps=Fraction(1), contributions=1)
        np.testing.assert_array_equal(seen[-1][0], scores_as_first_written(norms))


@pytest.mark.parametrize("contributions", [1, 3])
def test_k_changed_blocks_change_scores_within_the_claimed_range(seen, contributions):
    rng = np.random.default_rng(0)
    corners = [0.1, 0.9, 70.0]
    worst = 0
    for old, new in product(corners, repeat=2):
        norms = rng.choice([0.1, 0.5, 0.9, 3.0, 70.0], 7)
        changed = norms.copy()
        norms[:contributions], changed[:contributions] = old, new
        for values in (norms, changed):
            private_radius(values, eps=Fraction(1), contributions=contributions)
        (first, claimed), (second, _) = seen[-2:]
        worst = max(worst, np.ptp(second - first))
        assert claimed == 2 * contributions
    assert contributions <= worst <= 2 * contributions


def test_counts_are_noisy_and_positive():
    rows = np.ones((100, 2))
    rows[:40] = 0
    moments = accumulate([rows], 2)
    drawn = [noisy_count(moments, eps=Fraction(1), contributions=1) for _ in range(200)]
    assert np.mean(drawn) == pytest.approx(60, abs=1)
    assert len(set(drawn)) > 3
    few = [noisy_count(moments, eps=Fraction(1, 100), contributions=3) for _ in range(50)]
    assert min(few) >= 1
