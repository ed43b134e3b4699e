"""What looks would say of assumed rows: standard errors, and which coefficients have none.

The looks of a call are made of the rows that are assumed, `DRAWS` times, each with noise of its own
(`dpreg.looks.expected`); what is predicted is the median over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.looks.described import Described
from dpreg.looks.estimates import NARROW, Estimates, estimates
from dpreg.looks.expected import expected_looks
from dpreg.looks.families import Family
from dpreg.looks.law import fit, law
from dpreg.looks.plan import LookPlan, plan_looks
from dpreg.looks.point import Point
from dpreg.looks.release import Release
from dpreg.planning.looks import Asked
from dpreg.privacy.budget import Budget

__all__ = ["DRAWS", "NONE", "AskedFit", "Fitted", "Rows", "fitted", "fitted_once", "told"]

NONE: Final = "no interval"
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
    beta : array or None
        Coefficients that responses were drawn by, in stored units.
    """

    family: Family
    described: Described
    z: Floats
    places: tuple[int, ...]
    names: tuple[str, ...]
    to_user: tuple[Floats, Floats]
    beta: Floats | None = None

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
        return NONE in self.marks


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
    found = [estimates(one, rows.places, rows.names, rows.to_user) for _, one in looks]
    return told(found, rows.names, plan.degrees)


def told(found: Sequence[Estimates], names: Sequence[str], degrees: int | None) -> Fitted:
    """Return the medians of what several releases show."""
    whole = np.array([np.diag(one.covariance) for one in found])
    sampled = np.array([np.diag(one.sampling) for one in found])
    none = np.isnan(whole).mean(axis=0) > 0.5
    wide = np.array(
        [[one.marks.get(name, NARROW) != NARROW for name in names] for one in found]
    ).mean(axis=0)
    total, sampling = (_median(part, none) for part in (whole, sampled))
    return Fitted(
        errors=np.sqrt(total),
        sampling=np.sqrt(np.minimum(sampling, total)),
        privacy=np.sqrt(np.maximum(total - sampling, 0.0)),
        marks=tuple(
            NONE if hidden else "wide" if often > 0.5 else ""
            for hidden, often in zip(none, wide, strict=True)
        ),
        degrees=degrees,
    )


def _median(part: Floats, none: Bools) -> Floats:
    """Return the median over releases of what they show."""
    found = np.full(part.shape[1], np.nan)
    seen = np.logical_not(none)
    found[seen] = np.nanmedian(part[:, seen], axis=0)
    return found


def fitted_once(asked: AskedFit, eps: float, rows: Rows, n: int) -> Fitted:
    """Predict one look on the unit scale that takes the whole budget: ``method="gram"``."""
    plan, x, y = asked.planned(eps), rows.z[:, :-1], rows.z[:, -1]
    sd = replace(plan, strength=plan.strength / plan.box_share).box_noise().sd
    d, scale = x.shape[1], n / len(x)
    left = float(np.square(y - x @ np.linalg.lstsq(x, y, rcond=None)[0]).mean())
    zero, unit = np.zeros(d - 1), np.eye(d - 1)
    information = scale * x.T @ x
    release = Release(
        point=Point(zero, unit, zero, 0.0, 1.0, left, zero, zero),
        information=information,
        score=scale * x.T @ y,
        information_sd=float(sd[0, 1]) if d > 1 else float(sd[0, 0]),
        score_sd=float(sd[0, d]),
        middle=None,
        middle_sd=0.0,
        trace=left * float(np.trace(information)),
        limits=(1.0, 1.0),
        share=1.0,
        together=True,
    )
    found = fit(law(release, rows.family, float(n)), rows.places)
    sampling = np.diag(found.sampling)
    privacy = np.maximum(np.diag(found.covariance) - sampling, 0.0)
    errors = np.sqrt(sampling + privacy)
    marks = ("",) * len(rows.places)
    return Fitted(errors, np.sqrt(sampling), np.sqrt(privacy), marks, plan.degrees)
