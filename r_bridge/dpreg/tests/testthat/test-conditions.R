test_verbs()

test_that("Python's errors arrive as classed conditions with Python's words", {
  fit <- function(...) dp_select(mpg ~ wt + hp, mtcars, ..., schema = car_schema, fit = NULL)
  cond <- expect_error(fit(eps = -1), class = "dpreg_argument_error")
  expect_s3_class(cond, "dpreg_error")
  expect_identical(conditionMessage(cond), "eps must be above 0; got -1.")
  expect_identical(conditionCall(cond), quote(dp_select(mpg ~ wt + hp, mtcars, ..., schema = car_schema, fit = NULL)))
  rows <- do.call(dp_select, list(mpg ~ wt, mtcars, eps = -1)) |> tryCatch(error = conditionCall)
  expect_identical(deparse1(rows), "dp_select(mpg ~ wt, ..., eps = -1)")
  expect_error(fit(eps = 1, contributions = 1.5), "got 1.5", class = "dpreg_argument_error")
  expect_error(fit(eps = 1, method = PCLS(mechanism = "magic")), "'magic'", class = "dpreg_argument_error")
  expect_error(dp_select(mpg ~ log(wt), mtcars, eps = 1, schema = list(wt = c(-1, 1))),
               class = "dpreg_schema_error")
  expect_error(dp_select(mpg ~ wt, mtcars, eps = 1, schema = list(wt = c(2, 1))), "'wt'",
               class = "dpreg_schema_error")
  expect_error(dp_select(mpg ~ wt, mtcars, eps = 1, schema = "nowhere.toml"), "nowhere.toml",
               class = "dpreg_schema_error")
})

test_that("arguments are checked before they cross", {
  fit <- function(...) dp_select(mpg ~ wt, mtcars, schema = car_schema, ...)
  expect_error(fit(eps = NA), "eps must not be NA", class = "dpreg_argument_error")
  expect_error(fit(eps = Sys.Date()), "'Date'", class = "dpreg_argument_error")
  expect_error(fit(eps = 1, keep = "hp"), "'hp' is not a term", class = "dpreg_argument_error")
  expect_error(fit(eps = 1, shares = c(fit = NA)), "NA", class = "dpreg_argument_error")
  for (bad in list(1, c(1, 2), list(1), mtcars)) {
    expect_error(dp_select(mpg ~ wt, mtcars, 1, schema = bad), class = "dpreg_schema_error")
  }
  expect_error(dp_select(mpg ~ wt, mtcars, 1, schema = list(wt = 1:3)), "labels",
               class = "dpreg_schema_error")
})

test_that("arguments keep their kinds", {
  given <- list(a = 0.1, b = 3, c = 2L, d = TRUE, e = "x", f = list("one"), g = list(u = 1, v = "w"),
                h = c(1.5, 2), i = 1e300, j = "0.1")
  told <- python_call("echo", c(given, list(n = NULL)))
  expect_equal(told[names(given)], utils::modifyList(given, list(h = list(1.5, 2L))),
               ignore_attr = FALSE, tolerance = 0)
  expect_true(is.integer(told$b) && is.double(told$a) && is.null(told$n))
})

test_that("text survives both ways", {
  for (text in c("", "gr\u00f6\u00dfe", "\u65e5\u672c", "a\"b\\c\nd", "NA")) {
    expect_identical(python_call("echo", list(x = text))$x, text)
  }
})

test_that("unexpected errors tell their class and no cell", {
  cond <- expect_error(python_call("fail", list(text = "row 7 holds 42")),
                       class = "dpreg_internal_error")
  expect_no_match(conditionMessage(cond), "42")
  expect_match(conditionMessage(cond), "ValueError")
  old <- options(dpreg.debug = TRUE)
  on.exit(options(old))
  expect_error(python_call("fail", list(text = "row 7 holds 42")), "row 7 holds 42")
})

test_that("dpreg's warnings are classed, and no others come through", {
  said <- list()
  value <- withCallingHandlers(
    python_call("warn", list(text = "bounds are poor")),
    warning = function(cond) {
      said[[length(said) + 1]] <<- cond
      invokeRestart("muffleWarning")
    }
  )
  expect_identical(value, 1L)
  expect_length(said, 1)
  expect_s3_class(said[[1]], "dpreg_warning")
  expect_identical(conditionMessage(said[[1]]), "bounds are poor")
})

spent <- function(ledger) as.numeric(dp_ledger(ledger$path)$spent[["eps"]])

as_errors <- function(code) {
  old <- options(warn = 2)
  on.exit(options(old))
  code
}

test_that("whoever takes a warning for an error has spent nothing", {
  set.seed(5)
  rows <- data.frame(y = runif(300), x = runif(300), z = runif(300), b = rbinom(300, 1, 0.5))
  known <- list(y = c(0, 1), x = c(0, 1), b = c(0, 1))
  calls <- list(
    function(ledger) dp_ols(y ~ x + z, rows, eps = 1, schema = known, budget = ledger),
    function(ledger) dp_ols(y ~ x + z, rows, eps = 1, schema = known["y"], budget = ledger),
    function(ledger) dp_select(y ~ x + z, rows, eps = 1, schema = known, budget = ledger),
    function(ledger) dp_glm(b ~ x, rows, eps = 0.1, schema = known, budget = ledger),
    function(ledger) dp_glm(b ~ x + z, rows, eps = 0.1, schema = known, budget = ledger)
  )
  for (call in calls) {
    ledger <- dp_ledger(tempfile(fileext = ".db"), eps = 100)
    caught <- tryCatch(call(ledger), warning = identity)
    expect_s3_class(caught, "dpreg_warning")
    expect_error(as_errors(call(ledger)), "converted from warning")
    expect_equal(spent(ledger), 0)
    # The warnings are signalled once each, and the call is charged once.
    said <- character()
    told <- withCallingHandlers(call(ledger), warning = function(cond) {
      expect_equal(spent(ledger), 0)
      said <<- c(said, conditionMessage(cond))
      invokeRestart("muffleWarning")
    })
    expect_identical(anyDuplicated(said), 0L)
    expect_identical(said[[1]], conditionMessage(caught))
    expect_equal(spent(ledger), told$eps)
  }
  # The last call warns of the column and of the rows.
  expect_length(said, 2)
})

