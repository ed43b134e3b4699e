"""Simulated data, for examples at any size. No row describes anyone.

Tested in `tests/datasets/test_datasets.py`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpreg.datasets.dataset import Dataset
from dpreg.errors import ArgumentError, shown
from dpreg.schema import Schema

__all__ = ["make_bay_area"]

# Sales of the nine counties, small ones joined; the first is the reference. Shares, centres and
# price effects (thousand dollars) are made up to look like the region.
_COUNTIES = ("sol", "ala", "cc", "mss", "ns", "sc", "sf")
_SHARES = (0.08, 0.22, 0.19, 0.11, 0.09, 0.25, 0.06)
_LATITUDES = (38.2, 37.7, 37.95, 37.6, 38.4, 37.3, 37.75)
_LONGITUDES = (-122.1, -122.1, -122.0, -122.4, -122.6, -121.9, -122.45)
_EFFECTS = (0.0, 110.0, 70.0, 240.0, 60.0, 170.0, 260.0)


def make_bay_area(n: int = 235_760, *, seed: int = 0) -> Dataset:
    """SIMULATE house sales with the columns of the paper's Bay Area data. No row is a real sale.

    Lei, Charest, Slavkovic, Smith & Fienberg (2018) select variables among 235,760 sales of
    2003 to 2006, which are not public. This draws rows with the same columns and bounds from a
    made-up linear model, so that examples and timings have something of that size and shape.
    Conclusions about house prices cannot be drawn from it.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int
        Of NumPy's generator. The same seed gives the same rows.

    Returns
    -------
    Dataset
        ``price`` (thousand dollars, 105 to 905), ``bsqft`` and ``lsqft`` (house and lot, square
        feet), ``time`` (year of sale), ``lat``, ``long``, ``age`` (years), ``nbr`` (bedrooms) and
        ``county`` (text, seven levels). The suggested formula has thirteen columns besides the
        intercept, so 8,192 models by column.

    Examples
    --------
    >>> make_bay_area(1000)
    <Dataset: 1,000 simulated rows, 9 columns. SIMULATED house sales, not real data: ...>
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ArgumentError(f"n must be a number of rows, 0 or more; got {shown(n)}")
    rng = np.random.default_rng(seed)
    county = rng.choice(len(_COUNTIES), size=n, p=_SHARES)
    size = rng.standard_normal(n)
    bsqft = np.clip(np.rint(np.exp(7.3 + 0.32 * size)), 300, 3_000)
    lsqft = np.clip(np.rint(np.exp(8.6 + 0.2 * size + 0.6 * rng.standard_normal(n))), 500, 50_000)
    nbr = np.clip(np.rint(3 + 0.7 * size + 0.6 * rng.standard_normal(n)), 0, 10)
    time = rng.integers(2003, 2007, size=n)
    age = np.clip(np.rint(rng.gamma(2.2, 16.0, size=n)), 0, 120)
    lat = np.clip(np.take(_LATITUDES, county) + 0.12 * rng.standard_normal(n), 36.9, 38.9)
    long = np.clip(np.take(_LONGITUDES, county) + 0.12 * rng.standard_normal(n), -123.6, -121.2)
    mean = (
        230.0
        + np.take(_EFFECTS, county)
        + 0.11 * (bsqft - 1_500)
        + 0.0008 * (lsqft - 6_000)
        + 32.0 * (time - 2003)
        - 60.0 * (lat - 37.8)
        - 40.0 * (long + 122.2)
        + 0.3 * (age - 35)
        - 6.0 * (nbr - 3)
    )
    price = np.clip(mean + 150.0 * rng.standard_normal(n), 105, 905)
    data = pd.DataFrame(
        {
            "price": price.round(1),
            "bsqft": bsqft,
            "lsqft": lsqft,
            "time": time,
            "lat": lat.round(4),
            "long": long.round(4),
            "age": age,
            "nbr": nbr,
            "county": np.take(np.array(_COUNTIES), county),
        }
    )
    return Dataset(
        data=data,
        schema=Schema(
            {
                "price": (105, 905),
                "bsqft": (0, 3_000),
                "lsqft": (0, 50_000),
                "time": (2003, 2006),
                "lat": (36.9, 38.9),
                "long": (-123.6, -121.2),
                "age": (0, 120),
                "nbr": (0, 10),
                "county": list(_COUNTIES),
            }
        ),
        formula="price ~ bsqft + lsqft + time + lat + long + age + nbr + county",
        source=(
            "SIMULATED house sales, not real data: only the columns are those of the San "
            "Francisco Bay Area sales in Lei et al. (2018)."
        ),
        simulated=True,
    )
