"""The study of families: its quick looks are those of whole calls."""

import numpy as np
import pytest

import dpreg
from benchmarks import families
from benchmarks._family_cells import Cell, simulated
from benchmarks._family_runs import chosen, looked
from dpreg.staged.plan import FRESH

CELL = Cell("binomial", 8_000, 4, 2.0)


def called(name, made, eps, seed):
    call = dict(made.call)
    return getattr(dpreg, name)(call.pop("formula"), made.table, eps, unsafe_seed=seed, **call)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_a_quick_choice_is_that_of_a_call_with_the_same_seed(spread):
    cell = Cell("binomial", 8_000, 4, 2.0, spread=spread)
    made = simulated(cell, np.random.default_rng(6))
    for seed in range(4):
        theirs = called("dp_select", made, cell.eps, seed).selected
        assert ("Intercept", *chosen(cell, looked(cell, made, seed, FRESH))) == tuple(theirs)


def test_a_run_says_what_holds_and_why_not():
    enough = families.coverage(CELL, 0)
    assert len(enough["hit"]) == 5
    assert 1 < enough["width"] < 2
    assert "flagged" in families.coverage(Cell("binomial", 400, 8, 0.5), 0)
    line = families.choice(CELL, 0)
    assert line["of"] == line["found"] == line["wald"] == 2


def test_no_useless_term_in_few_runs_proves_little():
    runs = [{"of": 2, "found": 2, "useless": 0, "wald": 2, "wald_useless": 0}] * 40
    assert "| 0.000 | 0.115 |" in families._chosen(runs)
