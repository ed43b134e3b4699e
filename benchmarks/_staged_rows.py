"""The staged release in fast floats, with seeded noise: for coverage studies, never private.

Rows and moments are floats here, where dpreg's are integers; the rules between looks are dpreg's
own (`dpreg.staged`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpreg.staged.again import locate_again
from dpreg.staged.clips import allowed, heaviness_of, open_clips, open_early, spread_sums, wide_cut
from dpreg.staged.law import LookLaw, law
from dpreg.staged.locate import Located, locate, noise_unit
from dpreg.staged.predict import located_rows
from dpreg.staged.released import Coordinates, NoisyLook, Tail, box
from dpreg.staged.tails import NORMAL, Heaviness

SHARES = {True: (0.07, 0.15, 0.69, 0.05, 0.04), False: (0.15, 0.20, 0.56, 0.05, 0.04)}
"""Of the looks, the tail and the squares: of mu^2 with Gaussian noise, of eps without."""
TAIL = 0.05


@dataclass(frozen=True)
class Setting:
    """Public facts of one run."""

    eps: float
    delta: float = 0.0
    neighbors: str = "replace-one"
    contributions: int = 1
    groups: int = 0
    levels: tuple[int, ...] = ()
    """Columns that are 0/1 columns of factors."""
    whole: float = 1.0
    """Share of eps, or of mu^2, that these looks have together."""

    def strength(self, share: float) -> float:
        share *= self.whole
        total = gdp(self.eps, self.delta) * math.sqrt(share) if self.delta else self.eps * share
        return total / self.contributions


@dataclass
class Run:
    looks: list[NoisyLook] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    law: LookLaw | None = None
    tail: Tail | None = None

    def choosing(self) -> LookLaw:
        """The law that terms are chosen from."""
        assert self.tail is not None
        tail = replace(self.tail, heaviness=None)
        return law(self.looks[-1], self.located[0].count, tail)


@lru_cache(None)
def gdp(eps: float, delta: float) -> float:
    """The largest mu whose Gaussian mechanism is (eps, delta)-DP (Balle and Wang 2018)."""

    def over(mu: float) -> float:
        first = norm.cdf(-eps / mu + mu / 2)
        return float(first - math.exp(eps + norm.logcdf(-eps / mu - mu / 2)) - delta)

    return float(brentq(over, 1e-6, 60))


def gamma(radius: float, expected: float) -> float:
    """Weight of the response in the Gaussian norm, at |(c, cu)| <= radius^(1/2)."""
    if expected < 1e-9:
        return radius
    return (math.sqrt(1 + 8 * expected * radius) - 1) / (4 * expected)


def alpha(radius: float, expected: float) -> float:
    """Share of eps that the response's scale gets in matrix-Laplace noise."""
    a = np.linspace(0.05, 0.95, 91)
    cost = radius / (a * (1 - a)) + expected * radius**2 / (1 - a) ** 2
    return float(a[np.argmin(cost)])


def noise_sd(size: int, at: Coordinates, setting: Setting, share: float, expected: float):
    """(d + 1, d + 1) standard deviations, degrees and Wishart scales of one look."""
    strength, replaced = setting.strength(share), setting.neighbors == "replace-one"
    if setting.delta and at.boxed:
        dimension = size + 1 - setting.groups
        g = max(1, round(math.sqrt(2 * dimension - 1)) - 1)
        top = dimension - 1 + g
        squared = top**2 if replaced else (top**2 + dimension - 1 + g**2) / 2
        scale = math.sqrt(squared) / strength
        weights = np.append(np.ones(size), math.sqrt(g))
        return scale / np.outer(weights, weights), None, None
    radius = float(size - setting.groups) if at.boxed else at.squared_radius
    if setting.delta:
        g = gamma(radius, expected)
        scale = (math.sqrt(2) if replaced else 1.0) * (radius + g) / strength
        weights = np.append(np.ones(size), math.sqrt(g))
        sd = np.full((size + 1, size + 1), scale / math.sqrt(2))
        np.fill_diagonal(sd, scale)
        return sd / np.outer(weights, weights), None, None
    a, q = alpha(radius, expected), 1.0 if replaced else 2.0
    scales = np.append(np.full(size, radius / ((1 - a) * q * strength)), 1 / (a * q * strength))
    degrees = size + 2
    variances = 2 * degrees * np.outer(scales, scales)
    np.fill_diagonal(variances, 4 * degrees * scales**2)
    return np.sqrt(variances), degrees, scales


