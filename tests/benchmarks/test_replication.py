"""The measures of the replications, and one small run of them."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.replication.analyses import analyses
from benchmarks.replication.measures import compare, overlap
from benchmarks.replication.runs import Boxed, cell, exact
from benchmarks.replication.tables import failures, summary


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 1), (0, 1), 1.0),
        ((0, 1), (2, 3), 0.0),
        ((0, 2), (1, 3), 0.5),
        ((-1, 1), (-2, 2), 0.75),  # twice as wide around the same centre: (1 + 1/2) / 2
    ],
)
def test_overlap(first, second, expected):
    found = overlap(np.array([first], float), np.array([second], float))
    assert found.tolist() == [expected]


def table(estimate, se=1.0):
    low, high = estimate - 2 * se, estimate + 2 * se
    p = 0.01 if abs(estimate) > 2 * se else 0.5
    values = {"estimate": estimate, "se": se, "low": low, "high": high, "p": p}
    return pd.DataFrame(values, index=["x"])


def test_a_conclusion_is_a_decision_and_its_sign():
    assert compare(table(5.0), table(6.0)).loc["x", ["sign", "decision", "conclusion"]].all()
    turned = compare(table(5.0), table(-5.0)).loc["x"]
    assert (turned["sign"], turned["decision"], turned["conclusion"]) == (0, 1, 0)
    lost = compare(table(5.0), table(1.0)).loc["x"]
    assert (lost["sign"], lost["decision"], lost["bias"]) == (1, 0, -4)
    # Two estimates that are not significant agree whatever their signs.
    assert compare(table(0.5), table(-0.5)).loc["x", "conclusion"] == 1


def test_estimates_without_intervals_have_no_decision():
    blank = pd.DataFrame({"estimate": 1.0, "se": np.nan, "low": np.nan, "high": np.nan,
                          "p": np.nan}, index=["x"])  # fmt: skip
    found = compare(table(5.0), blank).loc["x"]
    assert found["sign"] == 1
    assert np.isnan(found[["decision", "conclusion", "overlap", "width"]].astype(float)).all()


def test_peers_come_back_in_the_units_of_the_rows():
    analysis = next(a for a in analyses(real_data=False, with_r=False) if a.name == "fair")
    fitted, matrix = exact(analysis, analysis.read())
    boxed = Boxed(analysis, matrix)
    theta = np.linalg.lstsq(boxed.rows.x, boxed.rows.y, rcond=None)[0]
    np.testing.assert_allclose(boxed.own_units(theta[None])[0], fitted["estimate"], rtol=1e-6)


def test_a_small_run_survives_where_privacy_costs_nothing():
    analysis = next(a for a in analyses(real_data=False, with_r=False) if a.name == "wages, 10,000")
    lines = cell(analysis, 100.0, 1e-6, runs=2, peer_runs=1)
    found = summary(lines).reset_index().set_index("method").loc["auto"]
    assert found["decision"] > 0.9
    assert found["overlap"] > 0.9
    others = {"ssp", "adassp", "adassp-published", "boosted", "ihm", "dp-gd", "objective"}
    assert {"auto", "gram"} | others <= set(lines["method"])
    assert failures(lines).empty or (failures(lines)["decision"] < 0.9).all()
