"""Random numbers of an estimator's own: a stream for each block that no other block has moved.

Python's `random` and NumPy's global generator belong to the process. Left alone, a block would
begin where the block before it stopped, which depends on the rows of that one: one changed row
could then move the value of every block that follows, where the sensitivity allows for one. And in
forked processes each block would begin at the same number, so that the noise of an estimator that
draws would not average out.

Statement
---------
Let each block begin with both generators started from a seed of its own, and let the seeds be
independent of the rows. For an estimator that is a function of its block and of what it draws from
these generators (or from the system's entropy), the seeds fixed, tables that differ in rows of one
block give the other blocks equal values.

Proof. After `start` both generators are functions of the seed alone: `random.seed` and `MT19937`
set their whole states, the pair of normal numbers that each may hold back included. So a value is a
function of (block, seed). Averaging over the seeds, whose law is the same for both tables, keeps
(eps, delta). In threads that run estimators at once the generators are shared, and this holds
of none of them: with a time limit, which gives each block a process, it holds there too.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np
from numpy.random import mtrand

__all__ = ["put_back", "start"]


def start(seed: int) -> None:
    """Start Python's and NumPy's global generators from a seed, whatever they were before."""
    random.seed(seed)
    mtrand.set_bit_generator(np.random.MT19937(seed))


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Give the caller both generators back as they were, whatever is done to them inside."""
    pythons, numpys = random.getstate(), mtrand.get_bit_generator()
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(pythons)
        mtrand.set_bit_generator(numpys)
        np.random.set_state(state)  # noqa: NPY002  (the normal number held back is not in numpys)
