"""From a design, exact moments and a budget to released coefficients in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpreg.api.coefficients import CallFacts, exclusive_groups, released
from dpreg.arrays import Floats
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import BELIEVED, GramFit, fit_gram, noise_norm, to_user_units
from dpreg.estimation.level_fit import LevelsFit
from dpreg.estimation.levels import fit_levels, hidden_levels
from dpreg.estimation.noisy_gram import NoisyGram
from dpreg.estimation.rest_level import WithRest
from dpreg.estimation.tuning import TUNING
from dpreg.formula.design import Design
from dpreg.moments import Moments
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.results.regression import RegressionResults

__all__ = ["joint_fit", "too_wide"]

_LOOKED_AT = 100
"""Columns of a factor from which on one release, level by level, does better than looks, which
know nothing of levels: their noise grows with the columns, and so does their time, with the cube.
At 500,000 rows of 100 levels both are as good."""
_LOOKED_AT_PURELY = 40
"""The same at delta = 0, where looks have more noise."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """A fit in the user's units, the standard errors of its two parts, and which columns are weak.

    Attributes
    ----------
    errors : pair of (d,) arrays
        From sampling, and from the noise.
    weak : dict of str to str
        Column names and why.
    """

    fit: GramFit | LevelsFit
    errors: tuple[Floats, Floats]
    mechanism: str
    weak: dict[str, str]


def joint_fit(
    design: Design,
    columns: Sequence[int],
    moments: Moments,
    facts: CallFacts,
    part: Part,
    noise: str | None = None,
) -> RegressionResults:
    """Release the moments of one model once, and fit it from what was released.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    moments : Moments
        Exact moments of the rows that may be read for this.
    facts : CallFacts
    part : Part
        What the release may cost.
    noise : {"gaussian", "matrix-laplace", "laplace"}, optional
        None takes the one with the least expected error, by a public rule.
    """
    chosen = tuple(columns)
    exclusive = exclusive_groups(design, chosen)
    wide = max(exclusive, key=len, default=())
    fit_of = _with_wide_factor if len(wide) >= TUNING.levels else _plain
    release = partial(release_gram, part=part, noise=noise)
    fitted = fit_of(design, chosen, exclusive, moments, facts.rows, release)
    fit = fitted.fit
    return released(
        RegressionResults,
        design,
        chosen,
        facts,
        coefficients=fit.beta,
        covariance=fit.cov,
        sampling_errors=fitted.errors[0],
        privacy_errors=fitted.errors[1],
        error_variance=fit.sigma2,
        explained=fit.rsquared,
        complete_rows=fit.nobs,
        error_df=fit.df_resid if facts.rows is not None else None,
        method="gram",
        noise=fitted.mechanism,
        scaling="box",
        ridged=fit.ridged,
        ridge=fit.ridge if fit.ridged else None,
        interval_method=fit.interval_method,
        interval_draws=fit.draws,
        weak=fitted.weak if fit.ridged else {},
    )


def too_wide(design: Design, cost: Budget) -> str:
    """Return why a factor is too wide to be looked at in stages; empty if none is. Public."""
    most = _LOOKED_AT if cost.delta else _LOOKED_AT_PURELY
    wide = max((t for t in design.terms if t.exclusive), key=lambda t: len(t.columns), default=None)
    if wide is None or len(wide.columns) < most:
        return ""
    return f"{wide.name} has so many levels that one look, level by level, has less noise"


def _plain(
    design: Design,
    columns: tuple[int, ...],
    exclusive: Sequence[tuple[int, ...]],
    moments: Moments,
    rows: int | None,
    release: Callable[..., NoisyGram],
) -> _Fitted:
    """Fit all columns as one matrix."""
    noisy = release(moments, columns, exclusive=exclusive)
    fit = to_user_units(
        fit_gram(noisy, rows=rows),
        *design.to_user_units(columns),
        response_width=design.response.width,
    )
    errors = np.sqrt(np.diag(fit.cov_sampling)), np.sqrt(np.diag(fit.cov_privacy))
    return _Fitted(fit, errors, noisy.mechanism, _weak(design, columns, noisy))


def _with_wide_factor(
    design: Design,
    columns: tuple[int, ...],
    exclusive: Sequence[tuple[int, ...]],
    moments: Moments,
    rows: int | None,
    release: Callable[..., NoisyGram],
) -> _Fitted:
    """Fit a model whose widest factor is solved for level by level.

    With an intercept the level that the coding leaves out is released too, as the last column.
    """
    wide = max(exclusive, key=len)
    levels = [columns.index(j) for j in wide]
    if 0 in columns:
        rest = len(moments.cells) - 1
        exclusive = [(*group, rest) if group == wide else group for group in exclusive]
        noisy = release(WithRest(moments, wide), (*columns, rest), exclusive=exclusive, sparse=True)
        levels.append(len(columns))
    else:
        noisy = release(moments, columns, exclusive=exclusive, sparse=True)
    fit = fit_levels(noisy, levels, rows=rows)
    fit = fit.in_user_units(
        *design.factors_to_user_units(columns), response_width=design.response.width
    )
    hidden = [place for place in hidden_levels(noisy, levels) if place < len(columns)]
    weak = {design.columns[columns[place]].name: "rare level" for place in hidden}
    return _Fitted(fit, fit.errors, noisy.mechanism, weak)


def _weak(design: Design, columns: Sequence[int], noisy: NoisyGram) -> dict[str, str]:
    """Name the columns that made a fit ridged, from released numbers, and say why.

    These are the columns whose released sum of squares about the mean is below the size at which
    an eigenvalue is believed; where all are, the noise is large for every column, and none is
    named.
    """
    squares = np.diag(noisy.cells)[:-1].copy()
    if noisy.triangle.intercept:
        squares -= noisy.cells[0, :-1] ** 2 / max(noisy.count, 1.0)
        squares[0] = np.inf
    hidden = np.flatnonzero(squares < BELIEVED * noise_norm(noisy))
    if len(hidden) >= len(columns) - noisy.triangle.intercept:
        return {}
    grouped = {j for group in exclusive_groups(design, columns) for j in group}
    named = [columns[int(place)] for place in hidden]
    return {
        design.columns[j].name: "rare level" if j in grouped else "hidden direction" for j in named
    }
