"""The joint release: what is drawn, with which noise, and that its stated noise is what it has."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import release_gram
from oracles.gram import released, rows
from scipy.stats import chi2

from dpreg.errors import ArgumentError
from dpreg.estimation import gram as gram_module
from dpreg.moments import accumulate
from dpreg.privacy.budget import Budget
from dpreg.privacy.gaussian import analytic_ratio
from dpreg.privacy.look_noise import box_response_weight
from dpreg.privacy.proofs import CELL_UNITS, layout, sensitivity_l1, sensitivity_l2_squared
from dpreg.privacy.protection import Protection

EPS, DELTA = Fraction(1), Fraction("1e-6")


def small_moments(rows=300, seed=0):
    """(1, x1, x2, a, b, y) with a, b two levels of one factor; some rows incomplete."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    level = rng.integers(0, 3, rows)
    dummies = (level[:, None] == [1, 2]).astype(float)
    y = np.clip(x @ [0.3, -0.2] + dummies @ [0.1, 0.2] + rng.normal(0, 0.1, rows), -1, 1)
    z = np.column_stack([np.ones(rows), x, dummies, y])
    z[::7] = 0.0
    return accumulate([z], 6)


@pytest.mark.parametrize("noise", ["gaussian", "matrix-laplace", "laplace"])
def test_cells_lie_where_they_belong(noise):
    """At a huge eps the release is the exact matrix, duplicates and structural zeros included."""
    moments = small_moments()
    noisy = release_gram(
        moments, (0, 1, 3, 4), exclusive=[(3, 4)], eps=Fraction(10**9), delta=DELTA, noise=noise
    )
    exact = moments.as_float()[np.ix_([0, 1, 3, 4, 5], [0, 1, 3, 4, 5])]
    np.testing.assert_allclose(noisy.cells, exact, atol=1e-2)
    assert noisy.cells[0, 2] == noisy.cells[2, 2]
    assert noisy.cells[2, 3] == 0.0 == noisy.noise_sd[2, 3]
    assert noisy.count == noisy.cells[0, 0]
    assert noisy.columns == (0, 1, 3, 4)
    assert (noisy.cells == noisy.cells.T).all()


def test_without_an_intercept_the_count_is_released_besides():
    moments = small_moments()
    noisy = release_gram(moments, (1, 2), eps=Fraction(10**9), delta=DELTA)
    assert noisy.count == pytest.approx(moments.cells[0][0] / CELL_UNITS, abs=1e-3)
    assert noisy.count_sd > 0
    assert noisy.cells.shape == (3, 3)


def test_an_empty_model_releases_count_and_total():
    noisy = release_gram(small_moments(), (), eps=EPS)
    assert noisy.cells.shape == (1, 1)


def test_gaussian_scales_satisfy_the_weighted_calibration():
    """sum (change_c / sd_c)^2 is at most the analytic ratio's square, by the public sensitivity."""
    triangle = layout(range(8))
    zero = accumulate([], 9)
    noisy = release_gram(zero, range(8), eps=EPS, delta=DELTA, noise="gaussian")
    g = box_response_weight(triangle)
    sigma = noisy.noise_sd[0, 0]
    np.testing.assert_allclose(noisy.noise_sd[:8, 8] * g**0.5, sigma, rtol=1e-12)
    assert noisy.noise_sd[8, 8] * g == pytest.approx(sigma, rel=1e-12)
    sensitivity = sensitivity_l2_squared(triangle, Protection("replace-one"), g) ** 0.5
    assert sensitivity / sigma == pytest.approx(analytic_ratio(EPS, DELTA), rel=1e-9)


def noise_statistic(noise, seed, rows=400, **changes):
    """Sum of squared standardised draws over all cells of `rows` releases of nothing."""
    zero, rng = accumulate([], 5), np.random.default_rng(seed)
    squares = 0.0
    for _ in range(rows):
        noisy = release_gram(zero, range(4), eps=EPS, delta=DELTA, noise=noise, rng=rng)
        cells = noisy.cells * changes.get("factor", 1.0)
        squares += float(((cells / noisy.noise_sd)[np.triu_indices(5)] ** 2).sum())
    return squares, rows * 15


