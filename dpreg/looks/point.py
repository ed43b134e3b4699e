"""Where a look is taken: public coordinates, and the fit that residuals are measured from.

With columns x on the unit scale, a point has a centre m, a whitening L, slopes b and a middle a:

    u = L (x - m),    v = (1, u),    eta = a + b'(x - m) (+ an offset).

A look taken there tells of theta, beta = t0 + T theta, beta the coefficients of (1, x):

    t0 = (a - b'm, b),    T = wbar^(-1/2) [1, -m'L'; 0, L'],

wbar the mean weight of rows, a public number. Everything in a point is public: post-processing of
what earlier looks released.

Tested in `tests/looks/test_locate.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpreg.arrays import Floats
from dpreg.looks.solve import held, pseudo

__all__ = ["Point"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """See the module.

    Attributes
    ----------
    centre : (p,) array
    whitening : (p, p) array
    slopes : (p,) array
    middle : float
    weight : float
        wbar.
    dispersion : float
        phi: the mean square of a score a direction, per row.
    spread : (p,) array
        Expected variance of each u.
    sure : (p,) array
        What of it stands above the noise of the look that told it.
    offset : (p,) array or None
        -L m as rounded, once it is.
    """

    centre: Floats
    whitening: Floats
    slopes: Floats
    middle: float
    weight: float
    dispersion: float
    spread: Floats
    sure: Floats
    offset: Floats | None = None

    def __post_init__(self) -> None:
        """Keep it finite, whatever was released."""
        put = partial(object.__setattr__, self)
        for name in ("centre", "whitening", "slopes", "spread", "sure"):
            put(name, np.nan_to_num(getattr(self, name), posinf=1e100, neginf=-1e100))
        put("middle", float(np.nan_to_num(self.middle, posinf=1e100, neginf=-1e100)))
        put("weight", held(self.weight))
        put("dispersion", held(self.dispersion, 1e-60))

    @property
    def size(self) -> int:
        """d: the constant and the p columns."""
        return len(self.centre) + 1

    @property
    def shift(self) -> Floats:
        """t0, (d,)."""
        return np.append(self.middle - self.slopes @ self.centre, self.slopes)

    @property
    def transform(self) -> Floats:
        """T, (d, d)."""
        matrix = np.zeros((self.size, self.size))
        matrix[0, 0] = 1.0
        matrix[0, 1:] = self.moved
        matrix[1:, 1:] = self.whitening.T
        return np.asarray(matrix / np.sqrt(self.weight), dtype=np.float64)

    @property
    def moved(self) -> Floats:
        """-L m, (p,)."""
        if self.offset is not None:
            return self.offset
        return np.asarray(-self.whitening @ self.centre, dtype=np.float64)

    @property
    def rows(self) -> Floats:
        """The (d, d) matrix that takes (1, x) to (1, u)."""
        matrix = np.eye(self.size)
        matrix[1:, 1:], matrix[1:, 0] = self.whitening, self.moved
        return matrix

    @property
    def variance(self) -> float:
        """Expected variance of the predictor."""
        along = pseudo(self.whitening.T) @ self.slopes
        return held(float((along**2 * self.spread).sum()))
