"""dp_select end to end: real data, what is charged, what a result holds, what errors say."""

import json
import pickle
import re
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import (
    ArgumentError,
    BudgetError,
    DataError,
    DpregError,
    DpregWarning,
    FormulaError,
    NotReleased,
    SchemaError,
)
from dpreg.selection import run
from dpreg.sources import LocalSource

SCHEMA = {"a": (-1, 1), "b": (-1, 1), "g": ["u", "v", "w"], "y": (-2, 2)}
FORMULA = "y ~ a + b + g"


def table(n: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n))
    return pd.DataFrame(
        {"a": a, "b": b, "g": rng.choice(["u", "v", "w"], n), "y": a + rng.normal(0, 0.2, n)}
    )


class Unread(LocalSource):
    """A table whose rows raise when they are read or counted."""

    names = ("a", "b", "g", "y")
    rows = None

    def kind(self, name: str) -> str:
        return "string" if name == "g" else "numeric"

    def count(self) -> int:
        raise AssertionError("a row was read")

    def _pieces(self, columns: object, size: int) -> object:
        raise AssertionError("a row was read")
        yield


# ---- real data, in the README's manner ----


def test_randhie_prints_a_summary_of_512_models() -> None:
    rand = dpreg.datasets.load_randhie()
    result = dpreg.dp_select(rand.formula, rand.data, eps=1, schema=rand.schema, method="pcls")
    assert result.n_models == 512
    text = str(result.summary(full=True))
    for said in ("permute-and-flip", "replace-one", "20,190", "512", "enumerate", "Radius"):
        assert said in text


@pytest.mark.usefixtures("data_folder")
def test_king_county_lists_4096_models() -> None:
    kc = dpreg.datasets.load_kc_house()
    result = dpreg.dp_select(kc.formula, kc.data, eps=1, schema=kc.schema)
    assert result.n_models == 4096
    seeded = {"schema": kc.schema, "unsafe_seed": 1}
    assert "sqft_living" in dpreg.dp_select(kc.formula, kc.data, 50, **seeded).selected
    papers = dpreg.dp_select(kc.formula, kc.data, 50, method="pcls", **seeded)
    assert "sqft_living" in papers.selected


@pytest.mark.usefixtures("data_folder")
def test_prostate_has_32_models_and_64_without_the_kept_intercept() -> None:
    men = dpreg.datasets.load_prostate()
    assert dpreg.dp_select(men.formula, men.data, eps=1, schema=men.schema).n_models == 32
    papers = dpreg.dp_select(
        men.formula,
        men.data,
        eps=1,
        schema=men.schema,
        keep=(),
        fit=None,
        method=dpreg.Auto(center=False),
    )
    assert papers.n_models == 64
    assert papers.candidates[0] == "Intercept"


def test_a_strong_term_is_found_and_useless_ones_are_not() -> None:
    sure = {"false_inclusions": "1e-9", "unsafe_seed": 1}
    result = dpreg.dp_select(FORMULA, table(20_000), eps=5, schema=SCHEMA, **sure)
    assert result.selected == ["Intercept", "a"]
    assert result.selected_formula == "y ~ a"
    assert result.params["a"] == pytest.approx(1, abs=0.2)
    assert result.selection_frequencies.to_dict() == {"a": 1.0, "b": 0.0, "g": 0.0}


# ---- the budget ----


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({"fit": None}, ["selection"]),
        ({}, ["selection", "coefficients"]),
        ({"fit": "share"}, ["selection", "coefficients"]),
        (
            {"radius": "private", "sigma2": "private", "fit": None},
            ["radius", "residual variance", "selection"],
        ),
        (
            {"method": "pcpl", "delta": 1e-6, "neighbors": "add-remove", "fit": None},
            ["number of rows", "bound on the residuals", "selection"],
        ),
        ({"draws": 7, "delta": 1e-6, "fit": "share"}, ["selection", "coefficients"]),
    ],
)
def test_the_budget_table_sums_to_what_was_asked(arguments: dict, steps: list[str]) -> None:
    result = dpreg.dp_select(FORMULA, table(), eps=0.3, schema=SCHEMA, **arguments)
    assert result.budget["step"].tolist() == steps
    assert result.spent.eps == Fraction(3, 10)
    assert result.spent.delta == Fraction(str(arguments.get("delta", 0)))


