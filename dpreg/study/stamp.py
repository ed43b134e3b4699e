"""The mark that every view of a curator's study carries.

Tested in `tests/study/test_plots.py`.
"""

from __future__ import annotations

from typing import Final, TypeVar

import pandas as pd

__all__ = ["CURATOR_ONLY", "SIMULATED", "marked"]

CURATOR_ONLY: Final = "curator only: not private, do not release"
"""On every view of exact quantities computed from raw rows."""

SIMULATED: Final = "simulated rows: not private, as public as the numbers they were made from"
"""On every view of a study whose rows were simulated."""

Frame = TypeVar("Frame", pd.DataFrame, pd.Series)


def marked(frame: Frame, stamp: str = CURATOR_ONLY) -> Frame:
    """Return `frame` with the stamp in its ``attrs``."""
    frame.attrs["privacy"] = stamp
    return frame
