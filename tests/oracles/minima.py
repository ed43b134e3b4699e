"""How much more likely one minimum is of a table than of its neighbour."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np


def worst(tables: list[Any], noise: Any, neighbors: str) -> float:
    """The largest change of a minimum's log density, by the change of variables.

    Parameters
    ----------
    tables : list of Objective
        Neighbours in three places, the last of them without a person's own rows.
    noise : ObjectiveNoise
    neighbors : {"replace-one", "add-remove"}
    """
    tables = [dataclasses.replace(one, penalty=noise.penalty, noise=[0, 0, 0]) for one in tables]
    rng, found = np.random.default_rng(7), 0.0
    far = rng.standard_normal((60, 3)) * np.exp(rng.uniform(-4, 4, (60, 1)))
    for t in (*far, np.zeros(3)):
        told = []
        for made in tables:
            pull = float(np.linalg.norm(made.gradient(t))) * 2**noise.bits / noise.scale
            told.append(float(np.linalg.slogdet(made.curvature(t))[1]) - pull)
        if neighbors == "replace-one":
            found = max(found, max(told) - min(told))
        else:
            found = max(found, max(abs(one - told[-1]) for one in told))
    return found
