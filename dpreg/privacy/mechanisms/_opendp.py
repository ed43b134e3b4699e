"""The one door to OpenDP: its prelude, and its feature switch kept where it was found.

Tested in `tests/privacy/test_gaussian.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import opendp.prelude as dp
from opendp.mod import GLOBAL_FEATURES

__all__ = ["contrib", "dp"]

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
        dp.enable_features("contrib")
        try:
            yield
        finally:
            if not found:
                dp.disable_features("contrib")
