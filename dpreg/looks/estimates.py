"""From the last look to coefficients in the user's units, and which of them are marked.

Tested in `tests/looks/test_expected.py` and `tests/planning/test_fitted.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.looks.law import Fit, Law, fit, law, residual_variance
from dpreg.looks.loop import Seen
from dpreg.looks.tuning import TUNING

__all__ = ["NARROW", "NO_INTERVAL", "WIDE", "Estimates", "estimates"]

WIDE: Final = "wide: the fit without privacy may differ by more"
NARROW: Final = "narrow: rows far from the rest count less, the fit of all may differ by more"
NO_INTERVAL: Final = "too few rows to say"


class Estimates:
    """Coefficients of the columns of a model in the user's units; see `estimates`."""

    __slots__ = (
        "covariance",
        "found",
        "law",
        "marks",
        "params",
        "residual_variance",
        "sampling",
    )

    def __init__(
        self,
        found: Fit,
        law: Law,
        params: Floats,
        covariance: Floats,
        sampling: Floats,
        marks: Mapping[str, str],
        variance: float,
    ) -> None:
        self.found, self.law, self.marks = found, law, marks
        self.residual_variance = variance
        self.params, self.covariance, self.sampling = params, covariance, sampling

    @property
    def fields(self) -> dict[str, Any]:
        """What every kind of result makes of them."""
        privacy = self.covariance - self.sampling
        return {
            "coefficients": self.params,
            "covariance": self.covariance,
            "privacy_covariance": privacy,
            "sampling_errors": np.sqrt(np.maximum(np.diag(self.sampling), 0.0)),
            "privacy_errors": np.sqrt(np.maximum(np.diag(privacy), 0.0)),
            "weak": dict(self.marks),
        }


def estimates(
    seen: Seen,
    places: Sequence[int],
    names: Sequence[str],
    to_user: tuple[Floats, Floats],
    *,
    among: Sequence[int] | None = None,
) -> Estimates:
    """Estimate a model from the last look.

    Parameters
    ----------
    seen : Seen
    places : sequence of int
        Where its columns stand among those that were looked at, 0 the constant.
    names : sequence of str
    to_user : (m, m) and (m,) arrays
        T and t: coefficients b of stored columns become T b + t.
    among : sequence of int, optional
        The places of a larger model, beside all of which the coefficients are wanted.
    """
    own = law(seen.releases[-1], seen.family, seen.rows, seen.described)
    model = list(among or places)
    whole = model == list(range(len(own.score)))
    found = fit(own, None if whole else model)
    variance = residual_variance(seen.releases[-1], own, found)
    if among is not None:
        found = found.of([model.index(place) for place in places])
    transform, shift = to_user
    freedom = max(seen.rows, 1.0) / max(seen.rows - len(model), 1.0)
    sampling = transform @ found.sampling @ transform.T * freedom
    covariance = transform @ found.covariance @ transform.T + sampling * (1 - 1 / freedom)
    # An intercept in the user's units is a mixture of all coefficients: it is as hidden as they.
    share = np.abs(transform) > 0
    hidden = np.array([found.hidden[row].max() for row in share])
    lifted = np.array([found.guessed[row].max() for row in share])
    marks = {}
    for name, none, far in zip(names, hidden, lifted, strict=True):
        if none > TUNING.guess:
            marks[name] = NO_INTERVAL
        elif far > TUNING.guess or own.heavy:
            marks[name] = WIDE
        elif seen.releases[-1].together:
            marks[name] = NARROW
    unknown = hidden > TUNING.guess
    for array in (covariance, sampling):
        array[unknown, :] = np.nan
        array[:, unknown] = np.nan
    return Estimates(
        found, own, transform @ found.params + shift, covariance, sampling, marks, variance
    )
