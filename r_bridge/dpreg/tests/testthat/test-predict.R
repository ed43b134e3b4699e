need_python()

fit <- dp_ols(mpg ~ wt * am + factor(gear), mtcars, eps = 1e6, method = "gram", schema = car_schema)
exact <- lm(mpg ~ wt * am + factor(gear), transform(mtcars, am = am == 1))
ahead <- data.frame(wt = c(2, NA, 3), am = c(1, 0, 0), gear = c(3, 4, 5), row.names = letters[1:3])

test_that("predict answers as lm's does", {
  plain <- predict(fit, ahead)
  expect_identical(names(plain), letters[1:3])
  expect_identical(unname(is.na(plain)), c(FALSE, TRUE, FALSE))
  as_lm <- predict(exact, transform(ahead, am = am == 1))
  expect_equal(plain, as_lm, tolerance = 0.05)
  both <- predict(fit, ahead, se.fit = TRUE, interval = "confidence")
  expect_identical(names(both), c("fit", "se.fit", "df", "residual.scale"))
  expect_identical(dimnames(both$fit), list(letters[1:3], c("fit", "lwr", "upr")))
  expect_identical(both$fit[, "fit"], plain)
  wide <- predict(fit, ahead, interval = "prediction")
  expect_true(all(wide[c(1, 3), "lwr"] < both$fit[c(1, 3), "lwr"]))
  expect_error(predict(fit), class = "dpreg_not_released")
  expect_length(predict(fit, ahead[0, ]), 0)
  expect_identical(dim(predict(fit, ahead[0, ], interval = "confidence")), c(0L, 3L))
})

test_that("predict needs no Python", {
  the$door <- function(...) stop("Python was called")
  on.exit(the$door <- NULL)
  expect_length(predict(fit, ahead, se.fit = TRUE, interval = "prediction"), 4)
  expect_s3_class(augment(fit, newdata = ahead), "data.frame")
})

test_that("newdata may be what lm takes", {
  plain <- unname(predict(fit, ahead))
  expect_identical(unname(predict(fit, as.list(ahead))), plain)
  expect_identical(unname(predict(fit, transform(ahead, am = am == 1))), plain)
  expect_identical(unname(predict(fit, transform(ahead, gear = factor(gear)))), plain)
  expect_identical(unname(predict(fit, transform(ahead, gear = as.integer(gear), wt = wt))), plain)
  expect_error(predict(fit, list(wt = 1:2, am = 1:3, gear = 3)), class = "dpreg_argument_error")
  expect_error(predict(fit, "nothing"), "'character'", class = "dpreg_argument_error")
  skip_if_not_installed("tibble")
  expect_identical(unname(predict(fit, tibble::as_tibble(ahead))), plain)
})

test_that("what lm would not take is an error", {
  error <- function(what, newdata) {
    cond <- expect_error(predict(fit, newdata), class = "dpreg_data_error")
    expect_match(conditionMessage(cond), what, fixed = TRUE)
    expect_identical(conditionCall(cond), quote(predict.dp_result(fit, newdata)))
  }
  error("no column 'am'", data.frame(wt = 1, gear = 3))
  error("it knows '3', '4', '5'", transform(ahead, gear = 6))
  error("'wt' of newdata must hold numbers", transform(ahead, wt = "2"))
  expect_error(predict(exact, transform(ahead, gear = 6, am = am == 1)), "new level")
  for (unknown in c("scale", "weights", "nothing")) {
    given <- stats::setNames(list(fit, ahead, 1), c("object", "newdata", unknown))
    expect_error(do.call(predict, given), paste0("no argument '", unknown, "'"), class = "dpreg_argument_error")
  }
})

