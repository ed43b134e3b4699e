"""With constant mechanisms nothing that is released tells one table from another.

See `oracles.constant`. The calls are those of the recording's matrix, and some more.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from oracles import constant, recorded_calls
from oracles.recorded_calls import MATRIX as RECORDED
from oracles.recorded_calls import run

from dpreg.api import select as select_adaptive
from dpreg.arrays import MOMENT_BITS
from dpreg.choice import Choice, choose
from dpreg.estimation import sums
from dpreg.looks import table as looks
from dpreg.looks.coordinates import place_of
from dpreg.privacy.budget import Spend
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import Stability
from dpreg.results.claim import LedgerPosition, Look, PrivacyClaim, ReleasedLook, ReleaseRecord
from dpreg.results.classic import ClassicResults, HistogramResults
from dpreg.results.contrast import Contrast, Prediction
from dpreg.results.glm import GLMResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import GLMSelectionResults, SelectionResults
from dpreg.selection import run as selecting

LOOKED: dict[str, dict[str, Any]] = {
    "adaptive, replace-one": {"eps": 30},
    "adaptive, add-remove": {"neighbors": "add-remove"},
    "adaptive, Gaussian": {"eps": 30, "noise": "gaussian", "delta": "1e-6", "contributions": 3},
    "adaptive, matrix-Laplace": {"noise": "matrix-laplace", "neighbors": "add-remove"},
    "adaptive, bounds bought": {"eps": 30, "schema": "bare", "delta": "1e-6"},
    "objective, replace-one": {"method": "objective", "eps": "0.5", "delta": "1e-6"},
    "objective, add-remove": {"method": "objective", "neighbors": "add-remove", "contributions": 3},
    "objective, bounds bought": {"method": "objective", "schema": "bare", "eps": 60},
}
MATRIX = RECORDED | {
    name: ("ols", {"method": "adaptive", **options}) for name, options in LOOKED.items()
}


def _differing(
    cell: str, folder: Path, patch: pytest.MonkeyPatch, which: slice = slice(None)
) -> dict[str, list[str]]:
    """Return the views of a call that are not the same for all tables, each with what it was."""
    call, options = MATRIX[cell]
    found: dict[str, set[str]] = {}
    numbers_only = options.get("form", "pandas") != "pandas" or options.get("complete", False)
    for place, table in enumerate(constant.tables(numbers_only)[which]):
        patch.setattr(recorded_calls, "frame", lambda table=table: table)
        own = folder / str(place)
        own.mkdir()

        def made(data: pd.DataFrame, ledger: Any, own: Path = own) -> Any:
            return run(call, options, ledger, own)

        for name, text in constant.views(made, table).items():
            found.setdefault(name, set()).add(text)
    assert {"json", "pickle", "html", "latex"} <= set(found), found["error"]
    return {name: sorted(texts) for name, texts in found.items() if len(texts) > 1}


QUICK = slice(1, None, 3)
FEW = [*list(RECORDED)[::5], *LOOKED]


@pytest.mark.parametrize("cell", FEW)
def test_no_view_differs(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constant.constant(monkeypatch)
    assert _differing(cell, tmp_path, monkeypatch, QUICK) == {}


@pytest.mark.audit
@pytest.mark.parametrize("cell", MATRIX)
def test_no_view_differs_on_five_tables(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constant.constant(monkeypatch)
    assert _differing(cell, tmp_path, monkeypatch) == {}


def _of_other_lengths(numbers_only: bool = False) -> list[pd.DataFrame]:
    many, fitted, alike, *_ = _tables(True)
    return [many, fitted.iloc[:131], alike.iloc[:1], many.iloc[:0]]


_tables = constant.tables
OWNED = {"contributions": 2, "person": "who", "eps": 30}
PRIVATE_N: dict[str, tuple[str, dict[str, Any]]] = {
    "ols": ("ols", {"neighbors": "add-remove", "method": "adaptive", "eps": 30}),
    "select": ("select", {"neighbors": "add-remove", "method": "auto", "eps": 30}),
    "glm": ("glm", {"neighbors": "add-remove", "delta": "1e-6", "eps": 30}),
    "glm of persons": ("glm", {**OWNED, "family": "poisson"}),
}


@pytest.mark.parametrize("cell", PRIVATE_N)
def test_no_view_tells_a_private_number_of_rows(
    cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables above are of one length; where that is private, no length shows anywhere."""
    constant.constant(monkeypatch)
    monkeypatch.setitem(MATRIX, cell, PRIVATE_N[cell])
    monkeypatch.setattr(constant, "tables", _of_other_lengths)
    assert _differing(cell, tmp_path, monkeypatch) == {}


