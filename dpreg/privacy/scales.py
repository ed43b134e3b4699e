"""What eps and which scales noise is fitted with.

Tested in `tests/privacy/test_vector_noise.py` and `tests/privacy/test_matrix_laplace.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError

__all__ = ["check_eps", "check_scales"]

_LARGEST: Final = 2**200


def check_eps(eps: Fraction) -> None:
    """Raise ArgumentError unless eps buys any noise."""
    if eps <= 0:
        raise ArgumentError("eps must be positive, and so must each share of it")


def check_scales(*scales: Fraction | int) -> None:
    """Raise ArgumentError for a scale beyond 2**200."""
    if max(scales) > _LARGEST:
        raise ArgumentError(
            "eps is too small, or contributions too many: the noise would have a scale of over "
            "2**200"
        )
