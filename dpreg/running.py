"""How dpreg behaves as a guest of a process: interrupts, threads and progress bars."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

from dpreg.errors import ArgumentError

__all__ = ["bar", "restore_interrupts", "threads"]


def bar(items: Iterable[Any] | None = None, *, unit: str, shown: bool, **options: Any) -> Any:
    """Return tqdm's bar over items, or one to update by hand; it is silent unless `shown`."""
    from tqdm import tqdm

    return tqdm(items, unit=unit, disable=not shown, **options)


def restore_interrupts() -> None:
    """Put Python's own handling of Ctrl-C back, where a library has taken its place.

    Polars sets a handler of its own in C when it is imported, behind Python's back; Ctrl-C is then
    not seen while rows are read. Setting the handler that Python believes to be in force installs
    Python's again. A handler that the program set through `signal.signal` stays.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python lets the main thread alone set handlers
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None:  # None: a C handler that Python does not know of
        signal.signal(signal.SIGINT, handler)


def threads(most: int) -> int:
    """Return how many threads to read rows with.

    `DPREG_THREADS` says it; else the processors that this process may run on (its CPU affinity),
    at most `most`.
    """
    told = os.environ.get("DPREG_THREADS", "").strip()
    if told:
        if not (told.isascii() and told.isdigit() and 1 <= int(told) <= 1024):
            raise ArgumentError("DPREG_THREADS must be a whole number from 1 to 1024.")
        return int(told)
    if hasattr(os, "sched_getaffinity"):
        return max(1, min(len(os.sched_getaffinity(0)), most))
    return max(1, min(os.cpu_count() or 1, most))
