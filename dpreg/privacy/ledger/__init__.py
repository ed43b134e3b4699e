"""Accounts of privacy budget: exact, durable, and safe for many threads, processes and users.

`handle` is what users hold; `book` is the order in which an account is read and written, what one
charge does to it, and the witness that tells of a restored ledger; `chain` is what a line says and
how it is tied to those before, and the statements; `sqlite` and `postgres` are the databases.
"""

from dpreg.privacy.ledger.book import Verified
from dpreg.privacy.ledger.chain import Caps, Entry
from dpreg.privacy.ledger.handle import Ledger

__all__ = ["Caps", "Entry", "Ledger", "Verified"]
