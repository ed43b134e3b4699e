"""The same table, formula and seed give R and Python the same result, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpreg

CALLS = {
    "selection": (
        "dp_select",
        "mdvis ~ lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp",
        {"eps": 1, "unsafe_seed": 7},
    ),
    "several draws": (
        "dp_select",
        "mdvis ~ disea + lpi + idp",
        {"eps": 0.7, "delta": 1e-6, "draws": 5, "keep": ["disea"], "unsafe_seed": 11},
    ),
    "transformed": (
        "dp_select",
        "mdvis ~ np.log1p(disea) + I(lpi ** 2) + idp:disea",
        {"eps": "2.5", "unsafe_seed": 3, "fit": "share"},
    ),
    "selection alone": (
        "dp_select",
        "mdvis ~ disea + lpi",
        {"eps": 0.5, "fit": None, "max_terms": 1, "unsafe_seed": 3},
    ),
    "regression": (
        "dp_ols",
        "mdvis ~ disea + lpi",
        {"eps": 1, "delta": 1e-6, "neighbors": "add-remove", "unsafe_seed": 5},
    ),
    "bounds bought": ("dp_ols", "mdvis ~ disea + fmde", {"eps": 3, "unsafe_seed": 5}),
}
UNDECLARED = "fmde"


def in_r(function: str, formula: str, arguments: dict[str, object]) -> str:
    """Write a call as an R user would."""

    def value(item: object) -> str:
        if isinstance(item, list):
            return f"c({', '.join(map(value, item))})"
        return "NULL" if item is None else json.dumps(item)

    given = ", ".join(f"{name} = {value(item)}" for name, item in arguments.items())
    written = formula.replace("np.", "").replace("**", "^")
    return f'{function}({written}, data, {given}, schema = "schema.json")'


@pytest.fixture
def answers(rscript, tmp_path: Path) -> tuple[dict[str, object], pd.DataFrame, dpreg.Schema]:
    """Return R's results by name, the table bit for bit as R saw it, and the schema."""
    data = dpreg.datasets.load_randhie()
    schema = dpreg.Schema({name: spec for name, spec in data.schema.items() if name != UNDECLARED})
    (tmp_path / "schema.json").write_text(schema.to_json())
    data.data.to_csv(tmp_path / "data.csv", index=False)
    fits = "\n".join(f"cat({in_r(*call)}$python$json, '\\n')" for call in CALLS.values())
    told = rscript(
        f"""
        library(dpreg)
        data <- read.csv("data.csv")
        {fits}
        connection <- file("data.bin", "wb")
        for (name in names(data)) writeBin(as.double(data[[name]]), connection)
        close(connection)
        """
    )
    columns = np.fromfile(tmp_path / "data.bin").reshape(data.data.shape[1], -1)
    table = pd.DataFrame(dict(zip(data.data.columns, columns, strict=True)))
    lines = told.splitlines()
    return dict(zip(CALLS, map(json.loads, lines), strict=True)), table, schema


def test_r_and_python_agree(answers) -> None:
    told, table, schema = answers
    for name, (function, formula, arguments) in CALLS.items():
        options = {key: tuple(v) if isinstance(v, list) else v for key, v in arguments.items()}
        result = getattr(dpreg, function)(formula, table, schema=schema, **options)
        assert told[name] == json.loads(result.to_json()), name
    assert told["selection"]["stamp"] == "NOT PRIVATE: seeded"
