# Each type of column, with and without missing values, in each position, against lm() on the
# complete rows. The fits release the moments once (method = "gram"), which counts complete rows too. At
# eps = 1e6 and 4,000 rows the noise moves a coefficient of these by some 1e-4; the tolerance is ten
# times that.
need_python()

rows <- 4000
eps <- 1e6
tolerance <- 1e-3

make_table <- function(type, missing) {
  set.seed(20261120)
  k <- sample(0:3, rows, TRUE)
  table <- data.frame(
    z = round(runif(rows, -1, 1), 3),
    y = NA_real_,
    v = switch(type,
      double = , integer = , integer64 = , logical = k,
      character = , factor = , ordered = , labels = c("a", "b", "c", "d")[k + 1]
    )
  )
  if (type == "logical") table$v <- k > 1
  effect <- c(0, 0.5, -0.4, 0.7)[if (type == "logical") table$v + 1 else k + 1]
  table$y <- round(1 + 0.8 * table$z + effect + rnorm(rows, sd = 0.3), 4)
  table$v <- switch(type,
    double = as.double(table$v), integer = as.integer(table$v),
    integer64 = bit64::as.integer64(table$v),
    factor = factor(table$v, levels = c("a", "b", "c", "d")),
    ordered = factor(table$v, levels = c("a", "b", "c", "d"), ordered = TRUE),
    table$v
  )
  if (missing) {
    table$v[seq(3, rows, 7)] <- NA
    table$z[seq(1, rows, 11)] <- NA
    table$y[seq(2, rows, 13)] <- NA
  }
  table
}

bounds <- list(y = c(-5, 6), z = c(-1, 1))
numbers <- c("double", "integer", "logical", "integer64")
labels <- c("character", "factor", "ordered", "double", "integer", "logical")

same_fit <- function(formula, table, schema, exact = table, ...) {
  fit <- dp_ols(formula, table, eps = eps, schema = schema, method = "gram", ...)
  ols <- lm(formula, exact)
  expect_identical(names(coef(fit)), names(coef(ols)))
  expect_lt(max(abs(coef(fit) - coef(ols))), tolerance)
  expect_lt(abs(df.residual(fit) - df.residual(ols)), 1) # from the noisy count of complete rows
  # model.matrix() and Python build the same design: predictions agree where coefficients do.
  ahead <- predict(fit, head(table, 50))
  expect_equal(is.na(ahead), is.na(predict(ols, head(exact, 50))))
  expect_lt(max(abs(ahead - predict(ols, head(exact, 50))), na.rm = TRUE), 5 * tolerance)
}

for (missing in c(FALSE, TRUE)) {
  having <- if (missing) " with NA" else ""
  for (type in numbers) {
    test_that(paste0("numeric term: ", type, having), {
      if (type == "integer64") skip_if_not_installed("bit64")
      table <- exact <- make_table(type, missing)
      exact$v <- as.double(exact$v)
      same_fit(y ~ z + v, table, c(bounds, list(v = c(0, 3))), exact)
      if (type != "logical") same_fit(y ~ z * log(v + 1) - z, table, c(bounds, list(v = c(0, 3))), exact)
    })
    test_that(paste0("response: ", type, having), {
      if (type == "integer64") skip_if_not_installed("bit64")
      table <- exact <- make_table(type, missing)
      exact$v <- as.double(exact$v)
      top <- if (type == "logical") 1 else 3
      same_fit(v ~ z + I(z^2), table, list(v = c(0, top), z = c(-1, 1)), exact)
    })
  }
  for (type in labels) {
    test_that(paste0("factor term: ", type, having), {
      table <- exact <- make_table(type, missing)
      if (type == "ordered") exact$v <- factor(exact$v, ordered = FALSE)
      if (type %in% c("double", "integer")) {
        schema <- c(bounds, list(v = list(levels = 0:3)))
        same_fit(y ~ z + factor(v), table, schema)
        same_fit(y ~ factor(v) - 1, table, schema)
      } else {
        declared <- if (type == "logical") logical() else c("a", "b", "c", "d")
        schema <- c(bounds, list(v = declared))
        same_fit(y ~ z * v, table, schema, exact)
      }
    })
  }
}

