r"""The public coordinates of a look at a family's rows, on grids where rows are exact.

A stored row (1, x, y), x with the columns of offsets among them, is seen at a fit as

    u = L (x - m),    eta = b0 + b'x + offset,    mean and weight of eta by the family,

and counts by omega = min(1, S/(ebar |(1, u)|), A/(w |(1, u)|^2)), where ebar is the largest |e|
that any response between 0 and the cap gives at this eta: omega depends on the columns alone.
Counts may have caps of their own in each row (`dpreg.families.counts`); ebar is then mu. With the
weights' usual size wbar, both blocks are in units in which a row of full weight is about one:

    H_i = omega (w/wbar) (1, u)(1, u)',    |H_i|_F <= A,
    s_i = omega (e/sqrt(wbar)) (1, u),     |s_i| <= S.

u and eta are affine forms of a stored row with integer coefficients, as in
`dpreg.staged.location`, which shows that they are exact in any order of summation.

Tested in `tests/families/test_rows.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.families.counts import Table
from dpreg.families.family import Family
from dpreg.staged.location import (
    LARGEST_REACH,
    Form,
    carried_back,
    offset_of,
    whitened_forms,
    whitening_of,
)

__all__ = ["FamilyLocation"]

_UNITS: Final = 2.0**40
_LEAST: Final = 2.0**-20
_GRID: Final = 257


@dataclass(frozen=True, slots=True)
class FamilyLocation:
    """Coordinates of a look, and how far a row may reach; make it with `on_grid`. All public.

    Attributes
    ----------
    family : Family
    forms : tuple of Form
        u_1 .. u_p, as functions of the p columns.
    predictor : Form
        eta, as a function of the p columns and the offset columns after them.
    mean_weight : float
        wbar.
    information : float
        A, at least 1.
    residual : float
        F: a stored residual is omega^(1/2) e w^(-1/2) / F.
    limit : int
        S in units of 2**-40 sqrt(A) F.
    excess : Table, optional
        Of counts whose rows have caps of their own: what these take off.
    """

    family: Family
    forms: tuple[Form, ...]
    predictor: Form
    mean_weight: float
    information: float
    residual: float
    limit: int
    excess: Table | None = field(default=None, compare=False, repr=False)

    @classmethod
    def on_grid(
        cls,
        family: Family,
        *,
        whitening: ArrayLike,
        offset: ArrayLike,
        slopes: ArrayLike,
        intercept: float,
        mean_weight: float,
        information: float,
        score: float,
        most_trials: float = 1.0,
        excess: Table | None = None,
    ) -> FamilyLocation:
        """Round coordinates to grids on which rows are computed exactly.

        Parameters
        ----------
        family : Family
        whitening : array_like, shape (p, p)
            L.
        offset : array_like, shape (p,)
            -L m.
        slopes : array_like, shape (p + o,)
            b, and behind it the known slopes of o offset columns.
        intercept : float
            b0, with what the offsets add to it.
        mean_weight : float
            wbar.
        information, score : float
            A and S.
        most_trials : float
            The most trials that a row may have, over the family's usual number.
        excess : Table, optional

        Raises
        ------
        ArgumentError
            If a number is not finite or a shape does not fit. The arguments come from released
            numbers, which are finite.
        """
        L, shift = np.asarray(whitening, dtype=np.float64), np.asarray(offset, dtype=np.float64)
        b = np.asarray(slopes, dtype=np.float64)
        numbers = [*L.ravel(), *shift, *b, intercept, mean_weight, information, score]
        if not np.isfinite(numbers).all():
            raise ArgumentError("coordinates must be finite")
        p = shift.size
        if L.shape != (p, p) or b.size < p:
            raise ArgumentError("offset must have p entries, whitening p x p and slopes p or more")
        forms = whitened_forms(L, shift)
        shrink = min(1.0, LARGEST_REACH / max(1.0, abs(intercept) + float(np.abs(b).sum())))
        predictor = Form.nearest(intercept * shrink, (b * shrink).tolist())
        wbar = max(mean_weight, _LEAST)
        largest = max(information, 1.0)
        reachable = max(score, _LEAST)
        residual = _largest_residual(family, predictor, wbar, reachable, most_trials)
        limit = math.floor(min(reachable / (math.sqrt(largest) * residual), 1.0) * _UNITS)
        return cls(family, forms, predictor, wbar, largest, residual, max(limit, 1), excess)

    @property
    def size(self) -> int:
        """p, the columns that have coefficients."""
        return len(self.forms)

    @property
    def score(self) -> float:
        """S, as rounded."""
        return self.limit / _UNITS * math.sqrt(self.information) * self.residual

    @property
    def whitening(self) -> Floats:
        """L as rounded, (p, p)."""
        return whitening_of(self.forms)

    @property
    def offset(self) -> Floats:
        """-L m as rounded, (p,)."""
        return offset_of(self.forms)

    @property
    def shift(self) -> Floats:
        """(b0, b) as rounded, (p + 1,): the coefficients at theta = 0, offsets included in b0."""
        constant, slopes = self.predictor.floats
        return np.append(constant, slopes[: self.size])

    @property
    def transform(self) -> Floats:
        """T of beta = shift + T theta, (p + 1, p + 1), theta = H^-1 s."""
        return carried_back(self.forms, 1 / math.sqrt(self.mean_weight))


def _largest_residual(
    family: Family, predictor: Form, wbar: float, score: float, times: float
) -> float:
    """Return a bound on omega^(1/2) |e| w^(-1/2) over all rows that there can be.

    omega <= min(1, S sqrt(wbar)/ebar), as |(1, u)| >= 1; the largest value on a grid of eta, and a
    percent more for what lies between. With `times` as many trials ebar and w are so many times
    larger, which the second bound does not see. A row beyond it is cut there.
    """
    low, high = family.limits
    constant = predictor.floats[0]
    reach = predictor.reach - abs(constant)
    ends = [min(max(constant + sign * reach, low), high) for sign in (-1.0, 1.0)]
    mean, weight = family.moments(np.linspace(ends[0], ends[1], _GRID))
    farthest = np.maximum(mean, family.cap - mean)
    most = math.sqrt(times) * farthest / np.sqrt(weight)
    held = np.sqrt(score * math.sqrt(wbar) * farthest / weight)
    return 1.01 * float(np.minimum(most, held).max()) + _LEAST
