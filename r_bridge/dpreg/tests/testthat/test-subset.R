set.seed(1)
n <- 6000
d <- data.frame(x = runif(n, 0, 10), op = sample(c("in", "bay"), n, TRUE), w = sample(c(0.2, 1, 5), n, TRUE), z = runif(n, -1, 1),
                pool = runif(n) < 0.5, age = runif(n, 0, 100), `odd name` = runif(n), check.names = FALSE)
d$y <- 1 + ifelse(d$op == "in", 0.5, -0.5) * d$x + d$z + rnorm(n)
schema <- list(x = c(0, 10), y = c(-20, 20), op = c("in", "bay"), w = c(0, 5), z = c(-1, 1), pool = logical(), age = c(0, 100),
               `odd name` = c(0, 1))

test_that("an expression, the same as text and quoted are one test, and R looks at no row for it", {
  text <- function(e) row_test(as.call(list(quote(f), subset = e)), environment())$where
  expect_identical(text(quote(op == "in" & age >= 18)), '(op == "in") and (age >= 18)')
  expect_identical(text(quote(!pool | age^2 < 9)), "(not (pool)) or (age ** 2 < 9)")
  expect_identical(text(quote(op %in% c("in", "bay") && pool == TRUE)), '(op in ["in", "bay"]) and (pool == True)')
  expect_identical(text(quote(`odd name` > 0.5)), 'Q("odd name") > 0.5')
  expect_identical(text("op == 'in'"), "op == 'in'")
  expect_identical(text(quote(quote(pool))), "pool")
  held <- quote(age > 3)
  expect_identical(row_test(quote(f(subset = held)), environment())$where, "age > 3")
  expect_null(row_test(quote(f()), environment())$where)
  secret <- c(61.52311, 62.5)
  for (bad in list(secret > 62, bquote(age > .(secret)), secret, quote(mean(age) > 3), quote(d$age > 3), 3)) {
    cond <- expect_error(row_test(as.call(list(quote(f), subset = bad)), environment()), class = "dpreg_error")
    expect_no_match(conditionMessage(cond), "61.5", fixed = TRUE)
  }
})

test_that("a call about some rows is that of a table of them", {
  need_python()
  some <- d[d$op == "in" & d$age >= 30, ]
  given <- list(eps = 1e4, delta = 1e-6, schema = schema, unsafe_seed = 1)
  near <- function(a, b, off = 0.1) expect_lt(max(abs(a - b)), off)
  fit <- do.call(dp_ols, c(list(y ~ x, quote(d), subset = quote(op == "in" & age >= 30)), given))
  near(coef(fit), coef(do.call(dp_ols, c(list(y ~ x, quote(some)), given))))
  expect_output(print(summary(fit)), "age >= 30", fixed = TRUE)
  expect_no_match(paste(fit$notes, collapse = " "), "letter by letter")
  expect_identical(fit$call$subset, '(op == "in") and (age >= 30)')
  near(coef(update(fit)), coef(fit))
  choice <- do.call(dp_select, c(list(y ~ x + z, quote(d), subset = "op == 'in'"), given))
  near(coef(choice)[["x"]], 0.5)
  won <- dp_glm(y > 2 ~ x, d, 1e4, delta = 1e-6, schema = schema, subset = op == "in")
  expect_gt(coef(won)[["x"]], 0.3)
  near(coef(dp_mean("y", d, eps = 1e4, schema = schema, subset = op == "in" & age >= 30)), mean(some$y))
  near(coef(dp_quantile("y", d, 0.5, eps = 1e4, schema = schema, subset = op == "in" & age >= 30)), median(some$y), 0.2)
  expect_equal(nobs(dp_mean("y", d, eps = 1, schema = schema, subset = pool)) <= n, TRUE)
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, subset = nothing > 3), class = "dpreg_schema_error")
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, subset = d$age > 3), class = "dpreg_argument_error")
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, where = "x > 3"), "did you mean subset")
})

test_that("weights, an offset and errors are lm's", {
  need_python()
  fit <- dp_ols(y ~ x * op, d, 1e5, delta = 1e-6, schema = schema, weights = w, offset = z, vcov = "HC", unsafe_seed = 1)
  exact <- lm(y ~ x * factor(op, c("in", "bay")), d, weights = w, offset = z)
  expect_lt(max(abs(coef(fit) - coef(exact)[c(1, 2, 3, 4)])), 0.05)
  expect_identical(fit$cov_type, "HC")
  expect_identical(coef(dp_ols(y ~ x, d, 9, schema = schema, weights = "w", unsafe_seed = 1)),
                   coef(dp_ols(y ~ x, d, 9, schema = schema, weights = ~ w, unsafe_seed = 1)))
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, vcov = "HC1"), "without a correction", class = "dpreg_argument_error")
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, vcov = ~op), class = "dpreg_argument_error")
  expect_error(dp_ols(y ~ x, d, 1, schema = schema, weights = d$w), class = "dpreg_argument_error")
  expect_error(dp_ols(y ~ x + offset(z), d, 1, schema = schema), "offset = z", class = "dpreg_formula_error")
})
