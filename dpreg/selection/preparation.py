"""What a selection settles before a row is read: design, space, engine, and the cost of each step.

All input errors are raised here, from public facts, so that bad input costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dpreg.errors import ArgumentError
from dpreg.formula.bounds import check_table, open_bounds, with_stand_ins
from dpreg.formula.design import Design, build_design, undeclared
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import ALL_ROWS, FITTING, SELECTING, Budget
from dpreg.privacy.composition import DrawPlan, plan_draws
from dpreg.privacy.sensitivity import score_range
from dpreg.request import SHARES, SelectionRequest
from dpreg.schema import Schema
from dpreg.selection.contest import LARGEST_RANGE, LARGEST_SCORE
from dpreg.selection.engine import choose_engine
from dpreg.selection.estimates import RADII, check_radius
from dpreg.selection.space import Space, build_space
from dpreg.sources.reader import Reader

__all__ = ["Parts", "Preparation", "design_of", "divided_eps", "prepare", "space_of"]

_MOST_COLUMNS = 2_000  # work
"""Columns of all candidates: beyond half a minute, time grows with their cube."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What each step of a selection draws from; None where the call does not need the step.

    Attributes
    ----------
    bounds : mapping of str to Part
        By column.
    radius, sigma2, count, profile, fit : Part or None
    draws : tuple of Part
        One for each draw.
    """

    bounds: Mapping[str, Part]
    radius: Part | None
    sigma2: Part | None
    count: Part | None
    profile: Part | None
    draws: tuple[Part, ...]
    fit: Part | None


@dataclass(frozen=True, slots=True)
class Preparation:
    """The public facts of one selection, all known before a row is read.

    Attributes
    ----------
    schema : Schema
        As declared; the columns of `unbounded` are missing from it.
    unbounded : tuple of str
        Columns, read as numbers, whose bounds are bought.
    draws : DrawPlan
        Mechanism and eps of each draw, and what all of them cost.
    engine : str
    account : Account
        Every step's line is open, and nothing is charged yet.
    parts : Parts
    """

    schema: Schema
    unbounded: tuple[str, ...]
    draws: DrawPlan
    engine: str
    account: Account
    parts: Parts


def prepare(
    request: SelectionRequest, schema: Schema, reader: Reader, account: Account | None = None
) -> Preparation:
    """Check all that can be checked without a row, and plan every spend.

    Its lines are opened in `account`; by default in a new one for the whole call.
    """
    source = reader.source
    unbounded = undeclared(request.formula, schema, source)
    design = with_stand_ins(partial(design_of, request), schema, unbounded)
    counted = request.protection.n_is_public and (request.radius is None or bool(unbounded))
    check_table(reader, design.types, unbounded, counted=counted)
    space = space_of(request, design)
    costs = _costs(request, unbounded)
    drawing, fit = _divided(request, costs)
    _check_eps(request, drawing.eps / request.draws)
    draws = plan_draws(
        request.draws,
        drawing,
        mechanism=request.mechanism,
        contributions=request.protection.contributions,
    )
    account = request.account() if account is None else account
    parts = _opened(account, request, unbounded, costs, draws, fit)
    return Preparation(
        schema=schema,
        unbounded=unbounded,
        draws=draws,
        engine=choose_engine(request.engine, space, draws.mechanism),
        account=account,
        parts=parts,
    )


def _check_eps(request: SelectionRequest, eps: Fraction) -> None:
    """Reject an eps for which the noise would be too large to draw.

    PCPL draws uniformly where its range is too large for eps, which is a range of one.
    """
    if LARGEST_RANGE * eps < 1:
        raise ArgumentError("eps is too small for so many draws: raise eps, or lower draws.")
    if request.method == "pcls":
        rho = max(RADII) if request.radius is None else request.rho
        reach = score_range(rho, request.protection).width
        if reach > LARGEST_SCORE or reach > LARGEST_RANGE * eps:
            raise ArgumentError(
                "eps is too small: the noise of one draw would exceed 2**53 steps of the scores' "
                "grid. Raise eps, or lower draws, contributions or the shares of other steps."
            )


def design_of(request: SelectionRequest, schema: Schema) -> Design:
    """Build the request's design from the schema alone.

    Raises
    ------
    ArgumentError
        If it has more columns than a choice can weigh in minutes.
    """
    design = build_design(
        request.formula, schema, keep=request.keep, clip=request.clip, center=request.center
    )
    if len(design.columns) > _MOST_COLUMNS:
        wide = max(design.terms, key=lambda term: len(term.columns))
        raise ArgumentError(
            f"the candidates have {len(design.columns):,} columns, {len(wide.columns):,} of them "
            f"{wide.name}'s: dp_select weighs up to {_MOST_COLUMNS:,} against each other. Merge "
            "levels in the schema, or fit a fixed formula with dp_ols."
        )
    return design


def space_of(request: SelectionRequest, design: Design) -> Space:
    """Build the request's space of models from its design."""
    return build_space(
        design.terms,
        tuple(column.name for column in design.columns),
        keep=design.keep,
        units=request.units,
        max_terms=request.max_terms,
        hierarchy=request.hierarchy,
    )


