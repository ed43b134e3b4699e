"""Privacy budgets as exact values: what was spent, on which step, and how spends add up.

Every number is the exact `fractions.Fraction` of the decimal that the caller typed: fifty spends of
0.1 make 5. A number without a finite decimal, such as one third, is shown as a ratio: "1/3".
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.errors import ArgumentError, BudgetError, DpregError, shown

if TYPE_CHECKING:
    import pandas as pd


ALL_ROWS: Final = "all"
"""The label of a spend that reads every row."""
SELECTING: Final = "half 1"
FITTING: Final = "half 2"
"""The labels of spends that read one of the halves of ``fit="split"``."""

_ARITHMETIC: Final = Decimal("1e-14")  # what sums of some decimals are off by, relatively
_LARGEST_EXPONENT: Final = 400  # beyond any float; keeps "1e999999999" from filling the memory


def exact(value: object, name: str, error: type[DpregError] = ArgumentError) -> Fraction:
    """Return the number that the caller typed, exactly.

    Parameters
    ----------
    value : int, float, str, Decimal or Fraction
        A float stands for the shortest decimal that names it: 0.1 is one tenth. A string may be a
        decimal or a ratio ("1/3").
    name : str
        The argument's name, for the message of an error.
    error : type, default ArgumentError
        The exception class to raise.

    Returns
    -------
    Fraction

    Raises
    ------
    ArgumentError
        For a bool, NaN, an infinity, or anything that is not a number.
    """
    if isinstance(value, Fraction) and type(value.numerator) is type(value.denominator) is int:
        return value
    if isinstance(value, bool | np.bool_):
        raise error(f"{name} must be a number, not {shown(value)}")
    if isinstance(value, numbers.Rational):  # of NumPy's integers too, which overflow
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, float | np.floating | Decimal | str):
        raise error(f"{name} must be a number, not {type(value).__name__}")
    top, slash, bottom = str(value).partition("/")
    below = _finite(bottom, name, error, value) if slash else Fraction(1)
    if below == 0:
        raise error(f"{name} divides by zero")
    return _finite(top, name, error, value) / below


def settled(value: object) -> object:
    """Return the number that a float of arithmetic stands for: 12 digits of it.

    A float of at most 15 digits was typed and stays as it is, as does all that is no float. What
    sums of decimals miss by the last bits is the decimal: 0.1 + 0.2 is 0.3. Any other is cut, never
    raised: three times 2/3 fit into 2.

    Examples
    --------
    >>> settled(0.3), settled(0.1 + 0.2), settled(2 / 3), settled("0.30000000000000004")
    (0.3, Decimal('0.3'), Decimal('0.666666666666'), '0.30000000000000004')
    """
    if not isinstance(value, float | np.floating) or not np.isfinite(value):
        return value
    number = Decimal(str(value))
    if len(number.normalize().as_tuple().digits) <= 15:
        return value
    near = Decimal(f"{value:.12g}")
    if abs(near - number) > abs(number) * _ARITHMETIC:
        near = Context(prec=12, rounding=ROUND_DOWN).plus(number)
    return near


def _finite(text: str, name: str, error: type[DpregError], given: object) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:  # NumPy's text may be a cell
        raise error(f"{name} must be a number, got {shown(given)}") from None
    if not number.is_finite():
        raise error(f"{name} must be finite, got {str(number).lower()}")
    if number and abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise error(f"{name} must lie between 1e-{_LARGEST_EXPONENT} and 1e{_LARGEST_EXPONENT}")
    return Fraction(number)


def _told(value: object, number: Fraction) -> str:
    """Tell a number in a message; NumPy's, which may be a cell, by its type."""
    return shown(value) if isinstance(value, np.generic) else decimal_string(number)


