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
