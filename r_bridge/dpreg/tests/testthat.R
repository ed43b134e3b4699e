# testthat is suggested, not needed: without it there is nothing to run here.
if (requireNamespace("testthat", quietly = TRUE)) {
  library(testthat)
  library(dpreg)

  test_check("dpreg")
}
