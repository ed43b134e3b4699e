need_python()

big <- transform(mtcars[rep(seq_len(nrow(mtcars)), 200), ], am = am == 1)
fits <- list(
  dp_ols(mpg ~ wt * factor(gear) + log(hp) + I(wt^2) + am, mtcars, eps = 1e5, schema = car_schema),
  dp_ols(log(mpg) ~ cut(wt, c(1, 3, 6)) + splines::bs(hp, knots = 100) - 1, mtcars, eps = 1e5, schema = car_schema),
  dp_ols(mpg ~ I(2 * (wt - 1) / hp > 0.01) + I(-hp), mtcars, eps = 1e5, schema = car_schema),
  dp_select(mpg ~ wt + hp + factor(gear), mtcars, eps = 1e3, schema = car_schema, method = PCLS(draws = 3)),
  dp_select(mpg ~ wt + hp + am, big, eps = 10, schema = car_schema, method = "adaptive"),
  dp_select(mpg ~ wt + factor(gear, levels = c(5, 4, 3)), mtcars, eps = 1e3, schema = car_schema, fit = NULL,
            units = "column"),
  dp_mean("mpg", mtcars, eps = 1, schema = car_schema),
  dp_quantile("wt", c(0.25, 0.5), mtcars, eps = 10, schema = car_schema),
  dp_histogram("gear", mtcars, eps = 1, schema = car_schema),
  sample_aggregate(median, mtcars$mpg, eps = 1, bounds = c(5, 40))
)

test_that("a saved result comes back whole", {
  for (fit in fits) {
    file <- tempfile(fileext = ".json")
    expect_identical(dp_save(fit, file), file)
    again <- dp_load(file)
    expect_identical(class(again), class(fit))
    expect_identical(unname(again$coefficients), unname(fit$coefficients))
    expect_identical(again$budget, fit$budget)
    expect_identical(again$python, fit$python)
    expect_output(print(summary(again, full = TRUE)), "Privacy: Differentially private")
    if (inherits(fit, "dp_ols")) {
      expect_identical(predict(again, mtcars), predict(fit, mtcars))
    } else if (inherits(fit, "dp_select")) {
      parts <- c("selected", "candidates", "models", "columns", "level", "level_errors", "groups", "formula")
      expect_equal(again[parts], fit[parts])
      expect_equal(again$regression$among, fit$regression$among)
    }
  }
  # Names are as they were typed, but for a spline's.
  file <- tempfile(fileext = ".json")
  expect_identical(names(coef(dp_load(dp_save(fits[[1]], file)))), names(coef(fits[[1]])))
  expect_identical(deparse1(dp_load(dp_save(fits[[6]], file))$call$fit), "NULL")
})

test_that("what Python wrote is read in R's words", {
  words <- list(
    "y ~ np.log(x) + I(x ** 2) + C(k, levels=[2, 1]):Q('a b')" =
      c("log(x)", "I(x^2)", "factor(k, levels = c(2, 1)):`a b`"),
    "I(y / 10) ~ bs(x, knots=[1, 2], lower_bound=0, upper_bound=9) + abs(x - 1)" =
      c("bs(x, knots = c(1, 2), Boundary.knots = c(0, 9))", "abs(x - 1)"),
    "y ~ Q(\"cut(x, c(0, 1, 2))\") - 1" = "cut(x, c(0, 1, 2))"
  )
  test_verbs()
  for (formula in names(words)) {
    made <- translation_of(python_call("in_r", list(formula = formula)))
    expect_identical(setdiff(unname(made$terms), "(Intercept)"), words[[formula]])
  }
  expect_error(python_call("in_r", list(formula = "y ~ C(g, Sum)")), "no words in R", class = "dpreg_formula_error")
})

test_that("a file that is none, and a place that is none, are refused", {
  file <- tempfile()
  expect_error(dp_load(file), class = "dpreg_data_error")
  writeLines("{}", file)
  expect_error(dp_load(file), class = "dpreg_argument_error")
  expect_error(dp_save(fits[[1]], "/nowhere/at/all.json"), "'/nowhere/at'", class = "dpreg_data_error")
  expect_error(dp_save(fits[[1]], tempfile(fileext = ".CSV")), "like a table's file", class = "dpreg_argument_error")
  expect_error(dp_save(mtcars, file), "'data.frame'", class = "dpreg_argument_error")
  expect_error(dp_report(fits[[1]], 1), class = "dpreg_argument_error")
})

test_that("a report is one page", {
  file <- tempfile(fileext = ".html")
  dp_report(fits[[1]], file)
  page <- paste(readLines(file, warn = FALSE), collapse = "\n")
  expect_match(page, "<html", fixed = TRUE)
  expect_match(page, "eps", fixed = TRUE)
})

test_that("data sets come with their public facts", {
  rand <- load_randhie()
  expect_identical(dim(rand$data), c(20190L, 10L))
  expect_named(rand$schema, names(rand$data))
  expect_identical(all.vars(rand$formula)[1], "mdvis")
  fit <- dp_ols(rand$formula, rand$data, eps = 1, schema = rand$schema)
  expect_length(coef(fit), 10)
  bay <- make_bay_area(200, seed = 4)
  expect_identical(bay, make_bay_area(200, seed = 4))
  expect_true(bay$simulated)
  expect_type(bay$data$county, "character")
  # Python reads the environment as it starts.
  if (nzchar(Sys.getenv("DPREG_DATA"))) {
    expect_identical(nrow(load_prostate()$data), 97L)
  } else {
    expect_error(load_prostate(), "DPREG_DATA", class = "dpreg_dataset_error")
  }
})
