"""Shuffled vectors are lost with the executor that made them, and made anew, with other coins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

pytestmark = pytest.mark.audit


def run(kind, flag):
    tests = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", "oracles.spark_losses", kind, str(flag)],
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_lost_executor_leaves_each_row_in_one_half(tmp_path):
    done = run("right", tmp_path / "killed")
    assert done.returncode == 0, done.stderr


def test_vectors_dealt_by_content_would_be_caught(tmp_path):
    """Unless all that moves moves between tasks that are run again anyway: hence three tries."""
    for attempt in range(3):
        flag = tmp_path / f"killed-{attempt}"
        done = run("mutant", flag)
        assert flag.exists(), done.stderr
        if done.returncode:
            break
    assert "assert list(halves.sum" in done.stderr
