"""The law of a last look: without noise and limits it is least squares and its robust errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from oracles.look_rows import KINDS

from dpreg.looks.coordinates import Point
from dpreg.looks.families import Binomial, Linear
from dpreg.looks.law import fit, law, residual_variance
from dpreg.looks.records import Described, Release
from dpreg.looks.tuning import TUNING

N, P = 5000, 3


def rows_of(name, seed=0):
    """Columns, responses, and predictors that are not quite right."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (N, P))
    eta = 0.2 + x @ [0.5, -0.4, 0.1]
    if name == "linear":
        return x, eta + rng.normal(size=N) * (0.05 + 0.3 * np.abs(x[:, 0]))
    if name == "logit":
        return x, rng.binomial(1, 1 / (1 + np.exp(-2 * eta))).astype(float)
    return x, rng.poisson(np.exp(1 + eta) * rng.gamma(2, 0.5, N)).astype(float)


THEIRS = {
    "linear": sm.families.Gaussian,
    "logit": sm.families.Binomial,
    "counts": sm.families.Poisson,
}


def exact(name, x, y):
    model = sm.GLM(y, sm.add_constant(x), family=THEIRS[name]())
    return model.fit(cov_type="HC0", tol=1e-12, maxiter=100)


def released(name, x, y, beta, *, sd=1e-9, limit=1e9, steps=1):
    """A fitting look at coefficients beta, without limits; its noise is said to be sd."""
    family = KINDS[name].family if name != "linear" else Linear()
    eta = beta[0] + x @ beta[1:]
    terms = family.terms(eta)
    weight = float(terms.weight.mean())
    m = (x * terms.weight[:, None]).sum(axis=0) / terms.weight.sum()
    S = ((x - m) * terms.weight[:, None]).T @ (x - m) / terms.weight.sum()
    L = np.linalg.inv(np.linalg.cholesky(S))
    v = np.column_stack([np.ones(N), (x - m) @ L.T])
    scores = v * ((y - terms.mean) / np.sqrt(weight))[:, None]
    trace = float((scores**2).sum())
    point = Point(
        m, L, np.asarray(beta[1:]), float(beta[0] + m @ beta[1:]), weight,
        trace / N / (P + 1), np.ones(P), np.zeros(P),
    )  # fmt: skip
    return family, Release(
        point, (v * (terms.weight / weight)[:, None]).T @ v, scores.sum(axis=0), sd, sd,
        scores.T @ scores, sd, trace, (limit, limit), 0.7,
    )  # fmt: skip


@pytest.mark.parametrize("name", THEIRS)
def test_without_noise_it_is_maximum_likelihood_and_its_robust_errors(name):
    x, y = rows_of(name)
    theirs = exact(name, x, y)
    family, release = released(name, x, y, theirs.params)
    found = fit(law(release, family, N))
    np.testing.assert_allclose(found.params, theirs.params, atol=0.005 * theirs.bse.min())
    errors = np.sqrt(np.diag(found.covariance))
    np.testing.assert_allclose(errors, theirs.bse, rtol=0.005)
    np.testing.assert_allclose(np.sqrt(np.diag(found.sampling)), theirs.bse, rtol=0.005)
    assert (found.hidden < 0.01).all()


def test_from_elsewhere_one_step_ends_at_least_squares():
    x, y = rows_of("linear")
    theirs = exact("linear", x, y)
    family, release = released("linear", x, y, theirs.params + 2 * theirs.bse)
    found = fit(law(release, family, N))
    np.testing.assert_allclose(found.params, theirs.params, atol=0.05 * theirs.bse.min())


def test_a_model_with_fewer_columns_is_its_least_squares():
    """Also where errors fan out, and columns that were left out would help to weigh the others."""
    x, y = rows_of("linear")
    y = y + 0.39 * x[:, 1]  # all but nothing of it is left
    keep = [0, 1, 3]
    theirs = sm.OLS(y, sm.add_constant(x)[:, keep]).fit(cov_type="HC0")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    found = fit(law(release, family, N), keep)
    np.testing.assert_allclose(found.params, theirs.params, atol=0.005 * theirs.bse.min())
    np.testing.assert_allclose(np.sqrt(np.diag(found.sampling)), theirs.bse, rtol=0.01)
    assert found.covariance.shape == (3, 3)
    assert len(found.hidden) == 3


