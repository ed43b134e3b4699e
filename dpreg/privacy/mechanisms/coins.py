"""Secure coins: which half or block each row is assigned to.

The coins come from the operating system's entropy and are independent of the rows' values and of
each other. Contiguous blocks or i mod B would not work: under add-remove, a row inserted near the
top would send all later rows elsewhere.

Rows keep their coins
---------------------
Statement. Let the row in place i get coin c_i, the coins independent, of one law, and independent
of the rows. Let a release be (eps, delta)-DP for any two neighbours whose common rows have equal
coins, the coins fixed. Then it is (eps, delta)-DP.

Proof. Under replace-one common rows have the same places, and so the same coins. Under add-remove
let T have n rows, and T' one more, in place i: the rows from there on move by one place, and with
one stream for both tables nearly all of them would have another row's coin. So the streams are
coupled instead. Let c be the stream of T, and v one more coin, independent of it; give T' the
stream c' = (c_0, .., c_(i-1), v, c_i, c_(i+1), ..). It holds the same independent coins in another
order, and i follows from the two tables and from no coin: so c' has the law of any stream, and what
T' releases with c' has the law of what it releases. With (c, v) fixed each common row has the same
coin in both tables, wherever it stands, and the bound holds; T's release does not depend on v. The
average over (c, v) of P(T in S | c) <= exp(eps) P(T' in S | c') + delta is the bound for the whole,
and so it is with T and T' exchanged. k rows: one after the other, each into the stream that the
rows before it left; their k coins are independent of all others. Where the groups of a public
column have places and a stream each, a replaced row may leave one group and join another: it is
taken out of one stream and put into the other, both coupled as above. QED

So neighbours may be taken to agree on the group of every common row, and one person's k rows touch
at most k groups.

Where a table says whose row each row is, all rows of a person go by one coin, a keyed hash of the
person's id: `dpreg.sources.persons` says why that does. `secret_key` draws the key.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.privacy import seeded

if TYPE_CHECKING:
    from numpy.random import Generator


_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Coins:
    """The group of each row of a pass, drawn where the rows are.

    It can be sent to threads and other machines, and holds nothing of the rows.

    Attributes
    ----------
    groups : int
        How many; a row is in each with the same probability.
    key : int or None
        None: from the operating system's entropy, wherever and as often as a piece of the rows is
        read (`dpreg.sources.base` says why a task that is run again does no harm). A seeded run,
        **not private**, has an integer: a row's group then follows from key and place in the table,
        the same for every engine that keeps the order of the rows.
    """

    groups: int
    key: int | None = field(default=None, repr=False)

    @classmethod
    def of(cls, groups: int, rng: Generator | None = None) -> Coins:
        """Make coins; with a generator, the default is the operating system's entropy, seeded."""
        return cls(groups, None if rng is None else int(rng.integers(2**63)))

    def labels(self, start: int, rows: int) -> Ints:
        """Draw the groups of `rows` rows, the first of which is in place `start`."""
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


def block_seeds(blocks: int, *, rng: Generator | None = None) -> list[int]:
    """Draw a seed of 128 bits for each block, for what its estimator draws.

    They come from the operating system's entropy. With a generator, for runs that are **not
    private**, they follow from its seed, and what else is drawn from it stays as it is.
    """
    if rng is None:
        return [secrets.randbits(128) for _ in range(blocks)]
    bits = rng.spawn(1)[0]
    return [int.from_bytes(bits.bytes(16), "little") for _ in range(blocks)]


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