test_that("the schema's levels and order are those of the model, whatever the factor's", {
  table <- make_table("factor", FALSE)
  table$v <- factor(table$v, levels = c("d", "c", "b", "a"))
  schema <- c(bounds, list(v = c("b", "a", "d", "c")))
  fit <- dp_ols(y ~ v, table, eps = eps, schema = schema)
  exact <- transform(table, v = factor(v, levels = c("b", "a", "d", "c")))
  expect_identical(names(coef(fit)), names(coef(lm(y ~ v, exact))))
  expect_lt(max(abs(coef(fit) - coef(lm(y ~ v, exact)))), tolerance)
})

test_that("without a declaration, text and factors are refused with how to declare", {
  table <- make_table("factor", FALSE)
  cond <- expect_error(dp_ols(y ~ v, table, 1, schema = bounds), class = "dpreg_schema_error")
  expect_match(conditionMessage(cond), 'v = c("level", "level", ...)', fixed = TRUE)
  table$v <- as.character(table$v)
  cond <- expect_error(dp_ols(y ~ v, table, 1, schema = bounds), class = "dpreg_schema_error")
  expect_match(conditionMessage(cond), "holds text", fixed = TRUE)
  for (level in c("'a'", "'b'")) expect_no_match(conditionMessage(cond), level, fixed = TRUE)
})

test_that("levels taken from a factor that holds rows are refused", {
  table <- make_table("factor", FALSE)
  expect_error(dp_ols(y ~ v, table, 1, schema = c(bounds, list(v = table$v))), "holds rows",
               class = "dpreg_schema_error")
  schema <- c(bounds, list(v = table$v[0]))
  expect_identical(names(coef(dp_ols(y ~ v, table, eps, schema = schema))),
                   c("(Intercept)", "vb", "vc", "vd"))
})

test_that("names in back-ticks and with dots fit", {
  table <- make_table("factor", FALSE)
  names(table) <- c("a number", "the response", "a.factor")
  schema <- list(`a number` = c(-1, 1), `the response` = c(-5, 6), a.factor = letters[1:4])
  same_fit(`the response` ~ `a number` * a.factor, table, schema)
  same_fit(`the response` ~ I(`a number`^2) + ., table, schema)
  same_fit(exp(`the response` / 6) ~ splines::bs(`a number`, knots = 0, Boundary.knots = c(-1, 1)),
           table, schema)
})

test_that("columns that cannot be used are refused by name", {
  table <- make_table("double", FALSE)
  table$when <- Sys.Date()
  table$list <- as.list(table$z)
  table$complex <- complex(real = table$z, imaginary = 0)
  fit <- function(formula) dp_ols(formula, table, 1, schema = bounds)
  expect_error(fit(y ~ when), "'when' holds dates", class = "dpreg_data_error")
  expect_error(fit(y ~ list), "'list'", class = "dpreg_data_error")
  expect_error(fit(y ~ complex), "'complex'", class = "dpreg_data_error")
  expect_length(coef(fit(y ~ z)), 2)
})

# At an eps so large that limits shorten hardly a row.
test_that("an adaptive fit tends to lm's", {
  set.seed(7)
  for (type in c("factor", "double", "logical")) {
    table <- exact <- make_table(type, TRUE)
    declared <- switch(type, factor = c("a", "b", "c", "d"), double = c(0, 3), logical = logical())
    fit <- dp_ols(y ~ z * v, table, eps = 1e5, schema = c(bounds, list(v = declared)), method = "adaptive")
    ols <- lm(y ~ z * v, exact)
    expect_identical(fit$settings$method, "adaptive")
    expect_identical(names(coef(fit)), names(coef(ols)))
    error <- summary(ols)$coefficients[, "Std. Error"]
    expect_lt(max(abs(coef(fit) - coef(ols)) / error), 0.5)
    expect_equal(sqrt(diag(vcov(fit))), error, tolerance = 0.1)
    expect_equal(is.na(predict(fit, table[1:50, ])), is.na(predict(ols, exact[1:50, ])))
    expect_lt(max(abs(predict(fit, table[1:50, ]) - predict(ols, exact[1:50, ])), na.rm = TRUE), 0.02)
    # One number tells it where there is no delta, to which rows far out add more.
    expect_equal(sigma(fit), sigma(ols), tolerance = 0.15)
  }
})
