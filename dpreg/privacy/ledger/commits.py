"""What is written to a ledger, in which order, and what is said where that is not certain.

Tested in `tests/privacy/ledger/test_witness.py` and `tests/privacy/ledger/test_postgres.py`.
"""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from dpreg.errors import LedgerError
from dpreg.privacy.ledger import charging, store, witness
from dpreg.privacy.ledger.chain import NOTHING, Line, Position
from dpreg.privacy.ledger.charging import WITNESSED, Request
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.store import Database, Facts
from dpreg.privacy.ledger.witness import Watch, Witness

__all__ = ["adopt", "charge"]

_CLAIM: Final = re.compile("[:;,] nothing was charged")


def charge(
    database: Database,
    kept: Witness | None,
    facts: Facts,
    seen: Position,
    request: Request,
    deadline: float,
) -> Line:
    """Charge once, even where a server goes away before it answers; see `witness` for the order.

    BudgetError or LedgerError where that cannot be.
    """
    certain = True
    while True:
        try:
            with _held(kept, deadline) as watch:
                with database.writing(deadline) as run:
                    last, home = store.last(run), database.home(run)
                    if watch is not None:
                        witness.check(run, last, watch.seen, facts)
                    charging.check_home(run, facts, home, witnessed=watch is not None)
                    line = None if certain else store.find(run, request.token, seen.number)
                    if line is None:
                        now = database.now(run)
                        line = last = charging.charged(last, run, facts, seen, request, now)
                    if watch is not None and last is not None:
                        watch.note(last.position)
                certain = False  # the ledger has committed, and its witness not yet
            return line
        except LostConnection:
            if time.monotonic() > deadline:
                raise LedgerError(
                    "the ledger's server went away and did not come back: the charge may or "
                    "may not have been written, and nothing was released"
                ) from None
            certain = False
            time.sleep(0.2)
        except LedgerError as fault:
            if certain:
                raise
            why = _CLAIM.sub("", str(fault))
            raise LedgerError(
                f"the charge may or may not have been written, and nothing was released; {why}"
            ) from None


def adopt(
    database: Database,
    kept: Witness | None,
    facts: Facts,
    seen: Position,
    reason: str,
    deadline: float,
) -> Line:
    """Settle a ledger where it lies, with this witness or none, and write an entry that says so."""
    with _held(kept, deadline) as watch, database.writing(deadline) as run:
        last = store.last(run)
        what = "adopted"
        if watch is not None:
            lost = watch.seen is not None and not charging.holds(run, last, watch.seen, facts)
            what += f", given up what its witness saw, {watch.seen}" if lost else ", witnessed"
        elif store.settled(run)[1].endswith(WITNESSED):
            what += ", no longer witnessed"
        request = Request.made(NOTHING, f"{what}: {reason}", "", "")
        line = charging.charged(last, run, facts, seen, request, database.now(run))
        store.move(run, database.home(run) + (WITNESSED if watch is not None else ""))
        if watch is not None:
            watch.restart(line.position)
    return line


def _held(kept: Witness | None, deadline: float) -> AbstractContextManager[Watch | None]:
    return nullcontext() if kept is None else kept.held(deadline)
