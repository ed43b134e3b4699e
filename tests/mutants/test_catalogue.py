"""The kept list of mutants: each still fits the code, and the tests kill it."""

import re
from pathlib import Path

import pytest
from mutants.runner import ROOT, Copy, Mutant, catalogue
from oracles.recorded_calls import MATRIX

ROOMS = (
    "privacy",
    "sources",
    "formula",
    "moments.py",
    "selection",
    "estimation",
    "results",
    "api",
)


def _each(daily: bool) -> list[pytest.param]:
    return [pytest.param(mutant, id=mutant.name) for mutant in catalogue() if mutant.daily == daily]


@pytest.mark.parametrize("mutant", catalogue(), ids=lambda mutant: mutant.name)
def test_the_change_can_still_be_made(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()
    compile(mutant.applied(text), mutant.file, "exec")
    for test in mutant.tests:
        file, _, name = test.partition("::")
        function, _, cell = name.partition("[")
        assert Path(ROOT, file).exists(), test
        assert f"def {function}(" in Path(ROOT, file).read_text() or not name, test
        assert not cell or cell[:-1] in MATRIX, test


def test_there_are_mutants_enough_in_every_room() -> None:
    rooms = [mutant.file.split("/")[1] for mutant in catalogue()]
    assert len(rooms) >= 100
    assert not set(ROOMS) - set(rooms)
    assert sum(mutant.daily for mutant in catalogue()) >= 12


def test_faults_that_once_got_away_are_all_here() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text().partition("## Faults that once got away")[2]
    rows = [line for line in told.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    named = {name for row in rows[1:] for name in re.findall("`([^`]+)`", row.split(" | ")[-1])}
    assert len(rows) >= 10
    assert named <= {mutant.name for mutant in catalogue()}


@pytest.mark.parametrize("mutant", _each(daily=True))
def test_a_mutant_dies(mutant: Mutant) -> None:
    with Copy() as copy:
        verdict = copy.judge(mutant)
    assert verdict.outcome == "killed", f"{mutant.breaks}\n{verdict.output}"


@pytest.mark.audit
@pytest.mark.parametrize("mutant", _each(daily=False))
def test_every_other_mutant_dies(mutant: Mutant) -> None:
    with Copy() as copy:
        verdict = copy.judge(mutant)
    assert verdict.outcome == "killed", f"{mutant.breaks}\n{verdict.output}"


@pytest.mark.audit
@pytest.mark.parametrize("tests", sorted({mutant.tests for mutant in catalogue()}), ids=" ".join)
def test_without_a_mutant_the_same_tests_pass(tests: tuple[str, ...]) -> None:
    with Copy() as copy:
        verdict = copy.run(tests)
    assert verdict.outcome == "survived", verdict.output
