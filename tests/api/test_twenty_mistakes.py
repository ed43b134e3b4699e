"""Mistakes that public facts give away: what each error says, and that nothing was charged."""

import datetime

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import DpregError
from dpreg.privacy.ledger import Ledger
from dpreg.schema import Schema

SCHEMA = {"price": (0, 900), "age": (0, 120), "rooms": (1, 12), "town": ["ash", "elm", "oak"]}


def table(rows=500):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"age": rng.uniform(0, 120, rows), "rooms": rng.integers(1, 13, rows)})
    frame["town"] = rng.choice(["ash", "elm", "oak"], rows)
    frame["sold"] = pd.Timestamp("2024-01-31")
    return frame.assign(price=100 + 3 * frame["age"] + rng.normal(0, 9, rows))


def ols(formula="price ~ age + rooms + town", data=None, **changes):
    options = {"eps": 1, "schema": SCHEMA, **changes}
    return lambda **o: dpreg.dp_ols(formula, table() if data is None else data, **options, **o)


def select(formula="price ~ age + rooms + town", data=None, **changes):
    options = {"eps": 1, "schema": SCHEMA, **changes}
    return lambda **o: dpreg.dp_select(formula, table() if data is None else data, **options, **o)


def mean(x="age", data=None, **changes):
    options = {"eps": 1, **changes}
    return lambda **o: dpreg.dp_mean(x, table() if data is None else data, **options, **o)


def but(**changes):
    return {**SCHEMA, **changes}


MISTAKES = {
    "a schema's key that names no column": (
        ols(schema={"price": (0, 900), "agee": (0, 120)}),
        r"the schema declares 'agee', and the table has no column 'agee'; did you mean 'age'\?",
    ),
    "the same in another case": (
        select(schema={"price": (0, 900), "Age": (0, 120)}),
        r"the schema declares 'Age', and .*did you mean 'age'\?",
    ),
    "a formula's name that is no column": (
        ols("price ~ agge"),
        r"'agge' is neither a declared column nor one of the table's; did you mean 'age'\?",
    ),
    "a column of dp_mean that is none": (
        mean("aeg", bounds=(0, 120)),
        r"the table has no column 'aeg'; did you mean 'age'\?",
    ),
    "bounds of a column that is none": (
        mean(bounds={"agee": (0, 1)}),
        r"bounds names 'agee', which is not a column of this call; did you mean 'age'\?",
    ),
    "a kept term that is none": (
        select(keep=("Intercept", "towm")),
        r"keep: 'towm' is not a term; did you mean 'town'\?",
    ),
    "bounds typed as text": (
        ols(schema=but(age=["0", "120"])),
        r"column 'age': two numbers in quotes: write \(0, 120\) if they are bounds, or "
        r"\{\"levels\": \['0', '120'\]\} if they are labels",
    ),
    "bounds that are dates": (
        ols("price ~ sold", schema=but(sold=["2020-01-01", "2024-12-31"])),
        r"column 'sold': two dates: make a number of the column, such as days since",
    ),
    "bounds that are date objects": (
        ols("price ~ sold", schema=but(sold=(datetime.date(2020, 1, 1), pd.Timestamp(0)))),
        r"column 'sold': bounds cannot be dates: make a number of the column",
    ),
    "a column of dates that nobody declared": (
        ols("price ~ sold"),
        r"'sold' holds dates or times",
    ),
    "a text column that nobody declared": (
        ols("price ~ town", schema={"price": (0, 900)}),
        r"'town'.* declare its levels in the schema",
    ),
    "a bound that is None": (
        mean(bounds=(0, None)),
        r"bounds of 'age': a bound is None: both the lowest and the highest value must be given",
    ),
    "a declared bound that is None": (
        ols(schema=but(age=(0, None))),
        r"column 'age': a bound is None",
    ),
    "bounds the wrong way round": (
        ols(schema=but(age=(120, 0))),
        r"column 'age': the lower bound must be below the upper bound",
    ),
    "the response on the right": (
        ols("price ~ age + np.log(price + 1)"),
        r"'price' is the response, so it cannot stand on the right-hand side too",
    ),
    "no rows": (
        select(data=table(0)),
        r"the table has no rows",
    ),
    "no rows to take a mean of": (
        mean(data=table(0), bounds=(0, 120)),
        r"the table has no rows",
    ),
    "fewer rows than coefficients": (
        ols(data=table(4), method="gram"),
        r"4 rows cannot determine 5 coefficients: use fewer terms",
    ),
    "a variable of the calling program": (
        ols("price ~ np.log(my_constant)"),
        r"variables of the calling program are not seen",
    ),
    "an eps of nothing": (ols(eps=0), r"eps must be above 0; got 0"),
    "a delta without a release that could be": (ols(delta=1), r"delta must lie in \[0, 1\)"),
    "a method that is none": (ols(method="lasso"), r"method must be one of .* got 'lasso'"),
    "a grouping column without levels": (
        mean(by="rooms", bounds=(0, 120)),
        r"by='rooms' needs declared levels",
    ),
    "levels that are twice the same": (
        ols(schema=but(town=["ash", "elm", "ash"])),
        r"column 'town': levels 1 and 3 are the same",
    ),
}


