"""What a reader should know of staged coefficients, from public rules and released numbers.

A flag names the coefficients whose intervals it puts in doubt; without one, 95% intervals have been
seen to hold 93% to 97%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.staged.coefficients import Coefficients
from dpreg.staged.law import LookLaw

__all__ = ["Flag", "flags"]

_UNSEEN: Final = 0.2
"""Share of a coefficient's variance from directions that are noise, from where on it is flagged."""
_HEAVY: Final = 1.3
"""Mean square at the wide cut over that at the narrow one: 1.2 for normal residuals, 1.4 for
exponential ones. Beyond this even the wide cut moves the mean of skewed residuals noticeably, and
slopes where the spread changes with a column."""
_MOVED: Final = 0.25
"""Share of a coefficient's variance that allows for what cutting residuals may move, from where on
it is flagged: its interval then rests on how skewed residuals usually are."""
_SHORTENED: Final = 0.6
"""Mean squared weight of a row below which the fit is mostly one of the rows near the centre."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One remark.

    Parameters
    ----------
    kind : {"unseen", "heavy-residuals", "shortened-rows", "rows"}
    columns : tuple of int
        Places in the model of the coefficients it concerns.
    text : str
        A sentence for the summary.
    """

    kind: str
    columns: tuple[int, ...]
    text: str


def flags(
    released: LookLaw, fit: Coefficients, names: Sequence[str], *, needed: float
) -> tuple[Flag, ...]:
    """Return what to say of a fit.

    Parameters
    ----------
    released : LookLaw
    fit : Coefficients
    names : sequence of str
        Of the m columns.
    needed : float
        See `dpreg.looks.need.rows_needed`.
    """
    found = []
    everything = tuple(range(len(names)))
    if released.count < needed:
        found.append(
            Flag(
                "rows",
                everything,
                f"About {released.count:.0f} complete rows are too few for this budget, which "
                f"needs {needed:.0f}: most directions of the columns are hidden by the noise.",
            )
        )
    weak = tuple(int(j) for j in np.flatnonzero(fit.unresolved > _UNSEEN))
    if weak:
        listed = ", ".join(names[j] for j in weak)
        found.append(
            Flag(
                "unseen",
                weak,
                f"Weakly determined: {listed}. The noise hides a direction in which these columns "
                "hardly vary, or vary only together.",
            )
        )
    moved = _moved(released, fit)
    if moved:
        found.append(
            Flag(
                "heavy-residuals",
                moved,
                "Residuals have heavy tails, or are larger far from the centre, and the releases "
                "cut them. If they are skewed, the intercept moves; if their spread changes with a "
                "column, or the model is not linear, slopes move too. The "
                "intervals allow for what is usual, and may still miss the least squares line: "
                'compare method="gram", which cuts nothing within the declared bounds.',
            )
        )
    if released.weight < _SHORTENED:
        found.append(
            Flag(
                "shortened-rows",
                everything,
                f"Rows far from the centre were shortened: the mean squared weight is "
                f"{released.weight:.2f}. Where the model is not linear, the coefficients are those "
                "of the rows near the centre.",
            )
        )
    return tuple(found)


def _moved(released: LookLaw, fit: Coefficients) -> tuple[int, ...]:
    """Return the coefficients that cutting heavy-tailed residuals may have moved noticeably."""
    if np.isnan(released.heavy) or released.heavy > _HEAVY:
        return tuple(range(len(fit.params)))
    allowed = np.diag(fit.sampling) * released.moved / (1 + released.moved)
    return tuple(int(j) for j in np.flatnonzero(allowed > _MOVED * np.diag(fit.covariance)))
