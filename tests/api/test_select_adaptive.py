"""dp_select by looks, end to end: what is found, charged, refused and shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.api import select as select_adaptive
from dpreg.errors import ArgumentError, BudgetError, DataError, NotReleased
from dpreg.results.claim import ReleasedLook
from dpreg.sources import as_source

SCHEMA = {
    "a": (-1, 1),
    "b": (-1, 1),
    "c": (-1, 1),
    "copy": (-1, 1),
    "g": ["u", "v", "w"],
    "y": (-3, 3),
}
FORMULA = "y ~ g + a + b + c"


def table(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, rows))
    g = rng.choice(["u", "v", "w"], rows)
    y = 0.4 + a - 0.5 * b + 0.4 * (g == "w") + rng.normal(0, 0.3, rows)
    copy = np.clip(a + rng.normal(0, 0.001, rows), -1, 1)
    return pd.DataFrame({"a": a, "b": b, "c": c, "g": g, "y": y, "copy": copy})


def chosen(formula=FORMULA, data=None, eps=2, **arguments):
    data = table() if data is None else data
    arguments = {"method": "adaptive", "schema": SCHEMA, **arguments}
    return dpreg.dp_select(formula, data, eps, **arguments)


# ---- what is found ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delta": 1e-6},
        {"neighbors": "add-remove"},
        {"contributions": 3, "eps": 6},
        {"fit": None},
        {"schema": {**SCHEMA, "copy": (-1, 1)}, "clip": "0.9"},
    ],
)
def test_the_terms_of_a_clear_model_are_found(options):
    result = chosen(false_inclusions="1e-4", unsafe_seed=5, **options)
    assert result.selected == ["Intercept", "g", "a", "b"]
    assert result.selected_formula == "y ~ g + a + b"
    assert result.best == tuple(result.selected)
    assert result.alternatives == ()
    assert result.level["a"] < 1e-4 < 0.01 < result.level["c"]
    assert list(result.level.index) == list(result.candidates)
    assert result.selection_frequencies.to_dict() == {"g": 1.0, "a": 1.0, "b": 1.0, "c": 0.0}


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_intervals_by_the_look_that_chose_hold_the_truth(delta):
    truth = {"Intercept": 0.4, "g[T.v]": 0.0, "g[T.w]": 0.4, "a": 1.0, "b": -0.5}
    missed = 0
    for seed in range(12):
        told = {"delta": delta, "false_inclusions": "1e-4", "unsafe_seed": seed}
        result = chosen(data=table(seed=seed), fit="same", **told)
        assert list(result.params.index) == list(truth)
        ends = result.conf_int(0.005)
        missed += sum(not ends.loc[k, 0] <= v <= ends.loc[k, 1] for k, v in truth.items())
    assert missed <= 1


def test_coefficients_of_the_look_that_chose_are_beside_all_candidates():
    """Five columns were on offer: the interval is that of level alpha / 5, the p-value times 5."""
    result = chosen(eps=1, delta=1e-6, fit="same", unsafe_seed=1)
    fit = result.regression
    assert fit.among == 5
    wide = fit.combinations(np.eye(len(fit.exog_names)))
    np.testing.assert_allclose(result.conf_int(0.05), wide.conf_int(0.01))
    alone = wide.pvalue
    np.testing.assert_allclose(result.pvalues, np.minimum(5 * alone, 1))
    assert 0.8 < fit.bse["a"] / result.level_errors["a"] < 1.2
    data = table()
    exact = chosen(eps=1e6, delta=1e-6, fit="same", data=data, unsafe_seed=1)
    theirs = smf.ols(FORMULA, data).fit()
    gaps = (exact.params - theirs.params[exact.params.index]) / theirs.bse[exact.params.index]
    assert np.abs(gaps).max() < 0.8  # narrow: rows far out count less, whatever eps is
    assert set(exact.regression.marks) == {"narrow"}


def test_all_looks_know_which_columns_are_levels(monkeypatch):
    seen = []
    for name in ("look", "look_at_chosen"):
        honest = getattr(select_adaptive, name)

        def noted(rows, *more, honest=honest, **named):
            seen.append([rows.described.columns.index(j) for j in rows.described.levels])
            return honest(rows, *more, **named)

        monkeypatch.setattr(select_adaptive, name, noted)
    result = chosen("y ~ a + g + c", eps=20, fit="fresh", unsafe_seed=5)
    levels = [name.startswith("g") for name in result.regression.params.index if name[0] != "I"]
    assert len(seen[0]) == 2
    assert seen[1] == np.flatnonzero(levels).tolist()


def test_a_copy_is_in_a_group_and_never_dropped():
    result = chosen("y ~ a + b + copy", unsafe_seed=1)
    assert "a" not in result.selected
    assert "copy" not in result.selected
    assert result.alternatives == (("a", "copy"),)
    (fitted,) = {"a", "copy"} & set(result.best)
    assert fitted in result.params.index
    text = " ".join(str(result.summary(full=True)).split())
    assert "One of: {a, copy}" in text
    assert "Also a or copy: the release cannot tell which." in text
    assert "the threshold lets in about 0.1 useless terms a call" in text


def test_errors_say_which_effects_would_have_been_seen():
    result = chosen(unsafe_seed=1)
    assert np.isnan(result.level_errors["g"])
    estimates = [
        chosen(data=table(seed=s), unsafe_seed=s, fit="same").params["b"] for s in range(12)
    ]
    error = np.std(estimates)
    assert 0.5 * error < result.level_errors["b"] < 2 * error
    wide = {**SCHEMA, "b": (-10, 10)}
    scaled = chosen(unsafe_seed=1, schema=wide, data=table().assign(b=lambda t: 10 * t["b"]))
    assert scaled.level_errors["b"] == pytest.approx(result.level_errors["b"] / 10, rel=0.2)


def test_an_interaction_comes_with_its_main_effects():
    data = table()
    data["y"] += 0.8 * data["a"] * data["c"]
    result = chosen("y ~ a + b + a:c + c", data, hierarchy="strong", unsafe_seed=2)
    assert {"a", "c", "a:c"} <= set(result.best)


def test_units_max_terms_and_keep():
    by_column = chosen(units="column", unsafe_seed=3)
    assert by_column.selected == ["Intercept", "g[T.w]", "a", "b"]
    assert by_column.columns["g[T.w]"] == ("g[T.w]",)
    assert chosen(max_terms=1, unsafe_seed=3).best == ("Intercept", "a")
    assert "c" in chosen(keep=("Intercept", "c"), unsafe_seed=3).selected
    free = chosen("y ~ a + b", keep=(), unsafe_seed=3)
    assert free.candidates[0] == "Intercept"
    assert free.selected == ["Intercept", "a", "b"]


def test_randhie_finds_what_a_statistician_expects():
    rand = dpreg.datasets.load_randhie()
    result = dpreg.dp_select(
        rand.formula, rand.data, 1, delta=1e-6, schema=rand.schema, method="adaptive", unsafe_seed=1
    )
    assert {"lncoins", "idp", "lpi", "physlm", "disea"} <= set(result.selected)
    assert (result.nobs, result.passes) == (20_190, 5)


# ---- what is charged, and what is refused before ----


def test_looks_are_charged_as_dp_ols_charges_them():
    ledger = dpreg.Ledger(dpreg.Budget(5, "1e-5"))
    pure = chosen(eps=1, budget=ledger, fit="same")
    assert pure.budget[["step", "eps"]].to_numpy().tolist()[0] == ["looks 1-4", "1"]
    assert [float(look.share) for look in pure.releases] == [0.15, 0.2, 0.65]
    both = chosen(eps=1, delta="1e-6", budget=ledger, fit=None)
    assert both.budget["step"].tolist()[0] == "looks 1-4"
    assert [float(look.share) for look in both.releases] == [0.07, 0.15, 0.78]
    assert (str(pure.spent), str(both.spent)) == ("eps=1", "eps=1, delta=0.000001")
    assert ledger.spent.eps == 2


def test_bounds_that_are_bought_take_their_share():
    partly = {name: how for name, how in SCHEMA.items() if name != "a"}
    with pytest.warns(dpreg.errors.DpregWarning, match="leaves out a"):
        result = chosen(schema=partly, eps=4, shares={"bounds": "0.25"}, fit=None)
    assert result.budget["eps"].tolist()[0] == "1"
    assert result.budget["eps"].tolist()[1] == "3"
    assert result.spent.eps == 4
    assert result.bounds["a"] == "private"
    assert result.passes == 6


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"radius": 2}, "no radius"),
        ({"radius": "private"}, "no radius"),
        ({"penalty": "bic", "sigma2": 1}, "no penalty, sigma2"),
        ({"draws": 2}, "no draws"),
        ({"mechanism": "laplace"}, "no mechanism"),
        ({"engine": "tree"}, "no engine"),
        ({"shares": {"fit": "0.5"}, "fit": "same"}, r"no shares\['fit'\]"),
        ({"fit": "split"}, 'looks fit the chosen terms by fit="fresh"'),
        ({"fit": "split", "method": "auto"}, 'looks fit the chosen terms by fit="fresh"'),
        ({"shares": {"bounds": "0.5"}}, "bounds, which this call does not need"),
        ({"fit": "share"}, 'fit="fresh"'),
        ({"method": "pcls", "fit": "same"}, 'method="adaptive"'),
        ({"method": "pcls", "fit": "fresh"}, 'method="adaptive"'),
        ({"shares": {"fit": "0.3"}, "fit": "same"}, r"no shares\['fit'\]"),
        (
            {"data": table(50)},
            'need about .* the table has 50. .* use eps >= .* Use method="pcls"',
        ),
        ({"formula": "y ~ 1"}, "columns to look at"),
        ({"keep": ("nobody",)}, "nobody"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_charged(options, says, monkeypatch):
    monkeypatch.setattr(dpreg.looks.table, "read_moments", lambda *_: pytest.fail("a row was read"))
    ledger = dpreg.Ledger(5)
    with pytest.raises(ArgumentError, match=says):
        chosen(budget=ledger, **options)
    assert ledger.spent.eps == 0


def test_too_few_rows_and_a_short_ledger_are_refused_before_a_row_is_read(monkeypatch):
    monkeypatch.setattr(dpreg.looks.table, "read_moments", lambda *_: pytest.fail("a row was read"))
    ledger = dpreg.Ledger(1)
    with pytest.raises(ArgumentError, match=r"need about [0-9,]+ rows .* the table has 100. "):
        chosen(data=table(100), eps=1, budget=ledger)
    with pytest.raises(BudgetError):
        chosen(eps=2, budget=ledger)
    assert ledger.spent.eps == 0


def test_the_eps_that_a_refusal_names_is_enough():
    data = table(400)
    for delta in (0, 1e-6):
        with pytest.raises(ArgumentError) as refused:
            chosen(data=data, eps="0.5", delta=delta)
        needed = float(str(refused.value).split("eps >= ")[1].split(". ")[0])
        assert chosen(data=data, eps=1.1 * needed, delta=delta, fit=None).method == "adaptive"


def test_rows_that_can_be_read_once():
    stream = as_source(pa.Table.from_pandas(table()).to_reader(), hold=False)
    with pytest.raises(DataError, match="times"):
        chosen(data=stream)
    stream = as_source(pa.Table.from_pandas(table()).to_reader(), hold=False)
    result = chosen(data=stream, method="auto")
    assert result.method == "pcls"
    assert "can be read once" in result.notes[0]


# ---- "auto" ----


def test_auto_looks_where_rows_are_enough_and_says_why_where_not():
    assert (chosen(method="auto").method, chosen(method="auto").notes) == ("adaptive", ())
    few = chosen(data=table(300), eps=1, method="auto")
    assert (few.method, few.regression.fit) == ("pcls", "split")
    assert "need about" in few.notes[0]
    assert "the table has 300. With 300 rows use eps >=" in few.notes[0]
    assert "radius" in few.notes[1]
    assert "need about" in " ".join(str(few.summary(full=True)).split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"shares": {"fit": "0.4"}, "fit": "share"}, "only it takes shares['fit']"),
        ({"fit": "share"}, 'only it takes fit="share"'),
    ],
)
def test_what_only_the_paper_has_means_its_method(options, says):
    result = chosen(method="auto", **options)
    assert result.method == "pcls"
    assert says in result.notes[0]


def test_the_paper_by_name_has_no_level():
    result = dpreg.dp_select(FORMULA, table(500), 1, schema=SCHEMA, method="pcls")
    assert (result.method, result.regression.fit, result.notes) == ("pcls", "split", ())
    for name in ("level", "level_errors", "stability"):
        with pytest.raises(NotReleased, match=f"{name} needs .*adaptive"):
            getattr(result, name)
    with pytest.raises(NotReleased, match="see level"):
        chosen(fit=None).stability  # noqa: B018


# ---- what is shown and saved ----


def test_combinations_have_no_law_and_say_so():
    result = chosen(fit="same")
    for call in (lambda: result.t_test("a = 0"), result.cov_params, result.get_prediction):
        with pytest.raises(NotReleased, match="corrected for its choice"):
            call()
    with pytest.raises(NotReleased, match="of which some were not chosen"):
        result.predict(table(5))
    with pytest.raises(NotReleased, match="fit=None"):
        chosen(fit=None).params  # noqa: B018


def test_a_saved_result_is_the_same_number_for_number(tmp_path):
    for formula in (FORMULA, "y ~ a + b + copy"):
        result = chosen(formula, fit="same")
        result.save(tmp_path / "result.json")
        again = dpreg.load(tmp_path / "result.json")
        assert again.to_json() == result.to_json()
        assert again.conf_int(0.01).equals(result.conf_int(0.01))
        assert again.params.equals(result.params)
        assert again.level.equals(result.level)
        assert again.level_errors.equals(result.level_errors)
        assert again.alternatives == result.alternatives
        assert str(again.summary(full=True)) == str(result.summary(full=True))
        assert all(isinstance(look, ReleasedLook) for look in again.releases)


def test_the_summary_and_the_picture():
    result = chosen("y ~ a + b + copy", fit="same", unsafe_seed=1)
    text = " ".join(str(result.summary(full=True)).split())
    for words in (
        "Method: adaptive",
        "level",
        "explains more than chance would beside all other candidates at once",
        "look 3 to locate",
        "for the choice among 3",
    ):
        assert words in text
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for kind in ("frequencies", "coefficients"):
        assert result.plot(kind).get_title()
    labels = [text.get_text() for text in result.plot("frequencies").get_legend().get_texts()]
    assert "one of several" in labels
    pyplot.close("all")


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_fresh_coefficients_are_those_of_the_chosen_columns_wherever_they_stand(delta):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (20_000, 4))
    data = pd.DataFrame(x, columns=list("abcd"))
    data["y"] = np.clip(0.3 * data["c"] - 0.2 * data["d"] + rng.normal(0, 0.1, len(x)), -1, 1)
    found = dpreg.dp_select(
        "y ~ a + b + c + d", data, eps=2, delta=delta, fit="fresh", unsafe_seed=1,
        schema=dict.fromkeys("abcdy", (-1, 1)), method="adaptive",
    )  # fmt: skip
    assert found.selected == ["Intercept", "c", "d"]
    assert found.params["c"] == pytest.approx(0.3, abs=0.05)
    assert found.params["d"] == pytest.approx(-0.2, abs=0.05)
