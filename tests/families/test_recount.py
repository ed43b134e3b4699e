"""Counts told anew by the look that cut them: against sums over a law's chances, one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from families.test_counts import COUNTS, counted
from families.test_looks import DELTA, looked
from scipy.stats import nbinom, poisson

from dpreg.families.aim import aimed
from dpreg.families.estimate import estimate
from dpreg.families.family import Poisson
from dpreg.families.law import family_law
from dpreg.families.looks import FamilyLook
from dpreg.families.plan import plan_family
from dpreg.families.recount import moved_rows, recounted
from dpreg.families.weighted import weighted_rows
from dpreg.families.working import light_draws
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.staged.coefficients import coefficients

Y = np.arange(150.0)
MANY = Poisson(60.0)


def kept(look, working, phi, step=0.0, grows=0.5):
    """Return mean and variance of what counts with dispersion phi count as, and what caps take."""
    mean, cap = np.exp(working.eta + step)[:, None], working.caps[:, None]
    varied = 1 + (phi - 1) * (1 - grows + grows * mean / look.fit.mean)
    law = poisson(mean) if phi == 1 else nbinom(mean / (varied - 1), 1 / varied)
    chances, whole = law.pmf(Y), np.minimum(Y, MANY.cap)
    cut = np.minimum(whole, cap)
    first = (cut * chances).sum(axis=1)
    return first, (cut**2 * chances).sum(axis=1) - first**2, ((whole - cut) * chances).sum(axis=1)


@lru_cache
def planned(eps=1, rows=20_000, family=MANY):
    """Return a look at the counts of `counted`, caps for a dispersion of 1, with empty cells."""
    plan = plan_family(3, Budget(Fraction(eps), DELTA), Protection("replace-one", 1, None))
    seen, _ = looked(counted(rows)[0], 10**6, 1, family=COUNTS, response=(10.0, 10.0))
    fit = replace(seen.looks[-1].fit, family=family, dispersion=1.0, misfit=0.02, signal=0.02)
    at = aimed(plan, fit, Fraction(1, 2))
    sd = 1e-6 * at.noise.sd * at.units
    return FamilyLook(
        at.location, at.clips, np.zeros_like(sd), sd, Fraction(1, 2), fit, 0.0, at.law
    )


def filled(look, phi, grows=0.5):
    """Fill its cells with what rows of the working law with such counts would add up to."""
    rows = weighted_rows(look.fit, look.location, look.law, light_draws(3))
    mean, varied, taken = kept(look, rows, phi, grows=grows)
    before = kept(look, rows, 1.0)[2]
    wbar, n, x = look.location.mean_weight, look.fit.rows, rows.rows
    cells = look.cells.copy()
    cells[:4, :4] = n / wbar * (x.T * (rows.omega * np.exp(rows.eta))) @ x / len(x)
    off = mean - np.exp(rows.eta) + before  # their residuals, on average
    cells[:4, 4] = cells[4, :4] = n / np.sqrt(wbar) * (rows.omega * off) @ x / len(x)
    cells[4, 4] = n / wbar * (rows.omega**2 * varied * (x**2).sum(axis=1)).mean()
    return replace(look, cells=cells), rows, (mean, varied, taken, before)


@pytest.mark.parametrize("phi", [1.0, 2.0, 4.0])
def test_the_look_itself_tells_the_dispersion_and_what_its_caps_took(phi):
    look, rows, (_, varied, taken, before) = filled(planned(), phi)
    found = recounted(look)
    assert found.dispersion == pytest.approx(phi, rel=0.03)
    assert found.scale == pytest.approx(phi, rel=0.03)
    per_row = look.fit.rows / np.sqrt(look.location.mean_weight) / len(rows.rows)
    plain = kept(look, rows, 1.0)[2]
    gained = (rows.omega * (plain + 0.8 * (taken - plain) - before)) @ rows.rows * per_row
    np.testing.assert_allclose(found.scores, gained, atol=0.06 * np.abs(gained).max() + 2)
    assert (np.abs(found.scores[0]) > 100) == (phi > 1)  # a hundred standard errors of nothing
    up, down = (kept(look, rows, phi, step)[0] for step in (0.05, -0.05))
    weigh = rows.omega * (rows.rows**2).sum(axis=1)
    slope = (weigh * (up - down)).sum() / 0.1 / (weigh * np.exp(rows.eta)).sum()
    assert found.slope == pytest.approx(slope, rel=0.02)
    # The tables tell the mean from the public cap: few counts of such a law are beyond it.
    np.testing.assert_allclose(found.rows.variance * phi, varied, rtol=0.15)


def test_counts_that_vary_less_than_poissons_are_said_to():
    look, _, _ = filled(planned(), 1.0)
    less = look.cells.copy()
    less[4, 4] *= 0.8
    found = recounted(replace(look, cells=less))
    assert (found.dispersion, found.scale) == (1.0, pytest.approx(0.8, rel=0.03))


def test_how_far_the_fit_still_moves_is_no_dispersion():
    look, rows, (_, varied, *_) = filled(planned(), 2.0)
    up, down = (kept(look, rows, 2.0, step)[0] for step in (0.05, -0.05))
    beyond = 0.1 * ((up - down) / 0.1) ** 2
    weigh = rows.omega**2 * (rows.rows**2).sum(axis=1)
    cells = look.cells.copy()
    cells[4, 4] *= 1 + (weigh * beyond).sum() / (weigh * varied).sum()
    moving = replace(look, cells=cells, moved=0.1)
    assert recounted(moving).dispersion == pytest.approx(2.0, rel=0.03)
    assert recounted(replace(moving, moved=0.0)).dispersion > 2.1


def test_rows_are_moved_to_where_the_released_information_has_them():
    look, _, _ = filled(planned(), 1.0)
    told = weighted_rows(look.fit, look.location, look.law, light_draws(3))
    wrong = replace(
        look,
        fit=replace(look.fit, intercept=look.fit.intercept - 0.3, spread=0.8 * look.fit.spread),
    )
    found = moved_rows(wrong)
    start = weighted_rows(wrong.fit, look.location, look.law, light_draws(3))
    for rows, apart in ((found, (0.0, 0.03)), (start, (0.15, 0.5))):
        assert apart[0] <= abs(rows.eta.mean() - told.eta.mean()) < apart[1]
        assert apart[0] <= abs(rows.lengths.mean() / told.lengths.mean() - 1) < apart[1]
    np.testing.assert_array_equal(recounted(wrong).rows.eta, found.eta)
    loud = replace(wrong, noise_sd=1e6 * look.noise_sd * look.fit.rows)
    np.testing.assert_allclose(moved_rows(loud).eta, start.eta, atol=0.02)  # all noise: unmoved


def test_coefficients_are_mended_and_errors_allow_for_another_law():
    """Counts whose variance grows as the law's, with the mean, and with its square."""
    start = planned()
    truth = np.append(start.fit.intercept, start.fit.slopes)
    for grows in (0.5, 0.0, 1.0):
        look, rows, (_, _, taken, before) = filled(start, 2.0, grows)
        law = family_law(look)
        fit = coefficients(law)
        bent = (rows.omega * (taken - before)).mean() / (rows.omega * np.exp(rows.eta)).mean()
        assert bent > 0.02
        off = np.abs(fit.params - truth)
        assert (off < 1.5 * fit.errors).all()
        if grows == 0.5:
            assert off[0] < 0.3 * bent
        wrong = recounted(look).wrong
        least = np.linalg.eigvalsh(law.privacy - wrong @ wrong.T)
        assert least.min() > -1e-6 * np.trace(law.privacy)
        assert fit.errors[0] > 0.2 * bent


