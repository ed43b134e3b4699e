from fractions import Fraction
from itertools import product
from math import exp, prod

import numpy as np
import opendp.prelude as dp
import pytest
from opendp.mod import GLOBAL_FEATURES
from oracles.concentrated import pure_to_rho, range_to_rho, rho_to_delta, rho_to_eps

from dpreg.errors import ArgumentError
from dpreg.privacy import composition
from dpreg.privacy.budget import Budget
from dpreg.privacy.composition import (
    DrawPlan,
    bounded_range_delta,
    bounded_range_share,
    plan_draws,
)
from dpreg.privacy.mechanisms.choice import noise_scale

MILLIONTH = Fraction(1, 10**6)


@pytest.fixture
def opendp():
    before = set(GLOBAL_FEATURES)
    dp.enable_features("contrib")
    yield dp
    GLOBAL_FEATURES.clear()
    GLOBAL_FEATURES.update(before)


def hockey_stick(first, second, eps):
    """The exact delta between two laws on a finite set."""
    return sum(max(p - exp(eps) * q, 0.0) for p, q in zip(first, second, strict=True))


def convolve(first, second, draws):
    """The laws of K independent draws, by listing every sequence."""
    return (
        [prod(sequence) for sequence in product(first, repeat=draws)],
        [prod(sequence) for sequence in product(second, repeat=draws)],
    )


def two_symbols(t, each):
    q = (1 - exp(t - each)) / (exp(t) - exp(t - each))
    return [exp(t) * q, exp(t - each) * (1 - q)], [q, 1 - q]


@pytest.mark.parametrize("draws", range(1, 9))
@pytest.mark.parametrize(("each", "eps"), [(0.3, 0.5), (0.3, 1.0), (1.0, 2.0), (0.05, 0.04)])
def test_delta_is_the_worst_of_all_two_symbol_pairs_by_brute_force(draws, each, eps):
    exact = float(bounded_range_delta(Fraction(str(each)), draws, Fraction(str(eps))))
    worst = 0.0
    for t in np.linspace(1e-9, each - 1e-9, 400):
        worst = max(worst, hockey_stick(*convolve(*two_symbols(t, each), draws), eps))
    assert worst <= exact * (1 + 1e-9) + 1e-15
    assert worst >= exact * 0.999 - 1e-15


@pytest.mark.parametrize("draws", [1, 2, 3, 4])
def test_exponential_mechanisms_never_exceed_the_claim(draws):
    rng = np.random.default_rng(draws)
    each, eps = 0.8, 1.0
    claim = float(bounded_range_delta(Fraction("0.8"), draws, Fraction(1)))
    worst = 0.0
    for _ in range(150):
        scores = rng.normal(size=4) * rng.choice([0.1, 1, 5])
        change = rng.choice([0, 1, rng.random()], size=4) * each
        first, second = np.exp(-scores), np.exp(-scores - change)
        laws = convolve(first / first.sum(), second / second.sum(), draws)
        worst = max(worst, hockey_stick(*laws, eps))
    assert worst <= claim + 1e-12
    if draws > 1:
        assert worst > 0


@pytest.mark.parametrize(("draws", "share"), [(5, 0.233), (50, 0.067)])
def test_the_designs_figures_for_exact_shares(draws, share):
    assert float(bounded_range_share(draws, Fraction(1), MILLIONTH, 1)) == pytest.approx(
        share, abs=5e-4
    )


@pytest.mark.parametrize(("draws", "share"), [(5, 0.167), (50, 0.053)])
def test_the_designs_figures_for_simple_zcdp(draws, share):
    # rho + 2 sqrt(rho ln(1 / delta)) = 1, rho = K e^2 / 8 (Bun and Steinke); ours is better.
    log = -np.log(1e-6)
    rho = (np.sqrt(log + 1) - np.sqrt(log)) ** 2
    assert np.sqrt(8 * rho / draws) == pytest.approx(share, abs=5e-4)
    ours = float(rho_to_eps(draws * range_to_rho(Fraction(str(share))), MILLIONTH))
    assert ours < 1


