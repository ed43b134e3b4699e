"""What a call would charge: it is run up to its charge, and not a step further.

A public call settles everything that can be refused from public facts, then charges, then reads
rows. Given a ledger that stops it at the charge, it has refused what it would refuse and named its
price, and no row was read.

Tested in `tests/cli/test_cli.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger.chain import Entry
from dpreg.privacy.ledger.handle import Ledger

__all__ = ["Quotation", "quote"]


@dataclass(frozen=True, slots=True)
class Quotation:
    """The price of a call: `budget`, what it is for, and whom it protects."""

    budget: Budget
    what: str
    unit: str


class _Stop(BaseException):
    """Ends a call at its charge; no handler of ordinary errors holds it up."""

    def __init__(self, quotation: Quotation) -> None:
        super().__init__()
        self.quotation = quotation


class _Till(Ledger):
    """A ledger that charges nothing and stops whoever asks."""

    __slots__ = ()

    def charge(
        self, budget: Budget, what: str, unit: str = "", *, analyst: str | None = None
    ) -> Entry:
        """Stop with the price."""
        raise _Stop(Quotation(budget, what, unit))

    def for_analyst(self, name: str) -> Self:
        """Return itself."""
        return self


def quote(call: Callable[..., Any], *arguments: Any, **options: Any) -> Quotation:
    """Return what a public call would charge; raise what it would raise before.

    Parameters
    ----------
    call : callable
        A public call of dpreg that takes ``budget=``.
    *arguments, **options
        Its arguments, but for `budget`.
    """
    try:
        call(*arguments, **{**options, "budget": _Till(0)})
    except _Stop as stop:
        return stop.quotation
    raise ArgumentError("this call charges nothing")
