"""Looks at the rows as an estimator of any family: when they pay, what they open, what they give.

Tested in `tests/api/test_adaptive.py`, `tests/api/test_adaptive_calls.py` and
`tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np

from dpreg.api.context import Facts, Opened, Way, exclusive_groups, released
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.design import Design
from dpreg.grouped import Vectors
from dpreg.looks.law import estimates
from dpreg.looks.loop import Seen, look
from dpreg.looks.model import LookedModel, columns_of, looked_at
from dpreg.looks.plan import LookPlan, plan_looks, too_few
from dpreg.looks.rows import made_once
from dpreg.looks.table import Table
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.results.claim import ReleasedLook
from dpreg.results.glm import GLMResults
from dpreg.results.notes import worded
from dpreg.results.regression import RegressionResults
from dpreg.running import warn
from dpreg.sources import LocalSource
from dpreg.sources.reader import Reader

_WIDE: Final = 400  # work: columns beyond which "auto" does not look to choose
_LOOKED_AT = 100
"""Columns of a factor from which on one release, level by level, does better than looks, which
know nothing of levels: their noise grows with the columns, and so does their time, with the cube.
At 500,000 rows of 100 levels both are as good."""
_LOOKED_AT_PURELY = 40
"""The same at delta = 0, where looks have more noise."""


def formula_of(design: Design, columns: Sequence[int], response: str) -> str:
    """Write the formula of a model; a factor's columns stand for the whole factor."""
    inside = [
        term.name
        for term in design.terms
        if 0 not in term.columns and not set(columns).isdisjoint(term.columns)
    ]
    constant = 0 in columns
    right = " + ".join(inside) or ("1" if constant else "0")
    return f"{response} ~ {right}{'' if constant or not inside else ' - 1'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks(Way):
    """Looks at the rows of a call: a `dpreg.api.context.Way` that fits all columns.

    Attributes
    ----------
    model : LookedModel
    noise : {"gaussian", "matrix-laplace"}, optional
    asked : bool
        Whether the caller named this method: what it cannot do is then refused, not a reason.
    because : str
        Why the arguments alone mean another method under "auto"; empty if they do not.
    chooses, later
        As for `plan_looks`.
    """

    model: LookedModel
    noise: str | None = None
    asked: bool = False
    because: str = ""
    later: Fraction = Fraction(0)
    chooses: ClassVar[bool] = False

    def plan(self, cost: Budget | None = None) -> LookPlan:
        """Plan the looks, at another cost if one is given."""
        trial = self.context.trial
        return plan_looks(
            len(looked_at(self.model, trial)) - 1,
            cost or self.context.cost,
            self.context.request.protection,
            others=len(self.model.known),
            exclusive=exclusive_groups(trial, range(len(trial.columns))),
            noise=self.noise,
            chooses=self.chooses,
            later=self.later,
            holds=isinstance(self.context.reader.source, LocalSource),
        )

    def refuses(self, rows: int | None, has: str = "has") -> str:
        """Return why a single look does better here; empty if looks can be made.

        Parameters
        ----------
        rows : int or None
            How many there are, where that is public, or about how many.
        has : str
            How the table has them.
        """
        context, reader = self.context, self.context.reader
        auto, design = not (self.asked or self.model.alone), context.trial
        reason = self.because
        if auto and not reason:
            reason = unsuited(self.model, design, context.cost, chooses=self.chooses)
        if reason:
            return reason
        plan = self.plan()
        if reader.persons is not None and context.passes:
            # What was brought together for bounds are some rows of each person: looks bring all.
            reader.hold()
            if not reader.rereadable:
                reason = "the rows can be read once, and bounds have to be bought of them"
                if not auto:
                    head = "data" if self.model.alone else 'method="adaptive"'
                    mend = "Declare the bounds, or give a table that stays."
                    raise DataError(f"{head}: {reason}. {mend}")
        if auto and not reason and reader.persons is None and not reader.rereadable:
            reason = "the rows can be read once, and may not be held for looks"
        if not reason and rows is not None and not self.model.alone:
            reason = too_few(self.plan, context.cost, rows, has)
        if reason and self.asked:
            instead = "pcls" if self.chooses else "gram"
            raise ArgumentError(
                f'method="adaptive": {reason} Use method="{instead}", or a larger eps.'
            )
        if not reason:
            reader.require(context.passes + plan.most)
        nearer = not self.chooses and self.noise is None and design.has_intercept
        if reason and nearer and can_hold(reader) and reader.rereadable:
            reason += ' method="objective" gives nearer coefficients, without intervals'
        return reason

    def open(self, account: Account) -> Opened:
        """Open the lines of the bounds and of the looks."""
        return self.context.bounds(account), self.plan().open(account)

    def announce(self, rows: int | None) -> None:
        """Warn of too few rows where looks are the only way."""
        if rows is None or not self.model.alone:
            return
        if few := too_few(self.plan, self.context.cost, rows):
            warn(f"{few} {'Terms may be missed' if self.chooses else 'Intervals may be missing'}.")

    def table(self, opened: Opened) -> tuple[Design, Table]:
        """Return the design, its bounds bought, and the rows to look at, after the charge."""
        context = self.context
        public = context.request.protection.n_is_public
        if public and self.model.alone and context.reader.source.rows is None:
            self.announce(context.reader.rows)
        design = context.design(opened[0])
        reader = context.reader
        if reader.persons is not None and not context.request.protection.capped:
            reader = reader.every_row(design.types)  # sums over them are limited
        vectors: Vectors = design
        if reader.held is not None and reader.persons is None and not design.layout.groups:
            reader, vectors = made_once(reader, design)  # codes of levels are not written out
        return design, Table(reader, vectors, self.model.described(design), opened[1])

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> Any:
        """Look at the rows, and fit all columns."""
        design, table = self.table(opened)
        seen = look(table, self.model.family(design))
        facts = self.context.facts(table.reader, design, account, notes)
        return fitted(self.model, design, columns_of(self.model, design), seen, facts)


