"""A generalised linear model's formula, its public response, and its released result.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.api.coefficients import CallFacts
from dpreg.errors import ArgumentError, FormulaError, SchemaError
from dpreg.families.estimate import estimate
from dpreg.families.family import Binomial, Family, Poisson
from dpreg.families.looks import FamilyLooked
from dpreg.families.plan import FamilyPlan
from dpreg.formula.check import shown
from dpreg.formula.design import Design, build_design
from dpreg.formula.terms import read_terms
from dpreg.privacy.budget import Budget
from dpreg.results.glm import GLMResults
from dpreg.results.looks import Look
from dpreg.schema import Boolean, Categorical, Numeric, Schema

__all__ = ["FAMILIES", "Model", "few_rows", "glm_results", "read_model", "response_bounds"]

FAMILIES: Final[Mapping[str, Callable[[Design], Family]]] = {
    "binomial": lambda design: Binomial(),
    "poisson": lambda design: Poisson(design.response.hi),
    "quasipoisson": lambda design: Poisson(design.response.hi, quasi=True),
}
"""What makes a family from a design's public response."""

_LARGEST_EPS: Final = 1e6
"""Beyond this the eps that few rows need is only told roughly."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as it is read: public facts.

    Attributes
    ----------
    formula : str
        Of the design: the offset is one of its terms, and the response a number.
    response : str
        As the caller wrote it.
    offset : str or None
        The offset's term.
    success : str or None
        Which of two declared levels counts as 1.
    """

    formula: str
    response: str
    offset: str | None
    success: str | None = None

    def design(self, schema: Schema) -> Design:
        """Build the design under a schema."""
        return build_design(self.formula, schema)

    def places(self, design: Design) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the stored columns that have coefficients, and those of the offset."""
        offsets = tuple(
            j for term in design.terms if term.name == self.offset for j in term.columns
        )
        columns = range(1, len(design.columns))
        return tuple(j for j in columns if j not in offsets), offsets

    def check(self, design: Design, unbounded: Sequence[str], family: str) -> None:
        """Refuse what a model of this family cannot be, from public facts."""
        if not design.has_intercept:
            raise FormulaError("dp_glm needs an intercept: leave out what removes it.")
        columns, offsets = self.places(design)
        if not columns:
            raise FormulaError(
                "dp_glm needs a column beside the intercept; dp_mean gives the mean of a response."
            )
        if self.offset is not None:
            if len(offsets) != 1:
                raise ArgumentError(
                    f"offset: {shown(self.offset)} must be one column of numbers that is not a "
                    "term of the formula."
                )
            name = design.columns[offsets[0]].name
            if any(column in name for column in unbounded):
                raise SchemaError(f"declare the bounds of the columns in the offset {shown(name)}.")
        low, high = design.response.lo, design.response.hi
        if family != "binomial":
            if low < 0:
                raise SchemaError(
                    f"response {shown(self.response)} must be a count: declare bounds from 0 up."
                )
        elif (low, high) != (0.0, 1.0):
            raise SchemaError(
                f"response {shown(self.response)} must lie between 0 and 1: declare it as (0, 1), "
                'as bool, or with two levels, as in {"levels": ["no", "yes"]}.'
            )


def read_model(formula: str, offset: str | None, exposure: str | None) -> Model:
    """Read a formula, with its offset as one more term."""
    parsed = read_terms(formula)
    if offset is None and exposure is None:
        return Model(formula, parsed.response, None)
    wanted = f"np.log({exposure})" if exposure is not None else str(offset)
    what = "exposure" if exposure is not None else "offset"
    with_offset = read_terms(f"{formula} + {wanted}")
    added = [term for term in with_offset.terms if term not in parsed.terms]
    if len(added) != 1 or len(added[0]) != 1 or with_offset.response != parsed.response:
        raise ArgumentError(
            f"{what} must be one column or expression that is not a term of the formula, such as "
            f'"x"; got {wanted!r}.'
        )
    return Model(f"{formula} + {wanted}", parsed.response, added[0][0])


def response_bounds(
    model: Model, schema: Schema, family: str, cap: Fraction | None
) -> tuple[Schema, Model]:
    """Settle the public bounds of the response, and write one of two levels as a number.

    Returns
    -------
    schema : Schema
        With the response declared, where it is a plain column.
    model : Model
        Its formula has a number as response.
    """
    name = model.response
    declared = schema.get(name)
    if cap is not None and (declared is not None or not name.isidentifier()):
        raise ArgumentError(
            "response_cap is for a response that the schema leaves out: here the schema's bounds "
            "say how large it may be."
        )
    if not name.isidentifier():
        return schema, model
    if declared is None:
        if family != "binomial" and cap is None:
            raise ArgumentError(
                f"the schema leaves out the response {shown(name)}: declare its bounds, or give "
                "response_cap, the largest count that matters, from public knowledge."
            )
        return Schema({**schema, name: Numeric(0.0, 1.0 if cap is None else float(cap))}), model
    if family != "binomial" and not isinstance(declared, Numeric):
        raise SchemaError(f"response {shown(name)} must be a count: declare it by its bounds.")
    right = model.formula.partition("~")[2]
    if isinstance(declared, Boolean):
        return schema, replace(model, formula=f"I(1 * {name}) ~{right}")
    if isinstance(declared, Categorical):
        if len(declared.levels) != 2:
            raise SchemaError(
                f"response {shown(name)} has {len(declared.levels)} declared levels; a "
                '"binomial" response has two.'
            )
        level = declared.levels[1]
        number = f"I(1 * ({name} == {level!r})) ~{right}"
        return schema, replace(model, formula=number, success=str(level))
    return schema, model


def few_rows(planned: Callable[..., FamilyPlan], cost: Budget, rows: int) -> str | None:
    """Say, from public numbers, that so many rows are too few for intervals; None where not.

    Parameters
    ----------
    planned : callable
        Makes the plan of looks that may have a `cost`.
    cost : Budget
    rows : int
    """
    needed = planned(cost=cost).rows_needed
    if rows >= needed:
        return None
    eps, times = float(cost.eps), needed / max(rows, 1)
    for _ in range(6):  # the need falls about like 1/eps: a few steps meet it
        eps *= times
        if eps > _LARGEST_EPS:
            break
        times = planned(cost=Budget(Fraction(eps), cost.delta)).rows_needed / max(rows, 1)
    return (
        f"{rows:,} rows are too few for intervals at this budget: about {needed:,.0f} would do, or "
        f"an eps of about {eps:.2g}. The call gives coefficients alone."
    )


def glm_results(model: Model, design: Design, seen: FamilyLooked, facts: CallFacts) -> GLMResults:
    """Make the result of what the looks released, in the user's units."""
    columns, offsets = model.places(design)
    chosen = (0, *columns)
    found = estimate(seen, [design.columns[j].name for j in chosen])
    widths = np.array([design.columns[j].width for j in chosen])
    to_user = np.diag(1 / widths)
    to_user[0, 1:] = [-design.columns[j].offset / design.columns[j].width for j in columns]
    params = to_user @ found.params
    params[0] -= sum(design.columns[j].offset for j in offsets)
    sampling = to_user @ found.sampling @ to_user.T
    privacy = to_user @ found.privacy @ to_user.T
    family = seen.fit.family
    names = tuple(design.columns[j].name for j in chosen)
    return GLMResults(
        formula=facts.formula,
        design_formula=model.formula,
        schema=design.schema.to_dict(),
        endog_names=model.response,
        exog_names=names,
        coefficients=params,
        covariance=sampling + privacy,
        privacy_covariance=privacy,
        se_sampling=np.sqrt(np.maximum(np.diag(sampling), 0.0)),
        se_privacy=np.sqrt(np.maximum(np.diag(privacy), 0.0)),
        residual_variance=found.dispersion,
        r_squared=None,
        nobs=facts.rows,
        complete_rows=found.count,
        residual_df=None if facts.rows is None else max(found.count - len(chosen), 1.0),
        method="staged",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        scaling="box",
        fit=facts.fit,
        eps=facts.budget.eps,
        delta=facts.budget.delta,
        clip=design.clip,
        center=design.center,
        bounds=facts.bounds,
        passes=facts.passes,
        claim=facts.claim,
        column_widths=widths,
        looks=_written(seen),
        weak={names[place]: "hidden direction" for place in found.weak},
        notes=(*facts.notes, *found.notes),
        family=family.name,
        link=family.link,
        converged=found.converged,
        offset=None if not offsets else design.columns[offsets[0]].name,
        success=model.success,
    )


def _written(seen: FamilyLooked) -> tuple[Look, ...]:
    """Write the looks as results keep them."""
    size = len(seen.box) - 2
    first = Look(
        mechanism=seen.plan.mechanism,
        share=seen.first_share,
        radius=None,
        width=1.0,
        opened=False,
        weight=1.0,
        cells=seen.box,
        noise_sd=seen.box_sd,
        whitening=np.eye(size),
        offset=np.zeros(size),
        center=np.zeros(size + 1),
    )
    return (
        first,
        *(
            Look(
                mechanism=seen.plan.mechanism,
                share=look.share,
                radius=float(np.sqrt(look.location.information)),
                width=look.location.score,
                opened=False,
                weight=min(max(float(look.cells[0, 0]) / look.fit.rows, 0.0), 3.0),
                cells=look.cells,
                noise_sd=look.noise_sd,
                whitening=look.location.whitening,
                offset=look.location.offset,
                center=look.location.shift,
            )
            for look in seen.looks
        ),
    )
