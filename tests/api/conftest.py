"""Fewer redraws of each choice among terms, which take most of a call's time."""

import sys

import pytest

import dpreg.staged.choice.stability  # noqa: F401 - what is patched must have been imported


@pytest.fixture(autouse=True)
def few_redraws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take 20 redraws instead of 200. `tests/staged/choice/test_choose.py` takes them all."""
    monkeypatch.setattr(sys.modules["dpreg.staged.choice.stability"], "_DRAWS", 20)
