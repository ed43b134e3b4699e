"""Secure coins: which half, or which block, each row goes to.

The coins come from the operating system's entropy and are independent of the rows' values and of
each other. Contiguous blocks or i mod B would not do: under add-remove a row inserted near the top
would send all later rows elsewhere. With i.i.d. coins a row takes its coin along, so neighbours
agree on every common row's group, and one person's k rows touch at most k groups.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["assign_blocks", "split_coins"]


def split_coins(rows: int, *, rng: Generator | None = None) -> NDArray[np.bool_]:
    """Toss one fair coin for each of `rows` rows; True is the first half.

    Parameters
    ----------
    rows : int
        How many coins. Call it chunk by chunk if you like: the coins are independent.
    rng : numpy Generator, optional
        For reproducible runs that are **not private**; default the operating system's entropy.
    """
    return np.equal(assign_blocks(rows, 2, rng=rng), 0)


def assign_blocks(rows: int, blocks: int, *, rng: Generator | None = None) -> NDArray[np.int64]:
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
    mask = np.uint32((1 << (blocks - 1).bit_length()) - 1)
    kept: list[NDArray[np.int64]] = []
    missing = rows
    while missing > 0:
        draws = np.frombuffer(secrets.token_bytes(4 * missing), dtype=np.uint32) & mask
        good = draws[draws < blocks].astype(np.int64)
        kept.append(good)
        missing -= good.size
    return np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
