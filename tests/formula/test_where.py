"""`where=`: a closed language of tests, each of one row alone."""

import pickle

import numpy as np
import pandas as pd
import pytest

from dpreg.columns import Unbounded
from dpreg.errors import ArgumentError, DpregError
from dpreg.formula.where import where_of
from dpreg.schema import Schema
from dpreg.sources import as_source

SCHEMA = Schema(
    {
        "op": ["INLAND", "BAY", "SEA"],
        "age": (0, 100),
        "k": {"levels": [1, 2, 3]},
        "flag": bool,
        "a b": (0, 1),
    }
)
ROWS = pd.DataFrame(
    {
        "op": ["INLAND", "BAY", "SEA", "elsewhere", "BAY", None],
        "age": [10.0, 50.0, np.nan, 200.0, -5.0, 30.0],
        "k": [1, 2, 3, 1, 9, 2],
        "flag": [True, False, True, True, None, False],
        "a b": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    }
)


def passing(text):
    where = pickle.loads(pickle.dumps(where_of(text, SCHEMA)))
    (chunk,) = as_source(ROWS).chunks(where.columns)
    return np.flatnonzero(where.passes(chunk)).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("op == 'BAY'", [1, 4]),
        ("op != 'BAY'", [0, 2]),
        ("op in ['BAY', 'SEA']", [1, 2, 4]),
        ("op not in ('BAY',)", [0, 2]),
        ("k in {1, 3}", [0, 2, 3]),
        ("k == 2", [1, 5]),
        ("flag", [0, 2, 3]),
        ("not flag", [1, 5]),
        ("~flag", [1, 5]),
        ("flag == True", [0, 2, 3]),
        ("flag != True", [1, 5]),
        ("False == flag", [1, 5]),
        ("age > 20", [1, 3, 5]),
        ("20 < age <= 60", [1, 5]),
        ("not (20 < age <= 60)", [0, 3, 4]),
        ("np.log(age + 1) > 3 and Q('a b') < .35", [1]),
        ("(age > 20) & (op == 'BAY')", [1]),
        ("(age > 20) | (op == 'BAY')", [1, 4]),
        ("age < 20 or flag or Q('a b') > .9", [0, 3]),
        ("age > 99", [3]),
        ("age * 2 > k", None),
    ],
)
def test_which_rows_pass(text, rows):
    """A missing or undeclared cell in any column that is named fails its row."""
    if rows is None:
        with pytest.raises(ArgumentError, match="declared with levels, not as a number"):
            where_of(text, SCHEMA)
    else:
        assert passing(text) == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("age", "'age' is no truth; compare it"),
        ("age + 1", "it is a number and no test"),
        ("age > 20 & flag", "bind more tightly"),
        ("age >= 0", "holds of every row"),
        ("age > 100 and flag", "holds of no row"),
        ("op == 'bay'", "'bay' is not one of the declared levels"),
        ("op > 'BAY'", "other than one column by == or !="),
        ("1 > 2", "two constants"),
        ("agee > 2", "did you mean 'age'"),
        ("age > mean(age)", "looks across rows"),
        ("age > age.mean()", "offered|across|attribute|method"),
        ("__import__('os').system('x')", "no plain name"),
        ("np.log(age) > 1", "not bounded under the declared bounds"),
        ("flag if flag else flag", "branches"),
        ("age in 3", "no list"),
        ("age in []", "no list"),
        ("flag < True", "more than == and !="),
        ("(lambda: 1)()", "where="),
        ("x := 3", "cannot be read"),
        ("age > 1 and " * 300 + "flag", "longer than|nested"),
    ],
)
def test_what_is_refused_before_a_row_is_read(text, said):
    with pytest.raises(DpregError, match=said):
        where_of(text, SCHEMA)


@pytest.mark.parametrize("given", [ROWS["age"] > 20, [True, False], np.array([52311.25]), 3, b"x"])
def test_a_mask_of_rows_is_refused_and_not_quoted(given):
    with pytest.raises(ArgumentError, match="would tell how many pass") as caught:
        where_of(given, SCHEMA)
    assert "52311" not in str(caught.value)


def test_a_row_passes_whatever_the_others_are():
    where = where_of("(age > 20) & flag | (op == 'SEA')", SCHEMA)
    (chunk,) = as_source(ROWS).chunks(where.columns)
    whole = where.passes(chunk)
    for row in range(len(ROWS)):
        alone = {name: cells[row : row + 1] for name, cells in chunk.items()}
        assert where.passes(alone).tolist() == [whole[row]]


def test_rows_that_fail_are_rows_of_missing_cells_and_stay_rows():
    where = where_of("age > 20", SCHEMA)
    columns = {"op": SCHEMA["op"], "a b": Unbounded()}
    (chunk,) = as_source(ROWS).chunks(where.read_with(columns))
    chunk["\0person"] = np.arange(6)
    kept = where.blanked(chunk, columns)
    assert set(kept) == {"op", "a b", "\0person"}
    assert kept["\0person"].tolist() == [0, 1, 2, 3, 4, 5]
    assert kept["op"].tolist() == [-1, 1, -1, -1, -1, -1]
    assert kept["op"].dtype == chunk["op"].dtype
    assert np.isnan(kept["a b"]).tolist() == [True, False, True, False, True, False]
    assert not np.isnan(chunk["a b"]).any()


def test_a_column_is_read_in_one_way():
    where = where_of("k == 2", SCHEMA)
    with pytest.raises(ArgumentError, match="reads 'k' as the schema declares it"):
        where.read_with({"k": Unbounded()})
    assert where_of("age > 2", SCHEMA).read_with({"age": Unbounded()}) == {"age": Unbounded()}
    assert where.read_with({"k": SCHEMA["k"]}) == {"k": SCHEMA["k"]}
