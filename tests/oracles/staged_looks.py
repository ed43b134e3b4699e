"""All looks in plain floats with a seeded generator: slow, simple, and not private."""

import math
from dataclasses import replace

import numpy as np

from dpreg.staged.clips import (
    allowed,
    heaviness_of,
    open_clips,
    open_early,
    wide_cut,
)
from dpreg.staged.coefficients import coefficients
from dpreg.staged.law import law
from dpreg.staged.locate import locate
from dpreg.staged.predict import located_rows
from dpreg.staged.released import NoisyLook, Tail, box, residual_power


def simulate(x, y, plan, rng, *, stretched=True):
    """Return the coefficients of one release under a plan, noise drawn by its public law."""
    at, looks, found, tails, stretch, power = box(x.shape[1]), [], None, None, 1.0, 1.0
    for place in range(len(plan.shares)):
        if place == 0:
            noise = plan.box_noise()
        else:
            last = place == len(plan.shares) - 1
            if last and stretched:
                stretch = plan.stretch(found.expected_square * found.coordinates.squared_radius)
            unit = plan.unit(place, stretch)
            at = open_clips(found, unit, tails, stretch) if last else open_early(found, unit)
            power = residual_power(found.coordinates, at, stretch)
            noise = plan.located_noise(place, found.expected_square * at.squared_radius, stretch)
        radius = 1.0 if at.boxed else math.sqrt(at.squared_radius)
        units = np.append(np.full(plan.size - 1, radius), stretch)
        scale = np.outer(units, units)
        drawn = np.array(noise.simulate(rng), dtype=float) / 2.0**40
        z = located_rows(x, y, at, stretch, power)
        sd, cells = noise.sd * scale, z.T @ z + drawn * scale
        looks.append(NoisyLook(cells, sd, at, noise.degrees, len(x), stretch, power))
        if place == 1:
            sd = plan.squares_sd
            wide = wide_cut(found, at, sd, squares=True)
            f = np.clip((y - at.intercept - x @ at.slopes) / wide, -1, 1)
            further = located_rows(x, y, replace(at, squared_radius=2.25 * at.squared_radius))[:, 0]
            t, lost = z[:, 0] * f, 1 - z[:, 0] ** 2
            exact = (t[t > 0] @ t[t > 0], t[t < 0] @ t[t < 0], lost @ f**2, (1 - further**2).sum())
            sums = tuple(one + rng.normal(0, sd) for one in exact)
            tails = heaviness_of(looks[-1], sums, sd, wide, found.count, found)
        if place < len(plan.shares) - 1:
            found = locate(looks[-1], found)
    sd = plan.tail_sd
    wide = wide_cut(found, at, sd, stretch=stretch)
    t = located_rows(x, y, replace(at, width=wide), power=power)[:, -1]
    first, second = rng.normal(0, sd, 2)
    tail = Tail(z[:, 0] @ t + first, t @ t + second, sd, sd, wide, heaviness=tails)
    tail = replace(tail, bent=allowed(found, at, tails, stretch))
    return coefficients(law(looks[-1], found.count, tail))
