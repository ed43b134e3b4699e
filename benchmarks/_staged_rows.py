"""The staged release in fast floats, with seeded noise: for coverage studies, never private.

Rows and moments are floats here, where dpreg's are integers; the rules between looks are dpreg's
own (`dpreg.staged`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from dpreg.choice import Released
from dpreg.privacy.objective import objective_units
from dpreg.privacy.product_sensitivity import (
    STRETCH,
    product_cost,
    product_l2_squared,
    product_weights,
)
from dpreg.privacy.protection import Protection
from dpreg.staged import plan
from dpreg.staged.again import locate_again
from dpreg.staged.clips import (
    allowed,
    heaviness_of,
    open_clips,
    open_early,
    wide_cut,
)
from dpreg.staged.for_choice import laws_for_choice
from dpreg.staged.foreseen import ENOUGH, foreseen
from dpreg.staged.law import LookLaw, law
from dpreg.staged.locate import Located, locate, noise_unit
from dpreg.staged.minimum import ALONE, ALONE_RESPONSE, as_look, open_minimum, seen
from dpreg.staged.predict import spread_sums
from dpreg.staged.released import Coordinates, NoisyLook, Tail, box, residual_power
from dpreg.staged.tails import NORMAL, Heaviness

REST = (float(plan.TAIL), float(plan.SQUARES))
SHARES = {
    True: (*map(float, plan.SHARES["gaussian"]), *REST),
    False: (*map(float, plan.SHARES["matrix-laplace"]), *REST),
}
"""Of the looks, the tail and the squares: of mu^2 with Gaussian noise, of eps without."""
MINIMUM = (*map(float, ALONE), *REST)
"""The same of eps where a first look gives reason to expect a minimum in the last one's place."""
TAIL = float(plan.TAIL)
LARGEST_SIGNAL = 0.25
"""As in `dpreg.staged.plan`: up to which rows may be bounded by a product."""
PIECE = 4096
"""Rows of one product."""


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

    def for_choice(self) -> tuple[Released, ...]:
        """The laws that terms are chosen from."""
        assert self.tail is not None
        tail = replace(self.tail, heaviness=None)
        return laws_for_choice(self.looks[-1], self.located[0].count, tail)


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


def product_sd(size: int, at: Coordinates, setting: Setting, share: float) -> np.ndarray:
    """Standard deviations of a last look whose rows are bounded by a product."""
    cost = math.sqrt(product_l2_squared(setting.neighbors, 1)) / 2.0**40
    weights = product_weights(size + 1, setting.neighbors)
    units = np.append(np.full(size, math.sqrt(at.squared_radius)), float(STRETCH))
    sd = np.outer(units, units) * cost / setting.strength(share)
    for (i, j), weight in weights.items():
        sd[i, j] = sd[j, i] = sd[i, j] / math.sqrt(weight)
    return sd


def alpha(radius: float, expected: float) -> float:
    """Share of eps that the response's scale gets in matrix-Laplace noise."""
    a = np.linspace(0.05, 0.95, 91)
    cost = radius / (a * (1 - a)) + expected * radius**2 / (1 - a) ** 2
    return float(a[np.argmin(cost)])


def noise_sd(
    size: int, at: Coordinates, setting: Setting, share: float, expected: float, kept: float = 1.0
):
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
    a, q = kept * alpha(radius, expected), 1.0 if replaced else 2.0
    scales = np.append(np.full(size, radius / ((1 - a) * q * strength)), 1 / (a * q * strength))
    degrees = size + 2
    variances = 2 * degrees * np.outer(scales, scales)
    np.fill_diagonal(variances, 4 * degrees * scales**2)
    return np.sqrt(variances), degrees, scales


class Rows:
    """Rows of one data set, taken in pieces that stay in the processor's cache."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.raw = np.column_stack([np.ones(len(x)), x, y])
        self.boxed = sum(piece.T @ piece for piece in self._pieces())

    def __len__(self) -> int:
        return len(self.raw)

    def _pieces(self) -> list[np.ndarray]:
        return [self.raw[at : at + PIECE] for at in range(0, len(self.raw), PIECE)]

    def moments(
        self,
        at: Coordinates,
        wide: float | None = None,
        stretch: float = 1.0,
        power: float = 1.0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a look's exact cells, and the tail's three if `wide` is its cut."""
        if at.boxed:
            return self.boxed, np.zeros(3)
        size = self.raw.shape[1]
        turn = np.zeros((size, size))
        turn[0, 0] = 1.0
        turn[0, 1:-1], turn[1:-1, 1:-1] = at.offset, at.whitening.T
        turn[:, -1] = np.append(np.append(-at.intercept, -at.slopes), 1.0) / at.width
        cells, tail, radius = np.zeros((size, size)), np.zeros(3), at.squared_radius
        for piece in self._pieces():
            z = piece @ turn
            norm = np.einsum("ij,ij->i", z[:, :-1], z[:, :-1])
            weight = np.sqrt(radius / np.maximum(norm, radius))
            far = z[:, -1] * weight**power
            z *= weight[:, None]
            cut = np.clip(np.sqrt(radius / norm), 1, stretch)
            z[:, -1] = np.clip(far, -cut, cut)
            cells += z.T @ z
            if wide is not None:
                cut = np.clip(far * (at.width / wide), -1, 1)
                tail += z[:, 0] @ cut, cut @ cut, np.minimum(norm, radius) @ z[:, -1] ** 2
        return cells, tail


