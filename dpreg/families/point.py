r"""Coefficients alone, where intervals cannot be earned: one minimum takes nearly all of eps.

Looks pay for the information as well as for the score, and noise in the information spoils what the
score says where columns are many and rows few. There, at pure eps and a public number of rows, a
call does without: after two looks (`dpreg.families.switch`), and where rows are very few without
any. In the latter case a first release of three sums (complete rows, their squared lengths, their
responses) settles how far rows reach and where counts are cut. All else buys the minimum of a
perturbed objective (`dpreg.privacy.objective`), which uses the exact curvature and gives no
standard errors.

Statement: the three sums are eps_0-DP with Laplace noise of a scale of 3 k / eps_0. Proof: each row
adds a number from 0 to 1 to each, whole in units of 2**-20; so k replaced rows move them by 3 k in
all (`dpreg.privacy.vector_noise`). QED

Tested in `tests/families/test_objective.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.family import Family
from dpreg.families.objective import Loss
from dpreg.families.plan import FamilyPlan
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.objective import DRAWN, OBJECTIVE, objective_noise
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError, VectorChange
from dpreg.privacy.vector_noise import fit_noise
from dpreg.staged.objective import HeldRows, Objective, minimum

__all__ = [
    "POINT",
    "OpenPoint",
    "PointFit",
    "alone",
    "can_hold",
    "open_point",
    "release_point",
    "released_minimum",
]

POINT: Final = (
    "No intervals are given. Nearly all of eps went into one release of coefficients, by objective "
    "perturbation: with so few rows it estimates them better than looks do, but gives no errors."
)
_SUMS: Final = Fraction(5, 100)
"""Part of eps for the three sums."""
_UNIT: Final = 2**20
_TIMES: Final = 4.0
"""Counts are cut at so many times their mean."""
_FEW: Final = 0.5
"""Part of the rows that intervals need, below which not even two looks are worth their eps."""
_MOST_CELLS: Final = 1 << 26
"""Cells of the rows that are held at once."""
_LEAST_EPS: Final = Fraction(1, 2**30)


@dataclass(frozen=True, slots=True)
class PointFit:
    """Released coefficients in stored units, (d,), and the number of complete rows."""

    params: Floats
    count: float


@dataclass(frozen=True, slots=True, eq=False)
class OpenPoint:
    """The right to draw, opened in a call's account."""

    sums: Part
    minimum: Part
    protection: Protection


def alone(plan: FamilyPlan, rows: int) -> bool:
    """Return whether so many rows get coefficients alone without a look: a public rule.

    Parameters
    ----------
    plan : FamilyPlan
        Of the looks that would be made.
    rows : int
        Their public number.
    """
    return can_hold(plan, rows) and rows < _FEW * plan.rows_needed


def can_hold(plan: FamilyPlan, rows: int) -> bool:
    """Return whether a minimum may be released: pure eps, a public number of rows, and not huge."""
    who = plan.protection
    return (
        not plan.gaussian
        and who.n_is_public
        and rows * (plan.size + plan.offsets) <= _MOST_CELLS
        and plan.strength / who.contributions >= _LEAST_EPS
    )


def open_point(account: Account, eps: Fraction) -> OpenPoint:
    """Open the two lines of a call's account, which is not yet charged."""
    first = Budget(eps * _SUMS)
    sums = account.line("lengths and responses", "laplace", first)
    rest = Budget(eps - first.eps)
    fitted = account.line("coefficients", OBJECTIVE, rest, by=(DRAWN,))
    return OpenPoint(sums, fitted, account.protection)


def release_point(rows: HeldRows, family: Family, opened: OpenPoint, table_rows: int) -> PointFit:
    """Release coefficients.

    Parameters
    ----------
    rows : HeldRows
    family : Family
    opened : OpenPoint
        Of an account that is charged.
    table_rows : int
        The public number of rows.
    """
    n, d = max(table_rows, 1), rows.x.shape[1]
    count, length, mean = _sums(rows, family, opened, n)
    top = min(max(_TIMES * mean, 1.0), family.cap)
    centre = np.append(family.predictor(mean), np.zeros(d - 1))
    reach_squared = 1 + (d - 1) * length
    params = released_minimum(rows, family.dispersed, top, reach_squared, centre, opened.minimum, n)
    return PointFit(params, count)


def released_minimum(
    rows: HeldRows,
    counts: bool,
    top: float,
    reach_squared: float,
    centre: Floats,
    part: Part,
    table_rows: int,
) -> Floats:
    """Release the minimum of a perturbed objective, (d,).

    All but the rows is public, or was released before.

    Parameters
    ----------
    rows : HeldRows
    counts : bool
        Whether responses are counts.
    top : float
        Where these are cut.
    reach_squared : float
        R^2.
    centre : (d,) array
        t0.
    part : Part
    table_rows : int
        The public number of rows.
    """
    if not part.protection.n_is_public:
        raise AccountError("internal error: the tolerance would tell of a private number of rows")
    loss = Loss(counts, top if counts else 1.0)
    noise = objective_noise(
        rows.x.shape[1],
        loss.slope,
        loss.bend,
        reach_squared,
        max(table_rows, 1),
        part.cost.eps,
        part.protection,
    )
    b, second = noise.opened(part)
    cut = replace(rows, y=np.minimum(rows.y, loss.top))
    objective = Objective(cut, loss, reach_squared, noise.penalty, centre, b)
    found = minimum(objective, noise.tolerance, noise.slack, noise.places)
    return np.array(noise.released(found, second), dtype=np.float64)


def _sums(rows: HeldRows, family: Family, opened: OpenPoint, n: int) -> tuple[float, float, float]:
    """Release complete rows, the mean square of a column, and the mean response."""
    k, slopes = opened.protection.contributions, max(rows.x.shape[1] - 1, 1)
    noise = fit_noise(
        "laplace",
        VectorChange(
            protection=opened.protection, l1=3 * k * _UNIT, l2_squared=3 * (k * _UNIT) ** 2
        ),
        cells=3,
        cost=opened.sums.cost,
    )
    exact = (
        len(rows.y) * _UNIT,
        _whole((rows.length - 1) / slopes),
        _whole(rows.y / family.cap),
    )
    drawn = noise.draw(3, opened.sums)
    rows_told, squares, responses = ((a + b) / _UNIT for a, b in zip(exact, drawn, strict=True))
    noise_rows = 3 * k / float(opened.sums.cost.eps)  # the noise's scale, in rows
    count = min(max(rows_told, noise_rows, 1.0), float(n))
    length = min(max(squares / count, noise_rows / count, 1e-6), 1.0)
    # The mean stays as far from 0 as the noise may put it, and that of yes and no as far from 1.
    edge = min(noise_rows / count, 1.0 if family.dispersed else 0.5)
    share = min(max(responses / count, edge), 1.0 if family.dispersed else 1 - edge)
    return count, length, share * family.cap


def _whole(parts: Floats) -> int:
    """Return the sum of numbers from 0 to 1, each rounded down in units of 2**-20."""
    held = np.floor(np.clip(parts, 0.0, 1.0) * _UNIT)
    return int(held.astype(np.int64).sum())