test_that("terms add up to the prediction", {
  parts <- predict(fit, ahead, type = "terms")
  expect_identical(colnames(parts), attr(terms(exact), "term.labels"))
  expect_equal(rowSums(parts) + attr(parts, "constant"), predict(fit, ahead))
  expect_identical(colnames(predict(fit, ahead, type = "terms", terms = "wt")), "wt")
  # lm's are the same but for the mean of each column.
  theirs <- predict(exact, transform(mtcars, am = am == 1), type = "terms")
  ours <- predict(fit, mtcars, type = "terms")
  expect_equal(scale(ours, scale = FALSE), theirs, tolerance = 0.05, ignore_attr = TRUE)
  expect_error(predict(fit, ahead, type = "terms", terms = "hp"), "'hp' is not a term", class = "dpreg_argument_error")
  expect_error(predict(fit, ahead, type = "terms", se.fit = TRUE), class = "dpreg_argument_error")
})

test_that("terms that R takes apart fit as lm fits them", {
  set.seed(3)
  n <- 4000
  rows <- data.frame(x = round(runif(n, 0, 9), 2), z = runif(n), g = sample(c("a", "b"), n, TRUE))
  rows$y <- with(rows, sqrt(x) + 0.3 * (g == "b") + rnorm(n, sd = 0.2))
  schema <- list(y = c(-2, 5), x = c(0, 9), z = c(0, 1), g = c("a", "b"))
  same <- function(formula, tolerance = 1e-3) {
    fit <- dp_ols(formula, rows, eps = 1e6, method = "gram", schema = schema)
    exact <- lm(formula, rows)
    expect_lt(max(abs(predict(fit, rows[1:50, ]) - predict(exact, rows[1:50, ]))), tolerance)
    list(fit, exact)
  }
  bins <- same(y ~ cut(x, c(0, 3, 6, 9), include.lowest = TRUE) * z)
  expect_identical(names(coef(bins[[1]])), names(coef(bins[[2]])))
  bins <- same(y ~ cut(x, c(0, 5, 9), labels = c("low", "high"), right = FALSE))
  expect_identical(names(coef(bins[[1]])), names(coef(bins[[2]])))
  powers <- same(y ~ poly(x, 2, raw = TRUE) * g)
  expect_identical(names(coef(powers[[1]])), c("(Intercept)", "x", "I(x^2)", "gb", "x:gb", "I(x^2):gb"))
  same(y ~ z + I(x^2) + x:g + (x + z)^2)
  spline <- same(y ~ splines::bs(x, knots = c(2, 5)), tolerance = 0.02)
  expect_identical(names(coef(spline[[1]])), names(coef(spline[[2]])))
  expect_identical(is.na(predict(bins[[1]], data.frame(x = c(1, 20, NA)))), c(`1` = FALSE, `2` = TRUE, `3` = TRUE))
})

test_that("drawn intervals and p-values are those of Python's law", {
  test_verbs()
  set.seed(4)
  draws <- matrix(rnorm(1999 * 6, mean = rep(c(0, 1, 3, 5, -4, 0.2), each = 1999)), 1999)
  estimates <- c(0.1, 1, 1.5, 5, -4, -0.1)
  for (level in c(0.5, 0.9, 0.95, 0.995, 0.9999)) {
    theirs <- python_call("drawn", list(level = level, estimates = as.list(estimates)), as.data.frame(draws))
    expect_equal(draw_limits(draws, estimates, level), matrix(theirs$limits, ncol = 2), tolerance = 1e-9)
    expect_equal(draw_pvalues(draws, estimates), theirs$pvalues, tolerance = 1e-7)
  }
  type6 <- t(apply(draws, 2, quantile, c(0.05, 0.95), type = 6))
  widened <- unname(cbind(pmin(type6[, 1], estimates), pmax(type6[, 2], estimates)))
  expect_equal(draw_limits(draws, estimates, 0.9), widened)
  pure <- dp_ols(mpg ~ wt, mtcars, eps = 1, schema = car_schema)
  expect_false(is.null(pure$interval_draws))
  expect_equal(unname(confint(pure)), draw_limits(unname(pure$interval_draws), unname(coef(pure)), 0.95))
  expect_equal(tidy(pure)$p.value, draw_pvalues(unname(pure$interval_draws), unname(coef(pure))))
})
