r"""A model's fit as a swept matrix: every add and drop priced at once.

The matrix starts as [gram, cross; cross', total]. Sweeping the columns c of a unit into the model
(Beaton 1964; Goodnight 1979) replaces, with D its block at c and B its other rows at c,

    block c by -D^-1,    B by B D^-1,    the rest by rest - B D^-1 B',

and sweeping them out again is the same step with -B D^-1. The corner is the deviance. For a unit,
inside or out, |s' S_cc^-1 s| with s the last column at c is what the deviance changes by.

Tested in `tests/staged/choice/test_certify.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.staged.choice.problem import Model, Problem, Response

__all__ = ["Fit"]


class Fit:
    """One model of a problem, and what leaving or adding each unit does to its deviance.

    Parameters
    ----------
    problem : Problem
    response : Response
    model : iterable of int
    """

    __slots__ = ("inside", "matrix", "problem")

    def __init__(self, problem: Problem, response: Response, model: Iterable[int] = ()) -> None:
        c = len(problem.gram)
        matrix = np.empty((c + 1, c + 1))
        matrix[:c, :c] = problem.gram
        matrix[c, :c] = matrix[:c, c] = response.cross
        matrix[c, c] = response.total
        self.problem, self.matrix = problem, matrix
        self.inside = np.zeros(problem.size, dtype=np.bool_)
        # One block step for the whole model is safer than unit after unit, and quicker.
        model = sorted(model)
        if model:
            at = problem.columns(model)
            self.matrix = _swept(matrix, at, entering=True)
            self.inside[model] = True

    @property
    def deviance(self) -> float:
        """D_M."""
        return float(self.matrix[-1, -1])

    @property
    def criterion(self) -> float:
        """D_M plus the prices of M."""
        return self.deviance + float(self.problem.prices[self.inside].sum())

    @property
    def model(self) -> Model:
        """M, as a set of units."""
        return frozenset(map(int, np.flatnonzero(self.inside)))

    def toggled(self, unit: int) -> Fit:
        """Return the fit with one unit more or less."""
        other = object.__new__(Fit)
        block = self.problem.slices[unit]
        entering = not self.inside[unit]
        other.problem = self.problem
        if block.stop - block.start == 1:
            other.matrix = _swept_column(self.matrix, block.start, entering)
        else:
            other.matrix = _swept(self.matrix, np.arange(block.start, block.stop), entering)
        other.inside = self.inside.copy()
        other.inside[unit] = entering
        return other

    def gains(self) -> Floats:
        """Return, (q,), what each unit inside explains, and each unit outside would."""
        matrix, slices = self.matrix, self.problem.slices
        if len(matrix) == len(slices) + 1:
            diagonal = np.diag(matrix)[:-1]
            return np.asarray(matrix[:-1, -1] ** 2 / np.abs(diagonal))
        out = np.empty(len(slices))
        for unit, block in enumerate(slices):
            side = matrix[block, -1]
            out[unit] = abs(side @ np.linalg.solve(matrix[block, block], side))
        return out

    def changes(self) -> Floats:
        """Return, (q,), by how much the criterion changes if each unit is toggled."""
        gap = self.problem.prices - self.gains()
        return np.where(self.inside, -gap, gap)

    def swaps(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Return units inside, (a,), units outside, (b,), and the changes by each swap, (a, b)."""
        leave, enter = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        prices = self.problem.prices
        if not self.problem.simple:
            table = np.empty((len(leave), len(enter)))
            first = self.changes()
            for row, unit in enumerate(leave):
                table[row] = first[unit] + self.toggled(int(unit)).changes()[enter]
            return leave, enter, table
        matrix = self.matrix
        diagonal, side = np.diag(matrix)[:-1], matrix[:-1, -1]
        across = matrix[np.ix_(leave, enter)]
        inverse = 1.0 / diagonal[leave]  # negative: minus the variances of the coefficients
        pivots = diagonal[enter] - across**2 * inverse[:, None]
        sides = side[enter] - across * (side[leave] * inverse)[:, None]
        loss = -(side[leave] ** 2) * inverse - prices[leave]
        return leave, enter, loss[:, None] + prices[enter] - sides**2 / pivots


def _swept_column(matrix: Floats, at: int, entering: bool) -> Floats:
    """Return the matrix with one column swept in or out."""
    pivot, column = matrix[at, at], matrix[:, at]
    out = matrix - np.outer(column, column / pivot)
    row = column / pivot if entering else -column / pivot
    out[:, at] = out[at, :] = row
    out[at, at] = -1.0 / pivot
    return np.asarray(out)


def _swept(matrix: Floats, at: NDArray[np.intp], entering: bool) -> Floats:
    """Return the matrix with a block of columns swept in or out."""
    block = matrix[np.ix_(at, at)]
    rows = np.linalg.solve(block, matrix[at])
    out = matrix - matrix[:, at] @ rows
    out = (out + out.T) / 2
    rows = rows if entering else -rows
    out[at, :], out[:, at] = rows, rows.T
    inverse = np.linalg.inv(block)
    out[np.ix_(at, at)] = -(inverse + inverse.T) / 2
    return np.asarray(out)
