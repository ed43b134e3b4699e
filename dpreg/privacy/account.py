"""The account of one call: what it may draw, opened line by line, charged once, drawn once.

A call makes an `Account` from its `Protection` and its whole budget. Before the charge every step
opens a *line* of the budget table and is given *parts*, the right to one draw each:

- `Account.line` gives the one part of a step that draws once;
- `Account.draws` gives K parts, for K draws that together may cost less than K times one of them;
- `Account.joint` gives a line from which parts are taken as the call goes on: of (eps, delta), or
  of mu^2 where the line is a sequence of Gaussian looks.

`Account.charge` charges the sum of all lines and seals the account. After that a part can be drawn
from once, by a mechanism of its line, on the rows of its line, with a proved bound on how far
neighbours move what is drawn from (`dpreg.privacy.protection`); or it can be divided into smaller
parts (`Part.split`, `Part.across`), each of which is drawn from once. Anything else is an
`AccountError`: a fault of dpreg's own code, raised before the noise is drawn, whose message names
the step and says nothing of the rows.

Where a released value decides how a call goes on, each way has an account of its own, opened before
the charge (`Account.either`). Charged is what all ways have in common and what the dearest of them
costs; the lines of the way that is taken (`Account.take`) become the account's, and may be drawn
from, and those of no other.

`Account.table` is the budget table of the result. It is made of the lines, and refuses to be made
while a part is left that nobody has drawn from. So what the table says
and what was drawn cannot differ.

Statement (ways)
----------------
Let the steps before the decision cost (e1, d1) together, and each way, given any values that they
released, at most (e2, d2). Then all of it costs (e1 + e2, d1 + d2): basic adaptive composition, the
second release being "the way that the first one's values lead to".

Statement (mu^2)
----------------
A line of looks of size mu^2 costs what one Gaussian release of ratio mu = sensitivity / sigma
costs, if every look has a ratio mu_j with sum mu_j^2 <= mu^2, where mu_j may depend on what earlier
looks released. The line checks the sum; the code that opens the line must prove that the cost is
right for mu with integer noise.

Parts of a call's budget: each allows one draw, and is used up by it.

`dpreg.privacy.account` opens the lines that parts are taken from, and says what the whole is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NoReturn

from dpreg.columns import LEAST_EPS
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import ALL_ROWS, NOTHING, Budget, BudgetTable, Spend
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.protection import CHOICES, NOISES, AccountError, Protection, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.composition import DrawPlan


NOT_NEEDED: Final = "not needed"
"""The note of a line that was charged although nothing had to be drawn."""

Size = Budget | Fraction
"""(eps, delta), or the mu^2 of looks."""

_DRAWN_BY: Final = {
    "private choices": CHOICES,
    "gram release": NOISES,
    "ssp release": ("gaussian",),
    "adassp release": ("gaussian",),
    "discrete laplace": ("laplace",),
    "discrete gaussian": ("gaussian",),
    "objective perturbation": ("l2-norm",),
}
"""Mechanisms that may draw from a line whose name in the table is not that of a mechanism."""


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
    state : {"handed out", "divided", "drawn from"}
        Only the first may be drawn from, or divided.
    """

    line: Line
    cost: Budget
    mu_squared: Fraction | None = None
    joint: bool = False
    state: str = "handed out"

    @property
    def protection(self) -> Protection:
        """Whom the draw protects."""
        return self.line.account.protection

    @property
    def rng(self) -> Generator | None:
        """None, the private default, or the generator of a seeded run, **not private**."""
        return self.line.account.rng

    def draw(
        self, mechanism: str, bound: Stability, rows: str = ALL_ROWS, *, fitted: Size | None = None
    ) -> Budget:
        """Use up the part and return what the draw may cost, to which its noise is calibrated.

        Parameters
        ----------
        mechanism : str
            What draws: one of the line's.
        bound : Stability
            How far what is drawn from moves between neighbours.
        rows : str
            The group of rows that is read. A line of all rows may read any group.
        fitted : Budget or Fraction, optional
            What noise was fitted to beforehand, at most the part: a Budget, or of a part of looks
            the mu^2, which has to be given.

        Raises
        ------
        AccountError
            Before the charge, a second time, by another mechanism, for other rows, with a bound
            that does not hold for this draw, or with less noise than was charged.
        """
        line, size = self.line, self.mu_squared
        if not line.account.charged:
            line.refuse("is drawn from before it is charged")
        if self.state != "handed out":
            line.refuse(f"was {self.state} before")
        if mechanism not in (line.by or _DRAWN_BY.get(line.mechanism, (line.mechanism,))):
            line.refuse(f"is charged for {line.mechanism}, not for {mechanism}")
        if line.rows not in (ALL_ROWS, rows):
            line.refuse(f"is charged for the rows of {line.rows}, not for {rows}")
        divided, who = line.rows != ALL_ROWS, line.account.protection
        objection = bound.objection(mechanism, who, joint=self.joint, divided=divided)
        if objection is not None:
            line.refuse(objection)
        if isinstance(fitted, Fraction):
            enough = size is not None and fitted <= size
        else:
            enough = size is None and (fitted is None or self.cost.covers(fitted))
        if not enough:
            line.refuse("is drawn from with less noise than was charged")
        self.state = "drawn from"
        return self.cost

    def split(self, shares: Iterable[Fraction]) -> tuple[Part, ...]:
        """Divide the part for draws that compose in sequence; shares add up to at most 1."""
        listed = tuple(Fraction(share) for share in shares)
        if not listed or min(listed) < 0 or sum(listed) > 1:
            self.line.refuse("is divided into shares that do not add up to at most 1")
        return self._divided(listed, joint=self.joint)

    def across(self, groups: int) -> tuple[Part, ...]:
        """Return one part of the whole cost for each of several groups of rows.

        For a joint release over the levels of a public column, with noise calibrated to a person
        whose rows lie in any of the groups, and may move between them: the draws of all groups are
        then one draw of this cost. The module that draws proves that of its mechanism.
        """
        return self._divided((Fraction(1),) * groups, joint=self.joint or groups > 1)

    def _divided(self, shares: Sequence[Fraction], *, joint: bool) -> tuple[Part, ...]:
        if self.state != "handed out":
            self.line.refuse(f"was {self.state} before")
        self.state = "divided"
        size = self.mu_squared
        parts = tuple(
            Part(self.line, self.cost * share, None if size is None else size * share, joint)
            for share in shares
        )
        self.line.parts.remove(self)
        self.line.parts.extend(parts)
        return parts

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: each copy could be drawn from."""
        self.line.refuse("may not be copied")


@dataclass(slots=True, eq=False, repr=False)
class Line:
    """A line of the budget table and the parts taken from it.

    Attributes
    ----------
    account : Account
    step, mechanism, rows, note : str
        As the table will say.
    cost : Budget
    by : sequence of str
        Mechanisms that may draw; where none are given, those that `mechanism` stands for.
    left : Budget or Fraction
        What has not been taken: of a line of looks a mu^2.
    parts : list of Part
    """

    account: Account
    step: str
    mechanism: str
    cost: Budget
    left: Size
    rows: str = ALL_ROWS
    by: Sequence[str] = ()
    note: str = ""
    parts: list[Part] = field(default_factory=list)

    def part(self, size: Size | None = None) -> Part:
        """Take a part of a joint line, or all that is left; its size may follow from releases.

        Parameters
        ----------
        size : Budget or Fraction, optional
            Of a line of looks a mu^2.
        """
        left, size = self.left, self.left if size is None else size
        if isinstance(size, Fraction) and isinstance(left, Fraction) and 0 < size <= left:
            self.left = left - size
            return self.hand_out(NOTHING, size)
        if isinstance(size, Budget) and isinstance(left, Budget) and left.covers(size):
            self.left = left - size
            return self.hand_out(size)
        self.refuse(f"cannot give a part of {size}")

    def release(self, step: str, mechanism: str, cost: Budget) -> Part:
        """Cut a line of its own off a joint line, with its one part.

        For steps whose division follows from released values: their sum is charged, and the table
        shows what each of them took, the new one before the other.
        """
        if isinstance(self.left, Fraction) or not self.left.covers(cost):
            self.refuse(f"has no {cost} left")
        self.left, self.cost = self.left - cost, self.cost - cost
        own = Line(self.account, step, mechanism, cost, NOTHING, self.rows)
        self.account.lines.insert(self.account.lines.index(self), own)
        return own.hand_out(cost)

    def waive(self) -> None:
        """Declare that no more looks are needed: what is left of mu^2 stays charged."""
        if not isinstance(self.left, Fraction):
            self.refuse("is not a line of looks")
        self.left = Fraction(0)

    def hand_out(self, cost: Budget, mu_squared: Fraction | None = None) -> Part:
        """Make a part; for the account's own use."""
        part = Part(self, cost, mu_squared)
        self.parts.append(part)
        return part

    @property
    def spend(self) -> Spend:
        """The line as the table tells it."""
        cost = self.cost
        return Spend(self.step, self.mechanism, cost.eps, cost.delta, self.note, self.rows)

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: each copy could give what is left once more."""
        self.refuse("may not be copied")

    def refuse(self, why: str) -> NoReturn:
        """Raise an AccountError that names the step."""
        raise AccountError(f"internal error: the budget of the step {self.step!r} {why}")


@dataclass(slots=True, eq=False, repr=False)
class Account:
    """What one call may draw, and what it costs.

    Parameters
    ----------
    protection : Protection
    budget : Budget
        The most that the whole call may cost.
    rng : numpy Generator, optional
        For seeded runs, which are **not private**; they open and charge the same lines.

    Attributes
    ----------
    charged : bool
        Whether the account is charged, and so sealed; nothing can be drawn before.
    lines : list of Line
        In the order of the table.
    """

    protection: Protection
    budget: Budget
    rng: Generator | None = None
    charged: bool = field(default=False, init=False)
    lines: list[Line] = field(default_factory=list, init=False)
    _ways: tuple[Account, ...] = field(default=(), init=False)
    _other: Line | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)

    def line(self, step: str, mechanism: str, cost: Budget, *, rows: str = ALL_ROWS) -> Part:
        """Open a line and return its one part.

        Parameters
        ----------
        step, mechanism : str
            As the budget table names them.
        cost : Budget
        rows : str
            "all", or the group of rows that the step reads ("half 1").
        """
        return self.joint(step, mechanism, cost, rows=rows).part()

    def draws(self, step: str, plan: DrawPlan, *, rows: str = ALL_ROWS) -> tuple[Part, ...]:
        """Open a line of K draws that compose exactly, and return a part for each draw."""
        line = self.joint(step, plan.mechanism, plan.cost, rows=rows)
        line.note = plan.rule if plan.draws > 1 else ""
        line.left = NOTHING
        return tuple(line.hand_out(Budget(plan.eps_each)) for _ in range(plan.draws))

    def joint(
        self,
        step: str,
        mechanism: str,
        cost: Budget,
        *,
        mu_squared: Fraction | None = None,
        rows: str = ALL_ROWS,
        by: Sequence[str] = (),
    ) -> Line:
        """Open a line whose parts are taken as the call goes on.

        Parameters
        ----------
        step, mechanism, cost, rows
            As for `line`.
        mu_squared : Fraction, optional
            Makes it a line of adaptive Gaussian looks of this size together. Without it parts are
            of (eps, delta), and add up.
        by : sequence of str, optional
            The mechanisms that may draw; by default those that `mechanism` stands for.

        Raises
        ------
        ArgumentError
            Where the step would get less eps than `dpreg.columns` asks for.
        """
        if self.charged or self._closed:
            raise AccountError(f"internal error: the step {step!r} is opened after the charge")
        if cost.eps < LEAST_EPS:
            raise ArgumentError(
                f"eps is too small: of it the step {step!r} gets {float(cost.eps):.3g}, and each "
                "needs 1e-6 at least. Raise eps, or that step's share."
            )
        made = Line(
            self, step, mechanism, cost, cost if mu_squared is None else mu_squared, rows, by
        )
        self.lines.append(made)
        return made

    def charge(self, ledger: Ledger | None, label: str) -> None:
        """Charge the sum of all lines to a ledger, if there is one, and seal the account.

        The ledger records whom the charge protects.

        Raises
        ------
        BudgetError
            If the ledger has no room for it; nothing was read or drawn.
        """
        if self.charged or self._closed:
            raise AccountError("internal error: a call is charged once")
        if not self.budget.covers(self.total):
            raise AccountError(
                f"internal error: the steps cost {self.total} together, and the call {self.budget}"
            )
        if ledger is not None:
            if not isinstance(ledger, Ledger):
                raise ArgumentError(
                    f"budget must be a Ledger, such as Ledger(1); got {type(ledger).__name__}."
                )
            ledger.charge(self.total, label, self.protection.unit)
        self.charged = True

    @property
    def total(self) -> Budget:
        """What all lines cost together."""
        return BudgetTable(tuple(line.spend for line in self.lines), self.protection.apart).total

    def table(self) -> BudgetTable:
        """Return the budget table of the result, once all is drawn."""
        if not self.charged:
            raise AccountError("internal error: the budget table is asked for before the charge")
        if self._ways:
            raise AccountError("internal error: the budget table is asked for before the way")
        lines = [line for line in self.lines if line.cost != NOTHING or line.parts]
        for line in lines:
            drawn = line.parts and all(part.state == "drawn from" for part in line.parts)
            if not drawn and line is not self._other:
                line.refuse("was charged but not drawn from")
            if isinstance(line.left, Fraction) and line.left:
                line.refuse("holds more mu^2 than its looks took")
        return BudgetTable(tuple(line.spend for line in lines), self.protection.apart)

    def either(self, *ways: Account) -> None:
        """Reserve what the dearest of several ways costs: a released value will decide which.

        Each is an account for the same protection, with its lines opened and not charged. What is
        reserved is a line, of which the way that is taken will leave what it does not need.
        """
        if self.charged or self._ways or any(way.charged or way._closed for way in ways):
            raise AccountError("internal error: ways are opened once, before the charge")
        if any(way.protection != self.protection or way._ways for way in ways):
            raise AccountError("internal error: a way protects as the whole does")
        costs = [way.total for way in ways]
        eps = max(cost.eps for cost in costs)
        dearest = Budget(eps, max(cost.delta for cost in costs))
        self._other = Line(self, "the other way", "none", dearest, NOTHING, note=NOT_NEEDED)
        self._ways = ways
        self.lines.append(self._other)
        for way in ways:
            way._closed = True

    def take(self, way: Account) -> None:
        """Make the lines of one of the ways the account's own, once the whole is charged."""
        other = self._other
        if not self.charged or other is None or not any(way is one for one in self._ways):
            raise AccountError("internal error: one of the ways is taken, once, after the charge")
        other.cost, self._ways = other.cost - way.total, ()
        for line in way.lines:
            line.account = self
        place = self.lines.index(other)
        self.lines[place:place] = way.lines

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: the same budget would be drawn from twice."""
        raise AccountError("internal error: a call's account may not be copied")
