r"""How far rows may reach in the last look: the radius and the cut of the least expected error.

At the located clips (R, tau) let ratio be the privacy noise of a cell of X'e over its sampling
error, and open R by a factor r and tau by t. In units of a coefficient's sampling variance,

- noise costs (ratio r t)^2 / (1 - 2 nu r^2 / n)^2, nu that of the columns' moments at R: rows that
  reach farther also blur the columns, and a direction is seen where n stands above nu;
- shortened rows move coefficients where the model is not linear: by .01 r^-3 omega a direction,
  between what they do on drawn data and on real sets, and more where residuals have heavy tails;
- residuals that are cut move slopes where they are skewed and their spread changes with a column:
  by .45 of `tails.beyond`, as a second look released their heaviness.

The last two count n times their squares. `open_clips` takes the r and t of the least sum: clips
open where noise is small anyway, wider where residuals have heavy tails, and stop at the corner of
the box, beyond which they bind no row. With more rows the fit so tends to least squares.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.staged.locate import CUT, Located
from dpreg.staged.released import Coordinates, NoisyLook
from dpreg.staged.tails import NORMAL, Heaviness, beyond, heaviness

__all__ = ["heaviness_of", "open_clips", "wide_cut"]

_SHORTENED: Final = 1e-4
"""Squared move of a coefficient, in units of omega and of its direction, by rows shortened to R."""
_WRONG: Final = 40.0
"""How much more for each unit of excess: where residuals had heavy tails, models were less linear
and rows farther out, too."""
_SKEWED: Final = 0.45
"""Share of what is cut that moves a slope: .3 to .5 on skewed residuals whose spread grows with the
fit, 0 on all others."""
_HARDLY: Final = 0.05
"""Least part of the columns' moments that counts as seen: below it R stays as located."""
_FREE: Final = 0.6
"""A ratio below this hardly widens intervals: half of what is left to it always goes to R, as the
model may be less linear than the above takes it for."""
_STEPS: Final = 61
_RADII: Final = np.geomspace(1.0, 64.0, _STEPS)
_WIDTHS: Final = np.geomspace(1.0, 16.0, _STEPS)
_WIDE: Final = 0.8
"""The tail's cut in units of omega (n/sd)^(1/3): least total error of the intercept, over normal,
exponential and lognormal residuals."""
_FARTHEST: Final = 3.0
"""Most of that where squares are compared: their noise grows with the square of the cut."""


def open_clips(located: Located, unit: float, tails: Heaviness = NORMAL) -> Coordinates:
    """Open radius and cut where that costs less than it saves.

    Parameters
    ----------
    located : Located
    unit : float
        See `locate.noise_unit`, for the look to come.
    tails : Heaviness, optional
        Of residuals; without it they are taken for nearly normal.
    """
    at = located.coordinates
    sampling = math.sqrt(located.count * located.residual)
    ratio = unit * math.sqrt(at.squared_radius) * at.width / sampling
    corner = 1.0 + float(((np.abs(at.whitening).sum(axis=1) + np.abs(at.offset)) ** 2).sum())
    farthest = 1.0 + abs(at.intercept) + float(np.abs(at.slopes).sum())
    wrong = _SHORTENED * (1 + _WRONG * tails.likely)
    shortened = np.where(at.squared_radius * _RADII**2 >= corner, 0.0, wrong * _RADII**-6.0)
    moved = np.array([_SKEWED * beyond(tails.possible, CUT * t) for t in _WIDTHS])
    moved[at.width * _WIDTHS >= farthest] = 0.0
    blurred = 4 * unit * at.squared_radius * math.sqrt(len(at.offset) + 2) / located.count
    seen = np.maximum(1 - blurred * _RADII**2, _HARDLY)
    noise = ratio**2 * np.outer((_RADII / seen) ** 2, _WIDTHS**2)
    loss = noise + located.count * (shortened[:, None] + np.square(moved))
    least = min(math.sqrt(max(_FREE / ratio, 1.0)), float(_RADII[-1]))
    loss[least * (1 - 1e-9) > _RADII] = np.inf
    radius, width = np.unravel_index(int(np.argmin(loss)), loss.shape)
    return replace(
        at,
        squared_radius=min(at.squared_radius * float(_RADII[radius]) ** 2, corner),
        width=min(at.width * float(_WIDTHS[width]), farthest),
    )


def wide_cut(located: Located, at: Coordinates, sd: float, *, squares: bool = False) -> float:
    """Return the second, wider cut of a look's residuals, in box units of the response.

    omega WIDE (n/sd)^(1/3), at which what it leaves out and its noise are about as large; at least
    tau, and at most the farthest residual there can be.

    Parameters
    ----------
    located : Located
        Where the look was located from.
    at : Coordinates
        Of the look, rounded to its grids.
    sd : float
        Of the noise in a sum of residuals, in units of the wider cut.
    squares : bool
        Whether only their sum of squares is released, for `heaviness_of`.
    """
    units = _WIDE * math.cbrt(located.count / sd)
    if squares:
        units = min(units, _FARTHEST)
    farthest = 1.0 + abs(at.intercept) + float(np.abs(at.slopes).sum())
    return max(min(math.sqrt(located.residual) * units, farthest), at.width)


def heaviness_of(
    look: NoisyLook, squares: float, sd: float, wide: float, count: float
) -> Heaviness:
    """Return the heaviness of a look's residuals.

    Parameters
    ----------
    look : NoisyLook
        Its last diagonal cell holds squares of residuals at the narrow cut.
    squares, sd : float
        Sum of squares at the wider cut, in its units, and its noise.
    wide : float
        The wider cut, in box units of the response.
    count : float
        Released number of complete rows.
    """
    size = look.size
    weights = min(max(float(look.cells[0, 0]), 0.2 * count), count)
    ratio = (wide / look.coordinates.width) ** 2
    return heaviness(
        float(look.cells[size, size]) / weights,
        float(look.noise_sd[size, size]) / weights,
        squares * ratio / weights,
        sd * ratio / weights,
    )
