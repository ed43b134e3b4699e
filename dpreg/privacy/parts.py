"""Parts of a call's budget: each allows one draw, and is used up by it.

`dpreg.privacy.account` opens the lines that parts are taken from, and says what the whole is for.

Tested in `tests/privacy/test_account.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from dpreg.privacy.budget import ALL_ROWS, Budget, Spend, decimal_string
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import CHOICES, NOISES, AccountError, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["NOT_NEEDED", "Line", "Part", "Seal"]

NOT_NEEDED: Final = "not needed"
"""The note of a line that was charged although nothing had to be drawn."""

_DRAWN_BY: Final = {
    "private choices": CHOICES,
    "gram release": NOISES,
    "ssp release": ("gaussian",),
    "adassp release": ("gaussian",),
    "discrete laplace": ("laplace",),
    "discrete gaussian": ("gaussian",),
}
"""Mechanisms that may draw from a line whose name in the table is not that of a mechanism."""


@dataclass(slots=True, eq=False)
class Seal:
    """What the lines of one call share.

    Attributes
    ----------
    protection : Protection
    rng : numpy Generator or None
    charged : bool
        False until the call's budget is charged; nothing can be drawn before.
    """

    protection: Protection
    rng: Generator | None
    charged: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Part:
    """The right to one draw.

    Attributes
    ----------
    line : Line
    cost : Budget
        What the draw may cost; for a part of looks, nothing of its own.
    mu_squared : Fraction or None
        The size of a part of Gaussian looks.
    joint : bool
        Whether it is one of several parts, one for each group of rows, of one draw over them all.
    """

    line: Line
    cost: Budget
    mu_squared: Fraction | None = None
    joint: bool = False
    _state: str = "handed out"

    @property
    def step(self) -> str:
        """The step that draws."""
        return self.line.step

    @property
    def rows(self) -> str:
        """The rows that may be read for it."""
        return self.line.rows

    @property
    def protection(self) -> Protection:
        """Whom the draw protects."""
        return self.line.seal.protection

    @property
    def rng(self) -> Generator | None:
        """None, the private default, or the generator of a seeded run, **not private**."""
        return self.line.seal.rng

    def draw(self, mechanism: str, bound: Stability, rows: str = ALL_ROWS) -> Budget:
        """Use up the part and return what the draw may cost, to which its noise is calibrated.

        Parameters
        ----------
        mechanism : str
            What draws: one of the line's.
        bound : Stability
            How far what is drawn from moves between neighbours.
        rows : str
            The group of rows that is read. A line of all rows may read any group.

        Raises
        ------
        AccountError
            Before the charge, a second time, by another mechanism, for other rows, or with a bound
            that does not hold for this draw.
        """
        if self.mu_squared is not None:
            self._refuse("is a part of looks: ask for its mu^2")
        self._use(mechanism, bound, rows)
        return self.cost

    def look(self, mechanism: str, bound: Stability, rows: str = ALL_ROWS) -> Fraction:
        """Use up a part of looks and return its mu^2; otherwise like `draw`."""
        if self.mu_squared is None:
            self._refuse("is not a part of looks: it has no mu^2")
        self._use(mechanism, bound, rows)
        return self.mu_squared

    def split(self, shares: Iterable[Fraction]) -> tuple[Part, ...]:
        """Divide the part for draws that compose in sequence; shares add up to at most 1."""
        listed = tuple(Fraction(share) for share in shares)
        if not listed or min(listed) < 0 or sum(listed) > 1:
            self._refuse("is divided into shares that do not add up to at most 1")
        return self._divided(listed, joint=self.joint)

    def across(self, groups: int) -> tuple[Part, ...]:
        """Return one part of the whole cost for each of several groups of rows.

        For a joint release over the levels of a public column, with noise calibrated to a person
        whose rows lie in any of the groups, and may move between them: the draws of all groups are
        then one draw of this cost. The module that draws proves that of its mechanism.
        """
        return self._divided((Fraction(1),) * groups, joint=self.joint or groups > 1)

    def _divided(self, shares: Sequence[Fraction], *, joint: bool) -> tuple[Part, ...]:
        if self._state != "handed out":
            self._refuse(f"was {self._state} before")
        self._state = "divided"
        size = self.mu_squared
        parts = tuple(
            Part(self.line, self.cost * share, None if size is None else size * share, joint)
            for share in shares
        )
        self.line.replace(self, parts)
        return parts

    def _use(self, mechanism: str, bound: Stability, rows: str) -> None:
        line = self.line
        if not line.seal.charged:
            self._refuse("is drawn from before it is charged")
        if self._state != "handed out":
            self._refuse(f"was {self._state} before")
        if mechanism not in line.drawn_by:
            self._refuse(f"is charged for {line.mechanism}, not for {mechanism}")
        if line.rows not in (ALL_ROWS, rows):
            self._refuse(f"is charged for the rows of {line.rows}, not for {rows}")
        divided = line.rows != ALL_ROWS
        objection = bound.objection(mechanism, self.protection, joint=self.joint, divided=divided)
        if objection is not None:
            self._refuse(objection)
        self._state = "drawn from"

    @property
    def drawn(self) -> bool:
        """Whether it was used up."""
        return self._state == "drawn from"

    def _refuse(self, why: str) -> NoReturn:
        raise AccountError(f"internal error: the budget of the step {self.step!r} {why}")

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: each copy could be drawn from."""
        self._refuse("may not be copied")

    def __repr__(self) -> str:
        """Show step, size and state: public facts."""
        size = self.cost if self.mu_squared is None else f"mu^2={decimal_string(self.mu_squared)}"
        return f"<Part of {self.step!r}: {size}, {self._state}>"


