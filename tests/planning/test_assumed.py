"""Made-up rows have the moments that were asked for; given rows are taken as they are."""

import pickle

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError
from dpreg.formula.design import build_design
from dpreg.planning.rows import assumed, deviations_of
from dpreg.schema import Schema

SCHEMA = {"y": (-2, 2), "a": (0, 10), "flag": (0, 1), "g": ["u", "v", "w"]}


def numbers(columns, given=(), correlation=0.0, *, skewed=False):
    """Return rows of columns in [-1, 1]."""
    names = [f"x{j}" for j in range(columns)]
    design = build_design("y ~ " + " + ".join(names), dict.fromkeys([*names, "y"], (-1, 1)))
    return assumed(design, dict(given), correlation, skewed=skewed)[0]


def test_numbers_have_their_deviations_given_the_others():
    x = numbers(4, {1: 0.1, 3: 0.2}, 0.5)
    np.testing.assert_allclose(deviations_of(x)[[0, 2]], [0.1, 0.2], rtol=0.05)
    correlations = np.corrcoef(x.T)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(correlations, 0.5, atol=0.04)
    plain = numbers(3)
    np.testing.assert_allclose(plain.std(axis=0), 3**-0.5, rtol=0.02)
    assert np.abs(plain).max() <= 1


def test_residuals_are_uncorrelated_with_the_columns_and_have_the_size_asked_for():
    asked = {"sigma": 0.05, "n": 500, "eps": 1, "of": "ols", "correlation": 0.3}
    z = dpreg.plan({"a": 0.1, "b": 0.0, "c": -0.1}, **asked).rows.z
    slopes, squares, *_ = np.linalg.lstsq(z[:, :-1], z[:, -1], rcond=None)
    np.testing.assert_allclose(slopes[1:], [0.1, 0, -0.1], atol=1e-9)
    assert squares[0] / len(z) == pytest.approx(0.05**2, rel=1e-6)


def test_a_formula_makes_its_own_columns_of_made_up_ones():
    design = build_design("y ~ a + I(a ** 2) + g", SCHEMA)
    x, *_ = assumed(design, {}, 0.0)
    linear, square = x[:, 2], x[:, 3]  # levels come first
    np.testing.assert_allclose(square, (linear + 1) ** 2 / 2 - 1, atol=1e-9)
    np.testing.assert_allclose(x[:, :2].mean(axis=0), 1 / 3, atol=0.01)


def test_deviations_say_how_rare_levels_and_flags_are():
    design = build_design("y ~ flag + g", SCHEMA)
    shares = {"u": 0.6, "v": 0.3, "w": 0.1}
    sd = {level: (1 / share + 1 / shares["u"]) ** -0.5 for level, share in shares.items()}
    given = {1: sd["v"], 2: sd["w"], 3: (0.05 * 0.95) ** 0.5 / 0.5}
    x, *_ = assumed(design, given, 0.0)
    assert (x[:, 2] > 0).mean() == pytest.approx(0.05, abs=0.01)
    np.testing.assert_allclose(x[:, :2].mean(axis=0), [0.3, 0.1], atol=0.02)


def test_stated_deviations_stand_and_others_are_those_of_the_rows():
    asked = {"sigma": 0.5, "n": 500, "eps": 1, "formula": "y ~ a + flag", "schema": SCHEMA}
    plan = dpreg.plan({"a": 0.3}, of="ols", sd={"a": 1.5}, **asked)
    a, flag = plan.rows.variance**0.5
    assert a == pytest.approx(1.5 / 5)
    assert deviations_of(plan.rows.z[:, 1:-1])[0] == pytest.approx(a)
    assert flag == pytest.approx(plan.rows.z[:, 2].std(), rel=0.01)


def test_like_gives_columns_and_where_it_has_them_residuals():
    design = build_design("y ~ a + g", SCHEMA)
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"a": rng.normal(4, 1, 500), "g": rng.choice(list("uvw"), 500)})
    x, without, _ = assumed(design, {}, 0.0, rows)
    np.testing.assert_allclose(x[:, 2], (rows["a"] - 5) / 5)
    skewed = rng.exponential(0.2, 500)
    _, found, own = assumed(design, {}, 0.0, rows.assign(y=skewed))
    assert (without**3).mean() == pytest.approx(0, abs=0.4)
    assert (found**3).mean() > 1
    assert own is not None
    with pytest.raises(ArgumentError, match="lacks columns of the formula: g"):
        assumed(design, {}, 0.0, rows[["a"]])
    with pytest.raises(ArgumentError, match="complete rows"):
        assumed(design, {}, 0.0, rows.head(4))


@pytest.mark.parametrize(
    ("of", "method"),
    [("select", "auto"), ("select", "adaptive"), ("ols", "auto"), ("ols", "adaptive")],
)
def test_a_plan_says_that_rows_of_like_show_and_keeps_no_more_of_them_than_it_uses(of, method):
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"a": rng.uniform(0, 10, 400), "name": ["secret"] * 400})
    asked = {
        "formula": "y ~ a",
        "schema": SCHEMA,
        "sigma": 0.5,
        "n": 4_000,
        "eps": 1,
        "of": of,
        "method": method,
    }
    made_up, plan = dpreg.plan({"a": 0.3}, **asked), dpreg.plan({"a": 0.3}, **asked, like=rows)
    assert "No data were used" in str(made_up)
    told = " ".join(str(plan).split())
    assert "rows of like count as public, and show in these figures; nothing was spent" in told
    assert "No data were used" not in told
    assert b"secret" not in pickle.dumps(plan)
    assert "secret" not in repr(plan)
    assert "array(" not in repr(plan.rows)


def test_skewed_rows_bunch_and_their_levels_are_rare():
    schema = Schema.from_any({"y": (0, 1), "a": (0, 10), "g": ["u", "v", "w"]})
    design = build_design("y ~ a + g", schema)
    usual, even, _ = assumed(design, {}, 0.0)
    skewed, tailed, _ = assumed(design, {}, 0.0, skewed=True)
    assert np.median(skewed[:, -1]) == pytest.approx(-0.8, abs=0.03)
    assert skewed[:, -1].max() > -0.2
    assert usual[:, -1].std() > 2 * skewed[:, -1].std()
    shares = [(x[:, 0] == x[:, 0].max()).mean() for x in (usual, skewed)]
    assert shares == pytest.approx([1 / 3, 0.05], abs=0.01)
    assert (tailed**3).mean() > 1 > abs((even**3).mean())
    assert np.median(numbers(3, skewed=True)) == pytest.approx(-0.8, abs=0.03)
