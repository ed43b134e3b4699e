"""One look at the rows of an adaptive release, as it was released.

Tested in `tests/api/test_adaptive.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dpreg.arrays import Floats
from dpreg.privacy.budget import exact
from dpreg.results.inference import read_only

__all__ = ["Look", "ReleasedLook"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look:
    """A released moment matrix, and the coordinates that its rows were written in.

    A row (1, x, y) in stored units is seen as z = (c, c u, clip(c^a e, -g, g)) with a = `power`,
    u = `whitening` x + `offset`, e = (y - `center`'(1, x)) / `width`,
    c = min(1, `radius` / norm of (1, u)) and g = min(`stretch`, `radius` / norm of (c, c u));
    on the unit scale u = x, e = y and c = g = 1.

    Parameters
    ----------
    mechanism : {"gaussian", "matrix-laplace", "objective perturbation"}
        After the latter the coefficients were released alone: `center` are these, and `cells` and
        `noise_sd` those of the look that this equals, with the moments of the look before.
    share : Fraction
        Of what the looks cost together: of mu^2 for Gaussian noise, of eps for matrix-Laplace.
    radius : float or None
        R; None on the unit scale.
    width : float
        tau, in units of the stored response.
    opened : bool
        Whether R and tau were widened beyond the usual, since the noise is small.
    weight : float
        Mean squared weight c^2 of the complete rows, as released.
    cells, noise_sd : (D, D) arrays
        The noisy sum z z', and the standard deviation of each cell's noise; 0 where a cell is
        known without a release.
    whitening : (p, p) array
    offset : (p,) array
    center : (p + 1,) array
        The intercept and slopes that the response is measured from.
    stretch : float
        How many times farther than `width` residuals of rows that lie near may reach; from 1.
    power : float
        Of the weight c that residuals are multiplied by: 1, or -1/2 where R was widened far.
    """

    mechanism: str
    share: Fraction
    radius: float | None
    width: float
    opened: bool
    weight: float
    cells: Floats
    noise_sd: Floats
    whitening: Floats
    offset: Floats
    center: Floats
    stretch: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        """Make the fields plain, immutable values."""
        put = partial(object.__setattr__, self)
        put("share", exact(self.share, "share"))
        for name, ndim in (("cells", 2), ("noise_sd", 2), ("whitening", 2)):
            put(name, read_only(getattr(self, name), ndim, name))
        for name in ("offset", "center"):
            put(name, read_only(getattr(self, name), 1, name))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleasedLook:
    """What one look of an adaptive fit released; see `dpreg.looks`.

    With p columns in stored units, d = p + 1, v = (1, `whitening` x + `offset`) and e what is left
    of the response at the coefficients `center`, sums over rows (or persons) that are limited.

    Parameters
    ----------
    kind : {"box", "locating", "fitting"}
    mechanism : {"gaussian", "matrix-laplace"}
    share : Fraction
        Of what the looks cost together: of mu^2 for Gaussian noise, else of eps.
    limits : tuple of float
        How far a row may reach: A and S of a fitting look, R and tau of a locating one.
    information : (d, d) array
        Sum of weighted v v'; on the unit scale the moments of (1, x, y).
    score : (d,) array
        Sum of weighted e v.
    middle : (d, d) array
        Sum of a score's square; empty where only its `trace` was released.
    information_sd, score_sd, middle_sd : float
        Standard deviation of the noise in an off-diagonal cell, a cell, and an off-diagonal cell or
        the trace.
    trace : float
    whitening : (p, p) array
    offset : (p,) array
    center : (d,) array
    weight : float
        The mean weight that rows are measured by; about 1 in a linear model.
    """

    kind: str
    mechanism: str
    share: Fraction
    limits: tuple[float, ...]
    information: Floats
    information_sd: float
    score: Floats
    score_sd: float
    middle: Floats
    middle_sd: float
    trace: float
    whitening: Floats
    offset: Floats
    center: Floats
    weight: float

    def __post_init__(self) -> None:
        """Make the fields plain, immutable values."""
        put = partial(object.__setattr__, self)
        put("share", exact(self.share, "share"))
        for name, ndim in (("information", 2), ("middle", 2), ("whitening", 2)):
            put(name, read_only(getattr(self, name), ndim, name))
        for name in ("score", "offset", "center"):
            put(name, read_only(getattr(self, name), 1, name))
