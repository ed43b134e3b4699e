"""What the file of a ledger's queue holds: two counters, and a slot for each who waits.

A slot belongs to one ticket and says so; a later ticket takes it over once the earlier has left.
Its fields are written by one side each: ticket, bell and message by whoever waits, before anybody
can look; note and answer by whoever serves; the mark of withdrawal by whoever waits. Nothing here
needs to survive the machine: all who read it end with it.

Tested in `tests/privacy/ledger/test_together.py`.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Final

__all__ = ["PLACES", "Slot", "Slots"]

PLACES: Final = 256
_SIZE: Final = 2048
_START: Final = 4096
_COUNTER: Final = struct.Struct("<Q")
_HEAD: Final = struct.Struct("<QQQQQQ")  # ticket, bell, length, note, answer, withdrawn
_NOTE, _ANSWER, _WITHDRAWN = 24, 32, 40


@dataclass(frozen=True, slots=True)
class Slot:
    """What stands in the slot of a ticket."""

    bell: int
    message: bytes
    note: int
    answer: int
    withdrawn: bool


class Slots:
    """The counters and slots of an open file."""

    __slots__ = ("_file",)

    def __init__(self, file: int) -> None:
        self._file = file

    @property
    def given(self) -> int:
        """The last ticket that was drawn."""
        return max(self._counter(0), self._counter(8))

    @given.setter
    def given(self, ticket: int) -> None:
        os.pwrite(self._file, _COUNTER.pack(ticket), 0)

    @property
    def served(self) -> int:
        """A ticket up to which everybody has left or been served."""
        return self._counter(8)

    @served.setter
    def served(self, ticket: int) -> None:
        os.pwrite(self._file, _COUNTER.pack(ticket), 8)

    def post(self, ticket: int, bell: int, message: bytes) -> None:
        """Take the slot of a ticket; a message that is too long for it is left out."""
        if len(message) > _SIZE - _HEAD.size:
            message = b""
        head = _HEAD.pack(ticket, bell, len(message), 0, 0, 0)
        os.pwrite(self._file, head + message, _place(ticket))

    def of(self, ticket: int) -> Slot | None:
        """Read the slot of a ticket; None where it belongs to another."""
        content = os.pread(self._file, _SIZE, _place(ticket))
        if len(content) < _HEAD.size:
            return None
        found, bell, length, note, answer, withdrawn = _HEAD.unpack_from(content)
        if found != ticket:
            return None
        message = content[_HEAD.size : _HEAD.size + length]
        return Slot(bell, message, note, answer, bool(withdrawn))

    def note(self, ticket: int, value: int) -> None:
        """Write the note of whoever serves."""
        self._put(ticket, _NOTE, value)

    def answer(self, ticket: int, value: int) -> None:
        """Write the answer of whoever served."""
        self._put(ticket, _ANSWER, value)

    def withdraw(self, ticket: int) -> None:
        """Mark that nobody is to serve this ticket."""
        self._put(ticket, _WITHDRAWN, 1)

    def _put(self, ticket: int, field: int, value: int) -> None:
        os.pwrite(self._file, _COUNTER.pack(value), _place(ticket) + field)

    def _counter(self, place: int) -> int:
        content = os.pread(self._file, _COUNTER.size, place)
        return int(_COUNTER.unpack(content)[0]) if len(content) == _COUNTER.size else 0


def _place(ticket: int) -> int:
    return _START + ticket % PLACES * _SIZE
