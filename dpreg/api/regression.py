"""`dp_ols`: private coefficients of a fixed linear model, with honest standard errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from dpreg.api.context import CallFacts, Context, open_table
from dpreg.api.few import check_few, objective_fit
from dpreg.api.looks import LinearModel, Looks, fitted
from dpreg.api.moments import (
    announce_wide_factors,
    joint_fit,
    perturbed_fit,
    too_wide,
    unit_ball_rows,
)
from dpreg.api.recorded import recorded
from dpreg.arguments import renamed_method
from dpreg.errors import ArgumentError
from dpreg.estimation.constants import MOST_CELLS, PERTURBED_NOISES, privacy_of_constants
from dpreg.estimation.few import open_few
from dpreg.estimation.gram import NOISES
from dpreg.estimation.held import can_hold
from dpreg.estimation.scaling import SCALINGS
from dpreg.formula.bounds import announce
from dpreg.formula.design import Design, build_design
from dpreg.looks.families import Linear
from dpreg.looks.loop import look
from dpreg.looks.plan import NOISES as LOOK_NOISES
from dpreg.moments import read_moments
from dpreg.options import MethodLike, unpacked
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.request import Request, choice, positive, text, truth
from dpreg.results.regression import RegressionResults
from dpreg.signatures import Amount, SchemaLike, Table

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
    reader, known = open_table(request, data, schema, progress)
    build = partial(build_design, formula, clip=request.clip, center=request.center)
    context = Context.of(request, reader, known, formula, build, shares=shares)
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
    if reason:
        facts = replace(facts, notes=(f'method="gram": {reason.rstrip(".")}.',))
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
            model=LinearModel(),
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
        result: RegressionResults = fitted(LinearModel(), design, columns_of(design), seen, facts)
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
