"""Files for results never replace a table, a schema, a ledger, a batch or each other."""

import pytest

from dpreg.privacy.ledger import Ledger

CALLS = """
table = "t.csv"
schema = "s.toml"
ledger = "l.db"
[[call]]
do = "mean"
x = ["x"]
eps = "0.1"
out = "a.json"
[[call]]
do = "mean"
x = ["x"]
table = "other.csv"
eps = "0.1"
out = "OUT"
"""
TAKEN = {
    "t.csv": "a file of the table",
    "other.csv": "a file of the table",
    "link.json": "a file of the table",
    "s.toml": "the schema",
    "l.db": "the ledger",
    "down/../l.db": "the ledger",
    "l.db-wal": "a file of the ledger's",
    "l.db-shm": "a file of the ledger's",
    "b.toml": "the batch",
    "down/../a.json": "the out of another call",
}


@pytest.fixture
def place(run, tmp_path):
    for name in ("t.csv", "other.csv"):
        (tmp_path / name).write_text("x\n" + "0.5\n" * 50)
    (tmp_path / "link.json").symlink_to("t.csv")
    (tmp_path / "down").mkdir()
    (tmp_path / "s.toml").write_text("[columns]\nx = [0, 1]\n")
    run("ledger", "init", "l.db", "--eps", 5, folder=tmp_path)
    return tmp_path


def contents(place):
    return {name: (place / name).read_bytes() for name in ("t.csv", "other.csv", "s.toml")}


@pytest.mark.parametrize("out", TAKEN)
def test_a_batch_replaces_nothing_that_it_uses(run, place, out):
    before = contents(place)
    (place / "b.toml").write_text(CALLS.replace("OUT", out))
    _, told = run("batch", "b.toml", "--quiet", code=2, folder=place)
    assert f"is also {TAKEN[out]}, and would replace it" in told
    assert contents(place) == before
    assert Ledger.open(place / "l.db").entries == ()
    assert not (place / "a.json").exists()


def test_a_batch_may_replace_earlier_results(run, place):
    (place / "b.toml").write_text(CALLS.replace("OUT", "down/a.json"))
    for entries in (2, 4):
        run("batch", "b.toml", "--quiet", folder=place)
        assert len(Ledger.open(place / "l.db").entries) == entries


@pytest.mark.parametrize("out", ["t.csv", "link.json", "s.toml", "l.db", "l.db-wal"])
def test_a_command_replaces_nothing_that_it_uses(run, place, out):
    before = contents(place)
    common = ("--schema", "s.toml", "--eps", "0.1", "--ledger", "l.db", "--quiet")
    _, told = run("mean", "t.csv", "x", *common, "--out", out, code=2, folder=place)
    assert f"is also {TAKEN[out]}, and would replace it" in told
    assert contents(place) == before
    assert Ledger.open(place / "l.db").entries == ()


def test_no_result_joins_the_table(run, place):
    common = ("--schema", "s.toml", "--eps", "0.1", "--ledger", "l.db", "--quiet")
    _, told = run("mean", "t.csv", "x", *common, "--out", "new.csv", code=2, folder=place)
    assert "ends like a table's file" in told
    (place / "b.toml").write_text(CALLS.replace("OUT", "down/new.parquet"))
    _, told = run("batch", "b.toml", "--quiet", code=2, folder=place)
    assert "ends like a table's file" in told
    assert Ledger.open(place / "l.db").entries == ()


def test_a_report_does_not_replace_its_result(run, place):
    common = ("--schema", "s.toml", "--eps", "0.1", "--quiet", "--out", "a.json")
    run("mean", "t.csv", "x", *common, folder=place)
    before = (place / "a.json").read_bytes()
    for out in ("a.json", "down/../a.json"):
        _, told = run("report", "a.json", "-o", out, code=2, folder=place)
        assert "is also the saved result" in told
    assert (place / "a.json").read_bytes() == before
    run("report", "a.json", "-o", "a.html", folder=place)


@pytest.mark.parametrize(
    ("name", "code"), [("t.csv", 5), ("s.toml", 4), ("l.db", 7), ("OUT", 5), ("other.csv", 5)]
)
def test_a_name_that_no_file_can_have_is_refused(run, place, name, code):
    (place / "b.toml").write_text(CALLS.replace(f'"{name}"', f'"{name[0]}\\u0000{name[1:]}"'))
    _, told = run("batch", "b.toml", "--quiet", code=code, folder=place)
    assert "null character" in told
    assert Ledger.open(place / "l.db").entries == ()
