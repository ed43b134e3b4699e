"""Arrow's cells mean what they mean to pandas, whatever type, slice or nulls they come in."""

import datetime
import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.cells import kind_of, number
from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.sources import as_source

pa = pytest.importorskip("pyarrow")
from dpreg.sources.arrow_cells import arrow_reader, batch_reader, kind_of_arrow  # noqa: E402

HOWS = [
    Numeric(0, 1),
    Unbounded(),
    Boolean(),
    Categorical(["1", "01", "0", "True", "2.5", "cc", "nan", "", "9007199254740992"]),
    Categorical([1, 0, 2.5, 3]),
    Categorical(["cc", "\ud800", "-0.1"]),
]

INTEGERS = [0, 1, 3, 100]
WIDE = [*INTEGERS, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, 2.5, 0.1, math.nan, math.inf, -math.inf]
TEXTS = [
    "1", "01", " 3 ", "1e3", "1_0", "inf", "-inf", "nan", "", "True", " fAlse ", "cc", "NA", "+1",
    "0x1", "1e400", "1e-400", "\u0661\u0662", "\u00a01", "nan(1)", "infinity", "1.", ".5", "x" * 40,
]  # fmt: skip
DECIMALS = ["0", "1.00", "2.50", "-0.10", "123456789012345678.91", "0.30", "90071992547409.93"]
SMALL = [Decimal(text) for text in ("0", "1.00", "2.50", "-0.10", "9.99")]
DAY = datetime.date(2020, 1, 1)
TIME = datetime.datetime(2020, 1, 1, 12)


def types_of_text():
    views = [pa.string_view()] if hasattr(pa, "string_view") else []
    return [pa.string(), pa.large_string(), *views]


def arrays():
    """(name, array without nulls): every Arrow type that a table is likely to have."""
    for type in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32()):
        yield str(type), pa.array(INTEGERS, type)
    yield "int64", pa.array(WIDE, pa.int64())
    yield "uint64", pa.array([*INTEGERS, 2**53 + 1, 2**63 + 1025, 2**64 - 1], pa.uint64())
    yield "float16", pa.array(np.array(FLOATS, np.float16), pa.float16())
    yield "float32", pa.array(FLOATS, pa.float32())
    yield "float64", pa.array([*FLOATS, 1e308, 5e-324], pa.float64())
    yield "bool", pa.array([True, False, True])
    for type in types_of_text():
        yield str(type), pa.array(TEXTS, type)
        yield f"all numbers in {type}", pa.array(["1", "2.5", "inf", "1e400"], type)
    yield "decimal128", pa.array([Decimal(text) for text in DECIMALS], pa.decimal128(38, 2))
    yield "deep decimal128", pa.array([Decimal(2**53 + 1).scaleb(-30)], pa.decimal128(38, 30))
    yield "huge decimal256", pa.array([Decimal(10**70 + 1)], pa.decimal256(76, 2))
    yield "decimal256", pa.array(SMALL, pa.decimal256(50, 2))
    yield "decimal scaled up", pa.array([Decimal(300), Decimal(100)], pa.decimal128(20, -2))
    for name in ("decimal32", "decimal64"):
        if hasattr(pa, name):
            yield name, pa.array(SMALL, getattr(pa, name)(7, 2))
    yield "null", pa.nulls(3)
    for type in types_of_text():
        yield f"dictionary of {type}", pa.array(TEXTS * 2, type).dictionary_encode()
    yield "dictionary of int64", pa.array(WIDE * 2, pa.int64()).dictionary_encode()
    yield "dictionary of float64", pa.array(FLOATS * 2).dictionary_encode()
    yield "dictionary of dates", pa.array([DAY, DAY]).dictionary_encode()
    for width in (pa.int8(), pa.uint8(), pa.uint64()):
        codes = pa.array([0, 4, 2, 1, 0, 3], width)
        entries = pa.array(["cc", None, "cc", "1", "01", "unused"])
        yield f"odd dictionary, {width}", pa.DictionaryArray.from_arrays(codes, entries)
    yield "binary", pa.array([b"1", b"cc"])
    yield "fixed binary", pa.array([b"1", b"0"], pa.binary(1))
    yield "list", pa.array([[1.0], []])
    yield "struct", pa.array([{"a": 1}, {"a": 2}])
    yield "date32", pa.array([DAY, DAY])
    yield "timestamp", pa.array([TIME, TIME], pa.timestamp("ns", "UTC"))
    yield "time64", pa.array([datetime.time(1), datetime.time(2)], pa.time64("us"))
    yield "duration", pa.array([datetime.timedelta(1)], pa.duration("s"))
    yield "run ends", pa.RunEndEncodedArray.from_arrays([2, 3], [1.0, 2.5])


