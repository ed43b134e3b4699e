"""Looks with tags in the place of noise: which exact number each released one is, and its noise.

`tagged` replaces the mechanisms by `Tag`s, integers that know the draw they belong to, and listens
where a look adds noise to exact integers. What is told are pairs (exact, tag), one for each number
that leaves the room of looks. Costs of neighbours follow from such pairs alone: neither
dpreg's sensitivities nor its calibration have a part in them.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dpreg.looks import table
from dpreg.privacy.mechanisms import additive, wishart
from dpreg.privacy.mechanisms import floors as l2_norm


class Tag(int):
    """Noise of 0 that knows its law, its scale, and its place among what was drawn with it."""

    law: str
    draw: int
    place: Any
    scale: Any

    @classmethod
    def of(cls, law: str, draw: int, place: Any, scale: Any) -> Tag:
        tag = cls(0)
        tag.law, tag.draw, tag.place, tag.scale = law, draw, place, scale
        return tag


@dataclass
class Told:
    """What left the room: the exact number and the tag it was given."""

    pairs: list[tuple[int, Tag]] = field(default_factory=list)
    draws: int = 0

    def next(self) -> int:
        self.draws += 1
        return self.draws

    def take(self) -> list[tuple[int, Tag]]:
        taken, self.pairs, self.draws = self.pairs, [], 0
        return taken


def tagged(patch: pytest.MonkeyPatch) -> Told:
    """Put tags in the place of noise."""
    told = Told()

    def everywhere(honest: Any, instead: Any) -> None:
        for module in [m for name, m in sys.modules.items() if name.startswith("dpreg")]:
            for name, value in list(vars(module).items()):
                if value is honest:
                    patch.setattr(module, name, instead)

    def vector(law: str) -> Any:
        def drawn(size: int, scale: Any, rng: Any = None) -> list[Tag]:
            draw = told.next()
            return [Tag.of(law, draw, j, float(scale)) for j in range(size)]

        return drawn

    def matrix(scales: Any, **_: Any) -> Any:
        draw, size = told.next(), len(scales)
        rows: list[list[Any]] = [[None] * size for _ in scales]
        for i in range(size):
            for j in range(i + 1):
                rows[i][j] = rows[j][i] = Tag.of("wishart", draw, (i, j), tuple(scales))
        return tuple(map(tuple, rows))

    everywhere(additive.gaussian_noise, vector("gaussian"))
    everywhere(additive.laplace_noise, vector("laplace"))
    everywhere(l2_norm.l2_norm_noise, vector("l2"))
    everywhere(wishart.wishart_noise, matrix)
    honest = table._noisy

    def noisy(exact: Any, drawn: Any) -> Any:
        cells = (np.array(of, dtype=object).ravel() for of in (exact, drawn))
        told.pairs += zip(*cells, strict=True)
        return honest(exact, drawn)

    patch.setattr(table, "_noisy", noisy)
    return told


Cells = dict[Any, tuple[float, Tag]]


def cells_of(pairs: list[tuple[int, Tag]]) -> Cells:
    """Exact numbers by their noise; two that share one are equal, or both would be known."""
    found: Cells = {}
    for exact, tag in pairs:
        if not isinstance(tag, Tag):  # two levels of one factor in a row: known without a release
            assert exact == tag == 0, "a number left without noise"
            continue
        key = tag.draw, tag.place
        assert key not in found or found[key][0] == exact
        found[key] = exact, tag
    return found


def cost(one: Cells, other: Cells) -> float:
    """The squared ratio of two sums where noise is Gaussian, else the loss that they reach."""
    assert one.keys() == other.keys()
    draws: dict[int, dict[Any, float]] = defaultdict(dict)
    tags: dict[int, Tag] = {}
    for (draw, place), (exact, tag) in one.items():
        draws[draw][place] = exact - other[draw, place][0]
        tags[draw] = tag
    total, laws = 0.0, {tag.law for tag in tags.values()}
    assert laws == {"gaussian"} or "gaussian" not in laws
    for draw, moved in draws.items():
        tag = tags[draw]
        if tag.law == "gaussian":
            total += sum((change / tag.scale) ** 2 for change in moved.values())
        elif tag.law == "l2":
            total += math.sqrt(sum(change**2 for change in moved.values())) / tag.scale
        elif tag.law == "laplace":
            total += sum(abs(change) for change in moved.values()) / tag.scale
        else:
            root = np.sqrt(np.array(tag.scale, dtype=float))
            whole = np.zeros((len(root), len(root)))
            for (i, j), change in moved.items():
                whole[i, j] = whole[j, i] = change / root[i] / root[j]
            total += float(np.abs(np.linalg.eigvalsh(whole)).sum()) / 2
    return total
