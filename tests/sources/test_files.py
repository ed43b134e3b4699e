"""Parquet and CSV files: found by name, compared before a row is read, read as pandas' cells."""

import contextlib
import gzip
import math
import subprocess
import sys
import traceback
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.cells import number
from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.sources import Source, as_source

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

ROWS = 5000
HOW = {
    "x": Numeric(0, 1),
    "c": Categorical(["b", "a"]),
    "t": Boolean(),
    "k": Unbounded(),
    "id": Categorical(["1", "2"]),
}


def table(rows=ROWS, seed=7):
    rng = np.random.default_rng(seed)
    missing = rng.random(rows) < 0.1
    return pa.table(
        {
            "x": pa.array(rng.normal(size=rows), mask=missing),
            "c": pa.array(rng.choice(["a", "b", "zz"], rows), mask=missing[::-1].copy()),
            "t": pa.array(rng.random(rows) < 0.5),
            "d": pa.array(np.zeros(rows, "datetime64[s]")),
            "k": pa.array(rng.integers(-5, 5, rows)),
            "id": pa.array([str(n) for n in rng.permutation(rows)], pa.large_string()),
        }
    )


def write_csv(data, path):
    """Write a table as pandas does; a file's truths are words, its missing cells are empty."""
    data.to_pandas().to_csv(path, index=False)


def read(source, how=HOW, size=997):
    chunks = list(source.chunks(how, size))
    lengths = [len(next(iter(chunk.values()))) for chunk in chunks]
    assert all(0 < length <= size for length in lengths)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in how}


def same(a, b):
    return all(
        a[name].dtype == b[name].dtype
        and np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
        for name in a
    )


@pytest.fixture
def folder(tmp_path):
    """Two Parquet files of several row groups, and two CSV files of the same rows."""
    whole = table()
    for place, part in enumerate([whole.slice(0, 3000), whole.slice(3000)]):
        pq.write_table(part, tmp_path / f"part-{place}.parquet", row_group_size=700)
        write_csv(part, tmp_path / f"part-{place}.csv")
    return tmp_path


# Which files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        lambda folder: folder / "part-*.parquet",
        lambda folder: str(folder / "*.parquet"),
        lambda folder: [folder / "part-0.parquet", str(folder / "part-1.parquet")],
        lambda folder: (folder / "part-0.parquet", folder / "part-[1-9].parquet"),
        lambda folder: str(folder / "*.csv"),
        lambda folder: [folder / "part-0.csv", folder / "part-1.csv"],
        lambda folder: str(folder / "**" / "part-*.parquet"),
    ],
)
def test_paths_globs_and_lists_come_in_order(folder, given):
    source = as_source(given(folder))
    assert isinstance(source, Source)
    assert source.rereadable
    for _ in range(2):
        assert same(read(source), read(as_source(table())))
    assert source.count() == ROWS


def test_a_folder_of_files(folder):
    with pytest.raises(ArgumentError, match="both formats"):
        as_source(folder)
    for name in ("part-0.csv", "part-1.csv"):
        (folder / name).unlink()
    for name in ("_SUCCESS", ".part-0.parquet.crc", "_metadata.parquet", "readme.txt"):
        (folder / name).write_bytes(b"")
    assert same(read(as_source(folder)), read(as_source(table())))


def test_files_that_are_not_there_are_refused(tmp_path):
    for path, says in [
        (tmp_path / "none.parquet", "there is no file '.*none.parquet'"),
        ("none.csv", "there is no file 'none.csv'"),
        (tmp_path / "*.parquet", r"no file matches '.*\*.parquet'"),
        (tmp_path, "holds no Parquet and no CSV file"),
        ([tmp_path / "none.csv"], "there is no file"),
    ]:
        with pytest.raises(DataError, match=says):
            as_source(path)


def test_files_of_no_known_format_are_refused(tmp_path):
    (tmp_path / "data.txt").write_text("x\n1\n")
    with pytest.raises(ArgumentError, match=r"ends in none of \.parquet, \.pq, "):
        as_source(tmp_path / "data.txt")


