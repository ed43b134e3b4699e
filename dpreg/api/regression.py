"""`dp_ols` and `dp_glm`: private coefficients of a fixed model, with honest standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

from dpreg.api.arguments import OfFormula
from dpreg.api.context import Context, Way, answered, open_table, recorded
from dpreg.api.looks import Looks
from dpreg.api.moments import ByGram, ByObjective, ByPublished
from dpreg.errors import ArgumentError, SchemaError, shown
from dpreg.estimation.perturbed import PERTURBED_NOISES
from dpreg.estimation.scaling import SCALINGS
from dpreg.formula.design import Design, build_design
from dpreg.formula.terms import read_terms
from dpreg.looks.model import Asked, LinearModel, with_term
from dpreg.looks.plan import NOISES as LOOK_NOISES
from dpreg.options import Amount, FamilyLike, MethodLike, Table
from dpreg.privacy.protection import NOISES, Protection
from dpreg.request import (
    Arguments,
    FormulaRequest,
    checked,
    choice,
    method_of,
    optional,
    positive,
    text,
    truth,
)
from dpreg.results.glm import GLMResults
from dpreg.results.notes import worded
from dpreg.results.regression import RegressionResults

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
class OLSRequest(FormulaRequest):
    """Everything that a caller of `dp_ols` chose, as exact values."""

    method: str = checked(method_of, tuple(_NOISES))
    scaling: str = checked(choice, SCALINGS)
    clip: Fraction = checked(positive, Fraction(1))
    center: bool = checked(truth)
    offset: str | None = checked(optional, text)
    weights: str | None = checked(optional, text)
    noise: str | None
    read: str

    @classmethod
    def settled(cls, told: dict[str, Any], call: Arguments) -> dict[str, Any]:
        """Settle the method by noise, errors and weights, and the formula as it is read."""
        method, noise = told["method"], call["noise"]
        if method == "auto" and isinstance(noise, str) and noise in _GRAM_ALONE:
            method = "gram"
        if call["cov_type"] is not None:
            method = _of_errors(call["cov_type"], method, told["protection"])
        if told["weights"] is not None:
            if method not in ("auto", "adaptive"):
                raise ArgumentError(f'weights need looks: leave method="{method}" out.')
            method = "adaptive"
        if noise == "knorm" and _NOISES[method] is not PERTURBED_NOISES:
            raise ArgumentError('noise="knorm" is gone: use "matrix-laplace", or leave noise out.')
        if method in ("ssp", "adassp") and told["budget"].delta == 0:
            raise ArgumentError(f'method="{method}" needs delta above 0, such as delta=1e-6.')
        told["method"], told["noise"] = method, choice(noise, "noise", (*_NOISES[method], None))
        formula, offset = told["formula"], told["offset"]
        if offset is not None:
            with_term(formula, offset, "offset")  # refuses what is no expression of its own
            response, right = read_terms(formula).response, formula.partition("~")[2]
            taken = offset if offset.isidentifier() else f"({offset})"
            formula = f"I({response} - {taken}) ~{right}"
        if told["weights"] is not None:
            formula, told["weights"] = with_term(formula, told["weights"], "weights")
        terms = {"offset": offset, "weights": told["weights"]}
        remarks = (worded(name, **{name: of}) for name, of in terms.items() if of is not None)
        return {**told, "read": formula, "remarks": tuple(remarks)}

    def check_weights(self, design: Design, unbounded: tuple[str, ...]) -> None:
        """Refuse weights without a public cap."""
        at = [j for term in design.terms if term.name == self.weights for j in term.columns]
        for column in (design.columns[j] for j in at):
            declared = not any(name in column.name for name in unbounded)
            if len(at) > 1 or column.levels or not declared or column.lo < 0 or column.hi <= 0:
                raise SchemaError(
                    f"weights: declare bounds of {shown(column.name)} from 0 up to a cap, from "
                    "public knowledge; larger weights count as the cap."
                )


def _of_errors(wanted: object, method: str, protection: Protection) -> str:
    """Return the method that gives the wanted errors; say which there are, and why no others."""
    looks = "HC" if protection.person is None else "cluster"
    gives = {"gram": "nonrobust", "adaptive": looks, "auto": looks}
    if gives.get(method) == wanted:
        return "adaptive" if method == "auto" else method
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GLMRequest(FormulaRequest):
    """Everything that a caller of `dp_glm` chose, as exact values."""

    noise: str | None = checked(choice, (*LOOK_NOISES, None))
    asked: Asked

    @classmethod
    def settled(cls, told: dict[str, Any], call: Arguments) -> dict[str, Any]:
        """Check what belongs to the family."""
        return {**told, "asked": Asked.of(call)}


def _ols(call: Arguments) -> Any:
    """Answer `dp_ols`: "auto" is an ordered list of ways, and a refusal is the note."""
    request = OLSRequest.of(call)
    opened = open_table(request, call)
    build = partial(build_design, request.read, clip=request.clip, center=request.center)
    check = None if request.weights is None else request.check_weights
    context = Context.of(request, opened, request.read, build, check)
    looks = Looks(
        context=context,
        model=LinearModel(() if request.weights is None else (request.weights,)),
        noise=request.noise,
        asked=request.method == "adaptive",
    )
    gram = ByGram(context=context, noise=request.noise)
    published = ByPublished(
        context=context,
        method=request.method,
        noise=request.noise or "analytic",
        scaling=request.scaling,
    )
    ways: dict[str, tuple[Way, ...]] = {
        "auto": (looks, gram),
        "adaptive": (looks,),
        "gram": (gram,),
        "objective": (ByObjective(context=context),),
    }
    return answered("dp_ols", ways.get(request.method, (published,)), call["budget"])


def _glm(call: Arguments) -> Any:
    """Answer `dp_glm`: looks are the only way."""
    request = GLMRequest.of(call)
    reader, declared = open_table(request, call)
    known, read = request.asked.model(request.formula, declared)
    context = Context.of(request, (reader, known), read.formula, read.design, read.check)
    looks = Looks(context=context, model=read, noise=request.noise)
    return answered("dp_glm", (looks,), call["budget"])


@recorded(_ols, OfFormula)
def dp_ols(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    offset: str | None = None,
    weights: str | None = None,
    method: MethodLike = "auto",
    cov_type: str | None = None,
    **others: Unpack[OfFormula],
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
        "adaptive" looks at the rows four or five times, each time at the fit that the looks before
        gave, and releases score, information and the middle of the sandwich (`dpreg.looks`): robust
        errors, clustered where `person` is given, that include the noise. Without delta it holds up
        to 4 million cells of rows that this process reads; of Dask or Spark it holds none, and
        intervals are wider. "gram" releases the
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
    Sensitivities and their proofs: `dpreg.privacy.proofs`; the fit and its covariance:
    `dpreg.estimation.inference`.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> fit = dpreg.dp_ols("mdvis ~ disea + lpi", rand.data, eps=1, delta=1e-6, schema=rand.schema)
    >>> list(fit.params.index)
    ['Intercept', 'disea', 'lpi']
    """


@recorded(_glm, OfFormula)
def dp_glm(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    family: FamilyLike = "binomial",
    offset: str | None = None,
    noise: str | None = None,
    **others: Unpack[OfFormula],
) -> GLMResults:
    """Fit a logistic or a Poisson regression with differential privacy.

    A first look releases the moments of rows on the unit scale of their bounds; each later one
    score and information at the fit that the looks before gave, the last with the middle of the
    sandwich. There are four looks, five with delta, each a pass over the rows.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language, with an intercept. For "binomial" the response is a column
        of 0 and 1, one declared as bool, one with two declared levels, of which the second counts
        as 1, or with trials a number of successes; for counts it is one with bounds from 0 up.
        A count above its upper bound is taken as that bound; tight bounds mean less noise.
        A "binomial" response that the schema leaves out is read as a number between 0 and 1.
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
    offset : str, optional
        A column, or an expression that could be a term of the formula, which is added to the linear
        predictor with coefficient 1. Its bounds must be declared.
    noise : {"gaussian", "matrix-laplace"}, optional
        None takes Gaussian noise where delta is above 0, else noise of pure eps: matrix-Laplace on
        the information, an L2 K-norm on the score.

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
