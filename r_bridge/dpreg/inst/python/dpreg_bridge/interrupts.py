"""Ctrl-C ends Python's work while Python is at work, and R's at all other times.

rpy2 takes the signal for Python when it attaches, and from then on R's loops could not be stopped.
So whatever answers the signal outside (reticulate, which tells R, or the Python that hosts R) is
put back, in Python and in the C library, and Python's own answer stands in while a call is
computed.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["leave_to_r", "outsiders_interrupts", "pythons_interrupts"]

_STRUCTURE = 512
"""Bytes that hold a struct sigaction anywhere."""


def leave_to_r(entrance: str) -> None:
    """Keep the signal's answer in Python from raising on the way between R and a call.

    There nobody could catch it, and R would get no reply. reticulate has told R of the signal, too,
    and R sees to it as soon as it has its reply.

    Parameters
    ----------
    entrance : str
        The file of the function by which R's calls come in.
    """
    found = signal.getsignal(signal.SIGINT)
    if not callable(found) or threading.current_thread() is not threading.main_thread():
        return
    answered: Callable[[int, FrameType | None], Any] = found

    def answer(number: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None:
            if inner.f_code.co_filename == entrance:
                return
            inner = inner.f_back
        answered(number, frame)

    signal.signal(signal.SIGINT, answer)


@contextlib.contextmanager
def outsiders_interrupts(*, python: bool = True) -> Iterator[None]:
    """Leave the signal's answer as it was found, in C and in Python (or in C alone)."""
    library = ctypes.CDLL(None) if hasattr(signal, "SIGALRM") else None
    if library is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    found = ctypes.create_string_buffer(_STRUCTURE)
    library.sigaction(int(signal.SIGINT), None, found)
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if python and handler is not None:
            signal.signal(signal.SIGINT, handler)
        library.sigaction(int(signal.SIGINT), found, None)


@contextlib.contextmanager
def pythons_interrupts() -> Iterator[None]:
    """Let the signal raise KeyboardInterrupt inside; at the end at the latest.

    Python drops what is raised within a finalizer (`__del__`), and the signal may come there.
    """
    arrived = False

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True
        signal.default_int_handler(number, frame)

    with outsiders_interrupts():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, answer)
        yield
    if arrived:
        raise KeyboardInterrupt