def noisy(
    cells, at: Coordinates, setting, share, expected, public, rng, stretch=1.0, kept=1.0
) -> NoisyLook:
    """Release a look's exact cells, (d + 1, d + 1); `kept` is of the response's share."""
    size = len(cells) - 1
    if stretch > 1:
        sd, degrees, scales = product_sd(size, at, setting, share), None, None
    else:
        sd, degrees, scales = noise_sd(size, at, setting, share, expected, kept)
    if degrees is None:
        drawn = np.triu(rng.standard_normal(sd.shape) * sd)
        drawn = drawn + np.triu(drawn, 1).T
    else:
        g = rng.standard_normal((2, degrees, size + 1)) * np.sqrt(scales)
        drawn = g[0].T @ g[0] - g[1].T @ g[1]
    return NoisyLook(cells + drawn, sd, at, degrees, public, stretch)


def staged(
    x,
    y,
    setting: Setting,
    n: int,
    rng,
    *,
    choosing: bool = False,
    stretched: bool = False,
    alone: bool = False,
) -> Run:
    """Three looks and the law of the last; x and y hold the complete rows of n.

    `alone`: where two looks see enough, a minimum takes the third one's place.
    `choosing` and `stretched` are as in `dpreg.staged.looks.look`; the run's law is still that of
    an estimate.
    """
    run = looks(Rows(x, y), setting, n, rng, choosing=choosing, stretched=stretched, alone=alone)
    run.law = law(run.looks[-1], run.located[0].count, run.tail)
    return run


def looks(
    rows: Rows,
    setting: Setting,
    n: int,
    rng,
    *,
    choosing: bool,
    last: bool = False,
    stretched: bool = False,
    alone: bool = False,
) -> Run:
    """Three looks; `last` where nothing comes after a choice.

    What the second look releases of squares says how the clips of a look for coefficients open.
    Where none comes it is paid for like the rest, and not drawn.
    """
    run, shares = Run(), MINIMUM if alone else SHARES[setting.delta > 0]
    columns = rows.raw.shape[1] - 2
    public = n if setting.neighbors == "replace-one" else None
    at, expected, count = box(columns), 0.25, None
    tails, wide, stretch, power = NORMAL, None, 1.0, 1.0
    for step in range(3):
        share = shares[step]
        if step == 2 and alone and seen(run.looks[-1], run.located[-1]):
            found = run.located[-1]
            at, score, sd = minimum(rows, setting, share, run.looks[-1], found, tails, rng)
            wide = wide_cut(found, at, tail_sd(setting, shares[3]))
            _, exact = rows.moments(at, wide)
            run.tail = release_tail(exact, wide, at, setting, shares[3], found, tails, rng)
            run.looks.append(as_look(run.looks[-1], found, at, score, sd, run.tail))
            return run
        if step:
            found = run.located[-1]
            count, expected = run.located[0].count, found.expected_square
            degrees = None if setting.delta else columns + 3
            unit = noise_unit(setting.strength(share), setting.neighbors, degrees)
            signal = expected * found.coordinates.squared_radius
            if step == 2 and stretched and setting.delta and signal <= LARGEST_SIGNAL:
                stretch = float(STRETCH)
                unit = product_cost(setting.neighbors) / setting.strength(share)
            at = open_early(found, unit)
            if step == 2:
                gaussian = setting.delta > 0
                at = open_clips(found, unit, tails, stretch, choosing=choosing, gaussian=gaussian)
        if step == 2:
            wide = wide_cut(found, at, tail_sd(setting, shares[3]), stretch=stretch)
            power = residual_power(found.coordinates, at, stretch)
        cells, exact = rows.moments(at, wide, stretch, power)
        kept = float(ALONE_RESPONSE) if alone and step == 1 else 1.0
        look = noisy(cells, at, setting, share, expected, public, rng, stretch, kept)
        look = replace(look, power=power)
        run.looks.append(look)
        if step == 1 and not last:
            tails = release_squares(rows, look, setting, shares[4], run.located[-1], count, rng)
        if step < 2:
            run.located.append(
                locate(look, run.located[-1] if run.located else None, setting.levels)
            )
        if step == 0 and alone and not will_see(look, run.located[0], setting):
            alone, shares = False, SHARES[False]
    found = run.located[-1]
    run.tail = release_tail(exact, wide, at, setting, shares[3], found, tails, rng, stretch)
    return run


