"""PCPL: the integers, the range they move in, and what catches a wrong range."""

import itertools
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from oracles.bounds import lower_bound_shift, profile_range, residual_sensitivity

from dpreg.moments import Moments, accumulate
from dpreg.privacy.protection import Protection
from dpreg.selection import contest as profile
from dpreg.selection.contest import profile_contest, profile_scores, residual_offset
from dpreg.selection.probabilities import log_probabilities, selection_probabilities
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space

RHO = Fraction(1)
MODELS = np.array(list(itertools.product([False, True], repeat=3)))


def _moments(rows: np.ndarray) -> Moments:
    return accumulate([np.column_stack([np.ones(len(rows)), rows])] if len(rows) else [], 5)


def _residuals(moments: Moments) -> np.ndarray:
    """Q_g over the eight models with the constant and any of three columns."""
    problem = Problem(moments, RHO)
    columns = np.column_stack([np.ones(len(MODELS), dtype=bool), MODELS])
    return problem.scores(columns) + residual_offset(moments, RHO)


def _random_pair(rng: np.random.Generator, relation: str, changed: int) -> list[Moments]:
    """Two random data sets that differ in `changed` rows at the corners."""
    n = int(rng.integers(20, 80))
    common = np.clip(rng.normal(size=(n, 4)) * rng.choice([0.1, 0.5, 2.0]), -1, 1)
    common[:, -1] = np.clip(common[:, :-1] @ rng.normal(size=3) / 2 + common[:, -1] / 3, -1, 1)
    corners = rng.choice([-1.0, 1.0], size=(2, changed, 4))
    other = common if relation == "add-remove" else np.vstack([common, corners[1]])
    return [_moments(np.vstack([common, corners[0]])), _moments(other)]


