"""The whole choice: search, guard, stability, and coefficients that know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.selection.space import Space
from dpreg.staged.choice.coefficients import fit_model
from dpreg.staged.choice.conditional import condition
from dpreg.staged.choice.guard import Verdict, guard_margin, judge
from dpreg.staged.choice.problem import Problem, ReleasedLaw, build_problem, resolved
from dpreg.staged.choice.stability import stability
from dpreg.staged.choice.truncated import Truncated

__all__ = ["Choice", "choose", "conditional_laws"]


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a released law says about which terms matter; no privacy is spent on it.

    Attributes
    ----------
    model : tuple of str
        The best subset's terms, in the order of the space.
    reported : tuple of str
        Those of them that no other model could stand for.
    alternatives : mapping of a term to tuples of terms
        For every other term of the model, what might come in for it, the nearest first.
    criterion : float
        Deviance plus prices of the model.
    certified : bool
        Whether it is proved that no model is better; else it is the best found.
    stability : mapping of a term to float
        How often a term would be chosen again if the released estimate were the truth.
    resolved : int
        Directions of the released moments that stand clear of the noise.
    directions : int
        All directions, the intercept's included.
    notes : tuple of str
    """

    model: tuple[str, ...]
    reported: tuple[str, ...]
    alternatives: Mapping[str, tuple[tuple[str, ...], ...]]
    criterion: float
    certified: bool
    stability: Mapping[str, float]
    resolved: int
    directions: int
    notes: tuple[str, ...]


def choose(
    law: ReleasedLaw,
    space: Space,
    *,
    false_inclusions: float = 0.1,
    nodes: int | None = None,
    again: bool = True,
) -> tuple[Choice, Problem, Verdict]:
    """Choose terms from a released law.

    Parameters
    ----------
    law : ReleasedLaw
    space : Space
        Its columns are the law's: 0 is the intercept.
    false_inclusions : float
        alpha, in (0, q): about as many useless terms are reported on average, at most.
    nodes : int, optional
        The most nodes of a proof; see `near_best`.
    again : bool
        Whether to compute `stability`.

    Returns
    -------
    choice : Choice
    problem : Problem
    verdict : Verdict
        What `conditional_laws` needs beside the law.

    Raises
    ------
    ArgumentError
        `false_inclusions` is not positive.
    """
    if not 0 < false_inclusions < np.inf:
        raise ArgumentError(f"false_inclusions must be positive; got {false_inclusions!r}.")
    problem = build_problem(law, space, false_inclusions)
    verdict = judge(problem, guard_margin(false_inclusions), nodes=nodes)
    shares = stability(law, problem, verdict.model) if again else np.zeros(0)
    seen = resolved(law)
    names = space.units
    choice = Choice(
        model=tuple(names[u] for u in sorted(verdict.model)),
        reported=tuple(names[u] for u in sorted(verdict.reported)),
        alternatives=MappingProxyType(
            {
                names[a.unit]: tuple(tuple(names[u] for u in sorted(m)) for m in a.instead)
                for a in verdict.alternatives
            }
        ),
        criterion=verdict.criterion,
        certified=verdict.certified,
        stability=MappingProxyType(dict(zip(names, map(float, shares), strict=False))),
        resolved=seen,
        directions=len(law.eigenvalues),
        notes=_notes(problem, verdict, seen, len(law.eigenvalues)),
    )
    return choice, problem, verdict


def conditional_laws(
    law: ReleasedLaw,
    problem: Problem,
    verdict: Verdict,
    false_inclusions: float = 0.1,
    *,
    units: tuple[Floats, Floats] | None = None,
) -> tuple[Truncated, ...]:
    """Return the law of each coefficient of the chosen model, given that it was chosen.

    Parameters
    ----------
    law, problem, verdict
        As `choose` took and returned them.
    false_inclusions : float
        The same as there.
    units : (c, c) and (c,) arrays, optional
        T and t: coefficients are wanted as T beta + t. None: in box units.
    """
    plain = fit_model(law, problem, verdict.model)
    if units is not None:
        plain = plain.mapped(*units)
    return tuple(condition(problem, verdict, plain, guard_margin(false_inclusions)))


def _notes(problem: Problem, verdict: Verdict, seen: int, directions: int) -> tuple[str, ...]:
    notes = []
    if not verdict.certified:
        notes.append("The model is the best one found; that no other is better was not proved.")
    hidden = f"The noise hides {directions - seen} of {directions} directions of the columns: "
    if problem.silent:
        notes.append(hidden + "no term is reported. It takes more rows, or a larger eps.")
    elif seen < directions:
        notes.append(
            hidden + "terms along them may be missing, and false_inclusions is not promised."
        )
    return tuple(notes)
