"""From checked arguments to drawn models: read the rows once, buy what is needed, draw.

The order is that of the budget table. Only `read_rows` sees rows; what this package returns is what
mechanisms drew, and exact moments for the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from dpreg.formula.design import Design
from dpreg.moments import Moments, read_moments
from dpreg.privacy.budget import ALL_ROWS, FITTING, SELECTING
from dpreg.privacy.mechanisms import Coins, effective_t
from dpreg.request import SelectionRequest
from dpreg.selection.contest import Contest, least_squares_contest, profile_contest
from dpreg.selection.engine import ENGINES
from dpreg.selection.estimates import (
    block_norms,
    lower_bound,
    noisy_count,
    private_radius,
    private_sigma2,
    radius_blocks,
)
from dpreg.selection.preparation import Parts, Preparation
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.scoring.profile import residual_offset
from dpreg.selection.space import Space
from dpreg.selection.tuning import charges
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "RowMoments",
    "Selection",
    "Tuning",
    "contest_of",
    "penalties",
    "read_rows",
    "select",
    "tune",
]


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


def tune(
    request: SelectionRequest,
    parts: Parts,
    design: Design,
    rows: RowMoments,
) -> Tuning:
    """Buy the radius, the residual variance and the number of rows, where they are wanted."""
    if parts.radius is not None:
        columns = [column for term in design.terms for column in term.columns]
        norms = block_norms(rows.blocks, columns, default=1.0)
        rho = private_radius(norms, parts.radius)
    else:
        rho = request.rho
    halves = 2 if request.fit == "split" else 1
    known = rows.n
    if parts.sigma2 is not None:
        sigma2, counted = private_sigma2(
            Problem(rows.everyone, rho), rows.everyone, parts.sigma2, columns=len(design.columns)
        )
        return Tuning(rho, sigma2, (counted if known is None else known) // halves)
    if parts.count is not None:
        known = noisy_count(rows.everyone, parts.count)
    given = request.sigma2
    stored = given / request.clip**2 if isinstance(given, Fraction) else None
    return Tuning(rho, stored, None if known is None else known // halves)


def contest_of(
    request: SelectionRequest,
    preparation: Preparation,
    tuning: Tuning,
    problem: Problem,
    moments: Moments,
) -> Contest:
    """Make the contest of the request's method, without penalties; PCPL buys its bound here."""
    if preparation.parts.profile is None:
        return least_squares_contest(tuning.rho, request.protection)
    return profile_contest(
        lower_bound(problem, moments, preparation.parts.profile),
        offset=residual_offset(moments, tuning.rho),
        rows=tuning.rows or 1,
        rho=tuning.rho,
        protection=request.protection,
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

    In squared stored units; for PCPL in units of n log Q, in which BIC's phi is log n and needs no
    sigma2.
    """
    draws, profile = preparation.draws, request.method == "pcpl"
    rate = effective_t(draws.eps_each, contest.score_range.width, draws.mechanism)
    return charges(
        request.penalty,
        unit=Fraction(1) if profile else request.clip**2,
        rows=tuning.rows,
        sigma2=Fraction(1) if profile else tuning.sigma2,
        units=len(space.units),
        false_inclusions=request.false_inclusions,
        rate=rate / contest.grid,
        mechanism=draws.mechanism,
    )


def select(
    request: SelectionRequest,
    preparation: Preparation,
    tuning: Tuning,
    space: Space,
    moments: Moments,
    *,
    progress: bool = False,
) -> Selection:
    """Draw a model for each part that the preparation opened for it."""
    problem = Problem(moments, tuning.rho)
    contest = contest_of(request, preparation, tuning, problem, moments)
    phi, psi = penalties(request, preparation, tuning, contest, space)
    priced = contest.priced(phi, psi, space)
    engine = ENGINES[preparation.engine](problem, space, priced, preparation.draws)
    drawn = tuple(engine.draw(part, progress=progress) for part in preparation.parts.draws)
    return Selection(drawn, phi, psi)
