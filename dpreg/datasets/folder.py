"""Data in the folder that DPREG_DATA names, which dpreg neither ships nor downloads.

Tested in `tests/datasets/test_datasets.py`.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpreg.datasets.dataset import Dataset
from dpreg.errors import DatasetError
from dpreg.schema import Schema

__all__ = ["load_kc_house", "load_prostate"]


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    sha256: str
    public_source: str


_FILES = {
    "prostate": _File(
        "prostate.csv",
        "505aab4ce3164af8367d98e74390cd45c42b53c5e436b13635a8aa524d0fdcb4",
        "the data of Hastie, Tibshirani & Friedman, The Elements of Statistical Learning "
        "(hastie.su.domains/ElemStatLearn)",
    ),
    "kc_house": _File(
        "kc_house.csv.gz",
        "e6464e04c4e665594150232ccc7195079cec96a5686679e62338503fdaef145b",
        "the data set 'House Sales in King County, USA' (OpenML 42092, also on Kaggle)",
    ),
}


def _path(file: _File) -> Path:
    """Find a file that is not dpreg's to ship, and make sure that it is the right one."""
    folder = os.environ.get("DPREG_DATA", "")
    if not folder:
        raise DatasetError(
            f"{file.name} does not ship with dpreg. It holds {file.public_source}. Put it into a "
            "folder and name that folder in the environment variable DPREG_DATA."
        )
    path = Path(folder) / file.name
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise DatasetError(
            f"The folder that DPREG_DATA names has no readable file {file.name}. It holds "
            f"{file.public_source}. Put it there, or name another folder."
        ) from None
    if digest != file.sha256:
        raise DatasetError(
            f"{file.name} in the folder that DPREG_DATA names is not the file that dpreg knows "
            f"(its SHA-256 should be {file.sha256}). Get a fresh copy of {file.public_source}."
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
    return Dataset(
        data=pd.read_csv(_path(_FILES["prostate"])),
        schema=Schema(
            {
                "lcavol": (-1.5, 4),
                "lweight": (2, 5),
                "age": (40, 80),
                "lbph": (-1.5, 2.5),
                "svi": (0, 1),
                "lcp": (-1.5, 3),
                "gleason": (2, 10),
                "pgg45": (0, 100),
                "lpsa": (-1, 6),
                "train": bool,
            }
        ),
        formula="lpsa ~ lcavol + lweight + age + lcp + lbph",
        source="Stamey et al. (1989), as in The Elements of Statistical Learning.",
    )


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
    return Dataset(
        data=pd.read_csv(_path(_FILES["kc_house"])),
        schema=Schema(
            {
                "price": (0, 2_000_000),
                "bedrooms": (0, 10),
                "bathrooms": (0, 8),
                "sqft_living": (0, 8_000),
                "sqft_lot": (0, 100_000),
                "floors": (1, 4),
                "waterfront": (0, 1),
                "view": (0, 4),
                "condition": (1, 5),
                "grade": (1, 13),
                "sqft_above": (0, 8_000),
                "sqft_basement": (0, 4_000),
                "yr_built": (1900, 2015),
                "yr_renovated": (0, 2015),
                "lat": (47.1, 47.8),
                "long": (-122.6, -121.3),
                "sqft_living15": (0, 8_000),
                "sqft_lot15": (0, 100_000),
            }
        ),
        formula=(
            "price ~ bedrooms + bathrooms + sqft_living + sqft_lot + floors + waterfront"
            " + view + condition + grade + yr_built + lat + long"
        ),
        source="House sales in King County, Washington, 2014-2015, from public county records.",
    )
