"""NOT PRIVATE: the mechanisms' laws from a seeded NumPy generator, for tests and teaching.

Anyone who knows or guesses the seed can remove the noise, and NumPy's generators are not
cryptographic in any case. Nothing drawn here may be released as differentially private; every view
of a result that was drawn here says "NOT PRIVATE: seeded". The laws are those of the private
draws: the continuous exponential and Gumbel noises and the discrete Laplace, at the same scale.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from dpreg.arrays import Ints

NOT_PRIVATE: Final = "NOT PRIVATE: seeded"
"""The stamp of every result that was drawn from a seed."""


def choose(scores: Ints, *, scale: float, mechanism: str, rng: Generator) -> int:
    """Draw an index by the same law as `dpreg.privacy.mechanisms.choice.choose`; **not private**.

    The scores are shifted by their minimum, a common shift that changes no law, in uint64, where
    the difference of two int64 never overflows.
    """
    lifted = scores.astype(np.uint64) - np.uint64(int(scores.min()) % 2**64)
    size = scores.size
    if mechanism == "laplace":
        noise = discrete_laplace(scale, size, rng).tolist()
        noisy = [gap + z for gap, z in zip(lifted.tolist(), noise, strict=True)]
        return noisy.index(min(noisy))
    draw = rng.gumbel if mechanism == "exponential" else rng.exponential
    return int(np.argmin(lifted / scale - draw(size=size)))


def discrete_laplace(scale: float, size: int, rng: Generator) -> Ints:
    """Draw integers z with probability proportional to exp(-|z| / scale); **not private**.

    The difference of two independent geometric variables, each the floor of an exponential one.
    """
    first = np.floor(rng.exponential(scale, size=size))
    return (first - np.floor(rng.exponential(scale, size=size))).astype(np.int64)


def groups_of(key: int, start: int, rows: int, groups: int) -> Ints:
    """Return the groups, 0 .. groups - 1, of the rows from place `start` on; **not private**.

    Philox is counter-based: word i of its stream can be computed without the words before it, so
    that pieces of a table can be drawn separately. The high half of word i times `groups` is row
    i's group, uniform up to 2**-32.
    """
    words = np.random.Philox(key=key, counter=start // 4).random_raw(start % 4 + rows)
    high = words[start % 4 :] >> np.uint64(32)
    return ((high * np.uint64(groups)) >> np.uint64(32)).astype(np.int64)
