table <- data.frame(y = 1, x = 1, z = 1, flag = TRUE, g = "a", h = "u", k = 1, `my var` = 1,
                    check.names = FALSE)
schema <- list(y = c(0, 1), g = c("a", "b", "c:d]"), h = c("u", "v"), k = list(levels = c(1, 2.5)),
               flag = logical(), x = c(0.1, 1), z = c(0, 1), `my var` = c(0, 1))
test_verbs()

named <- function(formula) {
  translation <- translate_formula(formula, table)
  arguments <- list(formula = translation$patsy, schema = plain_schema(schema))
  python_call("columns", arguments, translation = translation)
}

test_that("names of columns are R's", {
  expect_setequal(named(y ~ g * h + factor(k) + flag + log(x) + I(z^2) + `my var`)$names, c(
    "(Intercept)", "gb", "gc:d]", "hv", "factor(k)2.5", "flagTRUE", "gb:hv", "gc:d]:hv", "log(x)", "I(z^2)", "`my var`"
  ))
  expect_setequal(named(y ~ splines::bs(x, knots = 0.5, degree = 1, Boundary.knots = c(0, 1)) - 1)$names[-1],
                  paste0("splines::bs(x, knots = 0.5, degree = 1, Boundary.knots = c(0, 1))", 1:2))
})

test_that("a product without its main effects has columns of fewer variables", {
  told <- named(y ~ h + g:flag + g:h:k)
  term <- stats::setNames(told$terms, told$names)
  expect_identical(term[["flagTRUE"]], "g:flag")
  expect_identical(term[["gb:flagFALSE"]], "g:flag")
  expect_true("gb:k2.5" %in% told$names)
  set.seed(5)
  n <- 3000
  rows <- data.frame(g = sample(c("a", "b", "c"), n, TRUE), flag = runif(n) < 0.5, z = runif(n))
  rows$y <- with(rows, 0.5 * (g == "b" & flag) + z + rnorm(n, sd = 0.1))
  fit <- dp_ols(y ~ z + g:flag, rows, eps = 1e6, method = "gram",
                schema = list(y = c(-1, 3), z = c(0, 1), g = c("a", "b", "c"), flag = logical()))
  exact <- lm(y ~ z + g:flag, rows)
  expect_length(coef(fit), exact$rank)
  expect_lt(max(abs(predict(fit, rows[1:20, ]) - suppressWarnings(predict(exact, rows[1:20, ])))), 1e-3)
})

test_that("keep takes R's names and Python's", {
  translation <- translate_formula(y ~ log(x) + g:h, table)
  expect_equal(python_terms(c("(Intercept)", "log(x)", "g:h"), translation), list("Intercept", "np.log(x)", "g:h"))
  expect_equal(python_terms("np.log(x)", translation), list("np.log(x)"))
  expect_error(dp_select(y ~ log(x) + z, table, 1, schema = schema, keep = "w"), "'\\(Intercept\\)', 'log\\(x\\)', 'z'",
               class = "dpreg_argument_error")
})
