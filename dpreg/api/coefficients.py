"""From a design, exact moments and a budget to released coefficients in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram, to_user_units
from dpreg.estimation.perturbed import adassp, ssp
from dpreg.estimation.scaling import row_scaling
from dpreg.formula.design import Design
from dpreg.moments import Moments
from dpreg.privacy.budget import Budget
from dpreg.results.claim import PrivacyClaim
from dpreg.results.regression import RegressionResults
from dpreg.sources import Source

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["CallFacts", "exclusive_groups", "joint_fit", "perturbed_fit"]


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
    bounds : mapping of str to str
        Column to "schema" or "private".
    claim : PrivacyClaim
    notes : tuple of str
    """

    formula: str
    fit: str
    budget: Budget
    rows: int | None
    bounds: Mapping[str, str]
    claim: PrivacyClaim
    notes: tuple[str, ...] = ()


def joint_fit(
    design: Design,
    columns: Sequence[int],
    moments: Moments,
    facts: CallFacts,
    *,
    cost: Budget,
    noise: str | None = None,
    rng: Generator | None = None,
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
    cost : Budget
        What the release may cost.
    noise : {"gaussian", "knorm", "laplace"}, optional
        None takes the one with the least expected error, by a public rule.
    """
    claim, chosen = facts.claim, tuple(columns)
    noisy = release_gram(
        moments,
        chosen,
        exclusive=exclusive_groups(design, chosen),
        eps=cost.eps,
        delta=cost.delta,
        neighbors=claim.neighbors,
        contributions=claim.contributions,
        noise=noise,
        rng=rng,
    )
    fitted = fit_gram(noisy, rows=facts.rows)
    fitted = to_user_units(
        fitted, *design.to_user_units(chosen), response_width=design.response.width
    )
    return _released(
        design,
        chosen,
        facts,
        coefficients=fitted.beta,
        covariance=fitted.cov,
        se_sampling=np.sqrt(np.diag(fitted.cov_sampling)),
        se_privacy=np.sqrt(np.diag(fitted.cov_privacy)),
        residual_variance=fitted.sigma2,
        r_squared=fitted.rsquared,
        nobs=facts.rows if facts.fit != "split" else None,
        complete_rows=fitted.nobs,
        residual_df=fitted.df_resid if facts.rows is not None else None,
        method="gram",
        noise=noisy.mechanism,
        scaling="box",
        ridged=fitted.ridged,
        ridge=fitted.ridge if fitted.ridged else None,
        interval_method=fitted.interval_method,
        interval_draws=fitted.draws,
        column_widths=np.array([design.columns[j].width for j in chosen]),
        notes=facts.notes,
    )


def _released(
    design: Design, columns: Sequence[int], facts: CallFacts, **fitted: Any
) -> RegressionResults:
    """Make a result of what was fitted and of the public facts that every fit repeats."""
    return RegressionResults(
        formula=facts.formula,
        design_formula=design.formula,
        schema=design.schema.to_dict(),
        endog_names=design.response.name,
        exog_names=tuple(design.columns[j].name for j in columns),
        fit=facts.fit,
        eps=facts.budget.eps,
        delta=facts.budget.delta,
        clip=design.clip,
        center=design.center,
        bounds=facts.bounds,
        claim=facts.claim,
        design=design,
        **fitted,
    )


def exclusive_groups(design: Design, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the groups of the model's 0/1 columns that belong to one factor."""
    chosen = set(columns)
    groups = [
        tuple(j for j in term.columns if j in chosen) for term in design.terms if term.exclusive
    ]
    return [group for group in groups if len(group) > 1]


def perturbed_fit(
    design: Design,
    columns: Sequence[int],
    source: Source,
    facts: CallFacts,
    *,
    method: str,
    noise: str,
    scaling: str,
    cost: Budget,
    rng: Generator | None = None,
) -> RegressionResults:
    """Fit by perturbed sufficient statistics: coefficients alone, without standard errors.

    The public scaling acts on the stored columns, which lie in [-1, 1]; the constant column is the
    scaling's own.
    """
    chosen = tuple(columns)
    slopes = [j for j in chosen if j != 0]
    blocks = list(design.blocks(source))
    rows = np.concatenate(blocks) if blocks else np.empty((0, len(design.columns) + 1))
    rows[rows[:, 0] == 0.0] = np.nan  # an incomplete row counts for nothing, constant included
    unit = np.ones(len(slopes))
    scaled = row_scaling(
        scaling,
        bounds=np.column_stack([-unit, unit]),
        mean=0 * unit,
        sd=unit,
        x_max=float(np.sqrt(max(len(slopes), 1))),
        intercept=0 in chosen,
    )
    fit = {"ssp": ssp, "adassp": adassp}[method](
        *scaled.apply(rows[:, slopes], rows[:, -1]),
        eps=cost.eps,
        delta=cost.delta,
        noise=noise,
        neighbors=facts.claim.neighbors,
        contributions=facts.claim.contributions,
        rng=rng,
    )
    notes = [f"{method} releases coefficients alone; method='gram' gives standard errors too."]
    if scaled.affine:
        constant_first = scaled.unstandardise(fit.params)
        stored = constant_first if 0 in chosen else constant_first[1:]
        transform, shift = design.to_user_units(chosen)
        params = transform @ stored + shift
    else:
        params = fit.params
        notes.append(
            f"scaling {scaling!r} divides each row by its own norm: the coefficients are those of "
            "the scaled rows, not of the columns in their own units."
        )
    unknown = np.full(len(chosen), np.nan)
    return _released(
        design,
        chosen,
        facts,
        coefficients=params,
        covariance=np.full((len(chosen), len(chosen)), np.nan),
        se_sampling=unknown,
        se_privacy=unknown,
        residual_variance=None,
        r_squared=None,
        nobs=facts.rows,
        residual_df=None if facts.rows is None else float(facts.rows - len(chosen)),
        method=method,
        noise=noise,
        scaling=scaling,
        notes=(*facts.notes, *notes),
    )
