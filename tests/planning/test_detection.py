"""Predicted chances against the exact laws, and against data sets simulated through dpreg."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.bounds import score_range

from dpreg.moments import accumulate
from dpreg.planning import plan
from dpreg.planning.chances import Paper
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.selection.probabilities import (
    expected_useless_units,
    selection_probabilities,
    useless_term_penalty,
)
from dpreg.selection.scoring.problem import Problem

ROWS = 1e9  # so many that the columns' own dimensions do not count
MECHANISMS = ("permute-and-flip", "exponential", "laplace")


def _paper(strength, useless, sigma2, *, mechanism, psi, rows=ROWS, rate=1.0):
    """Return a selection among terms of one column each."""
    return Paper(
        strength=np.array(strength),
        columns=np.ones(len(strength), np.int64),
        useless=np.ones(useless, np.int64),
        sigma2=sigma2,
        rows=rows,
        eps=rate,
        rate=rate,
        charges=(0.0, psi),
        mechanism=mechanism,
    )


def _subsets(q):
    return (np.arange(2**q)[:, None] >> np.arange(q)) & 1 == 1


# ---- against the exact laws, sampling error left out --------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("useless", [0, 1, 6])
@pytest.mark.parametrize("gains", [(0.5,), (3.0, -1.0), (0.0, 2.0, 60.0), (-80.0, 1.0)])
def test_with_no_sampling_error_it_is_the_exact_law(mechanism, useless, gains):
    """Scores t S = -gain for effects, + charge for useless terms: independent, all listed here."""
    charge = 2.0
    strength = np.maximum(np.array(gains) + charge, 0.0) / ROWS
    paper = _paper(strength, useless, 1e-12, mechanism=mechanism, psi=charge)
    found = paper.detect()
    held = _subsets(len(gains) + useless)
    price = np.r_[charge - ROWS * strength, np.full(useless, charge)]
    scores = np.round((held @ price) * 2**40).astype(np.int64)
    law = selection_probabilities(scores, Fraction(1, 2**40), mechanism)
    m = len(gains)
    atol = 2e-3 if mechanism == "laplace" else 1e-5
    np.testing.assert_allclose(found.each, law @ held[:, :m], atol=atol)
    assert found.all == pytest.approx(law @ held[:, :m].all(axis=1), abs=atol)
    right = held[:, :m].all(axis=1) & ~held[:, m:].any(axis=1)
    assert found.right == pytest.approx(law @ right, abs=atol)
    assert found.useless == pytest.approx(law @ held[:, m:].sum(axis=1), abs=atol)


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "laplace"])
@pytest.mark.parametrize("q", [5, 40, 300])
def test_useless_terms_are_as_many_as_the_penalty_allows(mechanism, q):
    x = float(useless_term_penalty(q, Fraction(1, 5), Fraction(1), mechanism))
    found = _paper([1e4 / ROWS], q, 1e-12, mechanism=mechanism, psi=x).detect()
    assert found.useless == pytest.approx(expected_useless_units(x, q, mechanism), abs=2e-3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("q", [40, 300])
def test_useless_terms_that_cost_little_are_many(mechanism, q):
    found = _paper([1e4 / ROWS], q, 1e-12, mechanism=mechanism, psi=1.0).detect()
    assert found.useless == pytest.approx(expected_useless_units(1.0, q, mechanism), rel=2e-3)
    assert found.all == pytest.approx(1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_chances_grow_with_rows_and_with_eps(mechanism):
    paper = _paper([0.01, 0.02], 3, 0.04, mechanism=mechanism, psi=20.0, rate=0.1)
    sizes = (100, 1000, 3000, 10_000, 100_000)
    grown = [replace(paper, rows=n).detect().all for n in sizes]
    assert grown == sorted(grown)
    assert grown[-1] > 0.99


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_the_bound_holds(mechanism):
    """P(j out) <= exp(-t (D_j - c_j)), the sampling error left out."""
    for gain in (0.5, 1.0, 3.0, 6.0):
        found = _paper([gain + 2, 5.0], 4, 1e-12, mechanism=mechanism, psi=2.0).detect()
        assert 1 - found.each[0] <= np.exp(-gain) + 1e-9


# ---- against simulation -------------------------------------------------------------------------


def _settings():
    """Thirty settings within the assumptions: |beta|_1 within the radius, few responses clipped."""
    rng = np.random.default_rng(2026)
    combined = list(product(MECHANISMS, ("replace-one", "add-remove")))
    out = []
    while len(out) < 30:
        mechanism, neighbors = combined[len(out) % 6]
        facts = {
            "sigma": float(rng.choice([0.1, 0.2, 0.25])),
            "n": int(rng.choice([300, 1000, 5000])),
            "eps": float(rng.choice([0.5, 1.0, 3.0, 10.0])),
            "radius": float(rng.choice([1.0, 1.5])),
            "penalty": [("auto"), 2.0, 5.0][int(rng.integers(3))],
            "mechanism": mechanism,
            "neighbors": neighbors,
            "fit": None,
        }
        m, useless = int(rng.integers(1, 4)), int(rng.integers(0, 4))
        paper = plan([0.1], candidates=m + useless, **facts).paper
        phi, psi = paper.charges
        gains = rng.uniform(-1.5, 4.0, m) / paper.rate
        beta = np.sqrt(np.maximum(psi + phi + gains, 0.01) / (facts["n"] / 3))
        spread = np.sqrt((beta**2).sum() / 3 + facts["sigma"] ** 2)
        if beta.sum() <= 0.8 and spread < 0.4:
            out.append((beta, useless, facts))
    return out


SETTINGS = _settings()


def _measured(beta, useless, facts, datasets, rng):
    """Mean exact chance of each effect over simulated data sets, by dpreg's own scores and law."""
    m = len(beta)
    q, n = m + useless, facts["n"]
    held = _subsets(q)
    columns = np.c_[np.ones((len(held), 1), dtype=bool), held]
    rho = Fraction(str(facts["radius"]))
    moved = score_range(rho, facts["neighbors"], 1)
    rate = effective_t(Fraction(str(facts["eps"])), moved, facts["mechanism"])
    chances = []
    for _ in range(datasets):
        x = rng.uniform(-1, 1, (n, q))
        y = x[:, :m] @ beta + facts["sigma"] * rng.standard_normal(n)
        problem = Problem(accumulate([np.c_[np.ones(n), x, y]], q + 2), rho)
        if facts["penalty"] == "auto":
            price = round(useless_term_penalty(q, Fraction(1, 10), rate, facts["mechanism"]))
        else:
            price = round(Fraction(facts["penalty"]) / problem.grid)
        scores = problem.scores(columns) + price * held.sum(axis=1)
        law = selection_probabilities(scores, rate, facts["mechanism"])
        chances.append([*(law @ held[:, :m]), law @ held[:, :m].all(axis=1)])
    table = np.array(chances)
    return table.mean(axis=0), table.std(axis=0) / np.sqrt(datasets)


def _gap(number, datasets):
    beta, useless, facts = SETTINGS[number]
    predicted = plan(list(beta), candidates=len(beta) + useless, **facts)
    rng = np.random.default_rng([7, number])
    measured, error = _measured(beta, useless, facts, datasets, rng)
    return np.abs(np.r_[predicted.each, predicted.found] - measured), error


@pytest.mark.parametrize("number", range(0, 30, 5))
def test_predicted_detection_is_what_simulation_measures(number):
    gap, error = _gap(number, 60)
    assert (gap <= 0.05 + 3 * error).all()
    assert (gap <= 0.10).all()


@pytest.mark.audit
def test_over_thirty_settings_within_five_points():
    gaps = [_gap(number, 400)[0].max() for number in range(30)]
    print(f"largest gap {max(gaps):.3f}, mean {np.mean(gaps):.3f}")
    assert max(gaps) <= 0.05
