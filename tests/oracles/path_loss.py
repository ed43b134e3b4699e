"""What neighbours cost along one path: the same released numbers, other exact ones.

`oracles.replay` runs a call on one of two neighbours, and then on the other with the releases of
the first. Every noise knows its law, and the exact numbers that it was added to on both tables say
how far the odds of these releases lie apart. Neither dpreg's sensitivities nor its calibration have
a part in it: where the sum is more than the call claims, the claim is broken.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from oracles.replay import Law, Tape
from scipy.optimize import brentq
from scipy.stats import norm

from dpreg.looks import minimum
from dpreg.privacy.noise import ObjectiveNoise

Sums = list[tuple[Law, Any]]


def loss(one: Sums, other: Sums) -> tuple[float, float]:
    """Return the loss of all draws of pure eps, and mu^2 of all Gaussian ones.

    A choice loses the range of the changes of its scores over its scale, at most.
    """
    assert [law for law, _ in one] == [law for law, _ in other]
    draws: dict[tuple[str, int], dict[Any, tuple[float, Any]]] = defaultdict(dict)
    pure = squared = 0.0
    for ((law, draw, place, scale), exact), (_, own) in zip(one, other, strict=True):
        if law == "choice":
            changes = [a - b for a, b in zip(exact, own, strict=True)]
            pure += (max(changes) - min(changes)) / scale
            continue
        change = float(exact - own)
        assert draws[law, draw].get(place, (change, None))[0] == change, "one noise for two numbers"
        draws[law, draw][place] = change, scale
    for (law, _), moved in draws.items():
        changed = np.array([change for change, _ in moved.values()])
        scale = next(iter(moved.values()))[1]
        if law == "gaussian":
            squared += sum((change / own) ** 2 for change, own in moved.values())
        elif law == "laplace":
            pure += sum(abs(change) / own for change, own in moved.values())
        elif law == "l2-norm":
            pure += float(np.linalg.norm(changed)) / scale
        else:
            pure += _spectral({place: change for place, (change, _) in moved.items()}, scale)
    return pure, squared


def _spectral(moved: dict[tuple[int, int], float], scales: tuple[float, ...]) -> float:
    """Half the nuclear norm of C^-1/2 D C^-1/2.

    A level's cell and its square are one number, which is released once: the other is filled in.
    """
    root, size = np.sqrt(np.array(scales)), len(scales)
    whole = {**moved, **{(j, i): change for (i, j), change in moved.items()}}
    for j in range(1, size - 1):
        for place, instead in (((j, j), (0, j)), ((0, j), (j, j))):
            if place not in whole and instead in whole:
                whole[place] = whole[place[::-1]] = whole[instead]
    matrix = np.zeros((size, size))
    for (i, j), change in whole.items():
        matrix[i, j] = change / root[i] / root[j]
    return float(np.abs(np.linalg.eigvalsh(matrix)).sum()) / 2


def eps_of(squared: float, delta: float) -> float:
    """Return eps of one normal number of ratio mu at delta (Balle and Wang 2018)."""
    mu = math.sqrt(squared)

    def open_at(eps: float) -> float:
        below = math.exp(min(eps + norm.logcdf(-mu / 2 - eps / mu), 0.0))
        return float(norm.cdf(mu / 2 - eps / mu) - below - delta)

    if mu == 0 or open_at(0.0) <= 0:
        return 0.0
    most = 1.0
    while open_at(most) > 0:
        most *= 2
    return float(brentq(open_at, 0.0, most, xtol=1e-12))


def listen_to_minima(patch: pytest.MonkeyPatch, tape: Tape) -> list[Minimum]:
    """Note each minimum that is searched for; what hides where the search stopped is no sum."""
    found: list[Minimum] = []
    searched, released = minimum.minimum, ObjectiveNoise.released

    def search(made: Any, tolerance: Any, slack: Any, places: int) -> Any:
        found.append(Minimum(made))
        return searched(made, tolerance, slack, places)

    def release(noise: ObjectiveNoise, floors: list[int], part: Any) -> Any:
        before = len(tape.sums)
        told = released(noise, floors, part)
        del tape.sums[before:]
        found[-1].told = noise, np.array([float(cell) for cell in told])
        return told

    patch.setattr(minimum, "minimum", search)
    patch.setattr(ObjectiveNoise, "released", release)
    return found


@dataclass
class Minimum:
    """An objective, its noise, and the minimum that was released."""

    made: Any
    told: tuple[ObjectiveNoise, np.ndarray] | None = None

    def loss(self, other: Minimum) -> float:
        """Of the density at the same minimum, by the change of variables, and of the search."""
        assert self.told
        assert other.told
        noise, t = self.told
        assert (other.told[0], *other.told[1]) == (noise, *t)
        pulls, bends = [], []
        for one in (self.made, other.made):
            bare = replace(one, noise=[0] * len(t))
            pulls.append(float(np.linalg.norm(bare.gradient(t))) * 2**noise.bits / noise.scale)
            bends.append(float(np.linalg.slogdet(bare.curvature(t))[1]))
        spent = float(noise.eps * noise.shares[1])
        return abs(pulls[0] - pulls[1]) + abs(bends[0] - bends[1]) + spent


__all__ = ["Minimum", "eps_of", "listen_to_minima", "loss"]
