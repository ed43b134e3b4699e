"""Slow, independent probabilities of small selections: exact polynomials and ball arithmetic.

Permute-and-flip: the product in the integrand is a polynomial in u; it is multiplied out with
rational coefficients and integrated term by term. Laplace: Arb integrates each piece between
kinks with a certified error.
"""

import itertools
from fractions import Fraction

import flint
import numpy as np


def permute_and_flip(gaps: list[float]) -> list[float]:
    p = [Fraction(float(np.exp(-g))) for g in gaps]
    out = []
    for r, own in enumerate(p):
        product = flint.fmpq_poly([1])
        for i, other in enumerate(p):
            if i != r:
                factor = flint.fmpq(-other.numerator, other.denominator)
                product *= flint.fmpq_poly([1, factor])
        primitive = product.integral()
        value = primitive(flint.fmpq(1)) * flint.fmpq(own.numerator, own.denominator)
        out.append(int(value.p) / int(value.q))
    return out


def laplace(gaps: list[float]) -> list[float]:
    flint.ctx.prec = 200
    half = flint.acb(0.5)
    edges = sorted({-60.0, *gaps, max(gaps) + 60.0})

    def integral(r: int, lo: float, hi: float) -> flint.acb:
        def integrand(x: flint.acb, _analytic: bool) -> flint.acb:
            value = half * (x - gaps[r] if hi <= gaps[r] else gaps[r] - x).exp()
            for i, gap in enumerate(gaps):
                if i != r:
                    past = lo >= gap
                    value *= half * (gap - x).exp() if past else 1 - half * (x - gap).exp()
            return value

        return flint.acb.integral(integrand, lo, hi)

    try:
        return [
            float(
                sum(
                    (integral(r, lo, hi) for lo, hi in itertools.pairwise(edges)),
                    flint.acb(0),
                ).real
            )
            for r in range(len(gaps))
        ]
    finally:
        flint.ctx.prec = 53
