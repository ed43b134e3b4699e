r"""Code a bounded row into cells whose noise is small: count, sums and sums of squares together.

A value x with public bounds becomes u = (x - middle)/(half the width), clipped to [-1, 1] and put
on the grid 2**-20; the sums over rows are exact integers, so the sensitivities below hold for the
numbers that the computer holds. A row with a missing value, or in no declared group, is the zero
row: it is excluded everywhere. So the number of complete rows is private under both relations
and is released with the sums. Only the caller's word (`complete`) makes it n: then w = 0 below, and
the sensitivities hold even where that word is wrong; a missing value then stands for the middle.

What is released
----------------
For each group, a vector of cells, linear in (count, sum u, sum u^2) of each of d columns, with
noise of one scale. Two codings of a row:

*power*      (w c,  u_j,  (u_j^2 - c/2)/2  for each column j),  c = 1 for a complete row;
*Bernstein*  (((1-u_j)/2)^2,  (1-u_j^2)/2,  ((1+u_j)/2)^2  for each column j).

Without squares ("degree 1") they are (w c, u_j) and ((1-u_j)/2, (1+u_j)/2). Count, sums and squares
are read off by linear maps. With w = 3d/4 (degree 1: d) for Laplace noise:

Statement
---------
One row changes the stacked vector of all groups by at most

===========  ==========================  ========================================
coding       row appears or vanishes     row replaced
===========  ==========================  ========================================
Bernstein    L1 = d, L2^2 <= d           L1 <= 2d, L2^2 <= 2d
power, 2     L1 = w + 5d/4,              in one group L1 <= max(2d, w + 5d/4),
             L2^2 <= w^2 + 17d/16        L2^2 <= max(4d, w^2 + 17d/16);
                                         across groups twice the left column
power, 1     L1 = w + d, L2^2 = w^2 + d  in one group L1 <= max(2d, w + d),
                                         L2^2 <= max(4d, w^2 + d); across: twice
===========  ==========================  ========================================

and k rows by k times as much in L1, k^2 times in L2^2. So **under replace-one the count and the
squares cost nothing**: the sum alone would have L1 = 2d. Under add-remove the Bernstein cells cost
half of what (count, sum) would, for each row adds to each column's cells a point of a simplex, and
the squares again cost nothing.

Proof
-----
*Bernstein.* The cells of a column are nonnegative and sum to 1 (the binomial theorem), exactly so
on the grid, whose units the code checks out: L1 = 1, and the sum of squares is at most the square
of the sum. A replaced row takes one such point away and adds another, in the same or in two
groups; two nonnegative vectors of sum d differ by at most 2d in L1, and by at most
|p|^2 + |q|^2 <= 2d in L2^2.
*Power, appearing.* |u| + |u^2 - 1/2|/2 <= 5/4 and u^2 + (u^2 - 1/2)^2/4 <= 17/16, both at |u| = 1.
*Power, replaced in one group, both complete.* a becomes b: with e = |a - b|, s = |a + b| <= 2 - e
a column's L1 is e (1 + s/2) <= 2e - e^2/2 <= 2, and its L2^2 is e^2 (1 + s^2/4) <=
e^2 (1 + (2-e)^2/4), increasing on [0, 2] (its derivative is 2e (1 + (2-e)(1-e)/2) > 0), so at most
4. The count stays. *One of both missing:* the row appears or vanishes. *Two groups:* it vanishes in
one and appears in the other, disjoint cells.
*k rows:* the triangle inequality along a chain of k steps.

The sum's noise, d = 1, in units of (k/eps)^2 and per row's half width: variance 8 under
replace-one, 4 under add-remove, 16 for groups under replace-one. Gaussian noise uses the power
coding with w = 3/2 under replace-one (free there as well) and w = 1 elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import VectorChange

__all__ = ["CELL_UNITS", "GRID_ONE", "Coding", "Sums"]


_BITS: Final = 20
GRID_ONE: Final = 1 << _BITS
"""Values are integers in units of 1 / GRID_ONE."""
CELL_UNITS: Final = 1 << (2 * _BITS + 2)
"""Cells are integers in units of 1 / CELL_UNITS: squares of halves of grid numbers."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Exact sums of one group, in grid units; curator-only until noise is added.

    Attributes
    ----------
    count : int
        Complete rows.
    sums, squares : tuple of int, one a column
        sum u in units of 2**-20, sum u^2 in units of 2**-40.
    """

    count: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both sets of rows."""
        return Sums(
            self.count + other.count,
            tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            tuple(a + b for a, b in zip(self.squares, other.squares, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Coding:
    """Which cells a row has, and what one row can change; see the module's statement.

    Attributes
    ----------
    bernstein : bool
        Else the power coding.
    degree : {1, 2}
    columns : int
        d.
    weight : Fraction
        w of the power coding; zero leaves the count out (it is public).
    """

    bernstein: bool
    degree: int
    columns: int
    weight: Fraction = Fraction(0)

    @property
    def cells(self) -> int:
        """Number of cells of one group."""
        if self.bernstein:
            return (self.degree + 1) * self.columns
        return (self.weight > 0) + self.degree * self.columns

    def sensitivity(self, protection: Protection, grouped: bool) -> VectorChange:
        """Bound the change of the stacked cells of all groups, in cell units."""
        k, d, w = protection.contributions, self.columns, self.weight
        replaced = protection.changes == 2
        if self.bernstein:
            first, second = Fraction(d), Fraction(d)
        elif self.degree == 2:
            first, second = w + Fraction(5, 4) * d, w**2 + Fraction(17, 16) * d  # proved
        else:
            first, second = w + d, w**2 + d
        if replaced and self.bernstein:
            first, second = 2 * first, 2 * second
        elif replaced:
            moved = 2 if grouped else 1
            first = max(Fraction(2 * d), moved * first)
            second = max(Fraction(4 * d), moved * second)
        return VectorChange(
            l1=math.ceil(first * CELL_UNITS * k),
            l2_squared=math.ceil(second * CELL_UNITS**2 * k**2),
            protection=protection,
            joint=grouped or self.bernstein or not replaced,
        )

    def encode(self, sums: Sums) -> list[int]:
        """Return one group's cells, exactly."""
        if not self.bernstein:
            cells = [int(self.weight * CELL_UNITS) * sums.count] if self.weight > 0 else []
            cells += [GRID_ONE * 4 * s for s in sums.sums]
            if self.degree == 2:
                cells += [2 * q - GRID_ONE * GRID_ONE * sums.count for q in sums.squares]
            return cells
        whole = GRID_ONE * GRID_ONE * sums.count
        if self.degree == 1:
            pairs = [(2 * (whole - GRID_ONE * s), 2 * (whole + GRID_ONE * s)) for s in sums.sums]
            return [cell for pair in pairs for cell in pair]
        triples = [
            (whole - 2 * GRID_ONE * s + q, 2 * (whole - q), whole + 2 * GRID_ONE * s + q)
            for s, q in zip(sums.sums, sums.squares, strict=True)
        ]
        return [cell for triple in triples for cell in triple]

    def decoder(self) -> Floats:
        """Return the matrix that reads (count, sums, squares) off the cells, all in units of 1.

        Shape (1 + degree * d, cells); a public count has a row of zeros. Of the counts that the
        columns of the Bernstein coding give, the mean is taken.
        """
        d, rows = self.columns, 1 + self.degree * self.columns
        matrix = np.zeros((rows, self.cells))
        eye = np.eye(d)
        if self.bernstein:
            size = self.degree + 1
            matrix[0] = 1 / d
            top = [-1.0, 1.0] if self.degree == 1 else [-1.0, 0.0, 1.0]
            matrix[1 : d + 1] = np.kron(eye, top)
            if self.degree == 2:
                matrix[d + 1 :] = np.kron(eye, [1.0, -1.0, 1.0])
            assert matrix.shape[1] == size * d
            return matrix
        first = int(self.weight > 0)
        if first:
            matrix[0, 0] = 1 / float(self.weight)
        matrix[1 : d + 1, first : first + d] = eye
        if self.degree == 2:
            matrix[d + 1 :, first + d :] = 2 * eye
            matrix[d + 1 :] += matrix[0] / 2  # u^2 = 2 ((u^2 - c/2)/2) + c/2
        return matrix
