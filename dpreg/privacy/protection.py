"""Whom a release protects: the neighbour relation and the number of rows one person may own.

Every sensitivity is a function of a `Protection`, and each call has one. It is made from the call's
arguments, travels with the call's account, and is written into its claim and its ledger.

How far the output of a step moves between neighbours: a value that every draw must show.

Each step from rows to a release has a *stability*: a proved bound on how far neighbouring tables
can move what it computes. The function that proves a bound returns it as a frozen `Stability`,
with the `Protection` that it was proved for and the mechanisms whose noise is calibrated by it.
`Part.draw` takes the bound along with the mechanism, and refuses, as a fault of dpreg's own code, a
bound that

- was proved for other neighbours than those the call protects;
- is in the units of another mechanism;
- holds for one group of rows only, where the part is one of several that together pay for all
  groups (`Part.across`);
- may not be divided, where a person's rows are divided between releases
  (`dpreg.privacy.budget.in_parallel`).

A `Transformation` carries a bound back over a step that comes before it: neighbouring tables become
neighbouring sequences of block values, and a bound proved for the latter holds for the former.

The model is OpenDP's programming framework, in which a transformation has a stability map, a
measurement a privacy map, and the two chain only where metric and domain agree. There the maps are
functions of any input distance; here the distance of a call is fixed, so a bound is a number.

References
----------
Gaboardi, M., Hay, M. and Vadhan, S. (2020). A programming framework for OpenDP.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from dpreg.errors import ArgumentError, shown

NEIGHBORS: Final = ("replace-one", "add-remove")
"""The two neighbour relations."""


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
        if self.neighbors not in NEIGHBORS:
            raise ArgumentError(
                f"neighbors must be one of {NEIGHBORS}, got {shown(self.neighbors)}"
            )
        rows = self.contributions
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise ArgumentError("contributions must be an integer of at least 1")

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
        it: `contributions` has no effect. Proof: `dpreg.privacy.proofs`.
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


CHOICES: Final = ("permute-and-flip", "exponential", "laplace")
"""Mechanisms that draw an index by scores; see `dpreg.privacy.mechanisms.choice`."""

NOISES: Final = ("gaussian", "matrix-laplace", "laplace")
"""Mechanisms that add noise to numbers."""

Bound = TypeVar("Bound", bound="Stability")


class AccountError(RuntimeError):
    """A fault of dpreg's own code: a draw that is not what was charged. Please report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """A proved bound on how far a step's output moves between neighbours.

    Only the function that proves the bound makes one.

    Attributes
    ----------
    protection : Protection
        The neighbours that it was proved for.
    mechanisms : tuple of str
        Those whose noise is calibrated by it.
    joint : bool
        Whether it bounds the outputs of all groups of rows together, where a person's rows may be
        in any group and may move between groups.
    divisible : bool
        Whether j of a person's k rows move the output by at most j/k of the bound.
    summed : bool
        Whether limits are put on sums of all rows of a person where the protection names persons:
        then it holds however many rows a person may own (`Protection.sums`).
    """

    protection: Protection
    mechanisms: tuple[str, ...] = NOISES
    joint: bool = False
    divisible: bool = True
    summed: bool = False

    def objection(
        self, mechanism: str, protection: Protection, *, joint: bool, divided: bool
    ) -> str | None:
        """Say why a draw may not be calibrated by this bound, or return None if it may.

        A bound that was proved without `person` holds with it as well (`dpreg.sources.persons`).

        Parameters
        ----------
        mechanism : str
            What draws.
        protection : Protection
            Whom the call protects.
        joint : bool
            Whether the draw is one of several, one for each group of rows, that cost one together.
        divided : bool
            Whether the draw reads one of several groups that compose in parallel.
        """
        own, call = self.protection, protection
        if self.summed and own.person is not None:
            own, call = own.sums, call.sums
        same = (own.neighbors, own.contributions) == (call.neighbors, call.contributions)
        if not same or own.person not in (None, call.person):
            return (
                f"is drawn from with a bound for {self.protection.unit}, but the call protects "
                f"{protection.unit}"
            )
        if mechanism not in self.mechanisms:
            return (
                f"is drawn from by {mechanism}, but the bound is for {', '.join(self.mechanisms)}"
            )
        if joint and not self.joint:
            return "is drawn from with a bound for one group of rows, but pays for several"
        if divided and protection.apart > 1 and not self.divisible:
            return "is drawn from with a bound that does not hold for some of a person's rows"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRange(Stability):
    """A bound on the range of the changes of integer scores, max d - min d; for private choices.

    Attributes
    ----------
    width : int
        At least 1.
    """

    width: int
    mechanisms: tuple[str, ...] = CHOICES


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChange(Stability):
    """Bounds on the change of a vector of integers: its L1 norm and its squared L2 norm."""

    l1: int
    l2_squared: int
    mechanisms: tuple[str, ...] = ("laplace", "gaussian")


@dataclass(frozen=True, slots=True)
class Transformation:
    """A step before the bounded one: neighbours of `before` become neighbours of `after`.

    Attributes
    ----------
    before : Protection
        Which tables are neighbours.
    after : Protection
        Which of the step's outputs are: a bound on what follows is proved for these.
    joint : bool
        Whether that holds for the outputs of all groups of rows together.
    """

    before: Protection
    after: Protection
    joint: bool = False

    def then(self, bound: Bound) -> Bound:
        """Return a bound on a function of the step's outputs as one for its inputs.

        Raises
        ------
        AccountError
            If the bound was proved for other neighbours than this step's outputs are.
        """
        if bound.protection != self.after:
            raise AccountError(
                f"internal error: a bound for {bound.protection.unit} follows a step whose outputs "
                f"are neighbours by {self.after.unit}"
            )
        return replace(bound, protection=self.before, joint=self.joint, divisible=False)
