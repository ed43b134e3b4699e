import math
from dataclasses import replace

import pytest

from dpreg.planning.chances import Situation, least_rows, theorem_41, theorem_42

AT = Situation(
    rows=1e7, eps=1.0, models=64, kappa0=1 / 3, least=1.0, true=3, largest=6, radius=30.0, bound=5.0
)


def test_theorem_41_by_hand():
    n = AT.rows
    log_n = math.log(n)
    phi = (1 / 3) * n / 7
    alpha = math.log(64) / log_n
    a = min(phi / (2 * log_n), n / log_n / 3 / 64, n / log_n / 48)
    c = a / 2 - alpha
    wrong = n**alpha * math.exp(-phi / (4 * 35**2))
    wrong += 13 / math.sqrt(2 * math.pi * a * log_n) * n**-c
    assert AT.wide_enough
    assert theorem_41(AT) == pytest.approx(1 - wrong)


def test_theorem_42_by_hand():
    n = 1e8
    phi = 2 / 9 * n * math.log(1 + 1 / 12)
    promise = theorem_42(replace(AT, rows=n))
    assert promise == pytest.approx(1 - 64 * math.exp(-phi / (64 * 35**2)), abs=1e-6)
    assert 0.2 < promise < 1


@pytest.mark.parametrize("theorem", [theorem_41, theorem_42])
def test_small_tables_are_promised_nothing(theorem):
    assert theorem(replace(AT, rows=1000)) == 0
    assert theorem(replace(AT, rows=30)) == 0


def test_the_radius_condition():
    assert AT.wide_enough
    assert not replace(AT, radius=21.2).wide_enough
    assert replace(AT, radius=21.3).wide_enough


@pytest.mark.parametrize("theorem", [theorem_41, theorem_42])
def test_least_rows(theorem):
    rows = least_rows(theorem, AT, 0.9)
    assert theorem(replace(AT, rows=rows)) >= 0.9
    assert theorem(replace(AT, rows=rows / 1.01)) < 0.9
    assert least_rows(theorem, replace(AT, least=1e-9), 0.9) == math.inf