def test_a_partitioned_folder_is_refused(tmp_path):
    (tmp_path / "year=2020").mkdir()
    pq.write_table(table(10), tmp_path / "year=2020" / "a.parquet")
    with pytest.raises(DataError, match="is partitioned by the names of its folders"):
        as_source(tmp_path)


# Public facts ---------------------------------------------------------------------------------


def test_what_a_parquet_file_knows_before_a_row_is_read(folder):
    source = as_source(folder / "*.parquet")
    kinds = {"x": "numeric", "c": "string", "t": "bool", "d": "datetime", "k": "numeric"}
    assert {name: source.kind(name) for name in source.names} == {**kinds, "id": "string"}
    assert (source.rows, source.parts, source.unit) == (ROWS, 8, "row group")
    assert repr(source).startswith("Source(x: numeric, c: string, t: bool")
    told = []
    source.total(HOW, lambda chunks: np.array([sum(1 for _ in chunks)]), advance=told.append)
    assert sum(told) == 8


def test_what_a_csv_file_knows_before_a_row_is_read(folder):
    source = as_source(folder / "*.csv")
    assert [source.kind(name) for name in source.names] == ["object"] * 6
    assert (source.rows, source.parts, source.unit) == (None, 2, "file")
    assert repr(source).startswith("Source(x: object, c: object")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_what_cannot_be_read_is_refused_before_a_row_is_read(folder, form):
    source = as_source(folder / f"*.{form}")
    with pytest.raises(DataError, match="no column 'lat'"):
        source.chunks({"lat": Numeric(0, 1)})
    if form == "parquet":
        with pytest.raises(
            DataError, match="'c' holds text or labels and the schema does not declare it"
        ):
            source.chunks({"c": Unbounded()})


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_that_lack_a_column_are_refused_where_it_is_needed(folder, form):
    write = pq.write_table if form == "parquet" else write_csv
    write(table().drop_columns(["k"]), folder / f"part-2.{form}")
    source = as_source(folder / f"*.{form}")
    with pytest.raises(DataError, match=rf"part-0.{form} has a column 'k' and .*part-2.{form} has"):
        source.chunks(HOW)
    assert len(read(source, {"x": Numeric(0, 1)})["x"]) == 2 * ROWS
    assert source.names[0] in repr(source)


ODD_TYPES = {
    "text": pa.array(["7"] * (ROWS - 1) + ["lost"]),
    "labels": pa.array(["7"] * ROWS).dictionary_encode(),
    "truths": pa.array([True] * ROWS),
    "dates": pa.array(np.zeros(ROWS, "datetime64[s]")),
    "bytes": pa.array([b"7"] * ROWS),
    "lists": pa.array([[7.0]] * ROWS),
}


@pytest.mark.parametrize("types", ODD_TYPES)
def test_parquet_files_whose_types_differ_are_read_cell_by_cell(folder, types):
    before = read(as_source(folder / "*.parquet"))
    odd = ODD_TYPES[types]
    pq.write_table(table().set_column(0, "x", odd), folder / "part-2.parquet")
    source = as_source(folder / "*.parquet")
    assert "x: object, c: string" in repr(source)
    after = read(source)
    assert np.array_equal(after["x"][:ROWS], before["x"], equal_nan=True)
    alone = read(as_source(pa.table({"x": odd})), {"x": HOW["x"]})["x"]
    assert np.array_equal(after["x"][ROWS:], alone, equal_nan=True)
    read(source, {"x": Unbounded()})  # as numbers, as an object column of pandas would be


def test_a_number_in_any_file_makes_a_column_readable(folder):
    for place in (0, 1):
        pq.write_table(pa.table({"x": ["1", "lost"]}), folder / f"part-{place}.parquet")
    pq.write_table(pa.table({"x": [2.0]}), folder / "part-2.parquet")
    found = read(as_source(folder / "*.parquet"), {"x": Unbounded()})["x"]
    np.testing.assert_array_equal(found, [1, math.nan, 1, math.nan, 2])


