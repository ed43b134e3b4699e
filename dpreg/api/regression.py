"""`dp_ols`: private coefficients of a fixed linear model, with honest standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from dpreg.api.adaptive import every_row, linear_results, looks_or_reason
from dpreg.api.coefficients import (
    CallFacts,
    announce_wide_factors,
    perturbed_fit,
    share_of_bounds,
    unit_ball_rows,
)
from dpreg.api.few import check_few, objective_fit
from dpreg.api.joint import joint_fit, too_wide
from dpreg.api.mistakes import check_known_rows, check_schema_names
from dpreg.api.recorded import recorded
from dpreg.api.signatures import Amount, SchemaLike, Table
from dpreg.arguments import renamed_method
from dpreg.errors import ArgumentError
from dpreg.estimation.constants import MOST_CELLS, PERTURBED_NOISES, privacy_of_constants
from dpreg.estimation.few import open_few
from dpreg.estimation.gram import NOISES
from dpreg.estimation.held import can_hold
from dpreg.estimation.scaling import SCALINGS
from dpreg.formula.bounds import (
    announce,
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import Design, build_design, undeclared
from dpreg.looks.described import Described
from dpreg.looks.families import Linear
from dpreg.looks.loop import look
from dpreg.looks.plan import NOISES as LOOK_NOISES
from dpreg.looks.plan import LookPlan
from dpreg.looks.table import Table as LookTable
from dpreg.moments import read_moments
from dpreg.options import MethodLike, unpacked
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.request import Request, choice, positive, text, truth
from dpreg.results.regression import RegressionResults
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_ols"]

METHODS = ("auto", "adaptive", "gram", "objective", "ssp", "adassp")
_NOISES = {
    "auto": LOOK_NOISES,
    "adaptive": LOOK_NOISES,
    "gram": NOISES,
    "objective": (),
    "ssp": PERTURBED_NOISES,
    "adassp": PERTURBED_NOISES,
}

_GRAM_ALONE = frozenset(NOISES) - frozenset(LOOK_NOISES)
"""Noises that looks do not have: under "auto" they mean "gram"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OLSRequest(Request):
    """Everything that a caller of `dp_ols` chose, as exact values."""

    formula: str
    method: str
    noise: str | None
    scaling: str
    clip: Fraction
    center: bool
    shares: Mapping[str, Any] | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> OLSRequest:
        """Check every argument; errors name the argument and say how to fix it."""
        formula = text(call["formula"], "formula")
        center = truth(call["center"], "center")
        common = cls.common(call)
        method = choice(renamed_method(call["method"]), "method", METHODS)
        if method == "auto" and isinstance(call["noise"], str) and call["noise"] in _GRAM_ALONE:
            method = "gram"
        request = cls(
            **common,
            formula=formula,
            method=method,
            scaling=choice(call["scaling"], "scaling", SCALINGS),
            noise=_noise(call["noise"], method),
            clip=positive(call["clip"], "clip", Fraction(1)),
            center=center,
            shares=call["shares"],
        )
        _check_together(request)
        return request

    @property
    def perturbed(self) -> bool:
        """Whether the method is a published one that releases coefficients alone."""
        return self.method in ("ssp", "adassp")

    def spent(self, cost: Budget) -> Budget:
        """Return what of `cost` a release of the moments spends: a pure noise needs no delta."""
        return cost if self.perturbed or self.noise in (None, "gaussian") else Budget(cost.eps)

    @property
    def constants(self) -> str:
        """Whose noise constants "ssp" and "adassp" take."""
        return self.noise or "analytic"


def _noise(noise: object, method: str) -> str | None:
    if noise == "knorm" and _NOISES[method] is not PERTURBED_NOISES:
        raise ArgumentError('noise="knorm" is gone: use "matrix-laplace", or leave noise out.')
    return cast("str | None", choice(noise, "noise", (*_NOISES[method], None)))


def _check_together(request: OLSRequest) -> None:
    without = request.budget.delta == 0
    if not request.perturbed:
        if request.noise == "gaussian" and without:
            raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
    elif without:
        raise ArgumentError(f'method="{request.method}" needs delta above 0, such as delta=1e-6.')


