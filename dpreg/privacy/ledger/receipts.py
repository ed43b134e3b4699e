"""What a public call was charged, kept for the record of its release.

A call charges deep inside, and its result is made elsewhere. Whoever wants to know opens `kept`
around the call: the charge that happens inside it, in the same thread, is noted there. Where one
`kept` is inside another, both note it.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpreg.privacy.ledger.chain import Line
from dpreg.privacy.ledger.store import Facts

__all__ = ["Receipt", "kept", "note", "unnoted"]


Receipt = list[tuple[Facts, Line]]
"""The charges of a call, in order: the ledger's facts and the line that each wrote."""

_open: ContextVar[tuple[Receipt, ...]] = ContextVar("dpreg_receipts", default=())


@contextmanager
def kept() -> Iterator[Receipt]:
    """Collect the charges made while the block runs."""
    receipt = Receipt()
    before = _open.set((*_open.get(), receipt))
    try:
        yield receipt
    finally:
        _open.reset(before)


@contextmanager
def unnoted() -> Iterator[None]:
    """Keep what is charged inside from calls outside: a user's code may make calls of its own."""
    before = _open.set(())
    try:
        yield
    finally:
        _open.reset(before)


def note(facts: Facts, line: Line) -> None:
    """Write down a charge, if somebody wants to know."""
    for receipt in _open.get():
        receipt.append((facts, line))