def test_parquet_files_of_labels_and_dates_alone_are_refused_where_nobody_declares_them(folder):
    pq.write_table(table().set_column(1, "c", ODD_TYPES["dates"]), folder / "part-2.parquet")
    source = as_source(folder / "*.parquet")
    with pytest.raises(DataError, match="'c' holds text or labels and the schema does not"):
        source.chunks({"c": Unbounded()})
    read(source, {"c": HOW["c"]})


def test_a_column_without_a_cell_goes_with_any_kind(folder):
    pq.write_table(table().set_column(1, "c", pa.nulls(ROWS)), folder / "empty.parquet")
    source = as_source(folder / "*.parquet")
    assert source.kind("c") == "string"
    codes = read(source)["c"]
    assert (codes[:ROWS] == -1).all()
    assert (codes[ROWS:] == read(as_source(table()))["c"]).all()


def test_columns_may_come_in_another_order_and_width(folder):
    turned = table(seed=8).select(["id", "k", "t", "c", "x"])
    pq.write_table(turned.cast(pa.schema(
        [("id", pa.string()), ("k", pa.int16()), ("t", pa.bool_()), ("c", pa.large_string()),
         ("x", pa.float64())]
    )), folder / "part-2.parquet")  # fmt: skip
    write_csv(turned, folder / "part-2.csv")
    both = pa.concat_tables([table().select(list(HOW)), turned.select(list(HOW))])
    for form in ("parquet", "csv"):
        assert same(read(as_source(folder / f"*.{form}")), read(as_source(both)))


# Parquet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {"use_dictionary": False}, {"compression": "zstd"}, {"compression": "none"},
    {"data_page_version": "2.0"}, {"row_group_size": 10}, {"store_schema": False},
    {"write_page_checksum": True}, {"data_page_size": 512, "dictionary_pagesize_limit": 64},
])  # fmt: skip
def test_however_it_was_written(tmp_path, options):
    pq.write_table(table(), tmp_path / "t.pq", **options)
    assert same(read(as_source(tmp_path / "t.pq")), read(as_source(table())))


def test_dictionaries_and_decimals_and_nulls(tmp_path):
    data = pa.table(
        {
            "c": pa.array(["a", None, "zz", "b"] * 100).dictionary_encode(),
            "m": pa.array([Decimal("0.10"), None, Decimal("2.50"), Decimal("-1.00")] * 100),
            "n": pa.nulls(400),
            "f": pa.array([0.1, None, 2.5, -1] * 100, pa.float32()),
        }
    )
    pq.write_table(data, tmp_path / "t.parquet", row_group_size=64)
    source = as_source(tmp_path / "t.parquet")
    kinds = [source.kind(name) for name in source.names]
    assert kinds == ["category", "numeric", "object", "numeric"]
    how = {"c": HOW["c"], "m": Unbounded(), "n": Unbounded(), "f": Unbounded()}
    assert same(read(source, how), read(as_source(data.to_pandas()), how))


def test_a_column_named_like_a_path_into_another(tmp_path):
    data = pa.table({"a.b": [1.0], "a": [{"b": 2.0}], "c": [3.0], "c.d": [4.0]})
    pq.write_table(data, tmp_path / "t.parquet")
    how = {name: Numeric(0, 1) for name in data.column_names}
    values = read(as_source(tmp_path / "t.parquet"), how)
    assert [values[name][0] for name in ("a.b", "c", "c.d")] == [1.0, 3.0, 4.0]
    assert math.isnan(values["a"][0])


