"""Arrow streams: what is known before a row is read, how often they are read, how they fail."""

import math
import sys
import traceback

import numpy as np
import pytest

import dpreg
from dpreg.columns import Boolean, Categorical, Numeric, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.ledger import Ledger
from dpreg.sources import Source, as_source

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from dpreg.sources.arrow import batch_pieces, stream_source  # noqa: E402

ROWS = 10_000
HOW = {"x": Numeric(0, 1), "c": Categorical(["b", "a"]), "t": Boolean(), "k": Unbounded()}
KINDS = {"x": "numeric", "c": "string", "t": "bool", "d": "datetime", "k": "numeric"}

NEVER_ARROW = [f"dpreg.sources.{name}" for name in ("base", "meaning", "reader", "table")]


def table(rows=ROWS):
    rng = np.random.default_rng(7)
    missing = rng.random(rows) < 0.1
    return pa.table(
        {
            "x": pa.array(rng.normal(size=rows), mask=missing),
            "c": pa.array(rng.choice(["a", "b", "zz"], rows), mask=missing[::-1].copy()),
            "t": pa.array(rng.random(rows) < 0.5),
            "d": pa.array(np.zeros(rows, "datetime64[s]")),
            "k": pa.array(rng.integers(-5, 5, rows)),
        }
    )


def polars(data):
    return pytest.importorskip("polars").from_arrow(data)


def duckdb(data):
    return pytest.importorskip("duckdb").connect().from_arrow(data)


class Exporter:
    """A table of a library that dpreg has never heard of."""

    def __init__(self, data):
        self.data = data

    def __arrow_c_stream__(self, requested_schema=None):
        return self.data.__arrow_c_stream__()


FORMS = {
    "table": lambda data: data,
    "table of many chunks": lambda data: pa.Table.from_batches(data.to_batches(999), data.schema),
    "reader": lambda data: data.to_reader(1000),
    "batch": lambda data: data.combine_chunks().to_batches()[0] if len(data) else data,
    "polars": polars,
    "duckdb": duckdb,
    "dataset": lambda data: ds.dataset(data),
    "unknown": Exporter,
}


def read(source, how=HOW, size=997):
    chunks = list(source.chunks(how, size))
    assert all(0 < len(chunk["x"]) <= size for chunk in chunks)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in how}


def same(a, b):
    return all(
        a[name].dtype == b[name].dtype
        and np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
        for name in a
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_rows_that_pandas_gives(form):
    source = as_source(FORMS[form](table()))
    assert isinstance(source, Source)
    assert {name: source.kind(name) for name in source.names} == KINDS
    expected = read(as_source(table().to_pandas()))
    assert same(read(source), expected)
    if source.rereadable:
        assert same(read(source), expected)
        assert source.count() == ROWS
    assert source.rereadable == (form != "reader")
    assert (source.rows, source.parts) in [(ROWS, 1), (None, None)]
    assert repr(source) == f"Source({', '.join(f'{n}: {k}' for n, k in KINDS.items())})"


@pytest.mark.parametrize("form", FORMS)
def test_no_rows_give_no_chunk(form):
    source = as_source(FORMS[form](table(0)))
    assert list(source.chunks(HOW)) == []
    assert source.count() == 0 if source.rereadable else source.rows is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"lat": Numeric(0, 1)}, "no column 'lat'; it has x, c, t, d, k"),
        ({"d": Unbounded()}, "'d' holds dates or times"),
        ({"c": Unbounded()}, "'c' holds text or labels and the schema does not declare it"),
    ],
)
def test_what_cannot_be_read_is_refused_before_a_row_is_read(form, columns, says):
    source = as_source(FORMS[form](table()))
    with pytest.raises(DataError, match=says):
        source.chunks(columns)
    assert same(read(source), read(as_source(table())))  # a reader's only pass is still to be had


def test_a_reader_is_read_once():
    source = as_source(table().to_reader())
    read(source)
    with pytest.raises(DataError, match="the RecordBatchReader can be read once, and has been"):
        read(source)
    with pytest.raises(DataError, match="cannot be counted before they are read"):
        source.count()


