"""The rows that a weak term needs: the search for nine in ten, and both chances at their ends."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import weak
from benchmarks._power_cells import Cell


def test_the_number_of_rows_is_where_the_chance_is_nine_in_ten():
    def chance(rows: int) -> float:
        return float(norm.cdf(2 * np.log(rows / 20_000)))

    found, seen = weak.rows_for(chance, 1_000)
    assert found == pytest.approx(20_000 * np.exp(norm.ppf(0.9) / 2), rel=1e-6)
    assert [chance(rows) for rows, _ in seen] == [share for _, share in seen]
    assert sum(share >= weak.POWER for _, share in seen) == 1


def test_a_chance_that_was_always_seen_gives_a_number_of_rows_too():
    found, seen = weak.rows_for(lambda rows: float(rows > 3_000), 1_000)
    assert seen[-2][0] < found < seen[-1][0]
    assert weak.rows_for(lambda rows: 1.0, 1_000)[0] == 1_000


def test_many_rows_always_show_the_weak_term_and_few_never_do():
    assert weak.by_looks(Cell(n=60_000, rho=0.0, eps=4.0), 8) == 1.0
    assert weak.by_looks(Cell(n=1_000, rho=0.0), 8) == 0.0
    assert weak.by_default(Cell(n=2_000, rho=0.0), 1) < 0.2
    assert weak.by_default(Cell(n=60_000, rho=0.0, eps=1_000.0), 1) > 0.95
