"""Chances of choices by looks in closed form, against choices from simulated looks."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks._power_runs import Setting, choosing_laws
from dpreg.choice import choose
from dpreg.options import PCLS
from dpreg.planning import plan
from dpreg.selection.space import Space

FACTS = {"sigma": 0.2, "fit": None}
CELLS = [
    # p, n, eps, delta, correlation, sd, effects
    (6, 5_000, 1, 1e-6, 0.0, None, (0.05, 0.03, 0.02)),
    (6, 8_000, 1, 0, 0.0, None, (0.05, 0.03, 0.02)),
    (8, 10_000, 1, 0, 0.5, 0.25, (0.1, 0.06, 0.03)),
    (8, 10_000, 1, 1e-6, 0.5, 0.25, (0.1, 0.06, 0.03)),
    (15, 20_000, 0.5, 1e-6, 0.0, None, (0.1, 0.03, 0.02)),
    (20, 30_000, 1, 1e-6, 0.5, None, (0.05, 0.03, 0.02, 0.015)),
]


def _planned(p, n, eps, delta, correlation, sd, effects, **more):
    names = {f"x{j + 1}": value for j, value in enumerate(effects)}
    return plan(
        names, n=n, eps=eps, delta=delta, candidates=p, correlation=correlation,
        sd=dict.fromkeys(names, sd) if sd else None, **FACTS, **more,
    )  # fmt: skip


def _measured(p, n, eps, delta, correlation, sd, effects, runs):
    rng = np.random.default_rng([5, p, n])
    space = Space(tuple(f"x{j + 1}" for j in range(p)), tuple((j + 1,) for j in range(p)), (0,))
    beta = np.zeros(p)
    beta[: len(effects)] = effects
    hits = np.zeros(p)
    for _ in range(runs):
        g = rng.standard_normal((n, p)) * math.sqrt(1 - correlation)
        g += rng.standard_normal((n, 1)) * math.sqrt(correlation)
        x = 2 * ndtr(g) - 1
        if sd:  # stated of the effects alone; the useless columns stay uniform
            own, others = slice(0, len(effects)), p - 1
            explained = others * correlation**2 / (1 + (others - 1) * correlation)
            x[:, own] = np.clip(sd / math.sqrt(1 - explained) * g[:, own], -1, 1)
        y = np.clip(x @ beta + 0.2 * rng.standard_normal(n), -1, 1)
        laws = choosing_laws(x, y, Setting(eps, delta), rng)
        hits[list(choose(laws, space).found)] += 1
    return hits[: len(effects)] / runs, hits[len(effects) :].sum() / runs


def _gap(cell, runs):
    predicted = _planned(*cell)
    each, useless = _measured(*cell, runs)
    return np.abs(predicted.each.to_numpy() - each).max(), predicted.useless - useless


@pytest.mark.parametrize("cell", CELLS[1::3])
def test_predicted_chances_are_what_simulated_choices_measure(cell):
    gap, useless = _gap(cell, 40)
    assert gap <= 0.1 + 3 * 0.5 / math.sqrt(40)
    assert abs(useless) < 0.2


@pytest.mark.audit
@pytest.mark.parametrize("cell", CELLS)
def test_over_all_cells_within_ten_points(cell):
    gap, useless = _gap(cell, 300)
    print(f"{cell}: largest gap {gap:.3f}, useless {useless:+.3f}")
    assert gap <= 0.1
    assert abs(useless) < 0.06


def test_auto_follows_the_rule_of_the_call():
    many, few = _planned(*CELLS[0]), _planned(6, 300, *CELLS[0][2:])
    assert many.method == "adaptive"
    assert few.method == "pcls"
    assert few.rows_needed > 300 < many.n
    assert _planned(6, few.rows_needed, *CELLS[0][2:]).method == "adaptive"
    assert few.at(eps=few.eps_needed * 1.01).method == "adaptive"
    assert few.at(eps=few.eps_needed * 0.98).method == "pcls"
    tuned = plan(0.1, n=10**6, eps=1, sigma=0.2, method=PCLS(radius=2))
    assert tuned.method == "pcls"
    assert "Looks at the rows would need" in str(tuned)


def test_rows_and_eps_are_the_least_that_reach_the_chance():
    facts = {"sigma": 0.2, "candidates": 8, "delta": 1e-6, "chance": 0.8}
    rows = plan([0.05, 0.02], eps=1, **facts)
    assert rows.method == "adaptive"
    assert rows.found >= 0.8 > rows.at(n=round(0.97 * rows.n)).found
    assert 0.6 < rows.rule_of_thumb / rows.n < 1.6
    eps = plan([0.05, 0.02], n=rows.n, **facts)
    assert eps.eps == pytest.approx(1, rel=0.03)
    assert plan([0.9], sigma=0.05, eps=10, chance=0.8).n < 1_000


@pytest.mark.parametrize("change", [{"contributions": 3}, {"fit": "fresh"}])
def test_what_costs_budget_or_rows_costs_chances(change):
    facts = {"sigma": 0.2, "candidates": 6, "n": 6_000, "eps": 1, "method": "adaptive"}
    base = plan(0.02, **facts, fit=None)
    assert plan(0.02, **({**facts, "fit": None} | change)).found < base.found
    added = plan(0.02, **facts, fit=None, neighbors="add-remove")
    assert added.found > base.found


def test_factors_are_terms_of_several_columns():
    schema = {"y": (-1, 1), "x": (-1, 1), "g": ["a", "b", "c", "d"]}
    facts = {"sigma": 0.2, "eps": 1, "delta": 1e-6, "formula": "y ~ x + g", "schema": schema}
    found = plan({"g[T.b]": 0.1, "g[T.c]": 0.05}, n=4_000, **facts)
    assert found.method == "adaptive"
    assert list(found.each.index) == ["g"]
    assert found.found < plan({"g[T.b]": 0.1, "g[T.c]": 0.05}, n=8_000, **facts).found


def test_the_page_says_how_a_choice_is_made():
    text = str(_planned(*CELLS[0]))
    for words in ("adaptive: 3 looks", "gain", "reach", "Rows needed", 'below it takes "pcls"'):
        assert words in text
