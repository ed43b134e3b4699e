r"""How far rows may reach in the last look: the radius and the cut of the least expected error.

At the located clips (R, tau) let ratio be the privacy noise of a cell of X'e over its sampling
error, and open R by a factor r and tau by t. In units of a coefficient's sampling variance,

- noise costs (ratio r t)^2 / (1 - 2 nu r^2 / n)^2, nu that of the columns' moments at R: rows that
  reach farther also blur the columns, and a direction is seen where n stands above nu;
- shortened rows move coefficients where the model is not linear, and so do residuals that are cut
  far out: with q the outer excess of `tails.Heaviness`, as a second look released it, by the square
  roots of .016 q^2 r^-4 and .0025 q^2 t^-3, in units of omega a direction; q^2 has its usual size
  where noise hides it;
- residuals that are cut move slopes where they are skewed and their spread changes with a column:
  by .45 of `tails.beyond`, as the second look released their heaviness.

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

__all__ = ["allowed", "heaviness_of", "open_clips", "wide_cut"]

_SHORTENED: Final = 1e-4
"""Squared move, in units of omega and of a direction, by rows shortened to R: falls with r^6."""
_BENT: Final = (0.016, 0.0025)
"""The same of rows shortened and of residuals cut, for each unit of squared outer excess: means of
designs with curves that the model leaves out. They fall with r^4 and t^3."""
_SKEWED: Final = 0.45
"""Share of what is cut that moves a slope: .3 to .5 on skewed residuals whose spread grows with the
fit, 0 on all others."""
_HARDLY: Final = 0.05
"""Least part of the columns' moments that counts as seen: below it R stays as located."""
_LEFT: Final = 0.02
"""Least share of rows' squared weights that counts as taken from them."""
_OWN: Final = 0.5
"""Share of what the error of an earlier fit adds to residuals far out that is taken off: a model
that is wrong makes fits differ, too."""
_NEARLY: Final = 0.99
"""Clips are rounded: from this share of the box's corner on they bind no row."""
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
    corner, farthest = _ends(at)
    shortened = _SHORTENED * _RADII**-6 + _BENT[0] * tails.perhaps_bent * _RADII**-4
    shortened[at.squared_radius * _RADII**2 >= corner] = 0.0
    moved = np.array([(_SKEWED * beyond(tails.possible, CUT * t)) ** 2 for t in _WIDTHS])
    moved += _BENT[1] * tails.perhaps_bent * _WIDTHS**-3
    moved[at.width * _WIDTHS >= farthest] = 0.0
    blurred = 4 * unit * at.squared_radius * math.sqrt(len(at.offset) + 2) / located.count
    seen = np.maximum(1 - blurred * _RADII**2, _HARDLY)
    noise = ratio**2 * np.outer((_RADII / seen) ** 2, _WIDTHS**2)
    loss = noise + located.count * (shortened[:, None] + moved)
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
    look: NoisyLook,
    squares: float,
    sd: float,
    wide: float,
    count: float,
    located: Located | None = None,
    outer: float = 0.0,
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
    located : Located, optional
        Where the look was located from; without it the outer excess stays unknown.
    outer : float
        Sum of (1 - c^2) min(e^2, wide^2), in the same units and with the same noise.
    """
    size = look.size
    weights = min(max(float(look.cells[0, 0]), 0.2 * count), count)
    ratio = (wide / look.coordinates.width) ** 2
    found = heaviness(
        float(look.cells[size, size]) / weights,
        float(look.noise_sd[size, size]) / weights,
        squares * ratio / weights,
        sd * ratio / weights,
    )
    left = max(count - weights, _LEFT * count) * max(squares, sd) / weights
    if located is None:
        return found
    far = outer - _OWN * _mislocated(look, located, count) / ratio
    return replace(found, outer=far / left - 1, outer_noise=sd / left)


def _mislocated(look: NoisyLook, located: Located, count: float) -> float:
    """Return what the error of the fit that residuals are taken from adds to them, far out.

    That is theta' (sum (1 - c^2) (1, u)(1, u)') theta: theta by the look's own cells, the moments
    of all rows as expected when it was located, less those of the rows as they count.
    """
    size = look.size
    cells = look.cells[:size, :size]
    values, vectors = np.linalg.eigh(cells)
    along = vectors.T @ look.cells[:size, size]
    theta = vectors @ (along / (np.maximum(values, 0.0) + look.noise_norm))
    whole = np.zeros((size, size))
    whole[0, 0], whole[1:, 1:] = count, count * located.spread
    values, vectors = np.linalg.eigh(whole - cells)
    return float((np.maximum(values, 0.0) * (vectors.T @ theta) ** 2).sum())


def allowed(located: Located, at: Coordinates, tails: Heaviness) -> float:
    """Return the squared move that clips leave where a model is wrong, as in the module.

    In units of omega^2, a direction of the columns, for what was seen of the outer excess.
    """
    before = located.coordinates
    corner, farthest = _ends(before)
    radius, width = at.squared_radius / before.squared_radius, at.width / before.width
    shortened = _BENT[0] * radius**-2 * (at.squared_radius < corner * _NEARLY)
    cut = _BENT[1] * width**-3 * (at.width < farthest * _NEARLY)
    return tails.bent * (shortened + cut)


def _ends(at: Coordinates) -> tuple[float, float]:
    """Return the largest |(1, u)|^2 and |e| of the box."""
    corner = 1.0 + float(((np.abs(at.whitening).sum(axis=1) + np.abs(at.offset)) ** 2).sum())
    return corner, 1.0 + abs(at.intercept) + float(np.abs(at.slopes).sum())
