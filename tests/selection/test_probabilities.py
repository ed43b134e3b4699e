"""Exact selection probabilities against exact polynomials and certified integrals."""

from fractions import Fraction

import numpy as np
import pytest
from oracles import selection_integrals

from dpreg.selection import probabilities
from dpreg.selection.probabilities import log_probabilities, selection_probabilities

MECHANISMS = ("permute-and-flip", "exponential", "laplace")
T = Fraction(1, 1000)


def _spread_scores(rng: np.random.Generator, models: int, width: float) -> np.ndarray:
    return rng.integers(-500, -500 + int(1000 * width) + 1, models)


@pytest.mark.parametrize("width", [0, 1, 12, 60])
@pytest.mark.parametrize("models", [1, 2, 5, 9])
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "laplace"])
def test_integrals_match_the_exact_law(mechanism: str, models: int, width: int) -> None:
    rng = np.random.default_rng([models, width])
    scores = _spread_scores(rng, models, width)
    gaps = [float(g) / 1000 for g in scores - scores.min()]
    oracle = getattr(selection_integrals, mechanism.replace("-", "_"))(gaps)
    got = selection_probabilities(scores, T, mechanism)
    np.testing.assert_allclose(got, oracle, rtol=1e-10)


@pytest.mark.parametrize("width", [0, 0.5, 40, 3000])
@pytest.mark.parametrize("models", [64, 4096])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_probabilities_sum_to_one(mechanism: str, models: int, width: float) -> None:
    scores = _spread_scores(np.random.default_rng(models), models, width)
    total = selection_probabilities(scores, T, mechanism).sum()
    assert abs(total - 1) < 1e-11


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_common_shift_changes_nothing(mechanism: str) -> None:
    scores = _spread_scores(np.random.default_rng(1), 50, 20)
    before = log_probabilities(scores, T, mechanism)
    after = log_probabilities(scores + 2**52, T, mechanism)
    np.testing.assert_array_equal(before, after)


def test_exponential_is_the_softmax() -> None:
    scores = np.array([0, 1000, 3000])
    weights = np.exp([0.0, -1.0, -3.0])
    np.testing.assert_allclose(
        selection_probabilities(scores, T, "exponential"), weights / weights.sum(), rtol=1e-14
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_small_probabilities_keep_their_digits(mechanism: str) -> None:
    scores = np.array([0, 300_000])
    far = log_probabilities(scores, T, mechanism)[1]
    expected = {
        "exponential": -300.0,
        "permute-and-flip": -300.0 + np.log(0.5),
        "laplace": -300.0 + np.log(0.5 + 300.0 / 4),
    }[mechanism]
    assert far == pytest.approx(expected, rel=1e-11)


def test_a_model_out_of_reach_has_probability_zero_without_a_warning() -> None:
    got = selection_probabilities(np.array([0, 2**50]), T, "laplace")
    np.testing.assert_allclose(got, [1.0, 0.0], atol=1e-15)


@pytest.mark.parametrize("gap", [20, 36, 60])
def test_one_leading_model_leaves_no_sliver_of_the_integral(gap: int) -> None:
    """sum(p) just above 1 once made a panel so narrow that its nodes rounded to u = 1."""
    log_p = log_probabilities(np.array([0, 1000 * gap]), T, "permute-and-flip")
    assert log_p[1] == pytest.approx(-gap + np.log(0.5), rel=1e-12)


def test_permute_and_flip_is_never_worse_than_exponential() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        scores = _spread_scores(rng, 20, rng.uniform(0, 30))
        loss = [
            selection_probabilities(scores, T, m) @ (scores - scores.min())
            for m in ("permute-and-flip", "exponential")
        ]
        assert loss[0] <= loss[1] * (1 + 1e-12)


def test_a_wrong_integrand_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_itself(s: np.ndarray, copies: np.ndarray) -> np.ndarray:
        return probabilities._exponential(s, copies)

    monkeypatch.setitem(probabilities._LAWS, "permute-and-flip", forgets_itself)
    with pytest.raises(AssertionError):
        test_integrals_match_the_exact_law("permute-and-flip", 5, 1)
