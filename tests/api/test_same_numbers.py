"""One table in every form, and its rows in another order, gives the same JSON but for its time.

Where nobody knows the number of rows beforehand, as of text, it is counted after the charge, if it
is public; so the method is the one that a frame takes, too.
"""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import DpregWarning
from dpreg.sources import as_source

pa = pytest.importorskip("pyarrow")

ROWS = 9000
SCHEMA = {"x": (-3, 3), "k": (0, 9), "g": ["u", "v"], "b": bool}
BARE = {name: how for name, how in SCHEMA.items() if name != "k"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:the schema leaves out"),
    pytest.mark.filterwarnings("ignore:.*Intervals may be missing"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("same")
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=ROWS), rng.choice(["u", "v", "w"], ROWS)
    rows = pd.DataFrame({"x": x, "k": rng.integers(0, 10, ROWS).astype(float), "g": g})
    rows["b"] = rng.random(ROWS) < 1 / (1 + np.exp(-x))
    rows["who"] = rng.integers(0, ROWS // 3, ROWS)
    rows.loc[::50, "k"] = np.nan
    rows.to_csv(made / "rows.csv", index=False)
    for place, part in enumerate((rows[:4000], rows[4000:])):
        part.to_csv(made / f"part-{place}.csv.gz", index=False)
    rows.to_parquet(made / "rows.parquet", row_group_size=2000)
    return made


def frame(folder):
    return pd.read_csv(folder / "rows.csv")


def arrow(folder):
    return pa.Table.from_pandas(frame(folder))


def dataset(folder):
    return pytest.importorskip("pyarrow.dataset").dataset(folder / "rows.parquet")


def relation(folder):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(f"select * from '{folder}/rows.parquet'")


def chunks(folder):
    rows = frame(folder)
    return lambda: (rows[start : start + 1999] for start in range(0, ROWS, 1999))


SHUFFLED = {
    "shuffled": lambda folder: frame(folder).sample(frac=1, random_state=1),
    "shuffled CSV": lambda folder: str(folder / "part-*.csv.gz"),
}
FORMS = {
    "Parquet": lambda folder: folder / "rows.parquet",
    "CSV": lambda folder: folder / "rows.csv",
    "CSV, not held": lambda folder: as_source(folder / "rows.csv", hold=False),
    "Arrow": arrow,
    "stream": lambda folder: arrow(folder).to_reader(777),
    "Dataset": dataset,
    "Polars": lambda folder: pytest.importorskip("polars").from_arrow(arrow(folder)),
    "DuckDB": relation,
    "function": chunks,
}

OLS = {
    "looks": {"eps": 1},
    "looks with delta": {"eps": 1, "delta": 1e-6},
    "too few rows": {"eps": 0.01},
    "too few rows, pure noise with delta": {
        "eps": 0.001,
        "delta": 1e-6,
        "noise": "matrix-laplace",
    },
    "enough rows, pure noise with delta": {"eps": 1, "delta": 1e-6, "noise": "matrix-laplace"},
    "too few rows, bounds bought": {"eps": 0.01, "schema": BARE},
    "bounds bought": {"eps": 1, "schema": BARE},
    "adaptive": {"eps": 1, "method": "adaptive"},
    "gram": {"eps": 1, "method": "gram"},
    "objective": {"eps": 1, "method": "objective"},
    "adassp": {"eps": 1, "delta": 1e-6, "method": "adassp"},
    "add-remove": {"eps": 1, "neighbors": "add-remove"},
    "persons": {"eps": 1, "person": "who"},
    "persons, bounds bought": {"eps": 1, "person": "who", "schema": BARE},
}
GLM = {
    "looks": {"eps": 1, "delta": 1e-6},
    "too few rows": {"eps": 0.01},
    "persons, bounds bought": {"eps": 1, "person": "who", "schema": BARE},
}
SELECT = {
    "looks": {"eps": 1},
    "looks with delta": {"eps": 1, "delta": 1e-6, "fit": "same"},
    "bounds bought": {"eps": 1, "schema": BARE},
    "add-remove": {"eps": 1, "neighbors": "add-remove"},
    "persons, bounds bought": {"eps": 1, "person": "who", "schema": BARE},
    "too few rows": {"eps": 0.01, "fit": "fresh"},
    "too few rows, with delta": {"eps": 0.01, "delta": 1e-6, "fit": "fresh"},
    "too few rows, bounds bought": {"eps": 0.01, "schema": BARE, "fit": "fresh"},
    "too few rows, add-remove": {"eps": 0.01, "neighbors": "add-remove", "fit": "fresh"},
}
"""Without halves of the rows: where there is a seed, they go by the order of the rows."""
CALLS = {
    **{
        f"dp_ols, {name}": lambda data, told=told: dpreg.dp_ols(
            "x ~ k + g", data, **{"schema": SCHEMA, "unsafe_seed": 1, **told}
        )
        for name, told in OLS.items()
    },
    **{
        f"dp_glm, {name}": lambda data, told=told: dpreg.dp_glm(
            "b ~ x + k", data, **{"schema": SCHEMA, "unsafe_seed": 1, **told}
        )
        for name, told in GLM.items()
    },
    **{
        f"dp_select, {name}": lambda data, told=told: dpreg.dp_select(
            "x ~ k + g", data, **{"schema": SCHEMA, "unsafe_seed": 1, **told}
        )
        for name, told in SELECT.items()
    },
    "dp_select, a family": lambda data: dpreg.dp_select(
        "b ~ x + k", data, 1, family="binomial", schema=SCHEMA, unsafe_seed=1
    ),
    "dp_mean": lambda data: dpreg.dp_mean(
        ["x", "k"], data, eps=1, schema=SCHEMA, by="g", unsafe_seed=1
    ),
    "dp_quantile": lambda data: dpreg.dp_quantile(
        "x", [0.1, 0.5], data, eps=1, schema=SCHEMA, unsafe_seed=1
    ),
    "dp_histogram": lambda data: dpreg.dp_histogram("x", data, eps=1, schema=SCHEMA, unsafe_seed=1),
    "dp_suffstats": lambda data: dpreg.dp_suffstats(
        ["x", "k"], data, eps=1, schema=SCHEMA, unsafe_seed=1
    ),
}


def told(result):
    """Return all that a result holds but the record of when it was made."""
    return json.loads(result.to_json()) | {"record": None}


@pytest.fixture(scope="module")
def expected(folder):
    found = {}

    def of(call):
        if call not in found:
            found[call] = told(CALLS[call](frame(folder)))
        return found[call]

    return of


@pytest.mark.parametrize("form", [*SHUFFLED, *FORMS])
@pytest.mark.parametrize("call", CALLS)
def test_the_same_table_gives_the_same_numbers(call, form, folder, expected):
    data = (SHUFFLED | FORMS)[form](folder)
    assert told(CALLS[call](data)) == expected(call)


def test_calls_take_what_their_names_say(expected):
    methods = {call: expected(call).get("method") for call in CALLS if call.startswith("dp_ols")}
    assert {call for call, method in methods.items() if method == "gram"} == {
        "dp_ols, too few rows",
        "dp_ols, too few rows, pure noise with delta",
        "dp_ols, too few rows, bounds bought",
        "dp_ols, gram",
    }
    assert "the table has 9,000" in expected("dp_ols, too few rows")["notes"][0]


def test_one_row_more_is_seen(folder, expected):
    """So the comparison can fail."""
    more = pd.concat([frame(folder), frame(folder)[:1]])
    assert told(CALLS["dp_ols, looks"](more)) != expected("dp_ols, looks")


@pytest.mark.parametrize("form", ["CSV", "function", "DuckDB"])
def test_rows_are_counted_after_the_charge(form, folder):
    data = FORMS[form](folder)
    ledger = dpreg.Ledger("0.005")
    with pytest.raises(dpreg.errors.BudgetError):
        dpreg.dp_ols("x ~ k + g", unread(data), 0.01, schema=SCHEMA, budget=ledger)
    with pytest.raises(dpreg.errors.BudgetError):
        dpreg.dp_glm("b ~ x", unread(data), 0.01, schema=SCHEMA, budget=ledger)


@pytest.mark.parametrize("form", ["frame", "CSV"])
@pytest.mark.parametrize("unit", [{}, {"neighbors": "add-remove"}])
def test_a_choice_among_few_rows_says_how_it_was_fitted(unit, form, folder, tmp_path):
    data = frame(folder)[:30]
    if form == "CSV":
        data.to_csv(tmp_path / "few.csv", index=False)
        data = tmp_path / "few.csv"
    chosen = dpreg.dp_select("x ~ k + g", data, 0.4, schema=SCHEMA, unsafe_seed=1, **unit)
    assert (chosen.method, chosen.regression.fit) == ("pcls", "split")
    assert chosen.notes[0].endswith('(fit="split").')
    assert ".." not in chosen.notes[0]


@pytest.mark.parametrize("unit", [{"neighbors": "add-remove"}, {"person": "who"}])
def test_a_private_number_of_rows_is_not_counted(unit, folder):
    """Of rows that are too few for their eps, where nobody may know that they are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpregWarning)
        for data in (folder / "rows.csv", frame(folder)):
            fit = dpreg.dp_ols("x ~ k", data, 0.001, schema=SCHEMA, **unit)
            assert (fit.method, fit.nobs) == ("adaptive", None)
            assert dpreg.dp_glm("b ~ x", data, 0.001, schema=SCHEMA, **unit).nobs is None
            assert chosen_of("b ~ x + k", data, family="binomial", **unit).nobs is None
            assert chosen_of("x ~ k", data, **unit).budget["step"][0] == "number of rows"
    for data in (folder / "rows.csv", frame(folder)):
        assert "number of rows" not in chosen_of("x ~ k", data).budget["step"].tolist()


def chosen_of(formula, data, **more):
    return dpreg.dp_select(formula, data, 0.001, schema=SCHEMA, **more)


def unread(data):
    """Return a table that fails when a row is read or counted."""
    source = as_source(data)

    def fail(*_, **__):
        raise AssertionError("a row was read")

    made = type("Unread", (type(source),), {"_pieces": fail, "count": fail})
    source.__class__ = made
    return source


@pytest.mark.parametrize("form", ["frame", "CSV"])
def test_too_few_rows_for_a_glm_are_told(form, folder):
    data = frame(folder) if form == "frame" else FORMS[form](folder)
    with pytest.warns(DpregWarning, match="the table has 9,000.*Terms may be missed"):
        dpreg.dp_select("b ~ x + k", data, 0.01, family="binomial", schema=SCHEMA)
    with pytest.warns(DpregWarning, match="the table has 9,000.*Intervals may be missing"):
        dpreg.dp_glm("b ~ x + k", data, 0.01, schema=SCHEMA)


@pytest.mark.parametrize("form", ["frame", "CSV"])
def test_wide_factors_are_told_where_one_release_is_made(form, tmp_path):
    rows = pd.DataFrame({"x": np.zeros(500), "g": np.arange(500) % 30})
    rows.to_csv(tmp_path / "wide.csv", index=False)
    data = rows if form == "frame" else tmp_path / "wide.csv"
    schema = {"x": (0, 1), "g": {"levels": list(range(30))}}
    with pytest.warns(DpregWarning, match="g has 30 levels for 500 rows"):
        fit = dpreg.dp_ols("x ~ g", data, 1, schema=schema)
    assert fit.method == "gram"
    assert "needs about" in fit.notes[0] or "need about" in fit.notes[0]
