import json
import re
import subprocess
import sys
import tomllib

import click
import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.cli.calls import CALLS
from dpreg.cli.main import EXIT_CODES, commands, ended
from dpreg.privacy.ledger import Ledger

FORMULA = "price ~ sqft + lat"
COMMON = ("--schema", "schema.json")


def test_from_skeleton_to_report(run, desk):
    """What a curator does, one command after the other."""
    blank = tomllib.loads(run("skeleton", "houses.parquet")[0])
    assert blank == {"columns": dict.fromkeys(("price", "sqft", "lat"), "fill in")}
    (desk / "blank.toml").write_text(run("skeleton", "houses.parquet")[0])
    run("check", FORMULA, "houses.parquet", "--schema", "blank.toml", "--eps", 1, code=4)
    first = run("ledger", "init", "h.db", "--eps", 3, "--analyst-eps", 2)[0].strip()
    assert re.fullmatch(r"0:[0-9a-f]{64}", first)
    run("ledger", "init", "h.db", "--eps", 9, code=7)
    charged = (*COMMON, "--ledger", "h.db", "--analyst", "ann")
    price = json.loads(
        run("check", FORMULA, "houses.parquet", *charged, "--eps", "0.5", "--json")[0]
    )
    assert price == {
        "call": f"dp_select: {FORMULA}", "eps": "0.5", "delta": "0",
        "protects": "replace-one, 1 row a person",
    }  # fmt: skip
    assert Ledger.open(desk / "h.db").entries == ()
    out, told = run(
        "select", FORMULA, "houses.parquet", *charged, "--eps", "0.5", "--out", "s.json"
    )
    assert "Private variable selection" in out
    assert told == ""
    result = dpreg.load(desk / "s.json")
    assert result.record.arguments == {"formula": FORMULA, "eps": "0.5"}
    assert result.record.ledger.entry == 1
    assert run("show", "s.json")[0].strip() == str(result).strip()
    assert run("show", "s.json", "--full")[0].strip() == str(result.summary(full=True)).strip()
    assert dpreg.results.base.from_json(run("show", "s.json", "--json")[0]) == result
    run("report", "s.json", "-o", "s.html")
    assert result.record.ledger.head in (desk / "s.html").read_text()
    shown = json.loads(run("ledger", "show", "h.db", "--json")[0])
    assert (shown["spent"], len(shown["entries"])) == ({"eps": "0.5", "delta": "0"}, 1)
    assert shown["entries"][0]["analyst"] == "ann"
    run("ledger", "verify", "h.db", "--result", "s.json", "--head", first)
    run("ledger", "verify", "h.db", "--head", "9:" + "0" * 64, code=7)
    run("select", FORMULA, "houses.parquet", *charged, "--eps", "1.6", code=6)
    assert json.loads(run("ledger", "export", "h.db")[0])["head"] == result.record.ledger.head


