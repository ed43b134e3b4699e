"""Accounts of privacy budget: exact, durable, and safe for many threads, processes and users.

`handle` is what users hold; `charging` is what one charge does; `chain` is what a line says and how
it is tied to those before; `store` holds the statements; `sqlite` and `postgres` are the databases;
`migration` takes over the ledgers of dpreg 0.1.
"""

from dpreg.privacy.ledger.calls import charge
from dpreg.privacy.ledger.chain import Caps, Entry
from dpreg.privacy.ledger.charging import Verified
from dpreg.privacy.ledger.handle import Ledger
from dpreg.privacy.ledger.migration import migrate

__all__ = ["Caps", "Entry", "Ledger", "Verified", "charge", "migrate"]