def release(x, y, at: Coordinates, setting, share, expected, public, rng) -> NoisyLook:
    z = located_rows(x, y, at)
    size = z.shape[1] - 1
    sd, degrees, scales = noise_sd(size, at, setting, share, expected)
    if degrees is None:
        drawn = np.triu(rng.standard_normal(sd.shape) * sd)
        drawn = drawn + np.triu(drawn, 1).T
    else:
        g = rng.standard_normal((2, degrees, size + 1)) * np.sqrt(scales)
        drawn = g[0].T @ g[0] - g[1].T @ g[1]
    return NoisyLook(z.T @ z + drawn, sd, at, degrees, public)


def staged(x, y, setting: Setting, n: int, rng, *, choosing: bool = False) -> Run:
    """Three looks and the law of the last; x and y hold the complete rows of n.

    `choosing` is as in `dpreg.staged.looks.look`; the run's law is still that of an estimate.
    """
    run, shares = Run(), SHARES[setting.delta > 0]
    public = n if setting.neighbors == "replace-one" else None
    at, expected, count = box(x.shape[1]), 0.25, None
    tails = NORMAL
    for step, share in enumerate(shares[:3]):
        if step:
            found = run.located[-1]
            count, expected = run.located[0].count, found.expected_square
            degrees = None if setting.delta else x.shape[1] + 3
            unit = noise_unit(setting.strength(share), setting.neighbors, degrees)
            wide = NORMAL if choosing else tails
            at = open_clips(found, unit, wide) if step == 2 else open_early(found, unit)
        look = release(x, y, at, setting, share, expected, public, rng)
        run.looks.append(look)
        if step == 1:
            tails = release_squares(x, y, look, setting, shares[4], run.located[-1], count, rng)
        if step < 2:
            run.located.append(
                locate(look, run.located[-1] if run.located else None, setting.levels)
            )
    run.tail = release_tail(x, y, at, setting, shares[3], run.located[-1], count, tails, rng)
    run.law = law(run.looks[-1], count, run.tail)
    return run


def drawn_like(setting, size, rng):
    if setting.delta:
        return rng.standard_normal(size)
    return rng.laplace(0, 1 / math.sqrt(2), size)


def release_squares(x, y, look, setting, share, found, count, rng) -> Heaviness:
    strength, replaced = setting.strength(share), setting.neighbors == "replace-one"
    reach = 3 if replaced else 2
    sd = math.sqrt(reach) / strength if setting.delta else math.sqrt(2) * reach / strength
    wide = wide_cut(found, look.coordinates, sd, squares=True)
    exact = spread_sums(x, y, look.coordinates, wide)
    above, below, outer, far = np.array(exact) + sd * drawn_like(setting, 4, rng)
    return heaviness_of(look, (above, below, outer, far), sd, wide, count, found)


def again(x, y, columns, setting: Setting, before: Run, n: int | None, rng) -> LookLaw:
    """One more look at chosen columns (from 1), located from a run's last one: the law of it."""
    assert before.law is not None
    assert before.tail is not None
    located = locate_again(before.law, columns, before.looks[-1].coordinates.width)
    tails = before.tail.heaviness or NORMAL
    degrees = None if setting.delta else len(columns) + 3
    unit = noise_unit(setting.strength(1 - TAIL), setting.neighbors, degrees)
    at = open_clips(located, unit, tails)
    part = x[:, [j - 1 for j in columns]]
    public = n if setting.neighbors == "replace-one" else None
    expected = located.expected_square
    look = release(part, y, at, setting, 1 - TAIL, expected, public, rng)
    count = located.count
    tail = release_tail(part, y, at, setting, TAIL, located, count, tails, rng)
    return law(look, count, tail)


def release_tail(x, y, at, setting, share, found, count, tails, rng) -> Tail:
    strength, replaced = setting.strength(share), setting.neighbors == "replace-one"
    if setting.delta:
        sd = math.sqrt(4.25 if replaced else 2.25) / strength
    else:
        sd = math.sqrt(2) * (2.5 if replaced else 2.25) / strength
    width = wide_cut(found, at, sd)
    u = x @ at.whitening.T + at.offset
    e = y - at.intercept - x @ at.slopes
    norm = 1 + np.einsum("ij,ij->i", u, u)
    c = np.minimum(1.0, np.sqrt(at.squared_radius / norm))
    t, f = np.clip(c * e / width, -1, 1), np.clip(c * e / at.width, -1, 1)
    sds = sd * np.array([1, 1, 2 * at.squared_radius if setting.delta else 4 * at.squared_radius])
    cells = np.array([(c * t).sum(), (t * t).sum(), (c * c * norm * f * f).sum()])
    total, squares, leverage = map(float, cells + sds * drawn_like(setting, 3, rng))
    bent = allowed(found, at, tails)
    return Tail(
        total, squares, float(sds[0]), float(sds[1]), width, leverage, float(sds[2]), tails, bent
    )
