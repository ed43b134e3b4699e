"""Between releases there is nothing but what was released: see `oracles.replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from oracles import constant, recorded_calls, replay
from oracles.recorded_calls import MATRIX, run

LOOKING = ("objective", "adaptive", "select(family", "'auto'", "fit='fresh'", "fit='split'")
"""Of calls that look several times: `LOOKED` and `ALONE` have some of each kind."""
RECORDED = [name for name in MATRIX if not any(word in name for word in LOOKING)]
ADAPTIVE = {"method": "adaptive", "eps": 30}
GAUSSIAN = {"delta": "1e-6", "eps": 30}
LOOKED: dict[str, tuple[str, dict[str, Any]]] = {
    "ols": ("ols", ADAPTIVE),
    "ols, Gaussian": ("ols", {**ADAPTIVE, **GAUSSIAN}),
    "ols, add-remove": ("ols", {**ADAPTIVE, "neighbors": "add-remove"}),
    "ols, persons": ("ols", {**ADAPTIVE, "person": "who"}),
    "ols, persons, Gaussian": ("ols", {**ADAPTIVE, **GAUSSIAN, "person": "who"}),
    "ols, bounds bought": ("ols", {**ADAPTIVE, **GAUSSIAN, "schema": "bare"}),
    "logit": ("glm", {"eps": 30}),
    "logit, Gaussian": ("glm", GAUSSIAN),
    "logit, trials": ("glm", {**GAUSSIAN, "trials": "I(z + 4)"}),
    "logit, persons": ("glm", {**GAUSSIAN, "person": "who"}),
    "counts": ("glm", {"eps": 30, "family": "poisson"}),
    "counts, Gaussian, add-remove": (
        "glm", {**GAUSSIAN, "family": "poisson", "neighbors": "add-remove", "offset": "I(a ** 2)"}
    ),
    "choice": ("select", {**ADAPTIVE, "fit": "same"}),
    "choice, Gaussian, add-remove": (
        "select", {**ADAPTIVE, **GAUSSIAN, "fit": "fresh", "neighbors": "add-remove"}
    ),
    "choice, persons": ("select", {**ADAPTIVE, "fit": "fresh", "person": "who"}),
    "choice, logit": ("select", {**GAUSSIAN, "family": "binomial", "fit": "fresh"}),
    "counts, persons": ("glm", {"eps": 30, "family": "poisson", "person": "who"}),
    "ols, weights, some rows": (
        "ols", {**ADAPTIVE, **GAUSSIAN, "weights": "I(z + 4)", "where": "a < 0.5"}
    ),
    "ols, weights, persons, some rows": (
        "ols", {**ADAPTIVE, "weights": "I(z + 4)", "where": "a < 0.5", "person": "who"}
    ),
    "choice, counts, offset, some rows": (
        "select",
        {
            **GAUSSIAN, "family": "poisson", "fit": "fresh",
            "offset": "I(a ** 2)", "where": "c > 0.2",
        },
    ),
}  # fmt: skip
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ssp": ("ols", {"method": "ssp", "delta": "1e-6"}),
    "adassp": ("ols", {"method": "adassp", "delta": "1e-6", "neighbors": "add-remove"}),
    "gram, some rows": ("ols", {"where": "a < 0.5", "delta": "1e-6"}),
    "means of some rows": ("mean", {"where": "a < 0.5", "by": "g"}),
    "quantiles of some rows": ("quantile", {"where": "c > 0.2", "neighbors": "add-remove"}),
    "histogram of some rows": ("histogram", {"where": "c > 0.2", "neighbors": "add-remove"}),
    "blocks of some rows": ("aggregate", {"where": "a < 0.5", "blocks": 20}),
    "persons": ("mean", {"person": "who", "contributions": 2}),
    "persons, aggregated": ("aggregate", {"person": "who", "contributions": 2, "blocks": 20}),
}
ALONE: dict[str, tuple[str, dict[str, Any]]] = {
    "objective": ("ols", {"method": "objective", "eps": 30}),
    "objective, add-remove": ("ols", {"method": "objective", "neighbors": "add-remove", "eps": 9}),
    "objective, poor": ("ols", {"method": "objective", "eps": "0.5", "delta": "1e-6"}),
}
"""Coefficients alone, of minima."""
PLAIN = {name: MATRIX[name] for name in RECORDED}
CELLS = PLAIN | OTHERS | LOOKED | ALONE
QUICK = [
    *(name for name in PLAIN if "contributions=1" in name and not name.startswith("glm")),
    *OTHERS,
    *LOOKED,
]


def _tables(options: dict[str, Any]) -> list[pd.DataFrame]:
    """Tables of the same public facts: of any length where the number of rows is private."""
    plain = options.get("form", "pandas") != "pandas" or options.get("complete", False)
    made = constant.tables(plain)
    if options.get("neighbors") == "add-remove" or "person" in options:
        many = pd.concat([made[1]] * 3, ignore_index=True)
        made = [made[0].iloc[:131], many, made[2].iloc[:1], made[3], made[4].iloc[:0]]
    return made


def _seen(
    cell: str, folder: Path, patch: pytest.MonkeyPatch, which: slice = slice(None)
) -> tuple[replay.Tape, dict[str, str]]:
    """Run a call on the reference table, then on the others; return what is not as it was there."""
    call, options = CELLS[cell]
    tape, found = replay.listen(patch), dict[str, str]()
    reference = recorded_calls.frame()
    first = dict[str, str]()
    for place, table in enumerate([reference, *_tables(options)[which]]):
        patch.setattr(recorded_calls, "frame", lambda table=table: table)
        own = folder / str(place)
        own.mkdir()
        tape.start(replaying=place > 0)

        def made(data: pd.DataFrame, ledger: Any, own: Path = own) -> Any:
            return run(call, options, ledger, own)

        views = constant.views(made, table)
        assert {"json", "pickle"} <= set(views), views["error"]
        views |= {f"door {step}": door for step, door in enumerate(tape.doors)}
        first = first or views
        for name in {**first, **views}:
            if first.get(name) != views.get(name):
                found[name] = f"{first.get(name)} became {views.get(name)}"
    assert tape.released
    return tape, found


@pytest.mark.parametrize("cell", QUICK)
def test_nothing_but_what_was_released_leaves_a_release(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, found = _seen(cell, tmp_path, monkeypatch, slice(1, None, 3))
    assert not tape.alike, "released without noise"
    assert found == {}


@pytest.mark.parametrize("cell", LOOKED)
def test_nothing_but_what_was_released_leaves_looks(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, found = _seen(cell, tmp_path, monkeypatch, slice(1, None, 3))
    assert not tape.alike, "released without noise"
    assert found == {}


@pytest.mark.parametrize("cell", ALONE)
def test_nothing_but_what_was_released_leaves_coefficients_alone(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, found = _seen(cell, tmp_path, monkeypatch, slice(1, None, 3))
    assert not tape.alike, "released without noise"
    assert found == {}


@pytest.mark.audit
@pytest.mark.parametrize("cell", CELLS)
def test_nothing_but_what_was_released_leaves_any_release(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape, found = _seen(cell, tmp_path, monkeypatch)
    assert not tape.alike, "released without noise"
    assert found == {}
