"""Looks at the rows as an estimator of any family: when they pay, what they open, what they give.

Tested in `tests/api/test_adaptive.py`, `tests/api/test_adaptive_calls.py` and
`tests/api/test_glm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.api.context import (
    CallFacts,
    Context,
    every_row,
    exclusive_groups,
    read_before,
    released,
)
from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.design import Design
from dpreg.looks.described import Described, Weights
from dpreg.looks.families import Family, Linear, family_of
from dpreg.looks.law import Estimates, estimates
from dpreg.looks.locate import advance, explained
from dpreg.looks.loop import Seen
from dpreg.looks.model import Model
from dpreg.looks.plan import LookPlan, Opened, plan_looks, too_few
from dpreg.looks.table import Table
from dpreg.looks.tuning import TUNING
from dpreg.privacy.budget import Budget
from dpreg.results.glm import GLMResults
from dpreg.results.looks import ReleasedLook
from dpreg.results.regression import RegressionResults

__all__ = ["FamilyModel", "LinearModel", "Looks", "fitted", "formula_of", "written"]

_WIDE: Final = 400  # work: columns beyond which "auto" does not look to choose
_MARKED: Final = (
    "Marked columns: 'wide' where much of the interval is a guess at what the release does not "
    "show; no interval where the noise hides the column."
)


def formula_of(design: Design, columns: Sequence[int]) -> str:
    """Write the formula of a model; a factor's columns stand for the whole factor."""
    inside = [
        term.name
        for term in design.terms
        if 0 not in term.columns and not set(columns).isdisjoint(term.columns)
    ]
    constant = 0 in columns
    right = " + ".join(inside) or ("1" if constant else "0")
    return f"{design.response.name} ~ {right}{'' if constant or not inside else ' - 1'}"


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model: every stored column is looked at, but for the term of the weights."""

    weights: str | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """Terms of the design that have no coefficients."""
        return () if self.weights is None else (self.weights,)

    @property
    def others(self) -> int:
        """Stored columns beside those that have coefficients."""
        return len(self.known)

    def weighed(self, design: Design) -> tuple[int, ...]:
        """Return the stored column of the weights, if there are any."""
        return tuple(j for t in design.terms if t.name in self.known for j in t.columns)

    def columns(self, design: Design) -> tuple[int, ...]:
        """Return the stored columns that are looked at, the constant first."""
        weighed = self.weighed(design)
        return tuple(j for j in range(len(design.columns)) if j not in weighed)

    def described(self, design: Design) -> Described:
        """Return what of the stored columns is what."""
        weights = None
        for place in self.weighed(design):  # as parts of the cap
            column = design.columns[place]
            weights = Weights(place, (column.offset / column.hi, column.width / column.hi))
        columns = self.columns(design)[1:]
        levels = tuple(j for j in design.levels if j in columns)
        return Described(columns, levels=levels, weights=weights)

    def family(self, design: Design) -> Family:
        """Return the family."""
        return Linear()

    def to_user_units(self, design: Design, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return T and t: coefficients of stored columns become T b + t."""
        return design.to_user_units(columns)

    def formula(self, design: Design, columns: Sequence[int]) -> str:
        """Write the formula of a model."""
        return formula_of(design, columns)

    def unit(self, design: Design) -> float:
        """Return what a stored coefficient is multiplied by, beside the column's own width."""
        return design.response.width

    def told(self, design: Design, seen: Seen, found: Estimates, constant: bool) -> dict[str, Any]:
        """Return what a fit of this kind has of its own."""
        variance = found.residual_variance
        if self.weights is not None:  # sums of squares have weights that nobody released
            variance = math.nan
        share = explained(seen.releases[-1], seen.rows)
        if not constant:  # without a constant R-squared is about 0, not about the mean
            share = max(float(seen.box.cells[-1, -1]) / max(seen.rows, 1.0) - variance, 0.0)
        return {
            "error_variance": variance * design.response.width**2,
            "explained": share / (share + variance),
        }

    def results(self) -> type[RegressionResults]:
        """Return the class of results."""
        return RegressionResults


