"""Which method dp_select takes, what it charges for finding out, and the fits of a staged one."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api import select_route
from dpreg.errors import ArgumentError, BudgetError

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
    assert (many.method, many.nobs) == ("staged", None)
    assert many.budget["step"].tolist() == ["number of rows", "looks 1-4"]
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


def test_a_count_is_not_bought_where_the_rows_are_declared(monkeypatch):
    monkeypatch.setattr(select_route, "noisy_rows", lambda *_: pytest.fail("counted"))
    known = select(neighbors="add-remove", expected_rows=20_000)
    assert (known.method, known.nobs, known.notes) == ("staged", None, ())
    few = select(neighbors="add-remove", expected_rows=50, eps=1)
    assert few.method == "pcls"
    assert "there are 50" in few.notes[0]
    assert select(method="staged", neighbors="add-remove").method == "staged"


def test_a_count_sees_the_rows_that_are_kept(monkeypatch):
    honest, seen = select_route.noisy_rows, []

    def noted(rows, part):
        seen.append(rows)
        return honest(rows, part)

    monkeypatch.setattr(select_route, "noisy_rows", noted)
    select(person="id", contributions=1)
    select(neighbors="add-remove")
    assert seen == [10_000, 20_000]


def test_bounds_are_bought_once_on_either_way():
    partly = {name: how for name, how in SCHEMA.items() if name != "a"}
    for rows, method in ((40_000, "staged"), (30, "pcls")):
        with pytest.warns(dpreg.errors.DpregWarning, match="leaves out a") as told:
            result = select(
                table(rows), schema=partly, neighbors="add-remove", eps=3, unsafe_seed=1
            )
        assert len(told) == 1
        assert result.method == method
        assert result.budget["step"].tolist().count("bounds of a") == 1
        assert result.spent.eps == 3


def test_a_short_ledger_is_refused_before_the_count(monkeypatch):
    monkeypatch.setattr(select_route, "noisy_rows", lambda *_: pytest.fail("counted"))
    ledger = dpreg.Ledger(1)
    with pytest.raises(BudgetError):
        select(neighbors="add-remove", budget=ledger)
    assert ledger.spent.eps == 0


# ---- fits ----


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("fit", ["fresh", "split"])
def test_other_looks_fit_what_was_chosen(fit, delta):
    missed = 0
    for seed in range(8):
        told = {"delta": delta, "fit": fit, "false_inclusions": "1e-4", "unsafe_seed": seed}
        result = select(table(40_000, seed), **told)
        assert list(result.params.index) == list(TRUTH)
        ends = result.conf_int(0.001)
        missed += sum(not ends.loc[k, 0] <= v <= ends.loc[k, 1] for k, v in TRUTH.items())
    assert missed <= 1
    assert (result.regression.fit, result.passes) == (fit, 4)
    assert len(result.looks) == 3
    assert len(result.regression.looks) == 1
    assert result.spent.eps == 2
    assert result.t_test("a = 1").pvalue > 1e-6
    assert "look at the chosen columns" in result.budget["step"].tolist() or delta


def test_the_rows_of_halves_are_charged_side_by_side():
    pure = select(fit="split", eps=3)
    assert pure.budget["rows"].tolist() == ["half 1"] * 5 + ["half 2"]
    assert pure.budget["eps"].tolist() == ["0.45", "0.6", "1.68", "0.15", "0.12", "3"]
    assert (str(pure.spent), pure.regression.nobs) == ("eps=3", None)
    both = select(fit="split", eps=3, delta="1e-6")
    assert both.budget["step"].tolist() == ["looks 1-3", "look at the chosen columns"]
    assert both.budget["delta"].tolist() == ["0.000001"] * 2
    assert str(both.spent) == "eps=3, delta=0.000001"
    several = select(fit="split", eps=6, delta="1e-6", contributions=2)
    assert several.budget["delta"].tolist() == ["5e-7"] * 2
    assert str(several.spent) == "eps=6, delta=0.000001"


def test_the_share_of_a_fresh_look():
    usual = select(fit="fresh", eps=2)
    assert usual.budget["eps"].tolist() == ["0.24", "0.32", "0.896", "0.08", "0.064", "0.4"]
    told = select(fit="fresh", eps=2, shares={"fit": "0.3"})
    assert told.budget["eps"].tolist() == ["0.21", "0.28", "0.784", "0.07", "0.056", "0.6"]
    one_line = select(fit="fresh", eps=2, delta="1e-6")
    assert one_line.budget["step"].tolist() == ["looks 1-4"]
    shares = [float(one.share) for one in one_line.regression.looks]
    assert shares == pytest.approx([0.3 * 0.95])


def test_narrower_intervals_for_a_fresh_look():
    """It knows of no choice, and its columns are few: at equal eps a strong term's is no wider."""
    data = table(40_000)
    same = select(data, eps=1, delta="1e-6", fit="same", unsafe_seed=4)
    fresh = select(data, eps=1, delta="1e-6", fit="fresh", unsafe_seed=4)
    assert fresh.bse["a"] < 1.5 * same.bse["a"]