def test_the_bare_call_buys_bounds_and_sums_to_exactly_one() -> None:
    rand = dpreg.datasets.load_randhie()
    with pytest.warns(DpregWarning, match=r"leaves out .*lncoins.* bought"):
        result = dpreg.dp_select(rand.formula, rand.data, eps=1, fit=None, method="pcls")
    assert sum(Fraction(eps) for eps in result.budget["eps"]) == 1
    assert set(result.bounds.values()) == {"private"}
    assert len(result.budget) == 11


def test_halves_compose_in_parallel() -> None:
    result = dpreg.dp_select(FORMULA, table(), eps=1, schema=SCHEMA, method="pcls")
    assert result.budget["eps"].tolist() == ["1", "1"]
    assert result.budget["rows"].tolist() == ["half 1", "half 2"]
    assert result.spent.eps == 1


class UnreadButCounted(Unread):
    """One that knows how many rows it has, as data frames and Parquet files do."""

    rows = 20_000


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (Unread(), {"method": "pcls"}),
        (UnreadButCounted(), {}),
        (Unread(), {"neighbors": "add-remove"}),
    ],
)
def test_the_ledger_is_charged_before_a_row_is_read(data: Unread, options: dict) -> None:
    ledger = dpreg.Ledger(1)
    with pytest.raises(AssertionError, match="a row was read"):
        dpreg.dp_select(FORMULA, data, eps=0.4, schema=SCHEMA, budget=ledger, **options)
    assert ledger.spent.eps == Fraction(2, 5)
    with pytest.raises(BudgetError):
        dpreg.dp_select(FORMULA, data, eps=0.7, schema=SCHEMA, budget=ledger, **options)
    assert ledger.spent.eps == Fraction(2, 5)


def _order_of_events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    order: list[str] = []
    read, select = run.read_rows, run.select
    monkeypatch.setattr(run, "read_rows", lambda *a: (order.append("read"), read(*a))[1])
    monkeypatch.setattr(run, "select", lambda *a, **k: (order.append("draw"), select(*a, **k))[1])
    ledger = dpreg.Ledger(1)
    monkeypatch.setattr(type(ledger), "charge", lambda _, *a, **k: order.append("charge"))
    dpreg.dp_select(FORMULA, table(), eps=1, schema=SCHEMA, budget=ledger, method="pcls")
    return order