def will_see(first: NoisyLook, located: Located, setting: Setting) -> bool:
    """Whether a second look for a minimum is expected to see enough."""
    unit = noise_unit(setting.strength(MINIMUM[1]), setting.neighbors, first.size + 2)
    at = open_early(located, unit)
    expected = located.expected_square
    sd, _, _ = noise_sd(first.size, at, setting, MINIMUM[1], expected, float(ALONE_RESPONSE))
    return foreseen(first, located, at, sd, setting.levels) >= ENOUGH


def minimum(rows: Rows, setting: Setting, share, second, found, tails, rng):
    """Release a perturbed minimum at a located fit: coordinates, the score there, its noise."""
    size = second.size
    who = Protection(setting.neighbors, setting.contributions)
    sd, bend = objective_units(size, Fraction(setting.eps * setting.whole * share), who)
    at, reach = open_minimum(found, tails, sd, bend)
    penalty = at.squared_radius * bend
    u = np.column_stack([np.ones(len(rows)), rows.raw[:, 1:-1] @ at.whitening.T + at.offset])
    response = (rows.raw[:, -1] - at.intercept - rows.raw[:, 1:-1] @ at.slopes) / at.width
    square = np.einsum("ij,ij->i", u, u)
    weight = np.minimum(1.0, at.squared_radius / square)
    limit = reach / (weight * np.sqrt(square))
    direction = rng.standard_normal(size)
    b = sd / math.sqrt(size + 1) * reach * rng.gamma(size)
    b *= direction / np.linalg.norm(direction)
    weighted, t = u * weight[:, None], np.zeros(size)

    def slope(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = response - u @ t
        return penalty * t + b - weighted.T @ np.clip(left, -limit, limit), np.abs(left) < limit

    gradient, inside = slope(t)
    for _ in range(80):
        bent = weighted[inside].T @ u[inside] + penalty * np.eye(size)
        step = np.linalg.solve(bent, gradient)
        if np.abs(step).max() < 1e-9:
            break
        fall, part = float(step @ gradient), 1.0
        gradient, inside = slope(t - step)
        while float(step @ gradient) < -fall / 2 and part > 1e-6:  # too far
            part /= 2
            gradient, inside = slope(t - part * step)
        t = t - part * step
    moved = at.shift + at.transform @ t
    at = replace(at, intercept=float(moved[0]), slopes=moved[1:])
    return at, penalty * t, sd * reach


def drawn_like(setting, size, rng):
    if setting.delta:
        return rng.standard_normal(size)
    return rng.laplace(0, 1 / math.sqrt(2), size)


def release_squares(rows: Rows, look, setting, share, found, count, rng) -> Heaviness:
    strength, replaced = setting.strength(share), setting.neighbors == "replace-one"
    reach = 3 if replaced else 2
    sd = math.sqrt(reach) / strength if setting.delta else math.sqrt(2) * reach / strength
    wide = wide_cut(found, look.coordinates, sd, squares=True)
    exact = spread_sums(rows.raw[:, 1:-1], rows.raw[:, -1], look.coordinates, wide)
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
    rows = Rows(x[:, [j - 1 for j in columns]], y)
    public = n if setting.neighbors == "replace-one" else None
    wide = wide_cut(located, at, tail_sd(setting, TAIL))
    cells, exact = rows.moments(at, wide)
    look = noisy(cells, at, setting, 1 - TAIL, located.expected_square, public, rng)
    tail = release_tail(exact, wide, at, setting, TAIL, located, tails, rng)
    return law(look, located.count, tail)


def tail_sd(setting: Setting, share: float) -> float:
    """Return the standard deviation of the noise in the tail's first cells."""
    strength, replaced = setting.strength(share), setting.neighbors == "replace-one"
    if setting.delta:
        return math.sqrt(4.25 if replaced else 2.25) / strength
    return math.sqrt(2) * (2.5 if replaced else 2.25) / strength


def release_tail(
    exact, wide, at: Coordinates, setting, share, found, tails, rng, stretch=1.0
) -> Tail:
    """Release the tail's exact cells, whose residuals are cut at `wide`."""
    radius = at.squared_radius
    sds = tail_sd(setting, share) * np.array([1, 1, (2 if setting.delta else 4) * radius])
    total, squares, leverage = map(float, exact + sds * drawn_like(setting, 3, rng))
    bent = allowed(found, at, tails, stretch)
    return Tail(
        total, squares, float(sds[0]), float(sds[1]), wide, leverage, float(sds[2]), tails, bent
    )
