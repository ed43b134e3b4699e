"""What the heap of a search holds: nodes, which are sets of models, and leaves, single models.

Both are records of one search, changed as it learns more: a node's bounds rise when its state is
made, a leaf's when its score is refined. A search makes thousands and refines them in place, so the
fields stay open; only `dpreg.selection.tree.search` writes them. Tested with the search.

Tested in `tests/selection/tree/test_sampler.py`.
"""

from __future__ import annotations

import math

from flint import fmpz

from dpreg.arrays import Floats
from dpreg.selection.tree.bounds import State
from dpreg.selection.tree.counts import Cell
from dpreg.selection.tree.noise import Arrival
from dpreg.selection.tree.weights import Heaviest

__all__ = ["Leaf", "Node"]


class Node:
    """A cell less the models already taken from it (`gone`), with its largest noise.

    `removed` are the units that no model of the cell holds: those of `state`, and others, which
    add at least `extra` to the state's bound; `lack` estimates by how much that falls short of the
    bound of a state of its own.
    """

    __slots__ = (
        *("at", "bound", "cell", "drawn", "extra", "gone", "heaviest", "lack", "leaf"),
        *("level", "most", "noise", "removed", "score", "size", "state"),
    )

    def __init__(
        self, cell: Cell, size: int, gone: frozenset[int], noise: Arrival, state: State
    ) -> None:
        self.cell = cell
        self.size = size
        self.gone = gone
        self.noise = noise
        self.state = state
        self.bound = -math.inf
        self.extra: tuple[float, ...] = (0.0,) * len(state.views)
        self.heaviest: Heaviest | None = None
        self.lack = self.most = 0.0
        self.level = -math.inf
        self.score = 0
        self.removed = 0
        self.leaf = -1
        self.drawn = False
        self.at = 0


class Leaf:
    """A model with its noise and a lower bound on its score; `stage` counts the refinements."""

    __slots__ = ("beta", "bound", "model", "noise", "score", "stage", "weight")

    def __init__(self, model: int, weight: int, noise: Arrival, bound: float) -> None:
        self.weight = fmpz(weight)
        self.model = model
        self.noise = noise
        self.bound = bound
        self.score = 0
        self.stage = 0
        self.beta: Floats | None = None
