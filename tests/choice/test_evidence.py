"""Gains, p-values and errors against slow least squares, and against simulated looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.released_looks import look_of, slow_gain
from scipy.stats import chi2, f, kstest

from dpreg.choice.evidence import Evidence, Released, gain_tail, priors


def alike(size: int, r: float) -> np.ndarray:
    """Correlations r between all columns."""
    return np.full((size, size), r) + (1 - r) * np.eye(size)


def odd_look(seed: int) -> Released:
    """Nothing in it is simple: more equations than coefficients, and no diagonal matrix."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(9, 9))
    return Released(
        start=rng.normal(size=6),
        transform=rng.normal(size=(6, 6)),
        equations=rng.normal(size=(9, 6)),
        left=rng.normal(size=9),
        covariance=half @ half.T + 0.1 * np.eye(9),
        prior=0.3,
    )


@pytest.mark.parametrize("columns", [[1], [3], [2, 4], [1, 2, 5], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("seed", range(3))
def test_gains_are_those_of_slow_least_squares(columns, seed):
    for law in (odd_look(seed), look_of(alike(5, 0.7), np.arange(6) / 10, seed=seed)):
        slow, _, covariance = slow_gain(law, columns)
        fast = Evidence(law)
        assert fast.gain(columns) == pytest.approx(slow, rel=1e-8)
        assert fast.p(columns) == pytest.approx(chi2.sf(slow, len(columns)), rel=1e-7)
        if len(columns) == 1:
            assert fast.error(columns[0]) == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-8)


def test_a_column_that_follows_from_others_adds_no_gain():
    law = odd_look(0)
    twice = replace(
        law,
        transform=np.vstack([law.transform, law.transform[1]]),
        start=np.append(law.start, law.start[1]),
    )
    look = Evidence(twice)
    assert look.gain([1, 6]) == pytest.approx(look.gain([1]), rel=1e-8)
    assert look.p([1, 6]) > look.p([1])  # two degrees of freedom for the gain of one


def test_of_what_no_equation_speaks_nothing_is_learnt():
    law = look_of(np.eye(3), np.zeros(4))
    equations = law.equations.copy()
    equations[:, 2] = 0.0
    look = Evidence(replace(law, equations=equations))
    assert (look.gain([2]), look.p([2]), look.error(2)) == (0.0, 1.0, np.inf)
    still = replace(law, transform=law.transform * (np.arange(4) != 2)[:, None])
    assert Evidence(still).p([2]) == 1.0


@pytest.mark.parametrize("least", [0.0, -1.0, -50.0])
def test_noise_that_is_no_covariance_ends_in_numbers(least):
    """Whatever was released: an error here would come after the charge."""
    law = odd_look(2)
    values, vectors = np.linalg.eigh(law.covariance)
    values[:4] = least
    look = Evidence(replace(law, covariance=(vectors * values) @ vectors.T))
    for columns in ([1], [2, 4], [1, 2, 5]):
        assert np.isfinite(look.gain(columns))
        assert 0 <= look.p(columns) <= 1
    assert look.error(3) > 0
    assert np.isfinite(look.likeness([[1], [2, 4]])).all()


def test_the_order_and_units_of_columns_do_not_matter():
    law = odd_look(1)
    scale = np.array([1, 1e6, 1e-6, 3, 0.5, 2])
    other = replace(law, start=law.start * scale, transform=law.transform * scale[:, None])
    for columns in ([1], [1, 2], [5, 2, 1, 3]):
        assert Evidence(other).gain(columns) == pytest.approx(Evidence(law).gain(columns), rel=1e-6)
        assert Evidence(law).gain(columns[::-1]) == pytest.approx(Evidence(law).gain(columns))


@pytest.mark.parametrize("columns", [[2], [2, 3]])
@pytest.mark.parametrize("degrees", [None, 8])
def test_p_values_of_useless_terms_are_uniform_whatever_else_has_an_effect(columns, degrees):
    beta = np.array([0.3, 0.5, 0.0, 0.0, -2.0, 0.1])
    laws = (look_of(alike(5, 0.6), beta, seed=s, degrees=degrees) for s in range(1500))
    assert kstest([Evidence(law).p(columns) for law in laws], "uniform").pvalue > 1e-3


def test_a_singular_covariance_is_lived_with():
    law = odd_look(2)
    flat = replace(law, covariance=np.ones((9, 9)))
    assert np.isfinite(Evidence(flat).p([1, 2]))
    assert np.isfinite(Evidence(replace(law, covariance=np.zeros((9, 9)))).p([1, 2]))


def test_tails():
    rng = np.random.default_rng(1)
    assert gain_tail(7.0, 3, None, None) == pytest.approx(chi2.sf(7, 3))
    assert gain_tail(7.0, 3, None, 12.5) == pytest.approx(f.sf(7 / 3, 3, 12.5))
    mixed = rng.chisquare(3, 400_000) * rng.chisquare(12, 400_000) / 12
    assert gain_tail(7.0, 3, 6, None) == pytest.approx((mixed > 7).mean(), rel=0.02)
    over = mixed / (rng.chisquare(20, 400_000) / 20)
    assert gain_tail(7.0, 3, 6, 20) == pytest.approx((over > 7).mean(), rel=0.02)
    assert gain_tail(7.0, 3, 10**6, None) == pytest.approx(chi2.sf(7, 3), rel=1e-4)


def test_priors():
    assert priors(2) == (0.25, 1.0)
    assert priors(40) == (1 / 40, 1.0)


def test_likeness_is_the_largest_correlation_of_estimates():
    look = Evidence(look_of(alike(4, 0.8), np.zeros(5)))
    precision = np.eye(5)
    precision[1:, 1:] = alike(4, 0.8)
    covariance = np.linalg.inv(precision)
    sd = np.sqrt(np.diag(covariance))
    wanted = np.abs(covariance / np.outer(sd, sd))[1:, 1:]
    assert look.likeness([[1], [2], [3], [4]]) == pytest.approx(wanted)
    wide = look.likeness([[1, 2], [3], [4]])
    assert wide == pytest.approx(wide.T)
    assert np.diag(wide) == pytest.approx(1)
    assert wide[1, 2] == pytest.approx(wanted[2, 3])
    # The best combination of two estimates: a multiple correlation.
    own, cross = covariance[1:3, 1:3], covariance[1:3, 3]
    best = np.sqrt(cross @ np.linalg.solve(own, cross) / covariance[3, 3])
    assert wide[0, 1] == pytest.approx(best)
    assert wide[0, 1] > wanted[:2, 2].max()
