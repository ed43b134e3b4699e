"""The l1-constrained minimum of a quadratic, exactly, by trying every face of the ball.

Slow and plain: for up to four columns. F = min beta'G beta - 2 b'beta over |beta|_1 <= rho is
attained either where the gradient on some support vanishes, or on a face of the ball, where it is
parallel to the face's signs; among the minimisers one has a support on which the equations have a
single solution. So every candidate is the solution of one linear system in Fractions, and the
least value over the candidates that lie in the ball is F.
"""

from fractions import Fraction
from itertools import combinations, product


def solve(matrix, right):
    """Gauss-Jordan in Fractions; None where the matrix is singular."""
    size = len(right)
    rows = [
        [Fraction(v) for v in row] + [Fraction(r)] for row, r in zip(matrix, right, strict=True)
    ]
    for pivot in range(size):
        best = next((i for i in range(pivot, size) if rows[i][pivot] != 0), None)
        if best is None:
            return None
        rows[pivot], rows[best] = rows[best], rows[pivot]
        head = rows[pivot][pivot]
        rows[pivot] = [v / head for v in rows[pivot]]
        for i in range(size):
            if i != pivot and rows[i][pivot] != 0:
                factor = rows[i][pivot]
                rows[i] = [a - factor * c for a, c in zip(rows[i], rows[pivot], strict=True)]
    return [row[-1] for row in rows]


def minimum(gram, cross, columns, rho):
    """F_rho over `columns`, for the Gram matrix of all columns and X'y."""
    best = Fraction(0)  # beta = 0
    for size in range(1, len(columns) + 1):
        for support in combinations(columns, size):
            square = [[gram[i][j] for j in support] for i in support]
            right = [cross[i] for i in support]
            for signs in [None, *product((1, -1), repeat=size)]:
                if signs is None:
                    beta = solve(square, right)
                else:
                    bordered = [[*row, sign] for row, sign in zip(square, signs, strict=True)]
                    beta = solve([*bordered, [*signs, 0]], [*right, rho])
                if beta is None:
                    continue
                beta = beta[:size]
                if sum(map(abs, beta)) > rho:
                    continue
                value = sum(
                    (beta[i] * square[i][j] * beta[j] for i in range(size) for j in range(size)),
                    Fraction(0),
                ) - 2 * sum((b * r for b, r in zip(beta, right, strict=True)), Fraction(0))
                best = min(best, value)
    return best


def moments(rows, width):
    """X'X and X'y of rows ((x_0, .., x_{width-1}, y), copies)."""
    gram = [[Fraction(0)] * width for _ in range(width)]
    cross = [Fraction(0)] * width
    for row, copies in rows:
        for i in range(width):
            cross[i] += copies * row[i] * row[width]
            for j in range(width):
                gram[i][j] += copies * row[i] * row[j]
    return gram, cross


def integer_scores(rows, width, rho, grid):
    """floor(F / grid) of every subset of the columns, in a fixed order, the empty one first."""
    gram, cross = moments(rows, width)
    models = [m for size in range(width + 1) for m in combinations(range(width), size)]
    return [minimum(gram, cross, model, rho) // grid for model in models]
