"""Tasks that Spark runs again leave each row in one half, and groups as they were."""

import os

import numpy as np
import pytest
from oracles.spark_frames import split
from oracles.tallies import COLUMNS, FailsFirst, Killed, Mixed, Sums, check_halves, table

from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import as_source

pytestmark = [
    pytest.mark.usefixtures("no_rows_leave"),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


def test_a_failed_first_attempt_leaves_each_row_in_one_half(spark):
    def total(frame, tally):
        failing = FailsFirst(tally, frozenset({0, 2}))
        return as_source(split(spark, frame, 3)).total(COLUMNS, failing)

    check_halves(total)


def test_a_failed_first_attempt_leaves_a_seeded_pass_alone(spark):
    frame, tally = table(), Sums.of(COLUMNS, Coins(3, key=11))
    want = as_source(frame).total(COLUMNS, tally, positions=True)
    source = as_source(split(spark, frame, 3))
    got = source.total(COLUMNS, FailsFirst(tally, frozenset({1})), positions=True)
    assert list(got) == list(want)


def test_a_killed_python_leaves_each_row_in_one_half(spark, tmp_path):
    flag = tmp_path / "killed"

    def total(frame, tally):
        killing = Killed(tally, flag, os.getpid(), after=0)
        return as_source(split(spark, frame, 3)).total(COLUMNS, killing)

    check_halves(total)
    assert flag.exists()


def test_mixed_attempts_would_be_caught(spark):
    """The mutant's partition has one part of its vector from another attempt than the other."""

    def total(frame, tally):
        return as_source(split(spark, frame, 2)).total(COLUMNS, Mixed(tally))

    with pytest.raises(AssertionError):
        check_halves(total)


def test_a_pass_for_each_half_would_be_caught(spark):
    def total(frame, tally):
        source = as_source(split(spark, frame, 2))
        first, second = (source.total(COLUMNS, tally).reshape(2, -1) for _ in range(2))
        return np.concatenate([first[0], second[1]])

    with pytest.raises(AssertionError):
        check_halves(total)