@pytest.mark.parametrize(("call", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_and_nothing_is_charged(call, says):
    ledger = Ledger(dpreg.Budget(10, "1e-3"))
    with pytest.raises(DpregError, match=says):
        call(budget=ledger)
    assert ledger.spent == dpreg.Budget(0)
    assert not ledger.entries


def test_the_same_calls_without_a_mistake_are_charged():
    for call in (ols(), select(), mean(bounds=(0, 120))):
        ledger = Ledger(10)
        call(budget=ledger)
        assert ledger.spent == dpreg.Budget(1)


@pytest.mark.parametrize(
    "given",
    [
        lambda f: [f / "a.csv", f / "b.csv", f / "a.csv"],
        lambda f: [f / "*.csv", f / "b.csv"],
        lambda f: [f, f / "a*.csv"],
        lambda f: [f / "a.csv", f / "link.csv"],
    ],
    ids=["in a list", "by a glob", "by a folder", "by a link"],
)
def test_a_file_that_is_named_twice(tmp_path, given):
    table().to_csv(tmp_path / "a.csv", index=False)
    table().to_csv(tmp_path / "b.csv", index=False)
    paths = given(tmp_path)
    if "link" in str(paths):
        (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    ledger = Ledger(10)
    with pytest.raises(DpregError, match=r"is the same file as .*name each file once"):
        dpreg.dp_mean("age", paths, bounds=(0, 120), eps=1, budget=ledger)
    assert not ledger.entries
    assert dpreg.dp_mean("age", [tmp_path / "a.csv", tmp_path / "b.csv"], bounds=(0, 120), eps=1)


def test_a_lazy_frame():
    polars = pytest.importorskip("polars")
    ledger = Ledger(10)
    with pytest.raises(DpregError, match=r"data is a LazyFrame.*call \.collect\(\)"):
        ols(data=polars.LazyFrame({"price": [1.0], "age": [2.0]}))(budget=ledger)
    assert not ledger.entries


def test_column_names_that_are_numbers():
    with pytest.raises(DpregError, match=r"column names that are not text.*map\(str\)"):
        Schema.skeleton(pd.DataFrame({0: [1.0], 1: [2.0]}))


def test_declarations_that_the_table_contradicts_are_told_to_whoever_asks():
    """The table's kinds are not public, so a call says nothing of them; the curator may ask."""
    declared = Schema({**SCHEMA, "town": (0, 10), "sold": (0, 10), "age": ["young", "old"]})
    found = declared.doubts(table())
    assert found == (
        "column 'age' is declared with levels of text, and the table holds numbers",
        "column 'town' is declared as a number, and the table holds text or labels",
        "column 'sold' is declared as a number, and the table holds dates: make a number of the "
        "column, such as days since a fixed day "
        "((x - pd.Timestamp('2000-01-01')).dt.days), and declare the bounds of that number",
    )
    assert Schema(SCHEMA).doubts(table()) == ()
    assert Schema({"agee": (0, 1)}).doubts(table()) == (
        "the table has no column 'agee'; did you mean 'age'?",
    )


def test_one_codebook_serves_tables_that_lack_some_of_its_columns():
    book = {**SCHEMA, "income": (0, 1e6), "ages": (0, 9), "village": ["a", "b"]}
    for call in (ols(schema=book), select(schema=book), mean(schema=book)):
        assert call()
    assert Schema(book).doubts(table()) == ()
    with pytest.raises(DpregError, match="no column 'income'"):
        ols("price ~ income", schema=book)()


def test_a_truth_is_an_outcome_of_zeros_and_ones():
    data = table(4000).assign(old=lambda d: d["age"] > 60)
    given = {"eps": 50, "delta": 1e-6, "unsafe_seed": 4}
    bool_ = dpreg.dp_ols("old ~ age", data, schema={**SCHEMA, "old": bool}, **given)
    made = dpreg.dp_ols("I(age > 60) ~ rooms", data, schema=SCHEMA, **given)
    data["old"] = data["old"] * 1.0
    number = dpreg.dp_ols("old ~ age", data, schema={**SCHEMA, "old": (0, 1)}, **given)
    assert bool_.params.equals(number.params)
    assert bool_.bse.equals(number.bse)
    assert abs(made.params.iloc[0] - data["old"].mean()) < 0.1
    assert bool_.predict({"age": [30.0]}).iloc[0] < 0.4


def test_the_curator_is_told_where_progress_is_and_nobody_else(capsys):
    wrong = {**SCHEMA, "town": (0, 10)}
    call = ols("price ~ age + town", schema=wrong, method="gram")
    said = "does the schema say what is meant? column 'town' is declared as a number"
    fit = call(progress=True)
    assert capsys.readouterr().err.count(said) == 1
    assert "town holds" not in fit.to_json()
    assert not any("what is meant" in note for note in fit.notes)
    call(progress=False)
    assert "what is meant" not in capsys.readouterr().err
    people = table().assign(who=range(500))
    outcome = "I(1 * (price > 200)) ~ town"
    dpreg.dp_glm(outcome, people, 9, schema=wrong, person="who", progress=True)
    assert capsys.readouterr().err.count(said) == 1


@pytest.mark.parametrize("method", ["auto", "adaptive", "pcls"])
def test_a_choice_tells_once_what_the_table_contradicts(method, capsys):
    rows = pd.DataFrame({"y": np.linspace(0, 1, 200), "town": "elm", "x": np.linspace(1, 0, 200)})
    told = {"schema": {"y": (0, 1), "x": (0, 1), "town": (0, 9)}, "fit": None, "progress": True}
    dpreg.dp_select("y ~ x + town", rows, 1, method=method, unsafe_seed=1, **told)
    assert capsys.readouterr().err.count("does the schema say what is meant?") == 1


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_nothing_is_said_where_only_the_rows_could_tell(rows):
    """The number of rows is private under add-remove, and with persons."""
    data = table(rows).assign(who=np.arange(rows))
    assert ols(data=data, neighbors="add-remove", method="gram")().nobs is None
    assert ols(data=data, person="who", method="gram")().nobs is None
    assert mean(data=data, neighbors="add-remove", bounds=(0, 120))().nobs is None


def test_levels_that_look_like_bounds_survive_their_files():
    schema = Schema({"g": {"levels": ["0", "1"]}, "h": {"levels": ["2020-01-01", "2020-01-02"]}})
    assert Schema.from_json(schema.to_json()) == schema
    assert eval(repr(schema), {"Schema": Schema}) == schema
