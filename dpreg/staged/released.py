r"""What a look releases, and the public coordinates that its rows were written in.

Box coordinates are those of the design: x in [-1, 1]^p, y in [-1, 1]. A later look writes a row as

    u = L (x - m),    e = (y - b0 - x'b) / tau,    c = min(1, R / |(1, u)|),
    z = (c, c u, clip(c^a e, -g, g)),    g = min(F, R / |c (1, u)|),

with F = a = 1 for most looks (`NoisyLook.stretch`, `power`), and releases sum z z' with noise. If
y = beta_0 + x'beta_s + error, then e = (1, u)'theta + error/tau with beta = t0 + T theta,

    t0 = (b0, b),    T = tau [1, -m'L'; 0, L'].

The box itself is the case L = 1, m = 0, b = 0, tau = 1, without weights.

Tested in `tests/staged/test_law.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.location import Location
from dpreg.staged.tails import Heaviness

__all__ = [
    "FAR_OPENED",
    "FAR_POWER",
    "NEARLY",
    "Coordinates",
    "NoisyLook",
    "Tail",
    "box",
    "reach",
    "residual_power",
]

FAR_POWER: Final = -0.5
"""a of looks whose radius is opened far: a row that is shortened then counts c^(1/2) in the
equations, for c^2, as a line that leaves a curve out is soonest missed in such rows. Their
residuals are cut the sooner."""
FAR_OPENED: Final = 1.25
"""How far R must be opened for that: few rows are shortened then."""

NEARLY: Final = 0.99
"""Clips are rounded: from this share of the box's corner, or of its farthest residual, they bind no
row."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """A public map of rows, fixed by earlier releases.

    Parameters
    ----------
    whitening : (p, p) array
        L.
    offset : (p,) array
        -L m: u = L x + offset.
    intercept, slopes : float and (p,) array
        b0 and b: what the response is measured from.
    width : float
        tau: residuals are cut at +- tau, or up to F tau, in box units of the response.
    squared_radius : float
        R^2: rows (1, u) are shortened to length R; infinite in the box.
    """

    whitening: Floats
    offset: Floats
    intercept: float
    slopes: Floats
    width: float
    squared_radius: float

    @property
    def transform(self) -> Floats:
        """T, shape (d, d) with d = p + 1: beta = shift + T theta."""
        size = len(self.offset) + 1
        matrix = np.zeros((size, size))
        matrix[0, 0] = self.width
        matrix[0, 1:] = self.width * self.offset
        matrix[1:, 1:] = self.width * self.whitening.T
        return matrix

    @property
    def shift(self) -> Floats:
        """t0, shape (d,): the coefficients at theta = 0."""
        return np.append(self.intercept, self.slopes)

    @property
    def corner(self) -> float:
        """The largest |(1, u)|^2 of the box, or more: a radius this large shortens no row."""
        farthest = np.abs(self.whitening).sum(axis=1) + np.abs(self.offset)
        return 1.0 + float((farthest**2).sum())

    @property
    def farthest(self) -> float:
        """The largest residual of the box, in box units of the response."""
        return 1.0 + abs(self.intercept) + float(np.abs(self.slopes).sum())

    @classmethod
    def rounded(cls, location: Location) -> Coordinates:
        """Return the coordinates that rows are really written in, once rounded to their grids."""
        return cls(
            whitening=location.whitening,
            offset=location.offset,
            intercept=location.intercept,
            slopes=location.slopes,
            width=location.tau,
            squared_radius=location.radius**2,
        )

    @property
    def boxed(self) -> bool:
        """Whether these are the box's own coordinates: rows without weights or cuts."""
        return not np.isfinite(self.squared_radius)


def reach(length: float, stretch: float) -> float:
    """Return the cut of a row's residual, in units of tau.

    Parameters
    ----------
    length : float
        |c (1, u)|^2 / R^2 of the row.
    stretch : float
        F.
    """
    return float(min(max(length, stretch**-2), 1.0) ** -0.5)


