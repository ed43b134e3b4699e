"""What is done around every public call."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpreg.api import recorded


@dataclass(frozen=True)
class Found:
    number: float
    record: Any = None


@recorded.recorded
def overflowing(data: float) -> Found:
    return Found(float(np.float64(data) * 10 - np.inf + np.float64(0) / np.float64(0)))


def test_no_numerical_warning_leaves_a_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(overflowing(1e308).number)


def test_numpy_s_remarks_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_NUMERICAL", "warn")
    with pytest.raises(RuntimeWarning, match="overflow"):
        overflowing(1e308)
