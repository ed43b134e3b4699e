"""Units of a fitting look, as the rows' code could bring them, and what neighbours move.

Sums of products are formed here from the rows themselves, and costs from the scales that are drawn:
neither dpreg's sensitivities nor its calibration are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

UNIT = 2**20

Matrix = Any


@dataclass(frozen=True)
class Unit:
    """The integer rows of a unit and the two parts of its score."""

    rows: tuple[tuple[int, ...], ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]


def into_ball(vector: Any, radius: int | Fraction = UNIT) -> tuple[int, ...]:
    """Integers along a vector of at most length 1, truncated until they are in the ball."""
    found = [int(x * UNIT) for x in vector]
    while sum(x * x for x in found) > radius**2:
        place = max(range(len(found)), key=lambda i: abs(found[i]))
        found[place] -= 1 if found[place] > 0 else -1
    return tuple(found)


def unit_of(rows: Any, score: Any, outer: Any = None, times: int = 1) -> Unit:
    """Store rows whose squared lengths sum to at most 1, and a score of at most 1.

    With `outer`, `score` is the inner part. The outer one may be `times` as long, and both together
    of length 1.
    """
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    stored = [into_ball(row) for row in rows]
    assert sum(x * x for row in stored for x in row) <= UNIT**2
    inner = np.asarray(score, dtype=float)
    if outer is None:
        whole = inner
        near = 1 / (1 + times)
        inner = whole * min(1.0, near / max(float(np.linalg.norm(whole)), near))
        outer = whole - inner
    longest = Fraction(UNIT, 1 + times)
    parts = into_ball(inner, longest), into_ball(outer, times * longest)
    return Unit(tuple(stored), *parts)


def nobody(columns: int) -> Unit:
    """A unit that is excluded."""
    return Unit(((0,) * columns,), (0,) * columns, (0,) * columns)


def axis(columns: int, place: int, size: float = 1.0) -> np.ndarray:
    """A unit vector."""
    found = np.zeros(columns)
    found[place % columns] = size
    return found


def scores(columns: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Unit vectors at many angles, some shorter ones, and random ones."""
    found = [axis(columns, 0, size) for size in (1.0, -1.0, 0.6, 0.1)]
    for angle in np.linspace(0, math.pi, 25)[1:-1]:
        turned = axis(columns, 0, math.cos(angle)) + (columns > 1) * axis(
            columns, 1, math.sin(angle)
        )
        found += [turned]
    for _ in range(8):
        vector = generator.standard_normal(columns)
        found.append(vector / np.linalg.norm(vector) * generator.uniform() ** 0.2)
    return found


def informations(columns: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Rows of units of rank one, of full rank, and random ones; traces of at most 1."""
    found = [axis(columns, 0)[None], axis(columns, 1)[None]]
    found.append(np.eye(columns) / math.sqrt(columns))
    for rank in (1, min(2, columns), columns):
        rows = generator.standard_normal((rank, columns))
        found.append(rows / np.linalg.norm(rows))
    return found


def summed(units: Any, columns: int, times: int = 1) -> tuple[Matrix, Matrix, Matrix]:
    """Exact H, m a + b with the contrast m a - b, and M of some units, in units of 2**-40."""
    h = np.zeros((columns, columns), dtype=object)
    s, m = np.zeros(2 * columns, dtype=object), np.zeros((columns, columns), dtype=object)
    for unit in units:
        for row in unit.rows:
            k = np.array(row, dtype=object)
            h += np.outer(k, k)
        inner, outer = (np.array(part, dtype=object) for part in (unit.inner, unit.outer))
        s += UNIT * np.concatenate([times * inner + outer, times * inner - outer])
        m += np.outer(inner + outer, inner + outer)
    return h, s, m


def changes(columns: int, taken: Any, given: Any, times: int = 1) -> tuple[Matrix, Matrix, Matrix]:
    """What neighbours move H, s with its contrast, and M by."""
    one, other = summed(taken, columns, times), summed(given, columns, times)
    h, s, m = (b - a for a, b in zip(one, other, strict=True))
    return h, s, m


def gaussian_cost(noise: Any, taken: Any, given: Any) -> Fraction:
    """Exact sum of (change / scale)^2 over all cells that get Gaussian noise, each once."""
    d = noise.columns
    h, s, m = changes(d, taken, given)

    def of_matrix(moved: Matrix, scales: Any) -> Fraction:
        return sum(
            (
                (Fraction(moved[i, j]) / Fraction(scales[0 if i == j else 1])) ** 2
                for i in range(d)
                for j in range(i + 1)
            ),
            Fraction(0),
        )

    total = sum((Fraction(cell) / Fraction(noise.score_scale)) ** 2 for cell in s)
    if noise.information_scales:
        total += of_matrix(h, noise.information_scales)
    if noise.middle == "matrix":
        return total + of_matrix(m, noise.middle_scales)
    trace = sum(m[i, i] for i in range(d))
    return total + (Fraction(trace) / Fraction(noise.middle_scales[0])) ** 2


def pure_costs(noise: Any, taken: Any, given: Any) -> tuple[float, float]:
    """The loss that score and contrast, and the trace reach, in the limit: |ds|/b, |dt|/scale."""
    _, s, m = changes(noise.columns, taken, given, noise.times)
    score = float(np.linalg.norm(np.array(s, dtype=float))) / noise.score_scale
    return score, abs(float(np.trace(m))) / noise.middle_scales[0]
