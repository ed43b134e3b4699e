"""SSP and AdaSSP: regression from noisy sufficient statistics, for comparison and the thesis.

For rows in the unit ball (`dpreg.estimation.scaling`), |x| <= 1 and |y| <= 1:

- **SSP** (Vu and Slavkovic 2009): (X'X + noise)^-1 (X'y + noise). It has no defence against a noisy
  matrix that is almost singular, and its error is then anything: `ssp` is here to show that.
- **AdaSSP** (Wang 2018): releases the least eigenvalue too, as a lower bound
  lmin = max(0, lmin(X'X) + sigma Z - offset), and adds the ridge

      lambda = max(0, sigma sqrt(d log(2 d^2/rho)) - lmin),    rho = 0.05.

  The offset is sigma sqrt(c), c = log(6/delta) or, for "classical", 2 log(3.75/delta).

Noise constants and what they are worth: `dpreg.estimation.perturbed`. With "wang" X'X + I takes
X'X's place, as in the published code.

Privacy. Rows are shortened, moved towards zero to the grid 2**-20 (a norm of at most 1 stays so)
and summed in integers; the noise is discrete Gaussian on the grid of the sums, from the operating
system's entropy. The coefficients are post-processing of the released sums.

The noise constants of SSP and AdaSSP, and the exact (eps, delta) that each really provides.

Rows have |x| <= 1 and |y| <= 1. SSP releases X'X and X'y; AdaSSP also X'X's least eigenvalue. One
sigma serves all parts:

=============  ==========================================  ========================================
noise          SSP                                         AdaSSP
=============  ==========================================  ========================================
``wang``       sqrt(log(4/delta))/eps                      sqrt(log(6/delta))/(eps/3)
``classical``  sqrt(2 log(1.25/(delta/2)))/(eps/2)         sqrt(2 log(3.75/delta))/(eps/3)
``analytic``   least for the release as a whole            the same
=============  ==========================================  ========================================

``wang`` is Wang (2018) with his published code: for AdaSSP an off-diagonal cell has variance
sigma^2/2 (the noise matrix is (Z + Z')/2), for SSP Z is not symmetrised, both of the same geometry:
sum_ij (dA_ij)^2 / sigma^2, the Frobenius norm. ``classical`` is the thesis's Algorithm 3 (Dwork and
Roth's constants), with equal noise on the upper triangle. ``analytic`` spends (eps, delta) exactly,
on all parts together.

Sensitivities, squared
----------------------
A row moves X'X by x x', of Frobenius norm |x|^2 <= 1, and its upper triangle by less; X'y by x y;
the least eigenvalue by at most 1 (Weyl; x x' has eigenvalues 0 and |x|^2).

*Add-remove*: 1 for each part, so 2 for SSP and 3 for AdaSSP.

*Replace-one*, x, y by v, w: X'X and X'y together by at most 4.5, the eigenvalue by at most 1
(-v v' <= x x' - v v' <= x x'). Proof of 4.5: with a = |x|, b = |v|, x'v = a b c,

    f = a^4 + b^4 - 2 (a b c)^2 + a^2 y^2 + b^2 w^2 - 2 y w a b c

is convex in y and in w: take y = -w = +-1, c >= 0, f = a^4 + b^4 - 2 (abc)^2 + a^2 + b^2 + 2 abc.
Its derivative in a, with t = b c, is 4 a^3 + 2 a + 2 t - 4 a t^2, concave in t, at least 0 at
t = 0, and 4 a^3 - 2 a + 2 > 0 at t = 1: f rises with a, likewise with b. At a = b = 1 it is
4 - 2 c^2 + 2 c <= 4.5. Alone, X'X moves by at most sqrt(2), X'y by at most 2.

The eigenvalue is computed in floating point; `EIGEN_SLACK` allows for LAPACK's backward error on
both of two neighbours: with |X'X| <= n at most 2 d 2**-53 n. The slack of 2**-8 covers n d up to
2**44: 10^12 rows of 16 columns, more than can be read in a day. A public number of rows beyond it
is refused. It costs AdaSSP 0.13% more noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Required, TypedDict, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dpreg.arrays import Floats, Objects
from dpreg.errors import ArgumentError, shown
from dpreg.estimation.scaling import paired, shorten
from dpreg.moments import Moments, accumulate
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.gaussian import analytic_delta, analytic_epsilon, discrete_sigma
from dpreg.privacy.mechanisms.additive import gaussian_noise
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import Protection, Stability
from dpreg.privacy.seeded import NOT_PRIVATE

METHODS: Final = ("ssp", "adassp")
PERTURBED_NOISES: Final = ("wang", "classical", "analytic")

EIGEN_SLACK: Final = Fraction(1, 2**8)
"""Added to the eigenvalue's sensitivity for floating point."""
MOST_CELLS: Final = 2**44
"""Rows times columns up to which that slack is proved to be enough."""

_PARTS: Final = {
    "add-remove": {"X'X": 1.0, "X'y": 1.0, "least eigenvalue": 1.0 + EIGEN_SLACK},
    "replace-one": {"X'X": math.sqrt(2), "X'y": 2.0, "least eigenvalue": 1.0 + EIGEN_SLACK},
}
_TOGETHER: Final = {"add-remove": Fraction(2), "replace-one": Fraction(9, 2)}  # proved

