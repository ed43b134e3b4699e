from fractions import Fraction
from itertools import pairwise, product
from math import comb, exp, log, prod

import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import quad

from dpreg.privacy.mechanisms.choice import choose, effective_t
from dpreg.privacy.protection import CHOICES
from dpreg.selection import probabilities as tuning
from dpreg.selection.probabilities import (
    expected_useless_units,
    selection_probabilities,
    useless_term_penalty,
)

ALPHAS = (Fraction(1, 10), Fraction(3, 10))


def scores_of(units, penalty):
    """Integer scores of all subsets, by size, and the sizes."""
    sizes = np.array([sum(model) for model in product((0, 1), repeat=units)])
    return penalty * sizes, sizes


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("units", [1, 2, 5, 9])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_expected_number_is_alpha_under_the_exact_law(mechanism, units, alpha):
    rate = Fraction(1, 10**6)
    penalty = useless_term_penalty(units, alpha, rate, mechanism)
    scores, sizes = scores_of(units, round(penalty))
    expected = float(sizes @ selection_probabilities(scores, rate, mechanism))
    assert expected <= float(alpha) * (1 + 1e-5)
    assert expected >= float(alpha) * (0.7 if mechanism == "exponential" else 1 - 1e-4)


@pytest.mark.parametrize("mechanism", CHOICES)
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


@pytest.mark.parametrize("mechanism", CHOICES)
def test_many_units_and_generous_alphas(mechanism):
    cases = [(300, 20), (1000, 1), (10_000, 1000), (10_000, 4900), (100_000, 1)]
    cases += [(units, Fraction(1, 10)) for units in (300, 2000, 10_000, 10**6)]
    for units, alpha in cases:
        alpha = Fraction(alpha)
        x = float(useless_term_penalty(units, alpha, Fraction(1), mechanism))
        least = alpha / (1 + alpha / units) if mechanism == "exponential" else alpha
        found = expected_useless_units(x, units, mechanism)
        assert 0.999 * float(least) < found <= alpha * (1 + 1e-12)
    assert useless_term_penalty(4, Fraction(2), Fraction(1), mechanism) == 0
    assert useless_term_penalty(0, Fraction(1, 10), Fraction(1), mechanism) == 0


@pytest.mark.parametrize("mechanism", CHOICES)
def test_the_penalty_is_in_score_units(mechanism):
    one = useless_term_penalty(5, Fraction(1, 10), Fraction(1), mechanism)
    assert useless_term_penalty(5, Fraction(1, 10), Fraction(1, 100), mechanism) == 100 * one


def test_mutant_first_approximation_for_permute_and_flip_is_caught():
    # What single units alone suggest lets in a third too many at alpha = 0.3.
    x = log(10 / 0.6)
    assert expected_useless_units(x, 10, "permute-and-flip") > 1.3 * 0.3


def _plain_integral(x, units, mechanism):
    """The module's U(x) in ball arithmetic, by panels of half a unit."""
    half = arb(1) / 2
    choices = [arb(comb(units, s)) for s in range(units + 1)]

    def law(y):
        """Density and chance above."""
        if mechanism == "permute-and-flip":
            return y.exp(), 1 - y.exp()
        tail = half * (-abs(y)).exp()
        return tail, tail if y > 0 else 1 - tail

    def integrand(v):
        laws = [law(v - s * arb(x)) for s in range(units + 1)]
        none = sum((c * h.log() for c, (_, h) in zip(choices, laws, strict=True)), arb(0))
        odds = (s * c * d / h for s, (c, (d, h)) in enumerate(zip(choices, laws, strict=True)))
        return sum(odds, arb(0)) * none.exp()

    middle = -units * log(1 + exp(-x))
    top = 0.0 if mechanism == "permute-and-flip" else 12.0 + x
    inner = [middle - 25 + j / 2 for j in range(int(2 * (top - middle + 25)) + 1)]
    kinks = [s * x for s in range(int(top / x) + 1)]
    edges = sorted({edge for edge in (*inner, *kinks, top) if edge <= top})
    nodes, weights = np.polynomial.legendre.leggauss(6)
    return sum(
        (
            arb((b - a) / 2 * w) * integrand(arb(a) + arb((b - a) * (1 + t) / 2))
            for a, b in pairwise(edges)
            for t, w in zip(nodes.tolist(), weights.tolist(), strict=True)
        ),
        arb(0),
    )


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "laplace"])
@pytest.mark.parametrize(("units", "x"), [(60, 0.5), (60, 2.0), (150, 1.0), (40, 12.0)])
def test_models_in_great_numbers_count_though_each_is_hopeless(mechanism, units, x):
    """C(q, s) of them have one in 1e100 each: against the integral in 300 digits."""
    with ctx.workdps(300):
        plain = float(_plain_integral(x, units, mechanism))
    assert expected_useless_units(x, units, mechanism) == pytest.approx(plain, rel=1e-7)


@pytest.mark.parametrize("mechanism", CHOICES)
@pytest.mark.parametrize("alpha", ["1e-30", "1e-200"])
def test_alphas_beyond_all_use(mechanism, alpha):
    alpha = Fraction(alpha)
    x = float(useless_term_penalty(3, alpha, Fraction(1), mechanism))
    single = {
        "exponential": exp(-x),
        "permute-and-flip": exp(-x) / 2,
        "laplace": (2 + x) * exp(-x) / 4,
    }[mechanism]
    assert 3 * single == pytest.approx(float(alpha), rel=1e-5)
    assert useless_term_penalty(3, 1 / alpha**2, Fraction(1), mechanism) == 0
