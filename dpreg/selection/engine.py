"""The two engines that draw a model: list them all, or search the tree.

Both draw from the same law (`tests/selection/tree/test_sampler.py` says so); which one runs
is chosen from public facts, the number of models and the mechanism, and is printed with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from dpreg.arrays import Bools, Ints
from dpreg.errors import ArgumentError
from dpreg.privacy.composition import DrawPlan
from dpreg.privacy.mechanisms import draw_index, effective_t
from dpreg.privacy.stability import AccountError
from dpreg.selection.contest import Contest
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.sampler import Tree

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = ["ENGINES", "LARGEST_LIST", "Engine", "Enumerated", "Searched", "choose_engine"]

LARGEST_LIST: Final = 2**20
"""More models than this are never listed."""

_AUTO_LIST: Final = 2**14
"""Spaces up to this size are listed by ``engine="auto"``: a list is as quick as a tree there."""


def choose_engine(engine: str, space: Space, mechanism: str) -> str:
    """Return "enumerate" or "tree" from public facts, or raise ArgumentError."""
    if engine == "tree" and mechanism == "laplace":
        raise ArgumentError(
            'engine="tree" cannot draw mechanism="laplace": its noise has no exact law for a '
            'maximum over many models here. Use "permute-and-flip", which is never worse.'
        )
    size = space.size
    if engine == "auto":
        engine = "enumerate" if size <= _AUTO_LIST or mechanism == "laplace" else "tree"
    if engine == "enumerate" and size > LARGEST_LIST:
        raise ArgumentError(
            f"the space holds {size} models and at most {LARGEST_LIST} are listed: set max_terms, "
            'or use engine="tree" with "permute-and-flip" or "exponential".'
        )
    return engine


class Engine(Protocol):
    """What draws models: made once for all draws of a call, from one contest and one plan."""

    def draw(self, part: Part, *, progress: bool = False) -> tuple[int, ...]:
        """Draw one model at the cost of a part: the indices of its units outside ``keep``.

        `progress` shows the progress of a search on stderr, for the curator's eyes.
        """


class Enumerated:
    """The engine that lists every model of a space, with its total score.

    Attributes
    ----------
    models : bool array, shape (K, units)
    scores : int64 array, shape (K,)
        Charges included.
    """

    __slots__ = ("_contest", "_group", "_mechanism", "models", "scores")

    def __init__(self, problem: Problem, space: Space, contest: Contest, plan: DrawPlan) -> None:
        self._group, self._contest, self._mechanism = problem.group, contest, plan.mechanism
        self.models: Bools = space.models()
        self.scores: Ints = contest.totals(
            problem.scores(space.columns(self.models)), self.models, space
        )

    def draw(self, part: Part, *, progress: bool = False) -> tuple[int, ...]:
        """Draw one model; see `Engine`."""
        bound = self._contest.score_range
        drawn = draw_index(self.scores, bound, part, self._mechanism, self._group)
        return tuple(np.flatnonzero(self.models[drawn]).tolist())


class Searched:
    """The engine that searches the tree of models, made for the rate of one draw."""

    __slots__ = ("_contest", "tree")

    def __init__(self, problem: Problem, space: Space, contest: Contest, plan: DrawPlan) -> None:
        self._contest = contest
        self.tree = Tree(
            problem,
            space,
            mechanism=plan.mechanism,
            t=effective_t(plan.eps_each, contest.score_range.width, plan.mechanism),
            phi_int=contest.phi,
            psi_int=contest.psi,
            transform=contest.transform,
        )

    def draw(self, part: Part, *, progress: bool = False) -> tuple[int, ...]:
        """Draw one model; see `Engine`. The tree's rate must be the part's."""
        tree, bound = self.tree, self._contest.score_range
        eps = part.draw(tree.mechanism, bound, tree.problem.group).eps
        if tree.t != effective_t(eps, bound.width, tree.mechanism):
            raise AccountError("internal error: the tree was made for another rate than is charged")
        return tree.draw(Bits(part.rng), progress=progress).units


ENGINES: Final[Mapping[str, Callable[[Problem, Space, Contest, DrawPlan], Engine]]] = {
    "enumerate": Enumerated,
    "tree": Searched,
}
"""The engines, by the names that `choose_engine` returns."""
