from fractions import Fraction

import pytest

from dpreg.errors import ArgumentError, BudgetError
from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.results.claim import STAMP, PrivacyClaim


def test_the_sentence_names_relation_rows_and_budget(make_claim):
    sentence = make_claim(contributions=3, delta="0.000001").sentence
    for part in (
        "eps = 1",
        "delta = 0.000001",
        "factor exp(1) plus 0.000001.",
        "replacing",
        "public number of rows",
        "3 rows",
    ):
        assert part in sentence
    assert STAMP not in sentence


def test_under_add_remove_the_number_of_rows_is_private(make_claim):
    sentence = make_claim(neighbors="add-remove").sentence
    assert "adding or removing" in sentence
    assert "number of rows being private" in sentence
    assert "replacing" not in sentence


def test_a_seeded_claim_says_first_that_it_is_not_private(make_claim):
    claim = make_claim(seeded=True)
    assert claim.sentence.startswith(STAMP)
    assert "would claim" in claim.sentence


def test_caveats_are_part_of_the_claim():
    spends = BudgetTable((Spend("s", "m", Fraction(1)),))
    claim = PrivacyClaim(
        neighbors="replace-one", contributions=1, spends=spends, seeded=False, caveats=["Ties."]
    )
    assert claim.sentence.endswith("Ties.")


def test_total_composes_halves_in_parallel_with_the_claims_contributions(make_claim):
    assert make_claim(split=True).spent.eps == 1
    halves = BudgetTable(
        tuple(Spend("s", "m", 1, Fraction(1, 4), rows=f"half {i}") for i in (1, 2))
    )
    deltas = [
        PrivacyClaim(neighbors="add-remove", contributions=k, spends=halves, seeded=False).spent
        for k in (1, 2)
    ]
    assert [spent.delta for spent in deltas] == [Fraction(1, 4), Fraction(1, 2)]


def test_impossible_claims_are_refused(make_claim):
    with pytest.raises(ArgumentError, match="neighbors"):
        make_claim(neighbors="hamming")
    with pytest.raises(ArgumentError, match="contributions"):
        make_claim(contributions=0)
    promises_nothing = BudgetTable((Spend("s", "m", 1, "0.5"), Spend("t", "m", 1, "0.5")))
    with pytest.raises(BudgetError):
        PrivacyClaim(
            neighbors="replace-one", contributions=1, spends=promises_nothing, seeded=False
        )
