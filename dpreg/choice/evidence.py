"""What one look says of a set of coefficients, with all others integrated out.

With theta = tau z, z ~ N(0, I), and A = tau W^(-1/2) H, the posterior of z is N(m, V), V = (I +
A'A)^-1. A set S of coefficients is t0_S + U'a with a = Q'z, tau T_S' = QU and Q of orthonormal
columns: a is N(0, I) a priori and N(Q'm, Q'VQ) now. Dividing one by the other leaves what this look
says of a,

    J = (Q'VQ)^-1 - I,    J a^ = (Q'VQ)^-1 Q'm,

and beta_S = 0 is a = a0, U'a0 = -t0_S. So

    gain_S = (a^ - a0)' J (a^ - a0)

is chi2 of |S| degrees of freedom if beta_S = 0, whatever the other coefficients are, on average
over their prior: no sparsity is assumed and no model is searched for.

What a choice reads of a released look, and the law of a useless term's gain.

A look at public coordinates beta = t0 + T theta released

    s = H theta + N(0, W),    theta unknown.

A choice takes theta for N(0, tau^2 I) a priori: what the looks before left over is short. W holds
the noise of H times theta, so it depends on tau, and must be averaged over the *same* prior as the
test. A producer therefore makes one `Released` for each of `priors`.

The chance that a test is passed: one tail of a noncentral law.

If beta_S is not 0, gain_S is noncentral chi2 (or F) of |S| degrees, times the noise's chi2_{2 nu} /
(2 nu) under matrix-Laplace noise. It is noncentral by the gain of the same look without noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular
from scipy.special import chdtrc, chndtr, fdtrc, gammaln, ncfdtr

from dpreg.arrays import Floats

MOST_PRIOR: Final = 0.25
"""Most prior variance of theta a direction: one direction then explains a quarter of the residual.
1/4 whatever the dimension finds .85 of 9 terms fewer (`python -m benchmarks.power`, 2026-11)."""
FLAT: Final = 1.0
"""The same where little is supposed: whatever is tested has to pass with this as well."""
_POINTS: Final = 401
_REACH: Final = 12.0  # precision
"""Nodes of a quadrature, and standard deviations of log chi2 on either side that it covers."""


def priors(directions: int) -> tuple[float, float]:
    """Return the variances of theta a direction that a choice supposes, one after the other.

    With 1/d all d directions together explain about as much as the residual. The second supposes
    little: fixed effects in directions that noise hides add to a gain that is right only on average
    over the prior.
    """
    return min(MOST_PRIOR, 1 / max(directions, 1)), FLAT


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """One look's law, averaged over one prior.

    Attributes
    ----------
    start : (p,) array
        t0, the coefficients at theta = 0.
    transform : (p, d) array
        T.
    equations : (m, d) array
        H.
    left : (m,) array
        s.
    covariance : (m, m) array
        W.
    prior : float
        tau^2, that W was averaged over.
    degrees : int or None
        nu of matrix-Laplace noise: a gain is then chi2 times chi2_{2 nu} / (2 nu). None if it is
        Gaussian.
    error_degrees : float or None
        Of an error variance that was estimated with noise: gains are then F. None if it is known.
    """

    start: Floats
    transform: Floats
    equations: Floats
    left: Floats
    covariance: Floats
    prior: float
    degrees: int | None = None
    error_degrees: float | None = None


def gain_tail(gain: float, width: int, degrees: int | None, error_degrees: float | None) -> float:
    """Return the probability that a useless term of `width` columns gains more than `gain`.

    Notes
    -----
    The mean over chi2_{2 nu} is taken by the trapezoidal rule in its logarithm, where it converges
    faster than any power of the step.
    """
    nodes, weights = mixed(degrees)
    if error_degrees is None:
        return float(weights @ chdtrc(width, gain / nodes))
    return float(weights @ fdtrc(width, error_degrees, gain / nodes / width))


@lru_cache(maxsize=256)
def mixed(degrees: int | None) -> tuple[Floats, Floats]:
    """Return nodes and weights of chi2_{2 nu} / (2 nu); of 1 without degrees."""
    if degrees is None:
        return np.ones(1), np.ones(1)
    # log of a Gamma(nu) variable: mean about log nu, variance at most 1/nu + 1/nu^2.
    reach = _REACH * np.sqrt(1 / degrees + 1 / degrees**2)
    logs = np.linspace(-reach - _REACH / degrees, reach, _POINTS)
    weights = np.exp(degrees * (np.log(degrees) + logs - np.exp(logs)) - gammaln(degrees))
    return np.exp(logs), weights / weights.sum()


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


def chance(look: Evidence, gain: float, width: int, level: float) -> float:
    """Return the chance that a test of `width` columns passes.

    Parameters
    ----------
    look : Evidence
        Says what law its noise has.
    gain : float
        What the columns gain without noise.
    width : int
    level : float
        Of the test.
    """
    nodes, weights = mixed(look.degrees)
    wanted = reach(look, width, level) / nodes
    if look.error_degrees is None:
        below = chndtr(wanted, width, gain / nodes)
    else:
        below = ncfdtr(width, look.error_degrees, gain / nodes, wanted / width)
    return float(np.clip(weights @ (1 - np.nan_to_num(below)), 0.0, 1.0))


def reach(look: Evidence, width: int, level: float) -> float:
    """Return the gain from which on a test of so many columns passes at a level."""
    from scipy.optimize import brentq  # slow to import, and seldom needed

    def over(gain: float) -> float:
        return gain_tail(gain, width, look.degrees, look.error_degrees) - level

    if level >= 1:
        return 0.0
    top = 1.0
    while over(top) > 0:
        top *= 2.0
    return float(brentq(over, 0.0, top))
