"""The source archive holds what its own README asks for: it builds and runs its demo."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    # Python 3.11.2, Debian's, knows no filters; 3.12 and later warn without one.
    filtered = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as packed:
        packed.extractall(folder, **filtered)
    (inside,) = (entry for entry in folder.iterdir() if entry.is_dir())
    return inside


def test_the_archive_holds_what_make_needs(unpacked: Path) -> None:
    needed = "Makefile README.md pyproject.toml packages.apt constraints.txt locks/run.txt"
    for name in [
        *needed.split(),
        "scripts/apt_packages.sh",
        "scripts/r_check.sh",
        "tests/conftest.py",
    ]:
        assert (unpacked / name).is_file(), name
    assert (unpacked / "r_bridge" / "dpreg" / "DESCRIPTION").is_file()


def test_the_archive_runs_its_demo(unpacked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "examples/demo.py"],
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": str(unpacked), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Private variable selection: mdvis" in done.stdout


def test_the_archive_runs_its_tests(unpacked: Path) -> None:
    some = ["tests/privacy/test_budget.py", "tests/test_schema.py", "tests/test_mirrors.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some],
        cwd=unpacked,
        env={**os.environ, "PYTHONPATH": str(unpacked), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