@dataclass(frozen=True, slots=True)
class FamilyModel:
    """A model of a family: offsets and trials are stored columns without coefficients."""

    model: Model
    name: str

    @property
    def known(self) -> tuple[str, ...]:
        """Terms of the design that have no coefficients."""
        return self.model.known

    @property
    def others(self) -> int:
        """Stored columns beside those that have coefficients."""
        return len(self.model.known)

    def columns(self, design: Design) -> tuple[int, ...]:
        """Return the stored columns that are looked at, the constant first."""
        return (0, *self.model.places(design)[0])

    def described(self, design: Design) -> Described:
        """Return what of the stored columns is what."""
        return self.model.described(design)

    def family(self, design: Design) -> Family:
        """Return the family."""
        return family_of(self.name, design.response.hi)

    def to_user_units(self, design: Design, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return T and t: coefficients of stored columns become T b + t."""
        return self.model.to_user_units(design, columns)

    def formula(self, design: Design, columns: Sequence[int]) -> str:
        """Write the formula of a model as a caller of `dp_glm` would, without the offset."""
        right = formula_of(design, columns).partition("~")[2]
        return f"{self.model.response} ~{right}"

    def unit(self, design: Design) -> float:
        """Return what a stored coefficient is multiplied by, beside the column's own width."""
        return 1.0

    def told(self, design: Design, seen: Seen, found: Estimates, constant: bool) -> dict[str, Any]:
        """Return what a fit of this kind has of its own."""
        model, offsets = self.model, self.model.places(design)[1]
        quasi = bool(getattr(seen.family, "quasi", False))
        dispersion = found.law.dispersion if found.law.shown else float("nan")
        return {
            "design_formula": model.formula,
            "endog_names": model.response,
            "error_variance": dispersion if quasi else 1.0,
            "explained": None,
            "family": seen.family.name,
            "link": seen.family.link,
            "offset": None if not offsets else design.columns[offsets[0]].name,
            "success": model.success,
            "trials": model.trials,
            "converged": found.found.step < TUNING.longest / 2,
        }

    def results(self) -> type[RegressionResults]:
        """Return the class of results."""
        return GLMResults

    @staticmethod
    def settled(seen: Seen) -> bool:
        """Whether the fit had settled at the last look."""
        _, moved = advance(seen.releases[-1], seen.family, seen.rows, first=False)
        return bool(moved.step * seen.releases[-1].point.dispersion < (TUNING.longest / 2) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Looks at the rows of a call.

    Attributes
    ----------
    context : Context
    model : LinearModel or FamilyModel
    cost : Budget
        Of all looks.
    noise : {"gaussian", "matrix-laplace"}, optional
    asked : bool
        Whether the caller named this method: what it cannot do is then refused, not a reason.
    chooses, later
        As for `plan_looks`.
    passes : int
        Made before the first look.
    """

    context: Context
    model: LinearModel | FamilyModel
    cost: Budget
    passes: int
    noise: str | None = None
    asked: bool = False
    chooses: bool = False
    later: Fraction = Fraction(0)

    def plan(self, cost: Budget | None = None) -> LookPlan:
        """Plan the looks, at another cost if one is given."""
        trial = self.context.trial
        return plan_looks(
            len(self.model.columns(trial)) - 1,
            cost or self.cost,
            self.context.request.protection,
            others=self.model.others,
            exclusive=exclusive_groups(trial, range(len(trial.columns))),
            noise=self.noise,
            chooses=self.chooses,
            later=self.later,
        )

    def refuses(self, rows: int | None) -> str:
        """Return why a single look does better here; empty if looks can be made.

        Parameters
        ----------
        rows : int or None
            How many there are, where that is public.
        """
        reader, plan = self.context.reader, self.plan()
        columns = plan.columns - 1
        once = read_before(reader, self.passes)
        if once and self.asked:
            raise DataError(
                f'method="adaptive": {once}. Declare the bounds, or give a table that stays.'
            )
        if not self.asked:
            if once:
                return once
            if reader.persons is None and not reader.rereadable:
                return "the rows can be read once, and may not be held for looks"
            if not columns:
                return "there are no columns to look at"
            if self.chooses and columns > _WIDE:
                return f"looks at {columns:,} columns would take minutes"
        short = "" if rows is None else self.too_few(rows)
        if short and self.asked:
            instead = "pcls" if self.chooses else "gram"
            raise ArgumentError(
                f'method="adaptive": {short} Use method="{instead}", or a larger eps.'
            )
        if not short:
            reader.require(self.passes + plan.most)
        return short

    def too_few(self, rows: int, has: str = "has") -> str:
        """Return why so many rows are too few, and which eps would do; empty if they do."""
        return too_few(self.plan, self.cost, rows, has)

    def table(self, design: Design, opened: Opened) -> Table:
        """Return the rows to look at, after the charge."""
        reader = every_row(self.context.reader, design, self.context.request.protection)
        return Table(reader, design, self.model.described(design), opened)


def written(seen: Seen) -> tuple[ReleasedLook, ...]:
    """Write the looks as results keep them."""
    size = len(seen.box.cells) - 2
    first = ReleasedLook(
        kind="box",
        mechanism=seen.plan.mechanism,
        share=seen.plan.box_share,
        limits=(),
        information=seen.box.cells,
        information_sd=float(np.max(seen.box.noise_sd)),
        score=np.zeros(0),
        score_sd=0.0,
        middle=np.zeros((0, 0)),
        middle_sd=0.0,
        trace=0.0,
        whitening=np.eye(size),
        offset=np.zeros(size),
        center=np.zeros(size + 1),
        weight=1.0,
    )
    later = (
        ReleasedLook(
            kind="locating" if one.together else "fitting",
            mechanism=seen.plan.mechanism,
            share=Fraction(one.share).limit_denominator(1000),
            limits=one.limits,
            information=one.information,
            information_sd=one.information_sd,
            score=one.score,
            score_sd=one.score_sd,
            middle=np.zeros((0, 0)) if one.middle is None else one.middle,
            middle_sd=one.middle_sd,
            trace=one.trace,
            whitening=one.point.whitening,
            offset=one.point.moved,
            center=one.point.shift,
            weight=one.point.weight,
        )
        for one in seen.releases
    )
    return (first, *later)


def _own(seen: Seen, facts: CallFacts) -> tuple[ReleasedLook, ...]:
    """Return a fit's own looks: after a choice those at the chosen columns, if there are any."""
    if facts.fit == "same":
        return ()
    return written(seen)[facts.fit == "fresh" :]


def fitted(
    model: LinearModel | FamilyModel,
    design: Design,
    columns: Sequence[int],
    seen: Seen,
    facts: CallFacts,
    *,
    places: Sequence[int] | None = None,
    among: Sequence[int] | None = None,
) -> Any:
    """Make the result of a model that was looked at.

    Parameters
    ----------
    model : LinearModel or FamilyModel
    design : Design
    columns : sequence of int
        The model's stored columns.
    seen : Seen
    facts : CallFacts
        After the rows were read.
    places : sequence of int, optional
        Where they stand among those that were looked at; None: all were.
    among : sequence of int, optional
        The places of a larger model, beside all of which they are wanted.
    """
    looked = model.columns(design)
    at = [looked.index(j) for j in columns] if places is None else list(places)
    names = [design.columns[j].name for j in columns]
    found = estimates(seen, at, names, model.to_user_units(design, columns), among=among)
    return released(
        model.results(),
        design,
        columns,
        replace(facts, whole=seen.plan.whole),
        **found.fields,
        **model.told(design, seen, found, 0 in columns),
        complete_rows=None if seen.plan.persons else seen.rows,
        error_df=None if facts.rows is None else max(seen.rows - len(columns), 1.0),
        method="adaptive",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        scaling="box",
        releases=_own(seen, facts),
        among=None if among is None else len(among) - (0 in among),
        notes=(*facts.notes, *([_MARKED] if found.marks and among is None else [])),
    )
