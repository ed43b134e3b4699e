"""The chief property here: no cell's meaning, and no message, depends on other cells.

`leaks` puts it as a function of a way to read a column, so that the same check that passes for
`as_source` is seen to fail for the ways that one would write first.
"""

import copy
import datetime
import itertools
import math
import pickle
import random
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.sources import Source, as_source

TYPES = [
    Numeric(0, 1),
    Unbounded(),
    Boolean(),
    Categorical(["1", "01", "0", "True", "2.5", "cc", "nan"]),
    Categorical([1, 0, 2.5, 3]),
]

HOSTILE = [
    0,
    1,
    -1,
    2.5,
    1.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    1e308,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    True,
    False,
    None,
    pd.NA,
    pd.NaT,
    "",
    "1",
    "01",
    " 3 ",
    "1e3",
    "1_0",
    "inf",
    "nan",
    "True",
    "cc",
    "undeclared",
    1j,
    complex(2, 0),
    Decimal("2.50"),
    Decimal("sNaN"),
    Fraction(5, 2),
    np.int8(1),
    np.float32(2.5),
    np.float32(0.1),
    np.bool_(True),
    np.longdouble("1e4000"),
    datetime.date(2020, 1, 1),
    pd.Timestamp("2020-01-01"),
    np.datetime64("2020-01-01"),
    pd.Timedelta(1, "s"),
    pd.Period("2020", "Y"),
    pd.Interval(0, 1),
    b"1",
    [1, 2],
    {"a": 1},
]

# Builders of a table from a list of cells: the dtype is inferred from all of them, or is given.
BUILDERS = {
    "inferred": lambda cells: pd.DataFrame({"x": cells}),
    "inferred better": lambda cells: pd.DataFrame({"x": cells}).convert_dtypes(),
    "object": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "mapping": lambda cells: {"x": cells},
}


def read(table, how, size=10_000):
    """All of column x, with warnings as errors and NumPy set to raise."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        chunks = [chunk["x"] for chunk in as_source(table).chunks({"x": how}, size)]
    return np.concatenate(chunks) if chunks else np.empty(0)


def alone(cells, how):
    """What each of some cells means with no other cell about."""
    return np.array([read({"x": [cell]}, how)[0] for cell in cells])


def same(a, b):
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)


def built(builder, cells, how):
    """A table, or None where pandas cannot build one or its public kind is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas', while it builds: none of dpreg's
            table = BUILDERS[builder](cells)
        as_source(table).check({"x": how})
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return None
    return table


def leaks(reader, how, builders=("inferred", "object"), cells=HOSTILE):
    """Triples of cells: the first means one thing beside the second, another beside the third."""
    found = []
    for a in cells:
        first = None
        for builder, b in itertools.product(builders, cells):
            table = built(builder, [a, b], how)
            if table is not None:
                meaning = reader(table, how)[0]
                first = (b, meaning) if first is None else first
                if not same(meaning, first[1]):
                    found.append((a, first[0], b))
    return found


@pytest.mark.parametrize("how", [Numeric(0, 1), *TYPES[2:]], ids=repr)
@pytest.mark.parametrize("builder", ["inferred", "inferred better", "object"])
def test_no_cell_changes_the_meaning_of_another(how, builder):
    assert leaks(read, how, [builder]) == []


def whole_column_to_numeric(table, how):
    """Mutant: numbers only if the whole column is, as CSV readers do."""
    try:
        return pd.to_numeric(table["x"]).to_numpy(np.float64, na_value=math.nan)
    except (TypeError, ValueError, OverflowError):
        return np.full(len(table), math.nan)


