r"""Products with the inverse of a large symmetric matrix whose small eigenvalues are folded.

For A = V diag(w) V' and a floor l > 0 the folded inverse is f(A) = V diag(1/max(|w|, l)) V'. What
draws of coefficients need of it is f(A) v for a vector v and one draw from N(0, f(A)): neither V
nor f(A) itself.

Where A - l I has a Cholesky factor no eigenvalue lies below l, and f(A) is the inverse: with
A = L L', f(A) v comes from two triangular solves, and L'^-1 z, z standard normal, is the draw.

Else A = Q T Q', with T tridiagonal and Q a product of reflections, and f(A) = Q f(T) Q'. Since

    1/max(|w|, l) = (4/pi) int_0^oo t^2 / [((w - l)^2 + t^2) ((w + l)^2 + t^2)] dt

(by the residues at i|w - l| and i(w + l)), f(T) is a mixture of R_t R_t*, R_t = t (T^2 - s^2)^-1
with s = l - it, and 2 s (T^2 - s^2)^-1 = (T - s)^-1 - (T + s)^-1: tridiagonal solves, each as cheap
as a product with T. So

    f(T) v = (2/(pi l)) int Re[i t (T^2 - s^2)^-1 v] dt,

and the sum of real parts of (4/pi dt)^(1/2) R_t g_t, g_t standard complex normal, is a draw from
N(0, f(T)), as Re(R_t g_t) has covariance R_t R_t*, which is real.

With t = e^u the integrand is analytic for |Im u| < pi/2, so that the trapezoidal rule of step h
errs by a share of about 4 (pi^2/h) exp(-pi^2/h) of f at most, whatever w: 5e-6 for h = 0.6. Below
t = 1e-6 l there is nothing but, at |w| = l, a share of 3e-7. Beyond t = 200 |T| the integrand is
1/t^2, whose sum is added, to within a share of 1e-7 of f. So f comes out to a few millionths of
itself at each eigenvalue; the ends of intervals, order statistics of draws, are good to a tenth or
so of their own length. Where |A|/l leaves the solves too few digits, eigenvectors are taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg.lapack import dormqr, dpotrf, dpotri, dpotrs, dsytrd, dtrtrs, zgtsv

from dpreg.arrays import Floats

__all__ = ["Folded", "positive", "reflected"]

_Complex: TypeAlias = NDArray[np.complex128]

_STEP: Final = 0.6
_LOWEST: Final = 1e-6
_HIGHEST: Final = 200.0
_WIDEST: Final = 1e8
"""|A| / l up to which the solves keep enough digits: they lose as many as it has."""
_WORKING_COLUMNS: Final = 32
"""Columns that LAPACK takes together."""


class Folded(Protocol):
    """f(A) for one matrix A."""

    def both(self, vector: Floats, rng: Generator) -> Floats:
        """Return f(A) v and a draw from N(0, f(A)), shape (2, d)."""

    def inverse(self) -> Floats:
        """Return f(A), shape (d, d)."""


def positive(matrix: Floats, least: float) -> Folded | None:
    """Factor a symmetric matrix, (d, d), where all its eigenvalues are above `least`; else None."""
    lowered = np.array(matrix)
    lowered[np.diag_indices(len(matrix))] -= least
    _, failed = dpotrf(lowered.T, lower=1, overwrite_a=1)
    if failed:
        return None
    lower, failed = dpotrf(matrix.T, lower=1)
    return None if failed else _Positive(lower)


def reflected(matrix: Floats, least: float) -> Folded:
    """Make any symmetric matrix, shape (d, d) with d at least 2, tridiagonal."""
    work = _WORKING_COLUMNS * len(matrix)
    turned, diagonal, beside, lengths, _ = dsytrd(matrix.T, lower=1, lwork=work)
    sides = np.abs(np.concatenate([[0.0], beside, [0.0]]))
    reach = max(float((np.abs(diagonal) + sides[1:] + sides[:-1]).max()), least)
    if reach > _WIDEST * least:
        return _apart(matrix, least)
    reflections = np.asfortranarray(turned[1:, :-1])
    return _Reflected(matrix, least, reach, diagonal, beside, reflections, lengths)


@dataclass(frozen=True, slots=True, eq=False)
class _Positive:
    """A = L L'."""

    lower: Floats

    def both(self, vector: Floats, rng: Generator) -> Floats:
        solved, _ = dpotrs(self.lower, vector, lower=1)
        root, _ = dtrtrs(self.lower, rng.standard_normal(len(vector)), lower=1, trans=1)
        return np.stack([solved, root])

    def inverse(self) -> Floats:
        half, _ = dpotri(self.lower, lower=1)
        half = np.tril(half)
        return np.asarray(half + np.tril(half, -1).T)