def test_noise_widens_and_hides():
    x, y = rows_of("linear")
    params = exact("linear", x, y).params
    widths, hidden = [], []
    for sd in (1e-9, 5.0, 50.0, 5000.0, 1e7):
        family, release = released("linear", x, y, params, sd=sd)
        noisy = replace(release, score_sd=sd * 0.05, middle_sd=1e-9, information_sd=1e-9)
        found = fit(law(noisy, family, N))
        widths.append(float(np.sqrt(np.diag(found.covariance))[1]))
        hidden.append(float(found.hidden.max()))
        assert (np.diag(found.covariance) > 0).all()
    assert widths == sorted(widths)
    assert hidden == sorted(hidden)
    assert hidden[-1] > 0.9  # a variance that is the prior's: no interval


def test_each_source_is_added_not_subtracted():
    """Of limits, of noise in the information, and of noise in the score."""
    x, y = rows_of("linear")
    params = exact("linear", x, y).params
    family, release = released("linear", x, y, params)
    plain = np.diag(fit(law(release, family, N)).covariance)
    rest = np.full(4, 60.0)
    for change in ({"rest": rest}, {"score_sd": 20.0}):
        wider = np.diag(fit(law(replace(release, **change), family, N)).covariance)
        assert (wider > 1.01 * plain).all()
    away, far = released("linear", x, y, params + 0.3)
    wider = np.diag(fit(law(replace(far, information_sd=40.0), away, N)).covariance)
    assert (wider > 1.01 * np.diag(fit(law(far, away, N)).covariance)).all()


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("sd", [1.0, 60.0, 600.0])
def test_estimates_are_drawn_to_where_the_looks_had_come_and_their_variance_says_so(sd, carried):
    """Coordinate by coordinate, as H is N times the identity and its noise next to nothing."""
    x, y = rows_of("linear")
    off = np.array([0.3, 0.02, 0.0, 0.0])
    family, release = released("linear", x, y, exact("linear", x, y).params + off)
    noise = 1e-9 * np.eye(4) if carried else None
    noisy = replace(release, score_sd=sd, middle=None, information_sd=1e-9, carried=noise)
    one = law(noisy, family, N)
    found, phi = fit(one), one.dispersion
    to, shift = np.linalg.inv(release.point.transform), release.point.shift

    def posterior(noise, prior):
        known = N**2 / noise
        return known / (known + 1 / prior) * release.score / N, 1 / (known + 1 / prior)

    theta, _ = posterior(sd**2 + phi * N, phi)
    left = max(TUNING.prior * 4 * max(phi, sd**2 / N) / N, theta @ theta / 4)
    drawn, _ = posterior(sd**2, phi if carried else TUNING.doubt * left)
    _, variance = posterior(sd**2 + phi * N, TUNING.prior * phi)
    np.testing.assert_allclose(to @ (found.params - shift), drawn, atol=1e-4 * np.sqrt(variance))
    expected = variance * np.eye(4) + np.outer(theta - drawn, theta - drawn)
    np.testing.assert_allclose(to @ found.covariance @ to.T, expected, atol=1e-3 * variance)


def test_limits_that_cut_nothing_add_nothing():
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    near = halved(release, np.full(4, 60.0), release.score_sd)
    plain = np.diag(fit(law(release, family, N)).covariance)
    whole = np.diag(fit(law(replace(near, cuts=False), family, N)).covariance)
    np.testing.assert_allclose(whole, plain, rtol=1e-6)
    assert (np.diag(fit(law(near, family, N)).covariance) > 1.01 * plain).all()


def halved(release, rest, score_sd):
    """The same release: of its score this vector is what lies beyond S/2."""
    return replace(release, rest=np.asarray(rest, dtype=float), score_sd=score_sd)


