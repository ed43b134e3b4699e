"""Accounts of privacy budget: exact, durable, and safe for many threads, processes and users.

`handle` is what users hold; `book` is the order in which an account is read and written; `charging`
is what one charge does to it; `chain` is what a line says and how it is tied to those before;
`store` holds the statements; `sqlite` and `postgres` are the databases; `witness` tells of a
restored ledger.
"""

from dpreg.privacy.ledger.book import Verified
from dpreg.privacy.ledger.chain import Caps, Entry
from dpreg.privacy.ledger.handle import Ledger, charge

__all__ = ["Caps", "Entry", "Ledger", "Verified", "charge"]
