"""Spark reads the same files in an order of its own."""

import numpy as np
import pandas as pd
import pytest
from oracles.tallies import COLUMNS, ROWS, Sums, table

from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import as_source

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


def test_the_largest_file_comes_first_with_the_same_moments_and_other_coins(spark, tmp_path):
    """dpreg's own reader goes by name."""
    small, large = table()[: ROWS // 4], table()[ROWS // 4 :]
    small.to_parquet(tmp_path / "a.parquet")
    large.to_parquet(tmp_path / "b.parquet")
    forms = (tmp_path, spark.read.parquet(str(tmp_path)), pd.concat([large, small]))
    tally = Sums.of(COLUMNS, Coins(3, key=11), scale=2**40)
    totals = [as_source(data).total(COLUMNS, tally, positions=True) for data in forms]
    ours, theirs, turned = (np.reshape(total, (3, -1)) for total in totals)
    assert (theirs == turned).all()
    assert (theirs != ours).any()
    assert (theirs.sum(axis=0) == ours.sum(axis=0)).all()
