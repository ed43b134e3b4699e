"""Conditional intervals: the set is where the choice comes out the same, and coverage holds."""

from dataclasses import replace

import numpy as np
import pytest
from staged.choice.made_up import make_law, plain_space

from dpreg.staged.choice import conditional
from dpreg.staged.choice.choose import choose, conditional_laws
from dpreg.staged.choice.coefficients import fit_model
from dpreg.staged.choice.guard import guard_margin, judge
from dpreg.staged.choice.problem import build_problem

TRUTH = np.array([0.2, 0.3, 0.1, 0.07, 0, 0])
MARGIN = guard_margin(0.1)


def fixed_law(rng, correlation=0.5, noise=30.0):
    return make_law(rng, TRUTH, correlation=correlation, noise=noise)


def redrawn(law, rng):
    """A law whose g is exactly normal about K beta."""
    lower = np.linalg.cholesky(law.covariance)
    return replace(law, g=law.k @ TRUTH + lower @ rng.standard_normal(len(law.g)))


def verdict_at(law, fit, place, t):
    """Choose afresh from the law with one coefficient moved to t."""
    g = law.g + fit.lines[:, place] * (t - fit.estimates[place])
    return judge(build_problem(replace(law, g=g), plain_space(5), 0.1), MARGIN)


@pytest.mark.parametrize("whole", [True, False])
def test_the_set_is_where_a_fresh_choice_agrees(rng, monkeypatch, whole):
    if not whole:
        monkeypatch.setattr(conditional, "EVERY_MODEL", 1)
    asked = wrong = 0
    for _ in range(6):
        law = redrawn(fixed_law(rng), rng)
        problem = build_problem(law, plain_space(5), 0.1)
        verdict = judge(problem, MARGIN)
        fit = fit_model(law, problem, verdict.model)
        laws = conditional.condition(problem, verdict, fit, MARGIN)
        for place, (column, cut) in enumerate(zip(fit.columns, laws, strict=True)):
            for t in cut.estimate + cut.se * rng.uniform(-9, 9, 6):
                fresh = verdict_at(law, fit, place, t)
                same = fresh.model == verdict.model
                if column:
                    unit = column - 1
                    same &= (unit in fresh.reported) == (unit in verdict.reported)
                inside = bool(((cut.intervals[:, 0] <= t) & (t <= cut.intervals[:, 1])).any())
                asked, wrong = asked + 1, wrong + (inside != same)
    assert asked > 60
    assert wrong == 0


def test_coefficients_are_generalised_least_squares(rng):
    law = fixed_law(rng)
    problem = build_problem(law, plain_space(5), 0.1)
    fit = fit_model(law, problem, frozenset({0, 2}))
    k = law.k[:, [0, 1, 3]]
    weighted = np.linalg.solve(law.covariance, np.column_stack([k, law.g]))
    covariance = np.linalg.inv(k.T @ weighted[:, :3])
    assert fit.columns == (0, 1, 3)
    assert fit.estimates == pytest.approx(covariance @ k.T @ weighted[:, 3])
    assert fit.covariance == pytest.approx(covariance)
    # A step along a line moves its own coefficient alone where they are independent.
    step = covariance @ k.T @ np.linalg.solve(law.covariance, fit.lines)
    assert np.diag(step) == pytest.approx(np.ones(3))


def coverage(rng, runs):
    """Shares of reported terms whose interval covers: conditional, and as if given beforehand."""
    base = fixed_law(rng, correlation=0.5, noise=60.0)
    lower = np.linalg.cholesky(base.covariance)
    kept, plain = [], []
    for _ in range(runs):
        law = redrawn(base, rng)
        _, problem, verdict = choose(law, plain_space(5), again=False)
        if not verdict.reported:
            continue
        fit, given = fit_model(law, problem, verdict.model), conditional_laws(law, problem, verdict)
        columns = list(fit.columns)
        whitened = np.linalg.solve(lower, base.k)
        target = np.linalg.lstsq(whitened[:, columns], whitened @ TRUTH, rcond=None)[0]
        for place, column in enumerate(columns):
            low, high = given[place].interval(0.05)
            assert low <= given[place].center() <= high
            if column - 1 in verdict.reported and abs(TRUTH[column]) < 0.2:
                kept.append(low <= target[place] <= high)
                gap = abs(fit.estimates[place] - target[place])
                plain.append(gap <= 1.96 * fit.se[place])
    return np.array(kept), np.array(plain)


def test_intervals_of_weak_terms_cover_after_the_choice(rng):
    kept, plain = coverage(rng, 150)
    assert len(kept) > 30
    assert kept.mean() >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(kept))
    # The mutant, an interval that does not know of the choice, falls short on the same draws.
    assert plain.mean() < kept.mean()


def test_other_units_are_the_same_laws(rng):
    law = redrawn(fixed_law(rng), rng)
    _, problem, verdict = choose(law, plain_space(5))
    box = conditional_laws(law, problem, verdict)
    size = len(box)
    transform = np.diag(np.arange(1.0, size + 1))
    transform[0, 1:] = -0.3  # an intercept that takes up what the columns are shifted by
    shift = np.linspace(1, 2, size)
    other = conditional_laws(law, problem, verdict, units=(transform, shift))
    for j in range(1, size):
        want = box[j].intervals * (j + 1) + shift[j]
        np.testing.assert_allclose(other[j].intervals, want, rtol=1e-6)
    fitted = fit_model(law, problem, verdict.model)
    mapped = fitted.mapped(transform, shift)
    np.testing.assert_allclose(mapped.estimates, transform @ fitted.estimates + shift, rtol=1e-9)
    assert [one.estimate for one in other] == list(mapped.estimates)
    moved = replace(law, g=law.g + mapped.lines[:, 0])
    again = fit_model(moved, problem, verdict.model).mapped(transform, shift)
    assert again.estimates[0] - mapped.estimates[0] == pytest.approx(1, rel=1e-6)
