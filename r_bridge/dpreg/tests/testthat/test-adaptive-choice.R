need_python()

set.seed(20)
n <- 20000
rows <- data.frame(a = runif(n), b = runif(n), c = runif(n), g = sample(c("u", "v", "w"), n, TRUE))
rows$d <- pmin(pmax(rows$c + rnorm(n, sd = 0.02), 0), 1)
rows$y <- with(rows, a + 0.5 * (g == "v") + 0.3 * c + rnorm(n, sd = 0.5))
facts <- list(y = c(-2, 4), a = c(0, 1), b = c(0, 1), c = c(0, 1), d = c(0, 1), g = c("u", "v", "w"))
# Seeded, so that it is known what is unclear: c and d can hardly be told apart.
doubted <- dp_select(y ~ a + b + c + d + g, rows, eps = 1, schema = facts, method = "adaptive", fit = "same",
                     unsafe_seed = 1)
fixed <- dp_ols(y ~ a + g, rows, eps = 1, schema = facts)

test_that("a selection by looks says what it chose and what it cannot tell apart", {
  expect_identical(doubted$settings$method, "adaptive")
  expect_true(all(c("(Intercept)", "a", "g") %in% doubted$selected))
  expect_identical(doubted$groups, list(c("c", "d")))
  expect_length(setdiff(doubted$best, doubted$selected), 1L)
  expect_true(setdiff(doubted$best, doubted$selected) %in% c("c", "d"))
  expect_named(doubted$level, doubted$candidates)
  expect_true(doubted$level[["a"]] < 0.1 && doubted$level[["c"]] > 0.1)
  expect_true(is.na(doubted$level_errors[["g"]]) && doubted$level_errors[["a"]] > 0)
  expect_null(doubted$stability)
  expect_identical(nrow(doubted$looks), 3L)
  expect_identical(doubted$looks$rows, c("box", "locating", "locating"))
  expect_identical(doubted$passes, 3L)
  expect_output(print(doubted), "One of: {c, d}", fixed = TRUE)
  told <- gsub("\\s+", " ", paste(capture.output(print(summary(doubted, full = TRUE))), collapse = " "))
  for (text in c("one of", "level", "to locate", "allow for 6 of them", "None of them is among", "cannot tell which",
                 "useless terms a call", "limited narrowly")) expect_match(told, text, fixed = TRUE)
  table <- tidy(doubted, type = "terms")
  expect_named(table, c("term", "kept", "selected", "frequency", "level", "se", "group"))
  expect_identical(table$term[!is.na(table$group)], c("c", "d"))
  expect_identical(table$level[-1], unname(doubted$level))
  line <- glance(doubted)
  expect_identical(list(line$looks, line$groups), list(3L, 1L))
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(doubted), "One of: `{c, d}`", fixed = TRUE)
})

test_that("coefficients of the look that chose allow for all that was on offer", {
  fit <- doubted$regression
  expect_identical(fit$settings$fit, "same")
  expect_equal(fit$among, 6)
  expect_length(fit$conditional, 0)
  half <- half_widths(fit, std_errors(fit), diag(as.matrix(fit$privacy_vcov)), 1 - 0.05 / 6)
  expect_equal(unname(unstamped(confint(doubted))[, 2]), unname(coef(doubted) + half), ignore_attr = TRUE)
  for (f in list(vcov, anova, drop1)) expect_error(f(doubted), "corrected for its choice", class = "dpreg_not_released")
  for (more in list(list(), list(se.fit = TRUE), list(interval = "confidence"))) {
    expect_error(do.call(predict, c(list(doubted, rows[1, ]), more)), "some were not chosen",
                 class = "dpreg_not_released")
  }
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(doubted), doubted)
  skip_if_not_installed("xtable")
  expect_output(print(xtable::xtable(doubted)), "gv &")
})