ARRAYS = dict(arrays())


def with_nulls(array):
    """Every other cell null, the first among them: what lies beneath a null must not be read."""
    if pa.types.is_run_end_encoded(array.type):
        return pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([None, 2.5]))
    if "view" in str(array.type):  # of which Arrow takes no places
        return pa.array([c for cell in array.to_pylist() for c in (None, cell)]).cast(array.type)
    places = [place for cell in range(len(array)) for place in (None, cell)]
    return array.take(pa.array(places, pa.int64()))


def read(array, how):
    """Read an array with warnings as errors, and NumPy set to raise."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        return arrow_reader(array.type, how)(array)


def cells_of(array):
    cells = [array[place].as_py() for place in range(len(array))]
    return [float(c) if isinstance(c, np.floating) else c for c in cells]


def expected(cells, how):
    """What pandas' way makes of the same cells, from an object column."""
    with np.errstate(all="ignore"):
        chunks = [chunk["x"] for chunk in as_source({"x": list(cells)}).chunks({"x": how})]
    return np.concatenate(chunks) if chunks else None


def same(a, b):
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", ARRAYS)
def test_cells_mean_what_they_mean_to_pandas(name, nulls, how):
    array = with_nulls(ARRAYS[name]) if nulls else ARRAYS[name]
    cells = cells_of(array)
    values = read(array, how)
    assert same(values, expected(cells, how))
    for start, stop in [(1, len(array)), (0, len(array) - 1), (1, 2), (2, 5)]:
        part = array.slice(start, max(0, stop - start))
        assert same(read(part, how), values[start:stop])
    assert read(array.slice(0, 0), how).shape == (0,)
    assert same(read(array.slice(0, 0), how), values[:0])


@pytest.mark.parametrize("how", HOWS, ids=repr)
@pytest.mark.parametrize("name", ARRAYS)
def test_one_slice_after_another_through_one_reader(name, how):
    array = with_nulls(ARRAYS[name])
    reader = arrow_reader(array.type, how)
    parts = [reader(array.slice(start, 1)) for start in range(len(array))]
    assert same(np.concatenate(parts), read(array, how))


@pytest.mark.parametrize(
    "name", [n for n in ARRAYS if n != "run ends" and not n.endswith("string_view")]
)
def test_an_arrow_backed_column_of_pandas_means_the_same(name):
    array = with_nulls(ARRAYS[name])
    try:
        series = pd.Series(pd.arrays.ArrowExtensionArray(array))
        kind = kind_of(series.dtype)
    except (TypeError, NotImplementedError, ValueError):
        pytest.skip("pandas cannot hold this type")
    if "decimal" not in name and "view" not in name:  # pandas knows no decimals of some widths
        assert kind_of_arrow(array.type) == kind
    for how in HOWS:
        if isinstance(how, Unbounded) and kind != "numeric":
            continue  # refused; and Numeric reads alike
        (chunk,) = as_source({"x": series}).chunks({"x": how})
        assert same(chunk["x"], read(array, how))


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        (pa.null(), "object"),
        (pa.bool_(), "bool"),
        (pa.uint8(), "numeric"),
        (pa.float16(), "numeric"),
        (pa.decimal128(9, 2), "numeric"),
        (pa.decimal256(50, 2), "numeric"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "category"),
        (pa.dictionary(pa.int8(), pa.int64()), "category"),
        (pa.date32(), "datetime"),
        (pa.timestamp("s", "UTC"), "datetime"),
        (pa.time32("s"), "datetime"),
        (pa.duration("ns"), "datetime"),
        (pa.month_day_nano_interval(), "datetime"),
        (pa.binary(), "other"),
        (pa.large_binary(), "other"),
        (pa.list_(pa.float64()), "other"),
        (pa.struct([("a", pa.float64())]), "other"),
        (pa.map_(pa.string(), pa.int8()), "other"),
        (pa.run_end_encoded(pa.int32(), pa.string()), "string"),
    ],
    ids=str,
)
def test_kinds_follow_from_the_type_alone(type, kind):
    assert kind_of_arrow(type) == kind