def coerced_to_numeric(table, how):
    """Mutant: pandas' own coercion of a column."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            column = pd.to_numeric(table["x"], errors="coerce")
            return column.to_numpy(np.float64, na_value=math.nan)
        except (TypeError, ValueError, OverflowError):
            return np.full(len(table), math.nan)


def levels_of_text(table, how):
    """Mutant: levels looked up in the column as pandas prints it, so that NaN turns 1 into 1.0."""
    return pd.Index(list(how.levels)).get_indexer(table["x"].astype(str)).astype(np.int32)


def levels_of_numbers(table, how):
    """Mutant: levels looked up as text in an object column, as numbers in a numeric one."""
    column = table["x"]
    if column.dtype == object or column.dtype == "str":
        return levels_of_text(table, how)
    return pd.Index([float(level) for level in how.levels]).get_indexer(column.astype(float))


MUTANT_CELLS = [0, 1, 2.5, math.nan, None, True, "1", "01", "cc", "x", 1e308, 10**400, "1_0"]


@pytest.mark.parametrize(
    ("mutant", "how"),
    [
        (whole_column_to_numeric, Numeric(0, 1)),
        (coerced_to_numeric, Numeric(0, 1)),
        (levels_of_text, Categorical(["1", "0", "2.5", "cc"])),
        (levels_of_numbers, Categorical(["1", "0", "2.5", "7"])),
    ],
)
def test_the_check_finds_mutants(mutant, how):
    assert leaks(mutant, how, cells=MUTANT_CELLS)
    assert not leaks(read, how, cells=MUTANT_CELLS)


CELLS = st.lists(st.sampled_from(HOSTILE) | st.floats() | st.integers() | st.text(), max_size=8)


@given(cells=CELLS, new=st.sampled_from(HOSTILE), data=st.data())
def test_changing_a_row_changes_no_other(cells, new, data):
    place = data.draw(st.integers(0, max(len(cells) - 1, 0)))
    neighbour = [new if i == place else cell for i, cell in enumerate(cells)]
    builder = data.draw(st.sampled_from(list(BUILDERS)))
    how = data.draw(st.sampled_from(TYPES))
    sizes = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    tables = built(builder, cells, how), built(builder, neighbour, how)
    if any(table is None for table in tables):
        return
    one, other = (read(table, how, size) for table, size in zip(tables, sizes, strict=True))
    assert len(one) == len(cells)
    for i in range(len(cells)):
        if i != place:
            assert same(one[i], other[i])


@given(cells=CELLS, data=st.data())
def test_every_cell_means_what_it_means_alone(cells, data):
    how = data.draw(st.sampled_from(TYPES))
    table = built(data.draw(st.sampled_from(list(BUILDERS))), cells, how)
    if table is not None and cells:
        values = read(table, how, data.draw(st.integers(1, 9)))
        assert same(values, alone(cells, how))


# The same values in every dtype that can hold them ---------------------------------------------

DTYPES_OF_BITS = [
    "bool", "boolean", "Sparse[bool]", "int8", "uint8", "int64", "uint64", "Int8", "Int64",
    "UInt16", "float16", "float32", "float64", "longdouble", "Float32", "Float64", "complex64",
    "complex128", "Sparse[int64]", "Sparse[float64]", "object", "category",
]  # fmt: skip
ARROW_OF_BITS = [
    "bool[pyarrow]", "int8[pyarrow]", "uint64[pyarrow]", "float[pyarrow]", "double[pyarrow]",
]  # fmt: skip


def column_of_bits(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    return pd.Series([0, 1, 1, 0, 1]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES_OF_BITS + ARROW_OF_BITS)
@pytest.mark.parametrize("missing", [False, True])
def test_zeros_and_ones_mean_the_same_in_every_dtype(dtype, missing):
    column = column_of_bits(dtype)
    bits = [0, 1, 1, 0, 1]
    if missing:
        try:
            column = column.reindex([5, 0, 1, 2, 3, 4])
        except (TypeError, ValueError):
            pytest.skip("this dtype cannot hold a missing value")
        bits = [-1, *bits]
    floats = [math.nan if bit < 0 else bit for bit in bits]
    table = {"x": column}
    for how in (Numeric(0, 9), Boolean()):
        assert same(read(table, how, 4), np.array(floats, dtype=np.float64))
    assert same(read(table, Categorical([0, 1]), 4), np.array(bits, dtype=np.int32))
    # Truths are spelt True and False as levels of text, numbers 1 and 0; a dtype that reindexing
    # turned into object or float keeps or loses that with the cells themselves.
    spelt = ["False", "True"] if any(type(c) is bool for c in column.astype(object)) else ["0", "1"]
    assert same(read(table, Categorical(spelt), 4), np.array(bits, dtype=np.int32))


@pytest.mark.parametrize(
    "dtype", ["object", "str", "string", "category", "string[pyarrow]", "large_string[pyarrow]"]
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_text_means_the_same_in_every_dtype(dtype, size):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    texts = ["1", "01", None, " 3 ", "cc", "1e3", "1_0", "x", "-inf", "", "01", "True", "nan"]
    table = {"x": pd.Series(texts, dtype=object).astype(dtype)}
    for how in [Numeric(0, 1), *TYPES[2:]]:
        assert same(read(table, how, size), alone(texts, how))


def test_dictionaries_decimals_and_nulls_of_arrow():
    pa = pytest.importorskip("pyarrow")
    labels = pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(["cc", None, "1"]).dictionary_encode())
    )
    assert read({"x": labels}, Categorical(["1", "cc"]), 2).tolist() == [1, -1, 0]
    sums = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([Decimal("2.50"), None])))
    assert same(read({"x": sums}, Numeric(0, 9)), np.array([2.5, math.nan]))
    nulls = pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(2)))
    assert same(read({"x": nulls}, Numeric(0, 9)), np.array([math.nan, math.nan]))
    assert read({"x": nulls}, Categorical(["a", "b"])).tolist() == [-1, -1]


def test_categories_count_one_by_one_whether_used_or_not():
    codes = [2, 0, -1, 1]
    for unused in ([], ["zz"], [7], [None][:0]):
        mixed = pd.Index(["cc", "01", 1, *unused], dtype=object)
        table = {"x": pd.Categorical.from_codes(codes, mixed)}
        assert read(table, Categorical(["1", "01", "cc"])).tolist() == [0, 2, -1, 1]
        assert same(read(table, Numeric(0, 1)), np.array([1.0, math.nan, math.nan, 1.0]))
    dates = pd.Categorical(pd.to_datetime(["2020-01-01", None, "2021-01-01"]))
    assert np.isnan(read({"x": dates}, Numeric(0, 1))).all()
    spans = pd.Categorical([pd.Interval(0, 1), None])
    assert read({"x": spans}, Categorical(["(0, 1]", "b"])).tolist() == [-1, -1]


def test_float32_overflow_and_odd_nans_pass_in_silence():
    odd = np.array([0x7FA00000, 0x7FC00001], dtype=np.uint32).view(np.float32)  # one signals
    assert np.isnan(read({"x": odd}, Numeric(0, 1))).all()
    wide = np.array([1, 2], np.longdouble) * np.longdouble("1e4000")
    assert same(read({"x": wide}, Boolean()), np.array([math.nan, math.nan]))


# Chunks ---------------------------------------------------------------------------------------


def frame(rows=10):
    rng = random.Random(7)
    return pd.DataFrame(
        {
            "price": [rng.uniform(100, 900) for _ in range(rows)],
            "county": pd.Series(
                [rng.choice(["ala", "cc", "xx"]) for _ in range(rows)], dtype="str"
            ),
            "idp": [rng.random() < 0.5 for _ in range(rows)],
            "time": pd.date_range("2020-01-01", periods=rows),
            "span": pd.interval_range(0, rows, periods=rows) if rows else pd.IntervalIndex([]),
            "mix": pd.Series([rng.choice([1, "2", None]) for _ in range(rows)], dtype=object),
            3: range(rows),
        },
        index=[rng.randrange(3) for _ in range(rows)],
    )


HOW = {"county": Categorical(["cc", "ala"]), "price": Numeric(0, 1), "mix": Unbounded()}


@pytest.mark.parametrize("size", [1, 3, 10, 11, 10_000])
def test_chunks_hold_all_rows_in_order_and_can_be_read_twice(size):
    table = frame()
    source = as_source(table)
    for _ in range(2):
        chunks = list(source.chunks(HOW, size))
        assert [len(chunk["price"]) for chunk in chunks] == [
            min(size, 10 - start) for start in range(0, 10, size)
        ]
        whole = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in HOW}
        assert same(whole["price"], table["price"].to_numpy())
        codes = table["county"].map({"cc": 0, "ala": 1, "xx": -1}).to_numpy(np.int32)
        assert same(whole["county"], codes)
        assert whole["mix"].dtype == np.float64


def test_a_float_column_is_not_copied():
    values = np.arange(8.0)
    table = pd.DataFrame({"x": values}, copy=False)
    (chunk,) = as_source(table).chunks({"x": Numeric(0, 1)}, 8)
    assert np.shares_memory(chunk["x"], values)


def test_an_empty_table_gives_no_chunk():
    for table in (frame(0), {"county": [], "price": [], "mix": []}):
        assert list(as_source(table).chunks(HOW, 5)) == []
        assert as_source(table).rows == 0
    assert as_source({}).rows == 0
    assert as_source({}).names == ()


def test_later_changes_of_the_frame_do_not_reach_the_source():
    table = frame()
    before = table["price"].to_numpy(copy=True)
    source = as_source(table)
    table.iloc[0, 0] = -1.0
    table["price"] = 0.0
    (chunk,) = source.chunks({"price": Numeric(0, 1)}, 10)
    assert same(chunk["price"], before)


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_must_be_positive(size):
    with pytest.raises(ArgumentError, match="positive"):
        as_source(frame()).chunks(HOW, size)


# Public facts ---------------------------------------------------------------------------------


def test_names_kinds_and_rows():
    source = as_source(frame())
    assert isinstance(source, Source)
    assert as_source(source) is source
    assert source.names == ("price", "county", "idp", "time", "span", "mix")
    kinds = [source.kind(name) for name in source.names]
    assert kinds == ["numeric", "string", "bool", "datetime", "other", "object"]
    assert source.rows == 10


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"lat": Numeric(0, 1)}, "no column 'lat'; it has price, county, idp, time, span, mix"),
        ({"\0coin": Numeric(0, 1)}, r"'\\x00coin' has a NUL character"),
        ({"time": Unbounded()}, "'time' holds dates or times"),
        ({"span": Unbounded()}, "'span' holds neither numbers nor labels"),
        (
            {"county": Unbounded()},
            "'county' holds text or labels and the schema does not declare it",
        ),
    ],
)
@pytest.mark.parametrize("rows", [0, 10])
def test_what_cannot_be_read_is_refused_before_a_row_is_read(columns, says, rows):
    source = as_source(frame(rows))
    with pytest.raises(DataError, match=says):
        source.chunks(columns, 5)  # not in the iterator
    with pytest.raises(DataError, match=says):
        source.check(columns)


@pytest.mark.parametrize("name", ["time", "span"])
@pytest.mark.parametrize(
    "declared", [Numeric(0, 1), Categorical(["a", "b"]), Categorical([1, 2]), Boolean()]
)
def test_a_declared_column_is_read_whatever_its_dtype(name, declared):
    """Dates and intervals are missing cells, not an error that a single row could bring or take."""
    (chunk,) = as_source(frame(10)).chunks({name: declared}, 10)
    missing = chunk[name] == -1 if isinstance(declared, Categorical) else np.isnan(chunk[name])
    assert missing.all()


def test_one_number_among_dates_changes_no_refusal():
    dates = [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")]
    for cells in (dates, [dates[0], 5.0]):
        source = as_source(pd.DataFrame({"x": cells}))
        (chunk,) = source.chunks({"x": Numeric(0, 10)}, 5)
        assert math.isnan(chunk["x"][0])


def test_an_undeclared_category_column_is_refused():
    source = as_source({"c": pd.Categorical(["u", "v"])})
    with pytest.raises(
        DataError, match="'c' holds text or labels and the schema does not declare it"
    ):
        source.chunks({"c": Unbounded()}, 5)


def test_repeated_names_matter_only_where_they_are_needed():
    source = as_source(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"]))
    assert source.names == ("a", "b", "a")
    (chunk,) = source.chunks({"b": Unbounded()}, 5)
    assert chunk["b"].tolist() == [2.0]
    with pytest.raises(DataError, match="several columns named 'a'"):
        source.chunks({"a": Unbounded()}, 5)
    with pytest.raises(DataError, match="several columns named 'a'"):
        source.kind("a")


def test_column_labels_of_several_levels_are_refused():
    table = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["a"], ["b", "c"]]))
    with pytest.raises(DataError, match="several levels"):
        as_source(table)


def test_a_way_to_read_must_be_a_declaration():
    with pytest.raises(ArgumentError, match="no known type"):
        as_source(frame()).chunks({"price": (0, 1)}, 5)


# Mappings -------------------------------------------------------------------------------------


def test_a_mapping_of_arrays():
    table = {
        "list": [1, "a", None],
        "array": np.array([1, 2, 3], np.float16),
        "text": np.array(["a", "b", "cc"]),
        "new text": np.array(["a", "b", "cc"], dtype=np.dtypes.StringDType()),
        "series": pd.Series([1, 2, 3], index=[4, 4, 5]),
        "index": pd.RangeIndex(3),
        "nullable": pd.array([1, None, 3]),
        "dates": np.array(["300000", "1", "2"], dtype="datetime64[Y]"),
    }
    source = as_source(table)
    assert source.rows == 3
    kinds = [source.kind(name) for name in source.names]
    assert kinds == [
        "object", "numeric", "string", "string", "numeric", "numeric", "numeric", "datetime"
    ]  # fmt: skip
    (chunk,) = source.chunks({"series": Unbounded(), "text": Categorical(["cc", "b"])}, 5)
    assert chunk["series"].tolist() == [1.0, 2.0, 3.0]
    assert chunk["text"].tolist() == [-1, 1, 0]


def test_text_that_is_no_utf8_is_read_like_any_other():
    odd = ["\ud800", "b", "\ud800"]
    for table in (np.array(odd), odd, pd.Series(odd, dtype=object)):
        assert read({"x": table}, Categorical(["b", "\ud800"])).tolist() == [1, 0, 1]
        assert np.isnan(read({"x": table}, Numeric(0, 1))).all()


def test_lists_are_never_inferred_from():
    kinds = {as_source({"x": cells}).kind("x") for cells in ([1], ["a"], [True], [None], [])}
    assert kinds == {"object"}


@pytest.mark.parametrize(
    "values",
    [
        3,
        "abc",
        {1, 2},
        iter([1]),
        np.zeros((2, 2)),
        np.ma.masked_array([1], [True]),
        pd.MultiIndex.from_tuples([(1, 2)]),
        pd.DataFrame({"a": [1]}),
    ],
    ids=lambda values: type(values).__name__,
)
def test_columns_that_are_none_are_refused(values):
    with pytest.raises(ArgumentError, match="column 'x' must be a list or a one-dimensional array"):
        as_source({"x": values})


@pytest.mark.parametrize("odd", [b"x", np.void(b"x"), np.datetime64("2000-01-01")])
@pytest.mark.parametrize("how", [Numeric(0, 1), Categorical(["a", "b"])])
def test_one_cell_that_changes_an_array_s_dtype_refuses_nothing(odd, how):
    for array in (np.array([odd, odd]), np.array([odd, 0.0], dtype=object)):
        codes = read({"x": array}, how)
        assert len(codes) == 2
        assert codes[0] == -1 if codes.dtype == np.int32 else math.isnan(codes[0])
    later = as_source(lambda: ({"x": array} for array in (np.zeros(2), np.array([odd, odd]))))
    assert sum(len(chunk["x"]) for chunk in later.chunks({"x": how})) == 4


def test_other_tables_are_refused():
    for data in (None, [1, 2], np.zeros((2, 2)), pd.Series([1])):
        with pytest.raises(ArgumentError, match=f"data is a {type(data).__name__}"):
            as_source(data)
    with pytest.raises(DataError, match="different lengths"):
        as_source({"a": [1], "b": [1, 2]})
    with pytest.raises(ArgumentError, match="must be text"):
        as_source({3: [1]})


# Nothing of any row ---------------------------------------------------------------------------

SECRET = "Zebulon"


def tables_of(secret, number):
    yield pd.DataFrame({"x": [secret, "a"], "y": [number, 1.0]})
    yield pd.DataFrame({"x": pd.Categorical([secret, "a"]), "y": pd.array([number, 1.0])})
    yield {"x": [secret, number], "y": np.array([number, 1])}
    yield pd.DataFrame({"x": pd.Series([secret, number], dtype=object), "y": [number, 1]})


def shown(call):
    """What a call says: its result's repr, or its error's type, text and context."""
    try:
        return repr(call())
    except Exception as err:
        return f"{type(err).__name__}: {err}; {err.__cause__!r}; {err.__context__!r}"


@pytest.mark.parametrize("place", range(4))
def test_no_row_in_any_repr_message_or_pickle(place):
    def says(secret, number):
        source = as_source(list(tables_of(secret, number))[place])
        return [
            shown(lambda: source),
            shown(lambda: str(source)),
            shown(lambda: source.kind("none")),
            shown(lambda: source.chunks({"x": Unbounded()}, 1) and None),
            shown(lambda: source.chunks({"none": Unbounded()}, 1)),
            shown(lambda: source.chunks({"x": ()}, 1)),
            shown(lambda: pickle.dumps(source)),
            shown(lambda: copy.copy(source)),
            shown(lambda: copy.deepcopy(source)),
            shown(lambda: vars(source)),
        ]

    said = says(SECRET, 31337.25)
    assert said == says("other", 2.5)
    assert SECRET not in "".join(said)
    assert "31337" not in "".join(said)
    assert "not pickled" in said[6]


def test_the_repr_shows_names_and_kinds_only():
    assert repr(as_source(frame(10))) == (
        "Source(price: numeric, county: string, idp: bool, time: datetime, span: other, "
        "mix: object)"
    )
    assert repr(as_source(frame(10))) == repr(as_source(frame(4)))


def test_text_views_of_arrow_with_gaps_are_text():
    """Where pandas itself raises, and only if a cell is missing."""
    pa = pytest.importorskip("pyarrow")
    cells = pa.chunked_array([pa.array(["1", None], pa.string_view()), ["x"]], pa.string_view())
    source = as_source(pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(cells)}))
    assert source.kind("a") == "string"
    (chunk,) = source.chunks({"a": Categorical(["1", "x"])}, 9)
    assert chunk["a"].tolist() == [0, -1, 1]
    (chunk,) = source.chunks({"a": Numeric(0, 9)}, 9)
    assert np.isnan(chunk["a"][1:]).all()
