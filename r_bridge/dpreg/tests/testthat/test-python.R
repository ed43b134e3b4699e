test_that("environment variables are restored", {
  restore <- set_environment(DPREG_TEST_VARIABLE = "new")
  expect_identical(Sys.getenv("DPREG_TEST_VARIABLE"), "new")
  again <- set_environment(DPREG_TEST_VARIABLE = "newer")
  again()
  expect_identical(Sys.getenv("DPREG_TEST_VARIABLE"), "new")
  restore()
  expect_identical(Sys.getenv("DPREG_TEST_VARIABLE", NA), NA_character_)
})

test_that("a Python started from R sees the user's own library path", {
  skip_on_os("windows")
  old <- Sys.getenv("LD_LIBRARY_PATH")
  on.exit(Sys.setenv(LD_LIBRARY_PATH = old))
  Sys.setenv(LD_LIBRARY_PATH = paste0(old, ":/opt/own"))
  own <- strsplit(users_library_path(), ":", fixed = TRUE)[[1]]
  expect_true("/opt/own" %in% own)
  expect_false(R.home("lib") %in% own)
})

test_that("R before 4.5 gets the rpy2 that works with it", {
  expect_identical(rpy2_requirement(as.package_version("4.2.2")), "rpy2-rinterface>=3.6.3,<3.6.6")
  expect_identical(rpy2_requirement(as.package_version("4.5.0")), "rpy2-rinterface>=3.6.3")
})

test_that("a wrong DPREG_PYTHON is blamed by its own name", {
  blamed <- function(path, why) {
    cond <- expect_error(checked_python(path, path), class = "dpreg_python_missing")
    expect_match(conditionMessage(cond), paste0("DPREG_PYTHON names '", path, "', ", why), fixed = TRUE)
  }
  blamed("/nowhere/python", "and there is no such file")
  blamed(tempdir(), "which is a folder")
  skip_on_os("windows")
  liar <- tempfile()
  writeLines(c("#!/bin/sh", "echo hello"), liar)
  Sys.chmod(liar, "755")
  blamed(liar, "which does not run as Python")
  writeLines(c("#!/bin/sh", "echo dpreg False"), liar)
  blamed(liar, "which is too old")
})

test_that("an extra that is missing is named with R's way to install it", {
  need_python()
  extra_modules <- c(arrow = "a_module_that_nobody_has")
  local_mocked <- function() {
    space <- asNamespace("dpreg")
    unlockBinding("extra_modules", space)
    old <- space$extra_modules
    assign("extra_modules", extra_modules, space)
    old
  }
  old <- local_mocked()
  on.exit(assign("extra_modules", old, asNamespace("dpreg")))
  told <- dpreg_available("arrow")
  expect_false(told)
  expect_match(attr(told, "reason"), 'dpreg::install_dpreg("path/to/dpreg", extras = "arrow")', fixed = TRUE)
})

test_that("nothing is installed by a name that anybody could take on a public index", {
  skip_if_not_installed("reticulate")
  nowhere <- list(envname = tempfile(), python = "/nowhere/python")
  for (from in list(list(), list(NA_character_), list(c("a", "b")))) {
    expect_error(do.call(install_dpreg, c(from, nowhere)), "from must be a text", class = "dpreg_argument_error")
  }
  expect_error(do.call(install_dpreg, c("dpreg", nowhere)), "no public index", class = "dpreg_argument_error")
})

test_that("a wrong folder fails before an environment is made", {
  skip_if_not_installed("reticulate")
  wrong <- tempfile("source-")
  dir.create(wrong)
  home <- tempfile("environments-")
  restore <- set_environment(WORKON_HOME = home)
  on.exit(restore())
  refused <- function(from, why) expect_error(install_dpreg(from), why, class = "dpreg_argument_error")
  refused(wrong, "without its pyproject.toml.$")
  file.create(file.path(wrong, "DESCRIPTION"))
  refused(wrong, "Python's is the folder above r_bridge")
  writeLines("name = \"another\"", file.path(wrong, "pyproject.toml"))
  refused(wrong, "without dpreg's Python source")
  wheel <- file.path(wrong, "other-1.0.whl")
  file.create(wheel)
  refused(wheel, "no wheel or source archive of dpreg")
  expect_false(dir.exists(home))
  writeLines(c("[project]", "name = \"dpreg\""), file.path(wrong, "pyproject.toml"))
  expect_identical(checked_source(wrong), wrong)
})

