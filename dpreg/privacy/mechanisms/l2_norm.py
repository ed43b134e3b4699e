r"""Exact draws of the floored L2 K-norm mechanism: noise for vectors at pure eps.

*Statement.* If neighbours' integer vectors differ by at most D in Euclidean length, releasing
floor(x + V), V in R^d with density proportional to exp(-|V|/b), b >= D/eps, is eps-DP (Hardt and
Talwar 2010; Chaudhuri, Monteleoni and Sarwate 2011).

*Proof.* |V - s| <= |V| + |s| gives density ratios of at most exp(|s|/b) <= exp(eps) for any shift s
between neighbours; floor(x + V) = x + floor(V), x an integer vector, is a function of x + V.

*Sampler.* |V| has density proportional to r^(d-1) exp(-r/b): b times the sum of d standard
exponentials, -ln of uniforms. The direction is uniform: a vector of standard normals over its
length. The floors are decided exactly (`dpreg.privacy.mechanisms.floors`).

*Variance.* E|V|^2 = b^2 d (d + 1), so every cell has variance (d + 1) b^2; cells are uncorrelated.
For d = 1 it is Laplace of scale b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from flint import arb

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms.floors import SPARE_BITS, Bits, floors, normals

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["l2_norm_noise", "l2_norm_variance"]


def l2_norm_noise(
    size: int,
    scale: int,
    *,
    rng: Generator | None = None,
    source: Bits | None = None,
) -> list[int]:
    """Draw floor(V), V in R^size with density proportional to exp(-|V|/scale).

    Parameters
    ----------
    size : int
        d, at least 1.
    scale : int
        b, at least 1: D/eps in integer units, rounded upwards.
    rng : numpy Generator, optional
        For reproducible runs that are **not private** (floats).
    source : callable, optional
        Fair bits, for tests; the operating system's by default.
    """
    if size < 1 or scale < 1:
        raise ArgumentError("L2-norm noise needs at least one cell and a scale of at least 1")
    if rng is not None:
        direction = rng.standard_normal(size)
        radius = float(scale) * rng.gamma(size)
        return [int(cell) for cell in np.floor(radius * direction / np.linalg.norm(direction))]
    even = size + size % 2

    def values(uniforms: list[arb]) -> list[arb]:
        direction = normals(uniforms[:even])[:size]
        length, radius = arb(0), arb(0)
        for cell in direction:
            length += cell * cell
        for uniform in uniforms[even:]:
            radius -= uniform.log()
        stretch = scale * radius / length.sqrt()
        return [stretch * cell for cell in direction]

    return floors(values, even + size, bits=SPARE_BITS + scale.bit_length(), source=source)


def l2_norm_variance(size: int, scale: int) -> float:
    """Return (d + 1) b^2, the variance of each cell of V."""
    return (size + 1) * float(scale) ** 2