def _costs(request: SelectionRequest, unbounded: tuple[str, ...]) -> dict[str, Fraction]:
    """Divide eps among the steps that this request needs; "selection" is what is left."""
    needed = {
        "bounds": bool(unbounded),
        "radius": request.radius is None,
        "sigma2": request.sigma2 == "private",
        "count": request.needs_count,
        "fit": request.fit == "share",
        "profile": request.method == "pcpl",
    }
    idle = [step for step in request.shares if not needed[step]]
    if idle:
        raise ArgumentError(f"shares names {', '.join(idle)}, which this call does not need.")
    costs = divided_eps(request.budget.eps, needed, request.shares)
    if "radius" in costs:
        check_radius(costs["radius"], request.protection)
    if costs["selection"] <= 0:
        raise ArgumentError(
            "shares leave nothing for the selection: they must add up to less than 1."
        )
    return costs


def divided_eps(
    eps: Fraction, needed: Mapping[str, bool], shares: Mapping[str, Fraction]
) -> dict[str, Fraction]:
    """Divide eps among steps: each of those needed takes its share, "selection" what is left."""
    left, costs = eps, {}
    for step, wanted in needed.items():
        if wanted:
            whole = left if step in ("fit", "profile") else eps
            costs[step] = whole * shares.get(step, SHARES[step])
            left -= costs[step]
    return {**costs, "selection": left}


def _deltas(request: SelectionRequest) -> tuple[Fraction, Fraction]:
    """Return what the selection and the coefficients may spend of delta.

    Halves of the rows are read by one release each. Where all rows of a person lie in one half
    (one row a person, or persons named) each may spend the whole of delta; elsewhere, and with
    ``fit="share"``, deltas add and each takes half.
    """
    delta = request.budget.delta
    selects = request.method == "pcpl" or (
        request.draws > 1 and request.mechanism in ("auto", "exponential")
    )
    if not selects:
        return Fraction(0), delta
    one_row = request.protection.apart == 1
    alone = request.fit is None or (request.fit == "split" and one_row)
    return (delta, delta) if alone else (delta / 2, delta / 2)


def _divided(
    request: SelectionRequest, costs: Mapping[str, Fraction]
) -> tuple[Budget, Budget | None]:
    """Return what the draws and what the coefficients may cost."""
    selecting, fitting = _deltas(request)
    drawing = Budget(costs["selection"], selecting if request.method == "pcls" else Fraction(0))
    if request.fit is None:
        return drawing, None
    if request.fit == "share":
        return drawing, Budget(costs["fit"], fitting)
    # Each half may spend all but the estimates that read every row.
    return drawing, Budget(costs["selection"] + costs.get("profile", Fraction(0)), fitting)


def _opened(
    account: Account,
    request: SelectionRequest,
    unbounded: tuple[str, ...],
    costs: Mapping[str, Fraction],
    draws: DrawPlan,
    fit: Budget | None,
) -> Parts:
    """Open every line of the budget table, in its order."""
    split = request.fit == "split"
    selecting, fitting = (SELECTING, FITTING) if split else (ALL_ROWS, ALL_ROWS)

    def opened(
        key: str, step: str, mechanism: str, delta: Fraction = Fraction(0), rows: str = ALL_ROWS
    ) -> Part | None:
        if key not in costs:
            return None
        return account.line(step, mechanism, Budget(costs[key], delta), rows=rows)

    bounds = costs.get("bounds", Fraction(0)) / request.budget.eps
    return Parts(
        bounds=open_bounds(account, unbounded, bounds),
        radius=opened("radius", "radius", "permute-and-flip"),
        sigma2=opened("sigma2", "residual variance", "laplace"),
        count=opened("count", "number of rows", "laplace"),
        profile=opened(
            "profile", "bound on the residuals", "laplace", _deltas(request)[0], selecting
        ),
        draws=account.draws("selection", draws, rows=selecting),
        fit=None
        if fit is None
        else account.line("coefficients", "gram release", fit, rows=fitting),
    )
