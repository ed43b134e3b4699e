# Where Python is, how it starts, and the one door through which R reaches it.
#
# reticulate starts Python inside this process, at the first call that needs it. From then on it has
# no part: Python's module dpreg_bridge attaches rpy2 to the running R and leaves in `the` one R
# function, `the$door`, through which every call goes (see call.R).

the <- new.env(parent = emptyenv())
the$door <- NULL
the$pid <- NULL
the$said <- list()
the$running <- NULL # the Python that ran before this package wanted one, or ""
the$addresses <- list() # of ledgers on servers, by the address that is shown, which lacks the password

environment_name <- "r-dpreg"

#' Is Python there, and what to do if not
#'
#' The computing of this package is done by the Python package dpreg, inside the R process.
#' `dpreg_available()` tells whether it can be; `install_dpreg()` installs what it needs into a
#' virtual environment that this package finds by itself. From a folder of the source, what dpreg needs is installed as
#' the folder's lock pins it, each file by its hash.
#'
#' Python is looked for when the first fit needs it, in this order: the Python that this session
#' already runs; the one that the environment variable `DPREG_PYTHON` or `RETICULATE_PYTHON` names;
#' the virtual environment `r-dpreg`; whatever [reticulate::py_discover_config()] finds. Python's packages
#' are the installed ones: files of the working directory hide none of them. Objects that were fitted
#' earlier are printed, summarised, saved and used for predictions without Python.
#'
#' A process that was forked after Python had started (by [parallel::mclapply()], say) must not use
#' it: locks and sources of randomness would be shared with its parent. Calls there fail with a
#' condition of class `dpreg_fork_error`; use [parallel::parLapply()] on a PSOCK cluster, or fork
#' before the first fit.
#'
#' @param from What to install: the path of a folder that holds the Python package's source, or of a
#'   wheel; or an address that pip knows. The package is on no public index, and whoever took its name
#'   there would be installed: a name alone is taken only together with `index_url`.
#' @param extras What to install beside the computing: `"arrow"` (pyarrow) reads Parquet and CSV files and
#'   tables of the R package arrow; `"postgres"` (psycopg) keeps ledgers on a server. `character()` for none. For `dpreg_available()`: extras that are asked
#'   for, too.
#' @param envname Name or path of the virtual environment.
#' @param python The Python (3.11 or later, with its shared library) to make the environment from;
#'   by default reticulate's choice.
#' @param index_url A package index to use in place of the default one.
#' @param quiet Say nothing on success?
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns `dpreg_available()`: `TRUE` or `FALSE`; where it is `FALSE`, the attribute `"reason"` says
#'   why. `install_dpreg()`: the path of the environment's Python, invisibly.
#' @examples
#' if (!dpreg_available()) {
#'   message(attr(dpreg_available(), "reason"))
#' }
#' \dontrun{
#' install_dpreg("~/src/dpreg")       # the folder of its source
#' }
#' @export
dpreg_available <- strict(function(extras = character(), ...) {
  tryCatch(
    {
      open_door()
      for (extra in known_extras(extras)) {
        if (!python_call("has_module", list(name = extra_modules[[extra]]))) {
          dpreg_stop("python_missing", "Python has no module '", extra_modules[[extra]], "'. ", advice(extra))
        }
      }
      TRUE
    },
    dpreg_error = function(cond) structure(FALSE, reason = conditionMessage(cond))
  )
})

# What an extra of Python's dpreg brings.
extra_modules <- c(arrow = "pyarrow", postgres = "psycopg")

known_extras <- function(extras) {
  if (!is.character(extras) || !all(extras %in% names(extra_modules))) {
    dpreg_stop("argument_error", "extras may be ", listed(names(extra_modules)), ", or character() for none.")
  }
  extras
}

advice <- function(extra) {
  paste0('Run dpreg::install_dpreg("path/to/dpreg", extras = "', extra, '") and restart R.')
}

# R starts with the system's libraries before all others; a Python of the user's own, started from R,
# would load the system's Python library in place of its own.
users_library_path <- function() {
  path <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1]]
  script <- file.path(R.home("etc"), "ldpaths")
  added <- if (file.exists(script)) {
    show <- paste("unset LD_LIBRARY_PATH; .", shQuote(script), "; printf %s \"$LD_LIBRARY_PATH\"")
    strsplit(system2("sh", c("-c", shQuote(show)), stdout = TRUE), ":", fixed = TRUE)[[1]]
  }
  paste(path[!path %in% added], collapse = ":")
}

# Set environment variables; returns a function that restores them.
set_environment <- function(...) {
  new <- c(...)
  old <- Sys.getenv(names(new), unset = NA, names = TRUE)
  do.call(Sys.setenv, as.list(new))
  function() {
    Sys.unsetenv(names(old)[is.na(old)])
    if (!all(is.na(old))) do.call(Sys.setenv, as.list(old[!is.na(old)]))
  }
}

# Start Python if need be and return the function that reaches it.
open_door <- function() {
  if (!is.null(the$door)) {
    if (the$pid != Sys.getpid()) {
      dpreg_stop(
        "fork_error", "Python was started before this process was forked, and must not be used in ",
        "it: use parallel::parLapply() on a PSOCK cluster, or fork before the first fit."
      )
    }
    return(the$door)
  }
  the$running <- the$running %||% if (reticulate::py_available()) reticulate::py_config()$python else ""
  failure <- tryCatch(start_python(), error = identity)
  if (is.null(the$door)) missing_python(failure)
  the$pid <- Sys.getpid()
  the$door
}

