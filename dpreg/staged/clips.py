r"""How far rows may reach in the last look: the radius and the cut of the least expected error.

At the located clips (R, tau) let ratio be the privacy noise of a cell of X'e over its sampling
error, and open R by a factor r and tau by t. In units of a coefficient's sampling variance,

- noise costs (ratio r t)^2 / (1 - 2 nu r^2 / n)^2, nu that of the columns' moments at R: rows that
  reach farther also blur the columns, and a direction is seen where n stands above nu;
- shortened rows move coefficients where the model is not linear: by the square root of
  .03/d + .06 q^2 times `Heaviness.left` of r, in units of omega a direction, d of them, with q
  the outer excess as far as a second look showed it. A model that is wrong enough to matter may
  show no outer excess; how far rows lie out is seen, and R opens until little is left out;
- residuals that are cut far out move them too there: by the square root of
  (.00002/d + .0025 q^2) t^-6, since a model may be wrong where nothing shows it;
- residuals that are cut move slopes where they are skewed and their spread changes with a column:
  by `Heaviness.slope`, as the second look released their skew.

Where the cut is stretched (`dpreg.privacy.product_sensitivity`), residuals of typical rows are cut
farther out than at tau, and t counts for more in the last two by a part of that. It may then be
less than 1, and noise is divided by the squared share of residuals within the cut. So it may where
terms alone are chosen from a look with matrix-Laplace noise. Then `spared` is counted too, what a
closer cut adds to the sampling variance of normal residuals.

If R of a stretched look is opened by `FAR_OPENED`, rows that are shortened count more in the
equations (`released.residual_power`): cuts then bind far out the sooner, and the spread is taken to
change by half as much again. If R is not, too many rows are shortened, by a look before that was
too noisy: at 1,000 rows of 3 columns the squared error was twice as large if they counted more, and
coverage .91.

The last three count n times their squares. `open_clips` takes the r and t of the least sum: clips
open where noise is small anyway, wider where residuals have heavy tails, and stop at the corner of
the box, beyond which they bind no row. With more rows the fit so tends to least squares.

A look that another is located from has its radius opened too, where n is many times nu. Rows that
it shortens count less in the moments that the next look is whitened by: these rows then lie farther
out than they should, along just the columns with long tails, and would be shortened again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.locate import CUT, Located
from dpreg.staged.released import FAR_OPENED, NEARLY, Coordinates, NoisyLook, reach
from dpreg.staged.tails import (
    NORMAL,
    STRETCHED,
    Heaviness,
    heaviness,
    normal_cut,
    spared,
    within,
)

__all__ = [
    "Sums",
    "allowed",
    "cut_moves",
    "heaviness_of",
    "open_clips",
    "open_early",
    "wide_cut",
]

Sums = tuple[float, float, float, float]
"""Of squared residuals above and below 0, of what shortening takes, and of weight lost farther
out."""

_SHORTENED: Final = 0.03
"""Squared move by rows shortened, in units of omega and over all directions, for each unit of
squared weight that they lose: .02 to .1 on drawn tables whose model leaves out a curve that least
squares hardly shows, less than .001 where the model is right."""
_CHOOSING: Final = 0.1
"""Share of it that counts where terms alone are chosen from a look with matrix-Laplace noise: which
terms have an effect then depends more on the noise, which grows with the radius. On eleven drawn
tables, eight of which leave a curve, an interaction or a square out (20,000 to 30,000 rows, eps 1,
with four useless columns beside those of the table), 1, .3 and .1 found 5.43, 5.53 and 5.57 terms
without delta, and 6.03, 6.04 and 6.01 with Gaussian noise, which is less; useless ones .02, .02 and
.03, either way. On twenty-four kinds of drawn rows (60 releases each, without delta) .3 and .1
found 4.27 and 4.31 terms, and as few useless ones."""
_ALLOWED: Final = 0.3
"""Share of it that intervals allow for: most models are less wrong."""
_BENT: Final = (0.06, 0.0025)
"""The same of rows shortened, and of residuals cut, for each unit of squared outer excess: means of
designs with curves that the model leaves out."""
_HIDDEN: Final = 2e-5
"""The same of residuals cut, where nothing shows: 1e-6 on drawn tables of wages and factors, .0001
where the response has two values, so that clips open where n is above a few ten thousand."""
_FASTER: Final = 6.0
"""How fast that falls with the cut: by t^-6 to t^-8 on drawn tables with a curve left out."""
_EARLY: Final = 8.0
"""n over nu of an earlier look's columns from which on its radius opens: it stays there."""
_EARLIEST: Final = 2.25
"""Most that R^2 of such a look grows by. At 1.6 the next look was whitened worse; at 4 its sums
told less of how far rows lie out, and overlap with least squares was less either way."""
_FREER: Final = 1.5
"""How much more the spread of residuals is then taken to change with the columns, to open the cut:
by .45 for .3. With intervals that allow for .45 as well, those of the drawn tables cover .940 for
.936, and .28 of slopes are named as in doubt for .12."""
_HARDLY: Final = 0.05
"""Least part of the columns' moments that counts as seen: below it R stays as located."""
_LEFT: Final = 0.02
"""Least share of rows' squared weights that counts as taken from them."""
_OWN: Final = 0.5
"""Share of what the error of an earlier fit adds to residuals far out that is taken off: a model
that is wrong makes fits differ, too."""
_MEAN_SIZE: Final = 1.6
"""What E[e |e|] changes by where the mean of e does: 2 E|e|, of normal residuals."""
_STEPS: Final = 61
_RADII: Final = np.geomspace(1.0, 64.0, _STEPS)
_WIDTHS: Final = np.geomspace(1.0, 16.0, _STEPS)
_NARROWER: Final = np.geomspace(0.75, 16.0, _STEPS)
"""The same where the cut is stretched, so that most residuals are cut no sooner, and where terms
alone are chosen without delta. There, on the twenty-four kinds of rows above, cuts of 1, .8, .65
and .5 tau found 4.27, 4.37, 4.39 and 4.38 terms, and .013, .021, .025 and .044 useless ones (20
releases each); on thirteen of them the cut of the least sum 3.39, tau itself 3.27 (30 each)."""
_WIDE: Final = 0.8
"""The tail's cut in units of omega (n/sd)^(1/3): least total error of the intercept, over normal,
exponential and lognormal residuals."""
_FARTHEST: Final = 3.0
"""Most of that where squares are compared: their noise grows with the square of the cut."""


