r"""Successes of several trials: what the look at the box says of them. Released numbers alone.

With y successes of m trials, p = E y / E m, the cells of y are replaced by those of y - p m: were m
independent of the columns, its covariance with them is E m times that of the probability, and
otherwise nearly so. What is left is as for one trial, E m times as large.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.family import Binomial
from dpreg.families.rows import Trials

__all__ = ["of_trials"]

_LEAST: Final = 1e-4


def of_trials(
    cells: Floats, sd: Floats, trials: Trials, response: tuple[float, float]
) -> tuple[Binomial, float, Floats, Floats]:
    """Return the family, the mean of the response, and the box without the trials' part.

    Parameters
    ----------
    cells, sd : (D, D) arrays
        Released moments of (1, x, y), the trials among x, and the noise in them.
    trials : Trials
    response : (float, float)
        The response is the first plus the second times its stored cell.
    """
    count = max(float(cells[0, 0]), 1.0)
    means = np.clip(cells[0] / count, -1.0, 1.0)
    usual = trials.scale[0] + trials.scale[1] * float(means[trials.column])
    usual = min(max(usual, 1.0), trials.most)
    share = (response[0] + response[1] * float(means[-1])) / usual
    share = min(max(share, _LEAST), 1 - _LEAST)
    part = share * trials.scale[1] / response[1]
    turn = np.eye(len(cells))
    turn[-1, trials.column] = -part
    variances = turn**2 @ sd**2 @ (turn**2).T
    return Binomial(usual), share * usual, turn @ cells @ turn.T, np.sqrt(variances)
