"""The looks' lines in a call's account, and the rights to draw that they give.

Tested in `tests/staged/test_looks.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.budget import ALL_ROWS, FITTING, Budget, decimal_string
from dpreg.staged.plan import TAIL, LookPlan

__all__ = ["CHOSEN", "OpenLooks", "open_looks"]

CHOSEN: Final = "look at the chosen columns"
"""The step of one more look, after a choice, as the budget table names it."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenLooks:
    """The looks' right to draw, opened in a call's account.

    Attributes
    ----------
    plan : LookPlan
    line : Line or None
        Of Gaussian looks, which compose jointly.
    parts : tuple of Part
        Of looks that each have a line, of the tail and of the squares.
    later : Line or None
        Of one more look at the chosen columns.
    """

    plan: LookPlan
    line: Line | None
    parts: tuple[Part, ...]
    later: Line | None = None

    def part(self, look: int) -> Part:
        """Take the part of one look, from 0; each once."""
        if self.line is None:
            return self.parts[look]
        return self.line.look(self.plan.strengths[look])

    def tail(self) -> Part:
        """Take the part of the last look's tail, once."""
        if self.line is not None:
            return self.line.look(self.plan.tail_strength)
        return self.parts[len(self.plan.strengths)]

    def squares(self) -> Part:
        """Take the part of the second look's sums of squares, once."""
        return self.parts[-1] if self.line is None else self.line.look(self.plan.squares_strength)

    def at_chosen(self, columns: int) -> OpenLooks:
        """Return the right to the one more look, once it is known how many columns were chosen."""
        assert self.later is not None
        plan = self.plan.at_chosen(columns)
        if plan.gaussian:
            return OpenLooks(plan, self.later, ())
        costs = (*plan.strengths, plan.tail_strength)
        return OpenLooks(plan, None, tuple(self.later.part(Budget(eps)) for eps in costs))

    def nothing_chosen(self) -> None:
        """Say that the one more look had no columns to look at: it stays charged."""
        if self.later is None:
            return
        if self.later is self.line:
            self.later.waive()
        else:
            self.later.skip()


def open_looks(plan: LookPlan, account: Account) -> OpenLooks:
    """Open the looks' lines of a call's account, which is not yet charged."""
    if plan.gaussian:
        return _gaussian(plan, account)
    own = []
    for place, (eps, share) in enumerate(zip(plan.strengths, plan.shares, strict=True), 1):
        note, cost = f"share {decimal_string(share)}", Budget(eps)
        own.append(account.line(f"look {place}", plan.mechanism, cost, rows=plan.rows, note=note))
    tail = account.line(
        "residuals beyond the clip",
        "discrete laplace",
        Budget(plan.tail_strength),
        rows=plan.rows,
        note=f"share {decimal_string(plan.share(plan.tail_strength))}",
    )
    squares = account.line(
        "spread of residuals and rows",
        "discrete laplace",
        Budget(plan.squares_strength),
        rows=plan.rows,
        note=f"share {decimal_string(plan.share(plan.squares_strength))}",
    )
    later = None
    if plan.later:
        later = account.joint(
            CHOSEN,
            plan.mechanism,
            Budget(plan.later),
            rows=FITTING if plan.split else ALL_ROWS,
            note=f"{decimal_string(TAIL)} of it for residuals beyond the clip",
            by=(plan.mechanism, "laplace"),
        )
    return OpenLooks(plan, None, (*own, tail, squares), later)


def _gaussian(plan: LookPlan, account: Account) -> OpenLooks:
    looks = len(plan.shares)
    sizes = (*plan.strengths, plan.tail_strength, plan.squares_strength)
    parts = ", ".join(decimal_string(plan.share(size)) for size in sizes)
    note = (
        f"shares {parts} of mu^2; the last two are for residuals beyond the clip, and for the "
        "spread of residuals and rows"
    )
    whole = plan.looking
    if plan.later and not plan.split:
        whole, looks = whole + plan.later, looks + 1
        note += "; the rest for a look at the chosen columns"
    line = account.joint(
        f"looks 1-{looks}", plan.mechanism, plan.cost, mu_squared=whole, rows=plan.rows, note=note
    )
    later = line if plan.later else None
    if plan.split:
        later = account.joint(
            CHOSEN,
            plan.mechanism,
            plan.cost,
            mu_squared=plan.later,
            rows=FITTING,
            note=f"{decimal_string(TAIL)} of mu^2 for residuals beyond the clip",
        )
    return OpenLooks(plan, line, (), later)
