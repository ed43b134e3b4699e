"""The one door to OpenDP: what dpreg uses of it, and its feature switch kept where it was found.

Its prelude is left alone: that imports Polars and whatever else OpenDP has extras for.

Tested in `tests/privacy/test_gaussian.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

__all__ = [
    "atom_domain",
    "contrib",
    "l1_distance",
    "l2_distance",
    "linf_distance",
    "max_divergence",
    "measurements",
    "vector_domain",
    "zero_concentrated_divergence",
]

_switch: Final = threading.RLock()


@contextmanager
def contrib() -> Iterator[None]:
    """Allow OpenDP's vetted-but-unproven ("contrib") constructors inside the block alone.

    OpenDP guards its constructors with a process-wide set of features. dpreg needs "contrib" to
    build a measurement, not to call one. Importing dpreg leaves the set as it was, and so does
    every draw: a program that uses OpenDP as well keeps its own choice.
    """
    with _switch:
        found = "contrib" in GLOBAL_FEATURES
        enable_features("contrib")
        try:
            yield
        finally:
            if not found:
                disable_features("contrib")
