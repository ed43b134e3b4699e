r"""The chance of one model, for many score vectors at once, in float64.

Simulations ask one thing, the chance of the right model, of thousands of data sets, penalties and
noise scales. For scores S_i, the target r and gaps a_i = t (S_i - S_r), with
p_i = exp(-t (S_i - min S)):

exponential
    P(r) = 1 / sum_i exp(-a_i).
permute-and-flip
    P(r) = p_r int_0^1 prod_{i != r} (1 - u p_i) du. The integrand is a polynomial in u of degree
    K - 1, for which a Gauss-Legendre rule of K/2 nodes is exact up to rounding.
laplace
    P(r) = int f(x) prod_{i != r} H(x - a_i) dx, f Laplace's density and H its survival function.
    With u = exp(x)/2 for x < 0 and v = exp(-x)/2 for x > 0 both halves run over (0, 1/2), and

        H(x - a) = 1 - w if w < 1/2, else 1/(4 w),   w = exp(-a) g,   g = u, or 1/(4 v),

    so no exponential is taken at the nodes. Panels of Gauss-Legendre rules widen from zero. H has
    a kink in its second derivative at w = 1/2, which costs accuracy where rivals' kinks fall
    inside the panels: measured against `dpreg.selection.probabilities`, the absolute error stays
    below 3e-5 (`tests/study/test_batched.py`), a hundredth of any simulation's own error.

Scores are floats here, not the canonical integers: 2**-24 of the loss's range apart at most.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.selection.probabilities import panels

__all__ = ["target_probability"]


_FAR: Final = 700.0
_CHUNK: Final = 512  # work: score vectors worked on together: their nodes stay in the cache
_EDGES: Final = (0.0, 2.0**-9, 2.0**-6, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1)


def target_probability(gaps: Floats, mechanism: str) -> Floats:
    """Return the chance that the target is drawn.

    Parameters
    ----------
    gaps : float64 array, shape (N, K)
        t (S_i - S_target) of each of K models, the target's own zero among them, in column 0.
    mechanism : {"permute-and-flip", "exponential", "laplace"}

    Returns
    -------
    float64 array, shape (N,)
    """
    law = {
        "permute-and-flip": _permute_and_flip,
        "exponential": _exponential,
        "laplace": _laplace,
    }.get(mechanism)
    if law is None:
        raise ArgumentError(f"unknown mechanism {mechanism!r}.")
    out = np.empty(len(gaps))
    for start in range(0, len(gaps), _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = law(np.clip(gaps[part], -_FAR, _FAR))
    return out


def _exponential(gaps: Floats) -> Floats:
    return np.asarray(1.0 / np.exp(-gaps).sum(axis=1))


def _permute_and_flip(gaps: Floats) -> Floats:
    count = gaps.shape[1]
    u, weights = panels((0.0, 1.0), max(2, -(-count // 2)))
    best = gaps.min(axis=1, keepdims=True)
    p = np.exp(-(gaps - best))
    product = np.ones((len(gaps), len(u)))
    for rival in range(1, count):
        column = p[:, rival]
        if column.max() > 1e-18:
            product *= 1.0 - column[:, None] * u
    return np.asarray(p[:, 0] * (product @ weights))


_NODES, _WEIGHTS = panels(_EDGES, 6)  # precision
_SHIFT: Final = np.concatenate([_NODES, 0.5**2 / _NODES])
_MASS: Final = np.concatenate([_WEIGHTS, _WEIGHTS])


def _laplace(gaps: Floats) -> Floats:
    rate = np.exp(-gaps)
    product = np.ones((len(gaps), len(_SHIFT)))
    for rival in range(1, gaps.shape[1]):
        column = rate[:, rival]
        if column.max() * _SHIFT[-1] < 1e-18:
            continue
        w = column[:, None] * _SHIFT
        tail = w > 0.5
        factor = 1.0 - w
        np.divide(0.5**2, w, out=factor, where=tail)
        product *= factor
    return np.asarray(product @ _MASS)
