table <- data.frame(y = 1, x = 1, z = 1, flag = TRUE, g = "a", h = "u", k = 1, `my var` = 1,
                    check.names = FALSE)
schema <- list(g = c("a", "b", "c:d]"), h = c("u", "v"), k = list(levels = c(1, 2.5)),
               flag = logical(), x = c(0, 1))

test_that("names of columns are R's", {
  translation <- translate_formula(y ~ g * h + factor(k) + flag + log(x) + I(z^2) + `my var`, table)
  r <- function(column) column_name(column, translation, schema)
  expect_equal(r("Intercept"), "(Intercept)")
  expect_equal(r("g[T.b]"), "gb")
  expect_equal(r("g[T.c:d]]"), "gc:d]")
  expect_equal(r("g[T.c:d]]:h[T.v]"), "gc:d]:hv")
  expect_equal(r("C(k)[T.2.5]"), "factor(k)2.5")
  expect_equal(r("flag[T.True]"), "flagTRUE")
  expect_equal(r("np.log(x)"), "log(x)")
  expect_equal(r("I(z ** 2)"), "I(z^2)")
  expect_equal(r('Q("my var")'), "`my var`")
  expect_equal(r("unheard[of]"), "unheard[of]")
})

test_that("a product without its main effects has columns of fewer variables", {
  need_python()
  translation <- translate_formula(y ~ h + g:flag + g:h:k, table)
  r <- function(column) column_name(column, translation, schema)
  expect_equal(r("flag[T.True]"), "flagTRUE")
  expect_equal(r("g[T.b]:flag[False]"), "gb:flagFALSE")
  expect_equal(r("g[T.b]:k"), "gb:k")
  expect_equal(term_of("flag[T.True]", translation, schema), "g:flag")
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
  expect_equal(python_term_names(c("(Intercept)", "log(x)", "g:h"), translation, "keep"),
               c("Intercept", "np.log(x)", "g:h"))
  expect_equal(python_term_names("np.log(x)", translation, "keep"), "np.log(x)")
  expect_error(python_term_names("z", translation, "keep"), "'log(x)'", fixed = TRUE,
               class = "dpreg_argument_error")
})
