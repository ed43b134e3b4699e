"""What `benchmarks.walk` counts: functions of dpreg alone, of a second call alone."""

import statistics

import dpreg
from benchmarks import walk


def test_a_second_call_is_walked_through() -> None:
    calls = []

    def call() -> object:
        calls.append(1)
        if len(calls) == 1:
            return dpreg.Budget(1)  # at a first call alone
        statistics.mean([1, 2])
        return dpreg.Schema({"a": (0, 1), "g": ["u", "v"]})

    found = walk.walked(call)
    assert len(calls) == 2
    assert "privacy/budget" not in found
    assert any(name.startswith("Schema.__init__:") for name in walk.functions(found["schema"]))
    assert not any("<" in name for codes in found.values() for name in walk.functions(codes))


def test_the_calls_are_those_of_the_goals() -> None:
    assert set(walk.calls()) == set(walk.GOALS)
