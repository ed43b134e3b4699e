"""R-squared of held-out rows beside least squares."""

import numpy as np
import pandas as pd
import pytest

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
    assert table.shape == (2, 3)
    assert (table[:, 0] > 0.1).all()
    assert np.abs(table[:, 1]).max() < 0.02
    if fit == "all":
        np.testing.assert_allclose(table[:, 2], 0.0, atol=1e-12)
