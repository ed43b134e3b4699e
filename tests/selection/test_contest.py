"""What a draw compares: totals as the formula says, on a grid where none leaves int64."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.bounds import of_scores, profile_range

from dpreg.privacy.proofs import score_grid, score_range
from dpreg.privacy.protection import Protection
from dpreg.selection.contest import (
    LARGEST_RANGE,
    LARGEST_SCORE,
    Contest,
    least_squares_contest,
    profile_contest,
    profile_grid,
)
from dpreg.selection.space import Space

ONE = Protection("replace-one")
SPACE = Space(("a", "g"), ((1,), (2, 3)), (0,))
MODELS = np.array([[False, False], [True, False], [False, True], [True, True]])


def test_totals_charge_columns_and_units_outside_keep():
    contest = Contest(of_scores(1), Fraction(1), phi=100, psi=7)
    q = np.array([-4, -5, -6, -7])
    assert contest.totals(q, MODELS, SPACE).tolist() == [-4, 102, 201, 307]


def test_totals_go_through_the_transform():
    contest = Contest(of_scores(1), Fraction(1), lambda q: 10 * q, phi=1)
    assert contest.totals(np.array([-4, -5, -6, -7]), MODELS, SPACE).tolist() == [
        -40,
        -49,
        -58,
        -67,
    ]


def test_penalties_are_rounded_to_whole_grid_units():
    contest = Contest(of_scores(1), Fraction(1, 8)).priced(Fraction(3, 10), Fraction(1, 3), SPACE)
    assert (contest.phi, contest.psi) == (2, 3)


def test_charges_of_the_largest_model_stay_within_int64():
    contest = Contest(of_scores(1), Fraction(1, 2**40)).priced(
        Fraction(2**60), Fraction(2**60), SPACE
    )
    worst = contest.totals(np.full(4, LARGEST_SCORE), MODELS, SPACE)
    assert worst.max() == LARGEST_SCORE + 3 * contest.phi + 2 * contest.psi
    assert LARGEST_SCORE // 2 < worst.max() - LARGEST_SCORE <= LARGEST_SCORE


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("contributions", [1, 3])
def test_least_squares_move_as_far_as_is_proved(neighbors, contributions):
    contest = least_squares_contest(Fraction(2), Protection(neighbors, contributions))
    assert contest.score_range == score_range(Fraction(2), Protection(neighbors, contributions))
    assert contest.grid == score_grid(Fraction(2))
    assert contest.transform is None


def profile(lower_bound, protection=ONE, eps=Fraction(1), rows=1000):
    return profile_contest(
        lower_bound, offset=10, rows=rows, rho=Fraction(1), protection=protection, eps=eps
    )


@pytest.mark.parametrize("lower_bound", [-5, 0])
def test_without_a_positive_bound_every_model_scores_zero(lower_bound):
    contest = profile(lower_bound).priced(Fraction(9), Fraction(9), SPACE)
    assert contest.uniform
    assert contest.totals(np.array([-4, -5, -6, -7]), MODELS, SPACE).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("contributions", [1, 3])
def test_profile_scores_move_as_far_as_is_proved(neighbors, contributions):
    bound = 2**34
    contest = profile(bound, Protection(neighbors, contributions))
    assert contest.score_range.width == profile_range(
        bound, rho=Fraction(1), rows=1000, neighbors=neighbors, contributions=contributions
    )
    assert contest.grid == profile_grid(1000)
    assert contest.transform(np.array([0])) == [
        np.floor(1000 * np.log(10) / float(profile_grid(1000)))
    ]


def test_a_range_too_wide_for_exact_noise_makes_the_draw_uniform():
    contest = profile(2**34)
    just = Fraction(contest.score_range.width, LARGEST_RANGE)
    assert not profile(2**34, eps=just).uniform
    assert profile(2**34, eps=just * Fraction(99, 100)).uniform
