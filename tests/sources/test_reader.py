"""What a call says of its passes: how many, and a bar where somebody looks."""

import io
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.cells import Kind
from dpreg.columns import Columns, Numeric
from dpreg.errors import ArgumentError, DataError, DpregWarning
from dpreg.sources import Chunk, LocalSource, Piece, as_source
from dpreg.sources.reader import Reader, showing
from dpreg.sources.table import TableSource, frame_source

SCHEMA = {"a": (-3, 3), "b": (-3, 3), "y": (-5, 5), "g": ["u", "v"]}
FORMULA = "y ~ a + b + g"


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "y"])
    data["g"] = np.where(rng.random(rows) < 0.5, "u", "v")
    return data


def lengths(chunks: Iterable[tuple[int, Chunk]]) -> np.ndarray:
    return np.array([sum(len(chunk["a"]) for _, chunk in chunks)], dtype=object)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Once(LocalSource):
    """A table that can be gone through once, and does not know how long it is."""

    rereadable = False

    def __init__(self, hold: bool) -> None:
        self.table, self.hold = frame_source(table()), hold
        self.names = self.table.names

    def kind(self, name: str) -> Kind:
        return self.table.kind(name)

    def count(self) -> int:
        raise AssertionError("counting uses the one pass up")

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        return self.table._pieces(columns, size)


def once(*, hold: bool = True) -> Once:
    return Once(hold)


@pytest.mark.parametrize("shown", [True, False])
def test_reading_chunk_by_chunk_is_a_pass_too(
    shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(as_source(table()), shown)
    assert sum(len(chunk["a"]) for chunk in reader.chunks({"a": Numeric(0, 1)}, "rows")) == 3000
    assert reader.passes == 1
    assert ("block" in capsys.readouterr().err) is shown


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_counts_blocks_on_stderr_alone(
    shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Reader(as_source(table()), shown)
    assert reader.total({"a": Numeric(0, 1)}, lengths, "moments").tolist() == [3000]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert ("moments" in printed.err and "block" in printed.err) is shown
    assert "3000" not in printed.err.replace(",", "")


def test_unasked_bars_are_for_terminals_and_for_passes_that_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert showing(None) is False
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert showing(None) is True
    assert showing(False) is False
    Reader(as_source(table())).total({"a": Numeric(0, 1)}, lengths, "moments")
    assert sys.stderr.getvalue().strip() == ""


PASSES = [
    (lambda data: dpreg.dp_select(FORMULA, data, eps=1, schema=SCHEMA, fit="same"), 3),
    (lambda data: dpreg.dp_select(FORMULA, data, eps=1, schema=SCHEMA, fit="fresh"), 5),
    (lambda data: dpreg.dp_select(FORMULA, data, eps=1, schema=SCHEMA, method="pcls"), 1),
    (
        lambda data: dpreg.dp_ols(
            FORMULA, data, 1, schema=SCHEMA, method=dpreg.Auto(noise="matrix-laplace")
        ),
        5,
    ),
    (lambda data: dpreg.dp_ols(FORMULA, data, eps=1, schema=SCHEMA), 5),
    (lambda data: dpreg.dp_ols(FORMULA, data, eps=1, schema=SCHEMA, method="gram"), 1),
    (lambda data: dpreg.dp_ols(FORMULA, data, 1, delta=1e-6, schema=SCHEMA, method="ssp"), 1),
    (lambda data: dpreg.dp_mean(["a", "b"], data, eps=1, schema=SCHEMA, by="g"), 1),
    (lambda data: dpreg.dp_quantile("a", [0.1, 0.5], data, eps=1, schema=SCHEMA), 1),
    (lambda data: dpreg.dp_suffstats("a", data, eps=1, schema=SCHEMA), 1),
    (lambda data: dpreg.dp_histogram("g", data, eps=1, schema=SCHEMA), 1),
    (lambda data: dpreg.dp_histogram("a", data, eps=1, schema=SCHEMA), 2),
]


def _noting(made: list[int], honest):
    def called(*given, **more):
        made.append(1)
        return honest(*given, **more)

    return called


@pytest.mark.parametrize(("call", "passes"), PASSES)
def test_every_summary_counts_its_passes(
    call, passes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for name in ("total", "chunks"):  # sums of rows, or the rows themselves
        honest = getattr(TableSource, name)
        monkeypatch.setattr(TableSource, name, _noting(made, honest))
    result = call(table())
    assert result.passes == len(made) == passes
    assert f"Passes: {passes}" in " ".join(str(result.summary(full=True)).split())
    result.save(tmp_path / "result.json")
    assert dpreg.load(tmp_path / "result.json").passes == passes


@pytest.mark.parametrize("columns", [["a"], ["a", "b", "y"]])
@pytest.mark.parametrize(
    ("call", "looks"),
    [(dpreg.dp_select, 5), (partial(dpreg.dp_ols, noise="matrix-laplace"), 5)],
)
def test_bounds_of_all_columns_take_three_passes(call, looks: int, columns: list[str]) -> None:
    left = {name: kind for name, kind in SCHEMA.items() if name not in columns}
    with pytest.warns(DpregWarning, match="leaves out"):
        result = call(FORMULA, table(), eps=1, schema=left)
    assert result.passes == 3 + looks


@pytest.mark.parametrize("call", [call for call, passes in PASSES if passes == 1])
def test_a_table_that_can_be_read_once_will_do_for_one_pass(call) -> None:
    assert call(once()).nobs == 3000


def test_what_needs_more_and_may_not_be_held_is_refused_before_anything_is_charged() -> None:
    ledger = dpreg.Ledger(1)
    bare = {"g": ["u", "v"]}
    once = partial(globals()["once"], hold=False)
    with pytest.raises(DataError, match="must read it 5 times"):
        dpreg.dp_select(FORMULA, once(), eps=1, schema=bare, budget=ledger)
    with pytest.raises(DataError, match="must read it 4 times"):
        dpreg.dp_ols(FORMULA, once(), 1, schema=bare, neighbors="add-remove", budget=ledger)
    with pytest.raises(DataError, match="must read it 2 times"):
        dpreg.dp_select(
            FORMULA, once(), 1, schema=SCHEMA, budget=ledger, method=dpreg.PCLS(radius="private")
        )
    with pytest.raises(DataError, match="must read it 3 times"):
        dpreg.dp_histogram("a", once(), eps=1, schema=SCHEMA, budget=ledger)
    assert ledger.spent.eps == 0


def test_a_bad_number_of_threads_is_refused_before_anything_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DPREG_THREADS", "0")
    ledger = dpreg.Ledger(9)
    given = {"eps": 1, "schema": SCHEMA, "budget": ledger}
    calls = [
        lambda: dpreg.dp_select(FORMULA, table(), **given),
        lambda: dpreg.dp_ols(FORMULA, table(), **given),
        lambda: dpreg.dp_mean("a", table(), **given),
        lambda: dpreg.dp_histogram("g", table(), **given),
        lambda: dpreg.sample_aggregate(lambda block: 0.0, table(), bounds=(0, 1), **given),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="DPREG_THREADS"):
            call()
    assert ledger.spent.eps == 0
