test_verbs()

test_that("Python's words become R's", {
  say <- function(text, labels = character()) {
    python_call("words", list(text = text), translation = list(terms = character(), labels = labels))
  }
  expect_identical(say("factor 'C(Q(\"a b\"))': no", c("C(Q(\"a b\"))" = "factor(`a b`)")), "term 'factor(`a b`)': no")
  expect_identical(say("write levels as in C(x, levels=[1, 2, 3]), or {\"x\": {\"levels\": [1, 2, 3]}}."),
                   "write levels as in factor(x, levels = c(1, 2, 3)), or list(x = list(levels = c(1, 2, 3))).")
  expect_identical(say("as in {\"x\": (0, 10)} or {\"g\": [\"a\", \"b\"]}"), "as in list(x = c(0, 10)) or list(g = c(\"a\", \"b\"))")
  expect_identical(say("raise shares['bounds']"), "raise shares$bounds")
  expect_identical(say("center must be True or False."), "center must be TRUE or FALSE.")
  expect_identical(say("one of 'split', None; got 'no'"), "one of 'split', NULL; got 'no'")
  expect_identical(say("which is not installed: pip install 'dpreg[arrow]'"),
                   "which is not installed: run dpreg::install_dpreg(\"path/to/dpreg\", extras = \"arrow\") and restart R")
  expect_identical(say("I(np.log(x) ** 2)"), "I(log(x)^2)")
})

test_that("a note lists weak coefficients by R's names", {
  note <- "Weakly determined: Intercept, g[T.b], np.log(x), g[T.b]:x. The noise hides a direction, or two: Intercept."
  python <- c("Intercept", "g[T.b]", "np.log(x)", "g[T.b]:x", "x")
  r <- c("(Intercept)", "gb", "log(x)", "gb:x", "x")
  named <- function(text) python_call("named_in_lists", list(text = text, names = as.list(stats::setNames(r, python))))
  expect_identical(
    named(note), "Weakly determined: (Intercept), gb, log(x), gb:x. The noise hides a direction, or two: Intercept."
  )
  expect_identical(named("Intercept, x. "), "Intercept, x. ")
})

test_that("errors are in R's idiom", {
  need_python()
  rows <- mtcars
  schema <- list(mpg = c(5, 40), wt = c(1, 6))
  fit <- dp_ols(mpg ~ wt, rows, eps = 10, schema = schema)
  refused <- function(code, class, ...) {
    cond <- tryCatch(code, error = identity)
    expect_s3_class(cond, class)
    for (text in c(...)) expect_match(conditionMessage(cond), text, fixed = TRUE)
    expect_no_match(conditionMessage(cond), "np\\.|None|True|False|\\[|\\{|^Error|factor '")
    cond
  }
  for (cond in list(refused(dp_ols(mpg ~ wt, rows, schema = schema), "simpleError", "\"eps\" is missing"),
                    refused(dp_ols(mpg ~ wt, eps = 1), "simpleError", "\"data\" is missing"))) {
    expect_identical(conditionCall(cond)[[1]], quote(dp_ols))
  }
  refused(dp_mean("mpg", rows), "simpleError", "\"eps\" is missing")
  refused(sample_aggregate(median, 1:9, eps = 1), "simpleError", "\"bounds\" is missing")
  refused(confint(fit, "xx"), "dpreg_argument_error", "no 'xx'", "'(Intercept)', 'wt'")
  refused(confint(fit, 3), "dpreg_argument_error", "no '3'")
  refused(dp_ols(mpg ~ wt, rows, 1, schema = c(schema["mpg"], wtt = list(1:2))), "dpreg_schema_error", "'wtt'", "'wt'")
  refused(dp_ols(mpg ~ wt, rows, 1, schema = schema[c(1, 2, 2)]), "dpreg_schema_error", "'wt' more than once")
  refused(dp_ols(mpg ~ wt, stats::setNames(rows[1:3], c("mpg", "wt", "wt")), 1), "dpreg_data_error", "several columns")
  refused(dp_ols(mpg ~ log(wt), rows, 1, schema = list(wt = c(-1, 6))), "dpreg_schema_error", "term 'log(wt)'")
  refused(dp_ols(mpg ~ factor(wt), rows, 1, schema = schema), "dpreg_formula_error", "factor(x, levels = c(1, 2, 3))")
  refused(dp_select(mpg ~ wt, rows, 1, schema = schema, shares = list(fit = NA)),
          "dpreg_argument_error", "shares$fit")
  refused(dp_ols(mpg ~ wt, rows, 1, schema = schema, shares = 0.3), "dpreg_argument_error", "shares must be named")
  refused(dp_ols(mpg ~ wt, rows, c(1, 2), schema = schema), "dpreg_argument_error", "eps must be one number")
  refused(dp_select(mpg ~ wt, rows, 1, schema = schema, method = Auto(center = "a")), "dpreg_argument_error", "TRUE or FALSE")
  expect_warning(dp_ols(mpg ~ wt, rows, eps = 0.01), class = "dpreg_warning")
  refused(dp_ledger("/nowhere/at/all.json", eps = 1), "dpreg_budget_error", "'/nowhere/at'")
})

