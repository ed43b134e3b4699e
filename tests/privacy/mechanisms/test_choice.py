import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opendp.mod import GLOBAL_FEATURES
from oracles.mechanism_laws import law, worst_log_ratio
from scipy.stats import chi2

from dpreg.errors import ArgumentError
from dpreg.privacy import seeded
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.mechanisms.additive import laplace_noise
from dpreg.privacy.mechanisms.choice import choose, effective_t, noise_scale
from dpreg.privacy.protection import CHOICES

ALPHA = 1e-6
SCORES = np.array([7, 0, 3, 3, 12], dtype=np.int64)


def p_value(mechanism, scores, eps, score_range, rng=None, draws=2000, scale=None):
    """Chi-square of draws against the exact law at the honest scale."""
    scale = noise_scale(eps, score_range, mechanism) if scale is None else scale
    expected = draws * np.array(law(mechanism, scores.tolist(), scale))
    drawn = [
        choice.choose(scores, eps=eps, score_range=score_range, mechanism=mechanism, rng=rng)
        for _ in range(draws)
    ]
    counts = np.bincount(drawn, minlength=scores.size)
    assert expected.min() > 4
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), scores.size - 1))


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("shift", [0, 2**62, -(2**62)])
def test_draws_follow_the_exact_law_wherever_the_scores_lie(mechanism, seed, shift):
    rng = None if seed is None else np.random.default_rng(seed)
    assert p_value(mechanism, SCORES + shift, Fraction(1), 5, rng) > ALPHA


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("seed", [None, 2])
def test_equal_scores_and_ties(mechanism, seed):
    rng = None if seed is None else np.random.default_rng(seed)
    assert p_value(mechanism, np.zeros(4, dtype=np.int64), Fraction(2), 2, rng) > ALPHA


@pytest.mark.parametrize("mechanism", CHOICES)
def test_mutant_half_the_noise_is_caught(mechanism, monkeypatch):
    honest = noise_scale(Fraction(1), 5, mechanism)
    monkeypatch.setattr(choice, "noise_scale", lambda eps, r, m: honest / 2)
    assert p_value(mechanism, SCORES, Fraction(1), 5, scale=honest) < ALPHA


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_mutant_highest_wins_is_caught(mechanism, monkeypatch):
    honest = choice._noisy_min

    def turned(scale, name):
        return lambda scores: honest(scale, name)(-scores)

    scale = noise_scale(Fraction(1), 5, mechanism)
    monkeypatch.setattr(choice, "noise_scale", lambda eps, r, m: scale)
    monkeypatch.setattr(choice, "_noisy_min", turned)
    assert p_value(mechanism, SCORES, Fraction(1), 5, scale=scale) < ALPHA


@pytest.mark.parametrize("mechanism", CHOICES)
def test_all_neighbours_of_small_scores_stay_within_eps(mechanism):
    """Every change of range at most r from every small score vector: the exact log ratio."""
    r, eps = 2, Fraction(1)
    scale = noise_scale(eps, r, mechanism)
    worst = 0.0
    for scores in [(0, 0, 0), (0, 6, 6), (30, 0, 60), (0, 40, 40)]:
        before = law(mechanism, scores, scale)
        for change in product(range(r + 1), repeat=3):
            after = law(mechanism, [s + d for s, d in zip(scores, change, strict=True)], scale)
            worst = max(worst, worst_log_ratio(before, after))
    assert worst <= float(eps) * (1 + 1e-9)
    assert worst >= 0.95 * float(eps)  # no noise is wasted


def test_ties_go_to_the_lowest_index_whatever_the_scores(monkeypatch):
    monkeypatch.setattr(choice, "laplace_noise", lambda size, scale: [4 - s for s in (1, 0, 2)])
    scores = np.array([1, 0, 2], dtype=np.int64)  # all noisy scores are 4
    assert choose(scores, eps=Fraction(1), score_range=2, mechanism="laplace") == 0


@pytest.mark.parametrize("mechanism", CHOICES)
@given(
    st.fractions(min_value=Fraction(1, 10**4), max_value=50),
    st.integers(min_value=1, max_value=2**36),
)
def test_the_scale_never_spends_more_than_eps_and_wastes_next_to_nothing(mechanism, eps, r):
    scale = Fraction(noise_scale(eps, r, mechanism))
    assert r / scale <= eps
    assert r / scale >= eps * (1 - Fraction(1, 2**48))
    t = effective_t(eps, r, mechanism)
    assert t * r <= eps
    assert t == 1 / scale


