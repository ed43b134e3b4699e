"""What an R user waits for: dpreg's R package beside lm(), in one run.

    python -m benchmarks.r_user [--quick] [--out FILE]

Three waits, each as a ratio to lm() on the same rows: a fit of 32 rows in a fresh R (library() and
the start of Python counted), predict() of 1e5 rows x 15 columns, and a fit of 1e6 rows x 15 columns
of which three are factors. Beside them, without a goal, predict() with intervals. Each ratio is the
median of rounds that time both, one after the other. Goal: predict() at most 3 times predict.lm().
Python keeps compiled modules in a folder of this run's, as an installation by pip does.

R and the packages that packages.apt names for it are needed; DPREG_R_LIBRARY may name a library
that holds dpreg, else it is installed into a temporary one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "r_bridge" / "dpreg"
GOALS = {"predict": 3.0}

FRESH = {
    "dpreg": """library(dpreg)
        schema <- list(mpg = c(5, 40), wt = c(1, 6))
        invisible(dp_ols(mpg ~ wt, mtcars, eps = 1, schema = schema))""",
    "lm": "invisible(lm(mpg ~ wt, mtcars))",
}

WARM = """
library(dpreg)
set.seed(1)
make <- function(n) {
  numbers <- as.data.frame(matrix(rnorm(12 * n), n, dimnames = list(NULL, paste0("x", 1:12))))
  labels <- function(...) factor(sample(c(...), n, TRUE), c(...))
  rows <- cbind(numbers, g = labels("a", "b", "c"), h = labels("u", "v"),
                k = labels("p", "q", "r", "s"))
  rows$y <- with(rows, 0.3 * x1 - 0.2 * x2 + 0.1 * (g == "b") + rnorm(n))
  rows
}
schema <- c(setNames(rep(list(c(-4, 4)), 13), c(paste0("x", 1:12), "y")),
            list(g = c("a", "b", "c"), h = c("u", "v"), k = c("p", "q", "r", "s")))
seconds <- function(code) system.time(code)[["elapsed"]]
race <- function(name, rounds, ours, theirs) for (i in seq_len(rounds + 1)) {
  gc(FALSE)
  a <- seconds(ours())
  gc(FALSE)
  b <- seconds(theirs())
  if (i > 1) cat(name, a, b, "\\n")
}
rounds <- %(rounds)d
rows <- make(%(predicted)d)
fit <- dp_ols(y ~ ., rows, eps = 1, delta = 1e-6, noise = "gaussian", schema = schema)
exact <- lm(y ~ ., rows)
race("predict", 2 * rounds, function() predict(fit, rows), function() predict(exact, rows))
race("predict, intervals", rounds, function() predict(fit, rows, interval = "prediction"),
     function() predict(exact, rows, interval = "prediction"))
rows <- make(%(fitted)d)
race("fit", rounds, function() dp_ols(y ~ ., rows, eps = 1, schema = schema),
     function() lm(y ~ ., rows))
"""


def _run(code: str, library: Path) -> str:
    environment = os.environ | {"R_LIBS": str(library), "DPREG_PYTHON": sys.executable}
    environment["PYTHONPYCACHEPREFIX"] = tempfile.gettempdir()
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = ["Rscript", "--vanilla", "-e", code]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def _fresh(library: Path, rounds: int) -> list[tuple[float, float]]:
    times = []
    _run(FRESH["dpreg"], library)
    for _ in range(rounds):
        start = time.perf_counter()
        _run(FRESH["dpreg"], library)
        middle = time.perf_counter()
        _run(FRESH["lm"], library)
        times.append((middle - start, time.perf_counter() - middle))
    return times


def measure(library: Path, *, quick: bool) -> dict[str, list[tuple[float, float]]]:
    """Return pairs of seconds, dpreg's and lm's, for each wait."""
    rounds = 1 if quick else 5
    found = {"first fit in a fresh R": _fresh(library, rounds)}
    sizes = {"predicted": 10_000 if quick else 100_000, "fitted": 50_000 if quick else 1_000_000}
    for line in _run(WARM % {"rounds": rounds, **sizes}, library).splitlines():
        name, ours, theirs = line.strip().rsplit(" ", 2)
        found.setdefault(name, []).append((float(ours), float(theirs)))
    return found


def table(found: dict[str, list[tuple[float, float]]]) -> str:
    """Lay the medians out."""
    lines = [f"{'wait':<24}{'dpreg, s':>10}{'lm, s':>10}{'ratio':>8}{'goal':>8}"]
    for name, pairs in found.items():
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        # R's clock counts milliseconds.
        ratio = statistics.median(a / max(b, 1e-3) for a, b in pairs)
        goal = GOALS.get(name)
        reached = "-" if goal is None else f"{goal:g} {'yes' if ratio <= goal else 'NO'}"
        lines.append(f"{name:<24}{ours:>10.3f}{theirs:>10.3f}{ratio:>8.2f}{reached:>8}")
    return "\n".join(lines)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if shutil.which("Rscript") is None:
        print("R is not installed: nothing was measured")
        return
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        library = Path(os.environ.get("DPREG_R_LIBRARY", folder))
        if "DPREG_R_LIBRARY" not in os.environ:
            command = ["R", "CMD", "INSTALL", "--no-docs", f"--library={folder}", str(PACKAGE)]
            subprocess.run(command, check=True, capture_output=True)
        page = table(measure(library, quick=given.quick))
    print(page)
    if given.out:
        given.out.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
