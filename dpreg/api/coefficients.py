"""What the results of every fit repeat, warnings before a fit, and the published alternatives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError, DpregWarning
from dpreg.estimation.gram import planned_noise
from dpreg.estimation.perturbed import release_sums, to_ball
from dpreg.estimation.scaling import RowScaling, row_scaling
from dpreg.formula.design import Design
from dpreg.moments import Moments
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.gram_sensitivity import layout
from dpreg.privacy.protection import Protection
from dpreg.request import SHARES, positive
from dpreg.results.claim import PrivacyClaim
from dpreg.results.regression import RegressionResults
from dpreg.sources import Chunk

__all__ = [
    "CallFacts",
    "UnitBallRows",
    "announce_wide_factors",
    "exclusive_groups",
    "perturbed_fit",
    "released",
    "share_of_bounds",
    "unit_ball_rows",
]

_R = TypeVar("_R", bound=RegressionResults)
_MANY_LEVELS = 20


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Public facts of the call that a result repeats.

    Attributes
    ----------
    formula : str
        The formula of the fitted model.
    fit : {"fixed", "split", "share"}
    budget : Budget
        As typed in the call.
    rows : int or None
        n where it is public, all rows of the table.
    passes : int
        How often the rows were gone through.
    bounds : mapping of str to str
        Column to "schema" or "private".
    account : Account
    notes : tuple of str
    whole : bool
        Whether all rows of a person count; see `PrivacyClaim`.
    """

    formula: str
    fit: str
    budget: Budget
    rows: int | None
    passes: int
    bounds: Mapping[str, str]
    account: Account
    notes: tuple[str, ...] = ()
    whole: bool = False

    @property
    def claim(self) -> PrivacyClaim:
        """What the result claims, once all is drawn."""
        return replace(PrivacyClaim.of(self.account), whole=self.whole)

    def after(self, rows: int | None, passes: int) -> CallFacts:
        """Return the facts, completed once the rows were read."""
        return replace(self, rows=rows, passes=passes)


def released(
    kind: type[_R], design: Design, columns: Sequence[int], facts: CallFacts, **fitted: Any
) -> _R:
    """Make a result of what was fitted and of the public facts that every fit repeats."""
    public = {
        "formula": facts.formula,
        "design_formula": design.formula,
        "schema": design.schema.to_dict(),
        "endog_names": design.response.name,
        "exog_names": tuple(design.columns[j].name for j in columns),
        "column_widths": np.array([design.columns[j].width for j in columns]),
        "fit": facts.fit,
        "nobs": facts.rows if facts.fit != "split" else None,
        "eps": facts.budget.eps,
        "delta": facts.budget.delta,
        "clip": design.clip,
        "center": design.center,
        "bounds": facts.bounds,
        "passes": facts.passes,
        "claim": facts.claim,
        "notes": facts.notes,
    }
    return kind(**(public | fitted))