@pytest.mark.parametrize("fit", ["fresh", "split"])
def test_nothing_chosen_leaves_the_intercept_or_nothing(fit, tmp_path):
    data = table(5000)
    data["y"] = np.random.default_rng(1).normal(0, 1, len(data)).clip(-3, 3)
    told = {"eps": 4, "method": "staged", "false_inclusions": "1e-6", "unsafe_seed": 1}
    bare = select(data, fit=fit, **told)
    assert list(bare.params.index) == ["Intercept"]
    bare.save(tmp_path / "bare.json")
    assert dpreg.load(tmp_path / "bare.json") == bare
    assert abs(bare.params["Intercept"]) < 0.2
    none = select(data, fit=fit, keep=(), **told)
    if not none.best:
        assert none.regression is None
        assert "not needed" in none.claim.spends.spends[-1].note
    assert none.spent.eps == 4


def test_without_rows_enough_a_fit_falls_to_the_nearest_of_the_paper():
    data = table(200)
    fresh = select(data, eps=1, fit="fresh", shares={"fit": "0.3"})
    assert (fresh.method, fresh.regression.fit) == ("pcls", "share")
    assert 'fit="share"' in fresh.notes[0]
    assert fresh.budget["eps"].tolist() == ["0.7", "0.3"]
    split = select(data, eps=1, fit="split")
    assert (split.method, split.regression.fit) == ("pcls", "split")


@pytest.mark.parametrize("fit", [None, "fresh"])
def test_what_the_default_radius_may_do_is_said_once(fit):
    told = str(select(table(200), eps=1, fit=fit))
    assert len(re.findall(r"radius (= 1 )?is\s+the\s+default:", told)) == 1


def test_halves_need_twice_the_rows():
    with pytest.raises(ArgumentError) as whole:
        select(table(300), eps=1, method="staged", fit=None)
    with pytest.raises(ArgumentError) as halves:
        select(table(300), eps=1, method="staged", fit="split")
    told = [str(refused.value).split("about ")[1].split()[0] for refused in (whole, halves)]
    need = [int(number.replace(",", "")) for number in told]
    assert math.isclose(need[1], 2 * need[0], abs_tol=1)


def test_rows_on_a_cluster_have_no_halves_without_persons():
    dd = pytest.importorskip("dask.dataframe")
    spread = dd.from_pandas(table(), npartitions=3)
    with pytest.raises(ArgumentError, match="move from one half"):
        select(spread, fit="split", method="staged")
    assert "move from one half" in select(spread, fit="split").notes[0]
    owned = select(spread, fit="split", method="staged", person="id", eps=6)
    assert (owned.method, owned.regression.fit) == ("staged", "split")


def rerun(kind: str, data: pd.DataFrame):
    """A table whose rows each pass asks for anew."""
    if kind == "function":
        return lambda: data
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.connect().from_df(data)
    return relation if kind == "relation" else Exported(relation)


class Exported:
    """Speaks Arrow, and might run anything to do so."""

    def __init__(self, made) -> None:
        self._made = made

    def __arrow_c_stream__(self, requested=None):
        return self._made.__arrow_c_stream__(requested)


@pytest.mark.parametrize("kind", ["function", "relation", "stream"])
def test_rows_of_a_query_have_no_halves_without_persons(kind):
    """Grouping in several threads gives them in another order each time: see coins.py."""
    data = rerun(kind, table())
    declared = {"fit": "split", "expected_rows": 20_000}
    with pytest.raises(ArgumentError, match="move from one half"):
        select(data, method="staged", **declared)
    fallen = select(data, **declared)
    assert fallen.method == "pcls"
    assert "move from one half" in fallen.notes[0]
    owned = select(data, method="staged", person="id", eps=6, **declared)
    assert (owned.method, owned.regression.fit) == ("staged", "split")
    kept = select(data, method="staged", fit="fresh", expected_rows=20_000)
    assert kept.method == "staged"


def test_nor_have_they_for_a_family():
    formula = "I(1 * (y > 0)) ~ a + b"
    with pytest.raises(ArgumentError, match="move from one half"):
        select(lambda: table(50), formula=formula, family="binomial", fit="split")


# ---- halves stay halves ----


@pytest.mark.parametrize("person", [None, "id"])
def test_a_row_is_in_one_half_for_the_whole_call(person, monkeypatch):
    """Coins tossed anew in each pass would hardly give halves of the same sizes four times."""
    honest, sizes, first_look = dpreg.api.staged.read_moments, [], []

    def noted(*told):
        parts = honest(*told)
        if len(sizes) % 4 == 0:
            first_look.append([part.cells for part in parts])
        sizes.append(tuple(part.rows for part in parts))
        return parts

    data = table(3000)
    monkeypatch.setattr(dpreg.api.staged, "read_moments", noted)
    select(data, fit="split", method="staged", eps=200, person=person)
    select(data, fit="split", method="staged", eps=200, person=person)
    first, second = sizes[:4], sizes[4:]
    assert len(first) == len(second) == 4
    assert len(set(first)) == len(set(second)) == 1
    assert first_look[0] != first_look[1]  # sums that other halves do not share
