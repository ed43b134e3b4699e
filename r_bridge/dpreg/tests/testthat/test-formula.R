need_python()

table <- data.frame(y = 1, x = 1, z = 1, g = "a", h = "b", class = 1, `my var` = 1, a.b = 1,
                    check.names = FALSE)

patsy <- function(formula, data = table) translate_formula(formula, data)$patsy

test_that("operators mean what they mean in lm()", {
  expect_equal(patsy(y ~ x + z), "y ~ x + z")
  expect_equal(patsy(y ~ x * g), "y ~ x + g + x:g")
  expect_equal(patsy(y ~ (x + z + g)^2), "y ~ x + z + g + x:z + x:g + z:g")
  expect_equal(patsy(y ~ x * z - x), "y ~ z + x:z")
  expect_equal(patsy(y ~ x - 1), "y ~ x - 1")
  expect_equal(patsy(y ~ 0 + x), "y ~ x - 1")
  expect_equal(patsy(y ~ 1), "y ~ 1")
  expect_equal(patsy(y ~ . - g - h - class), 'y ~ x + z + Q("my var") + Q("a.b")')
  expect_equal(patsy(log(y) ~ ., table[c("y", "x")]), "np.log(y) ~ x")
})

test_that("expressions are translated", {
  expect_equal(patsy(y ~ log(x)), "y ~ np.log(x)")
  expect_equal(patsy(y ~ base::log(x)), "y ~ np.log(x)")
  expect_equal(patsy(y ~ log1p(x) + exp(x) + sqrt(x) + abs(x)),
               "y ~ np.log1p(x) + np.exp(x) + np.sqrt(x) + np.abs(x)")
  expect_equal(patsy(y ~ I(x^2)), "y ~ I(x ** 2)")
  expect_equal(patsy(y ~ I(-x^2 + 3 * (z - 0.1) / 1e6)), "y ~ I(-x ** 2 + 3 * (z - 0.1) / 1000000)")
  expect_equal(patsy(y ~ I(x > 2)), "y ~ I(x > 2)")
  expect_equal(patsy(y / 1000 ~ x), "I(y / 1000) ~ x")
  expect_equal(patsy(log(y) / 2 ~ x), "I(np.log(y) / 2) ~ x")
  expect_equal(patsy(y ~ log10(x)), "y ~ I((np.log(x) / np.log(10)))")
  expect_equal(patsy(y ~ log(x, 3)), "y ~ I((np.log(x) / np.log(3)))")
  expect_equal(patsy(y ~ log(x + 1)), "y ~ np.log(x + 1)")
  expect_equal(patsy(y ~ factor(g)), "y ~ C(g)")
  expect_equal(patsy(y ~ factor(x, levels = c(1, 2.5))), "y ~ C(x, levels=[1, 2.5])")
  expect_equal(patsy(y ~ factor(g, levels = c("a", "b\"c"))), 'y ~ C(g, levels=["a", "b\\"c"])')
  expect_equal(
    patsy(y ~ splines::bs(x, knots = c(2, 5), Boundary.knots = c(0, 9))),
    "y ~ bs(x, knots=[2, 5], degree=3, include_intercept=False, lower_bound=0, upper_bound=9)"
  )
})

test_that("names that are none in Python are quoted", {
  expect_equal(patsy(y ~ `my var` + a.b + class), 'y ~ Q("my var") + Q("a.b") + Q("class")')
  expect_equal(patsy(y ~ factor(a.b):log(`my var`)), 'y ~ C(Q("a.b")):np.log(Q("my var"))')
  odd <- stats::setNames(data.frame(y = 1, a = 1, b = 1), c("y", "größe", 'a"b\\'))
  expect_equal(patsy(y ~ ., odd), 'y ~ Q("größe") + Q("a\\"b\\\\")')
})

test_that("a formula that was built keeps its brackets", {
  part <- quote(x + 1)
  expect_equal(patsy(eval(bquote(y ~ I(.(part)^2)))), "y ~ I((x + 1) ** 2)")
})

test_that("what cannot be translated is refused by the name of its term", {
  refused <- function(formula, term, why) {
    cond <- expect_error(translate_formula(formula, table), class = "dpreg_formula_error")
    expect_match(conditionMessage(cond), term, fixed = TRUE)
    expect_match(conditionMessage(cond), why, fixed = TRUE)
  }
  refused(y ~ poly(x, 2), "poly(x, 2)", "I(x^2)")
  refused(y ~ x + scale(z), "scale(z)", "declared bounds")
  refused(y ~ splines::ns(x, 3), "ns(x, 3)", "bs(")
  refused(y ~ splines::bs(x, df = 4), "bs(x, df = 4)", "public")
  refused(y ~ x + offset(z), "offset(z)", "is an argument")
  refused(y ~ I(x - mean(x)), "I(x - mean(x))", "across rows")
  refused(y ~ I(x %% 2), "I(x%%2)", "remainder")
  refused(y ~ ifelse(x > 1, x, 0), "ifelse", "comparison")
  refused(y ~ cut(x, 3), "cut(x, 3)", "public")
  refused(y ~ ordered(g), "ordered(g)", "contrasts")
  refused(y ~ sin(x), "sin(x)", "not offered")
  refused(y ~ x[-1], "x[-1]", "by index")
  refused(y ~ I(x^k), "I(x^k)", "not a column")
  refused(y ~ nothere, "nothere", "not a column")
  refused(cbind(y, z) ~ x, "cbind(y, z)", "one column")
  refused(y ~ factor(g) + as.factor(g), "as.factor(g)", "the same as")
  refused(y ~ factor(x, levels = z), "factor(x, levels = z)", "written out")
  expect_error(translate_formula(~x, table), class = "dpreg_formula_error")
  expect_error(translate_formula("y ~ x", table), class = "dpreg_formula_error")
})

test_that("a formula's environment stays behind", {
  secret <- 1:10
  expect_identical(environment(full_formula(translate_formula(y ~ x, table))), globalenv())
})
