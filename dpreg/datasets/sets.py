"""Tables with the public facts that go with them, and their loaders.

Some lie in the folder that DPREG_DATA names, which dpreg neither ships nor downloads; some ship
with a dependency; and some are simulated, for examples at any size: no row describes anyone.

Tested in `tests/datasets/test_datasets.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpreg.errors import ArgumentError, DatasetError, shown
from dpreg.paths import catalogue
from dpreg.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A table with the public facts that go with it.

    Attributes
    ----------
    data : pandas.DataFrame
        The rows. Each call of a loader makes a new frame.
    schema : Schema
        Public bounds and levels of the columns, for ``dp_select(..., schema=...)``.
    formula : str
        A formula to start with.
    source : str
        Where the rows come from, in a sentence.
    simulated : bool
        True where the rows are simulated and describe nobody.
    """

    data: pd.DataFrame
    schema: Schema
    formula: str
    source: str
    simulated: bool = False

    def __repr__(self) -> str:
        """Say what this is, without rows."""
        rows, columns = self.data.shape
        kind = "simulated rows" if self.simulated else "rows"
        return f"<Dataset: {rows:,} {kind}, {columns} columns. {self.source}>"


def _known(name: str, data: pd.DataFrame | None = None, *, simulated: bool = False) -> Dataset:
    """Return a data set with its public facts; its rows are those of its file, or given."""
    facts = catalogue("sets.toml", "dpreg.datasets")[name]
    rows = pd.read_csv(_path(facts)) if data is None else data
    schema = Schema.from_any(facts["schema"])
    return Dataset(rows, schema, facts["formula"], facts["source"], simulated)


def _path(facts: Mapping[str, str]) -> Path:
    """Find a file that is not dpreg's to ship, and make sure that it is the right one."""
    name, sha256, source = facts["file"], facts["sha256"], facts["from"]
    folder = os.environ.get("DPREG_DATA", "")
    if not folder:
        raise DatasetError(
            f"{name} does not ship with dpreg. It holds {source}. Put it into a "
            "folder and name that folder in the environment variable DPREG_DATA."
        )
    path = Path(folder) / name
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise DatasetError(
            f"The folder that DPREG_DATA names has no readable file {name}. It holds "
            f"{source}. Put it there, or name another folder."
        ) from None
    if digest != sha256:
        raise DatasetError(
            f"{name} in the folder that DPREG_DATA names is not the file that dpreg knows "
            f"(its SHA-256 should be {sha256}). Get a fresh copy of {source}."
        )
    return path


def load_prostate() -> Dataset:
    """Load the prostate cancer data: prostate-specific antigen and clinical measures of 97 men.

    Returns
    -------
    Dataset
        97 men. The suggested formula has the five variables of Lei, Charest, Slavkovic, Smith &
        Fienberg (2018) on ``lpsa``.

    Raises
    ------
    DatasetError
        If ``DPREG_DATA`` names no folder that holds the file.

    Notes
    -----
    Bounds are round clinical ranges: tumours of 0.2 to 55 cc (``lcavol``, ``lcp`` in logs), glands
    of 7 to 150 g (``lweight``), patients of 40 to 80 years, Gleason scores of 2 to 10,
    antigen of 0.4 to 400 ng/ml (``lpsa``). Amounts below detection are coded ``log(0.25)``.
    """
    return _known("prostate")


def load_kc_house() -> Dataset:
    """Load house sales in King County, Washington, from May 2014 to May 2015.

    Returns
    -------
    Dataset
        21,613 sales. The suggested formula has twelve terms, so 4,096 models, on ``price``.

    Raises
    ------
    DatasetError
        If ``DPREG_DATA`` names no folder that holds the file.

    Notes
    -----
    ``view``, ``condition`` and ``grade`` have the county assessor's own scales, ``lat`` and
    ``long`` the county's extent, years those of the records. Prices (dollars), areas (square feet)
    and counts of rooms have round bounds that hold all but unusual houses, which are clipped.
    ``zipcode`` is a label, and is left undeclared.
    """
    return _known("kc_house")


def load_randhie() -> Dataset:
    """Load the RAND Health Insurance Experiment: visits to a doctor and the plan of the insured.

    Returns
    -------
    Dataset
        20,190 person-years. ``mdvis`` (outpatient visits in the year) is the response of the
        suggested formula, on nine regressors.

    Notes
    -----
    The bounds follow from the codebook that statsmodels prints and from the experiment's design.
    ``lncoins`` is the log of one plus a coinsurance rate of 0 to 100 percent. The experiment capped
    yearly spending at 1,000 dollars and its lowest positive rate was 25 percent, so ``fmde`` ends
    at ``log(1000 / 0.25) = 8.294``; the yearly participation payments behind ``lpi`` stayed below
    ``exp(8)``, about 3,000 dollars. ``disea`` is an index of chronic diseases on a scale of 0
    to 60. ``physlm`` is a share between 0 and 1, since missing answers were filled in by rates.

    ``mdvis`` has no upper limit of its own. The schema declares 0 to 20, about a visit every
    two and a half weeks: counts above are clipped to 20. A bound of 77, the largest count known,
    would serve few people and quadruple the noise's weight.

    One person may own up to five rows: to protect persons rather than person-years, pass
    ``contributions=5``.

    Examples
    --------
    >>> load_randhie().formula
    'mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp'
    """
    from statsmodels.datasets import randhie  # slow to import, and seldom needed

    return _known("randhie", pd.DataFrame(randhie.load_pandas().data))


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
    return _known("bay_area", data, simulated=True)