@pytest.mark.parametrize("draws", [2, 5, 50, 200])
@pytest.mark.parametrize(("eps", "delta"), [(Fraction(1), MILLIONTH), (Fraction(1, 5), MILLIONTH)])
def test_shares_are_proved_and_near_the_largest(draws, eps, delta):
    share = bounded_range_share(draws, eps, delta, contributions=1)
    assert bounded_range_delta(share, draws, eps) <= delta
    assert bounded_range_delta(share * Fraction(100001, 100000), draws, eps) > delta
    assert share >= eps / draws
    # Zero-concentrated composition, converted as well as it can be, buys less.
    assert rho_to_eps(draws * range_to_rho(share), delta) > eps * Fraction(99, 100)


def test_all_epsilon_needs_no_delta():
    assert bounded_range_delta(Fraction(1, 5), 5, Fraction(1)) == 0
    assert bounded_range_delta(Fraction(1, 5), 5, Fraction(99, 100)) > 0


@pytest.mark.parametrize("contributions", [2, 3])
def test_fewer_rows_of_a_person_cost_in_proportion(contributions):
    share = bounded_range_share(20, Fraction(1), MILLIONTH, contributions)
    for j in range(1, contributions + 1):
        part = Fraction(j, contributions)
        assert bounded_range_delta(share * part, 20, part) <= MILLIONTH
    assert share == bounded_range_share(
        20, Fraction(1), MILLIONTH, contributions=1
    )  # it costs nothing


def test_every_number_of_rows_is_looked_at(monkeypatch):
    """A delta that fewer rows would pass, made up since none has been found, lowers the share."""
    honest = composition.bounded_range_delta
    bare = bounded_range_share(20, Fraction(1), MILLIONTH, 1)

    def harsher(each, draws, eps):
        if eps == Fraction(2, 3) and each > bare * Fraction(2, 3) * Fraction(9, 10):
            return Fraction(1)
        return honest(each, draws, eps)

    monkeypatch.setattr(composition, "bounded_range_delta", harsher)
    share = bounded_range_share.__wrapped__  # what other tests asked for is remembered
    assert share(20, Fraction(1), MILLIONTH, 3) <= bare * Fraction(9, 10)
    assert share(20, Fraction(1), MILLIONTH, 2) == bare


def test_the_public_rule():
    five, fifty = (
        plan_draws(5, Budget(1, 1e-6), contributions=1),
        plan_draws(50, Budget(1, 1e-6), contributions=1),
    )
    assert five == DrawPlan(
        5, "permute-and-flip", Fraction(1, 5), Budget(1), "epsilons add"
    )  # .233 is less than 1.2 times .2: the delta is not spent
    assert fifty.mechanism == "exponential"
    assert fifty.cost == Budget(1, 1e-6)
    assert float(fifty.eps_each) == pytest.approx(0.0673, abs=1e-4)
    assert plan_draws(
        5, Budget(1, 1e-6), mechanism="exponential", contributions=1
    ).eps_each > Fraction(23, 100)
    assert plan_draws(50, Budget(1), contributions=1).eps_each == Fraction(1, 50)
    assert plan_draws(1, Budget(1, 1e-6), contributions=1).cost == Budget(1)
    laplace = plan_draws(50, Budget(1, 1e-6), mechanism="laplace", contributions=1)
    assert (laplace.eps_each, laplace.cost) == (Fraction(1, 50), Budget(1))


def test_mutant_pure_epsilon_forgotten_is_caught():
    # K draws at full eps, as a frequency table of repeated runs would have it.
    assert bounded_range_delta(Fraction(1), 5, Fraction(1)) > Fraction(1, 10)


