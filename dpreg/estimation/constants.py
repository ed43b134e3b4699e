r"""The noise constants of SSP and AdaSSP, and the exact (eps, delta) that each really provides.

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

Tested in `tests/estimation/test_perturbed.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError, shown
from dpreg.privacy.budget import exact
from dpreg.privacy.gaussian import analytic_delta, analytic_epsilon, discrete_sigma
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import check_contributions, check_neighbors

__all__ = [
    "METHODS",
    "MOST_CELLS",
    "PERTURBED_NOISES",
    "ConstantsPrivacy",
    "noise_sigma",
    "privacy_of_constants",
]

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

    Parameters
    ----------
    method, noise, neighbors : str
    contributions : int
    eps, delta : Fraction
        What the constants claim.
    sigma : float
    whole_eps : float
        Exact eps of the whole release at the claimed delta, rounded upwards.
    whole_delta : float
        Exact delta of the whole release at the claimed eps, rounded upwards.
    parts : tuple of (str, float, float)
        For each part, where eps is split: its name, the delta that a share eps/parts, delta/parts
        promises, and the exact delta at eps/parts. Empty for "analytic", which splits nothing.
    """

    method: str
    noise: str
    neighbors: str
    contributions: int
    eps: Fraction
    delta: Fraction
    sigma: float
    whole_eps: float
    whole_delta: float
    parts: tuple[tuple[str, float, float], ...]

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


def noise_sigma(
    method: str,
    noise: str,
    *,
    eps: Fraction,
    delta: Fraction,
    neighbors: str,
    contributions: int,
) -> float:
    """Return sigma for a method and a choice of constants (the module's table)."""
    _check(method, noise, eps, delta, contributions)
    e, d = float(eps), float(delta)
    squared = _whole_squared(method, neighbors, contributions)
    if noise == "analytic":
        units = math.ceil(squared * CELL_UNITS**2)
        return discrete_sigma(units, _MOST_CELLS, eps, delta) / CELL_UNITS
    if noise == "wang":
        return math.sqrt(math.log((6 if method == "adassp" else 4) / d)) / (  # by definition
            e / 3 if method == "adassp" else e
        )
    parts = 3 if method == "adassp" else 2
    return math.sqrt(2 * math.log(1.25 * parts / d)) / (e / parts)  # by definition


def privacy_of_constants(
    method: str,
    noise: str,
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
    noise : {"wang", "classical", "analytic"}
    eps, delta : number
        What is claimed.
    neighbors : {"replace-one", "add-remove"}
    contributions : int

    Returns
    -------
    ConstantsPrivacy
    """
    eps, delta = exact(eps, "eps"), exact(delta, "delta")
    sigma = noise_sigma(
        method, noise, eps=eps, delta=delta, neighbors=neighbors, contributions=contributions
    )
    ratio = math.sqrt(_whole_squared(method, neighbors, contributions)) / sigma
    ratio *= 1 + 2.0**-50
    whole = analytic_epsilon(ratio, delta), analytic_delta(ratio, eps)
    names = list(_PARTS[neighbors])[: 3 if method == "adassp" else 2]
    share = len(names)
    if noise == "analytic":  # proved by its calibration, discrete noise included
        whole, names = (float(eps), float(delta)), []
    return ConstantsPrivacy(
        method=method,
        noise=noise,
        neighbors=neighbors,
        contributions=contributions,
        eps=eps,
        delta=delta,
        sigma=sigma,
        whole_eps=whole[0],
        whole_delta=whole[1],
        parts=tuple(
            (
                name,
                float(delta) / share,
                analytic_delta(contributions * float(_PARTS[neighbors][name]) / sigma, eps / share),
            )
            for name in names
        ),
    )


def _whole_squared(method: str, neighbors: str, contributions: int) -> Fraction:
    """Return the squared L2 sensitivity of all parts together, each with the same sigma."""
    squared = _TOGETHER[check_neighbors(neighbors)]
    if method == "adassp":
        squared += (1 + EIGEN_SLACK) ** 2
    return check_contributions(contributions) ** 2 * squared


def _check(method: str, noise: str, eps: Fraction, delta: Fraction, contributions: int) -> None:
    """Reject unknown names, and budgets without delta."""
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {METHODS}, got {shown(method)}")
    if noise not in PERTURBED_NOISES:
        raise ArgumentError(f"noise must be one of {PERTURBED_NOISES}, got {shown(noise)}")
    if eps <= 0 or not 0 < delta < 1:
        raise ArgumentError(f"{method} needs eps > 0 and 0 < delta < 1")
    check_contributions(contributions)
