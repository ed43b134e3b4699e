# Where Python is, how it starts, and the one door through which R reaches it.
#
# reticulate starts Python inside this process, at the first call that needs it. From then on it has
# no part: Python's module dpreg_bridge attaches rpy2 to the running R and leaves in `the` one R
# function, `the$door`, through which every call goes (see call.R).

the <- new.env(parent = emptyenv())
the$door <- NULL
the$pid <- NULL

environment_name <- "r-dpreg"

# Later releases of rpy2-rinterface use a function of R that came with 4.5.
rpy2_requirement <- function(version = getRversion()) {
  if (version < "4.5.0") "rpy2-rinterface>=3.6.3,<3.6.6" else "rpy2-rinterface>=3.6.3"
}

#' Is Python there, and what to do if not
#'
#' The computing of this package is done by the Python package dpreg, inside the R process.
#' `dpreg_available()` tells whether it can be; `install_dpreg()` installs what it needs into a
#' virtual environment that this package finds by itself.
#'
#' Python is looked for when the first fit needs it, in this order: the Python that this session
#' already runs; the one that the environment variable `DPREG_PYTHON` or `RETICULATE_PYTHON` names;
#' the virtual environment `r-dpreg`; whatever [reticulate::py_discover_config()] finds. Objects that
#' were fitted earlier are printed, summarised and saved without Python.
#'
#' A process that was forked after Python had started (by [parallel::mclapply()], say) must not use
#' it: locks and sources of randomness would be shared with its parent. Calls there fail with a
#' condition of class `dpreg_fork_error`; use [parallel::parLapply()] on a PSOCK cluster, or fork
#' before the first fit.
#'
#' @param from What to install: a requirement such as `"dpreg"`, the path of a folder that holds the
#'   Python package's source, or of a wheel.
#' @param envname Name or path of the virtual environment.
#' @param python The Python (3.11 or later, with its shared library) to make the environment from;
#'   by default reticulate's choice.
#' @param index_url A package index to use in place of the default one.
#' @param quiet Say nothing on success?
#' @returns `dpreg_available()`: `TRUE` or `FALSE`; where it is `FALSE`, the attribute `"reason"` says
#'   why. `install_dpreg()`: the path of the environment's Python, invisibly.
#' @examples
#' if (!dpreg_available()) {
#'   message(attr(dpreg_available(), "reason"))
#' }
#' \dontrun{
#' install_dpreg()                    # from the package index
#' install_dpreg("~/src/dpreg")       # from a folder
#' }
#' @export
dpreg_available <- function() {
  tryCatch(
    {
      open_door()
      TRUE
    },
    dpreg_error = function(cond) structure(FALSE, reason = conditionMessage(cond))
  )
}

#' @rdname dpreg_available
#' @export
install_dpreg <- function(from = "dpreg", envname = "r-dpreg", python = NULL, index_url = NULL,
                          quiet = FALSE) {
  need_reticulate()
  if (file.exists(from)) from <- normalizePath(from)
  # rpy2 then reads R's library when it runs: neither a compiler nor R's headers are needed.
  restore <- set_environment(RPY2_CFFI_MODE = "ABI", LD_LIBRARY_PATH = users_library_path())
  on.exit(restore())
  if (!reticulate::virtualenv_exists(envname)) {
    reticulate::virtualenv_create(envname, python = python, packages = NULL)
  }
  path <- reticulate::virtualenv_python(envname)
  options <- if (is.null(index_url)) character() else c("--index-url", index_url)
  arguments <- c("-m", "pip", "install", "--upgrade", options, shQuote(c(from, rpy2_requirement())))
  status <- system2(path, arguments, stdout = if (quiet) FALSE else "")
  if (status != 0) {
    dpreg_stop("install_error", "pip could not install ", from, " into ", envname,
               "; what it printed says why.")
  }
  if (!quiet) {
    message("dpreg is installed in the virtual environment ", envname, ".",
            if (reticulate::py_available()) " Restart R to use it.")
  }
  invisible(path)
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

need_reticulate <- function() {
  if (!requireNamespace("reticulate", quietly = TRUE)) {
    dpreg_stop("python_missing", "This needs the R package 'reticulate', which is not installed.")
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
  need_reticulate()
  failure <- tryCatch(start_python(), error = conditionMessage)
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
  # The folder goes last, so that it hides nothing.
  reticulate::py_run_string(sprintf(
    "import sys; sys.path.append(%s); import dpreg_bridge; dpreg_bridge.open_door(%s)",
    python_text(system.file("python", package = "dpreg")),
    python_text(getLoadedDLLs()[["reticulate"]][["path"]])
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
  if (nzchar(chosen)) return(path.expand(chosen))
  if (nzchar(Sys.getenv("RETICULATE_PYTHON"))) return(NULL)
  if (reticulate::virtualenv_exists(environment_name)) reticulate::virtualenv_python(environment_name)
}

missing_python <- function(failure) {
  python <- tryCatch(reticulate::py_discover_config()$python, error = function(cond) NULL)
  module <- regmatches(failure, regexpr("(?<=No module named ')[^'.]+", failure, perl = TRUE))
  reason <- if (is.null(python)) {
    "No Python was found."
  } else if (length(module)) {
    paste0("The Python at ", python, " has no module '", module, "'.")
  } else {
    paste0("The Python at ", python, " could not be used: ", sub("\\s+$", "", failure))
  }
  dpreg_stop(
    "python_missing", reason, " Run dpreg::install_dpreg() and restart R, or set the environment ",
    "variable DPREG_PYTHON to a Python that has dpreg and ", rpy2_requirement(), "."
  )
}
