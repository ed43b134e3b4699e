"""The record of a release: when, by what, at whose cost. Public facts alone.

A record never holds anything computed from the rows that was not released: no hash of the data, no
path, no table. The ledger is named by the random name that it got when it was made.

Nor does it tell how long a call took, which depends on the rows. Its time is that of the charge, or
of the call's start where no ledger is charged: no row is read before. It is cut to the minute, as
the start of what comes next in a program may be the end of what was before. The ledger, which
readers do not see, keeps seconds; the head that a record names is a hash of them and of a random
token of 128 bits, so that they cannot be guessed from it.

Tested in `tests/results/test_serialize.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from typing import Any, Final

from dpreg.errors import ArgumentError

__all__ = ["LedgerPosition", "ReleaseRecord", "minute", "versions"]

_LIBRARIES: Final = ("dpreg", "opendp", "python-flint", "numpy", "scipy")
"""What draws noise, and what computes with it."""


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of dpreg and of the libraries that noise and arithmetic come from."""
    return {name: metadata.version(name) for name in _LIBRARIES}


def minute(when: datetime) -> str:
    """Write a time in UTC, cut to the minute, as records tell it."""
    return when.astimezone(UTC).isoformat(timespec="minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPosition:
    """Where a release stands in its ledger.

    Attributes
    ----------
    ledger : str
        The ledger's random name.
    entry : int
        The number of the entry that paid for the release.
    head : str
        The chain's head after it, for `dpreg ledger verify --head`.
    cap_eps, cap_delta, spent_eps, spent_delta : str
        The data set's cap, and all that was charged up to this entry; exact.
    """

    ledger: str
    entry: int
    head: str
    cap_eps: str
    cap_delta: str
    spent_eps: str
    spent_delta: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """When and how a result was released.

    Attributes
    ----------
    call : str
        The public function, such as "dp_select".
    arguments : mapping
        Its public arguments as typed, in JSON's own types.
    when : str
        UTC, ISO 8601, to the minute: when it was charged; see above.
    versions : mapping
        Of dpreg and of the libraries of its noise.
    ledger : LedgerPosition or None
        None where no ledger was charged.
    """

    call: str
    when: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    ledger: LedgerPosition | None = None

    def __post_init__(self) -> None:
        """Copy the mappings and see that the time is one."""
        object.__setattr__(self, "arguments", dict(self.arguments))
        object.__setattr__(self, "versions", dict(self.versions))
        try:
            datetime.fromisoformat(self.when)
        except ValueError:
            raise ArgumentError("when must be a time in ISO 8601") from None
