"""Vectors are lost with the executor that made them, or overtaken, and made anew by other coins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

pytestmark = pytest.mark.audit


def run(kind, flag, cluster="spark_losses"):
    tests = Path(__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-m", f"oracles.{cluster}", kind, str(flag)],
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


def test_a_task_that_its_copy_overtakes_leaves_each_row_in_one_half(tmp_path):
    done = run("right", tmp_path / "attempts", "spark_speculation")
    assert done.returncode == 0, done.stderr


def test_a_sum_that_counts_the_copy_too_would_be_caught(tmp_path):
    done = run("mutant", tmp_path / "attempts", "spark_speculation")
    assert done.returncode
    assert "assert list(halves.sum" in done.stderr
