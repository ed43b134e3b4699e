"""R-squared of held-out rows beside least squares."""

import numpy as np
import pandas as pd
import pytest

import dpreg
from benchmarks import held_out
from dpreg import datasets
from dpreg.datasets import Dataset


def test_rsquared_is_one_for_the_response_and_nothing_for_its_mean():
    y = pd.Series(np.random.default_rng(0).standard_normal(50))
    assert held_out.rsquared(y, y) == 1.0
    assert held_out.rsquared(y, pd.Series(np.full(50, y.mean()))) == pytest.approx(0.0)


@pytest.mark.parametrize("fit", ["fresh", "all"])
def test_with_a_large_eps_little_is_lost_and_terms_left_out_are_told_apart(fit, monkeypatch):
    area = datasets.make_bay_area(4_000)
    monkeypatch.setattr(held_out, "EPS", 1_000)
    found = Dataset(area.data, area.schema, area.formula, area.source)
    table = held_out.shortfalls(found, fit, 0.0, 2)
    assert table.shape == (2, 5)
    assert (table[:, 0] > 0.1).all()
    assert np.abs(table[:, 1]).max() < 0.02
    if fit == "all":
        np.testing.assert_allclose(table[:, 2], 0.0, atol=1e-12)


def test_what_bounds_cost_is_told_apart(monkeypatch):
    """Rows beyond their bounds are lost to a release whatever its budget."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": rng.uniform(-1, 1, 4_000)})
    rows["y"] = rows["x"] + 0.1 * rng.standard_normal(4_000)
    schema = dpreg.Schema({"x": (-1, 1), "y": (-0.5, 0.5)})
    cut = held_out.within_bounds(Dataset(rows, schema, "y ~ x", ""), rows)
    assert cut["y"].abs().max() == 0.5
    assert cut["x"].equals(rows["x"])
    monkeypatch.setattr(held_out, "EPS", 1_000)
    table = held_out.shortfalls(Dataset(rows, schema, "y ~ x", ""), "all", 0.0, 2)
    assert table[:, 3].min() > 0.05
    np.testing.assert_allclose(table[:, 1], table[:, 3], atol=0.01)
    assert np.abs(table[:, 4]).max() < 0.005


def test_wider_bounds_replace_the_declared_ones_and_no_others():
    area = datasets.make_bay_area(50)
    found = Dataset(area.data, area.schema, area.formula, area.source)
    wider = held_out.with_bounds(found, "eight")
    assert (wider.schema["price"].lo, wider.schema["price"].hi) == (0, 8_000_000)
    assert area.schema["price"].hi < 8_000_000
    assert all(wider.schema[name] == area.schema[name] for name in area.schema if name != "price")
    assert held_out.with_bounds(found, "declared").schema == area.schema