def test_threads_see_every_row_once():
    data = pa.concat_tables([table()] * 40)

    def tally(chunks):
        sums = [(len(chunk["k"]), int(chunk["k"].sum())) for _, chunk in chunks]
        return np.array([sum(n for n, _ in sums), sum(k for _, k in sums)], dtype=object)

    total = data.column("k").to_numpy().sum()
    told = []
    for form in ("table", "reader", "polars", "duckdb", "dataset", "unknown"):
        source = as_source(FORMS[form](data))
        got = source.total({"k": Unbounded()}, tally, advance=told.append)
        assert got.tolist() == [len(data), total]
    assert sum(told) == 2 * len(FORMS) - 4  # two blocks of 2**18 rows each, in each of six forms


def test_pieces_are_cut_from_a_batch():
    batch = table().to_batches()[0]
    pieces = list(batch_pieces([(3, batch)], HOW, 4096))
    assert [piece.rows for piece in pieces] == [4096, 4096, ROWS - 8192]
    assert {piece.part for piece in pieces} == {3}
    whole = [piece.read()["k"] for piece in reversed(pieces)][::-1]
    assert np.array_equal(np.concatenate(whole), batch.column("k").to_numpy())


def test_dictionaries_go_in_as_codes_from_every_engine():
    pl = pytest.importorskip("polars")
    db = pytest.importorskip("duckdb")
    cells = ["a", None, "zz", "b", "a"]
    enum = "from (values ('a'), (null), ('zz'), ('b'), ('a')) t(c)"
    for data in (
        pa.table({"c": pa.array(cells).dictionary_encode()}),
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.Categorical)}),
        pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(["zz", "b", "a"]))}),
        db.connect().sql(f"select c::enum('a', 'b', 'zz') as c {enum}"),
    ):
        source = as_source(data)
        assert source.kind("c") == "category"
        (chunk,) = source.chunks({"c": Categorical(["b", "a"])})
        assert chunk["c"].tolist() == [1, -1, -1, 0, 1]


def test_a_duckdb_connection_is_free_before_and_after_a_pass():
    db = pytest.importorskip("duckdb").connect()
    source = as_source(db.sql("select range * 1.5 as x, 'a' as c from range(300000)"))
    assert db.sql("select 1").fetchall() == [(1,)]
    chunks = source.chunks({"x": Numeric(0, 1)})
    next(chunks)
    chunks.close()
    assert db.sql("select 1").fetchall() == [(1,)]
    assert source.rows is None
    assert source.count() == 300_000


def test_a_duckdb_relation_keeps_the_order_of_its_rows(tmp_path):
    db = pytest.importorskip("duckdb").connect()
    db.sql("copy (select range as k from range(1000000)) to '{}'".format(tmp_path / "k.parquet"))
    source = as_source(db.sql("select k from '{}' where k % 7 <> 0".format(tmp_path / "k.parquet")))
    expected = [k for k in range(1_000_000) if k % 7]
    for _ in range(2):
        chunks = [chunk["k"] for chunk in source.chunks({"k": Unbounded()})]
        assert np.array_equal(np.concatenate(chunks), expected)


def test_repeated_names_matter_only_where_they_are_needed():
    data = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["a", "b", "a"])
    for form in (data, data.to_reader()):
        source = as_source(form)
        assert source.names == ("a", "b", "a")
        (chunk,) = source.chunks({"b": Unbounded()})
        assert chunk["b"].tolist() == [2.0]
        with pytest.raises(DataError, match="several columns named 'a'"):
            source.kind("a")


@pytest.mark.parametrize("data", [pa.chunked_array([[1]]), pa.array([1]), pa.schema([])], ids=str)
def test_what_is_no_table_is_refused(data):
    with pytest.raises(ArgumentError, match=f"data is a {type(data).__name__}"):
        as_source(data)


