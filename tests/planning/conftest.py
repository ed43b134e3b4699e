"""What tests of plans share."""

import pytest


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seek the least n or eps to half a percent: each step of a search plans anew."""
    ranges = {"n": (8.0, 1e12, 5e-3), "eps": (1e-4, 1e6, 5e-3)}
    monkeypatch.setattr("dpreg.planning.results._RANGES", ranges)
