"""What staged looks cost a person, from the scales of their noise alone, by this folder's formulas.

A row of the box is (1, x, y) with all cells in [-1, 1]. A located row is (a, f) with |a| <= 1 and
|f| <= 1 in stored units; where a last look says so by its scales, F |a| |f| <= 1, too, and f is in
units of F clips. The tail adds (t, t^2, l) with |t| <= 1 and 0 <= l <= 1, where the first
is stored in units of the weight of a full row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from oracles.recorded_steps import Asked, Cost
from oracles.recording import UNIT, Draw, moment_changes

TAIL, SQUARES = "residuals beyond the clip", "spread of residuals and rows"
CHOSEN = "look at the chosen columns"


def looks(
    draws: Iterator[Draw],
    asked: Asked,
    columns: int,
    released: tuple[Any, ...],
    later: Any = None,
) -> list[Cost]:
    """Three looks and the tail, at so many numeric columns beside the constant.

    `later` is the fit by one more look, at the chosen columns.
    """
    found = _three(draws, asked, columns, released)
    if later is None:
        return found
    chosen = len(later.params) - 1
    if released[0].mechanism == "matrix-laplace":
        look = wishart(next(draws), asked, chosen, CHOSEN, located=True)
        tail = [next(draws) for _ in range(3)]
        losses = (*look.losses, _tail(tail, asked, later.looks, 1))
        return [*found, Cost(CHOSEN, (*look.draws, *tail), losses)]
    pools = _pools(draws, chosen + 2)
    squares = _located(pools, asked, chosen)
    tail = [next(draws) for _ in range(3)]
    squares += _tail(tail, asked, later.looks, 2)
    (three,) = found
    assert three.mu is not None
    drawn = (*three.draws, *pools, *tail)
    return [Cost("looks 1-4", drawn, mu=math.hypot(three.mu, asked.k * math.sqrt(squares)))]


def _three(
    draws: Iterator[Draw],
    asked: Asked,
    columns: int,
    released: tuple[Any, ...],
) -> list[Cost]:
    """Three looks, the second with four sums of squares and the last with a tail."""
    if released[0].mechanism == "matrix-laplace":
        found = [wishart(next(draws), asked, columns, f"look {i}", located=i > 1) for i in (1, 2)]
        squares = [next(draws) for _ in range(4)]
        found.append(wishart(next(draws), asked, columns, "look 3", located=True))
        tail = [next(draws) for _ in range(3)]
        found.append(Cost(TAIL, tuple(tail), (_tail(tail, asked, released, 1),)))
        loss = asked.k * _squares(squares, asked, 1)
        return [*found, Cost(SQUARES, tuple(squares), (loss,))]
    drawn, total = [], 0.0
    for place in range(3):
        pools = _pools(draws, columns + 2)
        if place == 2 and _bounded_by_product(pools, asked):
            total += _product(pools, asked, released[2])
        else:
            total += _box(pools, asked, columns) if place == 0 else _located(pools, asked, columns)
        drawn += pools
        if place == 1:
            squares = [next(draws) for _ in range(4)]
            drawn += squares
            total += _squares(squares, asked, 2)
    tail = [next(draws) for _ in range(3)]
    total += _tail(tail, asked, released, 2)
    return [Cost("looks 1-3", (*drawn, *tail), mu=asked.k * math.sqrt(total))]


def _squares(draws: list[Draw], asked: Asked, power: int) -> float:
    """What one row moves four sums by, in scales of their noise: of |move|^power, the largest.

    Three of its squares add up to at most 1, the fourth is at most 1. A row replaced may move two
    of the three and the fourth by 1 each, a row added one and the fourth.
    """
    assert all(draw.size == 1 for draw in draws)
    *three, fourth = ((2.0**40 / draw.scale) ** power for draw in draws)
    largest = sorted(three)
    moved = largest[-1] + (largest[-2] if asked.relation == "replace-one" else 0.0)
    return moved + fourth


def family_looks(
    draws: Iterator[Draw], asked: Asked, columns: int, released: tuple[Any, ...]
) -> Cost:
    """A look at the box, then information, score and its square at each of the other looks."""
    if released[0].mechanism == "matrix-laplace":
        return _pure_family(draws, asked, columns, released)
    boxed = len(released[0].cells) - 2  # with what has no coefficients: offset and trials
    drawn = _pools(draws, boxed + 2)
    squares = _box(drawn, asked, boxed)
    for look in released[1:]:
        pools = _pools(draws, columns + 2)
        squares += _blocks(pools, asked, columns + 1, look)
        drawn = [*drawn, *pools]
    return Cost("looks", tuple(drawn), mu=asked.k * math.sqrt(squares))


def family_choice(
    draws: Iterator[Draw],
    asked: Asked,
    columns: int,
    released: tuple[Any, ...],
    later: Any = None,
) -> list[Cost]:
    """Looks at a family, and where `later` is a fit by one more look, that at its columns."""
    first = family_looks(draws, asked, columns, released)
    if later is None:
        return [first]
    chosen, (look,) = len(later.params) - 1, later.looks
    if look.mechanism == "matrix-laplace":
        return [first, Cost(CHOSEN, *_pure_blocks(draws, asked, chosen, look))]
    pools = _pools(draws, chosen + 2)
    squares = _blocks(pools, asked, chosen + 1, look)
    assert first.mu is not None
    drawn = (*first.draws, *pools)
    return [Cost("looks", drawn, mu=math.hypot(first.mu, asked.k * math.sqrt(squares)))]


def _pure_family(
    draws: Iterator[Draw], asked: Asked, columns: int, released: tuple[Any, ...]
) -> Cost:
    """Each part's own loss: the Wisharts' trace, the score's length, the square's step."""
    box = wishart(next(draws), asked, columns, "looks")
    drawn, losses = list(box.draws), list(box.losses)
    for look in released[1:]:
        own, lost = _pure_blocks(draws, asked, columns, look)
        drawn, losses = [*drawn, *own], [*losses, *lost]
    return Cost("looks", tuple(drawn), tuple(losses))


def _pure_blocks(
    draws: Iterator[Draw], asked: Asked, columns: int, look: Any
) -> tuple[tuple[Draw, ...], tuple[float, ...]]:
    """Return what one look drew, and each part's own loss."""
    information, score, middle = (next(draws) for _ in range(3))
    (scale,) = set(information.widths)
    stored = look.noise_sd[0, -1] / (math.sqrt(columns + 2) * score.scale * UNIT)
    limit = look.width / stored
    assert 0 < limit <= 1 + 1e-9
    assert (information.size, score.size, middle.size) == (columns + 1, columns + 1, 1)
    return (information, score, middle), (
        asked.k * asked.rows / (2 * scale * UNIT),
        asked.k * asked.rows * limit / (score.scale * UNIT),
        asked.k / (middle.scale * UNIT),
    )


