"""Rows that a plan assumes for a call, responses and all, and what least squares says of them.

Columns are those of `dpreg.planning.assumed`. A linear model's response is that of the stated
effects. A family's is drawn from the model with a fixed seed: effects, or an equal part of each
column in the linear predictor, whose middle is such that the mean response is as stated. Where
``like=`` has the response of a family, its own stands.

Tested in `tests/planning/test_glm.py` and `tests/planning/test_regression_plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from scipy.linalg import cholesky

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.looks.described import Described
from dpreg.looks.families import Family, Linear, family_of
from dpreg.planning.assumed import Assumed, of_formula, of_numbers
from dpreg.planning.facts import Facts
from dpreg.planning.sizes import Stated

__all__ = ["Rows", "rows_of"]

_SEED: Final = 36
_WORK: Final = (4096, 1 << 15)
"""Rows that are made up: so many at least, and more of a rare response."""
_EVENTS: Final = 400  # work: ones, or successes, that made-up rows should hold
_HALVINGS: Final = 60
_STEPS: Final = 12  # precision: of the fit without privacy
_FAR: Final = 60.0  # precision: beyond every linear predictor


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows that are assumed, and what they are rows of.

    Attributes
    ----------
    family : Family
    described : Described
    z : (m, D) array
        (1, x, y) in stored units.
    beta : (p + 1,) array or None
        Coefficients that responses were made with, in stored units, the intercept first; None
        where rows of another table have their own.
    places : tuple of int
        Of the coefficients among those that are looked at, 0 the constant.
    names : tuple of str
    to_user : (k, k) and (k,) arrays
        As for `dpreg.looks.law.estimates`.
    ratios : (p,) array
        Of each column looked at: its deviation given the others here, over the stated one.
    deviations : array
        Of all stored columns given the others, as stated or else as here.
    like : bool
        Whether they are rows of another table.
    """

    family: Family
    described: Described
    z: Floats = field(repr=False)
    beta: Floats | None = field(repr=False)
    places: tuple[int, ...]
    names: tuple[str, ...]
    to_user: tuple[Floats, Floats] = field(repr=False)
    ratios: Floats = field(repr=False)
    deviations: Floats = field(repr=False)
    like: bool

    def only(self, places: tuple[int, ...]) -> Rows:
        """Return the same rows for a model of some of the coefficients."""
        at = [self.places.index(place) for place in places]
        units = self.to_user[0][np.ix_(at, at)], self.to_user[1][at]
        names = tuple(self.names[i] for i in at)
        return replace(self, places=places, names=names, to_user=units)

    def plain(self, rows: float, scatter: float) -> Floats:
        """Return standard errors of the right model without privacy, in the user's units.

        Parameters
        ----------
        rows : float
        scatter : float
            Dispersion of a family; a linear model's is that of the rows.
        """
        described, linear = self.described, isinstance(self.family, Linear)
        x = self.z[:, [(0, *described.columns)[place] for place in self.places]]
        beyond = self.z[:, list(described.offsets)] @ np.array(described.known)
        y = described.response[0] + described.response[1] * self.z[:, -1]
        times, beta = _times(described, self.z), np.zeros(x.shape[1])
        if not linear:
            share = float(y.mean()) / max(float(times.mean()), 1e-300)
            beta[0] = self.family.predictor(share) - float(np.mean(beyond))
        information = np.eye(len(beta))
        for _ in range(1 if linear else _STEPS):
            terms = self.family.terms(x @ beta + beyond)
            information = (x.T * (times * terms.weight)) @ x
            step = np.linalg.pinv(information) @ (x.T @ (y - times * terms.mean))
            far = 1.0 if linear else max(1.0, float(np.abs(x @ step).max()) / 4)
            beta = beta + step / far
        if linear:
            scatter = float(np.square(y - x @ beta).mean())
        unit = self.to_user[0]
        covariance = scatter * len(self.z) / rows * unit @ np.linalg.pinv(information) @ unit.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))


