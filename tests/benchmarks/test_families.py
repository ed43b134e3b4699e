"""The study of families: what a line of it says."""

from benchmarks import families
from benchmarks._family_cells import Cell

CELL = Cell("binomial", 8_000, 4, 2.0)


def test_a_run_says_what_holds_and_why_not():
    enough = families.coverage(CELL, 0)
    assert len(enough["hit"]) == 5
    assert 1 < enough["width"] < 2
    assert "flagged" in families.coverage(Cell("binomial", 200, 8, 0.1), 0)
    line = families.choice(CELL, 0)
    assert line["of"] == line["found"] == line["wald"] == 2


def test_no_useless_term_in_few_runs_proves_little():
    runs = [{"of": 2, "found": 2, "useless": 0, "wald": 2, "wald_useless": 0}] * 40
    assert "| 0.000 | 0.115 |" in families._chosen(runs)