# ---- mutants: a field fed from exact moments ---------------------------------------------------


def _exact_count(moments: Any, part: Any) -> int:
    part.draw("laplace", Stability(protection=part.protection), moments.group)
    return max(int(moments.cells[0][0] >> MOMENT_BITS), 1)


def _rows_beside_the_sums(exact: Any, coding: Any, noise: Any, **options: Any) -> Any:
    return [
        sums.NoisySums(float(own[0]), one.sums, one.squares, one.noise)
        for own, one in zip(exact, _release(exact, coding, noise, **options), strict=True)
    ]


def _limit_from_the_exact_residual(self: Any, point: Any, *rest: Any) -> Any:
    """Release a look, and say that its residuals were cut where their exact squares tell."""
    found = _locating(self, point, *rest)
    place, _ = place_of(point, rest[0], information=1.0, score=1.0, together=True)
    squares = self._sums(place, self.described, matrix=False).middle / CELL_UNITS
    return dataclasses.replace(found, limits=(found.limits[0], 1.0 + squares))


_release = sums.release
_locating = looks.Taken.locating
MUTANTS: dict[str, tuple[str, Any, str, Any]] = {
    "the exact count prices a model": (
        "select(neighbors='add-remove', contributions=1, sigma2='1/20', penalty='bic', fit=None)",
        selecting,
        "noisy_count",
        _exact_count,
    ),
    "a mean's count is exact": (
        "mean(neighbors='add-remove', contributions=1)",
        sums,
        "release",
        _rows_beside_the_sums,
    ),
    "the limit of a look follows the exact residual": (
        "select(neighbors='replace-one', contributions=1, method='adaptive', eps=30)",
        looks.Taken,
        "locating",
        _limit_from_the_exact_residual,
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_field_from_exact_moments_is_caught(
    mutant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, module, name, instead = mutant
    constant.constant(monkeypatch)
    monkeypatch.setattr(module, name, instead)
    assert "json" in _differing(cell, tmp_path, monkeypatch)


def test_a_choice_that_reads_exact_moments_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constant.constant(monkeypatch)
    seen: list[list[int]] = []
    honest = looks.exact_sums

    def watching(tally: Any, vector: Any) -> Any:
        found = honest(tally, vector)
        seen.append(list(found.score))
        return found

    def leaking(laws: Any, space: Any, **options: Any) -> Choice:
        found = tuple(unit for unit in range(len(space.units)) if seen[-1][1 + unit] > 0)
        return dataclasses.replace(choose(laws, space, **options), found=found)

    monkeypatch.setattr(looks, "exact_sums", watching)
    monkeypatch.setattr(select_adaptive, "choose", leaking)
    told = "select(neighbors='replace-one', contributions=1, method='adaptive', eps=30, fit=None)"
    monkeypatch.setitem(MATRIX, told, ("select", {"method": "adaptive", "eps": 30, "fit": None}))
    assert "json" in _differing(told, tmp_path, monkeypatch)


# ---- the table of released fields --------------------------------------------------------------

CLASSES: tuple[type, ...] = (
    SelectionResults, RegressionResults, GLMResults, GLMSelectionResults, ClassicResults,
    HistogramResults,
    PrivacyClaim, Spend, Look, ReleasedLook, ReleaseRecord, LedgerPosition, Contrast, Prediction,
)  # fmt: skip


def test_the_table_lists_every_released_field() -> None:
    page = Path(__file__).parents[2] / "docs" / "released.md"
    listed: dict[str, list[str]] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## `"):
            listed[line.split("`")[1]] = fields = []
        elif line.startswith("As `"):
            fields += listed[line.split("`")[1]]
        elif line.startswith("| `"):
            fields += [name.strip().strip("`") for name in line.split("|")[1].split(",")]
    assert {kind: sorted(fields) for kind, fields in listed.items()} == {
        kind.__name__: sorted(field.name for field in dataclasses.fields(kind)) for kind in CLASSES
    }


def test_the_tests_that_the_table_names_exist() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "released.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[a-z_/]+\.py)`", page))
    assert len(named) > 3
    assert all((root / name).is_file() for name in named)
