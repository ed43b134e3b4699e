import json
import os
from fractions import Fraction

import pytest

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, migrate, migration

OLD = {
    "dpreg_ledger": 1,
    "cap": {"eps": "1", "delta": "0.000001"},
    "entries": [
        {"what": "dp_mean: age", "eps": "1/3", "delta": "0", "when": "2026-01-31T23:00:00+00:00",
         "unit": "replace-one, 1 row a person"},
        {"what": "older", "eps": "0.1", "delta": "0.000001", "when": "2026-02-01T00:00:00+00:00"},
    ],
}  # fmt: skip
"""As dpreg 0.1 wrote it; its entries had no unit at first."""


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(OLD, indent=1))
    path.chmod(0o640)
    return path


def refused_by_0_1(path):
    """0.1 charges a file whose "dpreg_ledger" is 1, and no other (its `_parse`)."""
    return json.loads(path.read_text())["dpreg_ledger"] != 1


def test_an_old_ledger_is_refused_with_the_command_that_mends_it(old):
    for call in (lambda: Ledger(Budget(1, "1e-6"), old), lambda: Ledger.open(old)):
        with pytest.raises(LedgerError, match="dpreg ledger migrate"):
            call()


def test_an_old_ledger_is_taken_over_exactly_and_closed(old, place):
    new = migrate(old, place)
    assert new.cap == Budget(1, "1e-6")
    assert new.spent == Budget(Fraction(1, 3) + Fraction(1, 10), "1e-6")
    assert [(e.what, e.when, e.unit) for e in new.entries] == [
        ("dp_mean: age", "2026-01-31T23:00:00+00:00", "replace-one, 1 row a person"),
        ("older", "2026-02-01T00:00:00+00:00", ""),
    ]
    assert new.verify().entries == 2
    with pytest.raises(BudgetError, match="such epsilons do not add up"):
        new.charge(Budget("0.1"), "of another unit", "add-remove, 1 row a person")
    new.charge(Budget("0.1"), "goes on", "replace-one, 1 row a person")
    assert refused_by_0_1(old)
    assert json.loads(old.read_text())["entries"] == OLD["entries"]
    assert old.stat().st_mode & 0o777 == 0o640
    with pytest.raises(LedgerError, match="already been taken over"):
        migrate(old, old.with_name("another.db"))
    assert not old.with_name("another.db").exists()


@pytest.mark.parametrize("when", ["filling", "closing the old", "placing the new"])
def test_an_interrupted_migration_is_finished_by_running_it_again(old, monkeypatch, when):
    name = {
        "filling": "_filled", "closing the old": "write_text", "placing the new": "_placed",
    }[when]  # fmt: skip
    honest = getattr(migration, name)

    def interrupted(*arguments):
        if when == "filling":
            honest(*arguments)
        raise KeyboardInterrupt

    new = old.with_name("new.db")
    with monkeypatch.context() as patch:
        patch.setattr(migration, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            migrate(old, new)
    assert refused_by_0_1(old) == (when == "placing the new")
    assert not new.exists()
    assert len(migrate(old, new).entries) == 2
    assert refused_by_0_1(old)
    assert sorted(os.listdir(old.parent)) == ["ledger.json", "ledger.json.lock", "new.db"]


def test_a_taken_place_is_refused(old, place):
    Ledger(1, place)
    with pytest.raises(LedgerError, match="already"):
        migrate(old, place)
    assert not refused_by_0_1(old)


def test_labels_that_cannot_be_stored_are_spelt_out(old, place):
    old.write_text(json.dumps(OLD).replace("older", "old\\ud800er\\u0000"))
    assert migrate(old, place).entries[1].what == r"old\ud800er\x00"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"dpreg_ledger": 1}', '{"dpreg_ledger": 9}',
             json.dumps(OLD).replace('"1/3"', '"-1"'), json.dumps(OLD).replace('"1/3"', '"3"')],
)  # fmt: skip
def test_a_damaged_old_ledger_is_refused_and_left(old, text):
    old.write_text(text)
    with pytest.raises(BudgetError):
        migrate(old, old.with_name("new.db"))
    assert old.read_text() == text
    assert not old.with_name("new.db").exists()
