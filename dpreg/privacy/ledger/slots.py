"""What the file of a ledger's queue holds: two counters, and a slot for each who waits.

A slot belongs to one ticket and says so; a later ticket takes it over once the earlier has left.
Its fields are written by one side each: ticket, bell and message by whoever waits, before the
ticket counts as drawn and anybody can look; note, reply and answer, in this order, by whoever
serves; the mark of withdrawal by who waits. Nothing here needs to survive the machine: all who read
it end with it.

Whoever may charge the ledger may write anything here, and a disk may be full. So numbers out of
their range count as none, what cannot be read as not there, and who writes is told if it failed.

Tested in `tests/privacy/ledger/test_together.py`.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Final

__all__ = ["PLACES", "Slot", "Slots"]

PLACES: Final = 256
_SIZE: Final = 4096  # the second half is the reply's
_HALF: Final = _SIZE // 2
_START: Final = 4096 + (1 << 19)  # past where earlier versions of dpreg may keep theirs
_COUNTER: Final = struct.Struct("<Q")
_COUNTERS: Final = struct.Struct("<QQ")
_HEAD: Final = struct.Struct("<QQQQQQQ")  # ticket, bell, length, note, replied, answer, withdrawn
_NOTE, _REPLIED, _WITHDRAWN = 24, 32, 48
_LARGEST: Final = 1 << 48  # no count of charges comes near


@dataclass(frozen=True, slots=True)
class Slot:
    """What stands in the slot of a ticket; of message and reply, how long they are."""

    bell: int
    length: int
    note: int
    replied: int
    answer: int
    withdrawn: bool


class Slots:
    """The counters and slots of an open file."""

    __slots__ = ("_file",)

    def __init__(self, file: int) -> None:
        self._file = file

    @property
    def counters(self) -> tuple[int, int]:
        """`given` and `served`, read at once."""
        content = self._read(_COUNTERS.size, 0).ljust(_COUNTERS.size, b"\0")
        given, served = _COUNTERS.unpack(content)
        given = given if given <= _LARGEST else 0
        served = served if served <= _LARGEST else 0
        return max(given, served), served

    @property
    def given(self) -> int:
        """The last ticket that was drawn."""
        return self.counters[0]

    @given.setter
    def given(self, ticket: int) -> None:
        """Raise OSError where the disk is full."""
        os.pwrite(self._file, _COUNTER.pack(ticket), 0)

    @property
    def served(self) -> int:
        """A ticket up to which everybody has left or been served."""
        return self.counters[1]

    @served.setter
    def served(self, ticket: int) -> None:
        """Leave it as it was where the disk is full: places are then looked at one by one."""
        self._write(_COUNTER.pack(ticket), 8)

    def post(self, ticket: int, bell: int, message: bytes) -> None:
        """Take the slot of a ticket; a message that is too long for it is left out.

        OSError where the disk is full.
        """
        if len(message) > _HALF - _HEAD.size:
            message = b""
        head = _HEAD.pack(ticket, bell, len(message), 0, 0, 0, 0)
        os.pwrite(self._file, head + message, _place(ticket))

    def owner(self, ticket: int) -> int:
        """Return the ticket whose slot it is that this one would take."""
        content = self._read(_COUNTER.size, _place(ticket)).ljust(_COUNTER.size, b"\0")
        owner = int(_COUNTER.unpack(content)[0])
        return owner if owner <= _LARGEST else 0

    def of(self, ticket: int) -> Slot | None:
        """Read the slot of a ticket; None where it belongs to another."""
        return _slot(ticket, self._read(_HEAD.size, _place(ticket)))

    def posted(self, ticket: int) -> tuple[Slot, bytes] | None:
        """Read the slot and the message of a ticket at once; None where it belongs to another."""
        content = self._read(_HALF, _place(ticket))
        slot = _slot(ticket, content)
        if slot is None:
            return None
        return slot, content[_HEAD.size : _HEAD.size + slot.length]

    def note(self, ticket: int, value: int) -> bool:
        """Write the note of whoever serves; tell whether it could be written."""
        return self._write(_COUNTER.pack(value), _place(ticket) + _NOTE)

    def answer(self, ticket: int, value: int, reply: bytes = b"") -> bool:
        """Write the answer of whoever served; a reply for which there is no room is left out."""
        replied, place = 0, _place(ticket)
        if 0 < len(reply) <= _HALF and self._write(reply, place + _HALF):
            replied = len(reply)
        return self._write(_COUNTERS.pack(replied, value), place + _REPLIED)

    def reply(self, ticket: int, length: int) -> bytes:
        """Read the reply to a ticket, of the length that its slot tells."""
        return self._read(min(length, _HALF), _place(ticket) + _HALF)

    def withdraw(self, ticket: int) -> bool:
        """Mark that nobody is to serve this ticket; tell whether it could be written."""
        return self._write(_COUNTER.pack(1), _place(ticket) + _WITHDRAWN)

    def _read(self, length: int, place: int) -> bytes:
        try:
            return os.pread(self._file, length, place)
        except OSError:
            return b""

    def _write(self, content: bytes, place: int) -> bool:
        try:
            return os.pwrite(self._file, content, place) == len(content)
        except OSError:
            return False


def _slot(ticket: int, content: bytes) -> Slot | None:
    if len(content) < _HEAD.size:
        return None
    found, bell, length, note, replied, answer, withdrawn = _HEAD.unpack_from(content)
    return Slot(bell, length, note, replied, answer, bool(withdrawn)) if found == ticket else None


def _place(ticket: int) -> int:
    return _START + ticket % PLACES * _SIZE
