"""What plans of a family have in common: their fields, their page, and the search for n or eps.

Tested in `tests/planning/test_glm.py` and `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeVar

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.planning.solve import least, rounded_up
from dpreg.privacy.budget import decimal_string, exact
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report
from dpreg.results.summary import Printed, Summary
from dpreg.results.views import fixed

__all__ = ["PlanOfFamily", "solve"]

_MOST_ROWS: Final = 1e10
_MOST_EPS: Final = 1e5
_NEAR: Final = 1.005
_P = TypeVar("_P", bound="PlanOfFamily")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlanOfFamily(Printed):
    """What a call with a family would give; `dpreg.planning.GLMPlan` says what the fields are."""

    formula: str
    family: str
    n: int
    eps: Fraction
    delta: Fraction
    solved: str | None
    enough: bool
    mechanism: str
    names: tuple[str, ...]
    sampling: Floats
    privacy: Floats
    without_privacy: Floats
    notes: tuple[str, ...]

    @property
    def errors(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, and without privacy."""
        columns = {
            "std err": np.hypot(self.sampling, self.privacy),
            "sampling": self.sampling,
            "privacy": self.privacy,
            "without privacy": self.without_privacy,
        }
        return pd.DataFrame(columns, index=list(self.names))

    def _page(
        self, title: str, facts: Facts, *found: Block, after: tuple[Block, ...] = ()
    ) -> Summary:
        shown = self.errors.drop(columns="mark", errors="ignore")
        rows = tuple(
            (str(name), *(fixed(value) for value in values))
            for name, values in zip(self.names, shown.to_numpy(), strict=True)
        )
        heads: tuple[str, ...] = (
            "",
            "std err",
            "sampling\nerror",
            "privacy\nnoise",
            "without\nprivacy",
        )
        if "if skewed" in shown:
            heads = (*heads, "if\nskewed")
        notes = (Paragraph(f"[{i}]", note) for i, note in enumerate(self.notes, 1))
        blocks = (
            Paragraph("Formula", self.formula),
            facts,
            *found,
            Grid(heads, rows, "l" + "r" * (len(heads) - 1)),
            *notes,
            *after,
            Paragraph("Cost", "No data were used and nothing was spent."),
        )
        return Summary(Report(title, None, blocks))

    def _facts(self) -> dict[str, tuple[str, str]]:
        """Return the facts that each page shows, by name."""
        mark = {self.solved: " (found)"}
        facts = {
            "Rows n": f"{self.n:,}{mark.get('n', '')}",
            "eps": f"{decimal_string(self.eps)}{mark.get('eps', '')}",
            "Family": self.family,
            "Intervals": "expected" if self.enough else "none",
        }
        return {name: (name, value) for name, value in facts.items()}


def solve(
    predict: Callable[..., _P],
    given: Mapping[str, object],
    reached: Callable[[_P], bool],
    wanted: str,
) -> _P:
    """Return the plan as given, or at the least n or eps at which it is as wanted.

    Parameters
    ----------
    predict : callable
        Returns the plan at ``n=``, at ``eps=``, or as given.
    given : mapping
        The arguments `n` and `eps`; None for the one to be found.
    reached : callable
        Whether a plan is as wanted.
    wanted : str
        What an error says that no n or eps does.
    """
    if given["n"] is None:
        n = least(lambda n: reached(predict(n=round(n))), 64.0, _MOST_ROWS, "n", wanted, near=_NEAR)
        return replace(predict(n=math.ceil(n)), solved="n")
    if given["eps"] is None:
        eps = least(
            lambda eps: reached(predict(eps=_three(eps))),
            1e-3,
            _MOST_EPS,
            "eps",
            wanted,
            near=_NEAR,
        )
        return replace(predict(eps=_three(eps)), solved="eps")
    return predict()


def _three(eps: float) -> Fraction:
    """Return three digits of an eps, rounded up."""
    return exact(rounded_up(eps, 3), "eps")
