"""`dp_ols`: private coefficients of a fixed linear model, with honest standard errors.

`dp_glm`: private coefficients of a generalised linear model, with honest standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from dpreg.api.context import CallFacts, Context, open_table, read_before, recorded
from dpreg.api.looks import FamilyModel, LinearModel, Looks, fitted
from dpreg.api.moments import (
    announce_wide_factors,
    check_few,
    joint_fit,
    objective_fit,
    perturbed_fit,
    too_wide,
    unit_ball_rows,
)
from dpreg.errors import ArgumentError, DataError, SchemaError, shown
from dpreg.estimation.constants import MOST_CELLS, PERTURBED_NOISES, privacy_of_constants
from dpreg.estimation.few import open_few
from dpreg.estimation.gram import NOISES
from dpreg.estimation.held import can_hold
from dpreg.estimation.scaling import SCALINGS
from dpreg.formula.bounds import announce
from dpreg.formula.design import Design, build_design
from dpreg.formula.terms import read_terms
from dpreg.looks.families import Linear
from dpreg.looks.loop import look
from dpreg.looks.model import Asked, with_term
from dpreg.looks.plan import MOST_PASSES
from dpreg.looks.plan import NOISES as LOOK_NOISES
from dpreg.moments import read_moments
from dpreg.options import Amount, FamilyLike, MethodLike, SchemaLike, Table, unpacked
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.request import Request, choice, positive, renamed_method, text, truth
from dpreg.results.glm import GLMResults
from dpreg.results.regression import RegressionResults
from dpreg.running import warn

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

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
    read: str
    offset: str | None
    weights: str | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> OLSRequest:
        """Check every argument; errors name the argument and say how to fix it."""
        formula = text(call["formula"], "formula")
        center = truth(call["center"], "center")
        common = cls.common(call)
        method = choice(renamed_method(call["method"]), "method", METHODS)
        if method == "auto" and isinstance(call["noise"], str) and call["noise"] in _GRAM_ALONE:
            method = "gram"
        offset, weights = _words(call["offset"], "offset"), _words(call["weights"], "weights")
        method = _of_errors(call["cov_type"], method, common["protection"])
        if weights is not None:
            method = _of_weights(method)
        read, weights = _read(formula, offset, weights)
        request = cls(
            **common,
            formula=formula,
            method=method,
            scaling=choice(call["scaling"], "scaling", SCALINGS),
            noise=_noise(call["noise"], method),
            clip=positive(call["clip"], "clip", Fraction(1)),
            center=center,
            read=read,
            offset=offset,
            weights=weights,
        )
        _check_together(request)
        return request

    @property
    def model(self) -> LinearModel:
        """The model, as looks read it."""
        return LinearModel(self.weights)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the arguments mean for a reader."""
        found = []
        if self.offset is not None:
            found.append(
                f"The model is of the response less the offset {self.offset}, and so are its "
                "residual variance, R-squared and predictions: add the offset to these."
            )
        if self.weights is not None:
            found.append(
                f"Rows are weighted by {self.weights}, up to its declared bound. Errors allow for "
                "any weights; the residual variance and R-squared are not released."
            )
        return tuple(found)

    def check_weights(self, design: Design, unbounded: tuple[str, ...]) -> None:
        """Refuse weights without a public cap."""
        columns = [design.columns[j] for j in self.model.weighed(design)]
        for column in columns:
            declared = not any(name in column.name for name in unbounded)
            if len(columns) > 1 or column.levels or not declared or column.lo < 0 or column.hi <= 0:
                raise SchemaError(
                    f"weights: declare bounds of {shown(column.name)} from 0 up to a cap, from "
                    "public knowledge; larger weights count as the cap."
                )

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


def _words(value: object, name: str) -> str | None:
    return None if value is None else text(value, name)


def _of_errors(wanted: object, method: str, protection: Protection) -> str:
    """Return the method that gives the wanted errors; say which there are, and why no others."""
    looks = "HC" if protection.person is None else "cluster"
    gives = {"gram": "nonrobust", "adaptive": looks, "auto": looks}
    if wanted is None or gives.get(method) == wanted:
        return "adaptive" if method == "auto" and wanted is not None else method
    if wanted == "nonrobust" and method == "auto":
        return "gram"
    has = gives.get(method)
    if wanted in ("HC", "cluster", "nonrobust"):
        other = 'leave person out for "HC"' if looks == "cluster" else 'give person= for "cluster"'
        raise ArgumentError(
            f'cov_type="{wanted}": method="{method}" '
            + (
                f'gives "{has}" here; {other}, or take "nonrobust" of method="gram".'
                if has
                else "releases coefficients alone, without errors."
            )
        )
    raise ArgumentError(
        f'cov_type: looks give "HC" (White\'s, without a correction for small tables) or, with '
        f'person=, "cluster"; method="gram" gives "nonrobust"; got {shown(wanted)}. Others are '
        "sums over residuals, leverages or lags of rows, which are not released."
    )


