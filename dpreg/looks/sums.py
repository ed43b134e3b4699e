"""Sums over rows at a place: exact integers, whatever holds the table.

Statement. A look's sums are the exact integers, whatever the order of the rows, the sizes of the
chunks, the BLAS, its number of threads and its order of summation.

Proof. As for `dpreg.moments`: a cell is an integer in [-2**20, 2**20], held exactly by a float64; a
product of two is at most 2**40, and a sum of at most 8192 = 2**13 of them never leaves
[-2**53, 2**53], where every integer is a float64. Sums of blocks are added in int64, which holds
2**9 of them, and moved to Python's integers at least that often. QED
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.grouped import CELL_BITS
from dpreg.looks.rows import PIECE, Rows
from dpreg.sources import Chunk, Integers
from dpreg.sources.persons import PERSON

__all__ = ["Exact", "LookTally", "exact_sums"]

_FLUSH: Final = 512  # proved
_UNIT: Final = 1 << CELL_BITS
_QUARTER: Final = 2.0 ** (2 * CELL_BITS - 2)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exact:
    """The exact sums of one look, integers in units of 2**-40; they never leave this room.

    Attributes
    ----------
    rows : int
        Rows read, complete or not.
    information : (d, d) tuple of tuples
        Sum of k k'.
    score : tuple
        2**20 times the sum of f; at a locating look the sum of k f.
    middle : (d, d) tuple of tuples, or int
        Sum of f f', or of |f|^2.
    tail : int
        Sum of max(|f|^2 - 2**38, 0).
    """

    rows: int
    information: tuple[tuple[int, ...], ...]
    score: tuple[int, ...]
    middle: tuple[tuple[int, ...], ...] | int
    tail: int = 0


@dataclass(frozen=True, slots=True)
class LookTally:
    """Adds up what a look is of; see `dpreg.sources.Tally`.

    Attributes
    ----------
    rows : Rows
    matrix : bool
        Whether the middle is a matrix; else its trace.
    persons : bool
        Whether rows come by person.
    tail : bool
        Whether the scores beyond half their limit are summed too.
    """

    rows: Rows
    matrix: bool
    persons: bool = False
    tail: bool = False

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        """Sum over some of the rows, as one vector."""
        total: NDArray[Any] | None = None
        size = self.rows.described.size
        triangle = np.triu_indices(size)
        partial, pending = np.zeros(self._length(size), dtype=np.int64), 0
        for _, chunk in chunks:
            cells = self.rows.cells(chunk)
            for k, f in self._units(cells, chunk):
                sums = [np.array([k.shape[1]]), (k @ k.T)[triangle]]
                if self.rows.place.together:
                    sums += [k @ f[0], (f @ f.T).ravel()]
                elif self.matrix:
                    sums += [f.sum(axis=1), (f @ f.T)[triangle]]
                else:
                    sums += [f.sum(axis=1), np.array([np.einsum("ij,ij->", f, f)])]
                if self.tail:
                    squares = np.einsum("ij,ij->j", f, f)
                    sums.append(np.array([np.maximum(squares - _QUARTER, 0.0).sum()]))
                partial += np.concatenate(sums).astype(np.int64)
                pending += 1
                if pending == _FLUSH:
                    total = partial.astype(object) + (0 if total is None else total)
                    partial[:], pending = 0, 0
        return partial if total is None else total + partial

    def _units(self, cells: Floats, chunk: Chunk) -> Iterator[tuple[Floats, Floats]]:
        """Yield k and f of some rows, or of some persons' rows and persons, 2**13 at most."""
        if not self.persons:
            for piece in _pieces(cells.shape[1]):
                yield self.rows.located(cells[:, piece])
            return
        k, f = self.rows.summed(cells, chunk[PERSON].astype(np.int64))
        apart = not self.rows.place.together
        empty = np.zeros_like(f[:, :0])
        for piece in _pieces(k.shape[1]):
            yield k[:, piece], empty if apart else f[:, piece]
        if apart:
            for piece in _pieces(f.shape[1]):
                yield np.zeros_like(k[:, :0]), f[:, piece]

    def _length(self, size: int) -> int:
        triangle = size * (size + 1) // 2
        return 1 + triangle + size + (triangle if self.matrix else 1) + self.tail


def _pieces(rows: int) -> list[slice]:
    return [slice(at, at + PIECE) for at in range(0, rows, PIECE)]


def exact_sums(tally: LookTally, vector: Integers) -> Exact:
    """Read a look's sums off the vector that a pass added up."""
    size = tally.rows.described.size
    triangle = size * (size + 1) // 2
    whole = [int(cell) for cell in vector]
    unit = 1 if tally.rows.place.together else _UNIT
    score = tuple(cell * unit for cell in whole[1 + triangle : 1 + triangle + size])
    rest = whole[1 + triangle + size :]
    tail = rest.pop() if tally.tail else 0
    middle = _symmetric(rest, size) if tally.matrix else rest[0]
    return Exact(whole[0], _symmetric(whole[1 : 1 + triangle], size), score, middle, tail)


def _symmetric(cells: list[int], size: int) -> tuple[tuple[int, ...], ...]:
    matrix = [[0] * size for _ in range(size)]
    for i, j, cell in zip(*np.triu_indices(size), cells, strict=True):
        matrix[i][j] = matrix[j][i] = cell
    return tuple(map(tuple, matrix))
