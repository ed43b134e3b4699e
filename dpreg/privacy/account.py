"""The account of one call: what it may draw, opened line by line, charged once, drawn once.

A call makes an `Account` from its `Protection` and its whole budget. Before the charge every step
opens a *line* of the budget table and is given *parts*, the right to one draw each:

- `Account.line` gives the one part of a step that draws once;
- `Account.draws` gives K parts, for K draws that together may cost less than K times one of them;
- `Account.joint` gives a line from which parts are taken as the call goes on: of (eps, delta), or
  of mu^2 where the line is a sequence of Gaussian looks.

`Account.charge` charges the sum of all lines and seals the account. After that a part can be drawn
from once, by a mechanism of its line, on the rows of its line, with a proved bound on how far
neighbours move what is drawn from (`dpreg.privacy.stability`); or it can be divided into smaller
parts (`Part.split`, `Part.across`), each of which is drawn from once. Anything else is an
`AccountError`: a fault of dpreg's own code, raised before the noise is drawn, whose message names
the step and says nothing of the rows.

Where a released value decides how a call goes on, each way has an account of its own, opened before
the charge (`Account.either`). Charged is what all ways have in common and what the dearest of them
costs; the way that is taken (`Account.take`) may then draw, and no other.

`Account.table` is the budget table of the result. It is made of the lines, and refuses to be made
while a part is left that nobody has drawn from and nobody has declared idle. So what the table says
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
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn

from dpreg.columns import LEAST_EPS
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import ALL_ROWS, Budget, BudgetTable, Spend
from dpreg.privacy.ledger import charge
from dpreg.privacy.parts import NOT_NEEDED, Line, Part, Seal
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.composition import DrawPlan
    from dpreg.privacy.ledger import Ledger

__all__ = ["NOT_NEEDED", "Account", "AccountError", "Line", "Part"]


class Account:
    """What one call may draw, and what it costs.

    Parameters
    ----------
    protection : Protection
    budget : Budget
        The most that the whole call may cost.
    rng : numpy Generator, optional
        For seeded runs, which are **not private**; they open and charge the same lines.
    """

    __slots__ = ("_closed", "_lines", "_seal", "_taken", "_ways", "budget")

    def __init__(
        self, protection: Protection, budget: Budget, rng: Generator | None = None
    ) -> None:
        self.budget = budget
        self._seal = Seal(protection, rng)
        self._lines: list[Line] = []
        self._ways: tuple[Account, ...] = ()
        self._taken: Account | None = None
        self._closed = False

    @property
    def protection(self) -> Protection:
        """Whom the call protects."""
        return self._seal.protection

    @property
    def rng(self) -> Generator | None:
        """None, the private default, or the generator of a seeded run."""
        return self._seal.rng

    @property
    def charged(self) -> bool:
        """Whether the account is charged, and so sealed."""
        return self._seal.charged

    def line(
        self,
        step: str,
        mechanism: str,
        cost: Budget,
        *,
        rows: str = ALL_ROWS,
        note: str = "",
        by: Sequence[str] | None = None,
    ) -> Part:
        """Open a line and return its one part.

        Parameters
        ----------
        step, mechanism : str
            As the budget table names them.
        cost : Budget
        rows : str
            "all", or the group of rows that the step reads ("half 1").
        note : str
        by : sequence of str, optional
            The mechanisms that may draw; by default those that `mechanism` stands for.
        """
        return self.joint(step, mechanism, cost, rows=rows, note=note, by=by).hand_out(cost)

    def draws(self, step: str, plan: DrawPlan, *, rows: str = ALL_ROWS) -> tuple[Part, ...]:
        """Open a line of K draws that compose exactly, and return a part for each draw."""
        note = plan.rule if plan.draws > 1 else ""
        line = self.joint(step, plan.mechanism, plan.cost, rows=rows, note=note)
        return tuple(line.hand_out(Budget(plan.eps_each)) for _ in range(plan.draws))

    def joint(
        self,
        step: str,
        mechanism: str,
        cost: Budget,
        *,
        mu_squared: Fraction | None = None,
        rows: str = ALL_ROWS,
        note: str = "",
        by: Sequence[str] | None = None,
    ) -> Line:
        """Open a line whose parts are taken as the call goes on.

        Parameters
        ----------
        step, mechanism, cost, rows, note, by
            As for `line`.
        mu_squared : Fraction, optional
            Makes it a line of adaptive Gaussian looks of this size together. Without it parts are
            of (eps, delta), and add up.

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
        made = Line(self._seal, step, mechanism, cost, rows, note, by, mu_squared)
        self._lines.append(made)
        return made

    def charge(self, ledger: Ledger | None, label: str) -> None:
        """Charge the sum of all lines to a ledger, if there is one, and seal the account.

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
        protection = self.protection
        charge(ledger, self.total, label, protection.unit)
        self._seal.charged = True
        for way in self._ways:
            way._closed = True

    @property
    def total(self) -> Budget:
        """What all lines cost together."""
        spends = (
            Spend(line.step, line.mechanism, line.cost.eps, line.cost.delta, rows=line.rows)
            for line in self._lines
        )
        own = BudgetTable(tuple(spends), self.protection.apart).total
        return own + self._dearest

    @property
    def _dearest(self) -> Budget:
        """What every way's cost is covered by."""
        costs = [way.total for way in self._ways]
        eps = max((cost.eps for cost in costs), default=Fraction(0))
        return Budget(eps, max((cost.delta for cost in costs), default=Fraction(0)))

    def table(self) -> BudgetTable:
        """Return the budget table of the result, once all is drawn."""
        if not self.charged:
            raise AccountError("internal error: the budget table is asked for before the charge")
        emptied = Budget(Fraction(0))
        spends = [line.spend() for line in self._lines if line.cost != emptied or line.parts]
        if self._ways:
            if self._taken is None:
                raise AccountError("internal error: the budget table is asked for before the way")
            spends += self._taken.table().spends
            rest = self._dearest - self._taken.total
            if rest != emptied:
                spends.append(Spend("the other way", "none", rest.eps, rest.delta, NOT_NEEDED))
        return BudgetTable(tuple(spends), self.protection.apart)

    def either(self, *ways: Account) -> None:
        """Reserve what the dearest of several ways costs: a released value will decide which.

        Each is an account for the same protection, with its lines opened and not charged.
        """
        if self.charged or self._ways or any(way.charged or way._closed for way in ways):
            raise AccountError("internal error: ways are opened once, before the charge")
        if any(way.protection != self.protection or way._ways for way in ways):
            raise AccountError("internal error: a way protects as the whole does")
        self._ways = ways

    def take(self, way: Account) -> None:
        """Let one of the ways draw, once the whole is charged."""
        if not self.charged or self._taken is not None or not any(way is one for one in self._ways):
            raise AccountError("internal error: one of the ways is taken, once, after the charge")
        self._taken = way
        way._seal.charged = True

    def release(
        self,
        line: Line,
        step: str,
        mechanism: str,
        cost: Budget,
        *,
        by: Sequence[str] | None = None,
    ) -> Part:
        """Cut a line of its own off a joint line, with its one part.

        For steps whose division follows from released values: their sum is charged, and the table
        shows what each of them took, the new one before the other.
        """
        line.cut(cost)
        own = Line(self._seal, step, mechanism, cost, line.rows, by=by)
        self._lines.insert(self._lines.index(line), own)
        return own.hand_out(cost)

    def __reduce__(self) -> NoReturn:
        """Reject pickling and copying: the same budget would be drawn from twice."""
        raise AccountError("internal error: a call's account may not be copied")