def test_stated_noise_is_the_noise_and_half_of_it_is_caught():
    squares, number = noise_statistic("gaussian", 1)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], number)
    assert low < squares < high
    halved, _ = noise_statistic("gaussian", 1, factor=0.5)
    assert halved < low


@pytest.mark.parametrize("noise", ["matrix-laplace", "laplace"])
def test_stated_noise_of_pure_mechanisms(noise):
    squares, number = noise_statistic(noise, 2)
    assert squares / number == pytest.approx(1, abs=0.12)


def test_private_draws_have_the_stated_noise():
    """The same with OpenDP and the operating system's entropy instead of a seed."""
    for noise in ("gaussian", "matrix-laplace", "laplace"):
        zero = accumulate([], 5)
        squares = []
        for _ in range(40):
            noisy = release_gram(zero, range(4), eps=EPS, delta=DELTA, noise=noise)
            squares.append((noisy.cells / noisy.noise_sd)[np.triu_indices(5)] ** 2)
        assert 0.45 < np.mean(squares) < 2.2  # half and twice the noise are .25 and 4


def loss(noisy, change):
    """What a change of the released cells costs against the noise that the release states."""
    k = noisy.triangle
    sd = np.array([noisy.count_sd if c == (-1, -1) else noisy.noise_sd[c] for c in k.cells])
    if noisy.mechanism == "gaussian":
        return np.sqrt(((change / sd) ** 2).sum(axis=1)) / analytic_ratio(EPS, DELTA)
    return (np.abs(change) * np.sqrt(2) / sd).sum(axis=1) / float(EPS)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("columns", "exclusive"),
    [((0, 1, 2, 3), ()), ((0, 1, 2, 3), [(2, 3)]), ((1, 2, 3, 4), [(3, 4)])],
)
def test_no_neighbour_costs_more_than_eps_against_the_stated_noise(
    columns, exclusive, noise, neighbors
):
    """Searched neighbours against the noise of the release; with half the noise one is caught."""
    noisy = release_gram(
        accumulate([], 6), columns, exclusive=exclusive, eps=EPS, delta=DELTA, noise=noise,
        neighbors=neighbors,
    )  # fmt: skip
    rng = np.random.default_rng(8)
    old, new = (rows(noisy.triangle, rng, 20_000) for _ in range(2))
    if neighbors == "add-remove":
        new = (0 * new[0], new[1] & False)
    change = released(noisy.triangle, *old) - released(noisy.triangle, *new)
    worst = loss(noisy, change).max()
    assert worst <= 1 + 1e-6
    assert worst > 0.6


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("columns", "exclusive", "norm"),
    [((0, 1, 2, 3), (), 4), ((0, 1, 2, 3), [(2, 3)], 3), ((1, 2, 3, 4), [(3, 4)], 4)],
)
def test_the_largest_row_costs_eps_against_matrix_laplace_noise(
    columns, exclusive, norm, neighbors, k
):
    """t'C^-1 t of a row at the corner, C read off the stated noise: q eps/k, and no more.

    `norm` is the squared norm of such a row without the response: the constant, which is counted
    without an intercept too, the columns, and one for each factor.
    """
    noisy = release_gram(
        accumulate([], 6), columns, exclusive=exclusive, eps=EPS, noise="matrix-laplace",
        neighbors=neighbors, contributions=k,
    )  # fmt: skip
    nu = len(columns) + 2 + (0 not in columns)
    response = noisy.noise_sd[-1, -1] / np.sqrt(4 * nu)
    column = noisy.noise_sd[0, -1] ** 2 / (2 * nu * response)
    assert noisy.count_sd == pytest.approx(np.sqrt(4 * nu) * column)
    allowed = (1 if neighbors == "replace-one" else 2) * float(EPS) / k
    cost = norm / column + 1 / response
    assert cost == pytest.approx(allowed, rel=1e-6)
    assert cost <= allowed * (1 + 1e-9)
    assert (norm + 1) / column + 1 / response > 1.05 * allowed


