"""From the look that terms are chosen from: its law, and where chosen columns are looked at."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpreg.choice import Evidence, priors
from dpreg.looks import loop
from dpreg.looks.expected import Expected, without_noise
from dpreg.looks.families import Binomial, Linear
from dpreg.looks.law import estimates
from dpreg.looks.locate import carried
from dpreg.looks.loop import laws_for_choice, look, look_at_chosen, point_of_chosen
from dpreg.looks.plan import fresh_share, plan_looks
from dpreg.looks.records import Described
from dpreg.looks.tuning import TUNING
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.selection.space import Space

BETA = np.array([0.1, 0.2, 0.0, -0.1, 0.0])
DESCRIBED = Described((1, 2, 3, 4))
SPACE = Space(tuple("abcd"), ((1,), (2,), (3,), (4,)), (0,))


def rows(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, 4)) @ (np.eye(4) + 0.4) * 0.2, -1, 1)
    y = np.clip(BETA[0] + x @ BETA[1:] + 0.1 * rng.normal(size=n), -1, 1)
    return np.column_stack([np.ones(n), x, y])


def chosen_from(eps, delta, *, later=Fraction(0), z=None, seed=0, family=None, who=None):
    z = rows() if z is None else z
    who = who or Protection("replace-one")
    plan = plan_looks(4, Budget(eps, delta), who, chooses=True, later=later, holds=family is None)
    described = DESCRIBED if family is None else replace(DESCRIBED, response=(0.5, 0.5))
    taken = Expected(plan, described, z, len(z), np.random.default_rng(seed))
    return taken, look(taken, family or Linear())


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("family", "looks"), [(None, 2), (Binomial(), 3)])
def test_all_looks_of_a_choice_are_locating_and_take_all_that_is_not_kept(family, looks, delta):
    later = Fraction(1, 5)
    taken, seen = chosen_from(1, delta, later=later, family=family)
    assert all(one.together for one in seen.releases)
    shares = [Fraction(one.share).limit_denominator(1000) for one in seen.releases]
    assert taken.plan.shares()[0] + sum(shares) == 1 - later
    whole = chosen_from(1, delta)[0].plan
    assert [taken.plan.shares()[0], *taken.plan.shares()[1:]] == [
        one * (1 - later) for one in (whole.shares()[0], *whole.shares()[1:])
    ]
    assert len(seen.releases) == looks  # a linear fit needs no more than two


def test_looks_at_persons_are_fitting_ones():
    plan = plan_looks(4, Budget(1, "1e-6"), Protection("replace-one", 1, "id"), chooses=True)
    assert not plan.locating
    fitting = plan_looks(4, Budget(1, "1e-6"), Protection("replace-one", 1, "id"))
    assert plan.shares() == fitting.shares()


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_useless_columns_have_uniform_p_values_and_others_small_ones(delta):
    own, other = [], []
    for seed in range(40):
        _, seen = chosen_from(1, delta, z=rows(6_000, seed), seed=seed)
        for law in laws_for_choice(seen):
            found = Evidence(law)
            own.append([found.p([2]), found.p([4])])
            other.append(found.p([1]))
    shares = np.mean(np.array(own) < 0.1, axis=0)
    assert (shares < 0.25).all()
    assert shares.mean() > 0.02
    assert np.median(other) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_around_a_fit_that_noise_has_thrown_off_useless_columns_are_not_found(seed):
    """Most residuals are cut there: the score is far from H theta."""
    taken, seen = chosen_from(1, "0", z=rows(5_000, seed), seed=seed)
    last = seen.releases[-1]
    point = replace(last.point, slopes=np.array([1.0, -1.0, 1.0, -1.0]))
    there = taken.locating(point, Linear(), last.limits, Fraction(last.share), 0.1)
    for law in laws_for_choice(replace(seen, releases=(there,))):
        assert min(Evidence(law).p([column]) for column in (2, 4)) > 1e-4


def test_rows_that_noise_drowns_tell_nothing():
    _, seen = chosen_from("0.01", "0", z=rows(40))
    assert seen.plan.rows_needed > 20_000
    few = replace(seen, rows=0.4 * seen.plan.rows_needed)
    for law in laws_for_choice(few):
        found = [Evidence(law).p([column]) for column in range(1, 5)]
        assert found == pytest.approx([1.0] * 4, abs=1e-12)
    _, many = chosen_from(1, "0")
    assert Evidence(laws_for_choice(many)[0]).p([1]) < 1e-6


def test_a_law_is_averaged_over_the_prior_that_it_names():
    _, seen = chosen_from(1, "1e-6", z=rows(300))
    laws = laws_for_choice(seen)
    assert [law.prior for law in laws] == list(priors(5))
    narrow, flat = (np.trace(law.covariance) for law in laws)
    assert flat > 1.05 * narrow
    assert np.array_equal(laws[0].left, laws[1].left)


@pytest.mark.parametrize("eps", [1, 1000])
def test_the_covariance_is_that_of_rows_and_noise(eps):
    """Over rows and noise the score that is left over varies as the law says."""
    gaps, told = [], []
    for seed in range(60):
        _, seen = chosen_from(eps, "1e-6", z=rows(3_000, seed), seed=seed)
        law = laws_for_choice(seen)[0]
        theta = np.linalg.solve(law.transform, BETA - law.start)
        gap = law.left - law.equations @ theta
        gaps.append(gap @ np.linalg.solve(law.covariance, gap) / 5)
        told.append(np.trace(law.covariance))
    assert 0.6 < np.mean(gaps) < 1.3


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_chosen_columns_are_looked_at_where_their_own_fit_is(delta):
    """Columns that were not chosen give what they explain to those that were."""
    z = rows()
    z[:, 2] /= 2  # else the columns are so alike that one does for another
    taken, seen = chosen_from(1000, delta, z=z, later=fresh_share(Fraction(delta)))
    at = [1, 3]
    point = point_of_chosen(seen, at)
    x = z[:, [0, *at]]
    theirs = np.linalg.lstsq(x, z[:, -1], rcond=None)[0]
    np.testing.assert_allclose(point.shift, theirs, atol=0.01)
    spread = point.whitening @ np.cov(x[:, 1:].T) @ point.whitening.T
    np.testing.assert_allclose(spread, np.eye(2), atol=0.2)
    np.testing.assert_allclose(point.centre, x[:, 1:].mean(axis=0), atol=0.02)
    assert (point.sure <= point.spread + 1e-9).all()
    own = replace(taken, described=Described(tuple(at)), plan=taken.plan.at_chosen(2))
    later = look_at_chosen(own, seen, point, [0, *at])
    kinds = [(one.together, one.minimum) for one in later.releases]
    assert kinds == ([(False, False)] * 2 if delta != "0" else [(False, True)])
    assert sum(one.share for one in later.releases) == pytest.approx(float(seen.plan.later))
    units = np.eye(3), np.zeros(3)
    found = estimates(later, [0, 1, 2], ["one", "a", "d"], units)
    errors = np.sqrt(np.diag(found.covariance))
    assert (np.abs(found.params - theirs) < 4 * errors).all()
    assert (errors < 0.02).all()
    exact = np.linalg.inv(x.T @ x) * np.var(z[:, -1] - x @ theirs)
    ratio = np.diag(found.sampling) / np.diag(exact)
    assert ((ratio > 0.6) & (ratio < 2)).all()
    assert not found.marks


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("family", [Linear(), Binomial()])
def test_information_is_the_choosing_look_s_but_where_weights_follow_the_fit(delta, family):
    z = rows()
    if family.blind:
        z[:, -1] = np.sign(z[:, -1])
    taken, seen = chosen_from(4, delta, z=z, later=Fraction(1, 5), family=family)
    at = [1, 3]
    own = replace(
        taken, described=replace(taken.described, columns=tuple(at)), plan=taken.plan.at_chosen(2)
    )
    told = look_at_chosen(own, seen, point_of_chosen(seen, at), [0, *at]).releases
    for one in told:
        carried_H, spread, _ = carried(seen.releases[-1], one.point, [0, *at])
        same = np.array_equal(one.information, carried_H) and np.array_equal(one.spread, spread)
        assert same == (delta == "0" or not family.blind)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_limits_of_looks_at_chosen_columns_follow_from_a_wide_constant(delta, monkeypatch):
    taken, seen = chosen_from(4, delta, z=rows(), later=Fraction(1, 5))
    own = replace(taken, described=Described((1, 3)), plan=taken.plan.at_chosen(2))
    honest, told = loop.fit_limits, []

    def noted(*args, **more):
        told.append(more)
        return honest(*args, **more)

    monkeypatch.setattr(loop, "fit_limits", noted)
    point = point_of_chosen(seen, [1, 3])
    look_at_chosen(own, seen, point, [0, 1, 3])
    assert len(told) >= 2  # a look at the point, and nearer
    squared = 1 + float(point.spread.sum()) if own.plan.holds else 3.0
    wide = {"limit": TUNING.limit_wide, "before": None, "squared": squared}
    assert told == [wide] * len(told)


def test_a_released_information_that_noise_drowns_gives_a_point_all_the_same():
    _, seen = chosen_from("0.01", "0", z=rows(40))
    point = point_of_chosen(seen, [1, 2, 3, 4])
    for part in (point.centre, point.whitening, point.slopes, point.spread, point.sure):
        assert np.isfinite(part).all()


def test_what_is_planned_has_no_noise_in_its_last_look():
    z = rows(4_000)
    taken, seen = chosen_from(1, "1e-6", z=z)
    quiet = without_noise(taken, seen, BETA).releases[-1]
    law = laws_for_choice(replace(seen, releases=(*seen.releases[:-1], quiet)))[0]
    theta = np.linalg.solve(law.transform, BETA - law.start)
    np.testing.assert_allclose(law.left, law.equations @ theta, rtol=1e-6, atol=1e-6)
    again = without_noise(taken, seen, BETA).releases[-1]
    assert (quiet.information == again.information).all()  # and no other draw of noise
    assert quiet.trace == again.trace
    noisy = seen.releases[-1]
    assert np.abs(noisy.information - quiet.information).max() > noisy.information_sd
    assert (quiet.information_sd, quiet.score_sd) == (noisy.information_sd, noisy.score_sd)


def test_coefficients_of_the_look_that_chose_are_marked_as_narrow():
    _, seen = chosen_from(10, "1e-6")
    units = np.eye(2), np.zeros(2)
    found = estimates(seen, [0, 1], ["one", "a"], units, among=range(5))
    assert {why.partition(":")[0] for why in found.marks.values()} == {"narrow"}
    whole = estimates(seen, range(5), list("oabcd"), (np.eye(5), np.zeros(5)))
    np.testing.assert_allclose(found.params, whole.params[:2])
    np.testing.assert_allclose(found.covariance, whole.covariance[:2, :2])


def test_a_yes_or_no_is_limited_by_how_far_it_may_lie_from_its_mean():
    rng, z = np.random.default_rng(3), rows()
    z[:, -1] = 2.0 * (rng.random(len(z)) < 0.05 + 0.05 * z[:, 1]) - 1
    _, seen = chosen_from(4, "1e-6", z=z, family=Binomial())
    even = z.copy()
    even[:, -1] = 2.0 * (rng.random(len(z)) < 0.5 + 0.2 * z[:, 1]) - 1
    _, same = chosen_from(4, "1e-6", z=even, family=Binomial())
    assert seen.releases[-1].limits[1] > 2 * same.releases[-1].limits[1]
    assert Evidence(laws_for_choice(same)[0]).p([1]) < 1e-6
