"""Least squares over the l1 ball, for thousands of sets of columns at once, in float64.

Finds *candidates*, and claims nothing about them: whatever rounding, collinearity or ties do here,
`certificate` bounds how far a candidate is from the optimum and `exact` decides what is left. So no
tolerance here has to be right, and nothing raises.

Method. Sets of columns with |least squares|_1 <= rho need one Cholesky factor each (`batches`).
Where the ball binds, the solution path (`path`) gives the active columns A and their signs s, and
these fix beta by the linear system

    G_AA beta_A + mu s_A = b_A,   s_A' beta_A = rho.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Bools, Floats, Places
from dpreg.selection.scoring.batches import (
    Factor,
    gather,
    groups,
    scatter,
)
from dpreg.selection.scoring.path import follow

__all__ = ["Candidates", "correct", "solve", "solve_one", "tidy", "vertex_signs"]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates for K sets of columns.

    Attributes
    ----------
    beta : (K, P) float64
        Finite; zero outside the set of columns.
    active : (K, P) bool
        Columns with a coefficient.
    signs : (K, P) float64
        Signs of the active columns, zero elsewhere.
    binding : (K,) bool
        Whether the candidate was sought on the ball's surface.
    """

    beta: Floats
    active: Bools
    signs: Floats
    binding: Bools


def solve(gram: Floats, cross: Floats, rho: float, columns: Bools) -> Candidates:
    """Find a candidate for each row of `columns`, K x P."""
    with np.errstate(all="ignore"):
        count, width = columns.shape
        beta = np.zeros((count, width))
        for rows, members in groups(columns):
            factor = Factor(gather(gram, members))
            scatter(beta, rows, members, factor.solve(cross[members]))
        beta[~np.isfinite(beta).all(axis=1)] = 0.0
        binding = np.abs(beta).sum(axis=1) > rho
        active = beta != 0.0
        signs = np.sign(beta)
        bound = np.flatnonzero(binding)
        if bound.size:
            found = np.zeros((bound.size, width))
            for rows, members in groups(columns[bound]):
                scatter(found, rows, members, follow(gram, cross, rho, members))
            signs[bound], active[bound] = found, found != 0.0
            beta[bound] = _on_surface(gram, cross, rho, active[bound], found)
        return Candidates(tidy(beta, rho), active, signs, binding)


def solve_one(gram: Floats, cross: Floats, rho: float, guess: Floats | None) -> Iterator[Floats]:
    """Yield candidates (k,) for one set of columns, the cheapest first, by LAPACK.

    Parameters
    ----------
    gram, cross : (k, k) and (k,)
        Of the set's own columns.
    rho : float
        Radius.
    guess : (k,), optional
        Tried as it is, then solved again with its columns and signs.
    """
    with np.errstate(all="ignore"):
        if guess is not None:
            beta: Floats = tidy(np.array(guess, dtype=np.float64)[None, :], rho)[0]
            yield beta
            active = np.flatnonzero(beta)
            if active.size and np.abs(beta).sum() > rho * (1.0 - 1e-6):
                sides = np.sign(beta[active])
                system = np.block([[gram[np.ix_(active, active)], sides[:, None]], [sides, 0.0]])
                yield _lapack(system, np.append(cross[active], rho), active, len(cross), rho)
        inside = _lapack(gram, cross, np.arange(len(cross)), len(cross), np.inf)
        if np.abs(inside).sum() <= rho:
            yield inside


def _lapack(system: Floats, right: Floats, active: Places, width: int, rho: float) -> Floats:
    """Solve for the active columns' coefficients; zero where the system is singular."""
    beta = np.zeros(width)
    try:
        beta[active] = np.linalg.solve(system, right)[: active.size]
    except np.linalg.LinAlgError:
        return beta
    out: Floats = tidy(beta[None, :], rho)[0]
    return out


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
    with np.errstate(all="ignore"):
        step = np.zeros(slope.shape)
        for rows, members in groups(active):
            factor = Factor(gather(gram, members))
            plain = factor.solve(slope[rows[None, :], members])
            sides = signs[rows[None, :], members]
            tilt = factor.solve(sides)
            nu = ((sides * plain).sum(axis=0) + missing[rows]) / (sides * tilt).sum(axis=0)
            nu = np.where(binding[rows], nu, 0.0)
            scatter(step, rows, members, nu * tilt - plain)
        step[~np.isfinite(step).all(axis=1)] = 0.0
        return step


def vertex_signs(found: Candidates, row: int) -> list[tuple[int, int]]:
    """Return signed columns that span the candidate: a start for the exact solver.

    On the surface these are its active columns; inside, one of them with both signs as well.
    """
    active = np.flatnonzero(found.active[row])
    vertices = [(int(j), int(found.signs[row, j])) for j in active]
    if vertices and not found.binding[row]:
        j = int(active[np.argmax(np.abs(found.beta[row, active]))])
        vertices.append((j, -int(found.signs[row, j])))
    return vertices


def _on_surface(gram: Floats, cross: Floats, rho: float, active: Bools, signs: Floats) -> Floats:
    """Solve for beta on the ball's surface, given active columns and signs."""
    count = len(active)
    slope = np.broadcast_to(-cross, active.shape)
    return correct(gram, slope, np.full(count, rho), active, signs, np.ones(count, dtype=np.bool_))
