"""Slow, independent minimisers of beta' G beta - 2 b' beta over |beta|_1 <= rho, and problems.

Neither shares an algorithm or a line with dpreg: `enumerate_faces` tries every face of the ball in
Fractions, `interior_point` is a primal-dual interior-point method in float64.
"""

from fractions import Fraction
from itertools import product

import numpy as np

from dpreg.moments import Moments, accumulate

RADII = [Fraction(r) for r in ("1/100", "3/10", "1/2", "1", "2", "7/3", "50")]


def enumerate_faces(gram, cross, rho):
    """Return the exact minimum as a Fraction, for few columns (3**k faces).

    Some minimiser has a support of linearly independent directions within its face (one can walk
    along a dependence at no cost until a coefficient vanishes), so its face's stationarity system
    is regular. Every stationary point that lies in the ball is feasible; the least value is the
    minimum.
    """
    k = len(cross)
    best = Fraction(0)
    for signs in product((0, 1, -1), repeat=k):
        active = [j for j in range(k) if signs[j]]
        inside = [[Fraction(gram[i][j]) for j in active] for i in active]
        right = [Fraction(cross[i]) for i in active]
        systems = [(inside, right)]
        surface = [[*row, Fraction(signs[i])] for row, i in zip(inside, active, strict=True)]
        surface.append([Fraction(signs[j]) for j in active] + [Fraction(0)])
        systems.append((surface, [*right, rho]))
        for matrix, side in systems:
            solution = _gauss(matrix, side)
            if solution is None:
                continue
            beta = solution[: len(active)]
            if sum(abs(x) for x in beta) <= rho:
                best = min(best, _value(inside, right, beta))
    return best


def interior_point(gram, cross, rho):
    """Return the minimum in float64, by Mehrotra's method on beta = rho (u - v)."""
    gram, cross = np.asarray(gram, dtype=float), np.asarray(cross, dtype=float)
    k = len(cross)
    scale = max(np.abs(gram).max(initial=0.0) * rho**2, np.abs(cross).max(initial=0.0) * rho)
    if scale == 0.0:
        return 0.0
    fold = np.hstack([np.eye(k), -np.eye(k), np.zeros((k, 1))])
    quadratic = 2.0 * rho**2 / scale * fold.T @ gram @ fold
    linear = -2.0 * rho / scale * fold.T @ cross
    size = 2 * k + 1
    x, z, multiplier = np.full(size, 1.0 / size), np.ones(size), 0.0
    for _ in range(80):
        dual = quadratic @ x + linear - multiplier - z
        primal = 1.0 - x.sum()
        mean = x @ z / size
        if mean < 1e-15:  # of `scale`: beyond what the comparison needs
            break
        system = np.zeros((size + 1, size + 1))
        system[:size, :size] = quadratic + np.diag(z / x)
        system[:size, size] = -1.0
        system[size, :size] = 1.0

        def direction(target, system=system, dual=dual, primal=primal, x=x, z=z):
            right = np.append(-dual - z + target / x, primal)
            step = np.linalg.solve(system, right)
            dx = step[:size]
            return dx, step[size], (target - z * dx) / x - z

        def longest(value, step):
            down = step < 0
            return min(1.0, (-value[down] / step[down]).min(initial=np.inf))

        dx, _, dz = direction(np.zeros(size))
        ahead = (x + longest(x, dx) * dx) @ (z + longest(z, dz) * dz) / size
        dx, dm, dz = direction(np.full(size, (ahead / mean) ** 3 * mean) - dx * dz)
        length = 0.995 * min(longest(x, dx), longest(z, dz))
        x, multiplier, z = x + length * dx, multiplier + length * dm, z + length * dz
    beta = rho * fold @ x
    beta *= rho / max(rho, np.abs(beta).sum())
    return float(beta @ gram @ beta - 2.0 * cross @ beta)


def parts(moments, columns):
    """Return sum x x' and sum x y over some columns, in units of 2**-40."""
    rows = [moments.cells[i] for i in columns]
    return tuple(tuple(row[j] for j in columns) for row in rows), tuple(row[-1] for row in rows)


def times(moments: Moments, count: int) -> Moments:
    """Return the moments of the same rows seen `count` times over."""
    cells = tuple(tuple(cell * count for cell in row) for row in moments.cells)
    return Moments(moments.rows * count, cells, moments.group)


def random_moments(rng: np.random.Generator, p: int) -> Moments:
    """Return moments of p columns: few rows or many, smooth, coarse, constant, collinear."""
    rows = int(rng.choice([0, 1, 2, max(p - 1, 0), 40, 700]))
    style = rng.integers(4)
    x = rng.uniform(-1.0, 1.0, (rows, p))
    if style == 1:
        x = np.sign(x)
    elif style == 2:
        x = np.rint(x)
    elif style == 3:
        x = np.rint(2.0 * x) / 2.0
    for j in range(p):
        what = rng.integers(8)
        if what == 0:
            x[:, j] = rng.choice([1.0, -1.0, 0.5, 0.0])
        elif what == 1:
            x[:, j] = x[:, rng.integers(p)] * rng.choice([1.0, -1.0, 0.5])
        elif what == 2 and p > 1:
            x[:, j] = (x[:, rng.integers(p)] + x[:, rng.integers(p)]) / 2.0
    y = x @ rng.normal(size=p) * rng.choice([0.0, 0.2, 1.0]) + rng.normal(size=rows) * 0.3
    if style == 1:
        y = np.sign(y)
    elif style >= 2:
        y = np.rint(2.0 * y) / 2.0
    return accumulate([np.column_stack([np.ones(rows), x, y])], p + 2)


def _value(gram, cross, beta):
    pairs = ((i, j) for i in range(len(beta)) for j in range(len(beta)))
    square = sum((gram[i][j] * beta[i] * beta[j] for i, j in pairs), Fraction(0))
    return square - 2 * sum((b * x for b, x in zip(cross, beta, strict=True)), Fraction(0))


def _gauss(matrix, side):
    """Solve a square system in Fractions; None where it is singular."""
    rows = [[*row, s] for row, s in zip(matrix, side, strict=True)]
    size = len(rows)
    for c in range(size):
        pivot = next((r for r in range(c, size) if rows[r][c] != 0), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        for r in range(size):
            if r != c and rows[r][c] != 0:
                factor = rows[r][c] / rows[c][c]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [rows[c][size] / rows[c][c] for c in range(size)]