@dataclass(frozen=True, slots=True, eq=False)
class _Apart:
    """A = V diag(w) V', w folded."""

    values: Floats
    vectors: Floats

    def both(self, vector: Floats, rng: Generator) -> Floats:
        along = self.vectors.T @ vector / self.values
        drawn = rng.standard_normal(len(vector)) / np.sqrt(self.values)
        return np.asarray(np.stack([along, drawn]) @ self.vectors.T)

    def inverse(self) -> Floats:
        roots = self.vectors / np.sqrt(self.values)
        return np.asarray(roots @ roots.T)


def _apart(matrix: Floats, least: float) -> _Apart:
    values, vectors = np.linalg.eigh(matrix)
    return _Apart(np.maximum(np.abs(values), least), vectors)


@dataclass(frozen=True, slots=True, eq=False)
class _Reflected:
    """A = Q T Q'.

    Attributes
    ----------
    matrix, least
        A and l.
    reach : float
        What no eigenvalue exceeds in modulus.
    diagonal, beside : (d,) and (d - 1,) arrays
        Of T.
    reflections, lengths : (d - 1, d - 1) and (d - 1,) arrays
        Of Q, as LAPACK keeps them.
    """

    matrix: Floats
    least: float
    reach: float
    diagonal: Floats
    beside: Floats
    reflections: Floats
    lengths: Floats

    def both(self, vector: Floats, rng: Generator) -> Floats:
        size = len(vector)
        nodes, beyond = self._nodes()
        normals = rng.standard_normal((size, 2 * len(nodes) + 1))
        turned = self._turn(vector[:, None], "T")[:, 0]
        right = np.empty((2, len(nodes), size), dtype=np.complex128)
        right[0], right[1] = turned, (normals[:, 1::2] + 1j * normals[:, 2::2]).T
        shifts = np.asarray(self.least - 1j * nodes, dtype=np.complex128)
        solved = (self._solved(shifts, right) - self._solved(-shifts, right)) / (
            2 * shifts[:, None]
        )
        found = np.empty((size, 2), order="F")
        steps = _STEP * nodes  # dt
        found[:, 0] = (2 / (math.pi * self.least) * steps * nodes * 1j @ solved[0]).real
        found[:, 1] = (np.sqrt(4 / math.pi * steps) * nodes @ solved[1]).real
        found[:, 0] += beyond * turned
        found[:, 1] += math.sqrt(beyond) * normals[:, 0]
        return np.asarray(self._turn(found, "N").T)

    def inverse(self) -> Floats:
        return _apart(self.matrix, self.least).inverse()

    def _nodes(self) -> tuple[Floats, float]:
        """Return the points t, and what lies beyond the last of them."""
        start = math.log(_LOWEST * self.least)
        count = math.ceil((math.log(_HIGHEST * self.reach) - start) / _STEP) + 1
        nodes = np.exp(start + _STEP * np.arange(count))
        return nodes, 4 / math.pi * _STEP / (float(nodes[-1]) * math.expm1(_STEP))

    def _solved(self, shifts: _Complex, right: _Complex) -> _Complex:
        """Solve (T - shift) x = right for each shift; right is (2, shifts, d)."""
        size, count = len(self.diagonal), len(shifts)
        beside = np.zeros((count, size), dtype=np.complex128)  # zeros part one shift from the next
        beside[:, :-1] = self.beside
        between = beside.ravel()[:-1]
        diagonal = (self.diagonal - shifts[:, None]).ravel()
        *_, found, _ = zgtsv(between, diagonal, between, right.reshape(2, -1).T, overwrite_d=1)
        return np.asarray(found.T.reshape(2, count, size))

    def _turn(self, columns: Floats, how: str) -> Floats:
        """Return Q or Q' times columns: the first coordinate stays as it is."""
        found = np.array(columns, order="F")
        work = _WORKING_COLUMNS * max(2, found.shape[1])
        found[1:], _, _ = dormqr("L", how, self.reflections, self.lengths, found[1:], work)
        return found
