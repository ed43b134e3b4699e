"""Which method dp_select takes, what it charges for finding out, and the fits of one by looks."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api import context
from dpreg.errors import BudgetError

SCHEMA = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1), "g": ["u", "v", "w"], "y": (-3, 3)}
FORMULA = "y ~ g + a + b + c"
TRUTH = {"Intercept": 0.4, "g[T.v]": 0.0, "g[T.w]": 0.4, "a": 1.0, "b": -0.5}


def table(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, rows))
    g = rng.choice(["u", "v", "w"], rows)
    y = 0.4 + a - 0.5 * b + 0.4 * (g == "w") + rng.normal(0, 0.3, rows)
    return pd.DataFrame({"a": a, "b": b, "c": c, "g": g, "y": y, "id": np.arange(rows) // 2})


def select(data=None, eps=2, formula=FORMULA, **arguments):
    data = table() if data is None else data
    arguments = {"method": "auto", "schema": SCHEMA, **arguments}
    return dpreg.dp_select(formula, data, eps, **arguments)


WIDE = "y ~ g + a + b + c + a:b + a:c + b:c + g:a + g:b + g:c"
"""So many columns that Gaussian noise is less than the pure one."""


# ---- a private number of rows ----


@pytest.mark.parametrize("unit", [{"neighbors": "add-remove"}, {"person": "id"}])
def test_a_private_number_of_rows_is_counted_with_noise(unit):
    ledger = dpreg.Ledger(dpreg.Budget(10, "1e-4"))
    unit = {"contributions": 2, **unit}
    many = select(None, 4, WIDE, budget=ledger, delta="1e-6", **unit)
    assert (many.method, many.nobs) == ("adaptive", None)
    assert many.budget["step"].tolist() == [
        "number of rows",
        f"looks 1-{7 if 'person' in unit else 6}",
    ]
    assert many.budget["eps"].tolist() == ["0.08", "3.92"]
    assert "The number of rows is private" in many.notes[0]
    assert str(many.spent) == "eps=4, delta=0.000001"
    few = select(table(20), budget=ledger, eps=1, unsafe_seed=1, **unit)
    assert (few.method, few.regression.fit) == ("pcls", "split")
    assert few.budget["step"].tolist()[0] == "number of rows"
    assert few.budget["eps"].tolist() == ["0.02", "0.98", "0.98"]
    assert "counted with noise, at eps = 0.02" in few.notes[0]
    assert "radius" in few.notes[1]
    assert str(few.spent) == "eps=1"
    assert [str(entry.budget) for entry in ledger.entries] == [str(many.spent), str(few.spent)]


def test_either_way_is_charged_what_the_dearer_one_costs():
    ledger = dpreg.Ledger(dpreg.Budget(10, "1e-4"))
    unit = {"neighbors": "add-remove", "budget": ledger}
    few = select(table(20), 1, WIDE, unsafe_seed=1, delta="1e-6", fit=None, **unit)
    assert few.method == "pcls"
    assert few.budget["step"].tolist() == ["number of rows", "selection", "the other way"]
    assert few.budget["delta"].tolist() == ["0", "0", "0.000001"]
    assert str(few.spent) == str(ledger.spent) == "eps=1, delta=0.000001"


@pytest.mark.parametrize(("rows", "word"), [(123_457, "123,457"), (97, "about 97")])
def test_notes_tell_the_noisy_count_and_no_other(rows, word, monkeypatch):
    honest = context.noisy_rows
    monkeypatch.setattr(context, "noisy_rows", lambda *given: (honest(*given), rows)[1])
    told = " ".join(select(table(19_876), neighbors="add-remove", fit=None, unsafe_seed=1).notes)
    assert word in told
    assert "19,876" not in told


def test_a_count_sees_the_rows_that_are_kept(monkeypatch):
    honest, seen = context.noisy_rows, []

    def noted(rows, part):
        seen.append(rows)
        return honest(rows, part)

    monkeypatch.setattr(context, "noisy_rows", noted)
    select(person="id", contributions=1)
    select(neighbors="add-remove")
    assert seen == [10_000, 20_000]


def test_bounds_are_bought_once_on_either_way():
    partly = {name: how for name, how in SCHEMA.items() if name != "a"}
    for rows, method in ((40_000, "adaptive"), (30, "pcls")):
        with pytest.warns(dpreg.errors.DpregWarning, match="leaves out a") as told:
            result = select(
                table(rows), schema=partly, neighbors="add-remove", eps=3, unsafe_seed=1
            )
        assert len(told) == 1
        assert result.method == method
        assert result.budget["step"].tolist().count("bounds of a") == 1
        assert result.spent.eps == 3


def test_a_short_ledger_is_refused_before_the_count(monkeypatch):
    monkeypatch.setattr(context, "noisy_rows", lambda *_: pytest.fail("counted"))
    ledger = dpreg.Ledger(1)
    with pytest.raises(BudgetError):
        select(neighbors="add-remove", budget=ledger)
    assert ledger.spent.eps == 0


# ---- fits ----


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_another_look_fits_what_was_chosen(delta):
    missed = 0
    for seed in range(8):
        told = {"delta": delta, "fit": "fresh", "false_inclusions": "1e-4", "unsafe_seed": seed}
        result = select(table(40_000, seed), **told)
        assert list(result.params.index) == list(TRUTH)
        ends = result.conf_int(0.001)
        missed += sum(not ends.loc[k, 0] <= v <= ends.loc[k, 1] for k, v in TRUTH.items())
    assert missed <= 1
    later = ["fitting"] * 2 if delta else ["minimum"]  # whose rows are read twice
    assert (result.regression.fit, result.passes) == ("fresh", 5)
    assert [look.kind for look in result.releases] == ["box", "locating", "locating"]
    assert [look.kind for look in result.regression.releases] == later
    assert result.spent.eps == 2
    assert result.t_test("a = 1").pvalue > 1e-6


def test_the_share_of_a_fresh_look():
    def shares(**told):
        result = select(fit="fresh", **told)
        looks = (*result.releases, *result.regression.releases)
        return [float(look.share) for look in looks]

    assert shares() == [0.1275, 0.17, 0.5525, 0.15]
    assert shares(shares={"fit": "0.3"}) == [0.105, 0.14, 0.455, 0.3]
    assert shares(delta="1e-6") == pytest.approx([0.056, 0.12, 0.624, 0.04, 0.16])


def test_intervals_of_a_fresh_look_allow_for_all_rows_and_not_for_the_choice():
    """Limits are wide: its noise is larger, and its sampling error that of least squares."""
    data = table(40_000)
    same = select(data, eps=1, delta="1e-6", fit="same", unsafe_seed=4)
    fresh = select(data, eps=1, delta="1e-6", fit="fresh", unsafe_seed=4)
    assert same.bse["a"] < fresh.bse["a"] < 4 * same.bse["a"]
    assert fresh.regression.bse_sampling["a"] == pytest.approx(
        same.regression.bse_sampling["a"], rel=0.3
    )


def test_nothing_chosen_leaves_the_intercept_or_nothing(tmp_path):
    data = table(5000)
    data["y"] = np.random.default_rng(1).normal(0, 1, len(data)).clip(-3, 3)
    told = {"eps": 4, "method": "adaptive", "false_inclusions": "1e-6", "unsafe_seed": 1}
    bare = select(data, fit="fresh", **told)
    assert list(bare.params.index) == ["Intercept"]
    bare.save(tmp_path / "bare.json")
    assert dpreg.load(tmp_path / "bare.json") == bare
    assert abs(bare.params["Intercept"]) < 0.2
    none = select(data, fit="fresh", keep=(), **told)
    if not none.best:
        assert none.regression is None
    assert none.spent.eps == 4


def test_without_rows_enough_a_fit_falls_to_the_nearest_of_the_paper():
    data = table(200)
    fresh = select(data, eps=1, fit="fresh", shares={"fit": "0.3"})
    assert (fresh.method, fresh.regression.fit) == ("pcls", "share")
    assert 'fit="share"' in fresh.notes[0]
    assert fresh.budget["eps"].tolist() == ["0.7", "0.3"]
    usual = select(data, eps=1, fit="auto")
    assert (usual.method, usual.regression.fit) == ("pcls", "split")


@pytest.mark.parametrize("fit", [None, "fresh"])
def test_what_the_default_radius_may_do_is_said_once(fit):
    told = str(select(table(200), eps=1, fit=fit).summary(full=True))
    assert len(re.findall(r"radius (= 1 )?is\s+the\s+default:", told)) == 1


def test_looks_at_many_hundred_columns_are_for_those_who_ask_for_them():
    rng = np.random.default_rng(0)
    levels = [f"l{i}" for i in range(420)]
    data = table(2000).assign(f=rng.choice(levels, 2000))
    told = {"schema": {**SCHEMA, "f": levels}, "neighbors": "add-remove"}
    wide = select(data, formula="y ~ a + f", expected_rows=10**8, fit=None, **told)
    assert wide.method == "pcls"
    assert "would take minutes" in wide.notes[0]
