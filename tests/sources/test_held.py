"""Text is parsed once, queries run once and streams serve for any number of passes, unseen."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pandas as pd
import pytest
from oracles.open_files import open_files

import dpreg
from dpreg.columns import Boolean, Categorical, Numeric, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.where import where_of
from dpreg.schema import Schema
from dpreg.sources import LocalSource, as_source
from dpreg.sources import kept as spool
from dpreg.sources.csv_files import CsvSource
from dpreg.sources.kept import MADE, HeldSource, count_rows
from dpreg.sources.reader import Reader

pa = pytest.importorskip("pyarrow")

ROWS = 70_000
COLUMNS = {
    "x": Unbounded(),
    "k": Numeric(0, 9),
    "b": Boolean(),
    "g": Categorical(("u", "v")),
    "who": PersonId(bytes(32)),
}
SCHEMA = {"x": (-3, 3), "k": (0, 9), "g": ["u", "v"]}
FORMULA = "x ~ k + g"

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks at /proc")


def table():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "x": rng.normal(size=ROWS),
            "unused": "text",
            "k": rng.integers(0, 10, ROWS).astype(float),
            "b": rng.random(ROWS) < 0.5,
            "g": rng.choice(["u", "v", "w"], ROWS),
            "who": rng.integers(0, 900, ROWS),
        }
    )
    rows.loc[::7, "k"] = np.nan
    return rows


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("held") / "rows.csv"
    table().to_csv(path, index=False)
    return path


def pieces():
    rows = table()
    return (rows[start : start + 9999] for start in range(0, ROWS, 9999))


def relation(csv):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(f"select * from read_csv('{csv}')")


FORMS = {
    "CSV": lambda csv: csv,
    "function": lambda csv: pieces,
    "stream": lambda csv: pa.Table.from_pandas(table()).to_reader(7777),
    "DuckDB": relation,
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(params=[1 << 29, 900_000, 0], ids=["in memory", "in both", "in a file"])
def limit(request, monkeypatch):
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", request.param)
    return request.param


def whole(source, columns=COLUMNS, size=50_000):
    chunks = list(source.chunks(columns, size))
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in columns}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, cells in one.items():
        assert cells.dtype == other[name].dtype
        assert cells.tobytes() == other[name].tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_every_pass_gives_the_rows_of_the_table(form, csv, limit):
    source = as_source(FORMS[form](csv))
    assert source.fleeting
    assert source.hold
    held = HeldSource(source, COLUMNS)
    plain = whole(as_source(pd.read_csv(csv)))
    assert_same(whole(held, size=40_000), plain)
    assert held.rows == held.count() == ROWS
    for size in (313, 50_000):
        assert_same(whole(held, size=size), plain)
    some = {"g": COLUMNS["g"], "x": COLUMNS["x"]}
    assert_same(whole(held, some), {name: plain[name] for name in some})


def test_the_first_pass_may_ask_for_some_columns_in_several_threads(csv, limit, monkeypatch):
    monkeypatch.setenv("DPREG_THREADS", "3")
    monkeypatch.setattr("dpreg.sources.kept.rows_of", lambda columns: 999)
    held = HeldSource(as_source(csv), COLUMNS)

    def places(chunks):
        listed = [(start, *chunk) for start, chunk in chunks]
        return np.array([sum(one[0] for one in listed), len(listed)], dtype=object)

    first = held.total({"k": COLUMNS["k"]}, places)
    assert first[1] > 70
    assert_same(whole(held), whole(as_source(pd.read_csv(csv))))


def doubled(chunk):
    """Something made of rows, one row a row."""
    return np.column_stack([2 * chunk["k"], chunk["g"]]).astype(np.float32)


@pytest.mark.parametrize("before", [False, True], ids=["at once", "of kept rows"])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_made_of_rows_is_kept(form, before, csv, limit):
    held = HeldSource(as_source(FORMS[form](csv)), COLUMNS)
    if before:
        held.count()
    some = {"k": COLUMNS["k"], "g": COLUMNS["g"]}
    made = held.making(some, doubled)
    plain = {MADE: doubled(whole(as_source(pd.read_csv(csv)), some))}
    for size in (40_000, 313):
        assert_same(whole(made, made._columns, size), plain)
    assert made.rows == ROWS


@linux
def test_what_is_made_goes_to_a_file_where_rows_fill_the_limit(folder, csv, monkeypatch):
    columns = {"k": COLUMNS["k"], "g": COLUMNS["g"]}
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", ROWS * 15)
    held = HeldSource(as_source(csv), columns)
    held.count()
    assert open_files(folder) == []
    made = held.making(columns, doubled)
    made.count()
    assert len(open_files(folder)) == 1
    held = HeldSource(as_source(csv), columns)
    made = held.making(columns, doubled)
    made.count()
    assert len(open_files(folder)) == 0, "rows that are not kept take no room"


def test_a_reader_makes_rows_that_pass_and_counts_on(csv):
    columns = {"k": COLUMNS["k"], "g": COLUMNS["g"]}
    test = where_of("k > 4", Schema.from_any(SCHEMA))
    reader = Reader(as_source(csv), where=test)
    reader.settle(columns)
    reader.require(3)
    reader.total(columns, count_rows, "rows")
    found = reader.making(columns, doubled)
    (told,) = found.total({MADE: Unbounded()}, present, "rows")
    assert told == int((table()["k"] > 4).sum())
    assert (reader.passes, found.passes) == (1, 2)


def present(chunks):
    return np.array([sum(int((chunk[MADE][:, 0] > 0).sum()) for _, chunk in chunks)], dtype=object)


@pytest.mark.parametrize("place", [3, 60_000], ids=["at the start", "late"])
def test_a_word_among_numbers_changes_no_other_cell(place, tmp_path):
    """From the block that has it on all cells are read as text: to the same numbers."""
    rows = table()[["x", "k"]].astype(object)
    rows.loc[place, "x"] = "1_0"
    rows.loc[ROWS - 1, "x"] = "none"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    columns = {name: COLUMNS[name] for name in ("x", "k")}
    found = whole(as_source(tmp_path / "rows.csv"), columns)
    for name in columns:
        plain = pd.to_numeric(rows[name], errors="coerce").to_numpy(float)
        assert np.array_equal(found[name], plain, equal_nan=True)


def counting(monkeypatch, kind=CsvSource):
    """Return a list that grows by one whenever such a table is gone through."""
    made, honest = [], kind._pieces

    def noted(self, columns, size):
        made.append(columns)
        return honest(self, columns, size)

    monkeypatch.setattr(kind, "_pieces", noted)
    return made


CALLS = [
    (lambda data: dpreg.dp_ols(FORMULA, data, 1, schema=SCHEMA), 5),
    (lambda data: dpreg.dp_ols(FORMULA, data, 1e-4, schema=SCHEMA), 1),
    (lambda data: dpreg.dp_ols(FORMULA, data, 1, schema=SCHEMA, neighbors="add-remove"), 5),
    (lambda data: dpreg.dp_ols(FORMULA, data, 1, schema=SCHEMA, method="objective"), 3),
    (lambda data: dpreg.dp_ols(FORMULA, data, 1, schema=SCHEMA, person="who"), 5),
    (lambda data: dpreg.dp_glm("b ~ x + k", data, 1, schema={**SCHEMA, "b": bool}), 5),
    (lambda data: dpreg.dp_histogram("x", data, eps=1, schema=SCHEMA), 2),
    (lambda data: dpreg.dp_mean(["x", "k"], data, eps=1, schema=SCHEMA), 1),
]


@pytest.mark.parametrize(("call", "passes"), CALLS)
def test_text_is_parsed_once_and_passes_are_those_of_a_frame(call, passes, csv, monkeypatch):
    made = counting(monkeypatch)
    assert call(csv).passes == passes
    (columns,) = made
    assert "unused" not in columns
    assert call(table()).passes == passes


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.filterwarnings("ignore:the schema leaves out")
def test_bounds_are_bought_of_rows_that_are_parsed_once(person, csv, monkeypatch):
    made = counting(monkeypatch)
    bare = {"g": ["u", "v"]}
    fit = dpreg.dp_ols(FORMULA, csv, 1, delta=1e-6, schema=bare, person=person, unsafe_seed=1)
    assert len(made) == 1
    same = dpreg.dp_ols(FORMULA, table(), 1, delta=1e-6, schema=bare, person=person, unsafe_seed=1)
    assert fit.passes == same.passes
    assert fit.params.equals(same.params)


@pytest.mark.parametrize("levels", [3, 20])
def test_a_factor_of_many_levels_is_not_written_out(levels, monkeypatch):
    """A level is a code of four bytes, and would be as many cells as there are levels."""
    rows = table().assign(g=np.arange(ROWS) % levels)
    schema = {**SCHEMA, "g": {"levels": list(range(levels))}}
    made, honest = [], HeldSource.making
    monkeypatch.setattr(HeldSource, "making", lambda *args: made.append(args) or honest(*args))
    calls = [
        dpreg.dp_ols("x ~ C(g) + k", data, 9, schema=schema, unsafe_seed=1, method="adaptive")
        for data in (rows, lambda: [rows])
    ]
    assert len(made) == (levels == 3)
    assert calls[0].params.equals(calls[1].params)


def test_one_pass_keeps_nothing(csv, monkeypatch):
    monkeypatch.setattr(HeldSource, "__init__", None)
    assert dpreg.dp_ols(FORMULA, csv, 1, schema=SCHEMA, method="gram").passes == 1
    assert dpreg.dp_mean("x", csv, eps=1, schema=SCHEMA, by="g").passes == 1


def test_what_is_read_cheaply_is_not_kept(csv, tmp_path):
    import pyarrow.dataset as ds

    table().to_parquet(tmp_path / "rows.parquet")
    arrow = pa.Table.from_pandas(table())
    for data in (table(), tmp_path / "rows.parquet", arrow, ds.dataset(tmp_path / "rows.parquet")):
        assert not as_source(data).fleeting


def test_rows_that_a_function_lends_are_copied():
    rows, columns = table()[["x"]], {"x": Unbounded()}

    def lending():
        buffer = np.zeros(7000)
        for start in range(0, ROWS, 7000):
            buffer[:] = rows["x"][start : start + 7000]
            lent = pa.Array.from_buffers(pa.float64(), 7000, [None, pa.py_buffer(buffer)])
            yield pa.table({"x": lent})
        buffer[:] = 99

    held = HeldSource(as_source(lending), columns)
    for _ in held.chunks(columns):  # one thread: each chunk is read before the next is made
        pass
    assert_same(whole(held, columns), whole(as_source(rows), columns))


# ---- the file ----


@linux
def test_the_file_has_no_name_and_goes_with_its_table(folder, csv, monkeypatch):
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 0)
    held = HeldSource(as_source(csv), COLUMNS)
    assert held.count() == ROWS
    (state,) = open_files(folder)
    assert state.st_nlink == 0
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert state.st_uid == os.getuid()
    assert state.st_size == ROWS * (8 + 8 + 8 + 4 + 16)
    assert os.listdir(folder) == []
    del held
    assert open_files(folder) == []


@linux
def test_no_file_is_made_below_the_limit(folder, csv, monkeypatch):
    held = HeldSource(as_source(csv), {"x": Unbounded()})
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", ROWS * 8)
    held.count()
    assert open_files(folder) == []


@linux
@pytest.mark.parametrize("place", [9, 99], ids=["while it is kept", "after"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_a_call_ends_the_file(error, place, folder, monkeypatch):
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 0)
    seen = []

    def noting(start, rows):
        seen.append(len(open_files(folder)))
        if len(seen) > place:
            raise error
        return rows[start : start + 5_000]

    rows = table()
    if place == 99:  # in the pass after
        honest = HeldSource.total

        def total(self, *args, **more):
            if self.rows is not None:
                seen.append(len(open_files(folder)))
                raise error
            return honest(self, *args, **more)

        monkeypatch.setattr(HeldSource, "total", total)

    def chunks():
        return (noting(start, rows) for start in range(0, ROWS, 5_000))

    with pytest.raises((error, DataError)):
        dpreg.dp_ols(FORMULA, chunks, 1, schema=SCHEMA)
    assert seen[-1] == 1
    assert open_files(folder) == []
    assert os.listdir(folder) == []


@linux
def test_a_kill_leaves_nothing(folder, csv):
    program = f"""
        import os, signal
        from dpreg.columns import Unbounded
        from dpreg.sources import as_source
        from dpreg.sources import kept as spool
        from dpreg.sources.kept import HeldSource
        spool.HELD_BYTES = 0
        held = HeldSource(as_source({str(csv)!r}), {{"x": Unbounded()}})
        assert held.count() == {ROWS} and held._file is not None
        os.kill(os.getpid(), signal.SIGKILL)
    """
    environment = os.environ | {"TMPDIR": str(folder)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert os.listdir(folder) == []


@linux
def test_a_disk_that_fails_says_so_and_nothing_of_the_rows(csv, monkeypatch):
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 0)
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/none")
    with pytest.raises(DataError, match="temporary file for the rows failed") as told:
        dpreg.dp_ols(FORMULA, csv, 1, schema=SCHEMA)
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_shows_that_text_is_parsed(shown, csv, capsys):
    reader = Reader(as_source(csv), shown)
    reader.settle(COLUMNS)
    reader.require(2, counts=True)
    assert reader.rows == ROWS
    assert reader.passes == 0
    printed = capsys.readouterr().err
    assert ("rows" in printed and "file" in printed) is shown
    assert "70000" not in printed.replace(",", "")


# ---- where the owner says no ----


def refused(data):
    return as_source(data, hold=False)


def test_rows_that_may_not_be_held_are_read_for_each_pass(csv, monkeypatch):
    made = counting(monkeypatch)
    one = dpreg.dp_ols(FORMULA, refused(csv), 1, schema=SCHEMA, unsafe_seed=1)
    assert len([columns for columns in made if columns]) == one.passes == 5  # one more counts
    assert one.params.equals(dpreg.dp_ols(FORMULA, csv, 1, schema=SCHEMA, unsafe_seed=1).params)


def test_a_stream_that_may_not_be_held_takes_gram_and_says_why():
    fit = dpreg.dp_ols(FORMULA, refused(FORMS["stream"](None)), 1, schema=SCHEMA)
    assert (fit.method, fit.passes) == ("gram", 1)
    assert fit.notes[0].startswith('method="gram": the rows can be read once, and may not be held')
    assert "objective" not in fit.notes[0]
    held = dpreg.dp_ols(FORMULA, FORMS["stream"](None), 1, schema=SCHEMA)
    assert (held.method, held.passes) == ("adaptive", 5)
    ledger = dpreg.Ledger(9)
    for call in (
        lambda data: dpreg.dp_ols(
            FORMULA, data, 1, schema=SCHEMA, method="adaptive", budget=ledger
        ),
        lambda data: dpreg.dp_glm("k ~ x", data, 1, family="poisson", schema=SCHEMA, budget=ledger),
    ):
        with pytest.raises(DataError, match=r"must read it \d times: let its rows be held"):
            call(refused(FORMS["stream"](None)))
    assert ledger.spent.eps == 0


@pytest.mark.parametrize("hold", [0, None, "no", np.True_])
def test_hold_is_a_truth(hold):
    with pytest.raises(ArgumentError, match="hold must be True or False"):
        as_source(table(), hold=hold)
    assert isinstance(as_source(table(), hold=False), LocalSource)


def test_a_result_does_not_tell_whether_rows_went_to_a_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(-1, 1, 3_000), "y": rng.uniform(-1, 1, 3_000)})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    call = {"schema": {"x": (-1, 1), "y": (-1, 1)}, "method": "adaptive", "unsafe_seed": 1}
    found = []
    for limit in (spool.HELD_BYTES, 1_000):
        monkeypatch.setattr(spool, "HELD_BYTES", limit)
        fit = dpreg.dp_ols("y ~ x", tmp_path / "rows.csv", 1, neighbors="add-remove", **call)
        found.append(fit.to_dict() | {"record": None})
    assert found[0] == found[1]
