"""Which method a call would take at a planned size, and the looks that it would make.

The rules are those of `dpreg.dp_select` and `dpreg.dp_ols`: public numbers decide, before a row is
read.

Tested in `tests/planning/test_adaptive_plan.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Generic, TypeVar

from dpreg.looks.plan import LookPlan, fresh_share, plan_looks
from dpreg.planning.arguments import rows_of_table, sized
from dpreg.planning.assumed import Assumed
from dpreg.planning.facts import Facts
from dpreg.planning.sizes import Stated
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.results.summary import Printed

__all__ = ["Asked", "Planned", "PlannedCall"]

_LARGEST_EPS: Final = 1e6
_C = TypeVar("_C", bound="PlannedCall")


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides on looks, apart from n and eps.

    Attributes
    ----------
    columns : int
        p, stored columns without the constant.
    exclusive : tuple of tuples of int
        z indices of the 0/1 columns of each factor.
    delta : Fraction
    protection : Protection
    fit : str or None
        Of a selection; None for a regression too.
    """

    columns: int
    exclusive: tuple[Sequence[int], ...]
    delta: Fraction
    protection: Protection
    fit: str | None = None

    def looks(self, eps: float) -> LookPlan:
        """Return the looks of a choice that costs eps."""
        return plan_looks(
            self.columns,
            Budget(Fraction(eps), self.delta),
            self.protection,
            exclusive=self.exclusive,
            chooses=True,
            later=fresh_share(self.delta) if self.fit == "fresh" else Fraction(0),
        )

    def rows_needed(self, eps: float) -> float:
        """Return the least n at which "auto" looks at the rows."""
        return self.looks(eps).rows_needed

    def eps_needed(self, n: float) -> float:
        """Return the least eps at which "auto" looks at n rows, to a part in a thousand."""
        eps = 1.0
        for _ in range(40):  # the need falls about like 1/eps
            ratio = self.rows_needed(eps) / n
            if abs(ratio - 1) < 5e-4 or eps * ratio > _LARGEST_EPS:
                break
            eps *= ratio
        return eps * max(ratio, 1.0) if math.isfinite(ratio) else _LARGEST_EPS


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """What a plan of a linear model asks about, in stored units.

    Attributes
    ----------
    facts : Facts
        What the caller said; n and eps are settled here.
    stated : Stated
    assumed : Assumed
    asked : Asked
    n : int
    eps : float
    method : str
    """

    facts: Facts
    stated: Stated
    assumed: Assumed
    asked: Asked
    n: int
    eps: float
    method: str

    @property
    def adaptive(self) -> bool:
        """Whether the call looks at the rows several times: the rule of the call itself."""
        if self.method != "auto":
            return self.method == "adaptive"
        return not self.facts.papers and self.n >= self.asked.rows_needed(self.eps)


class Planned(Printed, Generic[_C]):
    """What plans of calls that may look at the rows have in common."""

    call: _C

    @property
    def n(self) -> int:
        """Rows of the table."""
        return self.call.n

    @property
    def eps(self) -> float:
        """What the whole call would cost."""
        return self.call.eps

    @property
    def rows_needed(self) -> int:
        """The rows from which on ``method="auto"`` looks at the rows, at this eps."""
        return math.ceil(self.call.asked.rows_needed(self.eps))

    @property
    def eps_needed(self) -> float:
        """The eps from which on ``method="auto"`` looks at the rows, with these rows."""
        return self.call.asked.eps_needed(self.n)

    def _moved(self, n: int | None, eps: float | None) -> _C:
        """Return the call at another n or eps."""
        n = self.n if n is None else rows_of_table(n)
        return replace(self.call, n=n, eps=self.eps if eps is None else sized(eps, "eps"))
