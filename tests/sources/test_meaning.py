"""Cells read in bulk mean what each of them means on its own, whatever holds them."""

import math

import numpy as np
import pandas as pd
import pytest

from dpreg.cells import number, truth
from dpreg.columns import Boolean, Categorical, Numeric, PersonId, Unbounded
from dpreg.sources.numpy_cells import meaning_of
from dpreg.sources.table import array_reader

LEVELS = Categorical((1, 2, 7))
ARRAYS = {
    "integers": np.array([0, 1, 2, -1, 7]),
    "small integers": np.array([0, 1, 200], dtype=np.uint8),
    "floats": np.array([0.0, -0.0, 1.0, 0.5, 2.0, math.nan, math.inf]),
    "single floats": np.array([0.0, 1.0, 0.1], dtype=np.float32),
    "complex": np.array([1 + 0j, 1 + 2j, 2 + 0j]),
    "truths": np.array([True, False]),
    "objects": np.array([1, 2.0, "1", None, True, "x"], dtype=object),
    "nullable integers": pd.array([1, None, 7], dtype="Int64"),
    "nullable floats": pd.array([1.0, None, 0.5], dtype="Float64"),
    "nullable truths": pd.array([True, None, False], dtype="boolean"),
    "text": pd.array(["1", "2", None, "1", "no"], dtype="string"),
    "labels": pd.Categorical(["1", None, "2"], categories=["2", "1", "unused"]),
    "sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0]),
    "dates": np.array(["2020-01-01", "NaT"], dtype="datetime64[s]"),
}
ALONE = {Numeric(0, 1): number, Unbounded(): number, Boolean(): truth}


@pytest.mark.parametrize("how", ALONE)
@pytest.mark.parametrize("name", ARRAYS)
def test_bulk_agrees_with_single_cells(name, how):
    array = ARRAYS[name]
    cells = [None] * 2 if name == "dates" else list(array)
    expected = [ALONE[how](None if cell is pd.NA else cell) for cell in cells]
    got = array_reader(array, how)(slice(None))
    np.testing.assert_array_equal(got, np.array(expected, dtype=float))


def test_a_number_is_the_truth_it_is_or_none():
    (read,) = [meaning_of(Boolean()).numbers]
    got = read(np.array([0.0, -0.0, 1.0, 2.0, 0.5, math.nan]))
    np.testing.assert_array_equal(got, [0, 0, 1, math.nan, math.nan, math.nan])


def test_a_complex_number_is_a_number_where_it_is_real():
    got = array_reader(ARRAYS["complex"], Unbounded())(slice(None))
    np.testing.assert_array_equal(got, [1, math.nan, 2])


def test_levels_are_found_in_any_container():
    for array in (np.array([7, 2, 9]), np.array([7.0, 2.0, 9.0]), pd.array([7, 2, 9], "Int64")):
        assert array_reader(array, LEVELS)(slice(None)).tolist() == [2, 1, -1]


def test_a_range_of_cells_is_read_alone():
    read = array_reader(ARRAYS["labels"], Categorical(("1", "2")))
    assert read(slice(0, 2)).tolist() == [0, -1]
    assert read(slice(2, 3)).tolist() == [1]


@pytest.mark.parametrize("how", [Numeric(0, 1), Boolean(), LEVELS, PersonId(b"k" * 32)])
@pytest.mark.parametrize(
    ("kind", "odd"),
    [("timestamp[s]", 2**40), ("timestamp[s, tz=UTC]", 2**40), ("duration[s]", 2**60)],
)
def test_a_time_that_python_has_not_is_missing_as_a_category_too(kind, odd, how):
    pa = pytest.importorskip("pyarrow")
    unit, *zone = kind.removesuffix("]").partition("[")[2].split(", tz=")
    type = pa.duration(unit) if kind.startswith("d") else pa.timestamp(unit, *zone)
    held = pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array([0, odd, 0]).cast(type)]))
    for array in (held, pd.Series(held).astype("category").array):
        got = array_reader(array, how)(slice(None))
        np.testing.assert_array_equal(got, meaning_of(how).cells([None] * 3))


def test_categories_without_one():
    pytest.importorskip("pyarrow")
    for dtype in ("timestamp[s][pyarrow]", "int64[pyarrow]", "float64", "object"):
        array = pd.Series([None, None], dtype=dtype).astype("category").array
        assert np.isnan(array_reader(array, Numeric(0, 1))(slice(None))).all()
        assert array_reader(array, LEVELS)(slice(None)).tolist() == [-1, -1]
