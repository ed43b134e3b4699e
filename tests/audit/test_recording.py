"""What is drawn is what is charged: every call is recorded where its noise enters.

The table in ``docs/recording.md`` shows what was found.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from oracles.recorded_calls import MATRIX, recorded

TABLE = Path(__file__).parents[2] / "docs" / "recording.md"


def documented() -> set[str]:
    return {row for row in TABLE.read_text().splitlines() if row.startswith("| `")}


@pytest.mark.parametrize("cell", MATRIX)
def test_what_is_drawn_is_what_is_charged(
    cell: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert recorded(cell, monkeypatch, tmp_path) in documented()


def test_the_table_shows_every_cell_and_no_other() -> None:
    assert len(MATRIX) >= 60
    told = {row.split("`")[1] for row in documented()}
    assert told == set(MATRIX)
