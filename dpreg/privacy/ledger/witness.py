"""A witness: the ledger's last head, kept where restoring the ledger alone does not bring it back.

A book restored in place from a backup (``cp backup.db ledger.db``) is whole by itself, as is every
chain of hashes that stops early. What tells is a later head kept elsewhere: in a second small
SQLite file, on another disk, or in PostgreSQL. There the witness has one table, to which each
charge adds the number and the hash of the line that it wrote.

Order. A charge takes the witness's lock, then the ledger's; compares; writes its line and its head;
commits the ledger, then the witness; and is answered only then. Each commit is atomic and synced.

No false alarm. The witness never holds a head that its ledger has not: a head is committed after
its line, and no charge takes a line out. A crash before the ledger's commit leaves both as they
were. One between the two commits leaves the witness behind, which is allowed; the next charge's
head stands for both lines. Readers ask the witness first and read the ledger afterwards, which may
have grown meanwhile and holds what the witness told.

No restore is missed. Say that a line was answered. Then its head was committed to the witness, and
no charge takes heads out, so the last head there is that line's or a later one's. A ledger restored
to a state without the line does not hold this last head, for its hash follows from all lines before
it: with it, the ledger would hold the answered line. So the ledger is refused. A line that was
written and never answered may be lost unseen: nothing was released for it.

A ledger notes the number at which its witness began (`charging.WITNESSED`), and is charged neither
without a witness nor with one that it had before. The witness of a new ledger gets the head
before the first line when the ledger is first opened for charging; until then neither holds a
charge, and that is no alarm. `adopt` alone takes heads out of a witness, after the ledger's own
entry about it is committed; cut off between the two, it leaves a ledger that is refused, and is run
again.

What no file can know. If ledger and witness are restored together (a machine's snapshot), or by
someone who may write to both, all is as it was then. A head that was printed with a release, or
that a reviewer kept, still tells: `Ledger.verify(head)`. A ledger restored to the time before it
had a witness does not know of it: whoever opens it must name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpreg.errors import LedgerError
from dpreg.privacy.ledger import charging
from dpreg.privacy.ledger.chain import Line, Position
from dpreg.privacy.ledger.store import Database, Facts, Run

__all__ = ["CREATE", "Watch", "Witness", "check"]

CREATE = "CREATE TABLE dpreg_witness (number INTEGER PRIMARY KEY, hash TEXT NOT NULL)"
_LAST = "SELECT number, hash FROM dpreg_witness ORDER BY number DESC LIMIT 1"
_FIRST = "SELECT number FROM dpreg_witness ORDER BY number LIMIT 1"


@dataclass(frozen=True, slots=True)
class Watch:
    """A witness while it is held: the last head that it saw, None where it saw none, and the first.

    Of the first, the number is known, as text: a ledger keeps to the witness that began there.
    """

    seen: Position | None
    since: str
    _run: Run

    def note(self, head: Position) -> None:
        """Add a head, unless it is the last."""
        if head != self.seen:
            self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))

    def restart(self, head: Position) -> None:
        """Forget all heads but this one."""
        self._run("DELETE FROM dpreg_witness")
        self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))


@dataclass(frozen=True, slots=True)
class Witness:
    """The witness of one ledger, in a database of its own."""

    database: Database

    def seen(self, deadline: float) -> Position | None:
        """Return the last head that it saw; to be asked before the ledger is read."""
        with self.database.reading(deadline) as run:
            return _last(run)

    def since(self, deadline: float) -> str:
        """Return the number of its first head."""
        with self.database.reading(deadline) as run:
            return _first(run)

    @contextmanager
    def held(self, deadline: float) -> Iterator[Watch]:
        """Keep others out, and commit at the end."""
        with self.database.writing(deadline) as run:
            yield Watch(_last(run), _first(run), run)

    def introduce(self, head: Position, deadline: float) -> None:
        """Tell of a new ledger, unless a charge was seen."""
        if self.seen(deadline) == head:
            return
        with self.held(deadline) as watch:
            if watch.seen is None or watch.seen.number == 0:
                watch.restart(head)


def _last(run: Run) -> Position | None:
    rows = run(_LAST)
    return Position(*rows[0]) if rows else None


def _first(run: Run) -> str:
    return "".join(str(number) for (number,) in run(_FIRST))


def check(
    run: Run, last: Line | None, seen: Position | None, facts: Facts, *, new: bool = False
) -> None:
    """Refuse a ledger that does not hold the last head that its witness saw.

    With `new` a ledger without entries passes that its witness has not been told of yet.
    """
    if new and last is None and (seen is None or seen.number == 0):
        return
    if seen is None:
        raise LedgerError(
            "the witness knows nothing of this ledger: name the right one; to make it this "
            "ledger's witness run `dpreg ledger adopt --witness`"
        )
    if not charging.holds(run, last, seen, facts):
        number = 0 if last is None else last.number
        raise LedgerError(
            f"the ledger is not what its witness saw: it has {number} entries, and the witness's "
            f"entry {seen.number} is not among them. It was restored from a backup, or the witness "
            "is another ledger's. Restore the later state; to accept that entries are lost, run "
            "`dpreg ledger adopt --witness`"
        )