def test_files_without_rows(tmp_path):
    pq.write_table(table(0), tmp_path / "a.parquet")
    pq.write_table(table(3), tmp_path / "b.parquet")
    pq.write_table(table(0), tmp_path / "c.parquet")
    assert list(as_source(tmp_path / "a.parquet").chunks(HOW)) == []
    assert as_source(tmp_path / "a.parquet").rows == 0
    assert same(read(as_source(tmp_path)), read(as_source(table(3))))


# CSV ------------------------------------------------------------------------------------------


def csv(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    raw = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return as_source(path)


def test_cells_are_text_whatever_stands_in_the_other_rows(tmp_path):
    cells = ["1", "01", "+1", " 3 ", "1_0", "inf", "nan", "True", "1e400", "0x1", "NA", "\u0661"]
    for how in (Numeric(0, 1), Boolean(), Categorical(["1", "01", "inf", "NA"]), Unbounded()):
        (alone,) = as_source({"x": cells}).chunks({"x": how})
        whole = read(csv(tmp_path, "x,y\n" + "".join(f"{c},\n" for c in cells)), {"x": how})
        assert same(whole, alone)


def test_empty_cells_are_missing_quoted_or_not(tmp_path):
    values = read(csv(tmp_path, 'x,c\n,\n"",""\n1,a\n'), {"x": Unbounded(), "c": HOW["c"]})
    assert np.isnan(values["x"]).tolist() == [True, True, False]
    assert values["c"].tolist() == [-1, -1, 1]


def test_quotes_and_commas_in_cells(tmp_path):
    text = 'c,x\r\n"a,""b""z",1\r\n"b",2\r\n'
    how = {"c": Categorical(['a,"b"z', "b"]), "x": Unbounded()}
    values = read(csv(tmp_path, text), how)
    assert values["c"].tolist() == [0, 1]
    assert values["x"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_rows_of_too_many_or_few_cells_are_rows_without_cells(tmp_path, name):
    text = b"x,c\n1,a\n1,a,9\n7\n\n2,b\n\xff,\xff,\xff\n5\n3"
    source = csv(tmp_path, text, name)
    values = read(source, {"x": Unbounded(), "c": HOW["c"]}, 2)
    assert values["x"][[0, 2]].tolist() == [1.0, 2.0]  # a blank line is a row, too
    assert np.isnan(values["x"][[1, 3, 4, 5, 6, 7]]).all()
    assert values["c"].tolist() == [1, -1, 0, -1, -1, -1, -1, -1]
    assert source.count() == 8


@pytest.mark.parametrize("line", ['"2,a', '2,"a', '"2,""a', '2,a"b,"', '"2","a""', '"'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_quote_that_is_never_closed_spoils_its_line_alone(tmp_path, line, end):
    source = csv(tmp_path, end.join(["x,c", "1,a", line, '"3","a"', '4,"a,"', ""]))
    values = read(source, {"x": Unbounded()})["x"]
    assert sorted(values[~np.isnan(values)].tolist()) == [1.0, 3.0, 4.0]
    assert source.count() == len(values) == 4


@given(
    st.lists(st.text('a1," \t\ufeff', max_size=8), min_size=1, max_size=6),
    st.integers(0, 5),
    st.text('a1," \t\ufeff', max_size=8),
    st.sampled_from([1, 5, 1000]),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_a_line_changes_one_row(tmp_path_factory, lines, place, other, block, end):
    """Replace-one and k = 1 for files: all rows but one stay, as a multiset."""
    from dpreg.sources import csv_files as csv_blocks

    def rows(cells):
        folder = tmp_path_factory.mktemp("lines")
        source = csv(folder, "x,c\n" + "".join(line + end for line in cells))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_blocks.line_blocks, "__defaults__", (block,))
            chunk = read(source, how)
        pairs = zip(chunk["x"].tolist(), chunk["c"].tolist(), strict=True)
        return Counter(str(pair) for pair in pairs)

    how = {"x": Unbounded(), "c": HOW["c"]}
    changed = [*lines]
    changed[place % len(lines)] = other
    one, two = rows(lines), rows(changed)
    assert one.total() == two.total() == len(lines)
    assert (one - two).total() <= 1


def test_a_line_that_is_too_long_spoils_itself_alone(tmp_path, monkeypatch):
    from dpreg.sources import csv_files as csv_blocks

    monkeypatch.setattr(csv_blocks, "_LONGEST_ROW", 100)
    monkeypatch.setattr(csv_blocks.line_blocks, "__defaults__", (30,))
    source = csv(tmp_path, "x,c\n1,a\n2," + "b" * 400 + "\n3,a\n")
    values = read(source, {"x": Unbounded()})["x"]
    assert sorted(values[~np.isnan(values)].tolist()) == [1.0, 3.0]
    assert source.count() == len(values) == 3


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("length", [97, 98, 99, 100, 400])
def test_whether_a_line_is_too_long_does_not_hang_on_its_place_or_its_end(
    tmp_path, monkeypatch, length, end
):
    from dpreg.sources import csv_files as csv_blocks

    monkeypatch.setattr(csv_blocks, "_LONGEST_ROW", 100)
    for size in (7, 30):
        monkeypatch.setattr(csv_blocks.line_blocks, "__defaults__", (size,))
        for before in range(12):
            lines = ["1,a"] * before + ["2," + "b" * length, "3,a", "", "4,a"]
            source = csv(tmp_path, "x,c\n" + end.join(lines))
            values = read(source, {"x": Unbounded()})["x"]
            kept = [1.0] * before + [2.0] * (length <= 98) + [3.0, 4.0]
            assert sorted(values[~np.isnan(values)].tolist()) == kept
            assert source.count() == len(values) == before + 4


@pytest.mark.parametrize("line", ["\ufeff1,2", '\ufeff"1,2', '\ufeff"1","2"', "\ufeff\ufeff1,2"])
@pytest.mark.parametrize("size", [1, 4, 9, 1000])
def test_a_mark_of_byte_order_in_a_row_spoils_no_other(tmp_path, monkeypatch, line, size):
    """pyarrow takes one away wherever a block begins, and a quote behind it would open a cell."""
    from dpreg.sources import csv_files as csv_blocks

    monkeypatch.setattr(csv_blocks.line_blocks, "__defaults__", (size,))
    for place in range(5):
        lines = ["1,2"] * 4
        lines.insert(place, line)
        source = csv(tmp_path, "x,y\n" + "".join(f"{one}\n" for one in lines))
        values = read(source, {"x": Unbounded(), "y": Unbounded()})
        assert source.count() == len(values["x"]) == 5
        assert np.nansum(values["x"]) == 4 == np.isfinite(values["x"]).sum()


def test_blank_lines_of_one_column_are_rows(tmp_path):
    """Else their number, which is public under replace-one, would be that of the complete rows."""
    source = csv(tmp_path, "x\n1\n\n\n2\n")
    assert source.count() == 4
    assert np.isnan(read(source, {"x": Unbounded()})["x"]).tolist() == [False, True, True, False]


def test_an_error_does_not_show_the_names_of_a_file_s_first_line(tmp_path):
    source = csv(tmp_path, f"{SECRET},a\n{SECRET},b\n")
    fails(lambda: source.kind("x"), "names no column 'x'")


def test_a_mark_of_byte_order_and_text_that_is_no_utf8(tmp_path):
    source = csv(tmp_path, b"\xef\xbb\xbfx,c\n1,\xff\xfe\n\xff,a\n")
    assert source.names == ("x", "c")
    values = read(source, {"x": Unbounded(), "c": HOW["c"]})
    assert values["c"].tolist() == [-1, 1]
    assert same(values, {"x": np.array([1.0, math.nan]), "c": values["c"]})


def test_csv_files_without_rows(tmp_path):
    for text in ("x,c\n", "x,c", "\n\nx,c\n"):
        source = csv(tmp_path, text)
        assert list(source.chunks({"x": Unbounded()})) == []
        assert source.count() == 0


@pytest.mark.parametrize("text", ["", "\n\n", b"\xff\xfe,c\n1,2\n"])
def test_csv_files_without_a_header_cannot_be_read(tmp_path, text):
    with pytest.raises(DataError, match="cannot be read as CSV, or has no line with a head"):
        csv(tmp_path, text)


def test_a_first_row_is_not_taken_for_a_header(tmp_path):
    fails(
        lambda: csv(tmp_path, f"1.5,{SECRET}\n2.5,a\n"), "the first line of .*t.csv holds numbers"
    )


@pytest.mark.parametrize("block", [1, 2, 3, 5, 8, 1000])
def test_blocks_end_where_rows_end(tmp_path, monkeypatch, block):
    """Cells in quotes that hold commas and quotes, across every place of a cut."""
    from dpreg.sources import csv_files as csv_blocks

    monkeypatch.setattr(csv_blocks.line_blocks, "__defaults__", (block,))
    cells = ["a", "a b", 'say ""hi"", he', ",", ',"",', 'x"",""', "", '5" tall', "b,"]
    lines = [f'{row},"{cell}"\n' for row, cell in enumerate(cells)]
    lines[7] = f"7,{cells[7]}\n"  # a quote within a cell opens nothing
    levels = [cell.replace('""', '"') for cell in cells if cell]
    how = {"x": Unbounded(), "c": Categorical(levels)}
    for mark in ("", "\ufeff"):
        source = csv(tmp_path, f'{mark}"x",c\n' + "".join(lines * 3))
        values = read(source, how)
        assert values["x"].tolist() == [*range(len(cells))] * 3
        assert values["c"].tolist() == [0, 1, 2, 3, 4, 5, -1, 6, 7] * 3


def test_a_process_ends_well_with_a_file_half_read(tmp_path):
    """Threads of pyarrow's that call Python when it ends would take it down."""
    (tmp_path / "t.csv").write_text("x,c\n" + "1,a\n2\n" * 500_000)
    script = (
        "from dpreg.sources import as_source; from dpreg.columns import Unbounded\n"
        f"chunks = as_source({str(tmp_path / 't.csv')!r}).chunks({{'x': Unbounded()}})\n"
        "next(chunks); raise SystemExit(7)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (7, "")


def test_repeated_names_of_a_csv_matter_only_where_they_are_needed(tmp_path):
    source = csv(tmp_path, "a,b,a,\n1,2,3,4\n")
    assert source.names == ("a", "b", "a", "")
    assert read(source, {"b": Unbounded()})["b"].tolist() == [2.0]
    with pytest.raises(DataError, match="several columns named 'a'"):
        source.kind("a")


def test_many_blocks_and_threads_count_every_row(tmp_path):
    lines = [b"x,c\n"]
    for row in range(300_000):
        lines.append(b"%d,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" % row if row % 7 else b"%d\n" % row)
    source = csv(tmp_path, b"".join(lines))

    def tally(chunks):
        seen = [chunk["x"] for _, chunk in chunks]
        return np.array([sum(map(len, seen)), sum(int(np.nansum(x)) for x in seen)], dtype=object)

    expected = [300_000, sum(row for row in range(300_000) if row % 7)]
    assert source.total({"x": Unbounded()}, tally).tolist() == expected
    assert source.count() == 300_000


@given(st.lists(st.text("0123456789+-.eEinfaty \t_x\u0661", max_size=8), min_size=1, max_size=20))
def test_numbers_of_a_csv_are_the_single_cells_numbers(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("csv")
    source = csv(folder, "x,y\n" + "".join(f'"{cell}",\n' for cell in cells))
    expected = np.array([number(cell) for cell in cells])
    assert same(read(source, {"x": Unbounded()}), {"x": expected})


HOSTILE = (
    "1", "-2.5", "1e400", "-1e400", "1e-400", "007", "+1", ".5", "5.", "1_0", "0x10", "nan", "NaN",
    "nan(1)", "inf", "-Infinity", "", "NA", "null", " 3", "3\t", "\u0663", "true", "1,5", "1e",
    "--1", "12345678901234567890123", "0.1000000000000000055511151231257827021181583404541015625",
)  # fmt: skip


@given(
    st.lists(st.tuples(*3 * [st.sampled_from(HOSTILE)]), min_size=1, max_size=30),
    st.sampled_from([1, 7, 40, 1000]),
    st.booleans(),
)
def test_numbers_of_blocks_are_those_of_their_text(tmp_path_factory, rows, block, quoted):
    from dpreg.sources import csv_files as csv_blocks

    lines = [",".join(f'"{cell}"' if quoted else cell for cell in row) for row in rows]
    source = csv(tmp_path_factory.mktemp("csv"), "\n".join(["x,y,z", *lines, ""]))
    how = {"x": Unbounded(), "y": Numeric(0, 1), "z": Unbounded()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks.line_blocks, "__defaults__", (block,))
        parsed = read(source, how)
    well = [row for row, line in zip(rows, lines, strict=True) if quoted or line.count(",") == 2]
    spoilt = [math.nan] * (len(rows) - len(well))
    for place, name in enumerate(how):
        expected = np.array([number(row[place]) for row in well] + spoilt)
        assert same({name: parsed[name]}, {name: expected})


# Damage ---------------------------------------------------------------------------------------

SECRET = "Zebulon"
NUMBER = 31337.25


def everything_said(error):
    """All that a curator could see of an error: its text, its traceback, what hangs on to it."""
    lines = traceback.format_exception(error, chain=True)
    return "".join(
        [*lines, str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    )


def fails(call, says):
    with pytest.raises(DataError, match=says) as caught:
        call()
    said = everything_said(caught.value)
    assert SECRET not in said.replace("{SECRET}", "")  # the test's own line stands in it
    assert str(NUMBER) not in said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def secret_table(rows=3000):
    return pa.table({"x": [NUMBER] * rows, "c": [f"{SECRET} {row}" for row in range(rows)]})


SECRET_HOW = {"x": Numeric(0, 1), "c": Categorical(["a", "b"])}


@pytest.fixture(params=["snappy", "zstd", "none"])
def raw(request, tmp_path):
    """A Parquet file's bytes, with page checksums where the pages are not compressed."""
    plain = request.param == "none"
    pq.write_table(
        secret_table(),
        tmp_path / "t.parquet",
        compression=request.param,
        use_dictionary=False,
        write_page_checksum=plain,
        row_group_size=1000,
    )
    return (tmp_path / "t.parquet").read_bytes()


def damaged(tmp_path, raw):
    (tmp_path / "t.parquet").write_bytes(raw)
    return as_source(tmp_path / "t.parquet")


def test_a_parquet_file_cut_short_says_nothing_of_its_rows(tmp_path, raw):
    for length in (0, 3, 100, len(raw) // 2, len(raw) - 1):
        fails(lambda n=length: damaged(tmp_path, raw[:n]), "t.parquet cannot be read as Parquet")
    fails(lambda: damaged(tmp_path, f"x,c\n1,{SECRET}\n".encode()), "cannot be read as Parquet")


def test_a_parquet_file_with_a_bad_footer_says_nothing_of_its_rows(tmp_path, raw):
    footer = raw[:-60] + bytes(255 - byte for byte in raw[-60:-8]) + raw[-8:]
    fails(lambda: read(damaged(tmp_path, footer), SECRET_HOW), "t.parquet cannot be read")
    lengths = raw[:-8] + b"\xff\xff\xff\x7f" + raw[-4:]
    fails(lambda: damaged(tmp_path, lengths), "t.parquet cannot be read as Parquet")


def test_a_parquet_file_with_flipped_bytes_says_nothing_of_its_rows(tmp_path, raw):
    """Every error is ours; and what is no error leaves the number of rows right."""
    refused = 0
    for place in range(4, len(raw) // 2, 211):
        flipped = raw[:place] + bytes(255 - b for b in raw[place : place + 16]) + raw[place + 16 :]
        source = damaged(tmp_path, flipped)
        rows = None
        with contextlib.suppress(DataError):
            rows = len(read(source, SECRET_HOW)["x"])
        assert rows in (3000, None)
        if rows is None:
            refused += 1
            fails(lambda source=source: read(source, SECRET_HOW), "cannot be read as Parquet")
    assert refused


def test_a_page_that_fails_its_checksum_is_refused(tmp_path):
    pq.write_table(
        secret_table(), tmp_path / "t.parquet", compression="none", write_page_checksum=True,
        use_dictionary=False,
    )  # fmt: skip
    raw = (tmp_path / "t.parquet").read_bytes()
    place = raw.index(f"{SECRET} 1500".encode())
    source = damaged(tmp_path, raw[:place] + b"Q" + raw[place + 1 :])
    fails(lambda: read(source, SECRET_HOW), "t.parquet cannot be read as Parquet")


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    pq.write_table(table(10), tmp_path / "t.parquet")
    source = as_source(tmp_path / "t.parquet")
    read(source)
    pq.write_table(table(11), tmp_path / "t.parquet")
    fails(lambda: read(source), "t.parquet has changed since it was opened")
    (tmp_path / "t.parquet").unlink()
    fails(lambda: read(source), "t.parquet cannot be read")


def test_a_file_whose_rows_move_between_passes_is_refused(tmp_path):
    """Its footer need not tell: it is written without statistics and not compressed."""
    plain = {"compression": "none", "write_statistics": False, "use_dictionary": False}
    pq.write_table(table(10), tmp_path / "t.parquet", **plain)
    source = as_source(tmp_path / "t.parquet")
    read(source)
    before = pq.read_metadata(tmp_path / "t.parquet")
    pq.write_table(table(10).take([*range(9, -1, -1)]), tmp_path / "t.parquet", **plain)
    assert pq.read_metadata(tmp_path / "t.parquet").equals(before)
    fails(lambda: read(source), "t.parquet has changed since it was opened")


def test_a_csv_file_that_changes_between_passes_is_refused(tmp_path):
    """Rows that have other places, by which halves go, must not be taken for the same."""
    rows = table(10).to_pandas()
    rows.to_csv(tmp_path / "t.csv", index=False)
    source = as_source(tmp_path / "t.csv")
    read(source)
    rows.iloc[::-1].to_csv(tmp_path / "t.csv", index=False)
    fails(lambda: read(source), "t.csv has changed since it was opened")
    (tmp_path / "t.csv").unlink()
    fails(lambda: read(source), "t.csv cannot be read")


def test_an_error_in_a_thread_is_the_same(tmp_path):
    pq.write_table(secret_table(200_000), tmp_path / "t.parquet", row_group_size=1 << 20)
    raw = (tmp_path / "t.parquet").read_bytes()
    place = len(raw) // 2
    source = damaged(tmp_path, raw[:place] + b"\xff" * 4000 + raw[place + 4000 :])

    def tally(chunks):
        return np.array([sum(len(chunk["c"]) for _, chunk in chunks)])

    fails(lambda: source.total(SECRET_HOW, tally), "t.parquet cannot be read as Parquet")


def test_a_damaged_csv_says_nothing_of_its_rows(tmp_path):
    text = ("x,c\n" + f"{NUMBER},{SECRET}\n" * 200_000).encode()
    packed = gzip.compress(text)
    cut = packed[: len(packed) // 2]
    flipped = packed[:5000] + b"\xff" * 40 + packed[5040:]
    for raw in (cut, packed[:-9], flipped, b"", text):
        (tmp_path / "t.csv.gz").write_bytes(raw)
        fails(lambda: read(as_source(tmp_path / "t.csv.gz"), SECRET_HOW), "t.csv.gz cannot be read")