def test_charge_then_read_then_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _order_of_events(monkeypatch) == ["charge", "read", "draw"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"eps": 0}, ArgumentError, "eps"),
        ({"eps": float("nan")}, DpregError, "eps"),
        ({"eps": True}, ArgumentError, "eps"),
        ({"delta": 1}, BudgetError, "delta"),
        ({"method": "lasso"}, ArgumentError, "'pcls', 'pcpl'"),
        ({"mechanism": "gumbel"}, ArgumentError, "mechanism"),
        ({"neighbors": "swap"}, ArgumentError, "replace-one"),
        ({"contributions": 0}, ArgumentError, "contributions"),
        ({"contributions": 1.5}, ArgumentError, "contributions"),
        ({"units": "factor"}, ArgumentError, "units"),
        ({"keep": "Intercept"}, ArgumentError, r"\(.Intercept.,\)"),
        ({"keep": ("lat",)}, ArgumentError, "lat"),
        ({"max_terms": -1}, ArgumentError, "max_terms"),
        ({"hierarchy": "weak"}, ArgumentError, "hierarchy"),
        ({"radius": 0}, ArgumentError, "radius"),
        ({"radius": "big"}, ArgumentError, "radius"),
        ({"clip": 1.5}, ArgumentError, "clip"),
        ({"center": 1}, ArgumentError, "center"),
        ({"penalty": -1}, ArgumentError, "penalty"),
        ({"penalty": "aic"}, ArgumentError, "penalty"),
        ({"penalty": "bic"}, ArgumentError, "sigma2"),
        ({"sigma2": 0}, ArgumentError, "sigma2"),
        ({"false_inclusions": 0}, ArgumentError, "false_inclusions"),
        ({"shares": {"lunch": 0.1}}, ArgumentError, "lunch"),
        ({"shares": {"radius": 0.1}}, ArgumentError, "does not need"),
        ({"radius": "private", "shares": {"radius": 1}}, ArgumentError, "less than 1"),
        ({"draws": 0}, ArgumentError, "draws"),
        ({"fit": "all"}, ArgumentError, "fit"),
        ({"engine": "gpu"}, ArgumentError, "engine"),
        ({"engine": "tree", "mechanism": "laplace"}, ArgumentError, "permute-and-flip"),
        ({"method": "pcpl"}, ArgumentError, "delta"),
        ({"unsafe_seed": -1}, ArgumentError, "unsafe_seed"),
        ({"formula": 3}, ArgumentError, "formula"),
        ({"formula": "y ~ center(a)"}, FormulaError, "center"),
        ({"formula": "y ~ lat"}, FormulaError, "lat"),
        ({"schema": {"y": (0, 0)}}, SchemaError, "y"),
        ({"schema": {"y": (0, 1), "a": (0, 1), "b": (0, 1)}}, SchemaError, "levels"),
        ({"formula": "y ~ np.log(a)"}, SchemaError, "a"),
        ({"formula": "y ~ np.log(a)", "schema": {"y": (0, 1)}}, SchemaError, "declare"),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged_or_read(
    change: dict, error: type[Exception], says: str
) -> None:
    ledger = dpreg.Ledger(10)
    call = {"formula": FORMULA, "data": Unread(), "eps": 1, "schema": SCHEMA, "budget": ledger}
    with pytest.raises(error, match=says) as caught:
        dpreg.dp_select(**{**call, **change})
    assert isinstance(caught.value, DpregError)
    assert ledger.spent.eps == 0


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(DataError, match="'g'"):
        dpreg.dp_select(FORMULA, table().drop(columns="g"), eps=1, schema=SCHEMA)


# ---- what a result holds ----

SECRET = 0.8127391823


def _secret_table() -> pd.DataFrame:
    data = table()
    data.loc[3, ["a", "b", "y"]] = SECRET
    data["g"] = data["g"].astype(object)
    data.loc[3, "g"] = "Mallory-Secret"
    return data


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"fit": None, "engine": "tree"},
        {"delta": 1e-6, "draws": 3, "radius": "private", "sigma2": "private"},
        {"method": "pcpl", "delta": 1e-6, "neighbors": "add-remove"},
        {"method": "pcls", "fit": "share", "neighbors": "add-remove"},
    ],
)
def test_no_row_value_is_in_a_result(arguments: dict) -> None:
    # Seeded, as a private number may happen to read 500, too.
    seeded = {"unsafe_seed": 3, **arguments}
    result = dpreg.dp_select(FORMULA, _secret_table(), eps=1, schema=SCHEMA, **seeded)
    summary = result.summary()
    views = [
        repr(result),
        str(result),
        summary.as_html(),
        summary.as_latex(),
        summary.as_csv(),
        str(result.summary(full=True)),
        result.to_json(),
        pickle.dumps(result).decode("latin-1"),
        result.privacy,
    ]
    for view in views:
        assert "Mallory" not in view
        assert "0.81273918" not in view
        assert SECRET.hex()[4:12] not in view
    if result.neighbors == "add-remove":
        assert result.nobs is None
        assert result.regression.nobs is None
        assert not any(re.search(r"(?<![\d.])500\b", view) for view in views[:6])


def test_round_trips_and_prediction_from_a_file(tmp_path: pytest.TempPathFactory) -> None:
    result = dpreg.dp_select(FORMULA, table(5000), 5, delta=1e-6, schema=SCHEMA, unsafe_seed=1)
    assert "a" in result.selected
    path = tmp_path / "result.json"
    result.save(path)
    loaded = dpreg.load(path)
    assert loaded == result
    assert pickle.loads(pickle.dumps(result)) == result
    new = table(4, seed=9).set_index(pd.Index(["p", "q", "r", "s"]))
    new.loc["q", "a"] = np.nan
    predicted = loaded.predict(new)
    pd.testing.assert_series_equal(predicted, result.predict(new))
    assert predicted.index.tolist() == ["p", "q", "r", "s"]
    assert np.isnan(predicted["q"])
    assert json.loads(path.read_text())["dpreg"]


