"""From checked arguments to drawn models: read the rows once, buy what is needed, draw.

The order is that of the budget table. Only `read_rows` sees rows; what this package returns is what
mechanisms drew, and exact moments for the fit.

What a selection settles before a row is read: design, space, engine, and the cost of each step.

All input errors are raised here, from public facts, so that bad input costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.moments import Moments, read_moments
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import ALL_ROWS, FITTING, SELECTING, Budget
from dpreg.privacy.composition import DrawPlan, plan_draws
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.privacy.proofs import score_range
from dpreg.privacy.ranks import PASSES
from dpreg.request import SHARES, SelectionRequest
from dpreg.selection.contest import (
    LARGEST_RANGE,
    LARGEST_SCORE,
    Contest,
    least_squares_contest,
    profile_contest,
    residual_offset,
)
from dpreg.selection.draws import (
    ENGINES,
    RADII,
    block_norms,
    check_radius,
    choose_engine,
    lower_bound,
    noisy_count,
    private_radius,
    private_sigma2,
    radius_blocks,
)
from dpreg.selection.probabilities import charges
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space, space_of
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The public facts of one selection, all known before a row is read.

    Attributes
    ----------
    request : SelectionRequest
    plan : DrawPlan
        Mechanism and eps of each draw, and what all of them cost.
    engine : str
    parts : mapping of str to Part
        What each step that the call needs draws from: those of `_LINES`, and "fit".
    draws : tuple of Part
        One for each draw.
    """

    request: SelectionRequest
    plan: DrawPlan
    engine: str
    parts: Mapping[str, Part]
    draws: tuple[Part, ...]


_LINES: Final = {
    "radius": ("radius", "permute-and-flip"),
    "sigma2": ("residual variance", "laplace"),
    "count": ("number of rows", "laplace"),
    "profile": ("bound on the residuals", "laplace"),
}
"""How the budget table names what is bought before the draws, and what draws it; in its order."""