def _worst_pair(base: int, relation: str, changed: int) -> list[Moments]:
    """Two models that fit equally well change places by `changed` rows.

    Many rows hold both coefficients at 1; `base` rows that no column explains set Q; a changed row
    costs one model (1 + rho)^2 and the other nothing.
    """
    hold = np.tile([1.0, 1.0, 0.0, 1.0], (400 * changed, 1))
    unexplained = np.tile([0.0, 0.0, 0.0, 1.0], (base // 2, 1))
    common = np.vstack([hold, unexplained, -unexplained])
    against_first = np.tile([-1.0, 1.0, 0.0, 1.0], (changed, 1))
    against_second = np.tile([1.0, -1.0, 0.0, 1.0], (changed, 1))
    other = common if relation == "add-remove" else np.vstack([common, against_second])
    return [_moments(np.vstack([common, against_first])), _moments(other)]


@pytest.mark.parametrize("rows", [1, 7, 1000, 10**7])
def test_scores_are_the_exact_floor(rows: int) -> None:
    rng = np.random.default_rng(rows)
    values = np.concatenate([np.arange(-2, 40), rng.integers(1, 2**50, 500)])
    got = profile_scores(values, rows)
    flint.ctx.prec = 300
    try:
        for value, score in zip(values.tolist(), got.tolist(), strict=True):
            exact = flint.arb(max(value, 1)).log() * rows * 2**23
            assert flint.arb(score) <= exact
            assert exact < flint.arb(score + 1)
    finally:
        flint.ctx.prec = 53


def test_scores_do_not_fall_as_the_residuals_grow() -> None:
    values = np.sort(np.random.default_rng(0).integers(1, 2**40, 5000))
    assert (np.diff(profile_scores(values, 12345)) >= 0).all()


def _largest_share(relation: str, changed: int) -> float:
    """Return the largest observed range over the claimed one, at the best A the claim allows."""
    rng = np.random.default_rng([changed, relation == "add-remove"])
    pairs = [_random_pair(rng, relation, changed) for _ in range(40)]
    pairs += [_worst_pair(base * changed, relation, changed) for base in (10, 30, 100, 300)]
    d2 = residual_sensitivity(RHO, changed)
    shares = []
    for one, two in pairs + [pair[::-1] for pair in pairs]:
        first, second = _residuals(one), _residuals(two)
        lower_bound = int(first.min()) - d2
        if lower_bound <= 0:
            continue
        change = profile_scores(second, 50) - profile_scores(first, 50)
        claimed = profile_range(
            lower_bound, rho=RHO, rows=50, neighbors=relation, contributions=changed
        )
        shares.append((int(change.max()) - int(change.min())) / claimed)
    return max(shares)


@pytest.mark.parametrize("changed", [1, 3])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_changes_stay_in_the_claimed_range_and_nearly_fill_it(relation: str, changed: int) -> None:
    assert 0.97 <= _largest_share(relation, changed) <= 1


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_range_without_the_lower_bounds_margin_is_caught(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = profile.residual_change
    monkeypatch.setattr(
        profile,
        "residual_change",
        lambda rho, who: replace(real(rho, who), l1=real(rho, who).l1 // 2),
    )
    assert _largest_share(relation, 1) > 1


def test_swapped_relations_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Protection, "changes", property(lambda self: 1))
    assert _largest_share("replace-one", 1) > 1


def test_residual_sensitivity_bounds_every_change() -> None:
    for relation, changed in itertools.product(["replace-one", "add-remove"], [1, 3]):
        d2 = residual_sensitivity(RHO, changed)
        rng = np.random.default_rng(changed)
        pairs = [_random_pair(rng, relation, changed) for _ in range(40)]
        pairs += [_worst_pair(3000 * changed, relation, changed)]
        moved = [np.abs(_residuals(one) - _residuals(two)).max() for one, two in pairs]
        assert 0.99 * d2 <= max(moved) <= d2


@pytest.mark.parametrize("eps", ["0.1", "1"])
def test_given_the_bound_the_exact_law_keeps_eps(eps: str) -> None:
    """With A fixed, the worst log ratio of the exact probabilities stays at or under eps2."""
    eps2 = Fraction(eps)
    worst = 0.0
    for relation in ("replace-one", "add-remove"):
        for base in (20, 100):
            one, two = _worst_pair(base, relation, 1)
            first, second = _residuals(one), _residuals(two)
            bound = int(first.min()) - residual_sensitivity(RHO, 1)
            claimed = profile_range(bound, rho=RHO, rows=50, neighbors=relation, contributions=1)
            for mechanism in ("permute-and-flip", "exponential", "laplace"):
                laws = [
                    log_probabilities(profile_scores(q, 50), eps2 / claimed, mechanism)
                    for q in (first, second)
                ]
                ratio = float(np.abs(laws[0] - laws[1]).max())
                assert ratio <= float(eps2) * (1 + 1e-9)
                worst = max(worst, ratio)
    assert worst > 0.5 * float(eps2)


@pytest.mark.parametrize("bound", [0, -1, -(10**30)])
def test_without_a_positive_bound_the_draw_is_uniform_whatever_the_penalty(bound: int) -> None:
    contest = profile_contest(
        bound,
        offset=7,
        rows=3,
        rho=RHO,
        protection=Protection("replace-one"),
        eps=Fraction(1),
    ).priced(Fraction(5), Fraction(7), Space(("a",), ((1,),), (0,)))
    assert contest.transform is not None
    scores = contest.transform(np.arange(8, dtype=np.int64))
    np.testing.assert_allclose(
        selection_probabilities(scores, Fraction(1), "permute-and-flip"), 1 / 8, rtol=1e-12
    )
    assert (contest.phi, contest.psi) == (0, 0)


def test_the_shift_fails_with_probability_delta() -> None:
    eps1, delta = Fraction(1, 2), Fraction(1, 10**6)
    d2 = residual_sensitivity(RHO, 1)
    beyond = (lower_bound_shift(RHO, 1, eps1, delta) - d2) / float(d2 / eps1)
    assert 0.5 * np.exp(-beyond) == pytest.approx(float(delta), rel=1e-6)
    assert 0.5 * np.exp(-beyond) <= float(delta)


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_or_one_row_still_score(rows: int) -> None:
    residuals = _residuals(_moments(np.ones((rows, 4))))
    assert np.isfinite(profile_scores(residuals, rows)).all()