def test_extension_types_are_what_they_store():
    for name, store, kind in [
        ("bool8", [1, 0, None, 5], "bool"),
        ("uuid", [b"0" * 16], "other"),
        ("json_", ["1", "cc"], "string"),
    ]:
        if not hasattr(pa, name):
            continue
        type = getattr(pa, name)()
        array = pa.ExtensionArray.from_storage(type, pa.array(store, type.storage_type))
        assert kind_of_arrow(type) == kind
        for how in HOWS:
            truths = [None if cell is None else bool(cell) for cell in store]
            assert same(read(array, how), expected(truths if name == "bool8" else store, how))


@given(
    texts=st.lists(
        st.text("0123456789+-.eEinfatyNAI() _\t\n\x00x\u0661\u3000", max_size=12)
        | st.floats().map(repr)
        | st.integers().map(str)
        | st.sampled_from(TEXTS),
        max_size=6,
    )
)
def test_bulk_parsing_of_numbers_agrees_with_the_single_cell(texts):
    array = pa.array([*texts, None], pa.string())
    alone = [number(text) for text in texts]
    assert same(read(array, Unbounded()), np.array([*alone, math.nan]))
    for text, value in zip(texts, alone, strict=True):
        assert same(read(pa.array([text]), Unbounded()), np.array([value]))


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_are_rounded_correctly(unscaled, scale):
    for whole in (unscaled, unscaled % 2**53, 2**53 + unscaled % 3):
        cell = Decimal(whole).scaleb(-scale, None) if whole else Decimal(0)
        array = pa.array([cell, None], pa.decimal128(38, scale)) if fits(whole) else None
        if array is not None:
            assert same(read(array, Unbounded()), np.array([whole / 10**scale, math.nan]))


def fits(whole):
    """Whether Python's own default context would leave the cell as it is."""
    return len(str(abs(whole))) <= 28


def test_a_float_column_is_not_copied():
    values = np.arange(8.0)
    array = pa.array(values).slice(2, 4)
    assert np.shares_memory(read(array, Numeric(0, 1)), values)


def test_text_that_is_no_utf8_is_no_number_and_no_level():
    offsets = pa.py_buffer(np.array([0, 1, 2, 4], np.int32).tobytes())
    bad = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"\xff1cc")])
    assert read(bad, Categorical(["cc", "1"])).tolist() == [-1, 1, 0]
    assert read(bad, Boolean())[1:2].tolist() == [1.0]
    assert same(read(bad, Numeric(0, 1)), np.array([math.nan, 1.0, math.nan]))
    assert same(read(bad, Categorical([1, 2])), np.array([-1, 0, -1], np.int32))
    dictionary = bad.dictionary_encode()
    assert read(dictionary, Categorical(["cc", "1"])).tolist() == [-1, 1, 0]
    assert same(read(dictionary, Numeric(0, 1)), np.array([math.nan, 1.0, math.nan]))


def test_codes_beyond_a_dictionary_do_not_raise():
    codes = pa.array([0, 7, -3], pa.int8())
    bad = pa.DictionaryArray.from_arrays(codes, pa.array(["cc", "1"]), safe=False)
    assert read(bad, Categorical(["cc", "1"])).shape == (3,)


def test_a_dictionary_that_grows_or_changes_is_read_anew():
    reader = arrow_reader(pa.dictionary(pa.int32(), pa.string()), Categorical(["a", "b"]))
    for texts in (["a", "b"], ["b", "a"], ["b"], ["a", "b", "zz"], ["zz"]) * 20:
        codes = {"a": 0, "b": 1, "zz": -1}
        assert reader(pa.array(texts).dictionary_encode()).tolist() == [codes[t] for t in texts]


def test_a_batch_is_read_by_name():
    batch = pa.record_batch({"c": ["u", None], "x": [1, 2], "b": [True, None]})
    chunk = batch_reader(batch.schema, {"b": Boolean(), "c": Categorical(["v", "u"])})(batch)
    assert list(chunk) == ["b", "c"]
    assert same(chunk["b"], np.array([1.0, math.nan]))
    assert same(chunk["c"], np.array([1, -1], np.int32))
