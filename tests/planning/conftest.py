"""What tests of plans share."""

import pytest


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seek the least n or eps to a percent, by few draws: each step of a search plans anew."""
    ranges = {"n": (8.0, 1e12, 1e-2), "eps": (1e-4, 1e6, 1e-2)}
    monkeypatch.setattr("dpreg.planning.results._RANGES", ranges)
    monkeypatch.setattr("dpreg.planning.rows._MORE_DRAWS", 21)
