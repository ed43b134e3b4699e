"""Releases that only choose, many from one drawn data set.

The first look's moments are the same for every release from one data set, which makes it quick.
`tests/benchmarks/test_power.py` holds laws against those of whole calls.
"""

from __future__ import annotations

import numpy as np

from benchmarks._staged_rows import Rows, Setting, looks
from dpreg.choice import Released

__all__ = ["choosing_laws"]


def choosing_laws(rows: Rows, setting: Setting, rng: np.random.Generator) -> tuple[Released, ...]:
    """Release three looks and a tail; return the laws that terms are chosen from."""
    return looks(rows, setting, len(rows), rng, choosing=True, last=True).for_choice()