def test_mutant_permute_and_flip_composed_as_bounded_range_is_caught():
    """Permute-and-flip has no bounded range: its exact delta at K = 2 exceeds the formula's."""
    each, eps, draws = 1.0, 1.2, 2
    # Two candidates, gap 0 against gap e: P = (1/2, 1/2), Q(1) = exp(-e) / 2.
    first, second = [0.5, 0.5], [1 - exp(-each) / 2, exp(-each) / 2]
    real = hockey_stick(*convolve(first, second, draws), eps)
    claim = float(bounded_range_delta(Fraction(1), draws, Fraction("1.2")))
    both = max(real, hockey_stick(*convolve(second, first, draws), eps))
    assert both > claim


def test_mutant_the_middle_t_alone_is_caught():
    # A formula that takes t = e / 2 for the worst case understates delta.
    each, draws, eps = 1.0, 3, 1.5
    honest = float(bounded_range_delta(Fraction(1), draws, Fraction("1.5")))
    middle = hockey_stick(*convolve(*two_symbols(each / 2, each), draws), eps)
    assert middle < 0.9 * honest


# zCDP


def test_rho_equals_opendps(opendp):
    space = opendp.vector_domain(opendp.atom_domain(T="i64"))
    metric = opendp.linf_distance(T="i64", monotonic=True)
    for eps in (Fraction(1, 10), Fraction(1), Fraction(3)):
        scale = noise_scale(eps, 2**25, "exponential")
        measure = opendp.zero_concentrated_divergence()
        built = opendp.m.make_noisy_max(space, metric, measure, scale=scale, negate=True)
        theirs = built.map(2**25)
        assert Fraction(theirs) <= range_to_rho(eps)
        assert theirs == pytest.approx(float(range_to_rho(eps)), rel=1e-12)


@pytest.mark.parametrize("rho", [Fraction(1, 200), Fraction(1, 8), Fraction(1, 2), Fraction(2)])
def test_the_conversion_equals_opendps(opendp, rho):
    scale = float(1 / (2 * rho)) ** 0.5
    noise = opendp.m.make_gaussian(
        opendp.atom_domain(T="i64"),
        opendp.absolute_distance(T="i64"),
        scale=scale,
        MO="ZeroConcentratedDivergence",
    )
    profile = opendp.c.make_zCDP_to_approxDP(noise).map(1)
    used = Fraction(noise.map(1))
    for delta in (1e-3, 1e-6, 1e-12):
        theirs = profile.epsilon(delta)
        ours = float(rho_to_eps(used, Fraction(str(delta))))
        assert ours == pytest.approx(theirs, rel=1e-6)
    for eps in (0.5, 2.0):
        assert float(rho_to_delta(used, Fraction(str(eps)))) == pytest.approx(
            profile.delta(eps), rel=1e-6
        )


def test_the_conversion_is_a_valid_bound_for_the_gaussian_mechanism():
    # rho-zCDP holds for D / sigma = sqrt(2 rho), whose exact delta is known (Balle and Wang).
    from scipy.stats import norm

    for rho, eps in product((0.01, 0.1, 1.0), (0.1, 0.5, 1.0, 3.0)):
        m = (2 * rho) ** 0.5
        exact = norm.cdf(-eps / m + m / 2) - exp(eps) * norm.cdf(-eps / m - m / 2)
        ours = rho_to_delta(Fraction(str(rho)), Fraction(str(eps)))
        assert exact <= float(ours) * (1 + 1e-9)
        assert float(ours) <= rho_simple(rho, eps)


def rho_simple(rho, eps):
    """Bun and Steinke's simple tail: exp(-(eps - rho)^2 / (4 rho)) where eps > rho, else 1."""
    return exp(-((eps - rho) ** 2) / (4 * rho)) if eps > rho else 1.0


def test_zero_rho_costs_nothing_and_bad_numbers_are_refused():
    assert rho_to_eps(Fraction(0), MILLIONTH) == rho_to_delta(Fraction(0), Fraction(1)) == 0
    assert pure_to_rho(Fraction(1)) == Fraction(1, 2)
    for rho, delta in ((Fraction(-1), MILLIONTH), (Fraction(1), Fraction(0))):
        with pytest.raises(ArgumentError):
            rho_to_eps(rho, delta)
    with pytest.raises(ArgumentError):
        rho_to_delta(Fraction(1), Fraction(-1))
