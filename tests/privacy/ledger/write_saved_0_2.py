"""Writes ``saved-0.2.sql``: a ledger of dpreg 0.2 with all that a line can hold, as SQL text.

Told to write by the wheel of 0.2 (`tests/results/write_saved_0_2.py` says how it is made):

    PYTHONPATH=../keep/site python tests/privacy/ledger/write_saved_0_2.py

The home that the file notes is its number on the disk where it was made: the test puts its own.
"""

import contextlib
import re
import sqlite3
import tempfile
from fractions import Fraction
from pathlib import Path

import dpreg

PLACE = Path(__file__).with_name("saved-0.2.sql")


def main() -> None:
    """Charge a ledger of every cap, adopt it, and dump it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        ledger = dpreg.Ledger(
            dpreg.Budget(4, "1e-6"),
            path,
            analyst_cap={"ann": 2, "ben": dpreg.Budget(3, "1e-6")},
            period_cap=dpreg.Budget(3, "1e-6"),
            period="year",
        )
        unit = "replace-one, 1 row a person"
        ledger.charge(dpreg.Budget(Fraction(1, 3)), "a third", unit, analyst="ann")
        ledger.charge(dpreg.Budget("0.1", "1e-7"), "a\tfit", unit, analyst="ben")
        ledger.adopt("a new disk")
        ledger.charge(dpreg.Budget("1e-30"), "a little", analyst="ben")
        head = ledger.head
        ledger.close()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            dump = "\n".join(connection.iterdump())
        PLACE.write_text(f"-- {dpreg.__version__} {head}\n{re.sub('inode [0-9]+', 'HOME', dump)}\n")


if __name__ == "__main__":
    main()