REFUSALS = [
        (("nonsense",), 2, "No such command"),
        (("check", FORMULA, "houses.parquet"), 2, "--eps"),
        (("check", FORMULA, "houses.parquet", *COMMON, "--eps", "lots"), 2, "eps must be"),
        (("check", "price ~ f(sqft)", "houses.parquet", *COMMON, "--eps", 1), 3, "f is not"),
        (("check", "price ~", "houses.parquet", *COMMON, "--eps", 1), 3, "dpreg:"),
        (("check", FORMULA, "houses.parquet", "--schema", "no.json", "--eps", 1), 4, "no.json"),
        (("check", "price ~ rooms", "houses.parquet", *COMMON, "--eps", 1), 3, "rooms"),
        (("check", FORMULA, "no.parquet", *COMMON, "--eps", 1), 5, "no file"),
        (("check", FORMULA, "broken.parquet", *COMMON, "--eps", 1), 5, "broken.parquet"),
        (("check", FORMULA, "folder.parquet", *COMMON, "--eps", 1), 5, "folder"),
        (("check", FORMULA, "pipe.parquet", *COMMON, "--eps", 1), 5, "pipe"),
        (("mean", "houses.parquet", "price", *COMMON, "--eps", 1, "--analyst", "x"), 2, "--ledger"),
        (("mean", "houses.parquet", "price", *COMMON, "--eps", 1, "--out", "no/m.json"), 5, "no"),
        (("mean", "houses.parquet", "price", *COMMON, "--eps", 1, "--ledger", "n.db"), 7, "no"),
        (("ledger", "init", "x.db", "--eps", -1), 6, "at least 0"),
        (("ledger", "verify", "no.db"), 7, "no ledger"),
        (("mean", "houses.parquet", "price", *COMMON, "--eps", 1, "--witness", "x"), 2, "--ledger"),
        (("show", "schema.json"), 2, "not a saved dpreg result"),
        (("show", "pipe.parquet"), 5, "not a regular file"),
        (("report", "no.json", "-o", "x.html"), 5, "no file"),
        (("batch", "schema.json"), 2, "TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "told"), REFUSALS)
def test_every_refusal_has_its_exit_code(run, desk, arguments, code, told):
    out, said = run(*arguments, code=code)
    assert out == ""
    assert told in said
    assert not (desk / "x.db").exists()


@pytest.mark.audit
@pytest.mark.parametrize(("arguments", "code", "told"), REFUSALS)
def test_every_refusal_ends_the_process_with_its_code(shell, desk, arguments, code, told):
    assert shell(*arguments, code=code)[0] == ""


def test_a_declaration_that_the_table_contradicts_is_told_to_the_curator(run, desk):
    frame = pd.read_parquet(desk / "houses.parquet")
    frame["town"] = "elm"
    frame.to_parquet(desk / "towns.parquet")
    declared = {"columns": {"price": [0, 2e6], "sqft": [300, 8000], "town": [0, 10]}}
    (desk / "towns.json").write_text(json.dumps(declared))
    asked = ("ols", "price ~ sqft + town", "towns.parquet", "--schema", "towns.json", "--eps", 1)
    for more in (("--check",), ("--quiet",)):
        _, told = run(*asked, *more)
        assert (
            "does the schema say what is meant? column 'town' is declared as a number, and the "
            "table holds text or labels"
        ) in told
    assert "what is meant" not in run("check", FORMULA, "houses.parquet", *COMMON, "--eps", 1)[1]


def test_codes_are_documented_and_an_unforeseen_failure_quotes_nothing(capsys):
    def fails():
        raise RuntimeError("row 731846.25")

    with pytest.raises(SystemExit) as left:
        ended(fails)
    assert left.value.code == 1
    assert capsys.readouterr() == (
        "", "dpreg: failed unexpectedly (RuntimeError); what was charged stays charged\n"
    )  # fmt: skip
    documented = set(map(int, re.findall(r"^(\d+) ", dpreg.cli.__doc__, re.M)))
    assert documented == {0, 1, 130} | set(EXIT_CODES.values())


def test_a_batch_is_checked_whole_before_it_is_charged(run, desk):
    run("ledger", "init", "b.db", "--eps", 1)
    text = f"""
        table = "houses.parquet"
        schema = "schema.json"
        ledger = "b.db"
        eps = "0.5"
        [[call]]
        do = "ols"
        formula = "{FORMULA}"
        eps = "0.3"
        out = "b1.json"
        [[call]]
        do = "mean"
        x = ["price"]
        eps = 0.2
        out = "b2.json"
    """
    for wrong, code in (
        ('x = ["price"]', 2), ('out = "b2.json"', 2), ('do = "mean"', 2), ("eps = 0.2", 2),
    ):  # fmt: skip
        (desk / "batch.toml").write_text(text.replace(wrong, "", 1))
        run("batch", "batch.toml", code=code)
    for old, new, code in (
        ("sqft + lat", "rooms", 3), ("eps = 0.2", "eps = 0.3", 6), ('["price"]', '["rooms"]', 2),
        ('"b.db"', '"no.db"', 7), ('"mean"', '"nothing"', 2), ("b2.json", "b1.json", 2),
        ("eps = 0.2", 'eps = 0.2\nneighbors = "add-remove"', 6), ("x =", "unsafe_seed = 1\nx =", 2),
    ):  # fmt: skip
        (desk / "batch.toml").write_text(text.replace(old, new))
        run("batch", "batch.toml", code=code)
    assert Ledger.open(desk / "b.db").entries == ()
    assert not (desk / "b1.json").exists()
    (desk / "batch.toml").write_text(text)
    out, _ = run("batch", "batch.toml", "--check", "--json")
    assert json.loads(out) == {"cost": {"eps": "0.5", "delta": "0"}, "done": []}
    run("batch", "batch.toml")
    assert [str(entry.budget) for entry in Ledger.open(desk / "b.db").entries] == [
        "eps=0.3", "eps=0.2"
    ]  # fmt: skip
    assert dpreg.load(desk / "b2.json").record.ledger.entry == 2
    run("batch", "batch.toml")
    run("batch", "batch.toml", code=6)


def test_other_calls_and_their_options(run, desk):
    shared = (*COMMON, "--eps", 5)
    out, told = run(
        "quantile", "houses.parquet", "price", *shared, "--q", 0.5, "--q", 0.9, "--json"
    )
    assert dpreg.results.base.from_json(out).record.arguments["q"] == ["0.5", "0.9"]
    assert "no ledger is charged" in told
    out, _ = run(
        "histogram",
        "houses.parquet",
        "sqft",
        "--bounds",
        "0,9000",
        "--bins",
        5,
        "--eps",
        1,
        "--json",
    )
    assert len(dpreg.results.base.from_json(out).bin_counts) == 5
    edges = ("histogram", "houses.parquet", "sqft", "--bins", "300,2000,8000", *shared)
    assert len(dpreg.results.base.from_json(run(*edges, "--json")[0]).bin_counts) == 2
    run(
        "mean", "houses.parquet", "price", "lat", "--bounds", "price=0,1e6", *shared, "--complete",
        "--neighbors", "add-remove", code=2,
    )  # fmt: skip
    run("plan", "--effect", "a=0.2", "--sigma", 0.25, "--eps", 1, "--n", 20000)


def test_commands_have_an_option_for_each_argument_of_the_call():
    """A new argument of a public call is an option of its command."""
    import inspect

    for name, call in CALLS.items():
        command = commands.commands[name]
        assert isinstance(command, click.Command)
        offered = {parameter.name for parameter in command.params}
        wanted = set(inspect.signature(call).parameters)
        assert wanted - offered <= {"data", "budget", "progress", "unsafe_seed", "x"}, name


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_has_its_exit_code(capsys):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        ended(interrupted)
    assert left.value.code == 130


def test_king_county_from_parquet(shell, data_folder, tmp_path):
    """The real thing: King County's houses, from skeleton to report."""
    houses = dpreg.datasets.load_kc_house()
    houses.data.to_parquet(tmp_path / "kc.parquet")
    (tmp_path / "schema.json").write_text(houses.schema.to_json())
    shared = ("--schema", "schema.json", "--ledger", "kc.db")
    shell("skeleton", "kc.parquet", folder=tmp_path)
    shell("ledger", "init", "kc.db", "--eps", 2, folder=tmp_path)
    shell("check", houses.formula, "kc.parquet", *shared, "--eps", 1, folder=tmp_path)
    shell(
        "select", houses.formula, "kc.parquet", *shared, "--eps", 1, "--out", "r.json",
        folder=tmp_path,
    )  # fmt: skip
    shell("report", "r.json", "-o", "r.html", folder=tmp_path)
    shell("ledger", "verify", "kc.db", "--result", "r.json", folder=tmp_path)
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "dpreg.cli", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == f"dpreg, version {dpreg.__version__}"


@pytest.fixture(scope="module")
def owned(desk):
    """The same table with a column of owners, who have two houses each."""
    frame = pd.read_parquet(desk / "houses.parquet")
    frame.assign(owner=np.arange(len(frame)) // 2).to_parquet(desk / "owned.parquet")
    return "owned.parquet"


LOOKS = {
    "select": ("--method", "adaptive", "--fit", "same", "--false-inclusions", 0.1),
    "ols": ("--method", '{name = "adaptive", noise = "matrix-laplace"}'),
}


@pytest.mark.parametrize("do", LOOKS)
def test_calls_by_looks_and_persons_from_the_shell(run, desk, owned, do):
    asked = (do, FORMULA, owned, *COMMON, "--eps", 8, *LOOKS[do])
    looked = dpreg.results.base.from_json(run(*asked, "--json")[0])
    assert (looked.method, len(looked.releases)) == ("adaptive", 3 if do == "select" else 4)
    private = (*asked, "--neighbors", "add-remove")
    found = run(*private, "--out", "looked.json", "--json")[0]
    assert dpreg.load(desk / "looked.json") == dpreg.results.base.from_json(found)
    by_owner = (*asked, "--person", "owner", "--contributions", 2)
    price = json.loads(run(*by_owner, "--check", "--json")[0])
    assert price["protects"] == "replace-one, all rows of one 'owner'"
    held = dpreg.results.base.from_json(run(*by_owner, "--json")[0])
    assert (held.claim.person, held.nobs) == ("owner", None)
    run(*asked, "--person", "nobody", code=5)
    run("report", "looked.json", "-o", "looked.html")
    assert "look 3" in (desk / "looked.html").read_text()


def test_every_call_on_tables_has_a_command():
    public = {name.removeprefix("dp_") for name in dir(dpreg) if name.startswith("dp_")}
    assert set(CALLS) == public


def test_a_family_from_the_shell(run, desk):
    asked = ("glm", "I(1 * (price > 600000)) ~ sqft", "houses.parquet", *COMMON, "--eps", 4)
    found = run(*asked, "--delta", "1e-6", "--family", "binomial", "--json")[0]
    assert dpreg.results.base.from_json(found).family == "binomial"
    run(*asked, "--delta", "1e-6", "--family", "gamma", code=2)
    for call, what in (("glm", "binomial regression"), ("select", "Private variable selection")):
        told = (call, *asked[1:], "--delta", "1e-6", "--family", "binomial", "--out", "f.json")
        run(*told)
        assert what in run("show", "f.json")[0]
        run("report", "f.json", "-o", "f.html")
        assert "Errors are robust" in (desk / "f.html").read_text()
    run("select", *asked[1:], "--family", "binomial", "--draws", 3, code=2)


def test_a_family_is_planned_from_the_shell(run, desk):
    asked = ("plan-glm", "I(1 * (price > 600000)) ~ sqft", "--schema", "schema.json", "--n", 9000)
    found = run(*asked, "--mean", "0.3", "--eps", 1, "--delta", "1e-6", "--sd", "sqft=800")[0]
    assert "Plan of a private regression" in found
    assert "sqft" in found
    run(*asked, "--mean", 3, "--eps", 1, code=2)
    named = ("plan", "--formula", asked[1], *asked[2:], "--family", "binomial", "--delta", "1e-6")
    named = (*named, "--mean", "0.3", "--eps", 1, "--sd", "sqft=800")
    assert run(*named, "--of", "glm")[0] == found
    assert "chance of" in run(*named, "--effect", "sqft=0.001")[0]
    run("plan", "--eps", 1, "--n", 100, "--sigma", 1, code=2)


def test_options_of_a_method_are_a_table_on_the_line_and_in_a_batch(run, desk):
    shared = ("--schema", "schema.json", "--eps", 1, "--fit", "none", "--json")
    line = ("select", FORMULA, "houses.parquet", *shared)
    table = '{name = "pcls", radius = 2.5, draws = 3}'
    found = dpreg.results.base.from_json(run(*line, "--method", table)[0])
    assert (found.radius, found.draws) == (2.5, 3)
    retired = run(*line, "--method", "pcls", "--radius", "2.5", "--no-center")
    assert dpreg.results.base.from_json(retired[0]).radius == 2.5
    assert "these arguments are removed in the next version" in retired[1]
    run(*line, "--method", "{name = ", code=2)
    run(*line, "--method", '{name = "pcls", radios = 2}', code=2)
    (desk / "methods.toml").write_text(f"""
        table = "houses.parquet"
        schema = "schema.json"
        [[call]]
        do = "select"
        formula = "{FORMULA}"
        eps = 1
        out = "m1.json"
        [call.method]
        name = "pcls"
        penalty = 3
    """)
    run("batch", "methods.toml")
    assert dpreg.load(desk / "m1.json").penalty == "given"


def test_a_batch_knows_the_arguments_of_calls_by_looks(run, desk, owned):
    run("ledger", "init", "looks.db", "--eps", 20)
    (desk / "looks.toml").write_text(f"""
        table = "{owned}"
        schema = "schema.json"
        ledger = "looks.db"
        [[call]]
        do = "select"
        formula = "{FORMULA}"
        method = "adaptive"
        fit = "same"
        person = "owner"
        contributions = 2
        eps = 8
        out = "l1.json"
        [[call]]
        do = "ols"
        formula = "{FORMULA}"
        method = "adaptive"
        person = "owner"
        contributions = 2
        eps = 8
        out = "l2.json"
    """)
    run("batch", "looks.toml")
    results = [dpreg.load(desk / name) for name in ("l1.json", "l2.json")]
    assert [(one.method, one.claim.person) for one in results] == [
        ("adaptive", "owner"),
        ("adaptive", "owner"),
    ]
    assert results[1].record.ledger.spent_eps == "16"


def test_a_warning_is_told_once_though_the_call_is_checked_and_then_run(run, desk):
    asked = ("glm", "I(1 * (price > 600000)) ~ sqft", "houses.parquet", *COMMON)
    _, told = run(*asked, "--family", "binomial", "--eps", "0.001")
    assert told.count("dpreg: warning: 1 columns need about") == 1


def test_a_dummy_table_is_made_of_the_schema_alone(run, desk):
    declared = {"columns": {"price": [0, 9], "town": ["elm", "oak"]}}
    (desk / "dummy.json").write_text(json.dumps(declared))
    made = run("dummy", "dummy.json", "-n", 5, "--seed", 1)[0].splitlines()
    assert made[0] == "made up,price,town"
    assert len(made) == 6
    assert run("dummy", "dummy.json", "--formula", "price ~ 1")[0].startswith("made up,price\n")
