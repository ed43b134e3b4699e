"""How a public call charges its ledger. Tested in `tests/privacy/test_account.py`."""

from __future__ import annotations

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger.handle import Ledger

__all__ = ["charge"]


def charge(
    ledger: Ledger | None,
    budget: Budget,
    what: str,
    unit: str,
    analyst: str | None = None,
) -> None:
    """Charge the ledger of a public call, if it has one, naming whom the charge protects."""
    if ledger is None:
        if analyst is not None:
            raise ArgumentError("analyst says whose account is charged: give a ledger, too.")
        return
    if not isinstance(ledger, Ledger):
        raise ArgumentError(
            f"budget must be a Ledger, such as Ledger(1); got {type(ledger).__name__}."
        )
    ledger.charge(budget, what, unit, analyst=analyst)