def prepare(
    request: SelectionRequest,
    design: Design,
    reader: Reader,
    account: Account,
    bounds: Sequence[str] = (),
) -> Preparation:
    """Check all that can be checked without a row, and plan every spend.

    Parameters
    ----------
    request : SelectionRequest
    design : Design
        With placeholders for the bounds that are bought.
    reader : Reader
    account : Account
        Where the lines are opened; nothing is charged yet.
    bounds : names of columns
        Whose bounds are bought, by lines that are open already.
    """
    counted = request.protection.n_is_public and (request.radius is None or bool(bounds))
    reader.settle(design.types)
    reader.require(1 + (PASSES if bounds else 0), counted)
    costs = _costs(request, bool(bounds))
    _check_eps(request, costs["selection"].eps / request.draws)
    plan = plan_draws(
        request.draws,
        costs["selection"],
        mechanism=request.mechanism,
        contributions=request.protection.contributions,
    )
    selecting, fitting = (SELECTING, FITTING) if request.fit == "split" else (ALL_ROWS, ALL_ROWS)
    parts = {
        step: account.line(*line, costs[step], rows=selecting if step == "profile" else ALL_ROWS)
        for step, line in _LINES.items()
        if step in costs
    }
    draws = account.draws("selection", plan, rows=selecting)
    if "fit" in costs:
        parts["fit"] = account.line("coefficients", "gram release", costs["fit"], rows=fitting)
    return Preparation(
        request=request,
        plan=plan,
        engine=choose_engine(request.engine, space_of(request, design), plan.mechanism),
        parts=parts,
        draws=draws,
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


def _costs(request: SelectionRequest, bounds: bool) -> dict[str, Budget]:
    """Divide the budget among the steps that this request needs; "selection" is the draws.

    Halves of the rows are read by one release each. Where all rows of a person lie in one half
    (one row a person, or persons named) each may spend the whole of delta; elsewhere, and with
    ``fit="share"``, deltas add and each takes half.
    """
    profile, delta = request.method == "pcpl", request.budget.delta
    needed = {
        "bounds": bounds,
        "radius": request.radius is None,
        "sigma2": request.sigma2 == "private",
        "count": request.needs_count,
        "fit": request.fit == "share",
        "profile": profile,
    }
    idle = [step for step in request.shares if not needed[step]]
    if idle:
        raise ArgumentError(f"shares names {', '.join(idle)}, which this call does not need.")
    divided = divided_eps(request.budget.eps, needed, request.shares)
    if "radius" in divided:
        check_radius(divided["radius"], request.protection)
    if divided["selection"] <= 0:
        raise ArgumentError(
            "shares leave nothing for the selection: they must add up to less than 1."
        )
    if request.fit == "split":  # each half may spend all but the estimates that read every row
        divided["fit"] = divided["selection"] + divided.get("profile", 0)
    selects = profile or (request.draws > 1 and request.mechanism in ("auto", "exponential"))
    one_row = request.protection.apart == 1
    alone = request.fit is None or (request.fit == "split" and one_row)
    each = delta if alone or not selects else delta / 2
    deltas = {"fit": each, "profile" if profile else "selection": each}
    return {step: Budget(eps, deltas.get(step, Fraction(0))) for step, eps in divided.items()}


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


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Exact moments of the rows, by what they are read for. Confidential.

    Attributes
    ----------
    everyone, selecting : Moments
        All rows, and those that the selection reads; they differ only with ``fit="split"``.
    fitting : Moments or None
        The rows that the coefficients read.
    blocks : tuple of Moments
        The blocks of the private radius; empty where it is not bought.
    n : int or None
        Number of rows, where it is public.
    """

    everyone: Moments
    selecting: Moments
    fitting: Moments | None
    blocks: tuple[Moments, ...]
    n: int | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was bought before the draw, or is public.

    Attributes
    ----------
    rho : Fraction
        Radius in stored units.
    sigma2 : Fraction or None
        Residual variance in squared stored units.
    rows : int or None
        How many rows the selection reads: n where it is public, the noisy count where one was
        bought; half of it under ``fit="split"``. A public constant in what follows.
    """

    rho: Fraction
    sigma2: Fraction | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The drawn models and what they were charged.

    Attributes
    ----------
    models : tuple of tuples of int
        Units outside ``keep`` of each draw.
    phi, psi : Fraction
        Charge per column and per unit, in squared stored units (PCLS) or units of n log Q (PCPL).
    """

    models: tuple[tuple[int, ...], ...]
    phi: Fraction
    psi: Fraction


def read_rows(
    request: SelectionRequest,
    design: Design,
    reader: Reader,
    rng: Generator | None = None,
) -> RowMoments:
    """Read every row once, into one set of exact moments for each group that a coin chooses.

    With `rng`, the coins of a seeded run, which is **not private**.
    """
    public = request.protection.n_is_public
    names = (SELECTING, FITTING) if request.fit == "split" else (ALL_ROWS,)
    halves = len(names)
    blocks = 1
    if request.radius is None:
        blocks = radius_blocks(reader.rows if public else None, len(design.columns))
    groups = halves * blocks
    parts = read_moments(reader, design, None if groups == 1 else Coins.of(groups, rng), names)
    of_half = [reduce(add, parts[half::halves]) for half in range(halves)]
    of_block = [reduce(add, parts[halves * b : halves * (b + 1)]) for b in range(blocks)]
    everyone = reduce(add, parts)
    return RowMoments(
        everyone=everyone,
        selecting=of_half[0],
        fitting={"split": of_half[-1], "share": of_half[0], None: None}[request.fit],
        blocks=tuple(of_block) if request.radius is None else (),
        n=everyone.rows if public else None,
    )


def tune(prepared: Preparation, design: Design, rows: RowMoments) -> Tuning:
    """Buy the radius, the residual variance and the number of rows, where they are wanted."""
    request, parts = prepared.request, prepared.parts
    if "radius" in parts:
        columns = [column for term in design.terms for column in term.columns]
        norms = block_norms(rows.blocks, columns, default=1.0)
        rho = private_radius(norms, parts["radius"])
    else:
        rho = request.rho
    known, sigma2 = rows.n, request.known_sigma2
    if "sigma2" in parts:
        sigma2, counted = private_sigma2(
            Problem(rows.everyone, rho), rows.everyone, parts["sigma2"], columns=len(design.columns)
        )
        known = counted if known is None else known
    elif "count" in parts:
        known = noisy_count(rows.everyone, parts["count"])
    halves = 2 if request.fit == "split" else 1
    return Tuning(rho, sigma2, None if known is None else known // halves)


def contest_of(
    prepared: Preparation, tuning: Tuning, problem: Problem, moments: Moments
) -> Contest:
    """Make the contest of the request's method, without penalties; PCPL buys its bound here."""
    protection = prepared.request.protection
    if "profile" not in prepared.parts:
        return least_squares_contest(tuning.rho, protection)
    return profile_contest(
        lower_bound(problem, moments, prepared.parts["profile"]),
        offset=residual_offset(moments, tuning.rho),
        rows=tuning.rows or 1,
        rho=tuning.rho,
        protection=protection,
        eps=prepared.plan.eps_each,
    )


def penalties(
    prepared: Preparation, tuning: Tuning, contest: Contest, space: Space
) -> tuple[Fraction, Fraction]:
    """Return (phi, psi), what a column and a unit outside ``keep`` are charged.

    In squared stored units; for PCPL in units of n log Q.
    """
    plan = prepared.plan
    rate = effective_t(plan.eps_each, contest.score_range.width, plan.mechanism) / contest.grid
    known = tuning.rows, tuning.sigma2
    return charges(prepared.request, known, len(space.units), rate, plan.mechanism)


def select(
    prepared: Preparation,
    tuning: Tuning,
    space: Space,
    moments: Moments,
    *,
    progress: bool = False,
) -> Selection:
    """Draw a model for each part that the preparation opened for it."""
    problem = Problem(moments, tuning.rho)
    contest = contest_of(prepared, tuning, problem, moments)
    phi, psi = penalties(prepared, tuning, contest, space)
    priced = contest.priced(phi, psi, space)
    engine = ENGINES[prepared.engine](problem, space, priced, prepared.plan)
    drawn = tuple(engine.draw(part, progress=progress) for part in prepared.draws)
    return Selection(drawn, phi, psi)
