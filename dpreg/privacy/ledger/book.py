"""A ledger's book: read as one state, and written in the order that `witness` proves.

Tested in `tests/privacy/ledger/test_witness.py` and `tests/privacy/ledger/test_postgres.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

from dpreg.errors import LedgerError
from dpreg.privacy.ledger import charging, store, witness
from dpreg.privacy.ledger.chain import NOTHING, Line, Position
from dpreg.privacy.ledger.charging import WITNESSED, Request
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.store import Database, Facts, Run
from dpreg.privacy.ledger.witness import Watch, Witness

__all__ = ["Book"]

_CLAIM: Final = re.compile("[:;,] nothing was charged")


@dataclass(frozen=True, slots=True)
class Book:
    """Where an account is kept, its witness if it has one, and what holds for it."""

    database: Database
    witness: Witness | None
    facts: Facts

    @contextmanager
    def reading(self, seen: Position, deadline: float) -> Iterator[tuple[Run, Line | None]]:
        """See one state, which must hold what was seen, and its last line.

        The witness is asked first: the ledger may only be later.
        """
        heard = None if self.witness is None else self.witness.seen(deadline)
        with self.database.reading(deadline) as run:
            last = store.last(run)
            charging.check_seen(run, last, seen, self.facts)
            if self.witness is not None:
                witness.check(run, last, heard, self.facts, new=True)
            yield run, last

    def charge(self, seen: Position, request: Request, deadline: float) -> Line:
        """Charge once, even where a server goes away before it answers.

        BudgetError or LedgerError where that cannot be.
        """
        certain = True
        while True:
            try:
                with self._held(deadline) as watch:
                    with self.database.writing(deadline) as run:
                        last = store.last(run)
                        if watch is not None:
                            witness.check(run, last, watch.seen, self.facts)
                        home, since = self.database.home(run), watch.since if watch else ""
                        charging.check_home(run, self.facts, home, since)
                        line = None if certain else store.find(run, request.token, seen.number)
                        if line is None:
                            now = self.database.now(run)
                            line = charging.charged(last, run, self.facts, seen, request, now)
                            last = line
                        if watch is not None and last is not None:
                            watch.note(last.position)
                    certain = False  # the ledger has committed, and its witness not yet
                return line
            except LostConnection:
                if time.monotonic() > deadline:
                    raise LedgerError(
                        "the connection to the ledger's server was lost: the charge may or "
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

    def adopt(self, seen: Position, reason: str, deadline: float) -> Line:
        """Settle the ledger where it lies, with this witness or none; an entry says so."""
        with self._held(deadline) as watch, self.database.writing(deadline) as run:
            last, what = store.last(run), "adopted"
            if watch is not None:
                lost = watch.seen and not charging.holds(run, last, watch.seen, self.facts)
                what += f", given up what its witness saw, {watch.seen}" if lost else ", witnessed"
            elif WITNESSED in store.settled(run)[1]:
                what += ", no longer witnessed"
            request = Request.made(NOTHING, f"{what}: {reason}", "", "")
            now = self.database.now(run)
            line = charging.charged(last, run, self.facts, seen, request, now)
            mark = "" if watch is None else f"{WITNESSED}{line.number}"
            store.move(run, self.database.home(run) + mark)
            if watch is not None:
                watch.restart(line.position)
        return line

    def _held(self, deadline: float) -> AbstractContextManager[Watch | None]:
        return nullcontext() if self.witness is None else self.witness.held(deadline)
