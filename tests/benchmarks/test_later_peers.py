"""Peers of `benchmarks.beside`: with eps without bound each is least squares, or nearly."""

import math

import numpy as np
import pytest

from benchmarks.peers import BESIDE, binagg, blocks, cells, dprivstats, issp, kendall, newton, tukey
from benchmarks.peers._rows import Rows, gdp

HUGE, DELTA = 1e9, 1e-6


def drawn(n: int, spread: float = 0.1) -> Rows:
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 3))])
    return Rows(x, x @ [0.1, 0.2, -0.1, 0.05] + rng.uniform(-spread, spread, n))


@pytest.fixture(scope="module")
def rows() -> Rows:
    return drawn(4000)


@pytest.fixture(scope="module")
def exact(rows):
    return np.linalg.lstsq(rows.x, rows.y, rcond=None)[0]


@pytest.mark.parametrize(
    ("peer", "setting", "near"),
    [
        # The middle of many fits, and the fit of many bins, lose some of what the rows tell.
        (tukey, 200, 0.01),
        (kendall, (3, 0.5, 200), 0.01),
        (binagg.PUBLISHED, (20.0, (1, 3, 3, 3)), 0.01),
        (binagg.EXACT, (20.0, (1, 3, 3, 3)), 0.01),
        (newton, (1.0, 9.0, 4), 1e-4),
        (issp, 1.0, 1e-4),
        (cells, None, 1e-3),
        (blocks, (20, 3.0), 2e-3),
        (dprivstats, None, 1e-4),
    ],
)
def test_without_privacy_every_peer_is_near_ols(rows, exact, peer, setting, near):
    found = peer.fit(rows, setting, HUGE, DELTA, 2, np.random.default_rng(2))
    np.testing.assert_allclose(found, np.tile(exact, (2, 1)), atol=near)


@pytest.mark.parametrize(
    ("peer", "setting", "near"),
    [
        (newton, (1.0, 9.0, 4), 0.01),
        (cells, None, 0.02),
        (blocks, (20, 3.0), 0.05),
        (dprivstats, None, 0.05),
        (binagg.EXACT, (20.0, (1, 3, 3, 3)), 0.25),
    ],
)
def test_without_privacy_errors_are_those_of_least_squares(rows, exact, peer, setting, near):
    errors = peer.released(rows, setting, HUGE, DELTA, 1, np.random.default_rng(3))[1][0]
    inverse = np.linalg.inv(rows.x.T @ rows.x)
    scores = rows.x * (rows.y - rows.x @ exact)[:, None]
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    np.testing.assert_allclose(errors, robust, rtol=near)


@pytest.mark.parametrize("name", ["newton", "binagg", "privacyunbiased", "udp", "dprivstats"])
def test_errors_are_as_large_as_the_coefficients_scatter(name):
    """Noise far above sampling: at eps 2 on 4,000 rows nearly without residuals."""
    eps = 30.0 if name == "privacyunbiased" else 2.0
    setting = {
        "newton": (1.0, 0.5, 4), "binagg": (0.0, (1, 3, 3, 3)), "udp": (50, 3.0),
    }.get(name)  # fmt: skip
    found, errors = BESIDE[name].released(
        drawn(4000, 1e-6), setting, eps, DELTA, 60, np.random.default_rng(4)
    )
    scatter = found[:, 1:].std(axis=0)
    assert np.median(errors[:, 1:] / scatter) == pytest.approx(1, abs=0.25)


def test_tukey_gives_no_answer_where_its_test_fails(rows):
    assert np.isnan(tukey.fit(rows, 100, 0.1, DELTA, 1, np.random.default_rng(5))).all()
    assert np.isnan(tukey.fit(rows, 1001, 1.0, DELTA, 1, np.random.default_rng(5))).all()


def test_tukey_counts_the_rows_to_an_unsafe_table():
    """Volumes that fall by e^s a depth: k is safe if (2 k + 3 + g) s <= g eps / 2 - threshold."""
    depths, t, eps, steep = 400, 200, 1.0, 0.2
    volumes = -steep * np.arange(depths)
    threshold = math.log(DELTA / 8) - eps
    most = depths - 1 - (t + 1)
    safe = [
        k
        for k in range(t - 1)
        if any(
            steep * (2 * k + 2 + g) - eps / 2 * g <= threshold + 1e-9
            for g in range(1, most - k + 1)
        )
    ]
    assert tukey.distance(volumes, eps, DELTA, t) == max(safe, default=0) > 0


