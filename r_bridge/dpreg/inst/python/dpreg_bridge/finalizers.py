"""Let reticulate drop Python objects while rpy2 is at work.

rpy2 releases Python's lock (the GIL) around each call into R. There R may collect garbage, and with
it run the finalizers of reticulate's objects, whoever made them; those of reticulate 1.28 drop
their reference without taking the lock, which ends the process. They do it through a pointer to
``Py_DecRef`` that reticulate looked up, so the pointer is set to a function that takes the lock
first (every callback of ctypes does). Where a later reticulate has no such pointer, or sees to the
lock itself, this does nothing or no harm.
"""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["guard"]

_POINTER: Final = "_ZN10reticulate9libpython9Py_DecRefE"
"""reticulate::libpython::Py_DecRef, as its shared library exports it."""


def _release(address: int | None) -> None:
    """Drop one reference, with the lock held."""
    if address:
        ctypes.pythonapi.Py_DecRef(ctypes.c_void_p(address))


_callback: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
"""Kept by the module as long as the process lives."""


def guard(library: str) -> bool:
    """Guard the finalizers of the reticulate loaded from this path; return whether it was done."""
    try:
        pointer = ctypes.c_void_p.in_dll(ctypes.CDLL(library), _POINTER)
    except (OSError, ValueError):
        return False
    pointer.value = ctypes.cast(_callback, ctypes.c_void_p).value
    return True
