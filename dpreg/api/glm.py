"""`dp_glm`: private coefficients of a generalised linear model, with honest standard errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpreg.api.adaptive import every_row, family_results, read_before
from dpreg.api.coefficients import CallFacts, exclusive_groups, share_of_bounds
from dpreg.api.mistakes import check_known_rows, check_schema_names
from dpreg.api.recorded import recorded
from dpreg.api.signatures import Amount, SchemaLike, Table
from dpreg.errors import ArgumentError, DataError, DpregWarning
from dpreg.formula.bounds import (
    announce,
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import undeclared
from dpreg.looks.families import family_of
from dpreg.looks.loop import look
from dpreg.looks.model import Asked, Model
from dpreg.looks.need import too_few
from dpreg.looks.plan import MOST_PASSES, NOISES, plan_looks
from dpreg.looks.table import Table as LookTable
from dpreg.options import FamilyLike, unpacked
from dpreg.privacy.budget import Budget
from dpreg.request import Request, choice, text
from dpreg.results.glm import GLMResults
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_glm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMRequest(Request):
    """Everything that a caller of `dp_glm` chose, as exact values."""

    formula: str
    asked: Asked
    noise: str | None
    shares: Mapping[str, Any] | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> GLMRequest:
        """Check every argument; errors name the argument and say how to fix it."""
        request = cls(
            **cls.common(call),
            formula=text(call["formula"], "formula"),
            asked=Asked.of(call),
            noise=choice(call["noise"], "noise", (*NOISES, None)),
            shares=call["shares"],
        )
        if request.noise == "gaussian" and request.budget.delta == 0:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
        return request


@recorded
def dp_glm(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    family: FamilyLike = "binomial",
    schema: SchemaLike = None,
    offset: str | None = None,
    noise: str | None = None,
    neighbors: str = "replace-one",
    contributions: int | None = None,
    person: str | None = None,
    shares: Mapping[str, Amount] | None = None,
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> GLMResults:
    """Fit a logistic or a Poisson regression with differential privacy.

    A first look releases the moments of rows on the unit scale of their bounds; each later one
    score and information at the fit that the looks before gave, the last with the middle of the
    sandwich. There are three to five looks, each a pass over the rows.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language, with an intercept. For "binomial" the response is a column
        of 0 and 1, one declared as bool, one with two declared levels, of which the second counts
        as 1, or with trials a number of successes; for counts it is one with bounds from 0 up.
        A count above its upper bound is taken as that bound; tight bounds mean less noise.
    data : table
        The confidential rows, as for `dp_ols`; they are read several times. A row with a missing or
        undeclared value is left out.
    eps, delta : number or decimal string
        The most that the whole call may cost; decimals are taken exactly as typed.
    family : {"binomial", "poisson", "quasipoisson"} or object
        A name, or `dpreg.Binomial(trials=...)`, `dpreg.Poisson(exposure=..., response_cap=...)`,
        `dpreg.QuasiPoisson(...)`. "binomial" has the logit link, the others the log link. Standard
        errors of both count families allow for more or less spread than Poisson's; "quasipoisson"
        reports it as `scale`.
    schema : mapping, Schema or path, optional
        Bounds and levels of the raw columns; bounds of regressors that are left out are bought from
        a share of eps. A "binomial" response that is left out is read as a number between 0 and 1.
    offset : str, optional
        A column, or an expression that could be a term of the formula, which is added to the linear
        predictor with coefficient 1. Its bounds must be declared.
    noise : {"gaussian", "matrix-laplace"}, optional
        None takes Gaussian noise where delta is above 0, else noise of pure eps: matrix-Laplace on
        the information, an L2 K-norm on the score.
    neighbors : {"replace-one", "add-remove"}
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: all unless it is given.
    person : str, optional
        The column that says whose row it is. All rows of a person are summed before they are
        limited, so the claim holds for everybody, and errors are clustered by person. The number of
        rows is then private. Ids that are numbers are one person if they agree in 15 digits: put a
        letter before ids of more digits.
    shares : mapping, optional
        {"bounds": part of eps} where bounds are bought.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show a bar on stderr while rows are read; default where stderr is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    GLMResults
        Columns that the noise hides have a coefficient and no interval, and `marks` says so. Where
        the number of rows is public and too small, a warning says so: before the charge, if it is
        known without a pass.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read, except a DataError raised
        when the data source fails: what was charged then stays charged.

    Notes
    -----
    Intervals hold what maximum likelihood on the declared columns would give, right model or wrong,
    where persons are independent. Sensitivities: `dpreg.privacy.fit_sensitivity`. How looks
    compose: `dpreg.privacy.looks`.
    """
    request = GLMRequest.of(unpacked(locals()))
    showing(progress)
    reader = Reader(as_source(data), progress, Persons.of(request.protection, request.seed))
    declared = Schema.from_any(schema)
    check_schema_names(declared, reader.source)
    known, model = request.asked.model(request.formula, declared)
    unbounded = undeclared(model.formula, known, reader.source)
    build = partial(Model.design, model)
    trial = with_stand_ins(build, known, unbounded)
    model.check(trial, unbounded, request.asked.family)
    public = request.protection.n_is_public
    passes = check_table(reader, trial.types, unbounded, counted=public and bool(unbounded))
    reader.require(passes + MOST_PASSES)
    if once := read_before(reader, passes):
        raise DataError(f"data: {once}. Declare the bounds, or give a table that stays.")
    check_known_rows(reader, public, columns=len(trial.columns))
    share = share_of_bounds(request.shares, unbounded)
    account = request.account()
    bounds = open_bounds(account, unbounded, share)
    cost = Budget(request.budget.eps * (1 - share), request.budget.delta)
    columns, offsets = model.places(trial)
    planned = partial(
        plan_looks,
        len(columns),
        protection=request.protection,
        others=len(offsets) + (model.trials is not None),
        exclusive=exclusive_groups(trial, range(len(trial.columns))),
        noise=request.noise,
    )
    opened = planned(cost=cost).open(account)
    announce(bounds, stacklevel=3)
    counted = reader.source.rows is not None
    if public and counted:
        _warn(too_few(planned, cost, reader.rows))
    account.charge(budget, f"dp_glm: {formula}")
    if public and not counted:
        _warn(too_few(planned, cost, reader.rows))
    design = build(buy_bounds(reader, known, bounds))
    reader = every_row(reader, design, request.protection)
    seen = look(
        LookTable(reader, design, model.described(design), opened),
        family_of(request.asked.family, design.response.hi),
    )
    facts = CallFacts(
        formula=formula,
        fit="fixed",
        budget=request.budget,
        rows=reader.rows if public else None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, unbounded),
        account=account,
    )
    return family_results(model, design, seen, facts)


def _warn(few: str) -> None:
    if few:
        warnings.warn(f"{few} Intervals may be missing.", DpregWarning, stacklevel=4)