def test_noise_is_chosen_by_a_public_rule_and_priced_accordingly():
    few = release_gram(accumulate([], 3), (0, 1), eps=EPS, delta=DELTA)
    assert few.mechanism in ("laplace", "matrix-laplace")
    many = release_gram(accumulate([], 17), range(16), eps=EPS, delta=DELTA)
    assert many.mechanism == "gaussian"
    pure = release_gram(accumulate([], 17), range(16), eps=EPS)
    assert pure.mechanism == "matrix-laplace"


def test_contributions_and_relations_scale_the_noise():
    zero = accumulate([], 5)
    one = release_gram(zero, range(4), eps=EPS, delta=DELTA, noise="gaussian")
    three = release_gram(zero, range(4), eps=EPS, delta=DELTA, noise="gaussian", contributions=3)
    np.testing.assert_allclose(three.noise_sd, 3 * one.noise_sd, rtol=1e-9)
    other = release_gram(
        zero, range(4), eps=EPS, delta=DELTA, noise="gaussian", neighbors="add-remove"
    )
    assert (other.noise_sd < one.noise_sd).all()


def test_a_factor_costs_as_one_column():
    wide = release_gram(
        accumulate([], 12), range(11), exclusive=[range(2, 11)], eps=EPS, noise="laplace",
        neighbors="add-remove",
    )  # fmt: skip
    assert len(wide.triangle.cells) > 30
    assert wide.triangle.dimension == 4
    gauss = release_gram(
        accumulate([], 12), range(11), exclusive=[range(2, 11)], eps=EPS, delta=DELTA,
        noise="gaussian",
    )  # fmt: skip
    ratio = analytic_ratio(EPS, DELTA)
    g = box_response_weight(gauss.triangle)
    assert gauss.noise_sd[0, 0] == pytest.approx((3 + g) / ratio, rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"neighbors": "swap"},
        {"contributions": 0},
    ],
)
def test_bad_arguments_are_refused(change):
    call = {"columns": (0, 1), "eps": EPS, "delta": DELTA, **change}
    with pytest.raises(ArgumentError):
        release_gram(accumulate([], 5), call.pop("columns"), **call)


def test_release_never_prints_an_exact_moment():
    noisy = release_gram(small_moments(), (0, 1), eps=EPS)
    assert str(small_moments().cells[0][1]) not in repr(noisy)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("columns", [(0, 1), (1, 2)])
def test_every_released_cell_has_noise_the_count_too(columns, noise):
    zero = accumulate([], 5)
    drawn = [release_gram(zero, columns, eps=EPS, delta=DELTA, noise=noise) for _ in range(6)]
    assert np.std([noisy.count for noisy in drawn]) > 0
    assert (np.std([noisy.cells for noisy in drawn], axis=0) > 0).all()


@pytest.mark.parametrize("weight", [2, 3, 7])
def test_weighted_scales_are_rounded_upwards(weight):
    for k in range(1, 200):
        sigma = 1 + k / 7
        assert Fraction(gram_module._divided(sigma, weight)) ** 2 * weight >= Fraction(sigma) ** 2


def test_laplace_scales_are_rounded_upwards(monkeypatch):
    seen = []
    monkeypatch.setattr(gram_module, "laplace_variance", lambda scale: seen.append(scale) or 1.0)
    triangle = layout((0, 1))
    moved = sensitivity_l1(triangle, Protection("replace-one")) * CELL_UNITS
    for k in range(1, 50):
        gram_module._laplace_plan(triangle, Budget(Fraction(k, 97)), Protection("replace-one"))
        assert Fraction(seen[-1]) >= moved / Fraction(k, 97)


def test_the_grid_is_paid_for_on_every_cell_of_every_row(monkeypatch):
    seen = []

    def sigma(squared, cells, *cost, **weights):
        seen.append(cells)
        return 1.0

    monkeypatch.setattr(gram_module, "discrete_sigma", sigma)
    for k in (1, 3):
        gram_module._gaussian_plan(layout((0, 1)), Budget(EPS, DELTA), Protection("replace-one", k))
    assert seen == [6, 18]