def _of_weights(method: str) -> str:
    if method not in ("auto", "adaptive"):
        raise ArgumentError(f'weights need looks: leave method="{method}" out.')
    return "adaptive"


def _read(formula: str, offset: str | None, weights: str | None) -> tuple[str, str | None]:
    """Return the formula as it is read, and the term of the weights."""
    if offset is not None:
        with_term(formula, offset, "offset")  # refuses what is no expression of its own
        response, right = read_terms(formula).response, formula.partition("~")[2]
        taken = offset if offset.isidentifier() else f"({offset})"
        formula = f"I({response} - {taken}) ~{right}"
    return (formula, None) if weights is None else with_term(formula, weights, "weights")


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
    where: str | None = None,
    offset: str | None = None,
    weights: str | None = None,
    method: MethodLike = "auto",
    cov_type: str | None = None,
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
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows are excluded, and how many pass is
        private (`dpreg.formula.where`).
    offset : str, optional
        A column, or an expression of columns, whose coefficient is 1: the model is of the response
        less the offset, and so is what `predict` gives.
    weights : str, optional
        A column with declared bounds from 0 up: a row counts by its weight, as in weighted least
        squares. The upper bound is the cap, from public knowledge: larger weights count as it, and
        noise is as large as for rows that all have it. Needs looks.
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
    cov_type : {"HC", "cluster", "nonrobust"}, optional
        Which standard errors are wanted; None takes what the method gives. "adaptive" gives "HC",
        or "cluster" where `person` is given; "gram" gives "nonrobust". Others are refused.
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
    reader, known = open_table(request, data, schema, progress, where)
    build = partial(build_design, request.read, clip=request.clip, center=request.center)
    context = Context.of(request, reader, known, request.read, build, request.check_weights, shares)
    estimators = [make(context, request) for make in ESTIMATORS[request.method]]
    first, *others = estimators
    account = request.account()
    bounds = context.bounds(account)
    reason = first.refuses(context.rows)
    # A public number of rows that only a pass would tell is counted after the charge, and decides.
    uncounted = bool(others) and not reason and context.uncounted
    if reason:
        (first,) = others
    accounts = [account]
    if uncounted:
        accounts = [Account(account.protection, context.cost, account.rng) for _ in estimators]
        account.either(*accounts)
    tried = estimators if uncounted else [first]
    opened = [one.open(own) for one, own in zip(tried, accounts, strict=True)]
    announce(bounds)
    if not uncounted:
        first.announce(context.rows)
    account.charge(budget, f"dp_ols: {formula}")
    place = 0
    if uncounted:
        reason = first.refuses(reader.rows)
        place = int(bool(reason))
        account.take(accounts[place])
        tried[place].announce(reader.rows)
    design = context.design(bounds)
    facts = context.facts(design, account, formula)
    reasons = (f'method="gram": {reason.rstrip(".")}.',) if reason else ()
    facts = replace(facts, notes=(*reasons, *request.remarks))
    return tried[place].fit(opened[place], design, facts)


class Estimator(Protocol):
    """A way to fit a fixed formula; "auto" is a list of them, and a refusal is the note."""

    def refuses(self, rows: int | None) -> str:
        """Return why this is not the way, given a public number of rows; "" if it is.

        Raises
        ------
        ArgumentError, DataError
            Where the caller asked for this one alone.
        """

    def open(self, account: Account) -> Any:
        """Open its lines."""

    def announce(self, rows: int | None) -> None:
        """Warn of what it will not do well, before the charge."""

    def fit(self, opened: Any, design: Design, facts: CallFacts) -> RegressionResults:
        """Read the rows, release and fit, after the charge."""


@dataclass(frozen=True, slots=True, eq=False)
class _ByLooks:
    context: Context
    request: OLSRequest

    @property
    def looks(self) -> Looks:
        context, request = self.context, self.request
        return Looks(
            context=context,
            model=request.model,
            cost=context.cost,
            passes=context.passes,
            noise=request.noise,
            asked=request.method == "adaptive",
        )

    def refuses(self, rows: int | None) -> str:
        context, request = self.context, self.request
        if request.method == "auto" and (reason := too_wide(context.trial, context.cost)):
            return reason
        reason, reader = self.looks.refuses(rows), context.reader
        again = reader.persons is None and can_hold(reader) and reader.rereadable
        if reason and again and context.trial.has_intercept and request.noise is None:
            reason += ' method="objective" gives nearer coefficients, without intervals'
        return reason

    def open(self, account: Account) -> Any:
        return self.looks.plan().open(account)

    def announce(self, rows: int | None) -> None:
        return

    def fit(self, opened: Any, design: Design, facts: CallFacts) -> RegressionResults:
        table = self.looks.table(design, opened)
        seen = look(table, Linear())
        facts = facts.after(table.reader)
        model = self.request.model
        columns = [j for j in columns_of(design) if j in model.columns(design)]
        result: RegressionResults = fitted(model, design, columns, seen, facts)
        return result