_MOST_CELLS: Final = 10**6
"""More cells than a release of up to 1,400 columns has; enters a logarithm."""


@dataclass(frozen=True, slots=True)
class ConstantsPrivacy:
    """What a choice of noise constants really provides, by the exact Gaussian curve.

    Make it with `privacy_of_constants`, and `print` it.

    Parameters
    ----------
    method, noise : str
    eps, delta : Fraction
        What the constants claim.
    neighbors : str
    contributions : int
    """

    method: str
    noise: str
    eps: Fraction
    delta: Fraction
    neighbors: str
    contributions: int

    @property
    def shares(self) -> int:
        """How many parts are released."""
        return 3 if self.method == "adassp" else 2

    @property
    def squared(self) -> Fraction:
        """The squared L2 sensitivity of all parts together, each with the same sigma."""
        least = (1 + EIGEN_SLACK) ** 2 if self.method == "adassp" else 0
        return self.contributions**2 * (_TOGETHER[self.neighbors] + least)

    @property
    def sigma(self) -> float:
        """Scale of the noise (the module's table)."""
        e, d, parts = float(self.eps), float(self.delta), self.shares
        if self.noise == "analytic":
            units = math.ceil(self.squared * CELL_UNITS**2)
            return discrete_sigma(units, _MOST_CELLS, self.eps, self.delta) / CELL_UNITS
        if self.noise == "classical":
            return math.sqrt(2 * math.log(1.25 * parts / d)) / (e / parts)  # by definition
        split = e / 3 if self.method == "adassp" else e
        return math.sqrt(math.log(2 * parts / d)) / split

    @property
    def _ratio(self) -> float:
        return math.sqrt(self.squared) / self.sigma * (1 + 2.0**-50)

    @property
    def whole_eps(self) -> float:
        """Exact eps of the whole release at the claimed delta, rounded upwards."""
        if self.noise == "analytic":  # proved by its calibration, discrete noise included
            return float(self.eps)
        return analytic_epsilon(self._ratio, self.delta)

    @property
    def whole_delta(self) -> float:
        """Exact delta of the whole release at the claimed eps, rounded upwards."""
        if self.noise == "analytic":
            return float(self.delta)
        return analytic_delta(self._ratio, self.eps)

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """Each part's name, the delta that its share of eps promises, and the exact delta there.

        There are none for "analytic", which splits nothing.
        """
        if self.noise == "analytic":
            return ()
        each, sigma = self.shares, self.sigma
        return tuple(
            (
                name,
                float(self.delta) / each,
                analytic_delta(self.contributions * float(moved) / sigma, self.eps / each),
            )
            for name, moved in list(_PARTS[self.neighbors].items())[:each]
        )

    @property
    def holds(self) -> bool:
        """Whether the release as a whole is (eps, delta)-DP as claimed."""
        # What analytic noise claims is proved; delta as a float could be above itself.
        return self.noise == "analytic" or Fraction(self.whole_delta) <= self.delta

    def __str__(self) -> str:
        """Compare the claim with the exact values."""
        lines = [
            f"{self.method}, noise {self.noise!r}, {self.neighbors}: "
            f"claims eps={float(self.eps):g}, delta={float(self.delta):g}; sigma={self.sigma:.6g}",
            f"  whole release: eps={self.whole_eps:.4g} at delta={float(self.delta):g}; "
            f"delta={self.whole_delta:.3g} at eps={float(self.eps):g}"
            f" ({'kept' if self.holds else 'NOT kept'})",
        ]
        for name, promised, true in self.parts:
            kept = "kept" if true <= promised else "NOT kept"
            lines.append(
                f"  {name}: delta={true:.3g} at its share of eps, {promised:.3g} claimed ({kept})"
            )
        return "\n".join(lines)


def privacy_of_constants(
    method: str,
    noise: str = "analytic",
    *,
    eps: float | str | Fraction,
    delta: float | str | Fraction,
    neighbors: str = "replace-one",
    contributions: int = 1,
) -> ConstantsPrivacy:
    """Compute the exact (eps, delta) of a method with a choice of constants; `print` it.

    Parameters
    ----------
    method : {"ssp", "adassp"}
    noise : {"analytic", "wang", "classical"}
    eps, delta : number
        What is claimed.
    neighbors : {"replace-one", "add-remove"}
    contributions : int

    Returns
    -------
    ConstantsPrivacy
    """
    eps, delta = exact(eps, "eps"), exact(delta, "delta")
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {METHODS}, got {shown(method)}")
    if noise not in PERTURBED_NOISES:
        raise ArgumentError(f"noise must be one of {PERTURBED_NOISES}, got {shown(noise)}")
    if eps <= 0 or not 0 < delta < 1:
        raise ArgumentError(f"{method} needs eps > 0 and 0 < delta < 1")
    who = Protection(neighbors, contributions)
    return ConstantsPrivacy(method, noise, eps, delta, who.neighbors, who.contributions)