@dataclass(slots=True, eq=False, repr=False)
class Line:
    """A line of the budget table and the parts taken from it.

    Attributes
    ----------
    seal : Seal
    step, mechanism, rows, note : str
        As the table will say.
    cost : Budget
    by : sequence of str
        Mechanisms that may draw; by default those that `mechanism` stands for.
    mu_squared_left : Fraction or None
        What of a line of looks has not been taken.
    left : Budget
        The same of another joint line.
    parts : list of Part
    idle : bool
    """

    seal: Seal
    step: str
    mechanism: str
    cost: Budget
    rows: str = ALL_ROWS
    note: str = ""
    by: Sequence[str] | None = None
    mu_squared_left: Fraction | None = None
    left: Budget = field(init=False)
    parts: list[Part] = field(default_factory=list)
    idle: bool = False

    def __post_init__(self) -> None:
        """Nothing has been taken yet."""
        self.left = self.cost

    @property
    def drawn_by(self) -> Sequence[str]:
        """The mechanisms that may draw."""
        return self.by or _DRAWN_BY.get(self.mechanism, (self.mechanism,))

    def part(self, cost: Budget) -> Part:
        """Take a part of (eps, delta) from a joint line, whenever its size is known."""
        if self.mu_squared_left is not None or not self.left.covers(cost):
            self._refuse(f"cannot give a part of {cost}")
        self.left = self.left - cost
        return self.hand_out(cost)

    def rest(self) -> Part:
        """Take all that is left of a joint line."""
        if self.mu_squared_left is not None:
            return self.look(self.mu_squared_left)
        return self.part(self.left)

    def look(self, mu_squared: Fraction) -> Part:
        """Take a part of mu^2 from a line of looks; its size may follow from released values."""
        left = self.mu_squared_left
        if left is None or not 0 < mu_squared <= left:
            self._refuse("cannot give a look of that size")
        self.mu_squared_left = left - mu_squared
        return self.hand_out(Budget(Fraction(0)), mu_squared)

    def cut(self, cost: Budget) -> None:
        """Move some of what has not been taken to a line of its own."""
        if self.mu_squared_left is not None or not self.left.covers(cost):
            self._refuse(f"has no {cost} left")
        self.left, self.cost = self.left - cost, self.cost - cost

    def skip(self) -> None:
        """Declare that nothing had to be drawn: the line stays charged, and the table says so."""
        if any(part.drawn for part in self.parts):
            self._refuse("is declared idle, but was drawn from")
        self.idle = True

    def waive(self) -> None:
        """Declare that no more looks are needed: what is left of mu^2 stays charged."""
        if self.mu_squared_left is None:
            self._refuse("is not a line of looks")
        self.mu_squared_left = Fraction(0)

    def hand_out(self, cost: Budget, mu_squared: Fraction | None = None) -> Part:
        """Make a part; for the account's own use."""
        if self.idle:
            self._refuse("is not needed, so it has no part to give")
        part = Part(self, cost, mu_squared)
        self.parts.append(part)
        return part

    def replace(self, part: Part, parts: Sequence[Part]) -> None:
        """Put smaller parts in a part's place; for the part's own use."""
        self.parts = [one for one in self.parts if one is not part] + list(parts)

    def spend(self) -> Spend:
        """Return the line for the table; AccountError where what was charged was not drawn from."""
        note = self.note
        if self.idle:
            note = f"{note}; {NOT_NEEDED}" if note else NOT_NEEDED
        elif not self.parts or not all(part.drawn for part in self.parts):
            self._refuse("was charged but not drawn from")
        elif self.mu_squared_left:
            self._refuse("holds more mu^2 than its looks took")
        return Spend(self.step, self.mechanism, self.cost.eps, self.cost.delta, note, self.rows)

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: each copy could give what is left once more."""
        self._refuse("may not be copied")

    def _refuse(self, why: str) -> NoReturn:
        raise AccountError(f"internal error: the budget of the step {self.step!r} {why}")
