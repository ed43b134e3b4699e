"""What stands on a page, before it is drawn; `test_summary.py` reads the drawn pages."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpreg.privacy.budget import BudgetTable
from dpreg.results import fit_views, views
from dpreg.results.report import Facts, Grid, Paragraph


def grids(report):
    return [block for block in report.blocks if isinstance(block, Grid)]


def test_the_budget_table_ends_with_what_was_charged(make_claim):
    grid, sentence, *_ = views.closing(make_claim(split=True), [])
    assert grid.headers == ("step", "mechanism", "rows", "eps", "delta")
    assert [row[-2] for row in grid.rows] == ["0.1", "0.9", "0.9", "1"]
    assert grid.rows[-1][0] == "total"
    assert sentence == Paragraph("Privacy", make_claim(split=True).sentence)


def test_a_table_of_one_group_has_no_column_for_it(make_claim):
    grid, *_ = views.closing(make_claim(), ["a remark", "a remark", "another"])
    assert grid.headers == ("step", "mechanism", "eps", "delta")
    assert grid.rows[-1] == ("total", "", "1", "0")


def test_remarks_are_numbered_and_told_once(make_claim):
    _, _, *remarks = views.closing(make_claim(split=True), ["a remark", "a remark"])
    assert [remark.label for remark in remarks] == ["[1]", "[2]", "[3]"]
    assert [remark.text for remark in remarks][:2] == ["a remark", "radius: 17 blocks"]
    assert "in parallel" in remarks[2].text


def test_short_notes_of_steps_share_a_paragraph(make_claim):
    claim = make_claim()
    (spend,) = claim.spends
    notes = ("share 0.1", "shares of mu^2; the rest is kept", "", "share 0.9")
    spends = [replace(spend, step=f"look {i}", note=note) for i, note in enumerate(notes)]
    told = ["look 1: shares of mu^2; the rest is kept", "look 0: share 0.1; look 3: share 0.9"]
    for some, want in ((spends, told), (spends[1:3], told[:1]), (spends[2:3], [])):
        assert views.step_notes(replace(claim, spends=BudgetTable(tuple(some)))) == want


@pytest.mark.parametrize("nobs", [20190, None])
def test_rows_are_shown_where_they_are_public(make_selection, nobs):
    told = dict(views.privacy_facts(make_selection(nobs=nobs)))
    assert told["n"] == ("private" if nobs is None else "20,190")
    assert told["eps"] == "1"


def test_coefficients_have_both_errors_in_their_columns(make_regression):
    result = make_regression()
    *_, table, _ = grids(views.regression(result, 0.05))
    assert table.headers[-2:] == ("sampling\nerror", "privacy\nnoise")
    for row, sampling, privacy in zip(
        table.rows, result.bse_sampling, result.bse_privacy, strict=True
    ):
        assert row[-2:] == (f"{sampling:.3f}", f"{privacy:.3f}")


def test_after_looks_sampling_says_what_else_it_holds(make_regression):
    result = make_regression()
    staged = replace(result, method="staged")
    *_, table, _ = grids(views.regression(staged, 0.05))
    assert table.headers[-2] == "sampling\nand cut"
    assert "cutting heavy-tailed residuals" in str(staged.summary()).replace("\n    ", " ")
    assert "heavy-tailed" not in str(result.summary())


def test_a_page_holds_facts_a_table_and_the_claim(make_selection):
    report = views.selection(make_selection(fitted=True, seeded=True), 0.05)
    assert report.stamp == "NOT PRIVATE: seeded"
    assert sum(isinstance(block, Facts) for block in report.blocks) == 2
    assert len(grids(report)) == 3


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
    assert fit_views.fixed(number) == text


def test_the_repr_is_one_line(make_regression):
    line = repr(make_regression(seeded=True, eps=Fraction(1, 3)))
    assert line == "<RegressionResults: price ~ bsqft + lat + county (eps=1) NOT PRIVATE: seeded>"
