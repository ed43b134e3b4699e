from fractions import Fraction
from itertools import pairwise, product
from math import comb, exp, log, prod

import numpy as np
import pytest
from scipy.integrate import quad

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import MECHANISMS, choose, effective_t
from dpreg.selection import tuning
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.tuning import expected_useless_units, useless_term_penalty

ALPHAS = (Fraction(1, 10), Fraction(3, 10))


def scores_of(units, penalty):
    """Integer scores of all subsets, by size, and the sizes."""
    sizes = np.array([sum(model) for model in product((0, 1), repeat=units)])
    return penalty * sizes, sizes


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("units", [1, 2, 5, 9])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_expected_number_is_alpha_under_the_exact_law(mechanism, units, alpha):
    rate = Fraction(1, 10**6)
    penalty = useless_term_penalty(units, alpha, rate, mechanism)
    scores, sizes = scores_of(units, round(penalty))
    expected = float(sizes @ selection_probabilities(scores, rate, mechanism))
    assert expected <= float(alpha) * (1 + 1e-5)
    assert expected >= float(alpha) * (0.7 if mechanism == "exponential" else 1 - 1e-4)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_drawn_useless_units_number_alpha(mechanism, alpha):
    """Two thousand draws over six useless units: at most alpha plus three standard errors."""
    units, draws = 6, 2000
    rate = effective_t(Fraction(1), 10**6, mechanism)
    scores, sizes = scores_of(units, round(useless_term_penalty(units, alpha, rate, mechanism)))
    arguments = {"eps": Fraction(1), "score_range": 10**6, "mechanism": mechanism}
    rng = np.random.default_rng(3)
    drawn = np.array([sizes[choose(scores, **arguments, rng=rng)] for _ in range(draws)])
    error = drawn.std(ddof=1) / draws**0.5
    assert drawn.mean() <= float(alpha) + 3 * error
    assert drawn.mean() >= 0.7 * float(alpha) - 3 * error


@pytest.mark.parametrize("x", [0.05, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("units", [1, 3, 8])
def test_the_integral_against_plain_quadrature(x, units):
    def permute_and_flip(u):
        rest = prod((1 - u * exp(-s * x)) ** comb(units, s) for s in range(1, units + 1))
        sizes = range(1, units + 1)
        return (1 - u) * sum(
            s * comb(units, s) * exp(-s * x) * rest / (1 - u * exp(-s * x)) for s in sizes
        )

    plain = quad(permute_and_flip, 0, 1, limit=200)[0]
    assert expected_useless_units(x, units, "permute-and-flip") == pytest.approx(plain, rel=1e-7)

    def above(y):
        return exp(-y) / 2 if y > 0 else 1 - exp(y) / 2

    def laplace(v):
        all_above = prod(above(v - s * x) ** comb(units, s) for s in range(units + 1))
        return sum(
            s * comb(units, s) * exp(-abs(v - s * x)) / 2 * all_above / above(v - s * x)
            for s in range(1, units + 1)
        )

    kinks = [-60.0, -10.0, *(s * x for s in range(units + 1)), 20.0 + units * x]
    plain = sum(quad(laplace, a, b)[0] for a, b in pairwise(kinks))
    assert expected_useless_units(x, units, "laplace") == pytest.approx(plain, rel=1e-6)


def test_the_designs_formulas_are_the_first_approximations():
    # Few useless units let in: the exact equation approaches the sum over single units.
    q, alpha = 10, 1e-4
    charge = tuning._charge
    assert charge(q, alpha, "exponential") == log(q / alpha)
    assert charge(q, alpha, "permute-and-flip") == pytest.approx(log(q / (2 * alpha)), abs=1e-3)
    x = charge(q, alpha, "laplace")
    assert q * (2 + x) * exp(-x) / 4 == pytest.approx(alpha, rel=0.9)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_many_units_and_generous_alphas(mechanism):
    for units, alpha in ((300, Fraction(1, 10)), (300, Fraction(20)), (1000, Fraction(1))):
        x = float(useless_term_penalty(units, alpha, Fraction(1), mechanism))
        assert 0.9 * alpha < expected_useless_units(x, units, mechanism) <= alpha
    assert useless_term_penalty(4, Fraction(2), Fraction(1), mechanism) == 0
    assert useless_term_penalty(0, Fraction(1, 10), Fraction(1), mechanism) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_penalty_is_in_score_units(mechanism):
    one = useless_term_penalty(5, Fraction(1, 10), Fraction(1), mechanism)
    assert useless_term_penalty(5, Fraction(1, 10), Fraction(1, 100), mechanism) == 100 * one


@pytest.mark.parametrize(
    ("units", "alpha", "rate", "mechanism"),
    [(5, 0, 1, "laplace"), (5, 1, 0, "laplace"), (-1, 1, 1, "laplace"), (5, 1, 1, "gumbel")],
)
def test_bad_arguments_are_refused(units, alpha, rate, mechanism):
    with pytest.raises(ArgumentError):
        useless_term_penalty(units, Fraction(alpha), Fraction(rate), mechanism)


def test_mutant_first_approximation_for_permute_and_flip_is_caught():
    # What single units alone suggest lets in a third too many at alpha = 0.3.
    x = log(10 / 0.6)
    assert expected_useless_units(x, 10, "permute-and-flip") > 1.3 * 0.3
