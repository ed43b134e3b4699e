r"""Shares of rows: where an interval of one is centred, and how far sampling moves it.

The law of a count x of N rows is skew where the share is near 0 or 1, and x (N - x) is then often
0, so that x/N -+ z sqrt(x (N - x)/N)/N covers far too seldom. Agresti and Coull (1998) add two rows
that are inside and two that are not before they compute either: the interval at 95 percent is about
Wilson's, and holds for rare shares too. Privacy noise moves x/N, so its variance is added.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats

__all__ = ["centred_shares", "share_errors"]

_ADDED: Final = 2.0
"""Rows of each kind."""


def centred_shares(shares: Floats, rows: Floats | float) -> Floats:
    """Return the shares that two more rows of each kind would give; released ones end at 0, 1."""
    inside = np.clip(shares, 0.0, 1.0)
    return np.asarray((inside * rows + _ADDED) / (rows + 2 * _ADDED), dtype=np.float64)


def share_errors(shares: Floats, rows: Floats | float) -> Floats:
    """Return standard errors of sampling of released shares of so many rows."""
    centres = centred_shares(shares, rows)
    return np.asarray(np.sqrt(centres * (1 - centres) / (rows + 2 * _ADDED)), dtype=np.float64)