def test_what_lies_beyond_half_the_limit_is_the_allowance():
    """The score stays what it was where the rest is far above its noise, and may move as much."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    rest = np.array([30.0, -40.0, 0.0, 0.0])
    sure = law(halved(release, rest, 1e-3), family, N)
    np.testing.assert_allclose(sure.score, release.score, atol=1e-4)
    np.testing.assert_allclose(sure.fixed, np.outer(rest, rest), atol=1e-3)
    none = law(replace(halved(release, rest, 1e-3), cuts=False), family, N)
    np.testing.assert_allclose(none.fixed, 1e-6 * np.eye(4), atol=1e-12)


@pytest.mark.parametrize("times", [1, 2])
def test_the_allowance_is_less_where_more_lies_between(times):
    """And the parts' variances add up to that of the score, m^2 times as large outside."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    rest = np.array([30.0, -40.0, 0.0, 0.0])
    found = law(replace(halved(release, rest, 1e-3), times=times), family, N)
    np.testing.assert_allclose(found.fixed, np.outer(rest, rest) / times, atol=1e-3)
    near, far, _ = replace(release, rest=rest, score_sd=8.0, times=times).parts
    assert near + far == pytest.approx(64.0)
    assert far == pytest.approx(times**2 * near)


@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 1.5, 4.0])
def test_the_rest_is_drawn_towards_nothing_as_its_noise_tells(size):
    """Its mean and variance beside the posterior's, by quadrature along one direction."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    sd = 8.0
    rest = size * sd / math.sqrt(2) * np.array([1.0, -1.0, 1.0, 1.0])
    found = law(halved(release, rest, sd), family, N)
    noise, prior = sd**2 / 2, max(float(rest @ rest) / 4 - sd**2 / 2, 0.0)
    at = np.linspace(-300, 300, 60_001)
    log = -((rest[0] - at) ** 2) / (2 * noise) - at**2 / (2 * max(prior, 1e-9))
    weight = np.exp(log - log.max())
    mean = float((weight * at).sum() / weight.sum()) if prior else 0.0
    left = float((weight * (at - mean) ** 2).sum() / weight.sum()) if prior else 0.0
    inner = release.score - rest
    np.testing.assert_allclose((found.score - inner)[0], mean, atol=1e-6)
    along = np.array([1.0, -1.0, 1.0, 1.0])
    cut = np.outer(along, along) * mean**2 + left * np.eye(4)
    np.testing.assert_allclose(found.fixed, (noise + left) * np.eye(4) + cut, atol=1e-6)


def test_a_fit_is_that_of_the_score_as_it_is_used():
    """A rest below its noise is left out: of the fit too."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    rest = np.array([4.0, -4.0, 4.0, 4.0])
    found = fit(law(halved(release, rest, 8.0), family, N))
    inner = replace(release, score=release.score - rest, score_sd=8.0 / math.sqrt(2))
    np.testing.assert_allclose(found.params, fit(law(inner, family, N)).params, rtol=1e-4)
    assert np.abs(found.params - fit(law(release, family, N)).params).max() > 1e-4


def test_a_score_without_parts_is_taken_as_it_is():
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    plain = law(replace(release, score_sd=3.0), family, N)
    np.testing.assert_array_equal(plain.score, release.score)
    np.testing.assert_allclose(plain.fixed, 9.0 * np.eye(4))


def test_a_level_that_nobody_has_does_not_touch_the_others():
    """What it may explain is bounded by the response; what a number may explain is not."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    unseen, far = release.information.copy(), release.point.whitening.copy()
    unseen[3] = unseen[:, 3] = 0.0
    far[2] *= 500  # whitened again and again
    noisy = replace(
        release, point=replace(release.point, whitening=far), information=unseen,
        information_sd=0.02 * N, score_sd=0.5 * np.sqrt(N * release.point.dispersion),
    )  # fmt: skip
    columns = Described((1, 2, 3), levels=(3,))
    level, number = (
        fit(law(noisy, family, N, which)) for which in (columns, replace(columns, levels=()))
    )
    plain = fit(law(replace(noisy, information_sd=1e-9), family, N, columns))
    ratio = np.sqrt(np.diag(level.covariance) / np.diag(plain.covariance))[1:3]
    assert (ratio < 1.2).all()
    assert (np.diag(number.covariance)[1:3] > 4 * np.diag(level.covariance)[1:3]).all()
    assert level.hidden[3] > 0.9
    assert np.sqrt(level.covariance[3, 3]) <= 1.0


def test_a_column_that_was_shown_once_and_not_again_is_not_known():
    """An earlier look took its noise for a column: lifted by it, H says that nothing is there."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    lifted = replace(release, point=replace(release.point, sure=np.full(P, 0.8)))
    quiet = release.information.copy()
    quiet[3] = quiet[:, 3] = 0.0
    quiet[3, 3] = 0.01 * N
    found = fit(law(replace(lifted, information=quiet, information_sd=0.02 * N), family, N))
    assert found.hidden[3] == pytest.approx(1, abs=0.2)
    assert (found.hidden[1:3] < 0.5).all()
    borne_out = fit(law(replace(lifted, information=quiet, information_sd=1e-4 * N), family, N))
    assert borne_out.hidden[3] < 0.5
    assert fit(law(lifted, family, N)).hidden.max() < 0.5


