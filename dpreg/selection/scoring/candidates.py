"""Least squares over the l1 ball, for thousands of sets of columns at once, in float64.

Finds *candidates*, and claims nothing about them: whatever rounding, collinearity or ties do here,
`dpreg.selection.scoring.problem` bounds how far a candidate is from the optimum and decides what is
left exactly. So no tolerance here has to be right, and nothing raises.

Method. Sets of columns with |least squares|_1 <= rho need one linear system each. Where the ball
binds, active columns A and their signs s fix beta by

    G_AA beta_A + mu s_A = b_A,   s_A' beta_A = rho,

and they are sought by Wolfe's steps, all sets in step: towards that beta until the first sign would
turn, whose column leaves; or all the way, where the column joins whose slope exceeds mu most, if
any does. The value falls from step to step, as in `problem`, which takes the same steps in exact
numbers. A tiny ridge, made good by one more Newton step, keeps collinear columns from harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats, Places

_RIDGE: Final = 2.0**-44
_NEAR: Final = 1e-12  # of the largest slope: no more than rounding makes of two equal ones
_BOLD: Final = 8  # work: steps in which all columns leave whose sign would turn
_CHUNK: Final = 1 << 18  # cells of the matrices that are solved at once


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates for K sets of columns.

    Attributes
    ----------
    beta : (K, P) float64
        Finite; zero outside the set of columns.
    signs : (K, P) float64
        Signs of the active columns, those with a coefficient; zero elsewhere.
    binding : (K,) bool
        Whether the candidate was sought on the ball's surface.
    """

    beta: Floats
    signs: Floats
    binding: Bools


def solve(gram: Floats, cross: Floats, rho: float, columns: Bools) -> Candidates:
    """Find a candidate for each row of `columns`, K x P."""
    none = np.zeros(len(columns))
    with np.errstate(all="ignore"):
        beta, signs = np.zeros((2, *columns.shape))
        for _ in range(2):
            slope = beta @ gram - cross
            beta += correct(gram, slope, none, columns, signs, none.astype(np.bool_))
        binding = np.abs(beta).sum(axis=1) > rho
        signs = np.sign(beta)
        if binding.any():
            beta[binding], signs[binding] = _on_surface(
                gram, cross, rho, columns[binding], beta[binding]
            )
        return Candidates(tidy(beta, rho), signs, binding)


def _on_surface(
    gram: Floats, cross: Floats, rho: float, columns: Bools, outside: Floats
) -> tuple[Floats, Floats]:
    """Return minimisers on the ball's surface, and the signs of their active columns.

    They are sought from least squares, `outside`, shrunk onto the surface. At most 4 P + 8 steps: a
    candidate that is not done by then is finished by the exact solver.
    """
    count, width = columns.shape
    near = _NEAR * float(np.abs(cross).max(initial=0.0))
    allowed, signs, left = columns.copy(), np.sign(outside), np.arange(count)
    beta = outside * (rho / np.abs(outside).sum(axis=1, keepdims=True))

    def newton(some: Places) -> Floats:
        missing, sides = rho - np.abs(beta[some]).sum(axis=1), signs[some]
        surface = np.ones(len(some), dtype=np.bool_)
        return correct(gram, beta[some] @ gram - cross, missing, sides != 0.0, sides, surface)

    for turn in range(4 * width + 8):
        old, sides, step = beta[left], signs[left], newton(left)
        turning = (sides != 0.0) & ((old + step) * sides <= 0.0)
        reach = np.where(turning, np.abs(old) / np.maximum(np.abs(step), 1e-300), 1.0)
        part = reach.min(axis=1, keepdims=True) if turn >= _BOLD else np.ones((len(left), 1))
        leaving = turning & (reach <= part)
        allowed[left] &= ~(leaving & (old == 0.0))  # it had joined in vain: a tie, or collinear
        beta[left] = new = np.where(leaving, 0.0, old + part * step)
        slope = cross - new @ gram
        multiplier = np.where(sides != 0.0, slope * sides, -np.inf).max(axis=1)
        idle = np.where((sides == 0.0) & allowed[left], np.abs(slope), -np.inf)
        short = turning.any(axis=1)
        joins = np.flatnonzero(~short & (idle.max(axis=1) > multiplier + near))
        joining = idle[joins].argmax(axis=1)
        sides = np.where(leaving, 0.0, sides)
        sides[joins, joining] = np.sign(slope[joins, joining])
        signs[left] = sides
        short[joins] = True
        left = left[short]
        if not left.size:
            break
    return beta + newton(np.arange(count)), signs


def tidy(beta: Floats, rho: float) -> Floats:
    """Zero the candidates (K, P) that are not within 2 rho, and coefficients below 2**-200."""
    beta[~(np.abs(beta) <= 2.0 * rho).all(axis=1)] = 0.0
    beta[np.abs(beta) < 2.0**-200] = 0.0
    return beta


def correct(
    gram: Floats, slope: Floats, missing: Floats, active: Bools, signs: Floats, binding: Bools
) -> Floats:
    """Return a Newton step on each set's active columns, K x P.

    For the slope h = G x - b at x: solves G_AA d = -h_A, or, where `binding`, G_AA d + nu s = -h_A
    with s'd = `missing`.
    """
    step, sizes = np.zeros(slope.shape), active.sum(axis=1)
    with np.errstate(all="ignore"):
        for rows, members in _of_one_size(active, sizes):
            matrix = gram[members[:, :, None], members[:, None, :]]
            diagonal = np.einsum("nii->ni", matrix)
            diagonal += np.where(diagonal > 0.0, _RIDGE * diagonal, 1.0)
            sides, own = signs[rows[:, None], members], slope[rows[:, None], members]
            try:
                solved = np.linalg.solve(matrix, np.stack([own, sides], axis=2))
            except np.linalg.LinAlgError:
                continue
            plain, tilt = solved[:, :, 0], solved[:, :, 1]
            nu = ((sides * plain).sum(axis=1) + missing[rows]) / (sides * tilt).sum(axis=1)
            nu = np.where(binding[rows], nu, 0.0)
            step[rows[:, None], members] = nu[:, None] * tilt - plain
        step[~np.isfinite(step).all(axis=1)] = 0.0
    return step


def _of_one_size(sets: Bools, sizes: Places) -> Iterator[tuple[Places, Places]]:
    """Yield (rows (N,), members (N, k)) of the sets of equal size k >= 1, in chunks."""
    for k in np.unique(sizes[sizes > 0]).tolist():
        of_size = np.flatnonzero(sizes == k)
        chunk = max(1, _CHUNK // k**2)
        for start in range(0, of_size.size, chunk):
            rows = of_size[start : start + chunk]
            yield rows, np.nonzero(sets[rows])[1].reshape(rows.size, k)


def vertex_signs(found: Candidates, row: int) -> list[tuple[int, int]]:
    """Return signed columns that span the candidate: a start for the exact solver.

    On the surface these are its active columns; inside, one of them with both signs as well.
    """
    active = np.flatnonzero(found.signs[row])
    vertices = [(int(j), int(found.signs[row, j])) for j in active]
    if vertices and not found.binding[row]:
        j = int(active[np.argmax(np.abs(found.beta[row, active]))])
        vertices.append((j, -int(found.signs[row, j])))
    return vertices