def _blocks(pools: list[Draw], asked: Asked, size: int, look: Any) -> float:
    """Rows (a, b, direction) with 0 <= a <= 1, |b| <= S and 0 <= q^2 <= 1, searched on a grid."""
    own = _pool(pools, size, look.noise_sd[0, 0] / look.radius**2 / UNIT)
    last = _pool(pools, 1, look.noise_sd[-1, -1] / look.width**2 / UNIT)
    rest = [pool for pool in pools if pool is not own and pool is not last]
    if size > 1:
        off = _pool(rest, size * (size - 1) // 2, own.scale / math.sqrt(2))
        rest = [pool for pool in rest if pool is not off]
    (one_score,) = rest
    assert one_score.size == size
    diagonal, score = own.scale, one_score.scale
    stored = look.noise_sd[0, -1] / (score * UNIT)  # one of the score, in units of the look
    limit = look.width / stored
    assert 0 < limit <= 1 + 1e-9
    a, sides = np.linspace(0, 1, 11), np.array([-1.0, 0.0, 1.0]) * limit
    one, other, b, c, t = np.meshgrid(a, a, sides, sides, np.linspace(-1, 1, 401), indexing="ij")
    if asked.rows == 1:
        other, c = 0 * other, 0 * c
    blocks = (one**2 + other**2 - 2 * one * other * t**2) / (diagonal * UNIT) ** 2
    scores = (b**2 + c**2 - 2 * b * c * t) / (score * UNIT) ** 2
    return float((blocks + scores).max() + 1 / (last.scale * UNIT) ** 2)


def _pool(pools: list[Draw], size: int, scale: float) -> Draw:
    """Return the draws of so many cells at a scale."""
    (found,) = (p for p in pools if p.size == size and abs(p.scale / scale - 1) < 1e-6)
    return found


def wishart(draw: Draw, asked: Asked, columns: int, step: str, *, located: bool = False) -> Cost:
    """Adding zz' to a Wishart of D + 1 degrees costs z'C^-1 z/2; a replaced row moves both."""
    assert draw.mechanism == "matrix-laplace"
    assert len(draw.widths) == columns + 2
    inverse = 1 / (np.array(draw.widths) * UNIT)
    norm = inverse[:-1].max() + inverse[-1] if located else inverse.sum()
    return Cost(step, (draw,), (asked.k * asked.rows * norm / 2,))


def _pools(draws: Iterator[Draw], size: int) -> list[Draw]:
    """Take the draws of one Gaussian look: they fill the upper triangle."""
    pools: list[Draw] = []
    while sum(pool.size for pool in pools) < size * (size + 1) // 2:
        pools.append(next(draws))
        assert pools[-1].mechanism == "gaussian"
    assert sum(pool.size for pool in pools) == size * (size + 1) // 2
    return pools


def _box(pools: list[Draw], asked: Asked, columns: int) -> float:
    """The more often the response is in a cell the smaller the noise."""
    changes, touches = moment_changes(columns, asked.rows)
    ordered = sorted(pools, key=lambda pool: pool.scale, reverse=True)
    if len(ordered) == 1:
        ordered *= 3
    scales = np.array([ordered[i].scale for i in touches]) * UNIT
    return float(((changes / scales) ** 2).sum(axis=1).max())


def _located(pools: list[Draw], asked: Asked, columns: int) -> float:
    """Cells off the diagonal have 1/sqrt(2) of the noise of those on it; two directions suffice."""
    size = columns + 1
    if not columns:
        return _constant(pools, asked)
    off = next(p for p in pools if p.size >= size * (size - 1) // 2 and p.scale == pools[0].scale)
    diagonal = off.scale * math.sqrt(2)
    rest = [p.scale for p in pools if p is not off and abs(p.scale / diagonal - 1) > 1e-9]
    last = max(rest, default=diagonal)
    mixed = min(rest, default=off.scale)
    scale = np.full((size + 1, size + 1), off.scale)
    np.fill_diagonal(scale, diagonal)
    scale[:-1, -1] = scale[-1, :-1] = mixed
    scale[-1, -1] = last
    upper = np.triu_indices(size + 1)
    turns = np.linspace(0, math.pi, 721)

    def rows(sign: float) -> np.ndarray:
        z = np.zeros((len(turns), size + 1))
        z[:, 0], z[:, 1], z[:, -1] = np.cos(turns), np.sin(turns), sign
        products = z[:, upper[0]] * z[:, upper[1]]
        return products / (scale[upper] * UNIT)

    first, second = rows(1.0), rows(-1.0)
    if asked.rows == 1:
        return float((first**2).sum(axis=1).max())
    return float(max(((one - second) ** 2).sum(axis=1).max() for one in first[::8]))


STRETCH = 1.5


def _bounded_by_product(pools: list[Draw], asked: Asked) -> bool:
    """A product's cells of the response have scales that no weight of the norm gives."""
    scales = [pool.scale for pool in pools]
    equations = 1 / (math.sqrt(2 * (2 if asked.rows == 2 else 3)) * STRETCH)
    return abs(min(scales) / max(scales) / equations - 1) < 1e-6


def _product(pools: list[Draw], asked: Asked, look: Any) -> float:
    """Rows of lengths r, residuals f with F r f <= 1, and an angle between two, on a grid."""
    square, equation = max(p.scale for p in pools) * UNIT, min(p.scale for p in pools) * UNIT
    diagonal = square / math.sqrt(2)
    units = np.append(np.full(len(look.noise_sd) - 1, look.radius), STRETCH)
    told = look.noise_sd / np.outer(units, units)
    assert abs(told[0, 0] / diagonal - 1) < 1e-6
    assert abs(told[0, -1] / equation - 1) < 1e-6
    assert abs(told[-1, -1] / square - 1) < 1e-6
    if len(told) > 2:
        assert abs(told[0, 1] * math.sqrt(2) / diagonal - 1) < 1e-6
    r = np.linspace(0, 1, 31)
    f = np.linspace(0, 1, 16) * np.minimum(1, 1 / (STRETCH * np.maximum(r, 1e-9)))[:, None]
    length, residual = (one.ravel() for one in np.broadcast_arrays(r[:, None], f))
    part = length * residual
    other = np.zeros(1, dtype=int) if asked.rows == 1 else np.arange(len(part))
    largest = 0.0
    for t in np.linspace(-1, 1, 41):
        lengths = np.add.outer(length**4, length[other] ** 4)
        lengths -= 2 * np.outer(length**2, length[other] ** 2) * t * t
        equations = np.add.outer(part**2, part[other] ** 2)
        equations += 2 * np.outer(part, part[other]) * t
        squares = np.subtract.outer(residual**2, residual[other] ** 2) ** 2
        whole = lengths / diagonal**2 + equations / equation**2 + squares / square**2
        largest = max(largest, float(whole.max()))
    return largest


def _constant(pools: list[Draw], asked: Asked) -> float:
    """A weight a and a residual f: cells s, s/sqrt(2 g) and s/g, the middle one that of a f."""
    scales = [pool.scale for pool in pools for _ in range(pool.size)]
    wrong = [abs(math.prod(scales) / scale**3 - 2) for scale in scales]
    mixed = scales.pop(int(np.argmin(wrong)))
    scale = np.array([min(scales), mixed, max(scales)]) * UNIT
    a, f = np.meshgrid(np.linspace(0, 1, 33), np.linspace(-1, 1, 65))
    rows = np.column_stack([(a * a).ravel(), (a * f).ravel(), (f * f).ravel()]) / scale
    if asked.rows == 1:
        return float((rows**2).sum(axis=1).max())
    return float(max(((one - rows) ** 2).sum(axis=1).max() for one in rows))


def _tail(tail: list[Draw], asked: Asked, released: tuple[Any, ...], power: int) -> float:
    """Pure loss (power 1) or squared ratio (power 2) of one person (of one row if squared)."""
    full = 2.0**20 / released[-1].radius
    unit = np.array([full * 2.0**20, 2.0**40, 2.0**40])
    scales = np.array([draw.scale for draw in tail]) / unit
    assert [draw.size for draw in tail] == [1, 1, 1]
    t = np.linspace(-1, 1, 201)
    cells = np.array([[s, s * s, leverage] for s in t for leverage in (0.0, 1.0)])
    if asked.rows == 2:
        cells = (cells[:, None] - cells[None]).reshape(-1, 3)
    loss = float((np.abs(cells / scales) ** power).sum(axis=1).max())
    return loss * (asked.k if power == 1 else 1)
