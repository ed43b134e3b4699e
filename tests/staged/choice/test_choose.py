"""The whole choice, by name; stability and notes."""

from dataclasses import replace

import numpy as np
import pytest
from staged.choice.made_up import law_of, make_law, plain_space

from dpreg.errors import ArgumentError
from dpreg.selection.space import Space
from dpreg.staged.choice.choose import choose, conditional_laws


def test_strong_terms_are_reported_by_name(rng):
    law = make_law(rng, np.array([0.5, 0.3, 0, -0.2, 0]), noise=5.0)
    choice, problem, verdict = choose(law, plain_space(4))
    assert choice.reported == choice.model == ("x1", "x3")
    assert choice.alternatives == {}
    assert choice.certified
    assert choice.resolved == choice.directions == 5
    assert choice.notes == ()
    assert choice.stability["x1"] == choice.stability["x3"] == 1.0
    assert choice.stability["x2"] < 0.5
    assert choose(law, plain_space(4))[0].stability == choice.stability
    given = conditional_laws(law, problem, verdict)
    assert [one.center() for one in given] == pytest.approx([0.5, 0.3, -0.2], abs=0.1)
    assert all(one.p_value() < 0.05 for one in given)


def test_a_drowned_release_reports_nothing_and_says_so(rng):
    law = make_law(rng, np.array([0.5, 0.3, 0, -0.2, 0]), noise=5000.0, degrees=6)
    choice, _, _ = choose(law, plain_space(4))
    assert choice.reported == ()
    assert choice.resolved < choice.directions
    assert "hides" in choice.notes[-1]


@pytest.mark.parametrize("seen", [4, 5])
def test_no_term_is_reported_where_less_than_a_quarter_of_the_directions_is_seen(rng, seen):
    law = make_law(rng, np.array([0.5, *[0.3] * 3, *[0.0] * 14]), noise=2.0)
    hidden = np.where(
        np.arange(18) < 18 - seen, 0.0, np.maximum(law.eigenvalues, 2 * law.noise_norm)
    )
    law = replace(law, eigenvalues=hidden)
    choice, problem, verdict = choose(law, plain_space(17), again=False)
    assert choice.model == ("x1", "x2", "x3")
    assert (choice.resolved, choice.directions) == (seen, 18)
    if seen == 5:
        assert choice.reported == choice.model
        assert "false_inclusions is not promised" in choice.notes[-1]
        return
    assert choice.reported == ()
    assert choice.alternatives == {}
    assert choice.notes[-1] == (
        "The noise hides 14 of 18 directions of the columns: no term is reported. It takes more "
        "rows, or a larger eps."
    )
    given = conditional_laws(law, problem, verdict)
    assert np.isfinite([one.interval(0.05) for one in given]).all()


def test_stand_ins_are_named_both_ways_round(rng):
    x = rng.standard_normal((3000, 3))
    x = np.column_stack([np.ones(3000), x, x[:, 0] + 0.02 * rng.standard_normal(3000)])
    law = law_of(rng, x, np.array([0, 0.3, 0.3, 0, 0]), noise=5.0)
    choice, _, _ = choose(law, plain_space(4))
    ((term, instead),) = choice.alternatives.items()
    assert {term, *instead[0]} == {"x1", "x4"}
    assert choice.reported == ("x2",)


def test_a_factor_comes_and_goes_as_one(rng):
    space = Space(units=("a", "b"), unit_columns=((1, 2, 3), (4,)), keep_columns=(0,))
    law = make_law(rng, np.array([0, 0.2, 0.0, -0.2, 0]), noise=2.0)
    choice, problem, verdict = choose(law, space)
    assert choice.reported == ("a",)
    given = conditional_laws(law, problem, verdict)
    assert len(given) == 4
    for one in given:
        low, high = one.interval(0.05)
        assert low < one.center() < high


def test_an_empty_space_is_no_error(rng):
    law = make_law(rng, np.array([0.5, 0.3]))
    choice, _, _ = choose(law, Space(units=(), unit_columns=(), keep_columns=(0, 1)))
    assert choice.model == choice.reported == ()


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_false_inclusions_must_be_positive(rng, alpha):
    law = make_law(rng, np.array([0.5, 0.3]))
    with pytest.raises(ArgumentError, match="false_inclusions must be positive"):
        choose(law, plain_space(1), false_inclusions=alpha)
