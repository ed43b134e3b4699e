"""Secure coins: which half, or which block, each row goes to.

The coins come from the operating system's entropy and are independent of the rows' values and of
each other. Contiguous blocks or i mod B would not do: under add-remove a row inserted near the top
would send all later rows elsewhere. With i.i.d. coins a row takes its coin along, so neighbours
agree on every common row's group, and one person's k rows touch at most k groups.

Where a table says whose row each row is, all rows of a person go by one coin, a keyed hash of the
person's id: `dpreg.sources.persons` says why that does. `secret_key` draws the key.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.privacy import seeded

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Coins", "assign_blocks", "groups_of_coins", "secret_key"]

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Coins:
    """Which group each row of a pass goes to, tossed where the rows are.

    It travels to threads and to other machines, and holds nothing of the rows.

    Attributes
    ----------
    groups : int
        How many; a row is in each with the same probability.
    key : int or None
        None: from the operating system's entropy, wherever and as often as a piece of the rows is
        read (`dpreg.sources.base` says why a task that is run again does no harm). A seeded run,
        **not private**, has a key, and a row's group follows from key and place in the table:
        the same for every engine that keeps the order of the rows.
    """

    groups: int
    key: int | None = None

    @classmethod
    def of(cls, groups: int, rng: Generator | None = None) -> Coins:
        """Make coins; with a generator, the default is the operating system's entropy, seeded."""
        return cls(groups, None if rng is None else int(rng.integers(2**63)))

    def labels(self, start: int, rows: int) -> Ints:
        """Toss for `rows` rows, the first of which is in place `start`: groups from 0."""
        if self.key is None:
            return assign_blocks(rows, self.groups)
        return seeded.groups_of(self.key, start, rows, self.groups)


def assign_blocks(rows: int, blocks: int, *, rng: Generator | None = None) -> Ints:
    """Draw for each row a block in 0 .. blocks - 1, independent and exactly uniform.

    Uniform by rejection: numbers of as many bits as `blocks - 1` has are drawn, those that are too
    large dropped.

    Returns
    -------
    int64 array, shape (rows,)
    """
    if not 1 <= blocks <= 2**31:
        raise ArgumentError("blocks must lie between 1 and 2**31")
    if rng is not None:
        return rng.integers(blocks, size=rows, dtype=np.int64)
    bits = (blocks - 1).bit_length()
    word = np.dtype(np.uint8 if bits <= 8 else np.uint32)
    mask = word.type((1 << bits) - 1)
    kept: list[Ints] = []
    missing = rows
    while missing > 0:
        draws = np.frombuffer(secrets.token_bytes(word.itemsize * missing), dtype=word) & mask
        good = draws[draws < blocks].astype(np.int64)
        kept.append(good)
        missing -= good.size
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)


def groups_of_coins(coins: Floats, groups: int) -> Ints:
    """Return the groups, 0 .. groups - 1, of coins that are uniform in [0, 1)."""
    return (coins * groups).astype(np.int64)


def secret_key(unsafe_seed: int | None = None) -> bytes:
    """Draw a key of 256 bits from the operating system's entropy.

    With a seed, for runs that are **not private**, it follows from the seed.
    """
    if unsafe_seed is None:
        return secrets.token_bytes(_KEY_BYTES)
    return hashlib.blake2b(b"%d" % unsafe_seed, digest_size=_KEY_BYTES).digest()
