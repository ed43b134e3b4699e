"""Vectors of integers as they travel between machines: exact, of any size, no object an entry.

A packed vector is a uint32 array, shape (words, length): column j holds entry j in two's
complement, lowest 32 bits first, as many words as the largest entry needs. A million counts are
eight megabytes, and adding two such vectors is a few array operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.sources.base import Integers

__all__ = ["Words", "add", "pack", "unpack"]

Words: TypeAlias = NDArray[np.uint32]
"""A packed vector of integers, shape (words, length)."""

_BITS = 32
_MASK = (1 << _BITS) - 1
_MOST = 1 << 30  # vectors in one sum: below, a digit's sum stays within int64


def pack(vector: Integers) -> Words:
    """Pack a vector of integers.

    Parameters
    ----------
    vector : ndarray of int64 or of object, one dimension
        Objects are Python's or NumPy's integers.
    """
    try:
        plain = np.asarray(vector).astype(np.int64, casting="unsafe")
    except OverflowError:  # an object beyond int64
        return _pack_large(np.asarray(vector, dtype=object))
    return np.stack([plain & _MASK, (plain >> _BITS) & _MASK]).astype(np.uint32)


def _pack_large(vector: NDArray[np.object_]) -> Words:
    bits = 1 + max(int(entry).bit_length() for entry in vector)
    places = range(0, bits, _BITS)
    return np.stack([((vector >> place) & _MASK).astype(np.uint32) for place in places])


def unpack(words: Words) -> NDArray[np.object_]:
    """Return the integers, as Python's."""
    low, *middle, top = _digits(words)
    if not middle:
        return np.asarray((top << _BITS) | low).astype(object)
    value = top.astype(object)
    for digit in (*reversed(middle), low):
        value = (value << _BITS) | digit.astype(object)
    return np.asarray(value, dtype=object)


def add(packed: Iterable[Words]) -> Words:
    """Add packed vectors of one length: at least one, at most 2**30."""
    total = np.zeros((0, 1), dtype=np.int64)
    for count, words in enumerate(packed):
        if count >= _MOST:
            raise OverflowError("too many vectors for one sum")
        digits = _digits(words)
        if len(digits) > len(total):  # digits keep their sign, so that further ones are 0
            grown = np.zeros_like(digits)
            grown[: len(total)] = total
            total = grown
        total[: len(digits)] += digits
    return _carried(total)


def _digits(words: Words) -> NDArray[np.int64]:
    """Return digits to base 2**32; the highest is signed, the others are not."""
    digits = words.astype(np.int64)
    digits[-1] = words[-1].view(np.int32)
    return digits


def _carried(digits: NDArray[np.int64]) -> Words:
    for place in range(len(digits) - 1):
        digits[place + 1] += digits[place] >> _BITS
    top = digits[-1]
    if ((top < -(1 << 31)) | (top >= 1 << 31)).any():
        digits = np.concatenate([digits, top[None] >> _BITS])
    return (digits & _MASK).astype(np.uint32)
