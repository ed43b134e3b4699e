"""From checked arguments to drawn models: read the rows once, buy what is needed, draw.

The order is that of the budget table. Only `read_rows` sees rows; what leaves this room is what
mechanisms drew, and exact moments for the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import flint

from dpreg.formula.design import Design
from dpreg.moments import Moments, read_moments
from dpreg.privacy.mechanisms import Coins, effective_t
from dpreg.request import SelectionRequest
from dpreg.selection.contest import Contest, least_squares_contest, profile_contest
from dpreg.selection.engine import draw_model, models_of
from dpreg.selection.estimates import (
    block_norms,
    lower_bound,
    noisy_count,
    private_radius,
    private_sigma2,
    radius_blocks,
)
from dpreg.selection.preparation import Preparation
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.scoring.profile import residual_offset
from dpreg.selection.space import Space
from dpreg.selection.tuning import useless_term_penalty
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "Rows",
    "Selection",
    "Tuning",
    "contest_of",
    "penalties",
    "read_rows",
    "select",
    "tune",
]


@dataclass(frozen=True, slots=True)
class Rows:
    """Exact moments of the rows, by what they are read for. Confidential.

    Attributes
    ----------
    everyone, selecting : Moments
        All rows, and those that the selection reads: the same but for ``fit="split"``.
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
) -> Rows:
    """Read every row once, into one set of exact moments for each group that a coin chooses."""
    public = request.neighbors == "replace-one"
    halves = 2 if request.fit == "split" else 1
    blocks = 1
    if request.radius is None:
        blocks = radius_blocks(reader.rows if public else None, len(design.columns))
    groups = halves * blocks
    parts = read_moments(reader, design, None if groups == 1 else Coins.of(groups, rng))
    zero = Moments.zero(len(design.columns) + 1)
    of_half = [sum(parts[half::halves], zero) for half in range(halves)]
    of_block = [sum(parts[halves * b : halves * (b + 1)], zero) for b in range(blocks)]
    everyone = sum(parts, zero)
    return Rows(
        everyone=everyone,
        selecting=of_half[0],
        fitting={"split": of_half[-1], "share": of_half[0], None: None}[request.fit],
        blocks=tuple(of_block) if request.radius is None else (),
        n=everyone.rows if public else None,
    )


def tune(
    request: SelectionRequest,
    preparation: Preparation,
    design: Design,
    rows: Rows,
    rng: Generator | None = None,
) -> Tuning:
    """Buy the radius, the residual variance and the number of rows, where they are wanted."""
    k, costs = request.contributions, preparation.costs
    if request.radius is None:
        columns = [column for term in design.terms for column in term.columns]
        norms = block_norms(rows.blocks, columns, default=1.0)
        rho = private_radius(norms, eps=costs["radius"], contributions=k, rng=rng)
    else:
        rho = request.rho
    halves = 2 if request.fit == "split" else 1
    known = rows.n
    if request.sigma2 == "private":
        sigma2, counted = private_sigma2(
            Problem(rows.everyone, rho),
            rows.everyone,
            columns=len(design.columns),
            eps=costs["sigma2"],
            contributions=k,
            rng=rng,
        )
        return Tuning(rho, sigma2, (counted if known is None else known) // halves)
    if "count" in costs:
        known = noisy_count(rows.everyone, eps=costs["count"], contributions=k, rng=rng)
    given = request.sigma2
    stored = given / request.clip**2 if isinstance(given, Fraction) else None
    return Tuning(rho, stored, None if known is None else known // halves)


def contest_of(
    request: SelectionRequest,
    preparation: Preparation,
    tuning: Tuning,
    problem: Problem,
    moments: Moments,
    rng: Generator | None = None,
) -> Contest:
    """Make the contest of the request's method, without penalties; PCPL buys its bound here."""
    relation, k = request.neighbors, request.contributions
    if request.method == "pcls":
        return least_squares_contest(tuning.rho, relation, k)
    bound = lower_bound(
        problem,
        moments,
        eps=preparation.costs["profile"],
        delta=preparation.profile_delta,
        contributions=k,
        rng=rng,
    )
    return profile_contest(
        bound,
        offset=residual_offset(moments, tuning.rho),
        rows=tuning.rows or 1,
        rho=tuning.rho,
        neighbors=relation,
        contributions=k,
        eps=preparation.draws.eps_each,
    )


def penalties(
    request: SelectionRequest,
    preparation: Preparation,
    tuning: Tuning,
    contest: Contest,
    space: Space,
) -> tuple[Fraction, Fraction]:
    """Return (phi, psi), what a column and a unit outside ``keep`` are charged.

    A number is phi, as in the paper. "auto" is psi, the price of the privacy noise, and BIC's phi
    as well where sigma2 is known; "bic" is the latter alone. In units of n log Q, BIC's phi is
    log n and needs no sigma2.
    """
    profile = request.method == "pcpl"
    if isinstance(request.penalty, Fraction):
        return request.penalty / (1 if profile else request.clip**2), Fraction(0)
    phi = psi = Fraction(0)
    if tuning.rows is not None and (profile or tuning.sigma2 is not None):
        log_n = Fraction(float(flint.arb(max(tuning.rows, 1)).log()))
        phi = log_n if profile else (tuning.sigma2 or Fraction(0)) * log_n
    if request.penalty == "auto" and space.units:
        rate = effective_t(
            preparation.draws.eps_each, contest.score_range, preparation.draws.mechanism
        )
        psi = contest.grid * useless_term_penalty(
            len(space.units), request.false_inclusions, rate, preparation.draws.mechanism
        )
    return phi, psi


def select(
    request: SelectionRequest,
    preparation: Preparation,
    tuning: Tuning,
    space: Space,
    moments: Moments,
    *,
    progress: bool = False,
    rng: Generator | None = None,
) -> Selection:
    """Draw the models. Costs what the preparation planned."""
    problem = Problem(moments, tuning.rho)
    contest = contest_of(request, preparation, tuning, problem, moments, rng)
    phi, psi = penalties(request, preparation, tuning, contest, space)
    priced = contest.priced(phi, psi, space)
    eps, mechanism = preparation.draws.eps_each, preparation.draws.mechanism
    models = models_of(
        problem, space, priced, engine=preparation.engine, eps=eps, mechanism=mechanism
    )
    drawn = tuple(
        draw_model(models, space, priced, eps=eps, mechanism=mechanism, rng=rng, progress=progress)
        for _ in range(request.draws)
    )
    return Selection(drawn, phi, psi)
