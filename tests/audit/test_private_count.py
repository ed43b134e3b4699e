"""Under add-remove the number of rows reaches nothing but a noisy count.

Rows with a missing cell are zero in every moment. So with three hundred of them at the end of the
table a seeded call must release the same numbers, unless it buys a count of all rows.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pandas as pd
import pytest
from oracles import recorded_calls
from oracles.recorded_calls import MATRIX, run

import dpreg
from dpreg.errors import DpregWarning
from dpreg.privacy.budget import Budget

_COUNTED = ("radius=", "sigma2='private'", "count", "method='auto'")
"""Options that buy a noisy number of all rows, incomplete ones among them."""
CELLS = [
    cell
    for cell, (call, options) in MATRIX.items()
    if options.get("neighbors") == "add-remove"
    and call in ("select", "ols", "glm")
    and not {"form", "person", "unsafe_seed"} & set(options)
    and not any(word in cell for word in _COUNTED)
]


def released(cell: str, rows: pd.DataFrame, patch: pytest.MonkeyPatch, folder: Any) -> Any:
    """Run a cell on a table with fixed noise, and return all that it releases."""
    call, options = MATRIX[cell]
    patch.setattr(recorded_calls, "frame", lambda: rows)
    ledger = dpreg.Ledger(Budget(10**6, "0.5"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregWarning)
        told = json.loads(run(call, {**options, "unsafe_seed": 7}, ledger, folder).to_json())
    told.pop("record", None)  # the time of the call
    return told


@pytest.mark.parametrize("cell", CELLS)
def test_a_private_number_of_rows_changes_nothing(cell, monkeypatch, tmp_path):
    rows = recorded_calls.frame()
    longer = rows.reindex(range(len(rows) + 300))
    short = released(cell, rows, monkeypatch, tmp_path)
    assert released(cell, longer, monkeypatch, tmp_path) == short
