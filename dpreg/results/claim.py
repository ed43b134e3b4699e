"""What a release claims: the neighbour relation, the budget, and the sentence that says it.

The claim travels with every result and stands in each of its views. It is made of public facts
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget, BudgetTable, decimal_string
from dpreg.privacy.protection import check_contributions, check_neighbors

if TYPE_CHECKING:
    import pandas as pd

    from dpreg.privacy.account import Account

__all__ = ["STAMP", "PrivacyClaim"]

STAMP: Final = "NOT PRIVATE: seeded"
"""The mark on every view of a result whose noise came from a seeded generator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyClaim:
    """The privacy claim of a release.

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
        Which tables count as neighbours. Under replace-one n is public.
    contributions : int
        k: the largest number of rows that one person owns; with `person`, that are used of one.
    spends : BudgetTable
        What each step cost; its total is what the release cost.
    seeded : bool
        True when the noise came from `unsafe_seed`: nothing is claimed then.
    person : str, optional
        The column that says whose row it is.
    whole : bool
        Whether all rows of a person count, summed before they are limited; `contributions` then
        limits only rows from which bounds were bought.
    caveats : tuple of str
        Sentences that bound what the mechanism leaves out (precision of the noise, say). They
        become part of the claim.
    """

    neighbors: str
    contributions: int
    spends: BudgetTable
    seeded: bool
    person: str | None = None
    caveats: tuple[str, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        """Reject claims that no mechanism of dpreg could make."""
        check_neighbors(self.neighbors)
        check_contributions(self.contributions)
        if self.whole and self.person is None:
            raise ArgumentError("whole needs the person whose rows were summed")
        object.__setattr__(self, "caveats", tuple(self.caveats))
        # All rows of a person who is named follow one coin: see `Protection.apart`.
        apart = 1 if self.person is not None else self.contributions
        spends = BudgetTable(self.spends.spends, apart)
        object.__setattr__(self, "spends", spends)
        _ = spends.total  # a total that promises nothing is refused here, not when printed

    @classmethod
    def of(cls, account: Account) -> PrivacyClaim:
        """Claim what a call's account protects and was charged, once all is drawn."""
        return cls(
            neighbors=account.protection.neighbors,
            contributions=account.protection.contributions,
            spends=account.table(),
            seeded=account.rng is not None,
            person=account.protection.person,
        )

    @property
    def spent(self) -> Budget:
        """The total cost, exact."""
        return self.spends.total

    @property
    def stamp(self) -> str | None:
        """`STAMP` for a seeded release, else None."""
        return STAMP if self.seeded else None

    @property
    def sentence(self) -> str:
        """State exactly what is claimed."""
        body = " ".join((_guarantee(self), *self.caveats))
        if not self.seeded:
            return body
        return (
            f"{STAMP}. The noise came from a seeded generator that anyone can run again, so these "
            f"numbers protect nobody. The same call without a seed would claim: {body}"
        )

    def titled(self, title: str) -> str:
        """Return `title` with the stamp, if there is one, as a repr that shows no numbers."""
        return f"<{title}; {self.stamp}>" if self.stamp else f"<{title}>"

    def marked(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return `frame` with the stamp, if there is one, in its `attrs`."""
        if self.stamp:
            frame.attrs["privacy"] = self.stamp
        return frame

    def marked_series(self, series: pd.Series) -> pd.Series:
        """Return `series` with the stamp, if there is one, in its `attrs`."""
        if self.stamp:
            series.attrs["privacy"] = self.stamp
        return series


def _guarantee(claim: PrivacyClaim) -> str:
    eps, delta = decimal_string(claim.spent.eps), decimal_string(claim.spent.delta)
    k = claim.contributions
    owns = "one row" if k == 1 else f"{k} rows"
    if claim.person is not None:
        each = "replacing" if claim.neighbors == "replace-one" else "adding or removing"
        change = f"{each} all rows of any one person, the number of rows being private,"
    elif claim.neighbors == "replace-one":
        change = "replacing the data of any one person, at a fixed and public number of rows,"
    else:
        change = "adding or removing any one person, the number of rows being private,"
    who = f"A person is assumed to own at most {owns}; anyone who owns more is protected less"
    if claim.person is not None:
        who = (
            f"A person is all rows with one value of {claim.person!r}, of which at most {owns} "
            f"{'was' if k == 1 else 'were'} used"
        )
    if claim.whole:
        who = (
            f"A person is all rows with one value of {claim.person!r}, however many: they were "
            "summed, and the sum was limited"
        )
    slack = "" if claim.spent.delta == 0 else f" plus {delta}"
    return (
        f"Differentially private with eps = {eps} and delta = {delta}: {change} changes the "
        f"probability of any set of outcomes by at most a factor exp({eps}){slack}. "
        f"{who}. Formula, schema, the arguments of the call and the table's column names count as "
        "public; how long the call took is not covered."
    )
