"""The tables of a page, before they are drawn; `test_summary.py` reads the drawn pages."""

from dataclasses import replace

import pytest

from dpreg.privacy.budget import BudgetTable
from dpreg.results import notes
from dpreg.results import tables as views


def test_the_budget_table_ends_with_what_was_charged(make_claim):
    grid = views.budget(make_claim(split=True))
    assert grid.headers == ("step", "mechanism", "rows", "eps", "delta")
    assert [row[-2] for row in grid.rows] == ["0.1", "0.9", "0.9", "1"]
    assert grid.rows[-1][0] == "total"


def test_a_table_of_one_group_has_no_column_for_it(make_claim):
    grid = views.budget(make_claim())
    assert grid.headers == ("step", "mechanism", "eps", "delta")
    assert grid.rows[-1] == ("total", "", "1", "0")


def test_short_notes_of_steps_share_a_paragraph(make_claim):
    claim = make_claim()
    (spend,) = claim.spends
    told = ("share 0.1", "shares of mu^2; the rest is kept", "", "share 0.9")
    spends = [replace(spend, step=f"look {i}", note=note) for i, note in enumerate(told)]
    want = ["look 1: shares of mu^2; the rest is kept", "look 0: share 0.1; look 3: share 0.9"]
    for some, said in ((spends, want), (spends[1:3], want[:1]), (spends[2:3], [])):
        assert notes.steps(replace(claim, spends=BudgetTable(tuple(some)))) == said


def test_coefficients_have_both_errors_in_their_columns(make_regression):
    result = make_regression()
    table = views.coefficients(result, 0.05, full=True)
    assert table.headers[-2:] == ("sampling\nerror", "privacy\nnoise")
    for row, sampling, privacy in zip(
        table.rows, result.bse_sampling, result.bse_privacy, strict=True
    ):
        assert row[-2:] == (f"{sampling:.3f}", f"{privacy:.3f}")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.000"),
        (1.5, "1.500"),
        (1e-7, "1e-07"),
        (123456.0, "1.23e+05"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_fixed_where_that_is_readable(number, text):
    assert views.fixed(number) == text
