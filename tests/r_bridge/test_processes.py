"""Objects and processes: without Python, forked, a thousand calls, and R inside Python."""

from __future__ import annotations

import subprocess
import sys

FIT = """
library(dpreg)
schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), gear = list(levels = 3:5))
fit <- dp_select(mpg ~ wt + log(hp) + factor(gear), mtcars, eps = 100, schema = schema, draws = 3)
"""

MORE = """
means <- dp_mean(c("mpg", "wt"), mtcars, eps = 100, schema = schema)
study <- simulation_study(c(1, 0), 100, radius = 1, eps = 1, datasets = 5, bound = 3)
"""

USE = """
print(fit); print(summary(fit)); print(coef(fit)); print(vcov(fit)); print(confint(fit))
print(formula(fit)); print(nobs(fit)); print(tidy(fit)); print(glance(fit))
print(as.data.frame(fit)); pdf(NULL); plot(fit)
print(means); print(summary(means)); print(tidy(means)); print(confint(means)); plot(means)
print(study); print(summary(study)); print(as.data.frame(study)); plot(study)
"""


def test_a_saved_object_needs_no_python(rscript) -> None:
    whole = rscript(FIT + MORE + 'saveRDS(list(fit, means, study), "fit.rds")\n' + USE)
    alone = rscript(
        'library(dpreg)\nall <- readRDS("fit.rds")\n'
        "fit <- all[[1]]; means <- all[[2]]; study <- all[[3]]\n"
        + USE
        + 'stopifnot(!"reticulate" %in% loadedNamespaces())',
        DPREG_PYTHON="/nowhere/python",
        PATH="/usr/bin:/bin",
    )
    assert alone == whole
    assert "Differentially private variable selection" in alone


def test_without_python_a_fit_says_what_to_run(rscript) -> None:
    told = rscript(
        """
        library(dpreg)
        stopifnot(!dpreg_available())
        cond <- tryCatch(dp_select(mpg ~ wt, mtcars, eps = 1, schema = list(wt = c(1, 6))),
                         dpreg_python_missing = function(cond) cond)
        cat(conditionMessage(cond))
        """,
        DPREG_PYTHON="/nowhere/python",
    )
    assert "install_dpreg(" in told
    assert "/nowhere/python" in told


def test_hostile_text_in_the_very_first_call_is_missing(rscript) -> None:
    """Python and rpy2 start in that call; text that R cannot translate once ended the process."""
    told = rscript(
        """
        library(dpreg)
        level <- "\\xe9"
        Encoding(level) <- "bytes"
        bad <- transform(mtcars, g = structure(rep(1L, 32), levels = level, class = "factor"))
        schema <- list(mpg = c(5, 40), wt = c(1, 6), g = c("a", "b"))
        fit <- tryCatch(dp_ols(mpg ~ wt + g, bad, eps = 1, schema = schema), error = identity)
        cat(class(fit)[1], length(coef(dp_ols(mpg ~ wt, bad, eps = 10, schema = schema[1:2]))))
        """
    )
    assert told == "dp_ols 2"


def test_forked_workers_refuse_and_do_not_hang(rscript) -> None:
    told = rscript(
        FIT
        + """
        again <- function(i) tryCatch(
          dp_select(mpg ~ wt, mtcars, eps = 1, schema = schema, fit = NULL)$selected,
          dpreg_fork_error = function(cond) "refused")
        cat(unlist(parallel::mclapply(1:4, again, mc.cores = 2)), "\\n")
        cat(unlist(parallel::mclapply(1:2, function(i) names(coef(fit))[1], mc.cores = 2)), "\\n")
        """
    )
    assert told.split("\n")[:2] == ["refused refused refused refused ", "(Intercept) (Intercept) "]


def test_workers_forked_before_the_first_fit_work(rscript) -> None:
    told = rscript(
        """
        library(dpreg)
        schema <- list(mpg = c(5, 40), wt = c(1, 6))
        noisy <- function(i) coef(dp_ols(mpg ~ wt, mtcars, eps = 1, schema = schema))
        fits <- parallel::mclapply(1:2, noisy, mc.cores = 2)
        cat(length(unique(fits)), lengths(fits))
        """
    )
    # Each worker started a Python of its own, with noise of its own.
    assert told == "2 2 2"


def test_interrupts_stop_r_and_python_alike(rscript) -> None:
    told = rscript(
        FIT
        + """
        interrupted <- function(work) {
          system(paste0("(sleep 1; kill -INT ", Sys.getpid(), ") &"))
          end <- Sys.time() + 20
          tryCatch(work(end), interrupt = function(cond) "stopped")
        }
        r <- function(end) while (Sys.time() < end) NULL
        calls <- function(end) while (Sys.time() < end) once()
        once <- function() dp_select(mpg ~ wt + hp, mtcars, eps = 1, schema = schema, fit = NULL)
        estimator <- function(end) {
          late <- function(block) {
            while (Sys.time() < end) NULL
            1
          }
          sample_aggregate(late, mtcars$mpg, eps = 1, bounds = c(5, 40), blocks = 2)
        }
        for (work in list(r, calls, estimator, r, calls)) {
          stopifnot(identical(interrupted(work), "stopped"))
          stopifnot(inherits(once(), "dp_select"))
          invisible(gc())
        }
        cat("fine")
        """
    )
    assert told == "fine"


def test_a_thousand_calls_keep_memory(rscript) -> None:
    told = rscript(
        FIT
        + """
        resident <- function() {
          invisible(gc())
          line <- grep("VmRSS", readLines("/proc/self/status"), value = TRUE)
          as.numeric(gsub("[^0-9]", "", line)) / 1024
        }
        once <- function() dp_select(mpg ~ wt + hp, mtcars, eps = 1, schema = schema, fit = NULL)
        for (i in 1:50) once()
        before <- resident()
        for (i in 1:1000) once()
        cat(resident() - before)
        """
    )
    assert float(told) < 50


def test_r_hosted_by_python(environment) -> None:
    code = """
import os
os.environ.setdefault("RPY2_CFFI_MODE", "ABI")
from rpy2 import robjects
from rpy2.robjects.packages import importr

dpreg = importr("dpreg")
schema = robjects.r("list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))")
formula = robjects.Formula("mpg ~ wt + log(hp)")
for i in range(30):
    fit = dpreg.dp_select(formula, robjects.r["mtcars"], eps=10, schema=schema)
    robjects.r("gc()")
seeded = dpreg.dp_select(formula, robjects.r["mtcars"], eps=10, schema=schema, unsafe_seed=1)
print(",".join(fit.rclass), len(seeded.rx2("models")))
try:
    dpreg.dp_select(robjects.Formula("mpg ~ poly(wt, 2)"), robjects.r["mtcars"], eps=1)
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["dp_select,dp_result 1", "RRuntimeError"]