test_that("a warning after a charge stops nothing", {
  test_verbs()
  ledger <- dp_ledger(tempfile(fileext = ".db"), eps = 100)
  said <- character()
  value <- withCallingHandlers(
    python_call("warn_late", list(budget = ledger$path)),
    warning = function(cond) {
      said <<- c(said, conditionMessage(cond))
      invokeRestart("muffleWarning")
    }
  )
  expect_identical(said, c("early", "late"))
  expect_equal(spent(ledger), 1)
})

test_that("an interrupt ends the call and leaves all usable", {
  skip_on_os("windows")
  system(paste0("(sleep 1; kill -INT ", Sys.getpid(), ") &"))
  start <- proc.time()[["elapsed"]]
  outcome <- tryCatch(python_call("wait", list(seconds = 60)), interrupt = function(cond) "stopped")
  expect_identical(outcome, "stopped")
  expect_lt(proc.time()[["elapsed"]] - start, 30)
  expect_s3_class(dp_select(mpg ~ wt, mtcars, 1, schema = car_schema, fit = NULL), "dp_select")
})

test_that("an interrupt that falls into a finalizer is not lost", {
  skip_on_os("windows")
  system(paste0("(sleep 0.7; kill -INT ", Sys.getpid(), ") 2>/dev/null &"))
  outcome <- tryCatch(python_call("finalize", list(seconds = 2)), interrupt = function(cond) "stopped")
  expect_identical(outcome, "stopped")
})

test_that("the functions have Python's arguments and defaults", {
  python <- function(value) {
    if (is.call(value)) value <- eval(value)
    if (inherits(value, "family")) value <- value$family
    if (identical(value, "(Intercept)")) "Intercept" else value
  }
  functions <- c("dp_select", "dp_ols", "dp_glm", "dp_mean", "dp_quantile", "dp_histogram", "dp_suffstats", "sample_aggregate",
                 "simulation_study", "selection_study", "dp_plan", "dp_plan_glm", "dp_ledger")
  in_python <- c(dp_plan = "plan", dp_plan_glm = "plan_glm", dp_ledger = "Ledger")
  required <- list(simulation_study = "beta", selection_study = c("formula", "data", "schema"),
                   sample_aggregate = c("estimator", "data", "eps", "bounds"), dp_plan = character(),
                   dp_plan_glm = c("formula", "schema"),
                   # A cap is eps and delta; without one an account that exists is opened.
                   dp_ledger = c("path", "eps", "delta"))
  for (name in functions) {
    arguments <- formals(getExportedValue("dpreg", name))
    arguments$... <- NULL
    told <- python_call("defaults", list(`function` = if (name %in% names(in_python)) in_python[[name]] else name))
    if (name == "dp_ledger") told$path <- NULL
    if (name == "sample_aggregate") told$where <- NULL # its data may be anything in R
    in_r <- c(where = "subset", cov_type = "vcov")
    renamed <- names(told) %in% names(in_r)
    names(told)[renamed] <- in_r[names(told)[renamed]]
    needed <- required[[name]] %||%
      intersect(names(arguments), c("formula", "x", "q", "eps", if (grepl("select|ols|glm", name)) "data"))
    expect_identical(setdiff(names(arguments), names(told)), needed, info = name)
    expect_identical(setdiff(names(told), names(arguments)), character(), info = name)
    expect_equal(lapply(as.list(arguments)[names(told)], python), told[names(told)], info = name)
  }
})

test_that("an error is also of the classes that it is a case of", {
  cond <- expect_error(python_call("lose_connection"), class = "dpreg_lost_connection")
  expect_s3_class(cond, "dpreg_ledger_error")
  expect_s3_class(cond, "dpreg_error")
  # No server is there, or psycopg is not.
  cond <- expect_error(dp_ledger("postgresql://nobody:secret@127.0.0.1:1/none", eps = 1, timeout = 0),
                       class = "dpreg_error")
  expect_no_match(paste(conditionMessage(cond), deparse1(conditionCall(cond))), "secret", fixed = TRUE)
})

test_that("whatever Python has, R has under a name of its own", {
  ours <- c(Ledger = "dp_ledger", plan = "dp_plan", load = "dp_load", write_report = "dp_report",
            plan_glm = "dp_plan_glm", Schema = "schema_skeleton", datasets = "load_randhie")
  for (name in setdiff(python_call("public_names"), c("Budget", "lei2018"))) { # eps and delta; a module
    expect_true((if (name %in% names(ours)) ours[[name]] else name) %in% getNamespaceExports("dpreg"), info = name)
  }
  loaders <- python_call("dataset_names")
  expect_identical(setdiff(loaders, getNamespaceExports("dpreg")), character())
})
