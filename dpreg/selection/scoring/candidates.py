"""Least squares over the l1 ball, for thousands of sets of columns at once, in float64.

Finds *candidates*, and claims nothing about them: whatever rounding, collinearity or ties do here,
`certificate` bounds how far a candidate is from the optimum and `exact` decides what is left. So no
tolerance here has to be right, and nothing raises.

Method. Sets of columns with |least squares|_1 <= rho need one Cholesky factor each (`batches`).
Where the ball binds, the solution path (`path`) gives the active columns A and their signs s, and
these fix beta by the linear system

    G_AA beta_A + mu s_A = b_A,   s_A' beta_A = rho.

Linear algebra on thousands of small sets of columns at once.

Sets of one size k are worked on together: arrays are (k, k, N) or (k, N), the N sets last and
contiguous, so that each numpy call does one step of N small problems.

Least squares over the l1 ball by the solution path, for many sets of columns at once.

The minimiser of beta' G beta - 2 b' beta + 2 mu |beta|_1 is piecewise linear in mu (Osborne,
Presnell & Turlach 2000; LARS, Efron et al. 2004). Each set's path is followed from mu = max |b|,
where beta = 0, down to |beta|_1 = rho, by sweeps (Dempster) of its own tableau.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Bools, Floats, Places

FEW = 64
"""Below this many sets, fewer numpy calls matter more than fewer cells."""
SINGULAR = 1e-11
"""A pivot below this part of its diagonal is taken as collinear."""

_CHUNK = 1 << 16  # cells of a (k, k, N) array: half a megabyte, to stay in the cache
_BLOCK = 64  # rows of a large matrix that are worked on at once


def groups(columns: Bools) -> Iterator[tuple[Places, Places]]:
    """Yield (rows (N,), members (k, N)) of the sets of equal size k >= 1, in chunks."""
    sizes = columns.sum(axis=1)
    for k in np.unique(sizes):
        if k == 0:
            continue
        of_size = np.flatnonzero(sizes == k)
        chunk = max(1, _CHUNK // int(k * k))
        for start in range(0, of_size.size, chunk):
            rows = of_size[start : start + chunk]
            members = np.nonzero(columns[rows])[1].reshape(rows.size, k)
            yield rows, np.ascontiguousarray(members.T)


def gather(gram: Floats, members: Places) -> Floats:
    """Return the (k, k, N) matrices of N sets of columns."""
    flat = members[:, None, :] * gram.shape[1] + members[None, :, :]
    out: Floats = gram.reshape(-1)[flat]
    return out


def scatter(out: Floats, rows: Places, members: Places, values: Floats) -> None:
    """Put the values (k, N) of N sets into rows of `out`, at their members."""
    out[rows[None, :], members] = values


class Factor:
    """L D L' of N matrices (k, k, N), overwritten; collinear columns are left out (zero there)."""

    def __init__(self, matrix: Floats) -> None:
        k = len(matrix)
        diagonal = np.einsum("iin->in", matrix).copy()
        self.inverse = np.empty_like(diagonal)
        self.lower = matrix
        for j in range(k):
            pivot = matrix[j, j]
            usable = pivot > SINGULAR * diagonal[j]
            self.inverse[j] = np.where(usable, 1.0 / pivot, 0.0)
            if j + 1 < k:
                below = matrix[j + 1 :, j] * self.inverse[j]
                if matrix.shape[2] < FEW:  # the lower triangle, by blocks of rows
                    for i in range(j + 1, k, _BLOCK):
                        rows, sides = slice(i, i + _BLOCK), slice(j + 1, i + _BLOCK)
                        own = below[i - j - 1 :][:_BLOCK, None]
                        matrix[rows, sides] -= own * matrix[None, sides, j]
                else:
                    for i in range(j + 1, k):  # the lower triangle alone
                        matrix[i, j + 1 : i + 1] -= below[i - j - 1] * matrix[j + 1 : i + 1, j]
                matrix[j + 1 :, j] = below

    def solve(self, right: Floats) -> Floats:
        """Solve for (k, N) right-hand sides."""
        k = len(self.inverse)
        x = right.copy()
        for j in range(k - 1):
            x[j + 1 :] -= self.lower[j + 1 :, j] * x[j]
        x *= self.inverse
        for j in range(k - 2, -1, -1):
            x[j] -= (self.lower[j + 1 :, j] * x[j + 1 :]).sum(axis=0)
        return x


