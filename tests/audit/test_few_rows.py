"""Tables of hardly a row: what is refused follows from a public number of rows, and from no other.

A frame knows its rows and text does not: a frame that is too short is refused before the charge,
where the number of rows is public, and text is charged, read and never refused. That tells
neighbours apart in neither form, as under replace-one both have as many rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.audited import CALLS, SCHEMA
from dpreg.audit.events import NOTHING, Observation, observe

AUTO = {
    f"{name}, auto": (CALLS[name][0], {"formula": "y ~ x + z"})
    for name in ("dp_ols, looks", "dp_select, looks")
}
RELATIONS = {
    "add-remove": {"neighbors": "add-remove"},
    "persons": {"person": "who"},
    "persons, add-remove": {"person": "who", "neighbors": "add-remove"},
}
ROWS = pd.DataFrame(
    {
        "x": [0.1, 0.2, 0.3],
        "y": [0.1, 0.5, 0.3],
        "z": [0, 1, 2],
        "h": [0, 1, 1],
        "g": ["u", "v", "u"],
        "who": ["a", "b", "c"],
    }
)


def _seen(name: str, data: Any, told: dict[str, str]) -> Observation:
    call, options = (CALLS | AUTO)[name]

    def made(data: Any, ledger: Any) -> Any:
        return call(
            data=data, budget=ledger, eps="4", schema=SCHEMA, progress=False, **told, **options
        )

    return observe(made, data)


def _forms(folder: Path) -> list[Any]:
    found: list[Any] = []
    for rows in (0, 1, len(ROWS)):
        path = folder / f"{rows}.csv"
        ROWS.iloc[:rows].to_csv(path, index=False)
        found += [ROWS.iloc[:rows], path]
    return found


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        (name, relation)
        for name in CALLS | AUTO
        for relation in RELATIONS
        if relation == "add-remove" or "objective" not in name  # which takes no persons
    ],
)
def test_no_call_is_refused_for_a_private_number_of_rows(
    name: str, relation: str, tmp_path: Path
) -> None:
    seen = [_seen(name, data, RELATIONS[relation]) for data in _forms(tmp_path)]
    assert {one.seen["raised"] for one in seen} == {"nothing"}
    assert len({one.charged for one in seen}) == 1
    assert len({one.seen["warned before the charge"] for one in seen}) == 1


@pytest.mark.parametrize("name", CALLS | AUTO)
def test_a_public_number_refuses_before_the_charge_or_not_at_all(name: str, tmp_path: Path) -> None:
    for data in _forms(tmp_path):
        found = _seen(name, data, {})
        assert (found.seen["raised"] != NOTHING) == (found.charged.eps == 0)
        if name.startswith("sample_aggregate"):  # it counts text before it charges
            assert found.seen["raised"] != NOTHING  # so few make no blocks
        elif isinstance(data, Path):
            assert found.seen["raised"] == NOTHING
        elif not len(data):
            assert found.seen["raised"].startswith("DataError: the table has no rows")
