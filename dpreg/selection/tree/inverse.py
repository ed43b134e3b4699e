r"""The floating-point inverse that bounds rest on, with proved limits of what it gets wrong.

For the inequality (1) and the notation see `dpreg.selection.tree.bounds`.

**Rounding.** With u = 2**-53, a sum of m products computed in any order (fused or not) errs by at
most 1.01 m u sum |x_i y_i| (Higham 2002, 3.1, for m u < 0.01); a conventional matrix product does
so cell by cell. The constants below use 2u = 2**-52 and m + 8 in place of u and m, which covers
the rounding of G and b to floats and of the bounds themselves. |G_ij| <= max diag G by
Cauchy-Schwarz. Where a bound is not finite, -2 rho max|b| takes its place (beta'G beta >= 0).

**D.** D = theta / diag(V), theta as large as a Cholesky factorisation of G' - D - shift I succeeds:
a completed floating-point Cholesky proves positive definiteness of the matrix with its diagonal
raised by gamma_{d+1} tr (Rump 2006, Theorem 2.3). If a model of a cell must leave out `count` of
the free units, the `count` smallest sums of D_j beta0_j^2 over a unit may be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats

__all__ = ["TWO_U", "UP", "Inverse", "diagonal_minorant", "invert"]


TWO_U: Final = 2.0**-52
UP: Final = 1.0 + 2.0**-30


@dataclass(frozen=True, slots=True)
class Inverse:
    """V, the symmetric floating-point inverse of G', and what errors it can cause.

    Attributes
    ----------
    matrix, beta : float arrays, (d, d) and (d,)
        V, and V b refined once.
    base : float
        At most a0 = -beta'G'beta - lambda rho^2.
    rho : float
    norm, max : float
        At least every column's l1 norm in V, and its largest modulus.
    beta_norm, beta_max : float
        At least |beta|_1, and its largest modulus.
    off : float
        e: at least max |G'V - I|.
    residual : float
        At least max |b - G'beta|.
    """

    matrix: Floats
    beta: Floats
    base: float
    rho: float
    norm: float
    max: float
    beta_norm: float
    beta_max: float
    off: float
    residual: float

    def error(self, norm: Floats | float, terms: int) -> Floats:
        """Return err(|c|_1) for a c of so many terms."""
        bilinear = 2 * self.rho * (self.residual + self.off * norm)
        bilinear += self.off * norm * (2 * self.beta_norm + self.norm * norm)
        rounding = (2 * terms + 16) * TWO_U * norm * (2 * self.beta_max + self.max * norm)
        return np.asarray(UP * (bilinear + rounding) + 4 * TWO_U * abs(self.base))


def invert(gram: Floats, cross: Floats, rho: float, largest: float, loss: float) -> Inverse:
    """Invert G', whose diagonal is positive and at most `largest`; never raises.

    `loss` is lambda rho^2, what the ridge costs a bound.
    """
    try:
        matrix = np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        matrix = np.diag(1.0 / gram.diagonal())
    matrix = (matrix + matrix.T) / 2
    beta = matrix @ cross
    beta += matrix @ (cross - gram @ beta)
    norm = float(np.abs(matrix).sum(axis=0).max(initial=0.0)) * UP
    beta_norm = float(np.abs(beta).sum()) * UP
    slack = (len(cross) + 8) * TWO_U
    off = np.abs(gram @ matrix - np.eye(len(cross))).max(initial=0.0)
    fitted = gram @ beta
    cross_max = 2 * float(np.abs(cross).max(initial=0.0)) * UP
    return Inverse(
        matrix=matrix,
        beta=beta,
        base=-float(beta @ fitted) - loss - 2 * slack * largest * beta_norm**2,
        rho=rho,
        norm=norm,
        max=float(np.abs(matrix).max(initial=0.0)),
        beta_norm=beta_norm,
        beta_max=float(np.abs(beta).max(initial=0.0)),
        off=float(off + slack * (largest * norm + 1.0)) * UP,
        residual=float(np.abs(cross - fitted).max(initial=0.0))
        + slack * (largest * beta_norm + cross_max),
    )


def diagonal_minorant(gram: Floats, inverse: Floats, largest: float) -> Floats:
    """Return D >= 0, diagonal, with G' - D certainly positive semidefinite."""
    d = len(gram)
    if d == 0 or not np.isfinite(inverse).all():
        return np.zeros(d)
    scale = 1.0 / np.maximum(inverse.diagonal(), 1.0 / largest)
    root = np.sqrt(scale)
    standard = inverse * np.outer(root, root)
    vector = np.full(d, d**-0.5) + np.cos(np.arange(d)) / d
    top = 1.0
    for _ in range(60):
        vector = standard @ vector
        top = float(np.linalg.norm(vector))
        vector /= top
    theta = 0.98 / top
    shift = 8 * (d + 8) * TWO_U * (float(gram.trace()) + d * largest)
    for _ in range(6):
        lowered = gram.copy()
        lowered[np.diag_indices(d)] -= theta * scale * UP + shift
        try:
            np.linalg.cholesky(lowered)
        except np.linalg.LinAlgError:
            theta *= 0.8
        else:
            return theta * scale
    return np.zeros(d)