def test_doubts_are_of_the_dispersion_the_variance_and_the_law():
    look, rows, (_, _, taken, _) = filled(planned(), 2.0)
    per_row = look.fit.rows / np.sqrt(look.location.mean_weight) / len(rows.rows)

    def moved(other):
        return (rows.omega * other) @ rows.rows * per_row

    square, plain = (kept(look, rows, phi, grows=g)[2] for phi, g in ((2.0, 1.0), (1.0, 0.5)))
    doubts = recounted(look).wrong.T
    for found, wanted in zip(
        doubts[1:], (moved(square - taken), 0.05 * moved(taken), 0.35 * moved(taken - plain)),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found, wanted, atol=0.08 * np.abs(wanted).max())
    quasi = replace(look, fit=replace(look.fit, family=replace(MANY, quasi=True)))
    np.testing.assert_allclose(recounted(quasi).wrong[:, 2], 6 * doubts[2], rtol=1e-9)
    loud = look.noise_sd.copy()
    loud[4, 4] = 0.2 * look.cells[4, 4]
    louder = recounted(replace(look, noise_sd=loud)).wrong[:, 0]
    assert louder[0] == pytest.approx(np.hypot(0.2, 0.05) / 0.05 * doubts[0, 0], rel=0.02)
    step = (kept(look, rows, 2.2)[2] - taken) / 0.2
    size = look.middle * 0.05 / (doubts[0, 0] / moved(step)[0])
    assert 0.1 < size < 1.0  # by how much Q grows with phi


@pytest.mark.parametrize("size", [-1.0, 1e3])
@pytest.mark.parametrize("trace", [0.5, -5.0, 1e-200])
def test_behind_the_noise_the_dispersion_is_at_most_what_counts_can_have(trace, size):
    """A trace that noise took away once made phi, its error and then the law endless."""
    look, _, _ = filled(planned(), 2.0)
    hidden = look.cells.copy()
    hidden[:4, :4] *= trace / np.trace(hidden[:4, :4])
    hidden[4, 4] *= size
    found = recounted(replace(look, cells=hidden, noise_sd=np.ones((5, 5))))
    assert 1 <= found.dispersion <= look.fit.family.cap
    assert np.isfinite(found.wrong @ found.wrong.T).all()
    assert np.isfinite(found.scores).all()


def test_a_response_that_is_never_cut_is_not_told_anew():
    seen, _ = looked(counted()[0], 1, 0, family=Poisson(3.0), response=(1.5, 1.5))
    assert recounted(seen.looks[-1]) is None


def test_quasi_counts_report_the_dispersion_that_the_last_look_has():
    quasi = Poisson(20.0, quasi=True)
    seen, _ = looked(counted(scatter=0.5)[0], 1, 0, family=quasi, response=(10.0, 10.0))
    names = ["Intercept", "a", "b", "c"]
    assert estimate(seen, names).dispersion == recounted(seen.looks[-1]).scale