def residual_power(located: Coordinates, at: Coordinates, stretch: float) -> float:
    """Return a: the power of a row's weight that its residual is multiplied by.

    Parameters
    ----------
    located : Coordinates
        Before clips were opened.
    at : Coordinates
        As `dpreg.staged.clips.open_clips` opened them.
    stretch : float
        F of the look to come.
    """
    least = FAR_OPENED**2 * located.squared_radius * (1 - 1e-9)
    return FAR_POWER if stretch > 1 and at.squared_radius >= least else 1.0


def box(columns: int) -> Coordinates:
    """Return the coordinates of the first look, at p = `columns` columns."""
    zeros = np.zeros(columns)
    return Coordinates(np.eye(columns), zeros, 0.0, zeros, 1.0, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyLook:
    """One released moment matrix: safe to print, save and compute with.

    Parameters
    ----------
    cells : (d + 1, d + 1) array
        Released sum z z', symmetric; z = (c, c u, clipped residual), d = p + 1.
    noise_sd : (d + 1, d + 1) array
        Standard deviation of each cell's noise; 0 where nothing was released.
    coordinates : Coordinates
    degrees : int or None
        Degrees of freedom of each Wishart of matrix-Laplace noise; None for Gaussian noise.
    rows : int or None
        The number of rows where it is public (replace-one).
    stretch : float
        F: a row's residual is cut at tau times min(F, R / |c (1, u)|); with 1, at tau.
    power : float
        a, 1 or `FAR_POWER`: a row's residual is multiplied by c^a before it is cut.
    """

    cells: Floats
    noise_sd: Floats
    coordinates: Coordinates
    degrees: int | None
    rows: int | None
    stretch: float = 1.0
    power: float = 1.0

    @property
    def size(self) -> int:
        """d: the columns with the intercept."""
        return len(self.cells) - 1

    @property
    def cut(self) -> float:
        """Where residuals of a typical row are cut, in units of tau: at its mean square length."""
        if self.stretch == 1:
            return 1.0
        size = self.size
        length = float(np.trace(self.cells[:size, :size])) / max(float(self.cells[0, 0]), 1.0)
        return reach(length / self.coordinates.squared_radius, self.stretch)

    @property
    def noise_norm(self) -> float:
        """nu, the public estimate of the spectral norm of the noise in sum c^2 (1,u)(1,u)'."""
        size = self.size
        return 2 * float(np.sqrt((self.noise_sd[:size, :size] ** 2).sum(axis=1).max()))

    def count(self, most: float | None = None) -> float:
        """Return the released sum of squared weights, between d + 1 and the public rows.

        Parameters
        ----------
        most : float, optional
            An upper limit that an earlier look released.
        """
        limits = [limit for limit in (self.rows, most) if limit is not None]
        return max(min([float(self.cells[0, 0]), *limits]), self.size + 1.0)


@dataclass(frozen=True, slots=True)
class Tail:
    """More cells of a last look: residuals that are cut farther out, and their leverage.

    With f the row's residual in z and t = clip(c^a e tau / width, -1, 1), `total` is sum c t,
    `squares` sum t^2 and `leverage` sum |c (1, u)|^2 f^2, with noise.

    Parameters
    ----------
    total, squares : float
    total_sd, squares_sd : float
        Standard deviations of their noise.
    width : float
        The wider cut, in box units of the response.
    leverage, leverage_sd : float
        Not released where the noise is infinite.
    heaviness : Heaviness, optional
        Of the residuals, as an earlier look released it.
    bent : float
        The squared move that clips leave where the model is wrong; see `clips.allowed`.
    """

    total: float
    squares: float
    total_sd: float
    squares_sd: float
    width: float
    leverage: float = 0.0
    leverage_sd: float = math.inf
    heaviness: Heaviness | None = None
    bent: float = 0.0