def rows_of(facts: Facts, told: Stated, *, skewed: bool = False) -> Rows:
    """Assume rows for a call; `skewed` ones are of the second kind of `dpreg.planning.assumed`."""
    assumed = _assumed(facts, told, skewed=skewed)
    design, model, at = told.design, told.model, (0, *told.columns)
    if design is None or model is None:
        family: Family = Linear()
        described = Described(at[1:], levels=() if design is None else design.levels)
        if design is not None and not design.has_intercept:
            at = at[1:]
        y = assumed.response(told.beta, told.sigma)
        middle = float(np.mean(y) - assumed.x.mean(axis=0) @ told.beta)
        beta: Floats | None = np.append(middle, told.beta)
        unit = np.eye(len(at)) * float(facts.request.clip), np.zeros(len(at))
        units = unit if design is None else design.to_user_units(at)
    else:
        family = family_of(facts.family, design.response.hi)
        described, units = model.described(design), model.to_user_units(design, at)
        if assumed.own is None:
            y, beta = _responses(facts, told, family, described, assumed.x)
        else:
            y, beta = assumed.own, None
    deviations = assumed.stated()
    ratios = (assumed.deviations() / deviations)[[j - 1 for j in described.columns]]
    by_place = np.append(1.0, ratios)[-len(at) :]
    return Rows(
        family=family,
        described=described,
        z=np.column_stack([np.ones(len(y)), assumed.x, y]),
        beta=beta,
        places=tuple(range(len(described.columns) + 1))[-len(at) :],
        names=tuple(("Intercept", *told.labels)[j] for j in at),
        to_user=(units[0] * by_place, units[1]),
        ratios=ratios,
        deviations=deviations,
        like=assumed.like,
    )


def _assumed(facts: Facts, told: Stated, *, skewed: bool) -> Assumed:
    if told.design is None:
        given = {j - 1: sd for j, sd in told.given.items()}
        return of_numbers(len(told.beta), given, facts.correlation, skewed=skewed)
    least, mean = _WORK[0], facts.mean
    if facts.family:
        rare = min(mean, 1 - mean) if facts.family == "binomial" else mean
        least = int(min(max(_EVENTS / max(rare, 1 / _WORK[1]), least), _WORK[1]))
    correlation, like = facts.correlation, facts.like
    return of_formula(told.design, told.given, correlation, like, skewed=skewed, least=least)


def _times(described: Described, z: Floats) -> Floats:
    """Return the numbers of trials."""
    trials = described.trials
    if trials is None:
        return np.ones(len(z))
    return np.asarray(np.rint(trials.scale[0] + trials.scale[1] * z[:, trials.column]))


def _responses(
    facts: Facts, told: Stated, family: Family, described: Described, columns: Floats
) -> tuple[Floats, Floats]:
    """Return stored responses, drawn from the model that is supposed, and its coefficients."""
    if not facts.mean:
        raise ArgumentError("give mean, or rows in like= that have the response.")
    x = columns[:, [j - 1 for j in described.columns]]
    slopes = told.beta[[j - 1 for j in described.columns]] * described.response[1]
    if not told.names:
        covariance = np.cov(x.T).reshape(x.shape[1], x.shape[1])
        held = covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12)
        equal = np.full(x.shape[1], facts.spread / np.sqrt(x.shape[1]))
        slopes = np.linalg.solve(cholesky(held, lower=True).T, equal)
    eta = (x - x.mean(axis=0)) @ slopes
    if described.offsets:
        eta = eta + columns[:, [j - 1 for j in described.offsets]] @ np.array(described.known)
    reach = _FAR + float(np.abs(eta).max())
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = float(family.terms(eta + middle).mean.mean()) > facts.mean
        low, high = (low, middle) if above else (middle, high)
    mean, rng = family.terms(eta + low).mean, np.random.default_rng(_SEED)
    if family.name == "binomial":
        times = _times(described, np.column_stack([eta, columns]))
        y = rng.binomial(np.maximum(times, 0).astype(int), np.clip(mean, 0, 1)).astype(float)
    else:
        y = np.minimum(_counts(rng, mean, facts.scatter), family.cap)
    base, unit = described.response
    beta = np.append(low - float(x.mean(axis=0) @ slopes), slopes)
    return np.asarray((y - base) / unit), beta


def _counts(rng: np.random.Generator, mean: Floats, scatter: float) -> Floats:
    """Draw counts whose variance is `scatter` times the mean."""
    if scatter > 1:
        few = np.maximum(mean, 1e-12) / (scatter - 1)
        return rng.negative_binomial(few, 1 / scatter).astype(float)
    if scatter == 1:
        return rng.poisson(mean).astype(float)
    noise = rng.standard_normal(len(mean)) * np.sqrt(scatter * mean)
    return np.asarray(np.maximum(np.rint(mean + noise), 0.0))
