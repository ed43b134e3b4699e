"""The two engines that draw a model: list them all, or search the tree.

Both draw from the same law (`tests/selection/tree/test_sampler.py` says so); which one runs
is chosen from public facts, the number of models and the mechanism, and is printed with the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import draw_index, effective_t
from dpreg.privacy.stability import AccountError
from dpreg.selection.contest import Contest
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.sampler import Tree

if TYPE_CHECKING:
    from dpreg.privacy.account import Part
    from dpreg.privacy.composition import DrawPlan

__all__ = ["LARGEST_LIST", "Enumerated", "choose_engine", "draw_model", "models_of"]

LARGEST_LIST: Final = 2**20
"""More models than this are never listed."""

_AUTO_LIST: Final = 2**14
"""Spaces up to this size are listed by ``engine="auto"``: a list is as quick as a tree there."""


def choose_engine(engine: str, space: Space, mechanism: str) -> str:
    """Return "enumerate" or "tree" from public facts, or raise ArgumentError with the mend."""
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


class Enumerated:
    """The listed models of a space with their canonical q, computed once for all draws."""

    __slots__ = ("group", "models", "q")

    def __init__(self, problem: Problem, space: Space) -> None:
        self.group = problem.group
        self.models: NDArray[np.bool_] = space.models()
        self.q: NDArray[np.int64] = problem.scores(space.columns(self.models))


def models_of(
    problem: Problem, space: Space, contest: Contest, plan: DrawPlan, *, engine: str
) -> Enumerated | Tree:
    """Make what draws start from, once for all draws of a call: the list, or the tree."""
    if engine == "enumerate":
        return Enumerated(problem, space)
    return Tree(
        problem,
        space,
        mechanism=plan.mechanism,
        t=effective_t(plan.eps_each, contest.score_range.width, plan.mechanism),
        phi_int=contest.phi,
        psi_int=contest.psi,
        transform=contest.transform,
    )


def draw_model(
    models: Enumerated | Tree,
    space: Space,
    contest: Contest,
    part: Part,
    *,
    mechanism: str,
    progress: bool = False,
) -> tuple[int, ...]:
    """Draw one model: the indices of its units outside ``keep``.

    Parameters
    ----------
    models : Enumerated or Tree
        From `models_of`, for the same contest and mechanism.
    part : Part
        What this draw may cost; a tree is made for one rate, which must be the part's.
    mechanism : str
    progress : bool
        Show the tree's progress on stderr, for the curator's eyes.
    """
    if isinstance(models, Tree):
        bound = contest.score_range
        eps = part.draw(models.mechanism, bound, models.problem.group).eps
        if models.t != effective_t(eps, bound.width, models.mechanism):
            raise AccountError("internal error: the tree was made for another rate than is charged")
        return models.draw(Bits(part.rng), progress=progress).units
    scores = contest.totals(models.q, models.models, space)
    drawn = draw_index(scores, contest.score_range, part, mechanism, models.group)
    return tuple(np.flatnonzero(models.models[drawn]).tolist())
