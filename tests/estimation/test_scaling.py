"""Rows end in the unit ball whatever they hold, and affine scalings are undone exactly."""

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.estimation.scaling import SCALINGS, row_scaling, shorten


def public(kind, d=3, **options):
    if kind == "box":
        return row_scaling(kind, bounds=[(-2.0, 4.0)] * d, **options)
    return row_scaling(kind, mean=np.ones(d), sd=np.full(d, 2.0), x_max=4.0, **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", SCALINGS)
def test_rows_lie_in_the_unit_ball(kind, intercept):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 50, (400, 3))
    x[5] = np.nan
    x[6, 0] = np.inf
    x[7] = 1e308
    x[8] = 1.0
    rows, y = public(kind, y_max=3.0, intercept=intercept).apply(x, rng.normal(0, 9, 400))
    assert rows.shape == (400, 3 + intercept)
    assert (np.linalg.norm(rows, axis=1) <= 1 + 1e-12).all()
    assert (np.abs(y) <= 1).all()
    assert (rows[[5, 6]] == 0).all()
    assert (y[[5, 6]] == 0).all()


def test_row_norm_is_the_published_preprocessing():
    rng = np.random.default_rng(1)
    x, y = rng.normal(2, 3, (200, 4)), rng.normal(size=200)
    mean, sd = x.mean(axis=0), x.std(axis=0, ddof=1)
    scores = (x - mean) / sd
    norms = np.linalg.norm(scores, axis=1)
    y_max = np.abs(y).max()
    rows, response = row_scaling("row-norm", mean=mean, sd=sd, y_max=y_max).apply(x, y)
    np.testing.assert_allclose(rows, scores / norms[:, None], rtol=1e-12)
    np.testing.assert_allclose(response, y / y_max, rtol=1e-12)
    both = row_scaling("row-norm-xy", mean=mean, sd=sd, y_max=np.abs(y / norms).max())
    np.testing.assert_allclose(both.apply(x, y)[1], y / norms / np.abs(y / norms).max())


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["box", "max-norm"])
def test_unstandardised_coefficients_predict_the_same(kind, intercept):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 3, (50, 3))
    y = rng.uniform(-1, 1, 50)
    scaling = public(kind, y_max=2.0, y_center=0.5, intercept=intercept)
    rows, _ = scaling.apply(x, y)
    theta = rng.normal(size=rows.shape[1])
    user = scaling.unstandardise(theta)
    np.testing.assert_allclose(user[0] + x @ user[1:], 0.5 + 2.0 * (rows @ theta), atol=1e-12)


def test_upper_clipping():
    scaling = row_scaling("max-norm", mean=[0.0], sd=[1.0], x_max=10.0, clip_sd=2.0)
    rows, _ = scaling.apply([[-7.0], [1.5], [9.0]], [0, 0, 0])
    np.testing.assert_allclose(rows[:, 0], [-0.7, 0.15, 0.2])


def test_shorten_leaves_short_rows_alone():
    rows = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]])
    short, y = shorten(rows, np.array([2.0, -3.0, np.nan]))
    np.testing.assert_allclose(short, [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]], rtol=1e-15)
    np.testing.assert_array_equal(y, [1.0, -1.0, 0.0])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ball", {}),
        ("box", {}),
        ("row-norm", {"mean": [0.0]}),
        ("max-norm", {"mean": [0.0], "sd": [1.0]}),
        ("box", {"bounds": [(1.0, 1.0)]}),
        ("box", {"bounds": [(0.0, 1.0)], "y_max": 0.0}),
        ("box", {"bounds": [(0.0, 1.0)], "clip_sd": 2.0}),
    ],
)
def test_missing_public_numbers_are_named(kind, options):
    with pytest.raises(ArgumentError):
        row_scaling(kind, **options)


def test_row_norms_have_no_raw_coefficients():
    with pytest.raises(ArgumentError, match="max-norm"):
        public("row-norm").unstandardise(np.ones(3))


PAIRS = [(-1.0, 1.0), (0.0, 2.0)]


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("box", {"bounds": (0.0, 1.0)}, "bounds"),
        ("box", {"bounds": "ab"}, "bounds"),
        ("box", {"bounds": [(0, 1, 2)]}, "bounds"),
        ("box", {"bounds": [(0, 1), (1,)]}, "bounds"),
        ("box", {"bounds": [(-1.7e308, 1.7e308)]}, "bounds"),
        ("row-norm", {"mean": 0.0, "sd": 1.0}, "mean"),
        ("row-norm", {"mean": [0.0, 0.0], "sd": [1.0]}, "mean and sd"),
        ("row-norm", {"mean": ["x"], "sd": [1.0]}, "mean"),
        ("max-norm", {"mean": [0.0], "sd": [1.0], "x_max": "two"}, "x_max"),
        ("max-norm", {"mean": [0.0], "sd": [1.0], "x_max": np.inf}, "x_max"),
        ("box", {"bounds": PAIRS, "y_max": "x"}, "y_max"),
        ("box", {"bounds": PAIRS, "y_max": np.inf}, "y_max"),
        ("box", {"bounds": PAIRS, "y_center": np.nan}, "y_center"),
        ("row-norm", {"mean": [0.0], "sd": [1.0], "clip_sd": np.nan}, "clip_sd"),
        ("row-norm", {"mean": [0.0], "sd": [1.0], "clip_sd": "x"}, "clip_sd"),
        ("box", {"bounds": PAIRS, "clip_sd": 3, "mean": [0.0], "sd": [1.0]}, "mean and sd"),
        ("box", {"bounds": PAIRS, "intercept": "x"}, "intercept"),
    ],
)
def test_public_numbers_that_cannot_be_are_named(kind, options, match):
    with pytest.raises(ArgumentError, match=match):
        row_scaling(kind, **options)


def test_rows_of_another_width_are_refused_without_their_number():
    scaling = row_scaling("box", bounds=PAIRS)
    for x, y in ((np.zeros((7, 1)), np.zeros(7)), (np.zeros((7, 3)), np.zeros(7))):
        with pytest.raises(ArgumentError, match="2 columns") as caught:
            scaling.apply(x, y)
        assert "7" not in str(caught.value)
    with pytest.raises(ArgumentError, match="as many rows") as caught:
        scaling.apply(np.zeros((7, 2)), np.zeros(6))
    assert "7" not in str(caught.value)
    for theta in ([1.0, 2.0, 3.0], "x", [[1.0, 2.0]]):
        with pytest.raises(ArgumentError, match="theta"):
            scaling.unstandardise(theta)
