"""A ledger's witness, by the command."""

import json
import shutil

from dpreg.privacy.ledger import Ledger

BATCH = """
table = "houses.parquet"
schema = "schema.json"
ledger = "w/l.db"
witness = "w/kept.db"
[[call]]
do = "mean"
x = ["price"]
eps = "0.1"
out = "w/OUT"
"""


def test_a_restored_ledger_is_refused_until_its_loss_is_accepted(run, desk):
    place, kept = "w/l.db", ("--witness", "w/kept.db")
    (desk / "w").mkdir()
    charged = ("mean", "houses.parquet", "price", "--schema", "schema.json", "--eps", "0.1")
    run("ledger", "init", place, "--eps", 1, *kept)
    assert (desk / "w/kept.db").exists()
    run(*charged, "--ledger", place, code=7)
    shutil.copy(desk / place, desk / "w/backup.db")
    run(*charged, "--ledger", place, *kept)
    (desk / "w/b.toml").write_text(BATCH.replace("w/", "").replace("houses", "../houses").replace(
        "schema.json", "../schema.json"
    ))  # fmt: skip
    run("batch", "w/b.toml", "--quiet")
    assert len(Ledger.open(desk / place).entries) == 2
    _, told = run("batch", "w/b.toml", "--quiet", code=0)
    (desk / "w/b.toml").write_text((desk / "w/b.toml").read_text().replace("OUT", "kept.db"))
    _, told = run("batch", "w/b.toml", "--quiet", code=2)
    assert "is also the witness, and would replace it" in told
    run("ledger", "verify", place, *kept)
    (desk / place).write_bytes((desk / "w/backup.db").read_bytes())
    for refused in (
        (*charged, "--ledger", place, *kept),
        (*charged, "--ledger", place, *kept, "--check"),
        ("check", "price ~ sqft", "houses.parquet", "--schema", "schema.json", "--eps", "0.1",
         "--ledger", place, *kept),
        ("ledger", "verify", place, *kept),
    ):  # fmt: skip
        _, told = run(*refused, code=7)
        assert "not what its witness saw: it has 0 entries, and the witness's entry 3" in told
    run("ledger", "verify", place)
    run("ledger", "adopt", place, "--reason", "a disk died", *kept)
    run(*charged, "--ledger", place, *kept)
    entries = json.loads(run("ledger", "export", place)[0])["entries"]
    assert entries[0]["what"].startswith("adopted, given up what its witness saw, 3:")
    assert len(entries) == 2
