"""Where Python and rpy2 come from: both of rpy2's modes, and folders that hide nothing."""

from __future__ import annotations

import os
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TESTS = REPOSITORY / "r_bridge" / "dpreg" / "tests" / "testthat"

FIT = """
library(dpreg)
schema <- list(mpg = c(5, 40), wt = c(1, 6), gear = list(levels = 3:5))
fit <- dp_ols(mpg ~ wt + factor(gear), mtcars, eps = 10, schema = schema)
stopifnot(length(coef(fit)) == 4)
"""


@pytest.fixture
def compiled(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Python whose rpy2 has its compiled mode alone."""
    built = os.environ.get("DPREG_RPY2_API")
    if not built:
        if os.environ.get("DPREG_REQUIRE_PYTHON") == "1":
            pytest.fail("DPREG_RPY2_API must name a folder with rpy2's compiled mode: make r-check")
        pytest.skip("DPREG_RPY2_API names no folder with rpy2's compiled mode")
    farm = tmp_path / "farm"
    farm.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(("rpy2", "_rinterface_cffi")):
            (farm / entry.name).symlink_to(entry)
    for entry in Path(built).iterdir():
        (farm / entry.name).symlink_to(entry)
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    return {"PYTHONPATH": f"{farm}{os.pathsep}{REPOSITORY}", "DPREG_PYTHON": str(base)}


def test_the_compiled_mode_reads_every_kind_of_column(rscript, compiled: dict[str, str]) -> None:
    code = f"""
        library(testthat)
        library(dpreg)
        for (file in c("columns", "hostile", "estimates", "ledger")) {{
          test_file(file.path("{TESTS}", paste0("test-", file, ".R")), package = "dpreg",
                    reporter = "stop")
        }}
        reticulate::py_run_string("from rpy2.rinterface_lib import openrlib
print(openrlib.cffi_mode)")
        """
    assert "CFFI_MODE.API" in rscript(code, **compiled)


@pytest.mark.parametrize("asked", ["", "ABI", "API"])
def test_the_mode_is_the_one_that_is_there(rscript, compiled: dict[str, str], asked: str) -> None:
    told = rscript(
        FIT
        + """
        none <- dp_ols(mpg ~ wt, mtcars[0, ], eps = 10, schema = schema, neighbors = "add-remove")
        texts <- dp_histogram("who", data.frame(who = character()), eps = 1,
                              neighbors = "add-remove", schema = list(who = c("a", "b")))
        cat(length(predict(fit, mtcars[0, ])), length(coef(none)), length(coef(texts)))
        """,
        **compiled,
        RPY2_CFFI_MODE=asked,
    )
    assert told == "0 2 2"


def test_the_working_directory_hides_no_package(rscript, tmp_path: Path) -> None:
    (tmp_path / "dpreg").mkdir()
    for name in ("dpreg/__init__.py", "numpy.py", "pandas.py", "rpy2.py", "scipy.py"):
        (tmp_path / name).write_text("raise RuntimeError('this is not the installed package')")
    (tmp_path / "own.py").write_text("answer = 42")
    told = rscript(
        FIT
        + """
        reticulate::py_run_string("import own, dpreg, numpy, pandas")
        cat(basename(getwd()), reticulate::py_eval("own.answer"))
        """
    )
    assert told == f"{tmp_path.name} 42"


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Return a Python without any package."""
    venv.create(tmp_path / "bare", symlinks=True)
    return str(tmp_path / "bare" / "bin" / "python")


REASON = 'library(dpreg); cat(attr(dpreg_available(), "reason"))'


def test_a_reticulate_python_without_dpreg_is_named(rscript, bare: str) -> None:
    told = rscript(REASON, DPREG_PYTHON="", RETICULATE_PYTHON=bare)
    assert told.startswith(f"The environment variable RETICULATE_PYTHON names '{bare}', and it has")


def test_a_python_that_runs_already_is_named(rscript, bare: str) -> None:
    start = f'reticulate::use_python("{bare}", required = TRUE); reticulate::py_eval("1"); '
    told = rscript(start + REASON)
    assert f"This session ran '{bare}' as its Python before dpreg was asked" in told
    assert "restart R and call dpreg::dpreg_available() before anything else" in told
