"""A fair queue before a file's lock: who comes first is served first.

SQLite's own waiting is a lottery: each process sleeps a while and tries again, and with many of
them some wait for seconds. Here each draws a ticket, which is a lock on the byte of the first free
number, and goes in when no smaller byte is locked. The system lets go of a lock when its process
ends, however it ends, so that nobody waits for the dead. Who leaves wakes the next by a datagram;
where it does not arrive (another container), the next looks by itself ten times a second.

Who waits leaves a message in a slot of the file: what it would do. Whoever is first may do it for
those behind, in their order, and answer in their slots; `together` says what for.

The queue gives order and carries messages. That one writer at a time gets in is the database's
work; where there is no queue (not Linux, a folder that may not be written to, a file system
without such locks, a wait beyond the deadline), it still is. What the file says is never believed:
at worst one waits out of turn.

Tested in `tests/privacy/ledger/test_many.py` and `tests/privacy/ledger/test_together.py`.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

if sys.platform == "linux":
    from dpreg.privacy.ledger.locks import first_held, is_free, try_lock, unlock
from dpreg.privacy.ledger.slots import PLACES, Slot, Slots

__all__ = ["Queue", "Turn", "Waiting", "share_with_group"]

_BYTES: Final = 1 << 40  # tickets' bytes start here, far behind all that the file holds
_LONG: Final = 0.1
_SHORT: Final = 0.005  # for who has no slot, and so no bell that others could ring
_DRAWS: Final = 1000


@dataclass(frozen=True, slots=True)
class Waiting:
    """Someone in the queue: the ticket, its slot and the message."""

    ticket: int
    slot: Slot
    message: bytes


class Turn:
    """One's place in the queue, once it has come: first, served by another, or out of time.

    Attributes
    ----------
    answer : int
        What the one who served this place answered; 0 where nobody did.
    first : bool
        Whether everybody with a smaller ticket has left or been served.
    kept : bool
        Whether nobody else did, or will do, what this place's message asks for.
    posted : bool
        Whether it could leave a message.
    """

    __slots__ = (
        "_bells",
        "_length",
        "_queue",
        "_rung",
        "_ticket",
        "answer",
        "first",
        "kept",
        "posted",
    )

    def __init__(self, queue: Queue | None, ticket: int, posted: bool) -> None:
        self._queue, self._ticket, self.posted = queue, ticket, posted
        self._bells: dict[int, int] = {}
        self._rung: dict[int, int] = {}
        self.answer, self.first, self.kept = 0, False, False
        self._length = 0

    def look(self) -> bool:
        """Tell whether somebody served this place, and take up what they answered."""
        slot = self._slot(self._ticket)
        if slot is None or not slot.answer:
            return False
        self.answer, self._length = slot.answer, slot.replied
        return True

    @property
    def reply(self) -> bytes:
        """What came with the answer, empty where nothing did."""
        if self._queue is None or not self._length:
            return b""
        return self._queue.slots.reply(self._ticket, self._length)

    def keep(self) -> int:
        """Serve this place oneself; return the note of who began to before, 0 where nobody did.

        To be called while nobody else can serve.
        """
        if not self._withdraw() and self._queue is not None:
            self._queue.give_up(self._ticket)  # a full disk: who holds no ticket is not served
        slot = self._slot(self._ticket)
        note = 0 if slot is None else slot.note
        self.kept = note == 0
        return note

    def take(self, other: Waiting, note: int) -> bool:
        """Note that a place behind is being served; False where it has withdrawn.

        False, too, where the disk takes no note: that place is then served in its own turn.
        """
        if self._queue is None or not self._queue.slots.note(other.ticket, note):
            return False
        # Whoever withdraws writes so before it looks for a note: one of the two sees the other.
        slot = self._slot(other.ticket)
        return slot is not None and not slot.withdrawn

    def behind(self, most: int) -> Iterator[Waiting]:
        """Go through those behind who left a message, in order, as far as the first without one.

        At the end it looks once more: who came meanwhile would else wait for the next commit, too.
        """
        queue, last = self._queue, self._ticket
        if queue is None or not self.first:
            return
        for _ in range(2):
            # Whoever is further behind has no slot beside this one's.
            start, last = last + 1, min(queue.slots.given, self._ticket + PLACES - 1)
            for ticket in range(start, last + 1):
                if not queue.is_waiting(ticket):
                    continue
                posted = queue.slots.posted(ticket)
                if posted is None or not posted[1] or len(self._bells) == most:
                    return
                self._bells[ticket] = posted[0].bell
                yield Waiting(ticket, *posted)

    def tell(self, answers: dict[int, tuple[int, bytes]]) -> None:
        """Give those behind their answers and replies, and let them go.

        Who cannot be told, on a full disk, finds in its own turn what was done.
        """
        if self._queue is None or not answers:
            return
        for ticket, (answer, reply) in answers.items():
            self._queue.slots.answer(ticket, answer, reply)
        self._queue.slots.served = max(answers)
        self._rung = {ticket: self._bells[ticket] for ticket in answers}

    def withdraw(self) -> bool:
        """Let nobody serve this place from now on; False where somebody may have begun to."""
        marked = self._withdraw()
        if self.kept or not self.posted:
            return True
        slot = self._slot(self._ticket)
        return marked and slot is not None and slot.note == 0

    def _withdraw(self) -> bool:
        """Mark the slot, if it is this place's; False where the disk does not take the mark."""
        if self._queue is None or self._slot(self._ticket) is None:
            return True
        return self._queue.slots.withdraw(self._ticket)

    def _slot(self, ticket: int) -> Slot | None:
        return None if self._queue is None else self._queue.slots.of(ticket)

    def _leave(self, queue: Queue) -> None:
        queue.leave(self._ticket, self._rung, wake=self.first)


