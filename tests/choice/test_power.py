"""Chances in closed form, against simulated looks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.released_looks import look_of
from scipy.stats import chi2, f, ncx2

from dpreg.choice.evidence import Evidence, chance, reach


def test_of_gaussian_noise_it_is_the_noncentral_tail():
    look = Evidence(look_of(np.eye(3), np.zeros(4)))
    assert reach(look, 2, 0.01) == pytest.approx(chi2.isf(0.01, 2))
    assert chance(look, 9.0, 2, 0.01) == pytest.approx(ncx2.sf(chi2.isf(0.01, 2), 2, 9.0))
    assert chance(look, 0.0, 2, 0.01) == pytest.approx(0.01)
    assert chance(look, 1e4, 2, 0.01) == 1.0
    assert reach(look, 2, 1.0) == 0.0


def test_of_noisy_errors_it_is_that_of_f():
    look = Evidence(replace(look_of(np.eye(3), np.zeros(4)), error_degrees=9.0))
    assert reach(look, 2, 0.01) == pytest.approx(2 * f.isf(0.01, 2, 9))
    assert chance(look, 0.0, 2, 0.01) == pytest.approx(0.01)


@pytest.mark.parametrize("degrees", [None, 6])
@pytest.mark.parametrize("columns", [[1], [1, 2]])
def test_simulated_looks_pass_as_often(degrees, columns):
    correlation = np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    beta = np.array([0.2, 0.12, 0.05, -0.5])
    expected = Evidence(look_of(correlation, beta, exact=True, degrees=degrees, prior=1.0))
    wanted = chance(expected, expected.gain(columns), len(columns), 0.05)
    runs = 3000
    looks = (look_of(correlation, beta, seed=s, degrees=degrees, prior=1.0) for s in range(runs))
    passed = np.mean([Evidence(look).p(columns) <= 0.05 for look in looks])
    assert 0.1 < wanted < 0.9
    assert passed == pytest.approx(wanted, abs=4 * np.sqrt(0.25 / runs))
