"""Let reticulate drop Python objects while rpy2 is at work.

rpy2 releases Python's lock (the GIL) around each call into R. There R may collect garbage, and with
it run the finalizers of reticulate's objects, whoever made them; those of reticulate 1.28 drop
their reference without taking the lock, which ends the process. They do it through a pointer to
``Py_DecRef`` that reticulate looked up, so the pointer is set to a function that takes the lock
first (every callback of ctypes does), as long as a call of R's is answered. At all other times the
lock is held, and reticulate's own pointer stands: it may collect garbage while an exception of
Python's waits for it, which no function written in Python may be called with. Where Python hosts R
the lock is released at any time, and the function stands for good. Where a later reticulate has no
such pointer, or sees to the lock itself, this does nothing or no harm.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Final

__all__ = ["find", "guard", "guarded"]

_POINTER: Final = "_ZN10reticulate9libpython9Py_DecRefE"
"""reticulate::libpython::Py_DecRef, as its shared library exports it."""


def _release(address: int | None) -> None:
    """Drop one reference, with the lock held."""
    if address:
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))


_callback: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
"""Kept by the module as long as the process lives."""


_pointers: Final[list[ctypes.c_void_p]] = []


def find(library: str) -> bool:
    """Find the pointer in the reticulate loaded from this path; return whether there is one."""
    try:
        _pointers[:] = [ctypes.c_void_p.in_dll(ctypes.CDLL(library), _POINTER)]
    except (OSError, ValueError):
        return False
    return True


def guard() -> None:
    """Let finalizers take the lock first."""
    for pointer in _pointers:
        pointer.value = ctypes.cast(_callback, ctypes.c_void_p).value


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Let finalizers take the lock first, inside."""
    before = [pointer.value for pointer in _pointers]
    guard()
    try:
        yield
    finally:
        for pointer, value in zip(_pointers, before, strict=True):
            pointer.value = value