test_that("auto says why it took the paper's method", {
  few <- dp_select(mpg ~ wt + hp, mtcars, eps = 1, schema = car_schema, method = "auto")
  expect_identical(few$settings$method, "pcls")
  expect_match(few$notes, 'method = "pcls"', fixed = TRUE, all = FALSE)
  expect_null(few$level)
  expect_error(dp_select(mpg ~ wt + hp, mtcars, eps = 1, schema = car_schema, method = "adaptive"),
               class = "dpreg_argument_error")
  expect_error(dp_select(y ~ a + b, rows, eps = 1, schema = facts, method = list(name = "adaptive", radius = 1)),
               "radius", class = "dpreg_argument_error")
  many <- dp_select(y ~ a + b, rows, eps = 2, schema = facts, method = "auto", neighbors = "add-remove")
  expect_identical(many$settings$method, "adaptive")
  expect_true(is.null(many$nobs))
  bare <- dp_select(y ~ a + b, rows, eps = 2, schema = facts, method = "adaptive", fit = NULL)
  expect_error(coef(bare), class = "dpreg_not_released")
  expect_identical(nrow(bare$looks), 3L)
})

test_that("a regression shows its looks", {
  expect_identical(fixed$settings$method, "adaptive")
  expect_identical(glance(fixed)$looks, nrow(fixed$looks))
  expect_output(print(summary(fixed, full = TRUE)), "rows are seen")
  expect_equal(coef(fixed), fixed$estimates)
  expect_length(fixed$conditional, 0)
})

test_that("an adaptive fit has marks, robust errors and a line for each look", {
  many <- transform(rows, y = a + rnorm(n, sd = 0.05), who = rep(seq_len(n / 4), each = 4))
  ask <- function(...) dp_ols(y ~ a + b, many, eps = 1, schema = facts[c("y", "a", "b")], unsafe_seed = 1, ...)
  fit <- ask()
  expect_identical(unname(fit$marks), rep("above noise", 3))
  expect_identical(c(fit$cov_type, ask(person = "who")$cov_type), c("HC", "cluster"))
  expect_identical(fit$looks$rows, c("box", "locating", "locating", "minimum"))
  expect_output(print(summary(fit, full = TRUE)), "Errors are robust: intervals hold")
  expect_identical(tidy(fit)$mark, unname(fit$marks))
  fit$vcov["b", ] <- fit$vcov[, "b"] <- fit$privacy_vcov["b", ] <- fit$privacy_vcov[, "b"] <- NaN
  fit$marks[["b"]] <- "too few rows to say"
  expect_output(print(summary(fit)), "? = too few rows to say", fixed = TRUE)
  error <- predict(fit, data.frame(a = c(1, 1), b = c(0, 1)), se.fit = TRUE)$se.fit
  expect_identical(unname(is.finite(error)), c(TRUE, FALSE))
  expect_warning(expect_identical(ask(method = "staged")$settings$method, "adaptive"), "adaptive")
})

test_that("a record says when, by what and on which account", {
  expect_match(doubted$record$when, "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d\\+00:00$")
  expect_identical(doubted$record$call, "dp_select")
  expect_true(all(c("dpreg", "numpy") %in% names(doubted$record$versions)))
  expect_null(doubted$record$ledger)
})

test_that("coefficients alone come with predictions, and with a note for the rest", {
  alone <- dp_ols(y ~ a + b, rows[1:800, ], eps = 2, schema = facts, method = "objective")
  expect_identical(alone$settings$method, "objective")
  expect_true(all(is.finite(coef(alone))))
  expect_true(all(is.finite(predict(alone, rows[1:3, ]))))
  expect_true(all(is.na(confint(alone))))
  expect_true(all(is.na(tidy(alone)$p.value)))
  expect_identical(glance(alone)$looks, 0L)
  expect_output(print(summary(alone)), "No intervals are given: method = \"objective\"", fixed = TRUE)
  expect_error(dp_ols(y ~ a - 1, rows, eps = 2, schema = facts, method = "objective"),
               class = "dpreg_argument_error")
})
