"""No cell of any row is in anything that a call leaves behind: results, reports, ledgers, logs."""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import struct
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api import context as recorded
from dpreg.results.report import report_html

NUMBERS = {"x": 0.73184625192837, "z": 0.28461937460182, "y": 0.61938274650918, "out": 48271936.5}
TEXTS = {"g": "sentinel-label-8264", "who": "sentinel-person-5917"}
ROWS = 600
SCHEMA = {"x": (0, 1), "z": (0, 1), "y": (0, 1), "g": ["a", "b"]}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(9)
    table = pd.DataFrame(
        {
            "x": rng.random(ROWS).round(3),
            "z": rng.random(ROWS).round(3),
            "y": rng.random(ROWS).round(3),
            "out": rng.random(ROWS).round(3),
            "g": rng.choice(["a", "b"], ROWS),
            "who": [f"p{j // 2}" for j in range(ROWS)],
        }
    )
    for place in (0, 17, ROWS - 1):
        table.loc[place, list(NUMBERS)] = list(NUMBERS.values())
        table.loc[place, list(TEXTS)] = list(TEXTS.values())
    return table


def spellings() -> list[bytes]:
    """Every cell as text, as the floats of files and pickles, and as a fraction."""
    found = [text.encode() for text in TEXTS.values()]
    for value in NUMBERS.values():
        found += [f"{value}".removeprefix("0.")[:9].encode(), struct.pack("<d", value)]
        found += [struct.pack(">d", value), str(Fraction(value)).encode()]
    return found


FIT, MEANS = "y ~ x + z + C(g)", ["x", "out"]
BARE = {name: how for name, how in SCHEMA.items() if name != "z"}
CALLS: dict[str, Any] = {
    "select": lambda d, **o: dpreg.dp_select(FIT, d, draws=3, **o),
    "select, pcpl": lambda d, **o: dpreg.dp_select(FIT, d, method="pcpl", **o),
    "select, private": lambda d, **o: dpreg.dp_select(
        FIT, d, radius="private", sigma2="private", **o
    ),
    "select, adaptive": lambda d, **o: dpreg.dp_select(FIT, d, method="adaptive", **o),
    "ols, looks": lambda d, **o: dpreg.dp_ols(FIT, d, method="adaptive", **o),
    "ols, looks, pure": lambda d, delta, **o: dpreg.dp_ols(FIT, d, method="adaptive", **o),
    "ols, gram": lambda d, **o: dpreg.dp_ols(FIT, d, method="gram", **o),
    "ols, adassp": lambda d, **o: dpreg.dp_ols(FIT, d, method="adassp", **o),
    "ols, undeclared": lambda d, **o: dpreg.dp_ols(FIT, d, **{**o, "schema": BARE}),
    "glm": lambda d, **o: dpreg.dp_glm("I(1 * (y > 0.5)) ~ x + z", d, **o),
    "glm, counts, pure": lambda d, delta, **o: dpreg.dp_glm("y ~ x + z", d, family="poisson", **o),
    "glm, trials": lambda d, **o: dpreg.dp_glm("y ~ x", d, trials="z", **o),
    "select a family": lambda d, **o: dpreg.dp_select(
        "I(1 * (y > 0.5)) ~ x + z", d, family="binomial", **o
    ),
    "mean": lambda d, **o: dpreg.dp_mean(MEANS, d, by="g", bounds={"out": (0, 1)}, **o),
    "quantile": lambda d, delta, **o: dpreg.dp_quantile("x", 0.5, d, **o),
    "histogram": lambda d, **o: dpreg.dp_histogram("g", d, **o),
    "suffstats": lambda d, **o: dpreg.dp_suffstats("x", d, **o),
    "aggregate": lambda d, **o: dpreg.sample_aggregate(
        lambda block: block["x"].mean(), d, bounds=(0, 1), blocks=20, **o
    ),
}


def left_behind(name: str, table: Any, folder: Path, **more: Any) -> Iterator[tuple[str, bytes]]:
    """Make a call and yield all that it leaves, each by what it is."""
    ledger = dpreg.Ledger(dpreg.Budget(10**4, "0.5"), folder / "ledger.db")
    log, told = io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(log), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            contextlib.redirect_stdout(told),
            contextlib.redirect_stderr(told),
            warnings.catch_warnings(record=True) as warned,
        ):
            warnings.simplefilter("always")
            options = {"schema": SCHEMA, "eps": 40, "delta": "1e-6", **more}
            result = CALLS[name](table, budget=ledger, progress=True, **options)
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    result.save(folder / "result.json")
    views = {
        "record": repr(result.record),
        "text": str(result),
        "repr": repr(result),
        "html": result._repr_html_(),
        "latex": result._repr_latex_(),
        "budget": result.budget.to_csv(),
        "report": report_html(result),
        "log": log.getvalue(),
        "stderr": told.getvalue(),
        "warnings": " ".join(str(one.message) for one in warned),
        "entries": repr(ledger.entries),
        "ledger": repr(ledger),
    }
    yield from ((view, text.encode()) for view, text in views.items())
    yield from ((f"pickle {n}", pickle.dumps(result, protocol=n)) for n in (0, 4, 5))
    del ledger
    yield from ((file.name, file.read_bytes()) for file in folder.iterdir())


def leaks(name: str, table: Any, folder: Path, **more: Any) -> list[str]:
    return [
        f"{what}: {spelling!r}"
        for what, found in left_behind(name, table, folder, **more)
        for spelling in spellings()
        if spelling in found
    ]


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("name", CALLS)
def test_no_cell_is_left_behind(name: str, person: str | None, tmp_path: Path) -> None:
    assert leaks(name, frame(), tmp_path, person=person, contributions=2) == []


@pytest.mark.parametrize("name", ["mean", "ols, looks"])
def test_no_cell_of_lists_is_left_behind(name: str, tmp_path: Path) -> None:
    assert leaks(name, {n: list(cells) for n, cells in frame().items()}, tmp_path) == []


def test_a_record_that_holds_the_table_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "_NOT_PUBLIC", ("budget",))
    found = leaks("mean", {n: list(cells) for n, cells in frame().items()}, tmp_path)
    assert {"result.json", "report", "record"} <= {one.partition(":")[0] for one in found}


def test_every_public_call_is_here() -> None:
    made = {name.partition(",")[0].split()[0] for name in CALLS}
    public = {name.removeprefix("dp_") for name in dir(dpreg) if name.startswith("dp_")}
    assert made == public | {"aggregate"}