def open_clips(
    located: Located,
    unit: float,
    tails: Heaviness = NORMAL,
    stretch: float = 1.0,
    *,
    choosing: bool = False,
    gaussian: bool = True,
) -> Coordinates:
    """Open radius and cut where that costs less than it saves.

    Parameters
    ----------
    located : Located
    unit : float
        See `locate.noise_unit`, for the look to come.
    tails : Heaviness, optional
        Of residuals; without it they are taken for nearly normal.
    stretch : float
        F of the look to come.
    choosing : bool
        Whether the look is for choosing terms alone: `tails` are then taken for normal ones.
    gaussian : bool
        Whether its noise is Gaussian; if not, what shortening may move counts less for a choice.
    """
    if choosing:
        tails = NORMAL
    at = located.coordinates
    sampling = math.sqrt(located.count * located.residual)
    ratio = unit * math.sqrt(at.squared_radius) * at.width / sampling
    corner, farthest = at.corner, at.farthest
    directions = len(at.offset) + 1
    left = np.array([tails.left(radius) for radius in _RADII])
    minded = _SHORTENED * (_CHOOSING if choosing and not gaussian else 1.0)
    shortened = (minded / directions + _BENT[0] * tails.bent) * left
    shortened[at.squared_radius * _RADII**2 >= corner] = 0.0
    farther = np.array([_farther(tails, radius, stretch) for radius in _RADII])
    narrow = choosing and not gaussian
    widths = _NARROWER if narrow or stretch > 1 else _WIDTHS
    cuts = np.outer(farther, widths)
    blurred = 4 * unit * at.squared_radius * math.sqrt(directions + 1) / located.count
    seen = np.maximum(1 - blurred * _RADII**2, _HARDLY)
    noise = ratio**2 * np.outer((_RADII / seen) ** 2, widths**2)
    if narrow or stretch > 1:
        noise /= within(CUT * cuts) ** 2

    def best(change: float, least: float) -> tuple[int, int]:
        """Return the places of radius and width of the least loss, from the radius `least` on."""
        moved = cut_moves(tails, cuts, directions, change)
        moved[:, at.width * widths >= farthest] = 0.0
        loss = noise + located.count * (shortened[:, None] + moved)
        if narrow:
            loss += spared(CUT * cuts)
        loss[least > _RADII] = math.inf
        radius, width = np.unravel_index(int(np.argmin(loss)), loss.shape)
        return int(radius), int(width)

    radius, width = best(1.0, 1.0)
    if stretch > 1 and _RADII[radius] >= FAR_OPENED:
        radius, width = best(_FREER, FAR_OPENED)
    return replace(
        at,
        squared_radius=min(at.squared_radius * float(_RADII[radius]) ** 2, corner),
        width=min(at.width * float(widths[width]), farthest),
    )


