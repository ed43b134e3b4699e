r"""Concentrated differential privacy (rho-zCDP) and its conversion to (eps, delta).

A pure eps mechanism is (eps^2/2)-zCDP, a bounded-range one (the exponential mechanism)
(eps^2/8)-zCDP (Bun and Steinke 2016; Cesar and Rogers 2021); rhos add under adaptive composition.

The conversion is that of Canonne, Kamath and Steinke (2020), Corollary 13: rho-zCDP implies
(eps, delta)-DP with

    delta = inf_{a > 1} exp((a - 1)(a rho - eps)) (1 - 1/a)^a / (a - 1).

Every a > 1 gives a valid pair, so a is looked for in floats, where a poor one costs tightness and
never privacy, and the bound is then evaluated at that a in ball arithmetic and rounded upwards.

References
----------
Bun, M. and Steinke, T. (2016). Concentrated differential privacy. TCC.
Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy.
Cesar, M. and Rogers, R. (2021). Bounding, concentrating, and truncating. ALT.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from flint import ctx
from scipy.optimize import minimize_scalar

from dpreg.errors import ArgumentError
from dpreg.privacy.balls import ball, round_up

_BITS: Final = 256


def pure_to_rho(eps: Fraction) -> Fraction:
    """Return the rho of a mechanism that is eps-DP: eps^2 / 2."""
    return eps**2 / 2


def range_to_rho(eps: Fraction) -> Fraction:
    """Return the rho of a mechanism of eps-bounded range: eps^2 / 8."""
    return eps**2 / 8


def rho_to_delta(rho: Fraction, eps: Fraction) -> Fraction:
    """Return a delta, rounded upwards, at which rho-zCDP is (eps, delta)-DP; at most 1."""
    if rho < 0 or eps < 0:
        raise ArgumentError("rho and eps must not be negative")
    if rho == 0:
        return Fraction(0)

    def log_delta(a: float) -> float:
        rest = a * math.log1p(-1 / a) - math.log(a - 1)
        return (a - 1) * (a * float(rho) - float(eps)) + rest

    best = ball(_least(log_delta))
    with ctx.workprec(_BITS):
        power = (best - 1) * (best * ball(rho) - ball(eps)) + best * (1 - 1 / best).log()
        return min(round_up(power.exp() / (best - 1)), Fraction(1))


def rho_to_eps(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an eps, rounded upwards, at which rho-zCDP is (eps, delta)-DP; at least 0."""
    if rho < 0 or not 0 < delta < 1:
        raise ArgumentError("rho must not be negative, and delta must lie between 0 and 1")
    if rho == 0:
        return Fraction(0)

    def eps(a: float) -> float:
        rest = (-math.log(float(delta)) - math.log(a)) / (a - 1)
        return a * float(rho) + math.log1p(-1 / a) + rest

    best = ball(_least(eps))
    with ctx.workprec(_BITS):
        rest = (-ball(delta).log() - best.log()) / (best - 1)
        return max(round_up(best * ball(rho) + (1 - 1 / best).log() + rest), Fraction(0))


def _least(function: object) -> Fraction:
    """Return an order a in (1, 10^12) at which a smooth function is about least."""
    assert callable(function)
    found = minimize_scalar(
        lambda u: function(1 + math.exp(u)), bounds=(-12.0, 27.0), method="bounded"
    )
    return 1 + Fraction(math.exp(float(found.x)))
