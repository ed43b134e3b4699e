"""How near a private regression comes to the one that it stands for, coefficient by coefficient.

The measures are those of Barrientos, Williams, Snoke and Bowen (2021): same sign, same decision at
5%, overlap of the intervals (Karr, Kohnen, Oganian, Reiter and Sanil 2006), relative width, and the
distance of the estimates in standard errors of the estimate that is not private.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

LEVEL = 0.05


def overlap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Overlap of intervals, one a row: their common part as a share of each, in the mean.

    1 for equal intervals, 0 for disjoint ones. A private interval w times as wide around the same
    centre overlaps by (1 + 1 / w) / 2.
    """
    common = np.minimum(first[:, 1], second[:, 1]) - np.maximum(first[:, 0], second[:, 0])
    common = np.maximum(common, 0.0)
    shares = [common / (ends[:, 1] - ends[:, 0]) for ends in (first, second)]
    return np.asarray(sum(shares) / 2)


def compare(exact: pd.DataFrame, private: pd.DataFrame) -> pd.DataFrame:
    """Compare two tables of coefficients, with columns estimate, se, low, high and p.

    A private table without intervals has NaN there; what needs them is NaN then.
    """
    private = private.loc[exact.index]
    ends = ["low", "high"]
    known = private["se"].notna().to_numpy()
    decided = (exact["p"] < LEVEL) == (private["p"] < LEVEL)
    same = np.sign(exact["estimate"]) == np.sign(private["estimate"])
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame({
            "sign": same.astype(float),
            "decision": decided.astype(float).where(known),
            # What a reader would conclude: significant with this sign, or not significant.
            "conclusion": (decided & (same | (exact["p"] >= LEVEL))).astype(float).where(known),
            "overlap": overlap(exact[ends].to_numpy(), private[ends].to_numpy()),
            "width": (private["high"] - private["low"]) / (exact["high"] - exact["low"]),
            "bias": (private["estimate"] - exact["estimate"]) / exact["se"],
        })  # fmt: skip