@dataclass(frozen=True, slots=True, eq=False)
class _ByMoments:
    context: Context
    request: OLSRequest

    def refuses(self, rows: int | None) -> str:
        if self.request.perturbed:
            _check_claim(self.request, self.context.cost)
            if (rows or 0) * len(self.context.trial.columns) > MOST_CELLS:
                raise ArgumentError(
                    f'method="{self.request.method}" is proved for tables of up to 2**44 cells, '
                    "and this one has more: leave method out."
                )
        return ""

    def open(self, account: Account) -> Any:
        request = self.request
        line = "gram" if request.method == "auto" else request.method
        return account.line("coefficients", f"{line} release", request.spent(self.context.cost))

    def announce(self, rows: int | None) -> None:
        if not self.request.perturbed:
            context, request = self.context, self.request
            announce_wide_factors(
                context.trial, rows, context.cost, request.protection, request.noise
            )

    def fit(self, opened: Any, design: Design, facts: CallFacts) -> RegressionResults:
        request, reader, columns = self.request, self.context.reader, columns_of(design)
        ball = unit_ball_rows(design, columns, request.scaling) if request.perturbed else None
        (moments,) = read_moments(reader, design if ball is None else ball)
        facts = facts.after(reader)
        if ball is None:
            return joint_fit(design, columns, moments, facts, opened, request.noise)
        noise = request.constants
        return perturbed_fit(ball, moments, facts, opened, method=request.method, noise=noise)


@dataclass(frozen=True, slots=True, eq=False)
class _ByObjective:
    context: Context
    request: OLSRequest

    def refuses(self, rows: int | None) -> str:
        context = self.context
        protection, cost = self.request.protection, context.cost
        check_few(context.trial, context.reader, cost, protection, context.passes)
        return ""

    def open(self, account: Account) -> Any:
        return open_few(account, self.context.cost.eps)

    def announce(self, rows: int | None) -> None:
        return

    def fit(self, opened: Any, design: Design, facts: CallFacts) -> RegressionResults:
        return objective_fit(design, columns_of(design), self.context.reader, opened, facts)


ESTIMATORS: Final[Mapping[str, tuple[Callable[[Context, OLSRequest], Estimator], ...]]] = {
    "auto": (_ByLooks, _ByMoments),
    "adaptive": (_ByLooks,),
    "gram": (_ByMoments,),
    "objective": (_ByObjective,),
    "ssp": (_ByMoments,),
    "adassp": (_ByMoments,),
}
"""The ways of each method, in the order in which they are tried."""


def columns_of(design: Design) -> list[int]:
    """Return the stored columns of all terms."""
    return [column for term in design.terms for column in term.columns]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMRequest(Request):
    """Everything that a caller of `dp_glm` chose, as exact values."""

    formula: str
    asked: Asked
    noise: str | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> GLMRequest:
        """Check every argument; errors name the argument and say how to fix it."""
        request = cls(
            **cls.common(call),
            formula=text(call["formula"], "formula"),
            asked=Asked.of(call),
            noise=choice(call["noise"], "noise", (*LOOK_NOISES, None)),
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
    where: str | None = None,
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
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows are excluded, and how many pass is
        private (`dpreg.formula.where`).
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
    reader, declared = open_table(request, data, schema, progress, where)
    known, read = request.asked.model(request.formula, declared)
    model, check = (
        FamilyModel(read, request.asked.family),
        partial(read.check, family=request.asked.family),
    )
    context = Context.of(request, reader, known, read.formula, read.design, check, shares)
    reader.require(context.passes + MOST_PASSES)
    if once := read_before(reader, context.passes):
        raise DataError(f"data: {once}. Declare the bounds, or give a table that stays.")
    looks = Looks(
        context=context,
        model=model,
        cost=context.cost,
        passes=context.passes,
        noise=request.noise,
    )
    account = request.account()
    bounds = context.bounds(account)
    opened = looks.plan().open(account)
    announce(bounds)
    if context.rows is not None:
        _warn(looks.too_few(context.rows))
    account.charge(budget, f"dp_glm: {formula}")
    if context.uncounted:
        _warn(looks.too_few(reader.rows))
    design = context.design(bounds)
    table = looks.table(design, opened)
    seen = look(table, model.family(design))
    facts = context.facts(design, account, formula).after(table.reader)
    result: GLMResults = fitted(model, design, model.columns(design), seen, facts)
    return result


def _warn(few: str) -> None:
    if few:
        warn(f"{few} Intervals may be missing.")
