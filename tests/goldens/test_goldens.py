"""Each golden is what it was; `goldens.runner` says what they are."""

import json

import pytest
from goldens import calls, refusals, runner

EVERY = runner.makers()


@pytest.mark.parametrize("name", EVERY)
def test_a_golden_stands(name: str) -> None:
    moved = runner.moved(name)
    assert not moved, (
        f"the golden {name!r} moved: {', '.join(moved)}. See how with `PYTHONPATH=.:tests "
        f"python -m goldens --diff {name!r}`. If it was meant to, write it with --write "
        "in the place of --diff, and say why in the commit."
    )


def test_the_file_holds_each_golden_and_no_other() -> None:
    assert set(runner.recorded()) == set(EVERY)


def test_bad_calls_are_refused_before_they_are_charged() -> None:
    for name in refusals.CASES:
        told = EVERY[f"refused: {name}"]()["told"]
        assert "NOT REFUSED" not in told, name
        assert "CHARGED" not in told, name


@pytest.mark.filterwarnings("ignore::dpreg.errors.DpregWarning")
def test_no_golden_is_of_looks() -> None:
    for name, call in calls.CASES.items():
        result = call()
        fit = getattr(result, "regression", None) or result
        assert not getattr(result, "looks", ()), name
        assert not getattr(fit, "looks", ()), name
        assert not getattr(fit, "releases", ()), name


def test_a_number_moves_its_golden_from_the_tenth_digit_on() -> None:
    def golden(value: float, digits: float = 0.0) -> str:
        draws = [[value + i, digits + i] for i in range(runner.LONG)]
        parts = {"numbers": json.dumps(runner.settled({"params": [value], "draws": draws}))}
        return runner.hashed(parts)["numbers"]

    assert golden(1.23456789) == golden(1.23456789 + 1e-13)
    assert golden(1.23456789) != golden(1.23456789 + 1e-8)
    assert golden(1.0, 1.0) != golden(1.0, 1.1)


def test_the_words_of_a_page_are_kept() -> None:
    page = "<style>p {}</style><p>a &amp; <b>b 1.23</b></p>\n <i>-0.12345678901234e-05</i>"
    assert runner.plain(page) == "a &\nb 1.23\n-1.23456789e-06"


def test_what_moved_is_named_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "mean, replace-one"
    before = runner.recorded()
    before[name]["page"] = "0" * 12
    monkeypatch.setattr(runner, "recorded", lambda: before)
    assert runner.moved(name) == ["page"]
    assert "==== mean, replace-one: page" in runner.shown([name])


def test_goldens_are_held_against_those_of_their_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    if not runner.commit():
        pytest.skip("this is not a checkout")
    name = "refused: budget: text"
    assert runner.difference([name]) == ""
    monkeypatch.setattr(runner, "makers", lambda: {name: lambda: {"told": "other words"}})
    assert "+other words" in runner.difference([name])
