"""How dpreg behaves as a guest of a process: interrupts, threads, warnings and progress bars."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from dpreg.errors import ArgumentError, DpregWarning

_BY_CONTEXT: Final = bool(getattr(sys.flags, "context_aware_warnings", False))
"""Whether each thread has warning filters of its own, as Python can have from 3.14 on."""


def bar(items: Iterable[Any] | None = None, *, unit: str, shown: bool, **options: Any) -> Any:
    """Return tqdm's bar over items, or one to update by hand; it is silent unless `shown`."""
    from tqdm import tqdm

    return tqdm(items, unit=unit, disable=not shown, **options)


def warn(text: str, kind: type[DpregWarning] = DpregWarning) -> None:
    """Warn the caller of dpreg: the warning points to the first line outside the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dpreg."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, kind, stacklevel=level)


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
    own = hasattr(os, "sched_getaffinity")
    return max(1, min(len(os.sched_getaffinity(0)) if own else os.cpu_count() or 1, most))


class _Silence:
    """The process's warning filters while some threads are to warn of nothing."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.inside = 0
        self.before: warnings.catch_warnings[None] | None = None


_SILENCE: Final = _Silence()
if hasattr(os, "register_at_fork"):  # a child must not find the lock held by a thread it has not
    os.register_at_fork(
        before=_SILENCE.lock.acquire,
        after_in_parent=_SILENCE.lock.release,
        after_in_child=_SILENCE.lock.release,
    )


@contextmanager
def silenced() -> Iterator[None]:
    """Drop all warnings inside, and put the filters back as they were, whatever is done to them.

    Filters belong to the whole process. `warnings.catch_warnings` in two threads at once puts the
    first one's filters back while the second still warns, and leaves the second's for good. Here
    the first thread to enter notes the filters and the last to leave puts them back.
    """
    if _BY_CONTEXT:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    with _SILENCE.lock:
        if _SILENCE.before is None:
            _SILENCE.before = warnings.catch_warnings()
            _SILENCE.before.__enter__()
        _SILENCE.inside += 1
        warnings.simplefilter("ignore")  # again: what ran before may have changed the filters
    try:
        yield
    finally:
        with _SILENCE.lock:
            _SILENCE.inside -= 1
            if not _SILENCE.inside and _SILENCE.before is not None:
                _SILENCE.before.__exit__(None, None, None)
                _SILENCE.before = None
