"""The R package, installed once into a library of the session's own; or no R, and no tests."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "r_bridge" / "dpreg"

Run = Callable[..., str]


def _unavailable(reason: str) -> None:
    if os.environ.get("DPREG_REQUIRE_PYTHON") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the R library that holds dpreg: what DPREG_R_LIBRARY names, or a new one."""
    if importlib.util.find_spec("rpy2") is None:
        _unavailable("rpy2 is not installed")
    if shutil.which("Rscript") is None:
        _unavailable("R is not installed")
    named = os.environ.get("DPREG_R_LIBRARY")
    if named:
        return Path(named)
    place = tmp_path_factory.mktemp("r-library")
    command = ["R", "CMD", "INSTALL", "--no-docs", f"--library={place}", str(PACKAGE)]
    subprocess.run(command, check=True, capture_output=True)
    return place


@pytest.fixture
def environment(library: Path) -> dict[str, str]:
    """Return the environment of an R process that finds dpreg and this Python."""
    return os.environ | {"R_LIBS": str(library), "DPREG_PYTHON": sys.executable}


@pytest.fixture
def rscript(environment: dict[str, str], tmp_path: Path) -> Run:
    """Return a function that runs R code in a process of its own and returns what it printed."""

    def run(code: str, **changes: str) -> str:
        script = tmp_path / "script.R"
        script.write_text(code, encoding="utf-8")
        done = subprocess.run(
            ["Rscript", "--vanilla", str(script)],
            env=environment | changes,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