start_python <- function() {
  chosen <- chosen_python()
  if (!is.null(chosen)) {
    # reticulate then looks no further (and does not run the tools of whatever project it stands in).
    restore <- set_environment(RETICULATE_PYTHON = chosen)
    on.exit(restore())
  }
  # reticulate imports numpy as it starts, and Python looks into the working directory first: a file
  # numpy.py or a folder dpreg there would be taken for the package.
  away <- tempfile("dpreg-start-")
  dir.create(away)
  here <- setwd(away)
  on.exit({
    setwd(here)
    unlink(away, recursive = TRUE)
  }, add = TRUE)
  reticulate::py_config()
  literal <- function(path) encodeString(path, quote = "'")
  # The working directory goes behind what is installed, and the bridge last, so that they hide nothing.
  reticulate::py_run_string(sprintf(
    "import sys
near = list(filter({'', '.', %s, %s}.__contains__, sys.path))
sys.path[:] = [*filter(lambda p, near=near: p not in near, sys.path), *near, %s]
import dpreg_bridge
dpreg_bridge.open_door(%s)",
    literal(here), literal(getwd()), literal(system.file("python", package = "dpreg")),
    literal(getLoadedDLLs()[["reticulate"]][["path"]])
  ), local = TRUE, convert = FALSE)
  NULL
}

# rpy2 says so when R runs inside Python.
python_hosts_r <- function() {
  grepl(paste0("current_pid=", Sys.getpid(), ":"), Sys.getenv("PYTHON_SESSION_INITIALIZED"),
        fixed = TRUE)
}

# The Python that this package insists on, or NULL where reticulate is to choose.
chosen_python <- function() {
  if (reticulate::py_available() || python_hosts_r()) return(NULL)
  chosen <- Sys.getenv("DPREG_PYTHON")
  if (nzchar(chosen)) return(checked_python(path.expand(chosen), chosen))
  if (nzchar(Sys.getenv("RETICULATE_PYTHON"))) return(NULL)
  if (reticulate::virtualenv_exists(environment_name)) reticulate::virtualenv_python(environment_name)
}

# The Python that DPREG_PYTHON names; what is wrong with it is said under that name.
checked_python <- function(path, typed) {
  blame <- function(...) {
    dpreg_stop("python_missing", "The environment variable DPREG_PYTHON names ", quoted(typed, Inf), ", ", ...,
               " Set it to a Python 3.11 or later that has dpreg, or unset it and run ",
               "dpreg::install_dpreg(\"path/to/dpreg\").")
  }
  if (!file.exists(path)) blame("and there is no such file.")
  if (dir.exists(path)) blame("which is a folder: the path of the program is needed, such as bin/python in it.")
  ask <- 'import sys; print("dpreg", sys.version_info >= (3, 11))'
  told <- suppressWarnings(tryCatch(
    system2(path, c("-I", "-c", shQuote(ask)), stdout = TRUE, stderr = FALSE),
    error = function(cond) ""
  ))
  if (!any(grepl("^dpreg (True|False)$", told))) blame("which does not run as Python.")
  if (!any(told == "dpreg True")) blame("which is too old.")
  path
}

# Why there is no door, and what to do, which depends on who chose the Python.
missing_python <- function(failure, running = the$running) {
  if (inherits(failure, "dpreg_error")) stop(failure)
  what <- python_failure(conditionMessage(failure))
  chosen <- Sys.getenv(c("DPREG_PYTHON", "RETICULATE_PYTHON"))
  chosen <- chosen[nzchar(chosen)][1]
  install <- "dpreg::install_dpreg(\"path/to/dpreg\")"
  ready <- reticulate::virtualenv_exists(environment_name)
  told <- if (nzchar(running %||% "")) {
    c("This session ran ", quoted(running, Inf), " as its Python before dpreg was asked for anything, and ", what, ". A session has ",
      "one Python: restart R and call dpreg::dpreg_available() before anything else starts Python",
      if (identical(names(chosen), "RETICULATE_PYTHON")) ", with RETICULATE_PYTHON unset", if (!ready) c(", after ", install), ".")
  } else if (!is.na(chosen)) {
    c("The environment variable ", names(chosen), " names ", quoted(chosen, Inf), ", and ", what, ". While it is set no other Python is looked ",
      "for, nor the one that install_dpreg() made: unset it (in .Renviron, too, if it is there)", if (!ready) c(", run ", install),
      " and restart R.")
  } else {
    found <- ready || !is.null(tryCatch(reticulate::py_discover_config(), error = function(cond) NULL))
    c(if (ready) "The environment that install_dpreg() made was used, and " else if (found) "A Python was found, and ",
      if (found) what else "No Python was found", ". Run ", install, " and restart R.")
  }
  dpreg_stop("python_missing", paste(told, collapse = ""))
}

# What went wrong, as part of a sentence.
python_failure <- function(failure) {
  module <- regmatches(failure, regexpr("(?<=No module named ')[^']+", failure, perl = TRUE))
  if (any(startsWith(module, "dpreg.")) || grepl("cannot import name .* from 'dpreg", failure)) {
    "its dpreg is of another version than this R package"
  } else if (length(module)) {
    paste0("it has no module '", sub("\\..*", "", module), "'")
  } else {
    paste0("it could not be used: ", sub("[.]?\\s*$", "", failure))
  }
}