def test_mutant_scale_rounded_to_nearest_is_caught():
    # Division in floats overspends for many requests: exact comparison sees each.
    eps = [Fraction(n, 97) for n in range(1, 400)]
    assert any(9 / Fraction(float(9 / e)) > e for e in eps)
    assert all(9 / Fraction(noise_scale(e, 9, "permute-and-flip")) <= e for e in eps)


@pytest.mark.parametrize("mechanism", CHOICES)
def test_opendps_own_map_agrees_with_the_claim(mechanism):
    for eps in (Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(7, 2)):
        scale = noise_scale(eps, 33_554_434, mechanism)
        if mechanism == "laplace":
            assert Fraction(choice._measurement(scale, "laplace").map(33_554_434)) <= eps
        elif mechanism == "exponential":
            assert Fraction(choice._noisy_min(scale, mechanism).map(33_554_434)) <= eps**2 / 8
        else:
            assert Fraction(choice._noisy_min(scale, mechanism).map(33_554_434)) <= eps


def test_a_single_candidate_is_drawn():
    one = np.array([5], dtype=np.int64)
    for mechanism, rng in product(CHOICES, (None, np.random.default_rng(0))):
        arguments = {"eps": Fraction(1), "score_range": 3, "mechanism": mechanism, "rng": rng}
        assert choose(one, **arguments) == 0


@pytest.mark.parametrize("mechanism", CHOICES)
def test_int64_extremes_neither_overflow_nor_confuse(mechanism):
    scores = np.array([2**63 - 1, -(2**63), 0], dtype=np.int64)
    for rng in (None, np.random.default_rng(0)):
        arguments = {"eps": Fraction(1), "score_range": 3, "mechanism": mechanism, "rng": rng}
        assert choose(scores, **arguments) == 1


def test_an_eps_for_more_noise_than_is_drawn_is_refused():
    with pytest.raises(ArgumentError, match="the noise is over 2"):
        choose(SCORES, eps=Fraction(1, 2**60), score_range=2, mechanism="laplace")


def test_opendps_features_are_left_as_they_were():
    before = set(GLOBAL_FEATURES)
    choose(SCORES, eps=Fraction(1), score_range=2, mechanism="permute-and-flip")
    assert set(GLOBAL_FEATURES) == before
    script = (
        "import dpreg.privacy.mechanisms, opendp.mod as m; assert not m.GLOBAL_FEATURES;"
        "import opendp.prelude as dp; dp.enable_features('contrib');"
        "from dpreg.privacy.mechanisms.additive import laplace_noise; laplace_noise(2, 1.0);"
        "assert 'contrib' in m.GLOBAL_FEATURES"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("rng", [None, np.random.default_rng(3)])
def test_laplace_noise_of_a_choice_has_the_discrete_law(rng):
    scale, draws = 2.5, 20_000
    z = np.array(
        laplace_noise(draws, scale) if rng is None else seeded.discrete_laplace(scale, draws, rng)
    )
    ratio = np.exp(-1 / scale)
    support = np.arange(-8, 9)
    expected = draws * (1 - ratio) / (1 + ratio) * ratio ** np.abs(support)
    counts = np.array([(z == v).sum() for v in support])
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), support.size - 1) > ALPHA


def test_private_draws_never_touch_numpy(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a NumPy generator was asked")

    for name in ("choose", "discrete_laplace"):
        monkeypatch.setattr(seeded, name, refuse)
    for mechanism in CHOICES:
        choose(SCORES, eps=Fraction(1), score_range=2, mechanism=mechanism)


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("eps", [10**6, 10**30])  # of calls, and of studies
def test_a_huge_eps_draws_the_least_score(mechanism, eps):
    scale = noise_scale(Fraction(eps), 9, mechanism)
    assert Fraction(9, eps) <= Fraction(scale) <= Fraction(9, eps) * 2
    drawn = choose(np.array([3, 1, 2]), eps=Fraction(eps), score_range=9, mechanism=mechanism)
    assert drawn == 1
