"""Coefficients alone where rows are few: what `dp_ols(method="objective")` needs and gives."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from dpreg.api.context import CallFacts, exclusive_groups, released
from dpreg.errors import ArgumentError
from dpreg.estimation.few import PASSES, OpenFew, few_fit
from dpreg.estimation.held import can_hold, hold_located
from dpreg.formula.design import Design
from dpreg.grouped import Vectors
from dpreg.moments import Moments, read_moments
from dpreg.privacy.budget import Budget
from dpreg.privacy.objective import DRAWN
from dpreg.privacy.protection import Protection
from dpreg.results.regression import RegressionResults
from dpreg.sources.reader import Reader

__all__ = ["NO_ERRORS", "check_few", "objective_fit"]

NO_ERRORS: Final = (
    'No intervals are given: method="objective" spends all of eps on coefficients, and releases '
    "no moments to tell their errors from. Intervals need "
    'method="auto", and more rows or a larger eps where they would be wide.'
)
_PURE: Final = "delta was not needed, and is not spent."
_MOST_CELLS: Final = 1 << 26
"""Cells of the rows that are held at once."""
_LEAST_EPS: Final = Fraction(1, 2**30)
"""Of a row: with less, noise that fits in no float would be asked for."""


def check_few(
    design: Design, reader: Reader, cost: Budget, protection: Protection, passes: int
) -> None:
    """Refuse what cannot be fitted so, from public facts alone and before the charge.

    Parameters
    ----------
    design : Design
        Its bounds need not be known yet.
    reader : Reader
    cost : Budget
        What the coefficients may cost.
    protection : Protection
    passes : int
        Made before.
    """
    if not design.has_intercept:
        raise _refused(
            "needs an intercept, as it measures the response from its mean",
            'Leave out "- 1" or "+ 0", or use method="gram"',
        )
    if reader.persons is not None:
        raise _refused("takes no person", 'Use method="auto"')
    if not can_hold(reader):
        raise _refused(
            "holds the rows in this process, which does not read these",
            'Bring the columns here (.compute(), .toPandas()), or use method="auto"',
        )
    if cost.eps < _LEAST_EPS * protection.contributions:
        raise _refused("needs an eps of at least 2**-30 for each row of a person", "Raise eps")
    reader.require(passes + PASSES)
    rows = reader.source.rows if protection.n_is_public else None
    if (rows or 0) * len(design.columns) > _MOST_CELLS:
        raise _refused(
            f"holds up to {_MOST_CELLS:,} cells, and this table has more",
            'Use method="auto", which does better with so many rows',
        )


def _refused(why: str, mend: str) -> ArgumentError:
    return ArgumentError(f'method="objective" {why}. {mend}.')


def objective_fit(
    design: Design, columns: Sequence[int], reader: Reader, opened: OpenFew, facts: CallFacts
) -> RegressionResults:
    """Release coefficients of a model and write them in the user's units.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    reader : Reader
    opened : OpenFew
        Of the call's account, charged.
    facts : CallFacts
        Its rows and passes are filled in here.
    """
    public = facts.account.protection.n_is_public

    def read(vectors: Vectors) -> Moments:
        return read_moments(reader, vectors)[0]

    hold = partial(hold_located, reader, design)
    groups = exclusive_groups(design, range(len(design.columns)))
    found = few_fit(read, hold, design, groups, opened, public=public)
    facts = facts.after(reader)
    to_user, shift = design.to_user_units(columns)
    unknown = np.full(len(columns), np.nan)
    notes = [NO_ERRORS] if facts.budget.delta == 0 else [NO_ERRORS, _PURE]
    return released(
        RegressionResults,
        design,
        columns,
        facts,
        coefficients=to_user @ found.params[list(columns)] + shift,
        covariance=np.full((len(columns), len(columns)), np.nan),
        sampling_errors=unknown,
        privacy_errors=unknown,
        error_variance=None,
        explained=None,
        complete_rows=found.count,
        error_df=None if facts.rows is None else max(found.count - len(columns), 1.0),
        method="objective",
        noise=DRAWN,
        scaling="box",
        notes=(*facts.notes, *notes),
    )