def test_tukey_draws_from_the_shell_evenly():
    rng = np.random.default_rng(6)
    lower, upper = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[4.0, 3.0], [3.0, 2.0]])
    found = np.array([tukey.in_shell(lower, upper, rng) for _ in range(8000)])
    inside = ((found > lower[1]) & (found < upper[1])).all(axis=1)
    assert not inside.any()
    assert ((found >= lower[0]) & (found <= upper[0])).all()
    # Of the area 10, the strip left of 1 has 3, and the lower middle 2.
    assert (found[:, 0] < 1).mean() == pytest.approx(0.3, abs=0.02)
    middle = (found[:, 0] > 1) & (found[:, 0] < 3) & (found[:, 1] < 1)
    assert middle.mean() == pytest.approx(0.2, abs=0.02)


def test_kendall_takes_the_columns_of_the_largest_effects():
    rng = np.random.default_rng(7)
    x = np.column_stack([np.ones(3000), rng.uniform(-1, 1, (3000, 6))])
    rows = Rows(x, x @ [0, 0, 0.5, 0, 0, 0.4, 0] + rng.uniform(-0.1, 0.1, 3000))
    assert set(kendall.chosen(rows, 2, 50.0, rng, {})) == {2, 5}
    taken = {tuple(kendall.chosen(rows, 2, 1e-6, rng, {})) for _ in range(20)}
    assert len(taken) > 5


def test_bins_hold_all_rows_and_shrink_with_eps():
    x = drawn(2000).x[:, 1:]
    few, many = (binagg.leaves(x, eps, 0.0, np.random.default_rng(8)) for eps in (0.2, 5.0))
    assert len(few) < len(many)
    for bins in (few, many):
        assert sorted(np.concatenate([rows for rows, _ in bins])) == list(range(2000))
        assert all((np.abs(x[rows]) <= corner + 1e-12).all() for rows, corner in bins)


def test_the_exact_price_of_bins_is_that_of_all_columns_at_once():
    """With three columns the published noise is sqrt(3) too small."""
    found = [
        peer.released(drawn(4000, 1e-6), (20.0, (2, 3, 0.5, 3)), 4.0, DELTA, 40,
                      np.random.default_rng(9))[0][:, 1:].std(axis=0).mean()
        for peer in (binagg.PUBLISHED, binagg.EXACT)
    ]  # fmt: skip
    assert found[1] > 1.2 * found[0]


def test_the_floor_of_issp_is_the_largest_move_of_one_row(rows):
    found = issp.fit(rows, 1.0, 1.0, DELTA, 4000, np.random.default_rng(10))
    whitened = (found - found.mean(axis=0)) @ np.linalg.cholesky(rows.x.T @ rows.x)
    q = np.linalg.qr(rows.x)[0]
    residual = rows.y - q @ (q.T @ rows.y)
    largest = np.abs(residual).max() * np.linalg.norm(q, axis=1).max()
    assert whitened.std() == pytest.approx(largest / gdp(1.0, DELTA), rel=0.03)


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_they_all_need_delta(name):
    assert not BESIDE[name].settings(1.0, 0.0)
    assert BESIDE[name].settings(1.0, DELTA)


def test_the_centre_of_cut_fits_is_found_again():
    fits = np.random.default_rng(11).normal(3.0, 2.0, 400_000)
    bound = 3.5
    mean, share = np.minimum(fits, bound).mean(), (fits > bound).mean()
    centre, spread = blocks.corrected(np.array([mean]), np.array([share]), np.array([bound]))
    assert centre[0] == pytest.approx(3.0, abs=0.02)
    assert spread[0] == pytest.approx(2.0, abs=0.03)


def test_cut_fits_are_corrected_and_their_errors_hold(rows, exact):
    """Half a spread above the centre three in ten fits are cut."""
    found, errors = blocks.released(rows, (150, 0.5), HUGE, DELTA, 60, np.random.default_rng(12))
    assert np.abs(np.median(found, axis=0) - exact).max() < 1e-3
    held = np.abs(found - exact) < 1.96 * errors
    assert held.mean() > 0.8