def exclusive_groups(design: Design, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the groups of the model's 0/1 columns that belong to one factor."""
    chosen = set(columns)
    groups = [
        tuple(j for j in term.columns if j in chosen) for term in design.terms if term.exclusive
    ]
    return [group for group in groups if len(group) > 1]


def share_of_bounds(shares: Mapping[str, Any] | None, unbounded: tuple[str, ...]) -> Fraction:
    """Return the part of eps that buys the bounds of undeclared columns: `shares` as checked."""
    given = dict(shares or {})
    share = positive(given.pop("bounds", SHARES["bounds"]), "shares['bounds']")
    if given or (shares and not unbounded):
        raise ArgumentError("shares may name 'bounds', where the schema leaves some out.")
    if share >= 1:
        raise ArgumentError("shares['bounds'] must be below 1: the coefficients need the rest.")
    return share if unbounded else Fraction(0)


def announce_wide_factors(
    design: Design,
    rows: int | None,
    cost: Budget,
    protection: Protection,
    noise: str | None = None,
    *,
    stacklevel: int,
) -> None:
    """Warn, before the charge, of factors with too many levels for the rows and the budget.

    Too many are twenty or more that have, on average, fewer rows each than twice the standard
    deviation of the noise in a level's count: a public rule.

    Parameters
    ----------
    design : Design
    rows : int or None
        How many there are, or about how many, where that is public; without it there is no warning.
    cost : Budget
        Of the release of the moments.
    protection : Protection
    noise : str, optional
        As for `release_gram`.
    stacklevel : int
        As for `warnings.warn`.
    """
    factors = [t for t in design.terms if t.exclusive and len(t.columns) >= _MANY_LEVELS]
    if rows is None or not factors:
        return
    chosen = tuple(column for term in design.terms for column in term.columns)
    triangle = layout(chosen, exclusive_groups(design, chosen))
    sds = dict(zip(triangle.cells, planned_noise(triangle, cost, protection, noise), strict=True))
    for term in factors:
        place = chosen.index(term.columns[0])
        sd, levels = sds[place, place], len(term.columns) + triangle.intercept
        if rows < 2 * sd * levels:
            warnings.warn(
                f"{term.name} has {levels:,} levels for {rows:,} rows, about {rows / levels:,.0f} "
                f"each, and the noise in a level's count has a standard deviation of {sd:,.0f}: "
                "its coefficients will say little. Merge levels, or raise eps.",
                DpregWarning,
                stacklevel=stacklevel,
            )


@dataclass(frozen=True, slots=True)
class UnitBallRows:
    """A design's rows, brought into the unit ball; make it with `unit_ball_rows`.

    The public scaling acts on the stored columns, which lie in [-1, 1]; the constant column is the
    scaling's own. A row vector is (1, x, y), as `dpreg.estimation.perturbed.to_ball` makes it.
    """

    design: Design
    columns: tuple[int, ...]
    scaling: RowScaling

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""
        return self.design.types

    @property
    def size(self) -> int:
        """D: the constant that counts rows, the scaled columns and the response."""
        return len(self.columns) + 2

    def block(self, chunk: Chunk) -> NDArray[np.float64]:
        """Make the vectors of some rows."""
        rows = self.design.block(chunk)
        rows[rows[:, 0] == 0.0] = np.nan  # an incomplete row is excluded, constant included
        slopes = [j for j in self.columns if j != 0]
        return to_ball(*self.scaling.apply(rows[:, slopes], rows[:, -1]))


def unit_ball_rows(design: Design, columns: Sequence[int], scaling: str) -> UnitBallRows:
    """Settle the public scaling of a model's rows."""
    unit = np.ones(sum(j != 0 for j in columns))
    scaled = row_scaling(
        scaling,
        bounds=np.column_stack([-unit, unit]),
        mean=0 * unit,
        sd=unit,
        x_max=float(np.sqrt(max(len(unit), 1))),
        intercept=0 in columns,
    )
    return UnitBallRows(design, tuple(columns), scaled)


def perturbed_fit(
    rows: UnitBallRows,
    moments: Moments,
    facts: CallFacts,
    part: Part,
    *,
    method: str,
    noise: str,
) -> RegressionResults:
    """Fit by perturbed sufficient statistics: coefficients alone, without standard errors."""
    design, chosen, scaled = rows.design, rows.columns, rows.scaling
    fit = release_sums(moments, part, method=method, noise=noise)
    notes = [f"{method} releases coefficients alone; method='gram' gives standard errors too."]
    if scaled.affine:
        constant_first = scaled.unstandardise(fit.params)
        stored = constant_first if 0 in chosen else constant_first[1:]
        transform, shift = design.to_user_units(chosen)
        params = transform @ stored + shift
    else:
        params = fit.params
        notes.append(
            f"scaling {scaled.kind!r} divides each row by its own norm: the coefficients are those "
            "of the scaled rows, not of the columns in their own units."
        )
    unknown = np.full(len(chosen), np.nan)
    return released(
        RegressionResults,
        design,
        chosen,
        facts,
        column_widths=None,
        coefficients=params,
        covariance=np.full((len(chosen), len(chosen)), np.nan),
        sampling_errors=unknown,
        privacy_errors=unknown,
        error_variance=None,
        explained=None,
        error_df=None if facts.rows is None else float(facts.rows - len(chosen)),
        method=method,
        noise=noise,
        scaling=scaled.kind,
        notes=(*facts.notes, *notes),
    )
