r"""The chance that a private selection finds effects of given sizes, from its law. No data.

Setting
-------
Stored units: columns and response in [-1, 1] (`dpreg.columns`). Term j lowers the residual sum of
squares of any model by about D_j when it enters. Assumed: **the terms are uncorrelated given what
is kept** (or the variance given the rest is used, which is the least that D_j may come from), the
errors are normal with variance sigma2, the radius does not bind, and nothing is clipped. Then

    D_j = |beta_j sqrt((n - d) v_j) + sigma Z_j|^2 + sigma2 chi2_(d_j - 1),   Z_j standard normal,

v_j the variance of the column, d_j the columns of the term, d those of all effects; useless terms
have D_j = sigma2 chi2_(d_j). Each term is charged c_j = psi + phi d_j, so model M scores
sum_{j in M} (c_j - D_j) plus a constant, and a mechanism of rate t draws from these scores.

The mechanisms' laws
--------------------
exponential
    exp(-t S) factors over terms: each is in with chance 1 / (1 + exp(t (c_j - D_j))), alone.
permute-and-flip, laplace
    do not factor. The sets E of effects are listed, and the u useless terms counted: all models
    with effects E and s useless terms share one score, and there are C(u, s) of them. With p, f, H
    as in `dpreg.selection.probabilities`, P(E, s) = C(u, s) int f / H prod H^copies, one integral.
    The useless terms' D_j enter as one number d0, that for which a coin of the exponential
    mechanism has the same chance, 1 / (1 + exp(t (c - d0))) = E 1 / (1 + exp(t (c - D))).

The mean over Z is a mean over the points of a Kronecker lattice (deterministic; the same call gives
the same answer). Effects whose t |D_j - c_j| exceeds 40 at every point are settled and not listed.

A bound that needs no law
-------------------------
For permute-and-flip and exponential, P(M) / P(M') <= exp(-t (S(M) - S(M'))) if S(M) >= S(M').
(Exponential: equality. Permute-and-flip: P(M) = p int prod_{i != M} (1 - u p_i) du, and the
integrand for M is at most that for M' where p <= p'.) Pair each model without j with the one that
has it besides: P(j out) <= exp(-t (D_j - c_j)). So k effects are all found with chance at least
1 - alpha' where D_j >= c_j + ln(k / alpha') / t for each: with D_j at its mean this is

    n beta_j^2 v_j >= c_j + ln(k / alpha') / t,

the rule of thumb that `rule_rows` solves for n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtri, gammaln, ndtri

from dpreg.arrays import Floats, Ints
from dpreg.selection.probabilities import panels

__all__ = ["Detection", "Effects", "detect", "rule_rows"]


_POINTS: Final = 256
_FAR: Final = 40.0  # precision: exp(-40) is no chance
_DEEPEST: Final = 700.0


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of a plan, one a term, in stored units.

    Attributes
    ----------
    strength : float64 array, shape (m,)
        sum over the term's columns of beta^2 v: the fall of the residual sum of squares per row.
    columns : int array, shape (m,)
        d_j.
    useless : int array, shape (u,)
        Columns of each term without an effect.
    sigma2 : float
        Residual variance.
    """

    strength: Floats
    columns: Ints
    useless: Ints
    sigma2: float


@dataclass(frozen=True, slots=True)
class Detection:
    """What the mechanism's law predicts.

    Attributes
    ----------
    each : float64 array, shape (m,)
        Chance that the drawn model holds each effect.
    all : float
        Chance that it holds all of them.
    right : float
        Chance that it holds all of them and nothing else.
    useless : float
        Expected number of terms without an effect in it.
    """

    each: Floats
    all: float
    right: float
    useless: float


def detect(
    effects: Effects, *, rows: float, rate: float, phi: float, psi: float, mechanism: str
) -> Detection:
    """Predict the drawn model; see the module's docstring.

    Parameters
    ----------
    effects : Effects
    rows : float
        Rows that the selection reads.
    rate : float
        t, per squared stored unit.
    phi, psi : float
        Charge per column and per term, in squared stored units.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    """
    falls = _falls(effects, rows)
    gain = rate * (falls - (psi + phi * effects.columns))  # (L, m): score saved by each effect
    loss = _useless_losses(effects, rate, phi, psi)
    if mechanism == "exponential":
        chance = _coin(gain)
        false = _coin(-loss)
        every = chance.prod(axis=1)
        none = float(np.exp(np.log1p(-np.minimum(false, 1 - 2.0**-53)).sum()))
        return Detection(
            chance.mean(axis=0), float(every.mean()), float(every.mean()) * none, float(false.sum())
        )
    return _listed(gain, loss, mechanism)


def rule_rows(effects: Effects, *, rate: float, phi: float, psi: float, miss: float) -> float:
    """Return the n of the rule of thumb: all effects found with chance about 1 - `miss`."""
    wanted = psi + phi * effects.columns + math.log(len(effects.strength) / miss) / rate
    return float((wanted / effects.strength).max())


def _coin(gain: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(np.clip(-gain, -_DEEPEST, _DEEPEST))))