def unsuited(model: LookedModel, design: Design, cost: Budget, *, chooses: bool) -> str:
    """Return why "auto" does not look at these columns; empty if it does. Public."""
    columns = len(looked_at(model, design)) - 1
    if not columns:
        return "there are no columns to look at"
    if chooses:
        return f"looks at {columns:,} columns would take minutes" if columns > _WIDE else ""
    most = _LOOKED_AT if cost.delta else _LOOKED_AT_PURELY
    wide = max((t for t in design.terms if t.exclusive), key=lambda t: len(t.columns), default=None)
    if wide is None or len(wide.columns) < most:
        return ""
    return f"{wide.name} has so many levels that one look, level by level, has less noise"


def can_hold(reader: Reader) -> bool:
    """Return whether this process reads the table's rows itself, all of them."""
    return isinstance(reader.source, LocalSource) and reader.persons is None


def written(seen: Seen) -> tuple[ReleasedLook, ...]:
    """Write the looks as results keep them."""
    size = len(seen.box.cells) - 2
    first = ReleasedLook(
        kind="box",
        mechanism=seen.plan.mechanism,
        share=seen.plan.shares()[0],
        limits=(),
        information=seen.box.cells,
        information_sd=float(np.max(seen.box.noise_sd)),
        whitening=np.eye(size),
        offset=np.zeros(size),
        center=np.zeros(size + 1),
    )
    later = (
        ReleasedLook(
            kind="locating" if one.together else "minimum" if one.minimum else "fitting",
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


def fitted(
    model: LookedModel,
    design: Design,
    columns: Sequence[int],
    seen: Seen,
    facts: Facts,
    *,
    places: Sequence[int] | None = None,
    among: Sequence[int] | None = None,
) -> Any:
    """Make the result of a model that was looked at.

    Parameters
    ----------
    model : LookedModel
    design : Design
    columns : sequence of int
        The model's stored columns.
    seen : Seen
    facts : Facts
    places : sequence of int, optional
        Where they stand among those that were looked at; None: all were.
    among : sequence of int, optional
        The places of a larger model, beside all of which they are wanted.
    """
    looked = looked_at(model, design)
    at = [looked.index(j) for j in columns] if places is None else list(places)
    names = [design.columns[j].name for j in columns]
    found = estimates(seen, at, names, model.to_user_units(design, columns), among=among)
    privacy = found.covariance - found.sampling
    return released(
        GLMResults if model.alone else RegressionResults,
        design,
        columns,
        facts,
        coefficients=found.params,
        covariance=found.covariance,
        privacy_covariance=privacy,
        sampling_errors=np.sqrt(np.maximum(np.diag(found.sampling), 0.0)),
        privacy_errors=np.sqrt(np.maximum(np.diag(privacy), 0.0)),
        weak=dict(found.marks),
        **model.told(design, seen, found, 0 in columns),
        complete_rows=None if seen.plan.persons else seen.rows,
        error_df=None if facts["nobs"] is None else max(seen.rows - len(columns), 1.0),
        method="adaptive",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        # Its own looks: after a choice those at the chosen columns, if there are any.
        releases=() if facts["fit"] == "same" else written(seen)[facts["fit"] == "fresh" :],
        among=None if among is None else len(among) - (0 in among),
        notes=(*facts["notes"], *([worded("marked")] if found.marks and among is None else [])),
    )