def follow(gram: Floats, cross: Floats, rho: float, members: Places) -> Floats:
    """Follow the paths of N sets of k columns; return the signs (k, N) where |beta|_1 = rho.

    At most 4 k + 8 steps: a candidate that is not done by then is finished by the exact solver.
    """
    k, total = members.shape
    result = np.zeros((k, total))
    left = np.arange(total)
    state = _Paths(gather(gram, members), cross[members], rho)
    for _ in range(4 * k + 8):
        done = state.step()
        if done.any():
            result[:, left[done]] = state.signs[:, done]
            left = left[~done]
            if left.size == 0:
                return result
            state.keep(~done)
    result[:, left] = state.signs
    return result


class _Paths:
    """The state of N solution paths: tableau T, v = T s, beta, residual correlations, mu, signs.

    The tableau is G swept on the active columns A: T_AA = -inv(G_AA), T_jA = G_jA inv(G_AA), and a
    Schur complement elsewhere. So beta moves by -v on A, and the correlation of j outside by v_j,
    per unit of mu. v follows a sweep on p in O(k): v += u (s_new - v_p), u the swept pivot row.
    """

    def __init__(self, tableau: Floats, cross: Floats, rho: float) -> None:
        self.tableau = tableau
        self.rho = rho
        k, n = cross.shape
        self.scale = np.einsum("iin->in", tableau) * SINGULAR
        self.left_over = cross.copy()
        self.beta = np.zeros((k, n))
        self.signs = np.zeros((k, n))
        self.velocity = np.zeros((k, n))
        self.length = np.zeros(n)
        self.barred = np.zeros((k, n), dtype=np.bool_)
        first = np.abs(cross).argmax(axis=0)
        self.mu = np.abs(cross).max(axis=0)
        self._pivot(first, np.ones(n, dtype=np.bool_))

    def keep(self, rows: Bools) -> None:
        """Go on with some of the paths."""
        for name in ("tableau", "scale", "left_over", "beta", "signs", "velocity", "barred"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., rows]))
        self.length, self.mu = self.length[rows], self.mu[rows]

    def step(self) -> Bools:
        """Move each path to its next corner; say which paths are at the ball's surface."""
        n = self.mu.size
        idle = self.signs == 0.0
        v = self.velocity
        # Joining: the correlation meets +-mu.
        up = (self.mu - self.left_over) / (1.0 - v)
        down = (self.mu + self.left_over) / (1.0 + v)
        up[~((v < 1.0) & idle)] = np.inf
        down[~((v > -1.0) & idle)] = np.inf
        join = np.minimum(up, down)
        join[self.barred] = np.inf
        # Leaving: a coefficient meets zero; v = -d beta / d mu on the active columns.
        meet = self.beta / v
        meet[~((meet > 0.0) & ~idle)] = np.inf
        corner = np.minimum(np.maximum(join, 0.0), meet)
        which = corner.argmin(axis=0)
        at = np.arange(n)
        reach = corner[which, at]
        speed = -(self.signs * v).sum(axis=0)  # s' inv(G_AA) s
        finish = (self.rho - self.length) / speed
        done: Bools = ~(reach < np.minimum(finish, self.mu))  # also where nothing is left to do
        move = np.where(done, 0.0, reach)
        self.beta -= np.where(idle, 0.0, v) * move
        self.left_over -= np.where(idle, v, self.signs) * move
        self.mu = self.mu - move
        self.length = self.length + speed * move
        leaving = ~idle[which, at]
        self.beta[which[leaving], at[leaving]] = 0.0
        self._pivot(which, ~done)
        return done

    def _pivot(self, which: Places, moving: Bools) -> None:
        """Sweep each moving path on its column `which`: in if idle, out if active."""
        k, n = self.signs.shape
        at = np.arange(n)
        row = self.tableau[which, :, at].T  # (k, N); symmetric
        pivot = row[which, at]
        leaving = self.signs[which, at] != 0.0
        collinear = ~leaving & ~(pivot > self.scale[which, at])
        self.barred[which, at] |= collinear
        go = moving & ~collinear
        share = np.where(go, 1.0 / pivot, 0.0)
        swept = row * share
        side = np.where(leaving, 0.0, np.sign(self.left_over[which, at]))
        old = self.velocity[which, at]
        was = self.signs[which, at]
        if n < FEW:
            self.tableau -= row[:, None] * swept
        else:
            for i in range(k):
                self.tableau[i] -= row[i] * swept
        mine, place = which[go], at[go]
        line = swept[:, go] * np.where(leaving[go], -1.0, 1.0)
        self.tableau[mine, :, place] = line.T
        self.tableau[:, mine, place] = line
        self.tableau[mine, mine, place] = -share[go]
        self.velocity += swept * (side - old)
        self.velocity[mine, place] = np.where(leaving, was - old * share, (old - side) * share)[go]
        self.signs[mine, place] = side[go]


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
