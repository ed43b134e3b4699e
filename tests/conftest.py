"""What all tests share: where the real data lie, and how hypothesis behaves."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two cores run many workers, so wall-clock limits on single examples would only make noise.
# The default profile repeats the same examples each time: a red run is a change in the code.
# HYPOTHESIS_PROFILE=explore searches anew.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", parent=settings.get_profile("steady"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_finish() -> None:
    """Leave out of later garbage collections what tests themselves are made of: it stays."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let go of it at the end, or extensions tell of leaks."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real data that DPREG_DATA names; skip, visibly, where there is none."""
    name = os.environ.get("DPREG_DATA", "")
    if not name or not Path(name).is_dir():
        pytest.skip("DPREG_DATA names no folder of real data")
    return Path(name)