def test_an_error_that_is_mostly_noise_of_the_information_is_a_guess():
    x, y = rows_of("linear")
    params = exact("linear", x, y).params
    family, far = released("linear", x, y, params + 0.3)
    assert (fit(law(far, family, N)).guessed < 0.1).all()
    assert (fit(law(replace(far, information_sd=0.2 * N), family, N)).guessed > 0.5).all()


def test_a_dispersion_below_its_noise_is_not_shown():
    x, y = rows_of("counts")
    family, release = released("counts", x, y, exact("counts", x, y).params)
    assert law(release, family, N).release.shown
    assert not law(replace(release, middle_sd=release.trace), family, N).release.shown


def test_the_variance_of_residuals_is_that_of_least_squares():
    """Where errors fan out phi is not, as rows far out count more in it."""
    x, y = rows_of("linear")
    theirs = sm.OLS(y, sm.add_constant(x)).fit()
    for off in (0.0, 5.0):  # from elsewhere the last step takes its part off
        release = released("linear", x, y, theirs.params + off * theirs.bse)[1]
        own = law(release, Linear(), N)
        np.testing.assert_allclose(
            residual_variance(release, own, fit(own)), theirs.scale, rtol=1e-3
        )
    assert own.dispersion > 1.05 * theirs.scale
    for other in (replace(release, middle=None), replace(release, middle_sd=release.trace)):
        own = law(other, Linear(), N)
        np.testing.assert_allclose(
            residual_variance(other, own, fit(own)), own.dispersion * N / (N - 4), rtol=1e-12
        )


def test_a_middle_that_noise_hides_gives_classical_errors():
    x, y = rows_of("linear")
    theirs = sm.OLS(y, sm.add_constant(x)).fit()
    family, release = released("linear", x, y, theirs.params)
    found = law(replace(release, middle_sd=1e5, trace=release.trace), family, N)
    assert found.trust <= 0.5
    none = law(replace(release, middle=None, middle_sd=1e-9), family, N)
    assert none.trust == 0.0
    errors = np.sqrt(np.diag(fit(none).covariance))
    np.testing.assert_allclose(errors[1:] / theirs.bse[1:], 1.0, atol=0.35)


def test_a_yes_or_no_response_has_no_dispersion_below_its_least():
    x, y = rows_of("logit")
    family, release = released("logit", x, y, exact("logit", x, y).params)
    assert isinstance(family, Binomial)
    tiny = law(replace(release, trace=1e-6, middle=release.middle * 1e-9), family, N)
    assert tiny.dispersion > 0.1
    assert tiny.curved
    assert not law(released("linear", *rows_of("linear"), np.zeros(4))[1], Linear(), N).curved


def test_the_variance_of_columns_lifts_information_that_was_limited_alone():
    """Not that of a locating look: its limits were the score's as well."""
    x, y = rows_of("linear")
    family, release = released("linear", x, y, exact("linear", x, y).params)
    back = np.linalg.inv(release.point.whitening)
    more = 4 * np.diag(back @ release.information[1:, 1:] @ back.T) / N
    far = replace(release, point=replace(release.point, least=more), information_sd=1e-6)
    assert np.trace(law(far, family, N).information) > 2 * np.trace(release.information)
    joint = law(replace(far, together=True), family, N).information
    np.testing.assert_array_equal(
        joint, law(replace(release, together=True), family, N).information
    )