def decimal_string(value: Fraction) -> str:
    """Write an exact number exactly: as a finite decimal if it has one, else as a ratio.

    Examples
    --------
    >>> decimal_string(Fraction(1, 8)), decimal_string(Fraction(1, 3))
    ('0.125', '1/3')
    """
    top, bottom = value.numerator, value.denominator
    if bottom == 1:
        return str(top)
    places = bottom.bit_length()  # no divisor of a power of ten needs more
    if 10**places % bottom:
        return f"{top}/{bottom}"
    digits = top * 10**places // bottom
    while digits % 10 == 0:
        digits, places = digits // 10, places - 1
    return str(Decimal(f"{digits}e-{places}")).lower()


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount of privacy, (eps, delta), exact and immutable.

    Parameters
    ----------
    eps : int, float, str, Decimal or Fraction
        At least 0; the decimal typed is taken exactly.
    delta : int, float, str, Decimal or Fraction, default 0
        In [0, 1).

    Raises
    ------
    BudgetError
        For NaN, an infinity, a bool, a negative number, or a delta of 1 or more.

    Notes
    -----
    `a + b` composes in sequence (basic composition, adaptive; Dwork et al. 2006), `a * 3` is three
    times the same, `covers` compares both parts.
    """

    eps: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Take both numbers exactly and reject invalid budgets."""
        eps = exact(settled(self.eps), "eps", BudgetError)
        delta = exact(settled(self.delta), "delta", BudgetError)
        if eps.numerator < 0:
            raise BudgetError(f"eps must be at least 0, got {_told(self.eps, eps)}")
        if not 0 <= delta.numerator < delta.denominator:
            raise BudgetError(f"delta must lie in [0, 1), got {_told(self.delta, delta)}")
        object.__setattr__(self, "eps", eps)
        object.__setattr__(self, "delta", delta)

    def __add__(self, other: Budget) -> Budget:
        """Compose in sequence."""
        if not isinstance(other, Budget):
            return NotImplemented
        return Budget(self.eps + other.eps, self.delta + other.delta)

    def __sub__(self, other: Budget) -> Budget:
        """Return what is left, or raise BudgetError where `other` does not fit."""
        if not isinstance(other, Budget):
            return NotImplemented
        if not self.covers(other):
            raise BudgetError(f"{other} is more than the {self} that is left")
        return Budget(self.eps - other.eps, self.delta - other.delta)

    def __mul__(self, times: object) -> Budget:
        """Compose that many equal budgets in sequence, or take a share of one."""
        factor = exact(times, "the factor of a budget", BudgetError)
        return Budget(self.eps * factor, self.delta * factor)

    __rmul__ = __mul__

    def covers(self, other: Budget) -> bool:
        """Tell whether both parts of `other` fit into this budget."""
        return other.eps <= self.eps and other.delta <= self.delta

    def as_decimal(self) -> tuple[str, str]:
        """Return (eps, delta) as exact strings; a ratio where no finite decimal exists."""
        return decimal_string(self.eps), decimal_string(self.delta)

    def to_dict(self) -> dict[str, str]:
        """Return a JSON-ready mapping from which `from_dict` makes an equal budget."""
        eps, delta = self.as_decimal()
        return {"eps": eps, "delta": delta}

    @classmethod
    def from_dict(cls, values: dict[str, str]) -> Budget:
        """Read what `to_dict` wrote, exactly."""
        eps, delta = (exact(values[part], part, BudgetError) for part in ("eps", "delta"))
        return cls(eps, delta)

    def __str__(self) -> str:
        """Write it for a sentence: eps=1, delta=1e-6."""
        eps = f"eps={decimal_string(self.eps)}"
        return f"{eps}, delta={decimal_string(self.delta)}" if self.delta.numerator else eps

    def __repr__(self) -> str:
        """Write an expression that makes an equal budget."""
        eps, delta = self.as_decimal()
        return f"Budget({eps!r}, {delta!r})"


NOTHING: Final = Budget(Fraction(0))
"""What costs no privacy."""


def together(budgets: Iterable[Budget]) -> Budget:
    """Compose releases that read the same rows: epsilons add, deltas add.

    Basic adaptive composition (Dwork, McSherry, Nissim and Smith 2006; Dwork and Lei 2009). The
    sum is exact. Deltas that add up to 1 or more raise BudgetError: they would promise nothing.
    """
    return sum(budgets, NOTHING)


