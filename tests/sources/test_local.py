"""A pass: every row once, whatever the threads; public facts first; nothing of the rows shown."""

import threading
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
import pytest

from dpreg.columns import ColumnType, Numeric
from dpreg.errors import ArgumentError, DataError
from dpreg.sources import Chunk, LocalSource, Piece, as_source
from dpreg.sources.base import CHUNK_ROWS

COLUMNS: Mapping[str, ColumnType] = {"a": Numeric(0, 1)}


class Places:
    """Counts rows, adds up their places and values; remembers the threads that it ran in."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> np.ndarray:
        rows = places = values = 0
        for start, chunk in chunks:
            self.threads.add(threading.get_ident())
            cells = chunk["a"]
            rows += len(cells)
            places += int(np.arange(start, start + len(cells)).sum())
            values += int(cells.sum())
        return np.array([rows, places, values * 2**70], dtype=object)


def whole(rows: int) -> list[int]:
    return [rows, rows * (rows - 1) // 2, rows * (rows - 1) // 2 * 2**70]


@pytest.mark.parametrize("cores", [1, 2, 5])
@pytest.mark.parametrize("rows", [0, 1, CHUNK_ROWS, 10 * CHUNK_ROWS + 3])
def test_every_row_counts_once_whatever_the_threads(
    rows: int, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPREG_THREADS", str(cores))
    tally = Places()
    source = as_source({"a": np.arange(rows, dtype=np.float64)})
    assert source.total(COLUMNS, tally).tolist() == whole(rows)
    assert len(tally.threads) <= (cores if rows > 4 * CHUNK_ROWS else 1)


def test_no_numerical_warning_tells_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's state belongs to a thread: those that tally do not take over the call's."""
    monkeypatch.setenv("DPREG_THREADS", "3")
    threads = set()

    def overflowing(chunks: Iterable[tuple[int, Chunk]]) -> np.ndarray:
        threads.add(threading.get_ident())
        return np.array([sum(int((chunk["a"] * 1e308 * 1e308 > 0).sum()) for _, chunk in chunks)])

    for rows in (CHUNK_ROWS, 10 * CHUNK_ROWS):
        source = as_source({"a": np.ones(rows)})
        assert source.total(COLUMNS, overflowing).tolist() == [rows]
    assert threading.get_ident() in threads
    assert len(threads) > 1


class Faulty(LocalSource):
    """Fails where it is told to."""

    names = ("a",)
    rows = None

    def __init__(self, failing: int, pieces: int = 99) -> None:
        self.read = 0
        self.failing = failing
        self.pieces = pieces

    def kind(self, name: str) -> str:
        return "numeric"

    def count(self) -> int:
        return self.pieces

    def _pieces(self, columns: object, size: int) -> Iterator[Piece]:
        for place in range(self.pieces):
            if place == self.failing:
                raise DataError("the engine failed")
            self.read += 1
            yield Piece(1, lambda: {"a": np.ones(1)}, place // 10)


def test_an_error_of_the_engine_ends_all_threads() -> None:
    source = Faulty(40)
    with pytest.raises(DataError, match="the engine failed"):
        source.total(COLUMNS, Places())
    assert source.read == 40


def test_an_error_in_one_thread_stops_the_others_from_taking_more() -> None:
    source = Faulty(-1, 10_000)

    def stumble(chunks: Iterable[tuple[int, Chunk]]) -> np.ndarray:
        for start, _ in chunks:
            if start == 5:
                raise DataError("no")
        return np.zeros(1, dtype=object)

    with pytest.raises(DataError, match="no"):
        source.total(COLUMNS, stumble)


def test_a_bar_is_told_of_every_part_once() -> None:
    told: list[int] = []
    Faulty(-1, 95).total(COLUMNS, Places(), advance=told.append)
    assert sum(told) == 10
    assert min(told) > 0
    told.clear()
    assert len(list(Faulty(-1, 95).chunks(COLUMNS, advance=told.append))) == 95
    assert sum(told) == 10
    told.clear()
    Faulty(-1, 0).total(COLUMNS, Places(), advance=told.append)
    assert told == []


def test_a_pass_is_refused_before_a_row_is_read() -> None:
    source = Faulty(0)
    with pytest.raises(ArgumentError, match="at least one column"):
        source.total({}, Places())
    with pytest.raises(DataError, match="no column 'b'"):
        as_source({"a": [1]}).total({"b": Numeric(0, 1)}, Places())
    assert source.read == 0


def test_repr_counts_no_rows_and_names_repeated_columns() -> None:
    frame = pd.DataFrame([[1.0, 2.0, "x"]], columns=["a", "a", "g"])
    assert repr(as_source(frame)) == "Source(a: repeated, a: repeated, g: string)"
