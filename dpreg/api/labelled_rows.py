"""Rows that are held elsewhere, by whoever takes the blocks: R, of its own objects.

Here are only each row's group and the person whose row it is.

*Statement.* With `persons` the rows that blocks are taken from are a set of persons' kept rows, at
most k of each, and each person has one coin: what `dpreg.sources.persons` asks for.

*Proof.* A person's rows are numbered in the order in which they stand, missing and blank ids left
out. A row's priority is a keyed hash of the id and that number, and the k rows of least priority
are kept. So which of a person's rows are kept follows from the key, the id and how many rows the
person has; nobody else's rows, and no cell, has a say. The cells of a row need no part in it, as
they do where a table is gone through several times and in any order: here there is one order and
one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.block_table import BlockTable, Groups
from dpreg.api.inputs import group_codes
from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import Rows
from dpreg.schema import ColumnType, Schema
from dpreg.sources import check_columns
from dpreg.sources.persons import Persons, coins_of, keep
from dpreg.sources.table import frame_source

__all__ = ["labelled_rows"]

_LEFT_OUT = -1


def labelled_rows(
    data: pd.DataFrame, by: str | None, schema: Any, persons: Persons | None = None
) -> BlockTable:
    """Return rows of which somebody else takes the blocks.

    Parameters
    ----------
    data : DataFrame
        As many rows, and the column `by` and that of `persons`, if any.
    by : str or None
    schema : what `Schema.from_any` takes
    persons : Persons or None
        Whose rows they are.
    """
    return _Labelled(data, by, Schema.from_any(schema), persons)


class _Labelled(BlockTable):
    """Rows whose groups and persons are here."""

    def __init__(
        self, data: pd.DataFrame, by: str | None, schema: Schema, persons: Persons | None
    ) -> None:
        self._source = frame_source(data)
        self.groups = Groups.of(by, schema)
        self._how: dict[str, ColumnType] = {}
        if self.groups.name is not None and self.groups.how is not None:
            self._how = {self.groups.name: self.groups.how}
        self._persons = persons
        self.by_person = persons is not None
        read = self._how if persons is None else persons.read_with(self._how)
        check_columns(self._source, read)
        self._labels = np.zeros(0, dtype=np.int64)
        self._coins: NDArray[np.float64] | None = None

    @property
    def passes(self) -> int:
        return 1

    def count(self) -> int:
        return self._source.rows

    def read(self) -> int:
        rows, persons = self._source.rows, self._persons
        read = self._how if persons is None else persons.read_with(self._how)
        chunk = {}
        if read and rows:
            (chunk,) = self._source.chunks(read, rows)
        self._labels = np.zeros(rows, dtype=np.int64)
        if self.groups.name is not None and rows:
            self._labels = group_codes(chunk[self.groups.name])
        if persons is None or not rows:
            self._coins = None if persons is None else np.zeros(0)
            return rows
        ids = chunk[persons.column]
        kept = _kept(ids, persons)
        self._labels = np.where(kept, self._labels, _LEFT_OUT)
        self._coins = coins_of(ids["low"])
        return int(kept.sum())

    @property
    def rows(self) -> Rows:
        raise ArgumentError("these rows are where their blocks are taken, and not here.")

    def labels(self) -> NDArray[np.int64]:
        return self._labels

    def coins(self) -> NDArray[np.float64] | None:
        return self._coins


def _kept(ids: NDArray[Any], persons: Persons) -> NDArray[np.bool_]:
    """Tell which rows are kept; ids (rows,) are hashes, zero where there is none."""
    there = np.flatnonzero((ids["high"] != 0) | (ids["low"] != 0))
    there = there[np.lexsort((ids["low"][there], ids["high"][there]))]  # stable: in order of rows
    high, low = ids["high"][there], ids["low"][there]
    first = np.ones(len(there), dtype=bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    places = np.arange(len(there))
    number = places - np.maximum.accumulate(np.where(first, places, 0))
    told = np.column_stack([high.view(np.float64), low.view(np.float64), number.astype(np.float64)])
    chosen = keep(told, persons.rows, persons.key)
    kept = np.zeros(len(ids), dtype=bool)
    kept[there[np.isin(_whole(told), _whole(chosen))]] = True
    return kept


def _whole(rows: NDArray[np.float64]) -> NDArray[Any]:
    """Return each row's bits as one value."""
    rows = np.ascontiguousarray(rows)
    return rows.view([("bits", f"S{rows.itemsize * rows.shape[1]}")])["bits"].ravel()
