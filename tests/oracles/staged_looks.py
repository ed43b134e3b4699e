"""All looks in plain floats with a seeded generator: slow, simple, and not private."""

import math

import numpy as np

from dpreg.staged.coefficients import coefficients
from dpreg.staged.law import law
from dpreg.staged.locate import locate, open_clips
from dpreg.staged.predict import located_rows
from dpreg.staged.released import NoisyLook, Tail, box


def simulate(x, y, plan, rng):
    """Return the coefficients of one release under a plan, noise drawn by its public law."""
    at, looks, found = box(x.shape[1]), [], None
    for place in range(len(plan.shares)):
        if place == 0:
            noise = plan.box_noise()
        else:
            last = place == len(plan.shares) - 1
            at = open_clips(found, plan.unit(place)) if last else found.coordinates
            noise = plan.located_noise(place, found.expected_square * at.squared_radius)
        radius = 1.0 if at.boxed else math.sqrt(at.squared_radius)
        units = np.append(np.full(plan.size - 1, radius), 1.0)
        scale = np.outer(units, units)
        drawn = np.array(noise.simulate(rng), dtype=float) / 2.0**40
        z = located_rows(x, y, at)
        looks.append(
            NoisyLook(z.T @ z + drawn * scale, noise.sd * scale, at, noise.degrees, len(x))
        )
        if place < len(plan.shares) - 1:
            count = found.count if found else None
            found = locate(looks[-1], count)
    sd = plan.tail_sd
    wide = max(at.width, 0.65 * math.sqrt(found.residual) * math.cbrt(found.count / sd))
    t = z[:, 0] * (y - at.intercept - x @ at.slopes) / wide
    t = np.clip(t, -1, 1)
    first, second = rng.normal(0, sd, 2)
    return coefficients(
        law(looks[-1], found.count, Tail(z[:, 0] @ t + first, t @ t + second, sd, sd, wide))
    )