@recorded
def dp_ols(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    schema: SchemaLike = None,
    method: MethodLike = "auto",
    neighbors: str = "replace-one",
    contributions: int | None = None,
    person: str | None = None,
    shares: Mapping[str, Amount] | None = None,
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> RegressionResults:
    """Fit a linear model with differential privacy.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language, as for `dp_select`.
    data : table
        The confidential rows: a pandas DataFrame or a mapping, the path or glob of Parquet or CSV
        files, anything that speaks Arrow, a function that returns chunks, a Dask or Spark
        DataFrame; see `dpreg.sources.as_source`. A row with a missing or undeclared value is left
        out.
    eps, delta : number or decimal string
        The most that the whole call may cost; decimals are taken exactly as typed.
    schema : mapping, Schema or path, optional
        Bounds and levels of the raw columns; bounds left out are bought from a share of eps.
    method : {"auto", "adaptive", "gram", "objective", "ssp", "adassp"} or object
        A name, or an object that has options as well: `dpreg.Auto`, `dpreg.Adaptive`, `dpreg.Gram`,
        `dpreg.Objective`, `dpreg.SSP`, `dpreg.AdaSSP`.
        "adaptive" looks at the rows three to five times, each time at the fit that the looks before
        gave, and releases score, information and the middle of the sandwich (`dpreg.looks`): robust
        errors, clustered where `person` is given, that include the noise. "gram" releases the
        moment matrix once; it reads the rows once and does better than looks where they are few.
        "auto" takes "adaptive" unless the rows are too few, or can be read once and may not be held
        (`dpreg.sources.as_source`); a note says why. A public number of rows that only a pass would
        tell (a function, a CSV file) is counted; where it is private, looks are taken.
        "objective" gives coefficients alone (`dpreg.estimation.few`), at pure eps: nearer where
        rows are few. It needs an intercept, no `person`, and rows that this process can read three
        times and hold (60 bytes a cell or so; at most 2**26 cells where their number is public).
        "ssp" and "adassp" are published ways to coefficients alone, and need delta.
    neighbors : {"replace-one", "add-remove"}
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: "adaptive" uses all unless it is given.
    person : str, optional
        The column that says whose row it is. "adaptive" sums all rows of a person before it limits
        them, so the claim holds for everybody, however many rows they own, and errors are
        clustered by person. Other methods use at most `contributions` rows of each person, drawn at
        random. The number of rows is then private under both relations. Ids that are numbers are
        one person if they agree in 15 digits: put a letter before ids of more digits. See
        `dpreg.sources.persons`.
    shares : mapping, optional
        {"bounds": part of eps} where bounds are bought.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show a bar on stderr while rows are read, for the curator's eyes only; default where stderr
        is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    RegressionResults

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read, except a DataError raised
        when the data source fails: what was charged then stays charged.

    Notes
    -----
    Intervals of "adaptive" hold what least squares on the declared columns would give, right model
    or wrong, where persons are independent. Those of "gram" hold where the model is right: linear,
    with one residual variance.
    Sensitivities and their proofs: `dpreg.privacy.gram_sensitivity`; the fit and its covariance:
    `dpreg.estimation.inference`.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> fit = dpreg.dp_ols("mdvis ~ disea + lpi", rand.data, eps=1, delta=1e-6, schema=rand.schema)
    >>> list(fit.params.index)
    ['Intercept', 'disea', 'lpi']
    """
    request = OLSRequest.of(unpacked(locals()))
    showing(progress)
    persons = Persons.of(request.protection, request.seed)
    reader = Reader(as_source(data), progress, persons)
    source = reader.source
    known = Schema.from_any(schema)
    check_schema_names(known, source)
    unbounded = undeclared(formula, known, source)
    build = partial(build_design, formula, clip=request.clip, center=request.center)
    trial = with_stand_ins(build, known, unbounded)
    public = request.protection.n_is_public
    passes = check_table(reader, trial.types, unbounded, counted=public and bool(unbounded))
    check_known_rows(reader, public, columns=len(trial.columns))
    share = share_of_bounds(request.shares, unbounded)
    account = request.account()
    bounds = open_bounds(account, unbounded, share)
    cost = Budget(request.budget.eps * (1 - share), request.budget.delta)
    counted = source.rows if public else None
    plan = _plan(request, trial, reader, cost, passes, counted)
    # A public number of rows that only a pass would tell is counted after the charge, and decides.
    uncounted = isinstance(plan, LookPlan) and request.method == "auto"
    uncounted = uncounted and public and counted is None
    if request.method == "objective":
        check_few(trial, reader, cost, request.protection, passes)
    if request.perturbed:
        _check_claim(request, cost)
        if (counted or 0) * len(trial.columns) > MOST_CELLS:
            raise ArgumentError(
                f'method="{request.method}" is proved for tables of up to 2**44 cells, and this '
                "one has more: leave method out."
            )
    looks = alone = account
    if uncounted:
        looks, alone = (Account(account.protection, cost, account.rng) for _ in range(2))
        account.either(looks, alone)
    opened = plan.open(looks) if isinstance(plan, LookPlan) else None
    few = open_few(account, cost.eps) if request.method == "objective" else None
    part = None
    if uncounted or not (opened or few):
        line = "gram" if request.method == "auto" else request.method
        part = alone.line("coefficients", f"{line} release", request.spent(cost))
    announce(bounds, stacklevel=3)
    wide = partial(announce_wide_factors, trial, noise=request.noise, stacklevel=3)
    if opened is None and part is not None and not request.perturbed:
        wide(counted, cost, request.protection)
    account.charge(budget, f"dp_ols: {formula}")
    if uncounted:
        plan = _plan(request, trial, reader, cost, passes, reader.rows)
        account.take(alone if isinstance(plan, str) else looks)
        if isinstance(plan, str):
            opened = None
            wide(reader.rows, cost, request.protection)
    bounded = buy_bounds(reader, known, bounds)
    design = trial if bounded is known else build(bounded)
    columns = [column for term in design.terms for column in term.columns]
    facts = CallFacts(
        formula=formula,
        fit="fixed",
        budget=request.budget,
        rows=None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, unbounded),
        account=account,
        notes=(f'method="gram": {plan.rstrip(".")}.',) if isinstance(plan, str) else (),
    )
    if opened is not None:
        reader = every_row(reader, design, request.protection)
        described = Described(tuple(range(1, len(design.columns))), levels=design.levels)
        seen = look(LookTable(reader, design, described, opened), Linear())
        facts = facts.after(reader.rows if public else None, reader.passes)
        return linear_results(design, columns, seen, facts)
    if few is not None:
        return objective_fit(design, columns, reader, few, facts)
    assert part is not None
    unit_ball = unit_ball_rows(design, columns, request.scaling) if request.perturbed else None
    (moments,) = read_moments(reader, design if unit_ball is None else unit_ball)
    facts = facts.after(moments.rows if public else None, reader.passes)
    if unit_ball is None:
        return joint_fit(design, columns, moments, facts, part, request.noise)
    return perturbed_fit(
        unit_ball, moments, facts, part, method=request.method, noise=request.constants
    )


