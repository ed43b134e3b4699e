"""Slow, plain versions of the noisy gram release: loops over cells, laws by enumeration.

Statements, each computed here by its definition and nowhere by the package's formulas:

- a row's released vector: the distinct products z_i z_j that `layout` lists (and the count);
- C = sum over released cells of u^2 g g', g the derivative of E (beta, -1) by that cell's noise;
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from dpreg.estimation.inference import intervals


def rows(triangle, rng, number, corners=True):
    """Random legal rows over the model's places: corners of the cube, or anything inside.

    A share of the rows is incomplete (all zero); group columns are one-hot or zero.
    """
    size = len(triangle.columns) + 1
    z = rng.choice([-1.0, 1.0], (number, size))
    if not corners:
        z = rng.uniform(-1, 1, (number, size))
    if triangle.intercept:
        z[:, 0] = 1.0
    for group in triangle.groups:
        z[:, list(group)] = 0.0
        active = rng.integers(-1, len(group), number)
        for row, level in enumerate(active):
            if level >= 0:
                z[row, group[level]] = 1.0
    complete = rng.random(number) > 0.1
    z[~complete] = 0.0
    return z, complete


def released(triangle, z, complete):
    """The vector of released cells of each row, by definition."""
    out = np.empty((len(z), len(triangle.cells)))
    for c, (i, j) in enumerate(triangle.cells):
        out[:, c] = complete if (i, j) == (-1, -1) else z[:, i] * z[:, j]
    return out


def touches(triangle):
    """How often the response is a factor of each cell."""
    response = len(triangle.columns)
    return np.array([(i == response) + (j == response) for i, j in triangle.cells])


def worst_changes(triangle, neighbors, rng, rounds=16, batch=250, weight=1):
    """Search neighbours by random restarts and single-coordinate climbs; return L1 and L2^2."""
    scale = math.sqrt(weight) ** touches(triangle)
    best_l1 = best_l2 = 0.0
    for attempt in range(rounds):
        old = rows(triangle, rng, batch, corners=attempt % 4 != 3)
        new = rows(triangle, rng, batch, corners=attempt % 4 != 3)
        if neighbors == "add-remove":
            new = (np.zeros_like(new[0]), np.zeros_like(new[1]))
        for _ in range(4):
            change = np.abs(released(triangle, *old) - released(triangle, *new))
            l1, l2 = change.sum(axis=1), ((change * scale) ** 2).sum(axis=1)
            best_l1, best_l2 = max(best_l1, l1.max()), max(best_l2, l2.max())
            champion = int(np.argmax(l2 if attempt % 2 else l1))
            old = _around(triangle, old[0][champion], old[1][champion], rng, batch)
            if neighbors == "replace-one":
                new = _around(triangle, new[0][champion], new[1][champion], rng, batch)
    return best_l1, best_l2


def _around(triangle, row, complete, rng, batch):
    """Rows that differ from `row` in a few coordinates."""
    fresh, whole = rows(triangle, rng, batch)
    take = rng.random(fresh.shape) < 0.15
    for group in triangle.groups:
        together = rng.random(batch) < 0.15
        take[:, list(group)] = together[:, None]
    z = np.where(take, fresh, row)
    whole = whole & complete if complete else whole
    if triangle.intercept:
        z[:, 0] = 1.0
    z[~whole] = 0.0
    return z, whole


def equation_noise(triangle, variance_of_cell, beta):
    """C by its definition: one released cell at a time."""
    size = len(beta) + 1
    extended = np.append(beta, -1.0)
    cov = np.zeros((size, size))
    for cell, entries in zip(triangle.cells, triangle.entries, strict=True):
        if cell == (-1, -1):
            continue
        unit = np.zeros((size, size))
        for i, j in entries:
            unit[i, j] = unit[j, i] = 1.0
        slope = unit @ extended
        cov += variance_of_cell[cell] * np.outer(slope, slope)
    return cov


def conf_int(fit, alpha=0.05):
    """Return the intervals of a fit as results print them: by its draws, else normal ones."""
    if fit.draws is not None:
        return intervals(fit.beta, fit.draws, alpha)
    half = norm.ppf(1 - alpha / 2) * np.sqrt(np.diag(fit.cov))
    return np.column_stack([fit.beta - half, fit.beta + half])
