"""Matrix-Laplace: its privacy loss along exact marginals, its scales, its law; mutants caught."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from oracles.look_laws import log_density, quadratic_survival, spread_p_value, trace_law
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, kurtosis

from dpreg.errors import ArgumentError
from dpreg.privacy.look_noise import _matrix_laplace, matrix_laplace_scales, response_share
from dpreg.privacy.mechanisms import wishart
from dpreg.privacy.mechanisms.wishart import degrees, wishart_noise
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import Protection

UNIT = 2**20
EPS = Fraction(3, 2)
RELATIONS = ("replace-one", "add-remove")


def size_of(row, scales):
    """t'C^-1 t, exactly."""
    return sum(Fraction(t * t, c) for t, c in zip(row, scales, strict=True))


def worst_loss(scales, neighbors, contributions):
    """The largest privacy loss that exact marginals of the noise show.

    Along u'Nu, u = C^-1 z, a row z added moves 2 V(nu/2) by q = z'C^-1 z. Along u'Nu - w'Nw, with v
    such that z'C^-1 v = 0, replacing v by z moves 2 V(nu) by the sum of both. k rows: k times that.
    """
    size, nu = len(scales), degrees(len(scales))
    z = [UNIT, *[0] * (size - 2), UNIT]
    q = float(size_of(z, scales))
    if neighbors == "add-remove":
        shift, shape = contributions * q / 2, nu / 2
    else:  # v is as long: its signs and its columns differ so that the product is 0
        share = UNIT**2 / scales[-1] / q
        assert 0 < share < 1
        first = share / (1 - share)  # v = (first, .., -1), its other columns up to the norm
        assert size > 2
        assert first <= 1
        assert abs(first * UNIT**2 / scales[0] - UNIT**2 / scales[-1]) < 1e-9 * q
        shift, shape = contributions * q, float(nu)
    x = np.concatenate([np.geomspace(1e-9, 1, 4000), np.linspace(1, 5000, 20_001)])
    x = np.concatenate([-x, x]) + shift
    x = x[np.abs(x) > 1e-12]
    return float(np.max(log_density(x - shift, shape) - log_density(x, shape)))


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("size", [3, 4])
def test_the_loss_along_exact_marginals_nears_eps_and_stays_below(size, contributions, neighbors):
    scales = matrix_laplace_scales(size, EPS, Fraction(3, 8), Protection(neighbors, contributions))
    loss = worst_loss(scales, neighbors, contributions)
    assert 0.99 * float(EPS) < loss <= float(EPS) * (1 + 1e-9)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_mutants_of_the_scales_are_caught(neighbors):
    share, most = Fraction(3, 8), 1.2 * float(EPS)
    scales = matrix_laplace_scales(4, EPS, share, Protection(neighbors, 2))
    assert worst_loss(tuple(c // 2 for c in scales), neighbors, 2) > most  # half the scale
    other = matrix_laplace_scales(4, EPS, share, Protection("add-remove", 2))
    assert worst_loss(other, "replace-one", 2) > most  # the wrong relation
    assert (
        worst_loss(matrix_laplace_scales(4, EPS, share, Protection(neighbors)), neighbors, 2) > most
    )
    bare = matrix_laplace_scales(4, EPS, Fraction(1, 2**30), Protection(neighbors, 2))[:-1]
    assert worst_loss((*bare, scales[-1]), neighbors, 2) > most  # no share for the response


def test_mutants_of_the_degrees_are_caught_where_the_density_is_known(monkeypatch):
    """With D degrees of freedom the density at D = 1 is K_0: unbounded, and so is the loss."""
    x = np.geomspace(1e-30, 10, 5000)
    honest = log_density(x, degrees(1) / 2)
    assert np.ptp(honest + x) < 1e-9  # Laplace
    monkeypatch.setattr(wishart, "degrees", lambda size: size)
    mutant = log_density(x, wishart.degrees(1) / 2)
    assert mutant.max() - log_density(1.0, 0.5) > math.exp(1)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("squared_norm", [1, 5])
def test_no_integer_row_exceeds_the_bound_and_some_attain_it(squared_norm, neighbors):
    generator = np.random.default_rng(2)
    scales = matrix_laplace_scales(
        6, EPS, Fraction(1, 3), Protection(neighbors, 3), squared_norm=squared_norm
    )
    per_row = EPS / 3 * (1 if neighbors == "replace-one" else 2)
    if squared_norm == 5:  # a box: every column reaches one
        rows = [[int(s) * UNIT for s in generator.choice([-1, 1], 6)] for _ in range(50)]
    else:  # a ball
        rows = [[UNIT, 0, 0, 0, 0, -UNIT]]
        for _ in range(50):
            d = generator.standard_normal(5)
            d = d / np.linalg.norm(d) * UNIT
            rows.append([*(int(x) for x in d), UNIT])
    sizes = [size_of(row, scales) for row in rows]
    assert max(sizes) <= per_row
    assert max(sizes) > per_row * (1 - Fraction(1, 10**9))


def test_scales_are_integers_rounded_upwards():
    scales = matrix_laplace_scales(3, Fraction(1, 3), Fraction(1, 7), Protection("add-remove", 2))
    assert scales == (math.ceil(Fraction(2 * 2**40 * 3 * 7, 2 * 6)),) * 2 + (2 * 2**40 * 21 // 2,)
    assert all(isinstance(c, int) for c in scales)
    assert matrix_laplace_scales(
        2, Fraction(10**30), Fraction(1, 2), Protection("replace-one")
    ) == (1, 1)
    assert matrix_laplace_scales(1, EPS, Fraction(1, 2), Protection("replace-one")) == (
        math.ceil(2**41 / EPS),
    )


@pytest.mark.parametrize("signal", [0.0, 0.3, 1.0, 40.0])
def test_the_responses_share_has_the_least_expected_error(signal):
    best = minimize_scalar(
        lambda a: 1 / (a * (1 - a)) + signal / (1 - a) ** 2, bounds=(1e-4, 0.9999), method="bounded"
    )
    assert float(response_share(signal)) == pytest.approx(best.x, abs=6e-4)


def test_shares_are_in_their_range_and_refusals():
    assert response_share(1e300) == Fraction(1, 2**10)
    fit, who = matrix_laplace_scales, Protection("replace-one")
    with pytest.raises(ArgumentError, match="eps is too small"):
        fit(3, Fraction(1, 2**170), Fraction(1, 2), who)


SCALES = (2**41, 2**41, 2**42, 2**40, 3 * 2**40)


@pytest.fixture(scope="module")
def drawn():
    """Exact draws at D = 5, of bits that are the same each time."""
    bits = random.Random(5).getrandbits
    return np.array([wishart_noise(SCALES, source=bits) for _ in range(6000)], dtype=float)


def moments_fit(drawn, scales):
    """Whether means, variances and covariances of the cells are those that are claimed."""
    variance = (_matrix_laplace(scales, EPS, Protection("replace-one")).sd * CELL_UNITS) ** 2
    upper = np.triu_indices(len(scales))
    values = drawn[:, upper[0], upper[1]] / np.sqrt(variance[upper])
    spread = math.sqrt(2.2 + 6 / degrees(len(scales)))  # of a squared, standardised cell
    covariance = values.T @ values / len(values) - np.eye(len(upper[0]))
    mean = np.abs(values.mean(0)).max() * math.sqrt(len(values))
    return mean < 5 and np.abs(covariance).max() * math.sqrt(len(values)) < 6 * spread


@pytest.fixture(scope="module")
def seeded():
    """More draws, seeded ones: always the same."""
    rng = np.random.default_rng(11)
    return np.array([wishart_noise(SCALES, rng=rng) for _ in range(40_000)], dtype=float)


def test_moments_at_five_places(drawn, seeded):
    assert moments_fit(drawn, SCALES)
    assert moments_fit(seeded, SCALES)
    nu, drawn = degrees(5), seeded
    flat = kurtosis(drawn.reshape(len(drawn), -1), axis=0).reshape(5, 5)
    diagonal = np.diag(flat)
    assert diagonal.mean() == pytest.approx(6 / nu, abs=0.15)
    assert flat[np.triu_indices(5, 1)].mean() == pytest.approx(3 / nu, abs=0.1)


def test_mutants_of_the_moments_are_caught(drawn):
    assert not moments_fit(drawn / 2, SCALES)
    assert not moments_fit(np.abs(drawn), SCALES)
    assert not moments_fit(drawn * math.sqrt(5 / 6), SCALES)  # D degrees of freedom, not D + 1
    assert not moments_fit(drawn * math.sqrt(1 / 2), SCALES)  # one Wishart, centred


def test_the_joint_law_by_its_characteristic_function(drawn):
    generator = np.random.default_rng(3)
    c, caught = np.array(SCALES, dtype=float), 0
    for _ in range(12):
        T = generator.standard_normal((5, 5))
        T = (T + T.T) / np.sqrt(np.outer(c, c)) / 25
        seen = np.cos(np.einsum("ij,kij->k", T, drawn))
        wanted = trace_law(T, c, degrees(5))
        assert 0.05 < wanted < 0.98
        assert abs(seen.mean() - wanted) < 5 * seen.std() / math.sqrt(len(seen))
        wrong = trace_law(T, c, 4)
        caught += abs(seen.mean() - wrong) > 5 * seen.std() / math.sqrt(len(seen))
    assert caught > 6  # four degrees of freedom would be seen


@pytest.mark.parametrize("df", [1, 3])
def test_the_quadratic_form_has_its_exact_law(seeded, df):
    c, nu = np.array(SCALES, dtype=float), degrees(5)
    theta = np.array([0.3, -1.0, 0.2, 0.5, -1.0])
    # Gram-Schmidt in the inner product v'Cv, after theta
    basis = [theta / math.sqrt(theta @ (c * theta))]
    for i in range(df):
        v = np.eye(5)[i]
        for b in basis:
            v = v - (v @ (c * b)) * b
        basis.append(v / math.sqrt(v @ (c * v)))
    V = np.array(basis[1:])
    form = ((seeded @ theta @ V.T) ** 2).sum(1) / (2 * nu * (theta @ (c * theta)))
    grid = np.geomspace(1e-12, 150, 3000)
    below = [1 - quadratic_survival(float(q), df, nu) for q in grid]
    assert spread_p_value(form, lambda q: np.interp(q, grid, below)) > 1e-6
    assert spread_p_value(form, lambda q: chi2.cdf(q, df)) < 1e-6  # a Gaussian's law is refused


@pytest.mark.parametrize(("df", "nu"), [(1, 2), (3, 11), (7, 32)])
def test_the_quadratic_law_by_quadrature(df, nu):
    for q in (0.1, float(df), 5.0 * df, 60.0):
        direct, _ = quad(
            lambda y: chi2.sf(2 * nu * q / y, df) * chi2.pdf(y, 2 * nu),  # noqa: B023
            0,
            20 * nu + 400,
            points=[nu, 2 * nu, 4 * nu],
            epsabs=0,
            epsrel=1e-10,
            limit=400,
        )
        assert quadratic_survival(q, df, nu) == pytest.approx(direct, rel=1e-8)


def test_sampler_and_calibration_share_the_degrees():
    assert wishart.degrees is degrees
    assert [degrees(size) for size in (1, 2, 5)] == [2, 3, 6]