def cut_moves(tails: Heaviness, cuts: Floats, directions: int, change: float = 1.0) -> Floats:
    """Return the squared move by residuals cut at `cuts`, in units of the located cut.

    In units of omega^2, a direction of the columns: by skew, where the spread of residuals changes
    `change` times as much with the columns, and by what a wrong model hides.
    """
    skewed = tails.slopes(tails.possible_skew, CUT * cuts, directions) ** 2
    bent = (_HIDDEN / directions + _BENT[1] * tails.perhaps_bent) * cuts**-_FASTER
    return np.asarray(change**2 * skewed + bent)


def open_early(located: Located, unit: float) -> Coordinates:
    """Open the radius of a look that another is located from, as far as its noise allows.

    Parameters
    ----------
    located : Located
    unit : float
        See `locate.noise_unit`, for the look to come.
    """
    at = located.coordinates
    needed = _EARLY * 4 * unit * at.squared_radius * math.sqrt(len(at.offset) + 2)
    wider = min(max(located.count / needed, 1.0), _EARLIEST)
    most = max(at.corner, at.squared_radius)
    return replace(at, squared_radius=min(at.squared_radius * wider, most))


def _farther(tails: Heaviness, radius: float, stretch: float) -> float:
    """Return by how much a stretch counts as a wider cut, at `radius` R as located.

    |(1, u)|^2 is R^2 in the mean there, and shortening takes `Heaviness.left` of it.
    """
    if stretch == 1:
        return 1.0
    return math.pow(reach((1 - tails.left(radius)) / radius**2, stretch), STRETCHED)


def wide_cut(
    located: Located, at: Coordinates, sd: float, *, squares: bool = False, stretch: float = 1.0
) -> float:
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
        Whether only their squares are released, for `heaviness_of`.
    stretch : float
        F: the narrow cut is F tau at most, and the wide one is at least that.
    """
    units = _WIDE * math.cbrt(located.count / sd)
    if squares:
        units = min(units, _FARTHEST)
    return max(min(math.sqrt(located.residual) * units, at.farthest), stretch * at.width)


def heaviness_of(
    look: NoisyLook, sums: Sums, sd: float, wide: float, count: float, located: Located
) -> Heaviness:
    """Return the heaviness of a look's residuals, and how far its rows lie out.

    Parameters
    ----------
    look : NoisyLook
        Its last diagonal cell holds squares of residuals at the narrow cut.
    sums : tuple of four floats
        As `dpreg.staged.predict.spread_sums` returns them, with noise.
    sd : float
        Standard deviation of the noise in each.
    wide : float
        The wider cut, in box units of the response.
    count : float
        Released number of complete rows.
    located : Located
        Where the look was located from.
    """
    above, below, outer, far = sums
    size, both = look.size, math.sqrt(2) * sd
    weights = min(max(float(look.cells[0, 0]), 0.2 * count), count)
    ratio = (wide / look.coordinates.width) ** 2 / weights
    scatter, scatter_sd = (
        float(cells[size, size]) / weights for cells in (look.cells, look.noise_sd)
    )
    found = heaviness(scatter, scatter_sd, (above + below) * ratio, both * ratio)
    cut = normal_cut(max(scatter, scatter_sd))
    moved, moved_sd = (
        _MEAN_SIZE * cut * float(cells[0, size]) / weights for cells in (look.cells, look.noise_sd)
    )
    taken = max(count - weights, _LEFT * count) * max(above + below, both) / weights
    own = _OWN * _mislocated(look, located, count) / (ratio * weights)
    return replace(
        found,
        outer=(outer - own) / taken - 1,
        outer_noise=sd / taken if count - weights > _LEFT * count else math.inf,
        skew=(above - below) * ratio * cut**2 - moved,
        skew_noise=math.hypot(both * ratio * cut**2, moved_sd),
        far=far / count,
        far_noise=sd / count,
        reach=math.sqrt(look.coordinates.squared_radius / located.coordinates.squared_radius),
    )


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


def allowed(located: Located, at: Coordinates, tails: Heaviness, stretch: float = 1.0) -> float:
    """Return the squared move that clips leave where a model is wrong, as in the module.

    In units of omega^2, a direction of the columns: for what was seen of the outer excess, and a
    part of what may hide.
    """
    before = located.coordinates
    corner, farthest = before.corner, before.farthest
    radius = math.sqrt(at.squared_radius / before.squared_radius)
    cut = 0.0
    if at.width < farthest * NEARLY:
        wider = at.width / before.width * _farther(tails, radius, stretch)
        cut = _BENT[1] * float(wider**-_FASTER)
    if at.squared_radius >= corner * NEARLY:
        return tails.bent * cut
    wrong = _ALLOWED * _SHORTENED / (len(at.offset) + 1) + _BENT[0] * tails.bent
    return wrong * tails.left(radius) + tails.bent * cut