class Queue:
    """The queue of a ledger's file, kept in a file beside it.

    Parameters
    ----------
    file : Path
        The ledger's file. The queue's has its mode and, if this user may set it, its group.
    """

    def __init__(self, file: Path) -> None:
        self._file: int | None = None
        self._bell: socket.socket | None = None
        if sys.platform != "linux":
            return
        beside = file.with_name(file.name + "-queue")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._file = os.open(beside, flags, 0o600)
            share_with_group(self._file, file)
            self.slots = Slots(self._file)
            self._number = int.from_bytes(os.urandom(8), "little")
            self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._bell.bind(_address(self._number))
            self._listening = select.poll()
            self._listening.register(self._bell, select.POLLIN)
        except OSError:
            self.close()  # not this user's to write: go without

    @contextmanager
    def turn(self, deadline: float, message: bytes = b"") -> Iterator[Turn]:
        """Wait for one's turn, or until a time of `time.monotonic`, and let the next in after."""
        file = self._file
        if file is None or sys.platform != "linux":
            yield Turn(None, 0, posted=False)
            return
        ticket, posted = self._ticket(file, message)
        turn = Turn(self if ticket else None, ticket, posted)
        try:
            if ticket:
                self._wait(file, turn, ticket, deadline)
            yield turn
        except BaseException:
            turn.withdraw()
            raise
        finally:
            if ticket:
                turn._leave(self)

    def close(self) -> None:
        """Leave the queue."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._bell is not None:
            self._bell.close()
            self._bell = None

    if sys.platform == "linux":

        def is_waiting(self, ticket: int) -> bool:
            """Tell whether someone holds this ticket."""
            return self._file is not None and not is_free(self._file, _BYTES + ticket)

        def give_up(self, ticket: int) -> None:
            """Hold a ticket no longer, and with it no place."""
            if self._file is not None:
                unlock(self._file, _BYTES + ticket)

        def leave(self, ticket: int, served: dict[int, int], *, wake: bool) -> None:
            """Give up a ticket; ring those who were served and, if asked, the next in the queue."""
            self.give_up(ticket)
            # The next first: it works while those who were served go their ways.
            if wake and self._file is not None:
                behind = _BYTES + max([ticket, self.slots.served, *served]) + 1
                found = first_held(self._file, behind, PLACES)
                slot = None if found is None else self.slots.of(found - _BYTES)
                if slot is not None:
                    self._ring(slot.bell)
            for bell in served.values():
                self._ring(bell)

        def _ticket(self, file: int, message: bytes) -> tuple[int, bool]:
            """Draw a number, and tell whether its message was left; 0 where none can be had."""
            ticket = 0
            try:
                for _ in range(_DRAWS):
                    ticket = max(ticket, self.slots.given) + 1
                    if not try_lock(file, _BYTES + ticket):
                        continue
                    if self.slots.given < ticket:
                        return ticket, self._post(ticket, message)
                    # It was drawn and given up meanwhile; somebody may have seen it held.
                    self.leave(ticket, {}, wake=True)
            except BaseException as fault:  # Ctrl-C, too: nobody is to wait for this one
                unlock(file, _BYTES + ticket)
                if not isinstance(fault, OSError):
                    raise
            return 0, False

        def _post(self, ticket: int, message: bytes) -> bool:
            """Leave a message, unless the slot is another's who waits; then give the number out."""
            owner, posted = self.slots.owner(ticket), False
            if owner in (0, ticket) or not self.is_waiting(owner):
                with suppress(OSError):  # a full disk: this one waits for its own turn
                    self.slots.post(ticket, self._number, message)
                    posted = True
            if self.slots.given < ticket:
                self.slots.given = ticket  # last: nobody looks at a ticket that is not yet given
            return posted

        def _wait(self, file: int, turn: Turn, ticket: int, deadline: float) -> None:
            bell, look = self._bell, _LONG if turn.posted else _SHORT
            while True:
                served = self.slots.served  # written after all answers
                if served + 1 >= ticket or is_free(file, _BYTES + served + 1, ticket - served - 1):
                    # Who is first by now may have been served meanwhile.
                    turn.first = not turn.look()
                    return
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self._listening.poll(1000 * min(left, look))
                if bell is not None:
                    with suppress(OSError):
                        bell.recv(1)

        def _ring(self, bell: int) -> None:
            """Wake one who waits; whoever has gone since has no bell."""
            if self._bell is not None:
                with suppress(OSError):
                    self._bell.sendto(b"!", _address(bell))


def _address(number: int) -> str:
    return f"\0dpreg-{number:016x}"


def share_with_group(beside: int | str, file: str | Path) -> None:
    """Give a file that belongs to the ledger the mode and group of the ledger's own.

    A user who did not make it and may not change it leaves it as it is.
    """
    wanted, found = os.stat(file), os.stat(beside)
    if sys.platform == "win32" or found.st_uid != os.geteuid():
        return
    if found.st_gid != wanted.st_gid:
        try:
            os.chown(beside, -1, wanted.st_gid)
        except PermissionError:
            return  # not a member of that group
    if found.st_mode & 0o777 != wanted.st_mode & 0o777:
        os.chmod(beside, wanted.st_mode & 0o777)
