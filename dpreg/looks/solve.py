"""Linear algebra on released numbers, which may be anything that noise makes of them.

Nothing here raises for any float64 array: what is not finite is replaced by large numbers, and
what has no inverse gets one of its eigenvalues that stand above rounding.

Tested in `tests/looks/test_law.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats

__all__ = ["eigen", "held", "inverse", "pseudo"]

_LARGEST: Final = 1e100  # precision: products of a few such numbers stay in float64
_ROUNDING: Final = 1e-14  # precision


def held(number: float, least: float = 1 / _LARGEST) -> float:
    """Return a number between `least` and 1e100; NaN counts as the least."""
    return min(max(number, least), _LARGEST) if number == number else least


def _finite(matrix: Floats) -> Floats:
    return np.clip(np.nan_to_num(matrix, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST)


def eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    finite = _finite(matrix)
    values, vectors = np.linalg.eigh((finite + finite.T) / 2)
    return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive semidefinite matrix, by its correlations."""
    finite = _finite(matrix)
    scale = np.sqrt(np.maximum(np.diag(finite), 1 / _LARGEST))
    both = np.outer(scale, scale)
    values, vectors = eigen(finite / both)
    floor = _ROUNDING * max(float(values[-1]), 1.0) if len(values) else 1.0
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T / both, dtype=np.float64)


def pseudo(matrix: Floats) -> Floats:
    """Return the pseudo-inverse of a matrix."""
    return np.asarray(np.linalg.pinv(_finite(matrix)), dtype=np.float64)
