"""Four regression data sets of the AdaSSP benchmarks, from the folder that DPREG_DATA names.

The files are centred, so bounds are the codebooks' ranges less the published means, rounded
outwards. "elevators" has no codebook: its bounds are powers of ten times 1, 2 or 5 that hold the
published values, which is not how to treat confidential rows.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from dpreg.datasets import Dataset
from dpreg.schema import Schema

# In the order of the file's columns, the response last.
# fmt: off
BOUNDS: dict[str, tuple[tuple[float, float], ...]] = {
    # frequency 200-20,000 Hz, angle, chord, velocity, thickness; sound level in dB
    "airfoil": (
        (-3_000, 18_000), (-7, 16), (-0.15, 0.2), (-20, 21), (-0.02, 0.06), (-25, 20),
    ),
    # year, month, day, season, year, month, hour, holiday, weekday, working day, weather 1-4,
    # four shares of a maximum, casual and registered riders; log of the count
    "bike": (
        (-1, 1), (-6, 6), (-15, 16), (-2, 2), (-1, 1), (-6, 6), (-12, 12), (-1, 1), (-4, 4),
        (-1, 1), (-1, 3), (-1, 1), (-1, 1), (-1, 1), (-1, 1), (-50, 350), (-200, 800), (-5, 3),
    ),
    # seven ingredients in kg per cubic metre, age up to a year; strength in MPa
    "concrete": (
        (-200, 300), (-100, 300), (-60, 150), (-60, 70), (-10, 30), (-200, 200), (-200, 250),
        (-50, 320), (-40, 50),
    ),
    "elevators": (
        (-1_000, 1_000), (-200, 200), (-2, 2), (-1, 1), (-5, 5), (-20, 20), (-100, 100),
        (-0.1, 0.1), (-10, 10), (-0.005, 0.005), (-0.005, 0.005), (-0.005, 0.005),
        (-0.005, 0.005), (-0.001, 0.001), (-0.0002, 0.0002), (-0.001, 0.001),
        (-0.0002, 0.0002), (-0.005, 0.005), (-2, 2),
    ),
}
# fmt: on


def load_uci(name: str) -> Dataset:
    """Load "airfoil", "bike", "concrete" or "elevators": regressors x1, x2, ... and y."""
    bounds = BOUNDS[name]
    regressors = [f"x{i}" for i in range(1, len(bounds))]
    columns = [*regressors, "y"]
    path = Path(os.environ["DPREG_DATA"]) / f"uci_{name}.csv.gz"
    return Dataset(
        data=pd.read_csv(path, header=None, names=columns),
        schema=Schema(dict(zip(columns, bounds, strict=True))),
        formula=f"y ~ {' + '.join(regressors)}",
        source="UCI Machine Learning Repository; elevators: Luis Torgo's regression data sets",
    )
