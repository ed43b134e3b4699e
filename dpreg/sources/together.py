r"""Sums over each person's rows in a chunk that holds all rows of its persons: exact, or saturated.

A chunk that comes with `dpreg.sources.persons.PERSON` holds whole persons. What a person counts for
is limited after that person's rows were summed, so the sum has to be a function of these rows as a
multiset: not of their order, not of other persons, not of what shares the chunk.

Statement
---------
Let M = 2**63 - 1 and let c_1, ..., c_m be one person's cells, any int64 and any number of them.
`person_sums` returns min(M, max(-M, c_1 + ... + c_m)), the exact sum moved into [-M, M]. Hence
(a) it is the same in any order of rows and in any chunk; (b) it depends on no other person's rows;
(c) it never wraps: its sign is that of the exact sum, and its modulus is M or exact; (d) where
|c_r| <= w_r in each row, its modulus is at most the `person_sums` of w: a limit that is checked on
the sum of the rows' norms holds for the sum of the cells too, saturated or not.

Proof
-----
Let t be the largest modulus of the chunk's cells and L the most rows of one of its persons. Where
t L <= M, no partial sum of a person's cells, in any order or grouping, leaves [-M, M]: int64 adds
them exactly. Else each cell is written as c = a 2**42 + b 2**21 + d with 0 <= b, d < 2**21 and
-2**21 <= a < 2**21, which shifts and masks of two's complement do exactly. With m <= 2**41 rows
(whose cells alone would take 16 TiB) the three sums are at most 2**62, so int64 adds them exactly.
Carrying what the lower sums hold beyond 21 bits upwards moves these by less than 2**42; after it
c_1 + ... + c_m = a 2**42 + b 2**21 + d once more, and this is an int64 if and only if a lies in
[-2**21, 2**21). If not, the exact sum lies beyond [-2**63, 2**63) on the side of a's sign, and M or
-M is returned; -2**63 itself becomes -M. Both ways return the same number, so (b) holds although t
and L are the chunk's. (d): the exact sums satisfy it and x -> min(M, max(-M, x)) is odd and
monotone. QED
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError

__all__ = ["MOST", "first_rows", "person_sums"]

MOST: Final = 2**63 - 1
"""Where sums saturate, on both sides of zero."""

_LIMB: Final = 21
_MASK: Final = (1 << _LIMB) - 1


def first_rows(codes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the place of each person's first row, for codes that never fall.

    What all rows of a person have in common, as the coin, is read there.
    """
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    return np.concatenate([np.zeros(min(len(codes), 1), dtype=np.intp), changes])


def person_sums(
    codes: NDArray[np.int64], cells: NDArray[np.int64], persons: int | None = None
) -> NDArray[np.int64]:
    """Sum cells over the rows of each person, as the module's docstring says.

    Parameters
    ----------
    codes : array of int64, shape (rows,)
        Whose row it is, from 0. In no order that matters; that of `PERSON` is summed soonest.
    cells : array of int64, shape (rows,) or (rows, cells)
    persons : int, optional
        How many there are, if not as many as the largest code says.

    Returns
    -------
    array of int64, shape (persons,) or (persons, cells)
        Zero for a person without a row.

    Raises
    ------
    ArgumentError
        If the cells are of another type than int64, or as many as the codes are not.
    """
    if cells.dtype != np.int64 or len(cells) != len(codes):
        raise ArgumentError("cells must be int64, one row of them for each code")
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, cells = codes[order], cells[order]
    if persons is None:
        persons = int(codes[-1]) + 1 if len(codes) else 0
    sums = np.zeros((persons, *cells.shape[1:]), dtype=np.int64)
    if cells.size:
        starts = first_rows(codes)
        sums[codes[starts]] = _sums(cells, starts)
    return sums


def _sums(cells: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    largest = max(int(cells.max()), -int(cells.min()))
    longest = int(np.diff(starts, append=len(cells)).max())
    if largest * longest <= MOST:
        return _added(cells, starts)
    low = _added(cells & _MASK, starts)
    middle = _added(cells >> _LIMB & _MASK, starts) + (low >> _LIMB)
    high = _added(cells >> 2 * _LIMB, starts) + (middle >> _LIMB)
    fits = (high >= -(1 << _LIMB)) & (high < 1 << _LIMB)
    exact = (high << 2 * _LIMB) + ((middle & _MASK) << _LIMB) + (low & _MASK)
    return np.maximum(np.where(fits, exact, np.where(high < 0, -MOST, MOST)), -MOST)


def _added(cells: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[Any]:
    return np.add.reduceat(cells, starts, axis=0)
