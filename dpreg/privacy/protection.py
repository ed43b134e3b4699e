"""Whom a release protects: the neighbour relation and the number of rows one person may own.

Every sensitivity is a function of a `Protection`, and each call has one. It is made from the call's
arguments, travels with the call's account, and is written into its claim and its ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from dpreg.errors import ArgumentError, shown

__all__ = ["NEIGHBORS", "Protection", "check_contributions", "check_neighbors"]

NEIGHBORS: Final = ("replace-one", "add-remove")
"""The two neighbour relations."""


def check_neighbors(neighbors: str) -> str:
    """Return `neighbors` if it names a relation, else raise ArgumentError."""
    if neighbors not in NEIGHBORS:
        raise ArgumentError(f"neighbors must be one of {NEIGHBORS}, got {shown(neighbors)}")
    return neighbors


def check_contributions(contributions: int) -> int:
    """Return the number of rows one person may own if it is an integer of at least 1."""
    if isinstance(contributions, bool) or not isinstance(contributions, int) or contributions < 1:
        raise ArgumentError("contributions must be an integer of at least 1")
    return contributions


@dataclass(frozen=True, slots=True)
class Protection:
    """Which tables are neighbours.

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
        Whether one person's rows are replaced, at a public number of rows, or added or removed.
    contributions : int
        The most rows that one person may own; at least 1.
    person : str, optional
        The column that identifies the person. At most `contributions` rows of each person are then
        used, and the number of rows is private under both relations (`dpreg.sources.persons`).
    capped : bool
        Whether the caller asked for that number: looks use all rows of a person otherwise.

    Raises
    ------
    ArgumentError
        For an unknown relation, or a number of rows that is not a positive integer.
    """

    neighbors: str
    contributions: int = 1
    person: str | None = None
    capped: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        """Check both."""
        check_neighbors(self.neighbors)
        check_contributions(self.contributions)

    @property
    def n_is_public(self) -> bool:
        """Whether the number of rows is public."""
        return self.neighbors == "replace-one" and self.person is None

    @property
    def apart(self) -> int:
        """How many rows of one person coins may send to different groups of the rows.

        One where `person` names them: all rows of a person follow one coin, and neighbours can be
        paired so that those that change lie in one group (`dpreg.sources.persons`).
        """
        return 1 if self.person is not None else self.contributions

    @property
    def sums(self) -> Protection:
        """The same where a person's rows are summed first, and limits are put on the sum.

        Where `person` names whose rows they are, such a sum is one unit however many rows are in
        it: `contributions` has no effect. Proof: `dpreg.privacy.fit_sensitivity`.
        """
        return self if self.person is None else replace(self, contributions=1)

    @property
    def changes(self) -> int:
        """Rows that one contribution takes out of the table or puts into it: 2 if replaced."""
        return 2 if self.neighbors == "replace-one" else 1

    @property
    def unit(self) -> str:
        """What a ledger writes down: "replace-one, 1 row a person".

        Where `person` is given, a person is all rows of an id, however many of them a call uses.
        """
        if self.person is not None:
            return f"{self.neighbors}, all rows of one {self.person!r}"
        rows = "1 row" if self.contributions == 1 else f"{self.contributions} rows"
        return f"{self.neighbors}, {rows} a person"

    def implies(self, other: Protection) -> bool:
        """Tell whether what is proved for these neighbours holds for another call's.

        A bound that was proved without `person` holds with it as well (`dpreg.sources.persons`).
        """
        same = (self.neighbors, self.contributions) == (other.neighbors, other.contributions)
        return same and self.person in (None, other.person)
