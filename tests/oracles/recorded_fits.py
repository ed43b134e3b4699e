"""What looks cost a person, whatever the call, from the scales of their noise alone.

A unit is a row, or a person's rows together. In the box a row is (1, x, y), its cells in [-1, 1].
At a locating look, and in a box of persons, a unit has sum |a|^2 <= 1 and sum f^2 <= 1; at a
fitting look a positive semidefinite H of trace 1 at most and a score of length 1 at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from oracles.recorded_looks import _box, _located, _pools, wishart
from oracles.recorded_steps import Asked, Cost
from oracles.recording import UNIT, Draw

TURNS = np.linspace(-1, 1, 401)
LENGTHS = np.linspace(0, 1, 41)


def fits(
    draws: Iterator[Draw],
    asked: Asked,
    released: tuple[Any, ...],
    later: tuple[Any, ...] = (),
    *,
    curved: bool = False,
    minima: tuple[Any, ...] = (),
) -> Cost:
    """One line: a look at the box, and as many others as were made, `later` at chosen columns.

    Those draw information of their own where the link is `curved`, and a look before a minimum is
    drawn after it. `minima` are what the search of a last look's was given.
    """
    persons = "person" in asked.options
    unit = Asked(asked.relation, 1 if persons else asked.k, asked.options)
    boxed, gaussian = len(released[0].information) - 2, released[0].mechanism == "gaussian"
    assert sum(float(look.share) for look in (*released, *later)) <= 1 + 1e-9
    drawn: list[Draw] = []
    losses: list[float] = []
    total = 0.0
    if gaussian:
        drawn = _pools(draws, boxed + 2)
        total = (_located if persons else _box)(drawn, unit, boxed)
    else:
        box = wishart(next(draws), unit, boxed, "", located=persons)
        drawn, losses = list(box.draws), list(box.losses)
    drew = [True] * len(released[1:]) + [curved] * len(later)
    first = list(released[1:])
    if curved and first[-1].kind == "minimum":
        first[-2:] = first[:-3:-1]  # its information is of a look that waited for it
    for look, informed in zip((*first, *later), drew, strict=True):
        d, kind = len(look.score), look.kind
        own: list[Draw]
        if kind == "locating" and gaussian:
            own = _pools(draws, d + 1)
            total += _located(own, unit, d - 1)
        elif kind == "locating":
            one = wishart(next(draws), unit, d - 1, "", located=True)
            own = list(one.draws)
            losses += one.losses
        elif gaussian:
            matrix = look.middle.size > 0
            triangle = [d, d * (d - 1) // 2]
            sizes = [*triangle * informed, 2 * d, *(triangle if matrix else [1])]
            own = [next(draws) for _ in sizes]
            assert [draw.size for draw in own] == sizes
            assert {draw.mechanism for draw in own} == {"gaussian"}
            total += _fitting(own, unit, matrix=matrix, informed=informed)
        elif kind == "minimum":
            own = outer, trace = [next(draws) for _ in range(2)]
            assert (outer.mechanism, outer.size) == ("l2-norm", d)
            assert (trace.mechanism, trace.size) == ("laplace", 1)
            # An outer part is half as long as a score.
            losses += [unit.k * unit.rows / 2 / outer.scale / UNIT, unit.k / trace.scale / UNIT]
            ((made, tolerance, places),) = minima
            least = minimum(draws, unit, made, tolerance, places)
            own, losses = [*own, *least.draws], [*losses, *least.losses]
        else:
            own = score, trace = [next(draws) for _ in range(2)]
            assert (score.mechanism, score.size) == ("l2-norm", 2 * d)
            assert (trace.mechanism, trace.size) == ("laplace", 1)
            # An outer part is twice as long as the inner one, which counts twice: 4/3 of a score.
            longest = 4 / 3 * unit.k * unit.rows
            losses += [longest / score.scale / UNIT, unit.k / trace.scale / UNIT]
        drawn = [*drawn, *own]
    if gaussian:
        return Cost("looks", tuple(drawn), mu=unit.k * math.sqrt(total))
    return Cost("looks", tuple(drawn), tuple(losses))


def minimum(
    draws: Iterator[Draw], asked: Asked, made: Any, tolerance: Fraction, places: int
) -> Cost:
    """The draw of b, the determinants, and where the search stopped."""
    drawn, spread = next(draws), next(draws)
    d, penalty = len(made.noise), float(made.penalty)
    unit = 2 / max(cell.denominator for cell in made.noise)
    # Slopes are cut to [-1, 1], and grow with the predictor by scale times bend at most.
    lengths, square = np.linalg.norm(made.x, axis=1), made.radius**2
    pull, bent = float((made.weights * lengths).max()), square
    assert (made.weights * made.scale * made.bend * lengths**2).max() <= square * (1 + 1e-9)
    reach = asked.rows * asked.k * pull
    apart = 2 * float(tolerance) / penalty * 2**places + math.sqrt(d)
    losses = (
        reach / (drawn.scale * unit),
        asked.k * math.log1p(bent / penalty),
        apart / spread.scale,
    )
    return Cost("coefficients", (drawn, spread), losses)


def _fitting(own: list[Draw], unit: Asked, *, matrix: bool, informed: bool) -> float:
    """The largest squared ratio: two informations that share no direction, and scores on a grid."""
    scales, information = [draw.scale * UNIT for draw in own], math.inf
    if informed:
        information, beside, *scales = scales
        assert abs(information / beside / math.sqrt(2) - 1) < 1e-6
    score, middle, *rest = scales
    assert not rest or abs(middle / rest[0] / math.sqrt(2) - 1) < 1e-6
    a, b, t = np.meshgrid(LENGTHS, LENGTHS if unit.rows == 2 else [0.0], TURNS)
    moved = (a**2 + b**2 - 2 * a * b * t) / score**2
    if matrix:
        moved += (a**4 + b**4 - 2 * (a * b * t) ** 2) / middle**2
    else:
        moved += (a**2 - b**2) ** 2 / middle**2
        if unit.rows == 2:  # inner and outer parts may lie apart, and then the contrast moves
            turned = np.linspace(0.0, math.pi / 2, 91)
            apart = 2 * (1 + np.cos(turned)) / score**2 + (np.sin(turned) / middle) ** 2
            moved = np.append(moved, apart)
    return float(unit.rows / information**2 + moved.max())
