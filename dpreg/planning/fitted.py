"""What looks would say of assumed rows: standard errors, and which coefficients have none.

The looks of a call are made of the rows that are assumed, `DRAWS` times, each with noise of its own
(`dpreg.looks.expected`); what is predicted is the median over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.looks.described import Described
from dpreg.looks.estimates import estimates
from dpreg.looks.expected import expected_looks
from dpreg.looks.families import Family
from dpreg.looks.plan import LookPlan, plan_looks
from dpreg.planning.looks import Asked
from dpreg.privacy.budget import Budget

__all__ = ["AskedFit", "Fitted", "Rows", "fitted"]

DRAWS: Final = 9
"""Releases that a prediction is the median of: a standard error moves by some 5% a release."""


@dataclass(frozen=True, slots=True)
class AskedFit(Asked):
    """The same of a call that fits a model.

    Attributes
    ----------
    others : int
        Stored columns beside those that have coefficients.
    noise : str or None
    """

    others: int = 0
    noise: str | None = None

    def planned(self, eps: float | Fraction) -> LookPlan:
        """Return the looks of a call that costs eps."""
        return plan_looks(
            self.columns,
            Budget(Fraction(eps), self.delta),
            self.protection,
            others=self.others,
            exclusive=self.exclusive,
            noise=self.noise,
        )

    def rows_needed(self, eps: float) -> float:
        """Return the least n at which "auto" looks at the rows."""
        return self.planned(eps).rows_needed


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that are assumed, and what they are rows of.

    Attributes
    ----------
    family : Family
    described : Described
    z : (m, D) array
        (1, x, y) in stored units.
    places : tuple of int
        Of the coefficients among those that are looked at, 0 the constant.
    names : tuple of str
    to_user : (k, k) and (k,) arrays
        As for `dpreg.looks.estimates.estimates`.
    """

    family: Family
    described: Described
    z: Floats
    places: tuple[int, ...]
    names: tuple[str, ...]
    to_user: tuple[Floats, Floats]

    def plain(self, rows: float, dispersion: float) -> Floats:
        """Return standard errors of the right model without privacy, in the user's units.

        Parameters
        ----------
        rows : float
        dispersion : float
            Of the family.
        """
        response = self.described.response
        columns = [0, *self.described.columns]
        x = self.z[:, [columns[place] for place in self.places]]
        beyond = self.z[:, list(self.described.offsets)] @ np.array(self.described.known)
        y = response[0] + response[1] * self.z[:, -1]
        times = np.ones(len(y))
        if self.described.trials is not None:
            trials = self.described.trials
            times = np.rint(trials.scale[0] + trials.scale[1] * self.z[:, trials.column])
        beta = np.zeros(x.shape[1])
        linear = not np.isfinite(self.family.limits[0])
        if not linear:
            share = float(y.mean()) / max(float(times.mean()), 1e-300)
            beta[0] = self.family.predictor(share) - float(np.mean(beyond))
        information = np.eye(len(beta))
        for _ in range(1 if linear else _STEPS):
            terms = self.family.terms(x @ beta + beyond)
            weight = times * terms.weight
            information = (x.T * weight) @ x
            step = np.linalg.pinv(information) @ (x.T @ (y - times * terms.mean))
            beta = beta + step / max(1.0, float(np.abs(x @ step).max()) / 4)
        if linear:
            dispersion = float(np.square(y - x @ beta).mean())
        scale = rows / len(self.z)
        T, _ = self.to_user
        covariance = dispersion / scale * T @ np.linalg.pinv(information) @ T.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))


_STEPS: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What is expected of coefficients, in the user's units; NaN where no interval is.

    Attributes
    ----------
    errors, sampling, privacy : (k,) arrays
        Standard errors, and their two parts.
    marks : tuple of str
        "", "wide" or "no interval", by coefficient.
    degrees : int or None
        Of the noise in the score.
    """

    errors: Floats
    sampling: Floats
    privacy: Floats
    marks: tuple[str, ...]
    degrees: int | None

    @property
    def missing(self) -> bool:
        """Whether a coefficient is expected to have no interval."""
        return "no interval" in self.marks


def fitted(asked: AskedFit, eps: float | Fraction, rows: Rows, n: int, each: int = 1) -> Fitted:
    """Predict what looks would say of a table.

    Parameters
    ----------
    asked : AskedFit
    eps : number
    rows : Rows
    n : int
        Rows of the table.
    each : int
        Rows of a person, where persons are protected.
    """
    plan = asked.planned(eps)
    if asked.protection.person is None:
        each = 1
    looks = expected_looks(plan, rows.family, rows.described, rows.z, n, each=each, draws=DRAWS)
    found = [estimates(one, rows.places, rows.names, rows.to_user) for one in looks]
    whole = np.array([np.diag(one.covariance) for one in found])
    sampled = np.array([np.diag(one.sampling) for one in found])
    none = np.isnan(whole).mean(axis=0) > 0.5
    wide = np.array([[name in one.marks for name in rows.names] for one in found]).mean(axis=0)
    total, sampling = (_median(part, none) for part in (whole, sampled))
    return Fitted(
        errors=np.sqrt(total),
        sampling=np.sqrt(np.minimum(sampling, total)),
        privacy=np.sqrt(np.maximum(total - sampling, 0.0)),
        marks=tuple(
            "no interval" if hidden else "wide" if often > 0.5 else ""
            for hidden, often in zip(none, wide, strict=True)
        ),
        degrees=plan.degrees,
    )


def _median(part: Floats, none: Bools) -> Floats:
    """Return the median over releases of what they show."""
    found = np.full(part.shape[1], np.nan)
    seen = np.logical_not(none)
    found[seen] = np.nanmedian(part[:, seen], axis=0)
    return found