test_that("what is installed is what the lock pins, by its hashes", {
  source <- tempfile("source-")
  dir.create(file.path(source, "locks"), recursive = TRUE)
  expect_null(locked_packages(source, "arrow"))
  entry <- function(name) c(paste0(name, "==1.0 \\"), "    --hash=sha256:aa")
  writeLines(c("# Written by a lock.", entry("numpy")), file.path(source, "locks", "run.txt"))
  writeLines(c("# Written by a lock.", unlist(lapply(c("cffi", "numpy", "psycopg", "pyarrow", "pytest", "rpy2-rinterface"), entry))),
             file.path(source, "locks", "r.txt"))
  expect_identical(names(locked_packages(source, character())), c("cffi", "numpy", "rpy2-rinterface"))
  expect_identical(names(locked_packages(source, c("arrow", "postgres"))), c("cffi", "numpy", "psycopg", "pyarrow", "rpy2-rinterface"))
  expect_identical(locked_packages(source, "arrow")$pyarrow, entry("pyarrow"))
})

test_that("who chose the wrong Python is said", {
  skip_if_not_installed("reticulate")
  restore <- set_environment(DPREG_PYTHON = "", RETICULATE_PYTHON = "", WORKON_HOME = tempfile())
  on.exit(restore())
  absent <- simpleError("ModuleNotFoundError: No module named 'dpreg'")
  told <- function(running = "", failure = absent) {
    conditionMessage(expect_error(missing_python(failure, running), class = "dpreg_python_missing"))
  }
  expect_match(told("/own/python"), "This session ran '/own/python' as its Python before dpreg was asked .* it has no module 'dpreg'")
  expect_match(told("/own/python"), "restart R and call dpreg::dpreg_available() before anything else", fixed = TRUE)
  Sys.setenv(RETICULATE_PYTHON = "/set/python")
  expect_match(told(), "^The environment variable RETICULATE_PYTHON names '/set/python', and it has no module 'dpreg'. While it is set")
  expect_match(told(), "unset it (in .Renviron, too, if it is there)", fixed = TRUE)
  expect_match(told("/own/python"), "with RETICULATE_PYTHON unset", fixed = TRUE)
  expect_match(told(failure = simpleError("No module named 'dpreg.rooms'")), "another version than this R package")
  Sys.setenv(DPREG_PYTHON = "/first/python")
  expect_match(told(), "^The environment variable DPREG_PYTHON names '/first/python'")
  Sys.setenv(DPREG_PYTHON = "", RETICULATE_PYTHON = "")
  expect_match(told(), "Run dpreg::install_dpreg(\"path/to/dpreg\") and restart R.", fixed = TRUE)
  for (running in c("", "/own/python")) expect_no_match(told(running), "rpy2")
})

test_that("class names become condition names", {
  expect_identical(snake_case(c("SchemaError", "NotReleased", "InternalError")),
                   c("schema_error", "not_released", "internal_error"))
})

test_that("garbage of reticulate's may be collected while rpy2 is at work", {
  test_verbs()
  # Without dpreg_bridge.finalizers this ends the process.
  reticulate::py_run_string("
def _add_collect():
    from dpreg_bridge.rpy import R
    from dpreg_bridge.verbs import VERBS
    def collect():
        for _ in range(3):
            R.baseenv['gc']()
        return True
    VERBS['collect'] = collect
_add_collect()
def _make_objects():
    return [object() for _ in range(50)]
", local = FALSE)
  make <- reticulate::import_main(convert = FALSE)$`_make_objects`
  for (round in 1:5) {
    for (i in 1:20) {
      x <- make()
      y <- x[[1]]
    }
    x <- y <- NULL
    expect_true(python_call("collect"))
  }
})
