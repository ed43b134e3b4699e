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
from dpreg.formula.design import Design
from dpreg.looks.families import Family, family_of
from dpreg.looks.model import Asked, Model
from dpreg.options import unpacked
from dpreg.planning.arguments import check_asked, rows_of_table, sized
from dpreg.planning.sizes import column_variance
from dpreg.privacy.budget import exact
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, positive
from dpreg.schema import Schema

__all__ = ["GLMCall", "Supposed"]

_SPREAD: Final = {"binomial": 1.0}
"""The predictor's usual standard deviation, by family; .5 for counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Supposed:
    """What is supposed of the rows.

    Attributes
    ----------
    mean : float
        Of the response; 0 where rows in like= say it.
    spread : float
        Standard deviation of the linear predictor, of which each column has an equal part.
    dispersion : float
    slopes : array or None
        Of the predictor on the stored columns, in the place of equal parts.
    """

    mean: float
    spread: float
    dispersion: float
    slopes: Floats | None = None


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
        call = unpacked(call)
        n, eps, family = call["n"], call["eps"], call["family"]
        check_asked(n, eps)
        known = ("family", "response_cap", "offset", "exposure", "trials")
        asked = Asked.of({name: call.get(name) for name in known})
        schema, model = asked.model(call["formula"], Schema.from_any(call["schema"]))
        keep = call.get("keep", ("Intercept",))
        design = model.design(schema, keep)
        model.check(design, (), family, call=what)
        made, spread = family_of(family, design.response.hi), call["spread"]
        _check_columns(design, call["sd"] or {})
        found = cls(
            formula=call["formula"],
            name=family,
            schema=schema,
            model=model,
            design=design,
            family=made,
            supposed=Supposed(
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


def _mean(mean: float, family: Family) -> float:
    value = sized(mean, "mean")
    if not value < family.cap:
        raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {shown(mean)}.")
    return value


def _exclusive(design: Design) -> tuple[tuple[int, ...], ...]:
    return tuple(t.columns for t in design.terms if t.exclusive and len(t.columns) > 1)


def _check_columns(design: Design, sd: Mapping[str, float]) -> None:
    """Refuse deviations of columns that are not there, or that no column can have."""
    place = {column.name: j for j, column in enumerate(design.columns) if j}
    unknown = [name for name in sd if name not in place]
    if unknown:
        listed = ", ".join(place)
        raise ArgumentError(f"sd names {', '.join(map(repr, unknown))}; the columns are {listed}.")
    known = {place[name]: sized(value, "sd") for name, value in sd.items()}
    for j in known:
        column_variance(design, j, known)
