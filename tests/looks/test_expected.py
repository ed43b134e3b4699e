"""Rows that are assumed: the sums are those of a table, and the errors those of calls."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.formula.design import build_design
from dpreg.looks.coordinates import place_of
from dpreg.looks.expected import Expected
from dpreg.looks.families import Linear
from dpreg.looks.law import estimates
from dpreg.looks.locate import from_box
from dpreg.looks.loop import look
from dpreg.looks.plan import plan_looks
from dpreg.looks.records import Described
from dpreg.looks.table import Table
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader

NAMES = ["a", "b", "c"]
SCHEMA = dict.fromkeys([*NAMES, "y"], (-1, 1))
FORMULA = "y ~ a + b + c"
DESCRIBED = Described((1, 2, 3))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    y = np.clip(x @ [0.2, 0.1, 0.0] + 0.2 * rng.standard_normal(n), -1, 1)
    return pd.DataFrame(np.column_stack([x, y]), columns=[*NAMES, "y"])


def stored(table):
    return np.column_stack([np.ones(len(table)), table.to_numpy()])


def planned(delta, person=None):
    who = Protection("replace-one", 1, person)
    return plan_looks(3, Budget(Fraction(1), Fraction(delta)), who, holds=True)


@pytest.mark.parametrize("person", [None, "id"])
def test_sums_are_a_tables_times_the_rows_that_each_row_stands_for(person):
    table, plan = rows(500), planned("1e-6", person)
    made, more = (
        Expected(plan, DESCRIBED, stored(table), n, np.random.default_rng(0)) for n in (500, 1500)
    )
    design = build_design(FORMULA, Schema.from_any(SCHEMA))
    account = Account(plan.protection, plan.cost)
    persons = Persons.of(plan.protection, 1)
    reader = Reader(as_source(table.assign(id=np.arange(500))), False, persons)
    reader.settle(design.types)
    reader = reader if person is None else reader.every_row(design.types)
    own = Table(reader, design, DESCRIBED, plan.open(account))
    if person is None:
        assert [*map(tuple, own._moments().cells)] == [*made._moments().cells]
        assert more._moments().cells[0][0] == 3 * made._moments().cells[0][0]
    point, family, _ = from_box(made.box(), Linear(), DESCRIBED)
    place, _ = place_of(point, family, information=6.0, score=0.5)
    found = [one._sums(place, DESCRIBED, matrix=True) for one in (own, made, more)]
    assert found[0].rows == 500
    for name in ("information", "score", "middle"):
        whole, same, thrice = (np.array(getattr(one, name), dtype=object) for one in found)
        assert (whole == same).all(), name
        assert (3 * whole == thrice).all(), name


@pytest.mark.parametrize(("delta", "n"), [("0", 20_000), ("1e-6", 8_000)])
def test_errors_are_those_that_calls_report(delta, n):
    plan, at = planned(delta), range(4)
    z = stored(rows(4096, 1))

    def looked(seed):
        return look(Expected(plan, DESCRIBED, z, n, np.random.default_rng(seed)), Linear())

    seen = [looked(seed) for seed in range(5)]
    units = np.eye(4), np.zeros(4)
    told = [estimates(one, at, ["Intercept", *NAMES], units).covariance for one in seen]
    asked = {"schema": SCHEMA, "delta": delta, "method": "adaptive", "progress": False}
    calls = [
        dpreg.dp_ols(FORMULA, rows(n, 2), 1, unsafe_seed=seed, **asked).bse for seed in range(5)
    ]
    ratio = np.median([np.sqrt(np.diag(one)) for one in told], axis=0) / np.median(calls, axis=0)
    assert ratio == pytest.approx(1, abs=0.2)
    again = looked(0).releases[-1]
    np.testing.assert_array_equal(again.score, seen[0].releases[-1].score)


@pytest.mark.parametrize("times", [1, 3])
def test_a_minimum_is_that_of_a_table_of_the_rows_that_are_stood_for(times):
    z, plan = stored(rows(500)), planned("0")
    made = Expected(plan, DESCRIBED, z, 500 * times, np.random.default_rng(0))
    account = Account(plan.protection, plan.cost, np.random.default_rng(0))
    table = pd.DataFrame(np.tile(rows(500).to_numpy(), (times, 1)), columns=[*NAMES, "y"])
    design = build_design(FORMULA, Schema.from_any(SCHEMA))
    reader = Reader(as_source(table), False)
    reader.settle(design.types)
    own = Table(reader, design, DESCRIBED, plan.open(account))
    account.charge(None, "a test")
    place, _ = place_of(
        from_box(made.box(), Linear(), DESCRIBED)[0], Linear(), information=6.0, score=0.5, bend=1.0
    )
    share = Fraction(1)
    told = []
    for one in (replace(made, rng=np.random.default_rng(5)), own):
        if one is own:
            account.rng = np.random.default_rng(5)
        told.append(one._minimum(place, plan.minimum_noise(share), share, 500.0 * times))
    (t, penalty, *noise), (theirs, other, *drawn) = told
    np.testing.assert_allclose(t, theirs, rtol=1e-9, atol=1e-12)
    assert (penalty, noise) == (other, drawn)


def test_a_person_counts_as_little_in_a_score_as_in_the_information_carried_to_it(monkeypatch):
    places, sums = [], Expected._sums
    monkeypatch.setattr(
        Expected,
        "_sums",
        lambda self, *args, **more: places.append(args[0]) or sums(self, *args, **more),
    )
    z = np.repeat(stored(rows(8_000)), 5, axis=0)
    look(Expected(planned("0", "id"), DESCRIBED, z, len(z), np.random.default_rng(1), 5), Linear())
    located, last = places[-2:]
    assert located.together > last.together
    room = located.information**2 * located.weight  # limits are in units of the mean weight
    assert last.information * last.weight == pytest.approx(room, rel=1e-5)
    assert last.weight < 0.95 * located.weight


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("each", [5, 10])
def test_persons_with_more_rows_than_there_is_room_for_are_fitted_as_others_are(delta, each):
    """4,000 persons: limits cut all of them, and cut the score as much as the information."""
    rng = np.random.default_rng(each)
    n, p = 4_000 * each, 6
    z = np.column_stack([np.ones(n), np.clip(rng.normal(size=(n, p)) * 0.25, -1, 1), np.zeros(n)])
    truth = np.array([0.0, 0.2, -0.1, 0.1, 0.0, 0.0, 0.0])
    z[:, -1] = np.clip(z[:, :-1] @ truth + rng.normal(size=n) * 0.2, -1, 1)
    eps = {"0": 2, "1e-6": 1}[delta]
    plan = plan_looks(p, Budget(eps, delta), Protection("replace-one", 1, "who"))
    rows = Expected(plan, Described(tuple(range(1, p + 1))), z, n, np.random.default_rng(1), each)
    units = np.eye(p + 1), np.zeros(p + 1)
    found = estimates(look(rows, Linear()), range(p + 1), [f"b{j}" for j in range(p + 1)], units)
    errors = np.sqrt(np.diag(found.covariance))
    assert (errors[1:] < {"0": 0.2, "1e-6": 0.06}[delta]).all(), errors
    assert (np.abs(found.params - truth) < 3.5 * errors).all()
