"""A model as a caller describes it and looks read it: formula, family, offset, public response.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import Boolean, Categorical, Numeric
from dpreg.errors import ArgumentError, FormulaError, SchemaError, quotable, shown
from dpreg.formula.design import Design, build_design
from dpreg.formula.terms import read_terms
from dpreg.looks.families import FAMILIES, Family, Linear, family_of
from dpreg.looks.law import Estimates
from dpreg.looks.locate import advance, explained
from dpreg.looks.loop import Seen
from dpreg.looks.records import Described, Told
from dpreg.looks.tuning import TUNING
from dpreg.request import SelectionRequest, choice, positive, text
from dpreg.schema import Schema

_LARGEST_CAP: Final = 2.0**100
"""Of counts: beyond it, and below its inverse, their squares would leave float64."""
_FARTHEST: Final = 100.0  # work: calls beyond it are refused
"""That an offset may reach beyond the limits of predictors, where the mean stays the same."""
_MOST_TRIALS: Final = 10_000  # precision
"""Numbers of trials are exact up to some hundred times this."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of a call that only a family has.

    Attributes
    ----------
    family : str
    offset, exposure : str or None
    response_cap : Fraction or None
    trials : str or None
    """

    family: str
    offset: str | None
    exposure: str | None
    response_cap: Fraction | None
    trials: str | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> Asked:
        """Check these arguments; an error names the argument and says how to put it right."""
        cap = call["response_cap"]
        asked = cls(
            str(choice(call["family"], "family", FAMILIES)),
            None if call["offset"] is None else text(call["offset"], "offset"),
            None if call["exposure"] is None else text(call["exposure"], "exposure"),
            None if cap is None else positive(cap, "response_cap"),
            None if call["trials"] is None else text(call["trials"], "trials"),
        )
        if asked.offset is not None and asked.exposure is not None:
            raise ArgumentError(
                "give offset or exposure, not both: exposure x is offset np.log(x)."
            )
        return asked

    def model(self, formula: str, schema: Schema) -> tuple[Schema, FamilyModel]:
        """Read a formula, and settle the public bounds of its response."""
        read = read_model(formula, self)
        return response_bounds(read, schema, self)


def family_asked(request: SelectionRequest, call: Mapping[str, Any]) -> Asked | None:
    """Return what a selection asks of a family, or None for a linear model.

    Raises
    ------
    ArgumentError
        For arguments that make no sense with a family, or only with one.
    """
    if call["family"] is None:
        if call["offset"] is not None:
            raise ArgumentError(
                'offset needs family=, such as family="poisson": a linear model has none.'
            )
        return None
    asked = Asked.of(call)
    if request.method in ("pcls", "pcpl"):
        raise ArgumentError(
            f'method="{request.method}" is for linear models: with family= leave method out, or '
            'use method="adaptive".'
        )
    if request.papers:
        raise ArgumentError(
            f"{', '.join(request.papers)}: a family is chosen for by looks, which have no such "
            "argument. Leave it out."
        )
    if request.fit == "share":
        raise ArgumentError(
            'fit="share" belongs to linear models: with family= use fit="fresh", "same" or None.'
        )
    if request.clip != 1 or not request.center:
        raise ArgumentError(
            "clip and center belong to linear models: with family= bounds or response_cap say how "
            "large a response may be."
        )
    if "Intercept" not in request.keep:
        raise ArgumentError('with family= the intercept is in every model: keep "Intercept".')
    return asked


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A linear model.

    Attributes
    ----------
    known : tuple of str
        Terms of the design that have no coefficients: that of its weights, if it has any.
    """

    known: tuple[str, ...] = ()
    alone: ClassVar[bool] = False

    def described(self, design: Design) -> Described:
        """Return what of the stored columns is what."""
        weights = None
        for place in (j for t in design.terms if t.name in self.known for j in t.columns):
            column = design.columns[place]  # as parts of the cap
            weights = Told(place, (column.offset / column.hi, column.width / column.hi))
        columns = looked_at(self, design)[1:]
        levels = tuple(j for j in columns if design.columns[j].levels)
        return Described(columns, levels=levels, weights=weights)

    def family(self, design: Design) -> Family:
        """Return the family."""
        return Linear()

    def to_user_units(self, design: Design, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return T and t: coefficients of stored columns become T b + t."""
        return design.to_user_units(columns)

    def response_of(self, design: Design) -> tuple[str, float]:
        """Return the response as a caller writes it, and its own units per stored unit."""
        return design.response.name, design.response.width

    def told(self, design: Design, seen: Seen, found: Estimates, constant: bool) -> dict[str, Any]:
        """Return what a fit of this kind has of its own."""
        variance = found.residual_variance
        if self.known:  # sums of squares have weights that nobody released
            variance = math.nan
        share = explained(seen.releases[-1], seen.rows)
        if not constant:  # without a constant R-squared is about 0, not about the mean
            share = max(float(seen.box.cells[-1, -1]) / max(seen.rows, 1.0) - variance, 0.0)
        return {
            "error_variance": variance * design.response.width**2,
            "explained": share / (share + variance),
        }


@dataclass(frozen=True, slots=True)
class FamilyModel:
    """A model of a family: offset and trials are stored columns without coefficients.

    Attributes
    ----------
    name : str
        Of the family.
    formula : str
        Of the design: offset and trials are among its terms, and the response is a number.
    response : str
        As the caller wrote it.
    offset, trials : str or None
        Their terms.
    success : str or None
        Which of two declared levels counts as 1.
    """

    name: str
    formula: str
    response: str
    offset: str | None = None
    trials: str | None = None
    success: str | None = None
    alone: ClassVar[bool] = True

    @property
    def known(self) -> tuple[str, ...]:
        """Terms of the design that have no coefficients."""
        return tuple(name for name in (self.offset, self.trials) if name is not None)

    def design(self, schema: Schema, keep: Sequence[str] = ("Intercept",)) -> Design:
        """Build the design under a schema."""
        return build_design(self.formula, schema, keep=keep)

    def of_term(self, name: str | None, design: Design) -> tuple[int, ...]:
        """Return the stored columns of a term; none where there is no such term."""
        return next((term.columns for term in design.terms if term.name == name), ())

    def family(self, design: Design) -> Family:
        """Return the family."""
        return family_of(self.name, design.response.hi)

    def response_of(self, design: Design) -> tuple[str, float]:
        """Return the response as a caller writes it; predictors have no unit."""
        return self.response, 1.0

    def told(self, design: Design, seen: Seen, found: Estimates, constant: bool) -> dict[str, Any]:
        """Return what a fit of this kind has of its own."""
        offsets = self.of_term(self.offset, design)
        quasi = bool(getattr(seen.family, "quasi", False))
        dispersion = found.law.dispersion if found.law.release.shown else float("nan")
        return {
            "design_formula": self.formula,
            "endog_names": self.response,
            "error_variance": dispersion if quasi else 1.0,
            "family": seen.family.name,
            "link": seen.family.link,
            "offset": None if not offsets else design.columns[offsets[0]].name,
            "success": self.success,
            "trials": self.trials,
            "converged": found.found.step < TUNING.longest / 2,
        }

    @staticmethod
    def settled(seen: Seen) -> bool:
        """Whether the fit had settled at the last look."""
        _, length = advance(seen.releases[-1], seen.family, seen.rows, first=False)
        return length < TUNING.longest / 2

    def to_user_units(self, design: Design, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Return T and t: coefficients of stored columns, the intercept first, become T b + t."""
        widths = np.array([design.columns[j].width for j in columns])
        transform = np.diag(1 / widths)
        transform[0, 1:] = [
            -design.columns[j].offset / design.columns[j].width for j in columns[1:]
        ]
        shift = np.zeros(len(columns))
        shift[0] = -sum(design.columns[j].offset for j in self.of_term(self.offset, design))
        return transform, shift

    def described(self, design: Design) -> Described:
        """Return what of the stored columns is what."""
        columns, offsets = looked_at(self, design)[1:], self.of_term(self.offset, design)
        return Described(
            columns,
            offsets,
            tuple(design.columns[j].width for j in offsets),
            (design.response.offset, design.response.width),
            self.trials_of(design),
            tuple(j for j in columns if design.columns[j].levels),
        )

    def trials_of(self, design: Design) -> Told | None:
        """Return where the number of a row's trials stands."""
        if not (at := self.of_term(self.trials, design)):
            return None
        column = design.columns[at[0]]
        scale = (column.offset, column.width)
        return Told(at[0], scale, math.floor(column.hi), whole=True)

    def check(self, design: Design, unbounded: Sequence[str], call: str = "dp_glm") -> None:
        """Refuse what a model of this family cannot be, from public facts."""
        if not design.has_intercept:
            raise FormulaError(
                f"{call} needs an intercept for a family: looks centre the columns, and it takes "
                "that up. Leave out what removes it."
            )
        if len(looked_at(self, design)) == 1:
            raise FormulaError(
                f"{call} needs a column beside the intercept; dp_mean gives the mean of a response."
            )
        for what, name in (("offset", self.offset), ("trials", self.trials)):
            if name is not None:
                self._check_known(what, name, design, unbounded)
        self._check_response(design)
        if self.offset is not None:
            self._check_reach(self.offset, design)

    def _check_response(self, design: Design) -> None:
        """Refuse a response that the family has not."""
        low, high = design.response.lo, design.response.hi
        if self.trials is not None:
            self._check_trials(design)
            return
        if self.name != "binomial":
            if low < 0:
                raise SchemaError(
                    f"response {shown(self.response)} must be a count: declare bounds from 0 up."
                )
            if not 1 / _LARGEST_CAP <= high <= _LARGEST_CAP:
                raise SchemaError(
                    f"response {shown(self.response)} must be a count: its upper bound must lie "
                    "between 2**-100 and 2**100."
                )
        elif (low, high) != (0.0, 1.0):
            raise SchemaError(
                f"response {shown(self.response)} must lie between 0 and 1: declare it as (0, 1), "
                'as bool, or with two levels, as in {"levels": ["no", "yes"]}.'
            )

    def _check_reach(self, name: str, design: Design) -> None:
        """Refuse an offset that may lie where no predictor does: its noise would hide all else."""
        column = design.columns[self.of_term(name, design)[0]]
        low, high = self.family(design).limits
        if column.lo < low - _FARTHEST or column.hi > high + _FARTHEST:
            raise SchemaError(
                f"the offset {shown(name)} may lie between {column.lo:g} and {column.hi:g}, and a "
                f"predictor of this family lies between {low:.3g} and {high:.3g}: declare bounds "
                f"of its columns that keep it within {_FARTHEST:g} of that, from public knowledge."
            )

    def _check_trials(self, design: Design) -> None:
        """Refuse numbers of trials or of successes that there cannot be."""
        column = design.columns[self.of_term(self.trials, design)[0]]
        response = design.response
        if column.lo < 0 or not 1 <= column.hi <= _MOST_TRIALS:
            raise SchemaError(
                f"trials {shown(column.name)} must have bounds from 0 or 1 up to between 1 and "
                f"{_MOST_TRIALS:,}; they are {column.lo:g} and {column.hi:g}."
            )
        if response.lo != 0 or response.hi <= 0:
            raise SchemaError(
                f"response {shown(self.response)} must be a number of successes: declare bounds "
                "from 0 up."
            )

    def _check_known(self, what: str, name: str, design: Design, unbounded: Sequence[str]) -> None:
        """Refuse an offset or trials that are not one column with declared bounds."""
        single = len(self.of_term(name, design)) == 1
        if not single or isinstance(design.schema.get(name), Categorical):
            raise ArgumentError(
                f"{what}: {shown(name)} must be one column of numbers that is not a term of the "
                "formula."
            )
        if any(column in name for column in unbounded):
            raise SchemaError(f"declare the bounds of the columns in the {what} {shown(name)}.")


LookedModel: TypeAlias = LinearModel | FamilyModel
"""A model as looks read it."""


def columns_of(model: LookedModel, design: Design) -> tuple[int, ...]:
    """Return the stored columns that have coefficients."""
    return tuple(j for t in design.terms if t.name not in model.known for j in t.columns)


def looked_at(model: LookedModel, design: Design) -> tuple[int, ...]:
    """Return the stored columns that are looked at, the constant first."""
    return (0, *(j for j in columns_of(model, design) if j))


def read_model(formula: str, asked: Asked) -> FamilyModel:
    """Read a formula, with offset and trials as further terms."""
    exposure = None if asked.exposure is None else f"np.log({asked.exposure})"
    told = {"exposure": exposure, "offset": asked.offset, "trials": asked.trials}
    response, known = read_terms(formula).response, dict[str, str]()
    for what, term in told.items():
        if term is not None:
            formula, name = with_term(formula, term, what)
            known["offset" if what == "exposure" else what] = name
    return FamilyModel(asked.family, formula, response, **known)


def with_term(formula: str, wanted: str, what: str) -> tuple[str, str]:
    """Return the formula with one more term, and its name."""
    inner = wanted.removeprefix("np.log(")
    refused = ArgumentError(
        f"{what} must be one column or expression that is not a term of the formula, such as "
        f'"x"; got {shown(wanted if quotable(inner) else inner)}.'
    )
    if not quotable(inner):
        raise refused
    before, after = read_terms(formula), read_terms(f"{formula} + {wanted}")
    added = [term for term in after.terms if term not in before.terms]
    written = "".join(wanted.split())
    alone = [[name.replace(" ", "") for name in term] for term in added]
    if alone != [[written]] or after.response != before.response:
        raise refused
    return f"{formula} + {wanted}", added[0][0]


def response_bounds(model: FamilyModel, schema: Schema, asked: Asked) -> tuple[Schema, FamilyModel]:
    """Settle the public bounds of the response, and write one of two levels as a number.

    Returns
    -------
    schema : Schema
        With the response declared, where it is a plain column.
    model : FamilyModel
        Its formula has a number as response.
    """
    name, family, cap = model.response, asked.family, asked.response_cap
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
        largest = 1.0 if cap is None else float(cap)
        if asked.trials is not None:
            known = schema.get(asked.trials)
            if not isinstance(known, Numeric):
                raise SchemaError(
                    f"the schema leaves out the response {shown(name)}: declare its bounds, which "
                    f"those of the trials {shown(asked.trials)} do not tell."
                )
            largest = known.hi
        return Schema({**schema, name: Numeric(0.0, largest)}), model
    if asked.trials is not None:
        if not isinstance(declared, Numeric):
            raise SchemaError(
                f"response {shown(name)} must be a number of successes: declare it by its bounds."
            )
        return schema, model
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
