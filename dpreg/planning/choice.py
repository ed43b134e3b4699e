r"""The chance that a staged choice reports effects of given sizes, in closed form. No data.

The looks are gone through on made-up rows without drawing noise (`dpreg.staged.predict`), which
gives the law g = K beta + N(0, W) that terms will be chosen from. With V_k the covariance of term
k's d_k coefficients among the terms with an effect, what k explains is

    D_k ~ chi2_(d_k) about lambda_k = beta_k' V_k^-1 beta_k,

and k enters the best model where D_k is above its price. It is reported if no rival stands near:
the best model with another term u in its place has to cost more by the margin 2 ln(1/alpha). Let u
explain a share r^2 of k's direction. Given D_k = m^2,

    D_u = (1 - r^2) chi2_(d_u) about (r m + s_u)^2 / (1 - r^2),

s_u^2 = lambda_u what u explains by itself; u is not a rival where it is in the model beside k, that
is where what it explains by itself is above its price. So

    P(k reported) = E[ D_k > price_k;  prod_u P(D_u < D_k - price_k + price_u - margin, or u in) ],

the mean over D_k, at its quantiles. Terms are taken as independent of each other given these: the
chance of all of them is the product. Rivals of two terms are left out.

Against simulated choices the chance of each was within .06 where columns are uncorrelated, and
within .10 at a correlation of .5. The guard has since taken for rivals only models beside which k
gains less than its price (`dpreg.staged.choice.guard`): where several effects lie near their prices
more are reported than this predicts.

Tested in `tests/planning/test_staged_plan.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import chdtr, chdtri, gammaincinv, ndtri

from dpreg.arrays import Floats
from dpreg.planning.detection import Detection
from dpreg.staged.choice.guard import guard_margin
from dpreg.staged.choice.prices import prices
from dpreg.staged.law import LookLaw, solved

__all__ = ["Gains", "gains", "reported"]

_POINTS: Final = 256
_FINE: Final = 8192
_LEAST: Final = 1e-9
_MOST_ALIKE: Final = 0.999


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """What terms explain, by a predicted law.

    Attributes
    ----------
    strength : (q,) array
        lambda of each term on offer; 0 without an effect.
    shares : (k, q) array
        r^2: what each term explains of the direction of each effect.
    prices : (q,) array
    sizes : (q,) array
        Columns of each.
    margin : float
    """

    strength: Floats
    shares: Floats
    prices: Floats
    sizes: Floats
    margin: float

    def stated(self, ratios: Floats, units: tuple[tuple[int, ...], ...]) -> Gains:
        """Return the gains where columns vary by 1/ratio of what they do in the assumed rows.

        Parameters
        ----------
        ratios : (p,) array
            Standard deviations given the others, assumed over stated.
        units : tuple of tuples of int
            As for `gains`.
        """
        own = [float(np.mean(ratios[[j - 1 for j in unit]] ** -2)) for unit in units]
        return replace(self, strength=self.strength * np.array(own))

    @property
    def reach(self) -> Floats:
        """What each effect has to gain: its price, or the margin above the likely best rival."""
        effects = len(self.shares)
        rivals = max(len(self.prices) - effects, 1)
        best = self.margin + 2 * float(gammaincinv(0.5, 0.5 ** (1 / rivals)))
        return np.maximum(self.prices[:effects], best)

    def rows_for(self, chance: float) -> float:
        """Return by how much rows must grow for every effect to be found with about `chance`.

        A rule of thumb: lambda >= (root(reach) + z)^2, z the normal quantile of the chance of one
        of them. lambda grows with the rows, and where noise matters faster.
        """
        effects = len(self.shares)
        z = float(ndtri(chance ** (1 / effects)))
        wanted = (np.sqrt(self.reach) + max(z, 0.0)) ** 2
        return float((wanted / np.maximum(self.strength[:effects], _LEAST)).max())


def gains(
    law: LookLaw,
    beta: Floats,
    units: tuple[tuple[int, ...], ...],
    effects: int,
    false_inclusions: float,
) -> Gains:
    """Return what terms explain.

    Parameters
    ----------
    law : LookLaw
        As expected: see `dpreg.staged.predict.predict_fit`, with ``choosing=True``.
    beta : (p,) array
        True coefficients of the stored columns.
    units : tuple of tuples of int
        The columns of each term on offer, from 1; those with an effect first.
    effects : int
        How many of them have one.
    false_inclusions : float
    """
    precision = law.k.T @ solved(law.covariance, law.k)
    offered = {j for unit in units for j in unit}
    kept = [j for j in range(len(precision)) if j not in offered]
    within = [j for unit in units[:effects] for j in unit]
    truth = np.append(0.0, beta)
    strength, shares = np.zeros(len(units)), np.zeros((effects, len(units)))
    for k, unit in enumerate(units[:effects]):
        own = list(unit)
        left = _partial(precision, kept + [j for j in within if j not in own])
        direction = left[:, own] @ truth[own]
        strength[k] = float(truth[own] @ direction[own])
        if strength[k] <= 0:
            continue
        for u in range(effects, len(units)):
            at = list(units[u])
            block = left[np.ix_(at, at)]
            explained = float(direction[at] @ solved(block, direction[at]))
            shares[k, u] = min(max(explained / strength[k], 0.0), _MOST_ALIKE)
    return Gains(
        strength=strength,
        shares=shares,
        prices=prices([len(unit) for unit in units], false_inclusions, law.degrees),
        sizes=np.array([float(len(unit)) for unit in units]),
        margin=guard_margin(false_inclusions),
    )


def reported(found: Gains) -> Detection:
    """Predict what a choice reports."""
    effects = len(found.shares)
    each = np.array([_chance(found, k, found.shares[k]) for k in range(effects)])
    useless = _useless(found, effects)
    every = float(np.prod(each))
    return Detection(each, every, every * math.exp(-useless), useless)


def _partial(precision: Floats, rest: list[int]) -> Floats:
    """Return the precision of columns with `rest` projected out."""
    block = precision[np.ix_(rest, rest)]
    return np.asarray(precision - precision[:, rest] @ solved(block, precision[rest]))


def _chance(found: Gains, k: int, shares: Floats) -> float:
    """Return P(term k is reported)."""
    price, strength, sizes = found.prices, found.strength, found.sizes
    gained = _quantiles(float(sizes[k]), float(strength[k]))
    clear = np.where(gained > price[k], 1.0, 0.0)
    seen: dict[tuple[float, float, float], Floats] = {}
    for u in range(len(sizes)):
        if u == k:
            continue
        key = (float(sizes[u]), round(float(strength[u]), 9), round(float(shares[u]), 6))
        if key not in seen:
            reach = gained - price[k] + price[u] - found.margin
            seen[key] = _no_rival(gained, reach, *key, float(price[u]))
        clear = clear * seen[key]
    return float(clear.mean())


def _no_rival(
    gains: Floats, reach: Floats, size: float, strength: float, share: float, price: float
) -> Floats:
    """Return P(D_u < reach, or u is in the model) given each gain m^2 of the term."""
    left = 1 - share
    around = (np.sqrt(share * gains) + math.sqrt(strength)) ** 2 / left
    below = _below(np.maximum(reach, 0.0) / left, size, around)
    alone = 1 - _below(np.array([price]), size, np.array([strength]))
    return np.asarray(below + (1 - below) * alone)


def _below(x: Floats, size: float, around: Floats) -> Floats:
    """Return P(chi2_size about `around` < x)."""
    central = around < _LEAST
    found = np.where(central, chdtr(size, x), 0.0)
    if not central.all():
        from scipy.stats import ncx2  # slow to import, and seldom needed

        found = np.where(central, found, ncx2.cdf(x, size, np.maximum(around, _LEAST)))
    return np.asarray(np.nan_to_num(found))


def _quantiles(size: float, strength: float) -> Floats:
    """Return the quantiles of chi2_size about `strength` at midpoints."""
    if strength < _LEAST:
        return _useless_gains(size)
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    if size == 1:
        return np.asarray((math.sqrt(strength) + ndtri(places)) ** 2)
    from scipy.stats import ncx2  # slow to import, and seldom needed

    return np.asarray(ncx2.ppf(places, size, strength))


@lru_cache(maxsize=64)
def _useless_gains(size: float) -> Floats:
    """Return finer quantiles of chi2_size: what matters lies far out."""
    return np.asarray(chdtri(size, (np.arange(_FINE) + 0.5) / _FINE))


def _useless(found: Gains, effects: int) -> float:
    """Return the expected number of useless terms that are reported."""
    total, sizes = 0.0, found.sizes[effects:]
    for size in np.unique(sizes):
        alike = effects + np.flatnonzero(sizes == size)
        total += len(alike) * _chance(found, int(alike[0]), np.zeros(len(found.sizes)))
    return total
