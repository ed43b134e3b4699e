"""Exact floors of real random numbers: from bits to balls to integers.

A continuous mechanism whose released value is floor(x + noise), x an integer, needs no discrete law
of its own: floor(x + noise) = x + floor(noise) is a function of what the continuous mechanism
releases. It needs floor(noise) drawn with *exactly* its law. Here that is done as follows.

*Statement.* `floors` returns the floors of real functions of independent uniform numbers on (0, 1),
with exactly their joint law.

*Proof.* A uniform number is an infinite string of fair bits. The first b bits of each are drawn,
and say that the number lies in a ball of radius 2**-(b+1). The functions are evaluated on these
balls in ball arithmetic (Arb), which returns balls that hold the true values, whatever the
precision. If every ball lies between two neighbouring integers all floors are decided. If not,
*more bits of the same numbers* are drawn and the evaluation is repeated. Nothing is drawn again and
nothing is rejected, so stopping does not change the law. A value that is an integer, the only case
in which this would not end, has probability 0 for functions of a continuous law. QED

No floats are involved. With `bits` 48 more than a value has before its binary point, a second round
happens about once in 2**20 draws of a hundred thousand floors.

Normal numbers are those of Box and Muller (1958): (-2 ln u)^(1/2) times the cosine and the sine of
2 pi v, u and v uniform, are two independent ones.

Exact draws of the floored L2 K-norm mechanism: noise for vectors at pure eps.

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

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from flint import arb, ctx

if TYPE_CHECKING:
    from numpy.random import Generator

Bits = Callable[[int], int]
"""bits(b): an integer of b fair bits."""

SPARE_BITS: Final = 48
"""Bits drawn at first beyond those before the binary point."""

_GUARD: Final = 30


def floors(
    formula: Callable[[list[arb]], Sequence[arb]],
    count: int,
    *,
    bits: int,
    source: Bits | None = None,
) -> list[int]:
    """Return the exact floors of `formula` at `count` uniform numbers (see the module).

    Parameters
    ----------
    formula : callable
        Takes balls that hold the uniform numbers; returns balls that hold the values. Called again
        with narrower balls of the same numbers until all floors are decided.
    count : int
        How many uniform numbers.
    bits : int
        Bits of each that are drawn at first.
    source : callable, optional
        Fair bits; the operating system's by default, another one in tests.
    """
    source = source or secrets.randbits
    known = [source(bits) for _ in range(count)]
    while True:
        with ctx.workprec(bits + _GUARD):
            unit, half = arb((1, -bits)), arb((1, -bits - 1))
            first = arb(half, half)  # the ball of the numbers whose bits are all 0
            # Exact: there are bits to spare. The list is the formula's own, to do with as it likes.
            values = formula([number * unit + first for number in known])
            found = [value.floor().unique_fmpz() for value in values]
        decided = [int(floor) for floor in found if floor is not None]
        if len(decided) == len(found):
            return decided
        known = [number << bits | source(bits) for number in known]
        bits *= 2


def normals(uniforms: list[arb]) -> list[arb]:
    """Turn the numbers of a list, an even count of them, into independent standard normal ones.

    In their place: a wide model has hundreds of thousands of them, and room for one set is enough.
    """
    for place in range(0, len(uniforms), 2):
        radius = (-2 * uniforms[place].log()).sqrt()
        sine, cosine = (2 * uniforms[place + 1]).sin_cos_pi()
        uniforms[place] = radius * cosine
        uniforms[place + 1] = radius * sine
    return uniforms


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
    assert scale >= 1
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
