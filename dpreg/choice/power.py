r"""The chance that a test is passed: one tail of a noncentral law.

If beta_S is not 0, gain_S is noncentral chi2 (or F) of |S| degrees, times the noise's chi2_{2 nu} /
(2 nu) under matrix-Laplace noise. It is noncentral by the gain of the same look without noise.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chndtr, ncfdtr

from dpreg.choice.evidence import Evidence
from dpreg.choice.released import gain_tail, mixed

__all__ = ["chance", "reach"]


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