def _lattice(dimensions: int) -> Floats:
    """Return points of the unit cube: Kronecker's, with powers of the generalised golden ratio."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, _POINTS + 1)[:, None] * steps) % 1.0)


def _falls(effects: Effects, rows: float) -> Floats:
    """D_j at each point of the lattice, (L, m)."""
    m = len(effects.strength)
    z = ndtri(_lattice(m)) if m else np.zeros((_POINTS, 0))
    sigma = math.sqrt(effects.sigma2)
    # The other columns of the model, fitted on the same rows, take that many dimensions.
    seen = max(rows - float(effects.columns.sum()), 0.0)
    moved = np.sqrt(seen * effects.strength) + sigma * z
    return np.asarray(moved**2 + effects.sigma2 * (effects.columns - 1))


def _useless_losses(effects: Effects, rate: float, phi: float, psi: float) -> Floats:
    """Return t (c - d0) of each term without an effect, (u,): the price of its entry."""
    above = 1 - (np.arange(_POINTS) + 0.5) / _POINTS
    out = np.empty(len(effects.useless))
    for columns in np.unique(effects.useless):
        chi: Floats = np.asarray(chdtri(float(columns), above), dtype=np.float64)
        cost = rate * (psi + phi * float(columns) - effects.sigma2 * chi)
        out[effects.useless == columns] = _price(float(_coin(-cost).mean()))
    return out


def _price(chance: float) -> float:
    """Return the loss of which a coin has this chance."""
    if 0 < chance < 1:
        return math.log((1 - chance) / chance)
    return _DEEPEST if chance <= 0 else -_DEEPEST


def _listed(gain: Floats, loss: Floats, mechanism: str) -> Detection:
    """Permute-and-flip and laplace: list the contested effects, count the useless terms."""
    points = len(gain)
    sure_in, sure_out = (gain > _FAR).all(axis=0), (gain < -_FAR).all(axis=0)
    open_ = np.flatnonzero(~(sure_in | sure_out))
    held = (np.arange(2 ** len(open_))[:, None] >> np.arange(len(open_))) & 1 == 1
    classes, log_copies, score = _useless_classes(loss)
    # Scores over (L, effects sets x useless classes), least zero.
    s = -(gain[:, open_] @ held.T.astype(float))
    total = (s[:, :, None] + score).reshape(points, -1)
    copies = np.tile(log_copies, len(held))
    total -= total.min(axis=1, keepdims=True)
    chances = _class_law(total, copies, mechanism).reshape(points, len(held), len(classes)).mean(0)
    by_set, by_class = chances.sum(axis=1), chances.sum(axis=0)
    each = sure_in.astype(float)
    each[open_] = by_set @ held
    found = float(by_set[-1]) if not sure_out.any() else 0.0
    right = float(chances[-1, 0]) if not sure_out.any() else 0.0
    return Detection(each, found, right, float(by_class @ classes))


def _useless_classes(loss: Floats) -> tuple[Floats, Floats, Floats]:
    """Sizes s, log C(u, s) and scores of the sets of useless terms, as far as they have weight.

    Terms of different width are counted as terms of one loss, that of the same mean chance.
    """
    u = len(loss)
    if u == 0:
        return np.zeros(1), np.zeros(1), np.zeros(1)
    chance = float(_coin(-loss).mean())
    typical = _price(chance) if 0 < chance < 1 else float(loss.mean())
    mean = u * chance
    top = min(u, math.ceil(mean + 8 * math.sqrt(mean) + 4))  # precision
    s = np.arange(top + 1.0)
    return s, gammaln(u + 1) - gammaln(s + 1) - gammaln(u - s + 1), s * typical


def _class_law(score: Floats, log_copies: Floats, mechanism: str) -> Floats:
    """Chance of each class of equal models, (L, C), by one quadrature; see `probabilities`."""
    out = np.empty_like(score)
    step = max(1, 2**21 // (score.shape[1] * _POINTS))
    for start in range(0, len(score), step):
        part = score[start : start + step]
        law = _flip_law if mechanism == "permute-and-flip" else _laplace_law
        out[start : start + step] = law(part, log_copies)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


_FLIP: Final = panels(np.r_[0.0, 4.0 ** np.arange(-14, 0), 0.5, 1.0], 5)  # precision
_LAPLACE: Final = panels(np.r_[np.arange(-40.0, -8, 2), np.arange(-8, 40.5)], 4)  # precision


def _flip_law(score: Floats, log_copies: Floats) -> Floats:
    u, weights = _FLIP
    p = np.exp(-np.minimum(score, _DEEPEST))
    log_keep = np.log1p(-p[:, :, None] * u)
    others = (np.exp(log_copies)[:, None] * log_keep).sum(axis=1, keepdims=True) - log_keep
    return np.asarray(np.exp(log_copies - score) * (np.exp(others) @ weights))


def _laplace_law(score: Floats, log_copies: Floats) -> Floats:
    x, weights = _LAPLACE
    gap = x - np.minimum(score, _DEEPEST)[:, :, None]
    below = np.log1p(-0.5 * np.exp(np.minimum(gap, 0.0)))
    log_keep = np.where(gap > 0, math.log(0.5) - gap, below)
    density = math.log(0.5) - np.abs(gap)
    others = (np.exp(log_copies)[:, None] * log_keep).sum(axis=1, keepdims=True) - log_keep
    return np.asarray(np.exp(log_copies) * (np.exp(others + density) @ weights))
