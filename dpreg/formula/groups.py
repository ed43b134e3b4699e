"""Which columns of a design are left as codes of their factors' levels, and how rows make them.

A column that is 0 but at one level of each factor of levels in it (treatment coding, full or
reduced, times any numbers) belongs to a group: on each row the factors' levels say which one of the
group's columns is not 0. See `dpreg.grouped.layout`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.formula.columns import Column
from dpreg.formula.factors import Coded, Factor
from dpreg.formula.rows import Mask, Product, scaled_by
from dpreg.grouped.grid import to_grid
from dpreg.grouped.layout import Group, Layout, Slots

__all__ = ["CodedColumns", "coded_columns", "layout_of_columns"]

_FEWEST = 16
"""Columns of a group: fewer are sooner multiplied with the others, as numbers."""

Float = NDArray[np.float64]
Part = tuple[str, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumns:
    """How rows make a group's codes and values.

    Attributes
    ----------
    group : Group
    factors : tuple of str
        Factors of levels.
    table : array, one axis a factor
        The group's column at each combination of their levels; -1 where there is none.
    numbers : tuple of (str, int)
        Factors of numbers, and which of their columns, in the order in which patsy multiplies.
    offset, width : (m,) array
        Of the group's columns.
    """

    group: Group
    factors: tuple[str, ...]
    table: NDArray[np.intp]
    numbers: tuple[tuple[str, int], ...]
    offset: Float
    width: Float

    def slots(self, values: Mapping[str, Any], complete: Mask) -> Slots:
        """Make the codes and values of some rows, from their factors' values."""
        found = self.table[tuple(values[code] for code in self.factors)]
        codes = np.where(complete, found, -1)
        if not self.numbers:
            return Slots(codes, None)
        (code, place), *others = self.numbers
        raw = values[code][place]
        for code, place in others:
            raw = raw * values[code][place]
        stored = np.empty(len(codes))
        scaled_by(raw, self.offset[codes], self.width[codes], stored)
        return Slots(codes, stored)


def coded_columns(
    products: Sequence[Product], columns: Sequence[Column], factors: Mapping[str, Factor]
) -> tuple[CodedColumns, ...]:
    """Find the groups among a design's columns.

    Parameters
    ----------
    products, columns : sequences of Product and Column
        Of z_1, ..., z_p.
    factors : mapping of str to Factor
    """
    members: dict[tuple[Part, ...], dict[tuple[int, ...], int]] = {}
    for place, product in enumerate(products, 1):
        parts: list[Part] = []
        levels: list[int] = []
        for code, own, indicator in product.parts:
            if indicator is None:
                parts.append((code, own))
                continue
            parts.append((code, None))
            levels.append(_only_level(indicator))
        if levels and min(levels) >= 0:
            members.setdefault(tuple(parts), {}).setdefault(tuple(levels), place)
    return tuple(
        _made(key, group, columns, factors)
        for key, group in members.items()
        if len(group) >= _FEWEST
    )


def layout_of_columns(size: int, coded: Sequence[CodedColumns]) -> Layout:
    """Lay out the moments of D = `size` columns, some of them in groups."""
    groups = tuple(one.group for one in coded)
    grouped = np.concatenate([np.zeros(0, dtype=np.int64), *(one.places for one in groups)])
    return Layout(size, np.setdiff1d(np.arange(size), grouped), groups)


def _only_level(indicator: Float) -> int:
    """Return the one level at which a column is 1 and not 0; -1 where it is not such a column."""
    level = int(indicator.argmax())
    return level if indicator[level] == 1 and np.count_nonzero(indicator) == 1 else -1


def _made(
    parts: tuple[Part, ...],
    members: Mapping[tuple[int, ...], int],
    columns: Sequence[Column],
    factors: Mapping[str, Factor],
) -> CodedColumns:
    labels = tuple(code for code, place in parts if place is None)
    numbers = tuple((code, place) for code, place in parts if place is not None)
    sizes = [_levels(factors[code]) for code in labels]
    table = np.full(math.prod(sizes), -1, dtype=np.intp)
    table[np.ravel_multi_index(np.array(list(members)).T, sizes)] = np.arange(len(members))
    places = np.array(list(members.values()), dtype=np.int64)
    own = [columns[place - 1] for place in places]
    offset = np.array([column.offset for column in own])
    width = np.array([column.width for column in own])
    rest, named = np.empty(len(own)), np.empty(len(own))
    scaled_by(np.zeros(len(own)), offset, width, rest)
    scaled_by(np.ones(len(own)), offset, width, named)
    cells = to_grid(rest).astype(np.int64)
    steps = None if numbers else to_grid(named).astype(np.int64) - cells
    group = Group(places, cells, steps)
    return CodedColumns(group, labels, table.reshape(sizes), numbers, offset, width)


def _levels(factor: Factor) -> int:
    assert isinstance(factor, Coded)
    return len(factor.levels)
