"""A fair queue before a file's lock: who comes first is served first.

SQLite's own waiting is a lottery: each process sleeps a while and tries again, and with many of
them some wait for seconds. Here each takes a ticket, holds a lock on the byte of that number, and
goes in when no smaller byte is locked. The system lets go of a lock when its process ends, however
it ends, so that nobody waits for the dead. Who leaves wakes the next by a datagram; where it does
not arrive (another container), the next looks by itself every few milliseconds.

The queue gives order and nothing else. That one writer at a time gets in is the database's work;
where there is no queue (not Linux, a folder that may not be written to, a wait beyond the
deadline), it still is.

Tested in `tests/privacy/ledger/test_many.py`.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["Queue"]

_BYTES: Final = 1 << 20  # tickets' bytes start here
_NUMBER: Final = struct.Struct("<Q")  # the last ticket drawn, at the start of the file
_SHORT: Final = 0.0002
_LONG: Final = 0.02
_MANY: Final = 1000

if sys.platform == "linux":
    import fcntl

    _LOCK: Final = struct.Struct("@hhqqi4x")

    def _try_lock(file: int, kind: int, start: int, length: int = 1) -> bool:
        """Lock or unlock bytes of the file, for this open file alone; tell whether it was free."""
        order = _LOCK.pack(kind, os.SEEK_SET, start, length, 0)
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, order)
        except BlockingIOError:
            return False
        return True

    def _is_free(file: int, start: int, length: int) -> bool:
        """Tell whether nobody else holds one of these bytes."""
        order = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, order)
        return bool(_LOCK.unpack(answer)[0] == fcntl.F_UNLCK)


class Queue:
    """The queue of a ledger's file, kept in a file beside it.

    Parameters
    ----------
    file : Path
        The ledger's file. The queue's has its mode and, if this user may set it, its group.
    """

    def __init__(self, file: Path) -> None:
        self._file: int | None = None
        self._name = ""
        if sys.platform != "linux":
            return
        beside = file.with_name(file.name + "-queue")
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._file = os.open(beside, flags, 0o600)
            share_with_group(self._file, file)
            found = os.fstat(self._file)
            self._name = f"{found.st_dev}-{found.st_ino}"
        except OSError:
            self.close()  # not this user's to write: go without

    @contextmanager
    def turn(self, deadline: float) -> Iterator[None]:
        """Wait for one's turn, or until a time of `time.monotonic`, and let the next in after."""
        file = self._file
        if file is None or sys.platform != "linux":
            yield
            return
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as bell:
            ticket = self._ticket(file, bell, deadline)
            try:
                if ticket:
                    self._wait(file, bell, ticket, deadline)
                yield
            finally:
                if ticket:
                    _try_lock(file, fcntl.F_UNLCK, _BYTES + ticket)
                    self._wake(file, bell, ticket)

    def close(self) -> None:
        """Leave the queue."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    if sys.platform == "linux":

        def _ticket(self, file: int, bell: socket.socket, deadline: float) -> int:
            """Draw the next number and lock its byte; 0 where the counter stays taken."""
            while not _try_lock(file, fcntl.F_WRLCK, 0):
                if time.monotonic() > deadline:
                    return 0
                time.sleep(_SHORT)
            try:
                ticket = _given(file) + 1
                with suppress(OSError):  # a name that is taken: then without a bell
                    bell.bind(self._address(ticket))
                bell.setblocking(False)
                os.pwrite(file, _NUMBER.pack(ticket), 0)
                _try_lock(file, fcntl.F_WRLCK, _BYTES + ticket)
            finally:
                _try_lock(file, fcntl.F_UNLCK, 0)
            return ticket

        def _wait(self, file: int, bell: socket.socket, ticket: int, deadline: float) -> None:
            listening = select.poll()
            listening.register(bell, select.POLLIN)
            while not _is_free(file, _BYTES, ticket):
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                listening.poll(1000 * min(left, _LONG))
                with suppress(OSError):
                    bell.recv(1)

        def _wake(self, file: int, bell: socket.socket, ticket: int) -> None:
            """Ring for the next; who has gone since has no bell."""
            for later in range(ticket + 1, min(_given(file), ticket + _MANY) + 1):
                try:
                    bell.sendto(b"!", self._address(later))
                    return
                except OSError:
                    continue

        def _address(self, ticket: int) -> str:
            return f"\0dpreg-{self._name}-{ticket}"


def _given(file: int) -> int:
    """Read the last number that was drawn."""
    content = os.pread(file, _NUMBER.size, 0)
    return int(_NUMBER.unpack(content)[0]) if len(content) == _NUMBER.size else 0


def share_with_group(beside: int | Path, file: Path) -> None:
    """Give a file that belongs to the ledger the mode and group of the ledger's own.

    A user who did not make it and may not change it leaves it as it is.
    """
    wanted, found = file.stat(), os.stat(beside)
    if sys.platform == "win32" or found.st_uid != os.geteuid():
        return
    if found.st_gid != wanted.st_gid:
        try:
            os.chown(beside, -1, wanted.st_gid)
        except PermissionError:
            return  # not a member of that group
    if found.st_mode & 0o777 != wanted.st_mode & 0o777:
        os.chmod(beside, wanted.st_mode & 0o777)