test_that("an ordered factor is told of its contrasts, and what refits of its cost, once", {
  need_python()
  rows <- transform(mtcars, gear = ordered(gear))
  schema <- list(mpg = c(5, 40), gear = c("3", "4", "5"))
  expect_message(fit <- dp_ols(mpg ~ gear, rows, eps = 10, schema = schema), "treatment contrasts", class = "dpreg_message")
  expect_no_message(dp_ols(mpg ~ factor(gear), rows, eps = 10, schema = schema))
  the$said <- list()
  expect_message(update(fit, eps = 20), "spends its eps anew", class = "dpreg_message") |> suppressMessages()
  expect_no_message(update(fit, . ~ factor(gear)))
})

test_that("a skeleton shows names and kinds, and can be filled in", {
  frame <- data.frame(price = 1, county = "ala", size = factor("s"), pool = TRUE, when = Sys.Date(), `odd name` = 2,
                      check.names = FALSE)
  skeleton <- schema_skeleton(frame)
  expect_identical(skeleton$kind, c("number", "text", "labels", "logical", "other", "number"))
  expect_output(print(skeleton), "`odd name` = c( , )", fixed = TRUE)
  expect_identical(format(schema_skeleton(frame[0, ])), format(skeleton))
  code <- format(skeleton)
  expect_error(eval(parse(text = code)), "empty")
  filled <- gsub('c("", "")', 'c("u", "v")', gsub("c( , )", "c(0, 1)", code, fixed = TRUE), fixed = TRUE)
  eval(parse(text = filled))
  expect_named(schema, c("price", "county", "size", "pool", "odd name"))
  expect_error(schema_skeleton(1), class = "dpreg_argument_error")
  need_python()
  expect_error(dp_ols(price ~ county, frame, 1, schema = eval(parse(text = gsub("c( , )", "c(0, 1)", code, fixed = TRUE)))),
               class = "dpreg_schema_error")
})

test_that("rows are made up of the schema alone, and say so", {
  schema <- list(price = c(0, 3), rate = c(0.5, 2), town = c("elm", "oak"), rooms = list(levels = c(2, 7)), pool = logical())
  set.seed(1)
  made <- schema_sample(schema, 300)
  expect_named(made, names(schema))
  expect_identical(rownames(made)[2], "made up 2")
  expect_setequal(made$price, 0:3)
  expect_true(all(made$rate >= 0.5 & made$rate <= 2) && length(unique(made$rate)) == 300)
  expect_setequal(made$town, c("elm", "oak"))
  expect_setequal(made$rooms, c(2, 7))
  expect_setequal(made$pool, c(TRUE, FALSE))
  expect_named(schema_sample(schema, 2, log(price + 1) ~ town), c("price", "town"))
  expect_error(schema_sample(schema, 0), class = "dpreg_argument_error")
  expect_error(schema_sample(schema, 2, y ~ x), class = "dpreg_argument_error")
  need_python()
  expect_s3_class(dp_ols(rate ~ price + town, made, eps = 9, schema = schema), "dp_ols")
  expect_s3_class(dp_ols(pool ~ price, made, eps = 9, schema = schema), "dp_ols")
})

test_that("one codebook serves tables that lack some of its columns", {
  need_python()
  book <- list(mpg = c(5, 40), wt = c(1, 6), income = c(0, 9), village = c("a", "b"))
  expect_s3_class(dp_ols(mpg ~ wt, mtcars, eps = 9, schema = book), "dp_ols")
  expect_s3_class(dp_mean("mpg", mtcars, eps = 9, schema = book), "dp_estimate")
  expect_error(dp_ols(mpg ~ wt, mtcars, eps = 9, schema = list(mpg = c(5, 40), Wt = c(1, 6))), "did you mean .wt.",
               class = "dpreg_schema_error")
})
