"""What a plan of a family supposes, checked: public facts and guesses, for one call's looks.

Tested in `tests/planning/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.families.family import Family
from dpreg.families.model import FAMILIES, Asked, Model
from dpreg.families.plan import FamilyPlan, plan_family
from dpreg.families.predict import Supposed
from dpreg.formula.design import Design
from dpreg.planning.arguments import check_asked, rows_of_table, sized
from dpreg.planning.sizes import column_variance
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, positive
from dpreg.schema import Schema

__all__ = ["GLMCall"]

_SPREAD: Final = {"binomial": 1.0}
"""The predictor's usual standard deviation, by family; .5 for counts."""


@dataclass(frozen=True, slots=True)
class GLMCall:
    """The checked arguments of a plan of a family.

    Attributes
    ----------
    formula, name : str
        As the caller wrote the formula, and the family's name.
    schema : Schema
        With the response declared.
    model : Model
    design : Design
    family : Family
    supposed : Supposed
    delta : Fraction
    noise : str or None
    protection : Protection
    n : int
        2 where it is to be found.
    eps : Fraction
        1 where it is to be found.
    """

    formula: str
    name: str
    schema: Schema
    model: Model
    design: Design
    family: Family
    supposed: Supposed
    delta: Fraction
    noise: str | None
    protection: Protection
    n: int
    eps: Fraction

    @classmethod
    def of(cls, call: Mapping[str, Any], what: str = "plan_glm") -> GLMCall:
        """Check every argument; errors say which to change, and how."""
        n, eps, family = call["n"], call["eps"], call["family"]
        check_asked(n, eps)
        known = ("family", "response_cap", "offset", "exposure", "trials")
        asked = Asked.of({name: call.get(name) for name in known})
        schema, model = asked.model(call["formula"], Schema.from_any(call["schema"]))
        keep = call.get("keep", ("Intercept",))
        design = model.design(schema, keep)
        model.check(design, (), family, call=what)
        made, spread = FAMILIES[family](design), call["spread"]
        found = cls(
            formula=call["formula"],
            name=family,
            schema=schema,
            model=model,
            design=design,
            family=made,
            supposed=Supposed(
                covariance=_covariance(design, call["sd"] or {}),
                mean=0.0 if call["mean"] is None else _mean(call["mean"], made),
                spread=sized(_SPREAD.get(family, 0.5) if spread is None else spread, "spread"),
                dispersion=sized(call["scatter"], "scatter"),
            ),
            delta=exact(call["delta"], "delta"),
            noise=choice(call["noise"], "noise", ("gaussian", "matrix-laplace", None)),
            protection=Protection(
                choice(call["neighbors"], "neighbors", NEIGHBORS),
                count(call["contributions"], "contributions"),
                None,
            ),
            n=2 if n is None else rows_of_table(n),
            eps=Fraction(1) if eps is None else positive(eps, "eps"),
        )
        if found.noise == "gaussian" and not found.delta:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients."""
        return tuple(column.name for column in self.design.columns)

    @property
    def widths(self) -> Floats:
        """Stored units over the user's, (p + 1,)."""
        return np.array([column.width for column in self.design.columns])

    @property
    def exclusive(self) -> tuple[tuple[int, ...], ...]:
        """The 0/1 columns of each factor that has several."""
        return _exclusive(self.design)

    def looks(self, later: Fraction = Fraction(0)) -> FamilyPlan:
        """Return the looks of the call; `later` as for `plan_family`."""
        return plan_family(
            len(self.names) - 1,
            Budget(self.eps, self.delta),
            self.protection,
            exclusive=self.exclusive,
            noise=self.noise,
            later=later,
        )


def _mean(mean: float, family: Family) -> float:
    value = sized(mean, "mean")
    if not value < family.cap:
        raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {shown(mean)}.")
    return value


def _exclusive(design: Design) -> tuple[tuple[int, ...], ...]:
    return tuple(t.columns for t in design.terms if t.exclusive and len(t.columns) > 1)


def _covariance(design: Design, sd: Mapping[str, float]) -> Floats:
    """Return the supposed covariance of the stored columns; levels of a factor exclude another."""
    place = {column.name: j for j, column in enumerate(design.columns) if j}
    unknown = [name for name in sd if name not in place]
    if unknown:
        listed = ", ".join(place)
        raise ArgumentError(f"sd names {', '.join(map(repr, unknown))}; the columns are {listed}.")
    known = {place[name]: sized(value, "sd") for name, value in sd.items()}
    size = len(design.columns) - 1
    found = np.diag([column_variance(design, j + 1, known) for j in range(size)])
    for group in _exclusive(design):
        for i in group:
            for j in group:
                if i != j and not {i, j} & set(known):
                    found[i - 1, j - 1] = -1 / (len(group) + 1) ** 2
    return found
