r"""SSP and AdaSSP: regression from noisy sufficient statistics, for comparison and the thesis.

For rows in the unit ball (`dpreg.estimation.scaling`), |x| <= 1 and |y| <= 1:

- **SSP** (Vu and Slavkovic 2009): (X'X + noise)^-1 (X'y + noise). It has no defence against a noisy
  matrix that is almost singular, and its error is then anything: `ssp` is here to show that.
- **AdaSSP** (Wang 2018): releases the least eigenvalue too, as a lower bound
  lmin = max(0, lmin(X'X) + sigma Z - offset), and adds the ridge

      lambda = max(0, sigma sqrt(d log(2 d^2/rho)) - lmin),    rho = 0.05.

  The offset is sigma sqrt(c), c = log(6/delta) or, for "classical", 2 log(3.75/delta).

Noise constants and what they are worth: `dpreg.estimation.constants`. With "wang" X'X + I takes
X'X's place, as in the published code.

Privacy. Rows are shortened, moved towards zero to the grid 2**-20 (a norm of at most 1 stays so)
and summed in integers; the noise is discrete Gaussian on the grid of the sums, from the operating
system's entropy. The coefficients are post-processing of the released sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from dpreg.arrays import Floats, Objects
from dpreg.errors import ArgumentError
from dpreg.estimation.constants import ConstantsPrivacy, privacy_of_constants
from dpreg.estimation.scaling import as_floats, shorten
from dpreg.moments import Moments, accumulate
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.mechanisms.additive import gaussian_noise
from dpreg.privacy.seeded import NOT_PRIVATE
from dpreg.privacy.stability import Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

__all__ = ["PerturbedFit", "adassp", "fit_sums", "release_sums", "ssp", "sums_of", "to_ball"]


_RHO: Final = 0.05  # by definition: of AdaSSP


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PerturbedFit:
    """Coefficients from perturbed sufficient statistics; released numbers only.

    Parameters
    ----------
    params : (d,) array
        For the scaled columns; `RowScaling.unstandardise` maps them back.
    method, noise : str
    ridge : float
        What was added to the diagonal besides the noise: AdaSSP's lambda, 0 for SSP.
    min_eigenvalue : float or None
        AdaSSP's released lower bound for the least eigenvalue.
    sigma : float
        Scale of the noise.
    privacy : ConstantsPrivacy
        The claim, and the exact (eps, delta) that the constants give.
    seeded : bool
        Whether the noise came from a seeded generator: then nothing is private.
    """

    params: Floats
    method: str
    noise: str
    ridge: float
    min_eigenvalue: float | None
    sigma: float
    privacy: ConstantsPrivacy
    seeded: bool = False

    def __repr__(self) -> str:
        """Show coefficients and claim, stamped where nothing is private."""
        stamp = f"{NOT_PRIVATE}\n" if self.seeded else ""
        return f"{stamp}<PerturbedFit: {self.method}, params={self.params}>\n{self.privacy}"


def ssp(
    x: ArrayLike,
    y: ArrayLike,
    *,
    eps: float | str | Fraction,
    delta: float | str | Fraction,
    noise: str = "analytic",
    neighbors: str = "replace-one",
    contributions: int = 1,
    rng: Generator | None = None,
) -> PerturbedFit:
    """Sufficient-statistics perturbation on arrays that are already scaled.

    Parameters
    ----------
    x : (n, d) array
        Rows of Euclidean norm at most 1 (longer ones are shortened); a constant column, if any, is
        the caller's.
    y : (n,) array
        In [-1, 1] (cut).
    eps, delta : number
        The claim; see `privacy` of the result for what "wang" and "classical" give.
    noise : {"analytic", "wang", "classical"}
    neighbors : {"replace-one", "add-remove"}
    contributions : int
    rng : numpy Generator, optional
        For seeded runs that are **not private**.
    """
    privacy = privacy_of_constants(
        "ssp", noise, eps=eps, delta=delta, neighbors=neighbors, contributions=contributions
    )
    return fit_sums(_exact_sums(x, y), privacy, rng)


def adassp(
    x: ArrayLike,
    y: ArrayLike,
    *,
    eps: float | str | Fraction,
    delta: float | str | Fraction,
    noise: str = "analytic",
    neighbors: str = "replace-one",
    contributions: int = 1,
    rng: Generator | None = None,
) -> PerturbedFit:
    """Adaptive sufficient-statistics perturbation on arrays that are already scaled.

    The arguments are those of `ssp`.
    """
    privacy = privacy_of_constants(
        "adassp", noise, eps=eps, delta=delta, neighbors=neighbors, contributions=contributions
    )
    return fit_sums(_exact_sums(x, y), privacy, rng)


def _ssp(
    gram: Objects, cross: Objects, privacy: ConstantsPrivacy, rng: Generator | None
) -> PerturbedFit:
    noisy_gram = _noisy_gram(gram, privacy, rng)
    noisy_cross = _noisy(cross, privacy.sigma, rng)
    if privacy.noise == "wang":
        noisy_gram = noisy_gram + np.eye(len(cross))
    params = _solve(noisy_gram, noisy_cross)
    return PerturbedFit(
        params, "ssp", privacy.noise, 0.0, None, privacy.sigma, privacy, rng is not None
    )


def fit_sums(
    sums: tuple[Objects, Objects], privacy: ConstantsPrivacy, rng: Generator | None = None
) -> PerturbedFit:
    """Fit from exact sums, by the method whose constants `privacy` holds.

    Parameters
    ----------
    sums : pair of (d, d) and (d,) object arrays
        X'X and X'y as integers in units of 2**-40, of rows that `to_ball` made.
    privacy : ConstantsPrivacy
    rng : numpy Generator, optional
        For seeded runs that are **not private**.
    """
    return {"ssp": _ssp, "adassp": _adassp}[privacy.method](*sums, privacy, rng)


def release_sums(moments: Moments, part: Part, *, method: str, noise: str) -> PerturbedFit:
    """Fit from the exact moments of rows that `to_ball` made, at the cost of a part."""
    protection = part.protection
    bound = Stability(protection=protection, mechanisms=("gaussian",))
    cost = part.draw("gaussian", bound, moments.group)
    privacy = privacy_of_constants(
        method,
        noise,
        eps=cost.eps,
        delta=cost.delta,
        neighbors=protection.neighbors,
        contributions=protection.contributions,
    )
    return fit_sums(sums_of(moments), privacy, part.rng)


def _adassp(
    gram: Objects, cross: Objects, privacy: ConstantsPrivacy, rng: Generator | None
) -> PerturbedFit:
    sigma, noise, claimed = privacy.sigma, privacy.noise, float(privacy.delta)
    size = len(cross)
    unit = np.eye(size) if noise == "wang" else np.zeros((size, size))
    classical, wang = 2 * math.log(3.75 / claimed), math.log(6 / claimed)  # by definition
    square = classical if noise == "classical" else wang
    # Eigenvalues of an exact matrix, moved to the grid of the sums.
    least = float(np.linalg.eigvalsh(gram.astype(float) / CELL_UNITS + unit)[0]) if size else 0.0
    least_units = np.array([round(least * CELL_UNITS)], dtype=object)
    least_noisy = float(_noisy(least_units, sigma, rng)[0])
    bound = max(0.0, least_noisy - sigma * math.sqrt(square))
    spread = sigma * math.sqrt(size * math.log(2 * size**2 / _RHO)) if size else 0.0
    ridge = max(0.0, spread - bound)
    noisy_cross = _noisy(cross, sigma, rng)
    noisy_gram = _noisy_gram(gram, privacy, rng) + unit + ridge * np.eye(size)
    return PerturbedFit(
        _solve(noisy_gram, noisy_cross),
        "adassp",
        noise,
        ridge,
        bound,
        sigma,
        privacy,
        rng is not None,
    )


def to_ball(x: ArrayLike, y: ArrayLike) -> Floats:
    """Return rows (1, x, y), shape (n, d + 2), in the unit ball and on the grid of the sums."""
    rows, response = as_floats(x, "x", 2), as_floats(y, "y", 1)
    if response.shape != rows.shape[:1]:
        raise ArgumentError("x and y must have as many rows")
    rows, response = shorten(rows, response)
    z = np.column_stack([np.ones(len(rows)), rows * (1 - 2.0**-40), response])
    return np.asarray(np.trunc(z * 2.0**20) / 2.0**20, dtype=np.float64)


def sums_of(moments: Moments) -> tuple[Objects, Objects]:
    """Return X'X and X'y, as integers in units of 2**-40, from moments of rows (1, x, y)."""
    cells = np.array(moments.cells, dtype=object)
    return cells[1:-1, 1:-1], cells[1:-1, -1]


def _exact_sums(x: ArrayLike, y: ArrayLike) -> tuple[Objects, Objects]:
    """Return X'X and X'y of the rows as they are summed, in units of 2**-40."""
    ball = to_ball(x, y)
    return sums_of(accumulate([ball], ball.shape[1]))


def _noisy(units: Objects, sigma: float, rng: Generator | None) -> Floats:
    """Add discrete Gaussian noise of scale sigma to integers in units of 2**-40."""
    drawn = gaussian_noise(units.size, sigma * CELL_UNITS, rng=rng)
    released = [(int(u) + k) / CELL_UNITS for u, k in zip(units.ravel(), drawn, strict=True)]
    return np.array(released, dtype=float).reshape(units.shape)


def _noisy_gram(gram: Objects, privacy: ConstantsPrivacy, rng: Generator | None) -> Floats:
    """Release X'X in the geometry that the constants were published for."""
    if privacy.noise == "wang" and privacy.method == "ssp":
        return _noisy(gram, privacy.sigma, rng)
    size = len(gram)
    off = privacy.sigma * (math.sqrt(0.5) if privacy.noise == "wang" else 1.0)
    released = np.diag(_noisy(np.diag(gram), privacy.sigma, rng))
    upper = np.triu_indices(size, 1)
    released[upper] = _noisy(gram[upper], off, rng)
    released.T[upper] = released[upper]
    return released


def _solve(matrix: Floats, vector: Floats) -> Floats:
    """Solve, and by least squares where the matrix is singular: nothing here may raise."""
    if not len(vector):
        return np.zeros(0)
    try:
        return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, vector)[0], dtype=np.float64)