def constants_of(method: str, noise: str, cost: Budget, protection: Protection) -> ConstantsPrivacy:
    """Compute what a method's constants are worth in a call that pays for them."""
    return ConstantsPrivacy(
        method, noise, cost.eps, cost.delta, protection.neighbors, protection.contributions
    )


_RHO: Final = 0.05  # by definition: of AdaSSP


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PerturbedFit:
    """Coefficients from perturbed sufficient statistics; released numbers only.

    Parameters
    ----------
    params : (d,) array
        For the scaled columns; `RowScaling.unstandardise` maps them back.
    ridge : float
        What was added to the diagonal besides the noise: AdaSSP's lambda, 0 for SSP.
    privacy : ConstantsPrivacy
        The claim, and the exact (eps, delta) that the constants give.
    seeded : bool
        Whether the noise came from a seeded generator: then nothing is private.
    """

    params: Floats
    ridge: float
    privacy: ConstantsPrivacy
    seeded: bool = False

    def __repr__(self) -> str:
        """Show coefficients and claim, stamped where nothing is private."""
        stamp = f"{NOT_PRIVATE}\n" if self.seeded else ""
        return f"{stamp}<PerturbedFit: {self.privacy.method}, params={self.params}>\n{self.privacy}"


class Claim(TypedDict, total=False):
    """Arguments of `privacy_of_constants` beside the method."""

    noise: str
    eps: Required[float | str | Fraction]
    delta: Required[float | str | Fraction]
    neighbors: str
    contributions: int


def ssp(
    x: ArrayLike, y: ArrayLike, *, rng: Generator | None = None, **claim: Unpack[Claim]
) -> PerturbedFit:
    """Sufficient-statistics perturbation on arrays that are already scaled.

    Parameters
    ----------
    x : (n, d) array
        Rows of Euclidean norm at most 1 (longer ones are shortened); a constant column, if any, is
        the caller's.
    y : (n,) array
        In [-1, 1] (cut).
    rng : numpy Generator, optional
        For seeded runs that are **not private**.
    **claim
        eps, delta, noise, neighbors, contributions: as for `privacy_of_constants`. See `privacy` of
        the result for what "wang" and "classical" give.
    """
    return fit_sums(_exact_sums(x, y), privacy_of_constants("ssp", **claim), rng)


def adassp(
    x: ArrayLike, y: ArrayLike, *, rng: Generator | None = None, **claim: Unpack[Claim]
) -> PerturbedFit:
    """Adaptive sufficient-statistics perturbation on arrays that are already scaled.

    The arguments are those of `ssp`.
    """
    return fit_sums(_exact_sums(x, y), privacy_of_constants("adassp", **claim), rng)


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
    (gram, cross), sigma, size = sums, privacy.sigma, len(sums[1])
    unit, ridge = np.eye(size) * (privacy.noise == "wang"), 0.0
    if privacy.method == "adassp":
        ridge = _adaptive_ridge(gram, unit, privacy, rng)
        noisy_cross = _noisy(cross, sigma, rng)
        noisy_gram = _noisy_gram(gram, privacy, rng)
    else:
        noisy_gram = _noisy_gram(gram, privacy, rng)
        noisy_cross = _noisy(cross, sigma, rng)
    params = _solve(noisy_gram + unit + ridge * np.eye(size), noisy_cross)
    return PerturbedFit(params, ridge, privacy, rng is not None)


def release_sums(moments: Moments, part: Part, *, method: str, noise: str) -> PerturbedFit:
    """Fit from the exact moments of rows that `to_ball` made, at the cost of a part."""
    protection = part.protection
    bound = Stability(protection=protection, mechanisms=("gaussian",))
    privacy = constants_of(method, noise, part.draw("gaussian", bound, moments.group), protection)
    return fit_sums(sums_of(moments), privacy, part.rng)


def _adaptive_ridge(
    gram: Objects, unit: Floats, privacy: ConstantsPrivacy, rng: Generator | None
) -> float:
    """Release the least eigenvalue, and return lambda."""
    sigma, noise, claimed = privacy.sigma, privacy.noise, float(privacy.delta)
    size = len(gram)
    classical, wang = 2 * math.log(3.75 / claimed), math.log(6 / claimed)  # by definition
    square = classical if noise == "classical" else wang
    # Eigenvalues of an exact matrix, moved to the grid of the sums.
    least = float(np.linalg.eigvalsh(gram.astype(float) / CELL_UNITS + unit)[0]) if size else 0.0
    least_units = np.array([round(least * CELL_UNITS)], dtype=object)
    least_noisy = float(_noisy(least_units, sigma, rng)[0])
    bound = max(0.0, least_noisy - sigma * math.sqrt(square))
    spread = sigma * math.sqrt(size * math.log(2 * size**2 / _RHO)) if size else 0.0
    return max(0.0, spread - bound)


def to_ball(x: ArrayLike, y: ArrayLike) -> Floats:
    """Return rows (1, x, y), shape (n, d + 2), in the unit ball and on the grid of the sums."""
    rows, response = shorten(*paired(x, y))
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
