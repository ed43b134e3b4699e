# Installing the Python side, into a virtual environment of its own.

#' @rdname dpreg_available
#' @export
install_dpreg <- strict(function(from, extras = "arrow", envname = "r-dpreg", python = NULL,
                                 index_url = NULL, quiet = FALSE, ...) {
  extras <- known_extras(extras)
  if (missing(from) || !is_name(from)) {
    dpreg_stop("argument_error", "from must be a text: the folder of dpreg's Python source, or a wheel.")
  }
  if (file.exists(from)) {
    from <- checked_source(normalizePath(from))
  } else if (is.null(index_url) && !grepl("://", from, fixed = TRUE)) {
    dpreg_stop("argument_error", "from names no file or folder here. dpreg is on no public index, where ",
               "whoever took its name would be installed: give the folder of its source, or index_url, ",
               "an index that you trust.")
  }
  say <- function(...) if (!quiet) message("install_dpreg(): ", ...)
  # rpy2 then reads R's library when it runs: neither a compiler nor R's headers are needed.
  restore <- set_environment(RPY2_CFFI_MODE = "ABI", LD_LIBRARY_PATH = users_library_path(),
                             PIP_DISABLE_PIP_VERSION_CHECK = "1")
  on.exit(restore())
  log <- tempfile("install-dpreg-", fileext = ".log")
  if (!reticulate::virtualenv_exists(envname)) {
    say("making the virtual environment ", envname, ".")
    utils::capture.output(suppressMessages(reticulate::virtualenv_create(envname, python = python, packages = FALSE)))
  }
  path <- reticulate::virtualenv_python(envname)
  pip <- function(...) {
    index <- if (!is.null(index_url)) c("--index-url", shQuote(index_url))
    arguments <- c("-m", "pip", "install", "--quiet", "--no-input", "--progress-bar", "off", index, ...)
    if (system2(path, arguments, stdout = log, stderr = log) != 0) {
      why <- grep("^ERROR", readLines(log, warn = FALSE), value = TRUE)
      dpreg_stop("install_error", "pip could not install dpreg into ", envname, ". ", paste(utils::head(why, 3), collapse = " "),
                 " All that it said is in ", log, ".")
    }
  }
  locked <- if (dir.exists(from)) locked_packages(from, extras)
  if (is.null(locked)) {
    say("installing dpreg and what it needs; this takes a minute or two.")
    whole <- if (length(extras)) paste0(from, "[", paste(extras, collapse = ","), "]") else from
    pip("--upgrade", shQuote(c(whole, rpy2_requirement())))
  } else {
    say("installing ", length(locked), " packages, as the lock of dpreg pins them; this takes a minute or two.")
    list <- tempfile("lock-", fileext = ".txt")
    writeLines(unlist(locked), list)
    pip("--require-hashes", "-r", shQuote(list))
    say("installing dpreg from ", from, ".")
    pip("--no-deps", "--no-build-isolation", "--force-reinstall", shQuote(from))
    unlink(list)
  }
  unlink(log)
  elsewhere <- Sys.getenv(c("DPREG_PYTHON", "RETICULATE_PYTHON"))
  elsewhere <- names(elsewhere)[nzchar(elsewhere)]
  say("dpreg is installed in the virtual environment ", envname, ".",
      if (length(elsewhere)) paste0(" Unset ", elsewhere[1], ", which names another Python."),
      if (length(elsewhere) || reticulate::py_available()) " Restart R to use it.")
  invisible(path)
})

# Later releases of rpy2-rinterface use a function of R that came with 4.5.
rpy2_requirement <- function(version = getRversion()) {
  if (version < "4.5.0") "rpy2-rinterface>=3.6.3,<3.6.6" else "rpy2-rinterface>=3.6.3"
}

# A folder of dpreg's Python source, or a file that pip can install. What is neither fails here, before anything is made.
checked_source <- function(from) {
  if (!dir.exists(from)) {
    if (!grepl("^dpreg-.*[.](whl|tar[.]gz)$", basename(from))) {
      dpreg_stop("argument_error", "from is a file, and no wheel or source archive of dpreg: their names start with ",
                 "\"dpreg-\" and end in .whl or .tar.gz.")
    }
    return(from)
  }
  project <- file.path(from, "pyproject.toml")
  if (file.exists(project) && any(grepl("^name = \"dpreg\"", readLines(project, warn = FALSE)))) return(from)
  dpreg_stop("argument_error", "from is a folder without dpreg's Python source, that is, without its pyproject.toml.",
             if (file.exists(file.path(from, "DESCRIPTION"))) " This one holds an R package: Python's is the folder above r_bridge.")
}

# What dpreg needs to run within R, by the folder's lock: the lines of each package, by name. NULL without a lock.
locked_packages <- function(from, extras) {
  files <- file.path(from, "locks", c("run.txt", "r.txt"))
  if (!all(file.exists(files))) return(NULL)
  read <- lapply(files, function(file) {
    lines <- grep("^#", readLines(file, warn = FALSE), value = TRUE, invert = TRUE)
    packages <- split(lines, cumsum(grepl("^[a-z0-9]", lines)))
    stats::setNames(packages, vapply(packages, function(own) sub("==.*", "", own[1]), ""))
  })
  beside <- c("rpy2-rinterface", "cffi", "pycparser", unlist(extra_packages[extras]))
  all <- read[[2]]
  all[names(all) %in% c(names(read[[1]]), beside)]
}

# What the lock holds for each extra.
extra_packages <- list(arrow = "pyarrow", postgres = c("psycopg", "psycopg-binary", "typing-extensions"))
