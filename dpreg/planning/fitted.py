"""What a call would say of assumed rows: standard errors, and which coefficients have none.

The call's own release is made of the rows that are assumed, `DRAWS` times, each with noise of its
own: the looks (`dpreg.looks.expected`), or the one release of ``method="gram"``. What is predicted
is the median over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.columns import LEAST_EPS
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram
from dpreg.looks.expected import Expected, expected_looks, expected_moments
from dpreg.looks.law import NARROW, estimates
from dpreg.looks.loop import Seen, look_at_chosen, point_of_chosen
from dpreg.looks.plan import LookPlan
from dpreg.planning.rows import Rows
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget

__all__ = ["DRAWS", "NONE", "WIDE", "Fitted", "fitted", "fitted_chosen", "fitted_once"]

NONE: Final = "no interval"
WIDE: Final = "wide"
DRAWS: Final = 9
"""Releases that a prediction is the median of: a standard error moves by some 5% a release."""
_MORE: Final = 45
"""The same where releases disagree. With 9, three of 69 cells of `tests/planning/test_fitted.py` at
which noise rules were planned .8 to 3 times as calls had it, or with intervals that few calls had;
python -m pytest -m audit tests/planning/test_fitted.py; 2026-11-24."""
_APART: Final = 2.0
"""Releases disagree where the middle half of a coefficient's errors spans such a factor."""
_SEED: Final = 37

Shown = tuple[Floats, Floats, Sequence[bool]]
"""Variances of both sources, of sampling alone, and which are marked, in the user's units."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What is expected of coefficients, in the user's units; NaN where no interval is.

    Attributes
    ----------
    names : tuple of str
    errors, sampling, privacy : (k,) arrays
        Standard errors, and their two parts.
    marks : tuple of str
        "", "wide" or "no interval", by coefficient.
    """

    names: tuple[str, ...]
    errors: Floats
    sampling: Floats
    privacy: Floats
    marks: tuple[str, ...]


def fitted(plan: LookPlan, rows: Rows, n: int) -> Fitted:
    """Predict what looks would say of a table of n rows."""
    found: list[Shown] = []
    for draws in (DRAWS, _MORE):
        looks = expected_looks(plan, rows.family, rows.described, rows.z, n, draws=draws)
        found = [_estimated(seen, rows, rows.places) for _, seen in looks]
        if _agree(found):
            break
    return _medians(found, rows.names)


def _agree(found: Sequence[Shown]) -> bool:
    """Whether releases say the same: all or none has an interval, and errors are alike."""
    whole = np.array([variance for variance, _, _ in found])
    hidden = np.isnan(whole).mean(axis=0)
    if np.any((hidden > 0) & (hidden < 1)):
        return False
    low, high = np.quantile(whole[:, hidden == 0], (0.25, 0.75), axis=0)  # by definition
    return bool((high <= _APART**2 * low).all())


def fitted_chosen(taken: Sequence[tuple[Expected, Seen]], rows: Rows, *, fresh: bool) -> Fitted:
    """Predict what is said of chosen columns: by looks at them, or from the looks that chose."""
    at = list(rows.places[1:])
    if not fresh:
        whole = range(len(rows.described.columns) + 1)
        return _medians([_estimated(s, rows, rows.places, whole) for _, s in taken], rows.names)
    columns = tuple(rows.described.columns[place - 1] for place in at)
    own = rows.described.only(columns)
    found = []
    for one, seen in taken:
        later = replace(one, described=own, plan=one.plan.at_chosen(len(columns)))
        point = point_of_chosen(seen, at)
        found.append(
            _estimated(look_at_chosen(later, seen, point, [0, *at]), rows, range(len(at) + 1))
        )
    return _medians(found, rows.names)


def fitted_once(
    plan: LookPlan, exclusive: Sequence[Sequence[int]], rows: Rows, n: int, noise: str | None
) -> Fitted:
    """Predict what one release of all moments would say: ``method="gram"``."""
    moments, places = expected_moments(rows.z, n), rows.places
    cost = Budget(max(plan.cost.eps, LEAST_EPS), plan.cost.delta)  # no call costs less
    found: list[Shown] = []
    for draw in range(DRAWS):
        account = Account(plan.protection, cost, np.random.default_rng([_SEED, draw]))
        part = account.line("coefficients", "gram release", cost)
        account.charge(None, "a plan")
        noisy = release_gram(moments, places, exclusive=exclusive, part=part, noise=noise)
        fit = fit_gram(noisy, rows=n)
        unit = rows.to_user[0]
        whole, sampled = (np.diag(unit @ part @ unit.T) for part in (fit.cov, fit.cov_sampling))
        found.append((whole, sampled, [False] * len(places)))
    return _medians(found, rows.names)


def _estimated(
    seen: Seen, rows: Rows, places: Sequence[int], among: Sequence[int] | None = None
) -> Shown:
    found = estimates(seen, places, rows.names, rows.to_user, among=among)
    marked = [found.marks.get(name, NARROW) != NARROW for name in rows.names]
    return np.diag(found.covariance), np.diag(found.sampling), marked


def _medians(found: Sequence[Shown], names: tuple[str, ...]) -> Fitted:
    """Return the medians of what several releases show."""
    whole, sampled, marked = (np.array(part) for part in zip(*found, strict=True))
    none = np.isnan(whole).mean(axis=0) > 0.5
    total, sampling = (_median(part, none) for part in (whole, sampled))
    sampling = np.minimum(sampling, total)
    wide = marked.mean(axis=0) > 0.5
    return Fitted(
        names=names,
        errors=np.sqrt(total),
        sampling=np.sqrt(sampling),
        privacy=np.sqrt(total - sampling),
        marks=tuple(
            NONE if hidden else WIDE if often else ""
            for hidden, often in zip(none, wide, strict=True)
        ),
    )


def _median(part: Floats, none: Bools) -> Floats:
    """Return the median over releases of what they show."""
    found = np.full(part.shape[1], np.nan)
    seen = np.logical_not(none)
    found[seen] = np.nanmedian(part[:, seen], axis=0)
    return found
