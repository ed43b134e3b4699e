"""`dp_glm`: private coefficients of a generalised linear model, with honest standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpreg.api.context import Context, open_table, read_before
from dpreg.api.looks import FamilyModel, Looks, fitted
from dpreg.api.recorded import recorded
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.bounds import announce
from dpreg.looks.loop import look
from dpreg.looks.model import Asked
from dpreg.looks.plan import MOST_PASSES, NOISES
from dpreg.options import FamilyLike, unpacked
from dpreg.request import Request, choice, text
from dpreg.results.glm import GLMResults
from dpreg.running import warn
from dpreg.signatures import Amount, SchemaLike, Table

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_glm"]


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
            noise=choice(call["noise"], "noise", (*NOISES, None)),
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
    where persons are independent. Sensitivities: `dpreg.privacy.proofs`. How looks
    compose: `dpreg.privacy.gaussian`.
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
