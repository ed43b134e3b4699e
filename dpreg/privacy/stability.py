"""How far the output of a step moves between neighbours: a value that every draw must show.

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

from dataclasses import dataclass, replace
from typing import Final, TypeVar

from dpreg.errors import ArgumentError
from dpreg.privacy.protection import Protection

__all__ = [
    "CHOICES",
    "NOISES",
    "AccountError",
    "ScoreRange",
    "Stability",
    "Transformation",
    "VectorChange",
]

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
        if not self._holds_for(protection):
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
        apart = protection.contributions > 1 and protection.person is None
        if divided and apart and not self.divisible:
            return "is drawn from with a bound that does not hold for some of a person's rows"
        return None

    def _holds_for(self, protection: Protection) -> bool:
        if self.summed and self.protection.person is not None:
            return self.protection.sums.implies(protection.sums)
        return self.protection.implies(protection)


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

    def __post_init__(self) -> None:
        """Check the width."""
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            raise ArgumentError("the range of scores must be an integer of at least 1")


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
