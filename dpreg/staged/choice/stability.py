r"""How often a term would be chosen again, if the released estimate were the truth.

The released law is g = K beta + noise. Redraws put the released g in the place of K beta and choose
again. The released g has its noise already, so a redraw has it twice, and a useless term near its
price comes back about half of the time: these shares are no probabilities that a term matters. Like
all of the choice they cost nothing. The generator is seeded by a constant, so that a released law
has one answer.

Tested in `tests/staged/choice/test_choose.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.staged.choice.problem import Model, Problem, ReleasedLaw, factor
from dpreg.staged.choice.search import search

__all__ = ["stability"]

_SEED: Final = 16
_DRAWS: Final = 200
_WORK: Final = 2e6
"""With many columns, fewer draws: about this over the squared number of columns."""


def stability(law: ReleasedLaw, problem: Problem, model: Model) -> NDArray[np.float64]:
    """Return, (q,), the share of redraws in whose best model each unit is.

    Parameters
    ----------
    law : ReleasedLaw
    problem : Problem
        Made of that law.
    model : set of units
        The chosen one: searches start from it and from nothing.

    Notes
    -----
    Matrix-Laplace noise is drawn as a normal vector times the root of a chi2_{2 nu} / (2 nu), the
    law that its prices are made of.
    """
    generator = np.random.default_rng(_SEED)
    size = len(law.g)
    draws = int(min(_DRAWS, max(20, _WORK / max(len(problem.gram), 1) ** 2)))
    scale = np.sqrt(np.maximum(np.diag(law.covariance), np.finfo(float).tiny))
    lower = scale[:, None] * factor(law.covariance / np.outer(scale, scale))
    noise = generator.standard_normal((draws, size)) @ lower.T
    if law.degrees is not None:
        mixing = generator.chisquare(2 * law.degrees, draws) / (2 * law.degrees)
        noise *= np.sqrt(mixing)[:, None]
    counts = np.zeros(problem.size)
    empty: Model = frozenset()
    for row in noise:
        found = search(problem, problem.respond(law.g + row), starts=(model, empty))
        counts[list(found)] += 1
    return np.asarray(counts / draws)
