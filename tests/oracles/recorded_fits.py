"""What the looks of `dp_ols` and `dp_glm` cost a person, from the scales of their noise alone.

A unit is a row, or a person's rows together. In the box a row is (1, x, y), its cells in [-1, 1].
At a locating look, and in a box of persons, a unit has sum |a|^2 <= 1 and sum f^2 <= 1; at a
fitting look a positive semidefinite H of trace 1 at most and a score of length 1 at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from oracles.recorded_looks import _box, _located, _pools, wishart
from oracles.recorded_steps import Asked, Cost
from oracles.recording import UNIT, Draw

from dpreg.looks.tuning import TUNING

TURNS = np.linspace(-1, 1, 401)
TAIL = 0.75
"""What of a unit's squared score lies beyond a quarter."""
LENGTHS = np.linspace(0, 1, 41)


def fits(draws: Iterator[Draw], asked: Asked, released: tuple[Any, ...]) -> Cost:
    """One line: a look at the box, and as many others as were made."""
    persons = "person" in asked.options
    unit = Asked(asked.relation, 1 if persons else asked.k, asked.options)
    boxed, d = len(released[0].information) - 2, len(released[-1].score)
    gaussian = released[0].mechanism == "gaussian"
    step = f"looks 1-{2 + (TUNING.looks if gaussian else TUNING.looks_pure)}"
    if not gaussian:
        found = [wishart(next(draws), unit, boxed, step, located=persons)]
        for look in released[1:-1]:
            assert look.kind == "locating"
            found.append(wishart(next(draws), unit, d - 1, step, located=True))
        score, trace = next(draws), next(draws)
        assert (score.mechanism, score.size) == ("l2-norm", d)
        assert (trace.mechanism, trace.size) == ("laplace", 1)
        losses = [loss for one in found for loss in one.losses]
        losses += [unit.k * unit.rows / score.scale / UNIT, unit.k / trace.scale / UNIT]
        tail = next(draws)
        assert (tail.mechanism, tail.size) == ("laplace", 1)
        losses.append(unit.k * TAIL / tail.scale / UNIT)
        drawn = [draw for one in found for draw in one.draws]
        return Cost(step, (*drawn, score, trace, tail), tuple(losses))
    pools = _pools(draws, boxed + 2)
    total, drawn = (_located if persons else _box)(pools, unit, boxed), list(pools)
    for place, look in enumerate(released[1:], start=1):
        assert look.kind == "fitting"
        matrix = place == len(released) - 1
        own = [next(draws) for _ in range(6 if matrix else 4)]
        triangle = [d, d * (d - 1) // 2]
        assert [draw.size for draw in own] == [*triangle, d, *([*triangle, 1] if matrix else [1])]
        assert {draw.mechanism for draw in own} == {"gaussian"}
        total += _fitting(own, unit, matrix=matrix)
        drawn += own
    assert len(released) <= 2 + TUNING.looks
    return Cost(step, tuple(drawn), mu=unit.k * math.sqrt(total))


def _fitting(own: list[Draw], unit: Asked, *, matrix: bool) -> float:
    """The largest squared ratio: two informations that share no direction, and scores on a grid."""
    information, beside, score, middle, *rest = [draw.scale * UNIT for draw in own]
    tail = (TAIL / rest[1]) ** 2 if matrix else 0.0
    assert abs(information / beside / math.sqrt(2) - 1) < 1e-6
    assert not rest or abs(middle / rest[0] / math.sqrt(2) - 1) < 1e-6
    a, b, t = np.meshgrid(LENGTHS, LENGTHS if unit.rows == 2 else [0.0], TURNS)
    moved = (a**2 + b**2 - 2 * a * b * t) / score**2
    if matrix:
        moved += (a**4 + b**4 - 2 * (a * b * t) ** 2) / middle**2
    else:
        moved += (a**2 - b**2) ** 2 / middle**2
    return float(unit.rows / information**2 + moved.max() + tail)
