"""A ledger that dpreg 0.2 wrote (`write_saved_0_2.py`) opens, verifies and is charged as it is."""

import contextlib
import re
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

SAVED = Path(__file__).with_name("saved-0.2.sql").read_text()
HEAD = re.findall(r"\d+:[0-9a-f]{64}", SAVED.partition("\n")[0])[0]
UNIT = "replace-one, 1 row a person"


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "ledger.db"
    with contextlib.closing(sqlite3.connect(place)) as connection:
        connection.executescript(SAVED.replace("HOME", f"inode {place.stat().st_ino}"))
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    return place


def test_it_opens_verifies_and_is_charged_as_it_is(path):
    ledger = Ledger.open(path)
    spent = Budget(Fraction(13, 30) + Fraction(1, 10**30), "1e-7")
    assert ledger.head == HEAD
    assert ledger.verify(HEAD).spent == ledger.spent == spent
    assert ledger.caps.of_analyst("ann") == Budget(2)
    assert ledger.caps.period == Budget(3, "1e-6")
    assert [(e.what, str(e.budget), e.analyst, e.unit) for e in ledger.entries] == [
        ("a third", "eps=1/3", "ann", UNIT),
        (r"a\tfit", "eps=0.1, delta=1e-7", "ben", UNIT),
        ("adopted: a new disk", "eps=0", "", ""),
        ("a little", "eps=1e-30", "ben", ""),
    ]
    entry = ledger.charge(Budget(1), "goes on", UNIT, analyst="ann")
    assert entry.number == 5
    assert ledger.verify(HEAD).spent == spent + Budget(1)
    with pytest.raises(BudgetError, match=r"of ann's eps=2 is left"):
        ledger.charge(Budget(1), "too much", UNIT, analyst="ann")


def test_it_gets_a_witness_by_adopting_it(path, tmp_path):
    place = tmp_path / "witness.db"
    with pytest.raises(LedgerError, match=r"no witness here.*adopt --witness"):
        Ledger.open(path, witness=place)
    Ledger.open(path).adopt("kept from now on", witness=place)
    watched = Ledger.open(path, witness=place, analyst="ann")
    assert watched.entries[-1].what == "adopted, witnessed: kept from now on"
    watched.charge(Budget(1), "goes on", UNIT)
    with pytest.raises(LedgerError, match="has a witness: to charge it, name"):
        Ledger.open(path, analyst="ann").charge(Budget("0.1"), "without it", UNIT)
    assert watched.verify(HEAD).entries == 6