def test_without_a_fit_coefficients_are_refused_with_the_mend() -> None:
    result = dpreg.dp_select(FORMULA, table(), eps=1, schema=SCHEMA, fit=None)
    with pytest.raises(NotReleased, match="fit"):
        _ = result.params
    for name in ("resid", "fittedvalues"):
        with pytest.raises(NotReleased, match="not released"):
            getattr(result, name)


def test_a_choice_of_no_columns_can_be_printed_saved_and_loaded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"])
    schema = dict.fromkeys("aby", (-3, 3))
    found = [
        dpreg.dp_select(
            "y ~ a + b - 1", data, eps="1e-3", schema=schema, neighbors="add-remove", fit="split",
            method="pcls", unsafe_seed=seed,
        )
        for seed in range(4)
    ]  # fmt: skip
    empty = [one for one in found if one.regression is not None and not len(one.params)]
    assert empty
    for one in empty:
        assert str(one) == str(pickle.loads(pickle.dumps(one)))
        one.save(tmp_path / "none.json")
        assert dpreg.load(tmp_path / "none.json").to_json() == one.to_json()


def test_a_seed_repeats_and_stamps() -> None:
    call = {"formula": FORMULA, "data": table(), "eps": 1, "schema": SCHEMA, "unsafe_seed": 7}
    one, two = dpreg.dp_select(**call), dpreg.dp_select(**call)
    assert one == two
    assert "NOT PRIVATE: seeded" in str(one.summary())
    assert "NOT PRIVATE: seeded" in one.privacy
    assert one != dpreg.dp_select(**{**call, "unsafe_seed": 8})


def test_without_a_seed_numpys_generators_stay_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("privacy noise from NumPy")

    data = table()
    monkeypatch.setattr("numpy.random.default_rng", forbidden)
    monkeypatch.setattr("numpy.random.Generator", forbidden)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002 - that it is not used is the point
    for engine in ("enumerate", "tree"):
        dpreg.dp_select(FORMULA, data, 1, schema=SCHEMA, fit=None, method=dpreg.PCLS(engine=engine))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize(
    ("rows", "neighbors"),
    [(0, "add-remove"), (1, "replace-one"), (1, "add-remove"), (2, "replace-one")],
)
@pytest.mark.parametrize("kind", [dpreg.PCLS, dpreg.PCPL])
def test_hardly_any_rows_still_give_a_result(
    rows: int, neighbors: str, kind: type[dpreg.PCLS]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for engine in ("enumerate", "tree"):
            result = dpreg.dp_select(
                FORMULA,
                table(rows),
                eps=1,
                delta=1e-6,
                schema=SCHEMA,
                method=kind(engine=engine, radius="private", sigma2="private"),
                neighbors=neighbors,
            )
            assert len(result.summary(full=True).as_text()) > 100


@pytest.mark.parametrize("units", ["term", "column"])
@pytest.mark.parametrize("max_terms", [0, 1, None])
def test_units_and_max_terms(units: str, max_terms: int | None) -> None:
    result = dpreg.dp_select(
        FORMULA, table(), eps=1, schema=SCHEMA, units=units, max_terms=max_terms
    )
    free = 3 if units == "term" else 4
    sizes = {0: 1, 1: 1 + free, None: 2**free}
    assert result.n_models == sizes[max_terms]
    assert len(result.selected) - 1 <= (free if max_terms is None else max_terms)


def test_strong_hierarchy_never_selects_an_interaction_alone() -> None:
    result = dpreg.dp_select(
        "y ~ a * b",
        table(),
        eps=0.01,
        schema=SCHEMA,
        hierarchy="strong",
        fit=None,
        method=dpreg.PCLS(draws=40),
    )
    assert result.n_models == 5
    for model in result.models:
        assert "a:b" not in model or {"a", "b"} <= set(model)
