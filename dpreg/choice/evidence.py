r"""What one look says of a set of coefficients, with all others integrated out.

With theta = tau z, z ~ N(0, I), and A = tau W^(-1/2) H, the posterior of z is N(m, V), V = (I +
A'A)^-1. A set S of coefficients is t0_S + U'a with a = Q'z, tau T_S' = QU and Q of orthonormal
columns: a is N(0, I) a priori and N(Q'm, Q'VQ) now. Dividing one by the other leaves what this look
says of a,

    J = (Q'VQ)^-1 - I,    J a^ = (Q'VQ)^-1 Q'm,

and beta_S = 0 is a = a0, U'a0 = -t0_S. So

    gain_S = (a^ - a0)' J (a^ - a0)

is chi2 of |S| degrees of freedom if beta_S = 0, whatever the other coefficients are, on average
over their prior: no sparsity is assumed and no model is searched for.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

from dpreg.arrays import Floats
from dpreg.choice.released import Released, gain_tail

__all__ = ["Evidence"]

_FLAT: Final = 1e-200
"""Least variance of an equation: its square root squared again can be divided by."""
_DEPENDENT: Final = 1e-9
"""A coefficient of which less than this share moves beside the others is one of them."""
_LEARNT: Final = 1e-9
"""Least information, in units of the prior's, that counts: beyond it rounding would be divided."""


class Evidence:
    """The posterior of theta, and what it says of any set of coefficients.

    Parameters
    ----------
    law : Released
    """

    def __init__(self, law: Released) -> None:
        tau = np.sqrt(law.prior)
        scale = np.sqrt(np.maximum(np.diag(law.covariance), _FLAT))
        lower = _factor(law.covariance / np.outer(scale, scale))
        sides = np.column_stack([tau * law.equations, law.left]) / scale[:, None]
        whitened = solve_triangular(lower, sides, lower=True)
        known, y = whitened[:, :-1], whitened[:, -1]
        values, vectors = np.linalg.eigh(known.T @ known)
        self.information = np.maximum(values, 0.0)
        """What the look learned along each direction, in units of the prior's precision."""
        self._half = vectors / np.sqrt(1 + self.information)
        self._mean = self._half @ (self._half.T @ (known.T @ y))
        self._rows, self._start = tau * law.transform, law.start
        self.degrees, self.error_degrees = law.degrees, law.error_degrees

    def gain(self, columns: Iterable[int]) -> float:
        """Return gain_S."""
        told, learnt, _ = self._told(list(columns))
        return float((told**2 / learnt).sum())

    def p(self, columns: Iterable[int]) -> float:
        """Return the p-value of beta_S = 0."""
        at = list(columns)
        return gain_tail(self.gain(at), len(at), self.degrees, self.error_degrees)

    def error(self, column: int) -> float:
        """Return the standard error of one coefficient; infinite if the look says nothing of it."""
        _, learnt, unit = self._told([column])
        return abs(float(unit[0, 0])) / float(np.sqrt(learnt[0])) if len(learnt) else np.inf

    def likeness(self, units: Iterable[Iterable[int]]) -> Floats:
        """Return the largest correlations, (q, q), between the estimates of every two units."""
        bases = [np.linalg.qr((self._rows[list(unit)] @ self._half).T)[0] for unit in units]
        flat = np.hstack(bases).T @ np.hstack(bases)
        ends = np.cumsum([0, *(base.shape[1] for base in bases)])
        places = [slice(*pair) for pair in pairwise(ends)]
        out = np.abs(flat[np.ix_(ends[:-1], ends[:-1])])
        for wide in (i for i, base in enumerate(bases) if base.shape[1] > 1):
            for other, own in enumerate(places):
                largest = np.linalg.norm(flat[places[wide], own], 2)
                out[wide, other] = out[other, wide] = largest
        return np.asarray(np.minimum(out, 1.0))

    def _told(self, at: list[int]) -> tuple[Floats, Floats, Floats]:
        """Return J (a^ - a0) and J in its own coordinates, and the map from these to beta_S."""
        rows, start = self._rows[at], self._start[at]
        length = np.linalg.norm(rows, axis=1)
        moves = length > 0
        if not moves.any():
            return np.zeros(0), np.zeros(0), np.zeros((1, 0))
        length, rows, start = length[moves], rows[moves], start[moves]
        basis, triangle, order = qr((rows / length[:, None]).T, mode="economic", pivoting=True)
        rank = int((np.abs(np.diag(triangle)) > _DEPENDENT).sum())
        basis, triangle, first = basis[:, :rank], triangle[:rank, :rank], order[:rank]
        null = solve_triangular(triangle, -(start / length)[first], trans="T")
        root = basis.T @ self._half
        values, vectors = np.linalg.eigh(root @ root.T)
        values = np.clip(values, np.sqrt(_FLAT), 1.0)
        at_null, now = vectors.T @ null, vectors.T @ (basis.T @ self._mean)
        learnt = 1 / values - 1
        told = (now - at_null) / values + at_null
        seen = learnt > _LEARNT
        return told[seen], learnt[seen], (length[first] * (vectors.T @ triangle)).T[:, seen]


def _factor(correlation: Floats) -> Floats:
    """Return the Cholesky factor of a correlation, with the least ridge that rounding leaves it.

    Released noise can make the matrix singular; whatever it is, this may not raise.
    """
    ridge, unit = 1e-12, np.eye(len(correlation))
    while ridge < len(correlation):
        try:
            return np.asarray(cholesky(correlation + ridge * unit, lower=True), dtype=np.float64)
        except LinAlgError:
            ridge *= 100  # precision
    return unit