def _plan(
    request: OLSRequest,
    design: Design,
    reader: Reader,
    cost: Budget,
    passes: int,
    rows: int | None,
) -> LookPlan | str | None:
    """Return the plan of looks; None where none are asked for, or why there are none."""
    if request.method not in ("auto", "adaptive"):
        return None
    if request.method == "auto" and (reason := too_wide(design, cost)):
        return reason
    plan = looks_or_reason(
        design,
        reader,
        cost,
        request.protection,
        method=request.method,
        noise=request.noise,
        passes=passes,
        rows=rows,
    )
    again = reader.persons is None and can_hold(reader) and reader.rereadable
    if isinstance(plan, str) and again and design.has_intercept and request.noise is None:
        return f'{plan} method="objective" gives nearer coefficients, without intervals'
    return plan


def _check_claim(request: OLSRequest, cost: Budget) -> None:
    """Refuse constants whose release, as a whole, is not what would be charged for it."""
    privacy = privacy_of_constants(
        request.method,
        request.constants,
        eps=cost.eps,
        delta=cost.delta,
        neighbors=request.protection.neighbors,
        contributions=request.protection.contributions,
    )
    if not privacy.holds:
        raise ArgumentError(
            f'noise="{request.constants}" gives eps={privacy.whole_eps:.4g} at '
            f'delta={float(cost.delta):g} here, more than is charged: use noise="analytic", '
            "or a larger eps."
        )