def in_parallel(budgets: Iterable[Budget], contributions: int) -> Budget:
    """Compose releases that read disjoint groups of rows: the largest eps and the largest delta.

    Statement
    ---------
    Secure coins, independent of the rows' values, send each row to one group; release g reads only
    group g and costs at most (j eps_g / k, delta_g) when j of the k rows of a person lie in group
    g, j = 1 .. k. Then all releases together cost (max eps_g, max delta_g) under both neighbour
    relations if k = 1 or at most one delta_g > 0, else (max eps_g, sum delta_g).

    Proof
    -----
    Rows keep their coins (`dpreg.privacy.mechanisms.coins`): neighbours may be taken to see equal
    coins on the common rows, though under add-remove these have other places. Fix the coins. The
    person's
    rows fall into the groups by counts j_g with sum k; a group with j_g = 0 costs nothing. The
    rest compose in sequence: sum_g j_g eps_g / k <= max eps_g, and the deltas of the groups that
    hold a row add up (one group only, if k = 1). Averaging over the coins keeps (eps, delta).

    The condition holds for dpreg's mechanisms. Noise calibrated to k times the change by one row
    costs j eps / k for j rows when it is pure (`score_range` is linear in k for that reason). For
    draws composed with a delta, `dpreg.privacy.composition` checks every j when it divides eps.

    Discrete Gaussian noise, on m cells: write r = sensitivity / sigma for k rows and a = j / k, so
    that j rows have the ratio a r. Let d(e, r) = Phi(-e/r + r/2) - exp(e) Phi(-e/r - r/2), the
    delta of the continuous law, which falls in e. `dpreg.privacy.gaussian` proves the discrete law
    (a eps, delta)-DP at the ratio a r if d(a eps - 2 m h, a r) <= delta0, h being its eta at r, no
    less than that at a r. The scale is calibrated as for k m cells, so d(e0, r) <= delta0 holds for
    e0 = eps - 2 k m h. As a >= 1/k, a eps - 2 m h >= a e0; and d(a e0, a r) rises with a in (0, 1],
    for its derivative is exp(a e0) (r phi(x) - e0 Phi(-x)) at x = e0/r + a r/2 >= e0/r, and
    Phi(-x) <= phi(x)/x. Together d(a eps - 2 m h, a r) <= d(a e0, a r) <= d(e0, r) <= delta0.
    """
    parts = list(budgets)
    deltas = [part.delta for part in parts if part.delta > 0]
    delta = max(deltas, default=Fraction(0)) if contributions == 1 else sum(deltas, Fraction(0))
    return Budget(max((part.eps for part in parts), default=Fraction(0)), delta)


@dataclass(frozen=True, slots=True)
class Spend:
    """One line of a budget table: a step, how it drew, what it cost and which rows it read.

    `rows` is "all", or the name of one of several disjoint groups of rows ("half 1"); spends on
    different groups compose in parallel.
    """

    step: str
    mechanism: str
    eps: Fraction
    delta: Fraction = Fraction(0)
    note: str = ""
    rows: str = ALL_ROWS

    def __post_init__(self) -> None:
        """Check the cost as a budget is checked."""
        budget = Budget(self.eps, self.delta)
        object.__setattr__(self, "eps", budget.eps)
        object.__setattr__(self, "delta", budget.delta)

    @property
    def budget(self) -> Budget:
        """The cost of this line."""
        return Budget(self.eps, self.delta)


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The spends of one call, in order, and their exact total.

    `contributions` is `Protection.apart`: rows of a person that may lie in different groups.
    """

    spends: tuple[Spend, ...] = ()
    contributions: int = 1

    def __iter__(self) -> Iterator[Spend]:
        """Iterate over the spends in order."""
        return iter(self.spends)

    @property
    def total(self) -> Budget:
        """The whole cost: spends on all rows add up, groups of rows compose in parallel."""
        groups: dict[str, Budget] = {}
        for spend in self.spends:
            groups[spend.rows] = groups.get(spend.rows, NOTHING) + spend.budget
        whole = groups.pop(ALL_ROWS, NOTHING)
        return whole + in_parallel(groups.values(), self.contributions)

    def frame(self) -> pd.DataFrame:
        """Return the table: step, mechanism, eps, delta, the last two as exact decimal strings.

        A column `rows` is added when some spend reads only a group of the rows.
        """
        import pandas as pd

        names = ["step", "mechanism", "eps", "delta", "rows"]
        lines = [(one.step, one.mechanism, *one.budget.as_decimal(), one.rows) for one in self]
        table = pd.DataFrame(lines, columns=names)
        return table.drop(columns="rows") if all(one.rows == ALL_ROWS for one in self) else table