def test_without_pyarrow_one_is_told_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n")
    pq.write_table(table(), tmp_path / "t.parquet")
    tables = [Exporter(table()), tmp_path / "t.csv", tmp_path / "t.parquet"]
    for name in [*sys.modules]:
        if name.startswith("pyarrow"):
            monkeypatch.setitem(sys.modules, name, None)
        elif name.startswith("dpreg.sources.") and name not in NEVER_ARROW:
            monkeypatch.delitem(sys.modules, name)
    for data in tables:
        with pytest.raises(ArgumentError, match=r"not installed: pip install 'dpreg\[arrow\]'"):
            as_source(data)


# Failures -------------------------------------------------------------------------------------

SECRET = "Zebulon"


def everything_said(error):
    """All that a curator could see of an error: its text, its traceback, what hangs on to it."""
    lines = traceback.format_exception(error, chain=True)
    return "".join(
        [*lines, str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    )


def fails(call, says):
    with pytest.raises(DataError, match=says) as caught:
        call()
    assert SECRET not in everything_said(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_engine_that_fails_says_nothing_of_a_row():
    db = pytest.importorskip("duckdb").connect()
    query = f"select case when range = 5000 then '{SECRET}' else '1' end as s from range(9000)"
    relation = db.sql(f"select cast(s as double) as x from ({query})")
    fails(lambda: read(as_source(relation), {"x": Numeric(0, 1)}), "DuckDBPyRelation failed while")


def test_a_stream_that_breaks_says_nothing_of_a_row():
    def batches():
        yield pa.record_batch({"x": [1.0]})
        raise ValueError(SECRET)

    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches())
    fails(lambda: read(as_source(reader), {"x": Numeric(0, 1)}), "failed while it was read")

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise KeyError(SECRET)

    fails(lambda: as_source(Broken()), "the Broken cannot be read as Arrow")


def test_an_integer_of_more_than_64_bits_is_the_number_it_is_in_polars():
    pl = pytest.importorskip("polars")
    cells = [1, None, 2**64, 2**64 + 1, -1]
    wide = pl.DataFrame({"x": pl.Series(cells, dtype=pl.Int128), "y": [0.5] * 5})
    source = as_source(wide)
    assert repr(source) == "Source(x: numeric, y: numeric)"
    plain = as_source({"x": cells, "y": [0.5] * 5})
    levels = ["1", "-1", str(2**64), repr(float(2**64))]
    for how in (Numeric(0, 1), Boolean(), Categorical([1, -1]), Categorical(levels)):
        assert same(
            read(source, {"y": Numeric(0, 1), "x": how}),
            read(plain, {"y": Numeric(0, 1), "x": how}),
        )
    persons = PersonId(b"k" * 32)
    assert same(read(source, {"x": persons}), read(plain, {"x": persons}))
    assert source.count() == source.rows == 5


def test_a_table_whose_rows_change_from_pass_to_pass_is_refused():
    class Fading(Exporter):
        def __arrow_c_stream__(self, requested_schema=None):
            now, self.data = self.data, self.data.slice(1)
            return now.__arrow_c_stream__()

    source = as_source(Fading(table()))
    read(source)
    fails(lambda: read(source), "another number of rows than before")


def test_a_table_whose_types_change_is_read_cell_by_cell():
    """Types may follow from rows, so after the charge they decide nothing."""

    class Turning(Exporter):
        def __arrow_c_stream__(self, requested_schema=None):
            now, self.data = self.data, pa.table({"x": [SECRET, "0.5"]})
            return now.__arrow_c_stream__()

    source = stream_source(Turning(pa.table({"x": [1.0, None]})))
    (first,), (second,) = (source.chunks({"x": Numeric(0, 1)}) for _ in range(2))
    np.testing.assert_array_equal(first["x"], [1.0, np.nan])
    np.testing.assert_array_equal(second["x"], [np.nan, 0.5])


def test_a_table_whose_names_change_is_refused():
    class Renaming(Exporter):
        def __arrow_c_stream__(self, requested_schema=None):
            now, self.data = self.data, self.data.rename_columns(["other"])
            return now.__arrow_c_stream__()

    source = stream_source(Renaming(pa.table({"x": [1.0]})))
    read(source, {"x": Numeric(0, 1)})
    fails(lambda: read(source, {"x": Numeric(0, 1)}), "the table has no column 'x'")


def test_missing_cells_of_integers_stay_exact():
    data = pa.table({"k": pa.array([2**53 - 1, None])})
    for form in (data, polars(data), duckdb(data)):
        (chunk,) = as_source(form).chunks({"k": Unbounded()})
        assert chunk["k"][0] == 2**53 - 1
        assert math.isnan(chunk["k"][1])


def test_a_dataset_of_several_files(tmp_path):
    for place in range(5):
        pq.write_table(table().slice(place * 2000, 2000), tmp_path / f"{place}.parquet")
    source = as_source(ds.dataset(tmp_path))
    assert same(read(source), read(as_source(table())))
    assert source.count() == ROWS
    (tmp_path / "3.parquet").write_bytes(b"PAR1" + SECRET.encode() * 1000 + b"PAR1")
    fails(lambda: read(source), "the FileSystemDataset failed while it was read")


def mixed_folder(folder):
    """Files of one column: numbers, and text of which one cell is none."""
    for place, cells in enumerate([[0.5] * 3, ["0.5", "lost"]]):
        (folder / f"k={place}").mkdir()
        pq.write_table(pa.table({"x": cells}), folder / f"k={place}" / "part.parquet")
    return ds.dataset(folder, partitioning="hive")


def test_each_file_of_a_dataset_is_read_in_its_own_types(tmp_path):
    files = mixed_folder(tmp_path)
    how = {"x": Numeric(0, 1), "k": Numeric(0, 5)}
    both = ds.dataset([files, ds.dataset(pa.table({"x": [2.0]}))])
    for data, more in ((files, []), (both, [2.0])):
        found = read(as_source(data), how)
        np.testing.assert_array_equal(found["x"], [0.5, 0.5, 0.5, 0.5, math.nan, *more])
        assert found["k"][:5].tolist() == [0, 0, 0, 1, 1]
    assert as_source(files).count() == 5
    chosen = as_source(files.filter(ds.field("k") == 0))
    assert read(chosen, how)["x"].tolist() == [0.5] * 3


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_datasets_of_text_files_are_refused_before_the_charge(tmp_path, kind):
    """Arrow would stop at a row that is malformed, and a quote would swallow others."""
    (tmp_path / f"x.{kind}").write_text({"csv": "x\n0.5\n", "json": '{"x": 0.5}\n'}[kind])
    text = ds.dataset(tmp_path / f"x.{kind}", format=kind)
    ledger = Ledger(1)
    both = ds.dataset([ds.dataset(pa.table({"x": [2.0]})), text])
    for data in (text, text.filter(ds.field("x") < 1), both):
        with pytest.raises(ArgumentError, match=f"with {kind.upper()} files, .* \\(data.files\\)"):
            dpreg.dp_mean("x", data, bounds=(0, 1), eps=1, budget=ledger)
    assert ledger.entries == ()
    if kind == "csv":
        assert read(as_source(text.files), {"x": Numeric(0, 1)})["x"].tolist() == [0.5]


def test_an_error_that_is_ours_keeps_its_words():
    db = pytest.importorskip("duckdb").connect()
    relation = db.sql("select 1.5 as x")
    source = as_source(relation)
    db.close()
    fails(
        lambda: read(source, {"x": Numeric(0, 1)}), r"cannot be read as Arrow: .*\(\w+Exception\)"
    )


def test_the_check_of_what_is_said_finds_a_mutant():
    def hides_it_only():
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise DataError("failed") from None

    with pytest.raises(AssertionError):
        fails(hides_it_only, "failed")


def test_a_scanner_is_no_table():
    scanner = ds.dataset(pa.table({"x": [1.0]})).scanner()
    with pytest.raises(ArgumentError, match="data is a Scanner, which is not a table"):
        as_source(scanner)
