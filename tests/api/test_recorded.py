"""What is done around every public call."""

import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpreg
from dpreg.api import context as recorded
from dpreg.api.arguments import Every
from dpreg.privacy.ledger.sqlite import MemoryDatabase, SqliteDatabase


@dataclass(frozen=True)
class Found:
    number: float
    record: Any = None


def overflown(call: Any) -> Found:
    return Found(float(np.float64(call["data"]) * 10 - np.inf + np.float64(0) / np.float64(0)))


@recorded.recorded(overflown, Every)
def overflowing(data: float) -> Found:
    """Stand for a call."""


def test_no_numerical_warning_leaves_a_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(overflowing(1e308).number)


def test_numpy_s_remarks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_NUMERICAL", "warn")
    with pytest.raises(RuntimeWarning, match="overflow"):
        overflowing(1e308)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """A clock of dpreg's that goes on by 40 minutes whenever it is read, and what it told."""
    told = [datetime(2031, 5, 6, 7, 8, 59, 999_999, tzinfo=UTC)]

    def now(*_: object) -> datetime:
        told.append(told[-1] + timedelta(minutes=40))
        return told[-1]

    monkeypatch.setattr(recorded, "now", now)
    for database in (MemoryDatabase, SqliteDatabase):
        monkeypatch.setattr(database, "now", now)
    return told


ROWS = {"a": [0.1, 0.2, 0.7] * 20, "y": [0.3, 0.9, 0.4] * 20}
SCHEMA = {"a": (0, 1), "y": (0, 1)}
CALLS: dict[str, Any] = {
    "dp_mean": lambda told: dpreg.dp_mean("a", ROWS, **told),
    "dp_quantile": lambda told: dpreg.dp_quantile("a", 0.5, ROWS, **told),
    "dp_histogram": lambda told: dpreg.dp_histogram("a", ROWS, bins=2, **told),
    "dp_suffstats": lambda told: dpreg.dp_suffstats("a", ROWS, **told),
    "dp_ols": lambda told: dpreg.dp_ols("y ~ a", ROWS, method="gram", **told),
    "dp_select": lambda told: dpreg.dp_select("y ~ a", ROWS, method="pcls", **told),
    "sample_aggregate": lambda told: dpreg.sample_aggregate(
        lambda block: 0.5, ROWS, bounds=(0, 1), blocks=4, **told
    ),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_record_tells_the_minute_of_the_charge_and_nothing_of_how_long_a_call_took(
    name: str, kept: bool, clock: list[datetime], tmp_path: Path
) -> None:
    ledger = dpreg.Ledger(9, path=tmp_path / "l.db") if kept else dpreg.Ledger(9)
    result = CALLS[name]({"eps": 1, "schema": SCHEMA, "budget": ledger})
    (entry,) = ledger.entries
    assert datetime.fromisoformat(entry.when).second == 59  # the ledger keeps seconds
    assert result.record.when == entry.when[:16] + "+00:00"
    started = len(clock)
    alone = CALLS[name]({"eps": 1, "schema": SCHEMA})
    assert alone.record.when == clock[started].isoformat()[:16] + "+00:00"


def test_columns_are_rows_and_in_no_record() -> None:
    found = dpreg.dp_mean(x=[0.125, 0.375, 0.625] * 9, bounds=(0, 1), eps=1)
    assert found.record.arguments == {"bounds": [0, 1], "eps": 1}
    named = dpreg.dp_mean(x="a", data=ROWS, bounds=(0, 1), eps=1)
    assert named.record.arguments == {"x": "a", "bounds": [0, 1], "eps": 1}


def test_readers_are_not_told_who_paid() -> None:
    ledger = dpreg.Ledger(9, analyst_cap=5)
    found = dpreg.dp_mean("a", ROWS, bounds=(0, 1), eps=1, budget=ledger, analyst="Ann Alyst")
    assert ledger.entries[-1].analyst == "Ann Alyst"
    assert "analyst" not in found.record.arguments
    assert "Ann Alyst" not in found.to_json()


def slow(call: Any) -> Found:
    call["data"]()
    return Found(1.0)


@recorded.recorded(slow, Every)
def taking_its_time(data: Any) -> Found:
    """Stand for a call."""


def test_without_a_ledger_the_clock_is_read_before_the_rows(clock: list[datetime]) -> None:
    result = taking_its_time(lambda: recorded.now())
    assert result.record.when == clock[1].isoformat()[:16] + "+00:00"


def test_a_time_of_another_zone_is_told_in_utc() -> None:
    east = datetime.fromisoformat("2031-05-06T01:08:59+02:00")
    assert recorded.record_of("dp_mean", {}, [], east).when == "2031-05-05T23:08+00:00"


def test_no_record_is_made_without_a_time() -> None:
    with pytest.raises(TypeError, match="when"):
        dpreg.results.claim.ReleaseRecord(call="dp_mean")  # type: ignore[call-arg]
