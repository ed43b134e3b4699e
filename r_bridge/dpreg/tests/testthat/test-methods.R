need_python()

# All of a result but when it was released.
released <- function(x) {
  x[c("record", "python")] <- NULL
  if (!is.null(x$regression)) x$regression <- released(x$regression)
  x
}

fit <- dp_ols(mpg ~ wt * am + factor(gear), mtcars, eps = 1e6, schema = car_schema)
exact <- lm(mpg ~ wt * am + factor(gear), transform(mtcars, am = am == 1))
chosen <- dp_select(mpg ~ wt + log(hp) + factor(gear) + am, mtcars, eps = 1e5, schema = car_schema,
                    method = PCLS(draws = 5))
bare <- dp_select(mpg ~ wt + hp, mtcars, eps = 10, schema = car_schema, fit = NULL)

test_that("the accessors answer as lm's do", {
  # am is 0 and 1 in mtcars: declared as logical, it is a truth.
  expect_identical(names(coef(fit)), names(coef(exact)))
  expect_identical(dimnames(vcov(fit)), dimnames(vcov(exact)))
  expect_equal(vcov(fit), t(vcov(fit)))
  expect_identical(dimnames(confint(fit)), dimnames(confint(exact)))
  expect_identical(dimnames(confint(fit, "wt", level = 0.9)), dimnames(confint(exact, "wt", 0.9)))
  expect_identical(nobs(fit), nobs(exact))
  expect_identical(class(formula(fit)), class(formula(exact)))
  expect_identical(attr(terms(fit), "term.labels"), attr(terms(exact), "term.labels"))
  expect_true(all(confint(fit)[, 1] < coef(fit) & coef(fit) < confint(fit)[, 2]))
  # Without delta the squares of scores are released in one number, where rows far out count more.
  expect_equal(sigma(fit), sigma(exact), tolerance = 0.15)
  expect_error(confint(fit, level = 2), class = "dpreg_argument_error")
})

test_that("a selection tells what it chose", {
  expect_s3_class(chosen, "dp_select")
  expect_true("(Intercept)" %in% chosen$selected)
  expect_identical(names(chosen$selection_frequencies), c("wt", "log(hp)", "factor(gear)", "am"))
  expect_identical(formula(chosen, "full"), bare_formula(mpg ~ wt + log(hp) + factor(gear) + am))
  expect_identical(c("(Intercept)", attr(terms(chosen), "term.labels")), chosen$selected)
  expect_identical(names(coef(chosen)), colnames(model.matrix(terms(chosen), transform(mtcars, am = am == 1))))
  which <- summary(chosen)$which
  expect_identical(colnames(which), c("(Intercept)", chosen$candidates))
  expect_true(is.logical(which) && all(which[, "(Intercept)"]))
  expect_identical(sum(summary(chosen)$counts), 5L)
  expect_identical(colnames(which)[which[1, ]], intersect(colnames(which), chosen$selected))
  expect_identical(chosen$budget$eps, c("100000", "100000"))
})

test_that("units may be columns", {
  by_column <- dp_select(mpg ~ wt + factor(gear), mtcars, eps = 1e5, schema = car_schema,
                         units = "column", fit = NULL)
  expect_identical(by_column$candidates, c("wt", "factor(gear)4", "factor(gear)5"))
  expect_s3_class(formula(by_column), "formula")
})

test_that("without coefficients, what needs them says so", {
  for (f in list(coef, vcov, confint, sigma, function(x) predict(x, mtcars))) {
    expect_error(f(bare), "fit = NULL", class = "dpreg_not_released")
  }
  expect_output(print(bare), "Selected: mpg ~")
  expect_named(tidy(bare), c("term", "kept", "selected", "frequency", "level", "se", "group"))
})

test_that("what single rows would show is never released", {
  for (f in list(residuals, fitted, deviance, logLik, AIC, BIC, hatvalues, model.frame)) {
    expect_error(f(fit), class = "dpreg_not_released")
  }
})

test_that("printing is invisible, and needs no more than the object", {
  for (x in list(fit, chosen, bare)) {
    expect_output(value <- withVisible(print(x)), "eps = ")
    expect_false(value$visible)
    expect_output(value <- withVisible(print(summary(x, full = TRUE))), "Privacy: Differentially private")
    expect_false(value$visible)
  }
})

test_that("update calls again", {
  again <- update(fit, . ~ . - factor(gear), eps = 1e5)
  expect_identical(names(coef(again)), c("(Intercept)", "wt", "amTRUE", "wt:amTRUE"))
  expect_identical(again$eps, 1e5)
  more <- update(chosen, . ~ . - am, fit = NULL)
  expect_identical(more$candidates, c("wt", "log(hp)", "factor(gear)"))
  expect_identical(update(fit, eps = 2, evaluate = FALSE)$eps, 2)
})

test_that("broom's verbs have broom's columns", {
  expect_named(tidy(fit), c("term", "estimate", "std.error", "statistic", "p.value", "mark"))
  wide <- tidy(fit, conf.int = TRUE, conf.level = 0.9)
  expect_named(wide, c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high", "mark"))
  expect_equal(wide$conf.low, unname(confint(fit, level = 0.9)[, 1]))
  expect_equal(wide$std.error, unname(sqrt(diag(vcov(fit)))))
  one <- glance(chosen)
  expect_identical(nrow(one), 1L)
  expect_true(all(c("r.squared", "sigma", "df", "df.residual", "nobs") %in% names(one)))
  ahead <- augment(fit, newdata = mtcars[1:3, ], se_fit = TRUE, interval = "confidence")
  expect_named(ahead, c(".rownames", names(mtcars), ".fitted", ".lower", ".upper", ".se.fit", ".resid"))
  expect_equal(ahead$.resid, mtcars$mpg[1:3] - unname(predict(fit, mtcars[1:3, ])))
  own <- augment(fit, newdata = data.frame(wt = 3, am = 0, gear = 4))
  expect_named(own, c("wt", "am", "gear", ".fitted"))
  expect_error(augment(fit), class = "dpreg_not_released")
  expect_error(augment(fit, mtcars), "newdata, not as data", class = "dpreg_not_released")
  expect_error(augment(fit, newdata = mtcars, weights = 1), "'weights'", class = "dpreg_argument_error")
  expect_identical(class(as.data.frame(fit)), "data.frame")
  expect_identical(tidy(chosen, type = "terms")$term, c(chosen$kept, chosen$candidates))
})

test_that("plots are drawn", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  for (x in list(fit, chosen, bare)) expect_identical(plot(x), x)
  expect_identical(plot(chosen, which = "frequencies"), chosen)
  expect_error(plot(fit, which = "frequencies"), class = "dpreg_argument_error")
})

test_that("a seeded result is stamped in every view", {
  seeded <- dp_select(mpg ~ wt + hp, mtcars, eps = 100, schema = car_schema, method = "pcls", unsafe_seed = 1)
  expect_output(print(seeded), stamp, fixed = TRUE)
  expect_output(print(summary(seeded)), stamp, fixed = TRUE)
  for (view in list(coef(seeded), vcov(seeded), confint(seeded), tidy(seeded), glance(seeded),
                    as.data.frame(seeded), seeded$budget, predict(seeded, mtcars),
                    augment(seeded, newdata = mtcars))) {
    expect_identical(attr(view, "privacy"), stamp)
  }
  same <- dp_select(mpg ~ wt + hp, mtcars, eps = 100, schema = car_schema, method = "pcls", unsafe_seed = 1)
  expect_identical(released(same), released(seeded))
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(seeded), stamp, fixed = TRUE)
})

test_that("no table stays in a call by way of an expression", {
  table <- mtcars
  table$mpg[7] <- 14.34567
  shows <- function(object) any(grepl("14.34567", c(deparse(object), capture.output(print(object))), fixed = TRUE))
  expect_true(shows(quote(f(.(table)))) || shows(bquote(f(.(table)))))
  fits <- list(
    eval(bquote(dp_ols(mpg ~ wt, data = subset(.(table), wt > 0), eps = 1, schema = car_schema))),
    eval(bquote(dp_ols(mpg ~ wt, data = (function(d) .(table))(), eps = 1, schema = car_schema))),
    eval(bquote(dp_mean(.(table)$mpg, eps = 1, bounds = c(0, 40)))),
    eval(bquote(dp_mean(mtcars$mpg * .(table$mpg), eps = 1, bounds = c(0, 40)))),
    dp_mean(c(14.34567, 20, 21), eps = 1, bounds = c(0, 40))
  )
  for (fit in fits) expect_false(shows(fit$call) || shows(fit))
  expect_identical(fits[[1]]$call$data, quote(`<data>`))
  expect_identical(fits[[3]]$call$x, quote(`<x>`))
  cond <- tryCatch(
    eval(bquote(dp_ols(mpg ~ none, data = subset(.(table), wt > 0), eps = 1, schema = car_schema))),
    error = identity
  )
  expect_identical(conditionCall(cond)$data, quote(...))
  expect_false(shows(cond))
})

test_that("a call keeps of its rows a name alone: cells might be in anything else", {
  kept <- function(call) public_call(call)[["data"]]
  for (typed in expression(d, d$x, d$x$y, d[["x"]], d@x, datasets::mtcars, "rows.csv")) {
    expect_identical(kept(call("dp_ols", data = typed)), typed)
  }
  for (typed in expression(c(d$x, 14.34567), rbind(d, list(1, "a")), d[d$x > 3, ], subset(d, x > 2), within(d, x[3] <- 7),
                           read.csv(text = "a\n7"), bind_rows(d, tribble(~a, 7)), mutate(d, x = 7), add_row(d, x = 7),
                           (function(d) rbind(d, 5))(d), d[[3]], d$x[7], Cs(Smith, Jones), f(7)$x, -2, c("a", "b"), NULL)) {
    expect_identical(kept(as.call(list(quote(dp_ols), data = typed))), quote(`<data>`), info = deparse1(typed))
  }
  expect_identical(kept(call("dp_ols", data = c("a", "b"))), quote(`<data>`))
  expect_identical(public_call(quote(dp_mean(x = c(14.34567, d$x), eps = 1)))$x, quote(`<x>`))
  expect_identical(public_call(quote(dp_mean(x = c("a", "b"), data = d, eps = 1)))$x, quote(c("a", "b")))
  expect_identical(public_call(quote(dp_plan(like = dp_mean(c(14.34567, 2), 1))))$like, quote(`<like>`))
  expect_identical(public_call(quote(f(14.34567)(x = y)))[[1]], quote(FUN))
})

test_that("it is known of each argument whether it is public", {
  others <- c("data", "x", "object", "budget", "like", "path", "ledger", "reason", "head", "witness", "extras", "from", "envname",
              "python", "index_url", "quiet", "subset", "...")
  functions <- Filter(is.function, mget(getNamespaceExports("dpreg"), asNamespace("dpreg"), inherits = TRUE))
  ours <- Filter(function(fun) identical(environment(fun), asNamespace("dpreg")), functions)
  expect_setequal(unique(unlist(lapply(ours, function(fun) names(formals(fun))))),
                  c(public_arguments, column_arguments, others))
  expect_identical(anyDuplicated(c(public_arguments, column_arguments, others)), 0L)
})

test_that("no cell stays in a call by way of an argument or of a function that was put into it", {
  rows <- as.pairlist(list(y = 14.34567, x = 1:9))
  fun <- bquote(function(block, given = .(mtcars), more = f(.(rows)), none = NULL) median(block))
  expect_identical(
    public_call(bquote(sample_aggregate(estimator = .(fun), data = d, eps = f(.(rows))))),
    quote(sample_aggregate(estimator = function(block, given = ..., more = f(...), none = NULL) median(block),
                           data = d, eps = f(...)))
  )
  fit <- dp_ols(mpg ~ wt, data = rbind(mtcars, replace(mtcars[1, ], "mpg", 14.34567)), eps = 1, schema = car_schema)
  expect_identical(fit$call$data, quote(`<data>`))
  expect_error(update(fit, eps = 2), "give data again", class = "dpreg_argument_error")
  expect_identical(update(fit, data = mtcars, evaluate = FALSE)$data, quote(mtcars))
})

test_that("no condition's call shows a cell that was typed", {
  cells <- function(cond) expect_no_match(deparse1(conditionCall(cond)), "14.34567|Smith", info = deparse1(conditionCall(cond)))
  calls <- expression(
    dp_mean(c(14.34567, 20), eps = -1), dp_mean(c(14.34567, 20)), dp_mean(14.34567, mtcars, eps = 1),
    dp_ols(mpg ~ wt, within(mtcars, mpg[3] <- 14.34567), eps = -1), dp_ols(mpg ~ wt, dat = rbind(mtcars, 14.34567), eps = -1),
    dp_ols(mpg ~ wt, read.csv(text = "mpg\n14.34567"), eps = 1), dp_ols(data = 14.34567, mpg ~ wt),
    dp_glm(am ~ wt, mtcars, eps = 1, offset = c(14.34567, 20), schema = list(wt = c(1, 6))),
    dp_mean("mpg", mtcars, eps = 1, by = c("Smith", "Jones")), dp_mean("mpg", mtcars, 1, person = c("Smith")),
    dp_plan(like = dp_mean(c(14.34567, 20), eps = 1)), sample_aggregate(median, c(14.34567, 20), eps = -1, bounds = 1),
    schema_skeleton(c(14.34567, 20))
  )
  for (code in calls) {
    cond <- tryCatch(eval(code), condition = identity)
    expect_s3_class(cond, "condition")
    cells(cond)
  }
  warned <- tryCatch(dp_ols(mpg ~ wt, rbind(mtcars, replace(mtcars[1, ], "mpg", 14.34567)), eps = 1, schema = list(mpg = c(5, 40))),
                     warning = identity)
  expect_s3_class(warned, "dpreg_warning")
  cells(warned)
  expect_identical(conditionCall(warned), quote(dp_ols(mpg ~ wt, ..., eps = 1, schema = list(mpg = c(5, 40)))))
})

test_that("the object holds no rows, whatever the call looked like", {
  secret <- transform(mtcars, mpg = mpg + 0.123456789)
  make <- function(table) {
    formula <- mpg ~ wt
    do.call(dp_ols, list(formula, table, eps = 1, schema = car_schema))
  }
  hidden <- make(secret)
  expect_identical(hidden$call$data, quote(`<data>`))
  expect_identical(environment(hidden$formula), globalenv())
  expect_identical(environment(hidden$call$formula), globalenv())
  file <- tempfile()
  saveRDS(hidden, file, compress = FALSE)
  bytes <- readBin(file, "raw", file.size(file))
  row <- writeBin(secret$mpg[1], raw(), endian = "big")
  expect_length(grepRaw(row, bytes, fixed = TRUE), 0)
  expect_lt(file.size(file), 5e5)
})

test_that("the number of rows is private under add-remove", {
  private <- dp_ols(mpg ~ wt, mtcars, eps = 10, schema = car_schema, neighbors = "add-remove")
  expect_null(private$nobs)
  expect_identical(glance(private)$nobs, nobs(private))
  expect_output(print(summary(private, full = TRUE)), "number of rows being private")
  expect_output(print(summary(private)), "their number is private")
})

test_that("a summary is one screen, and warns of what not to trust", {
  names <- paste0("slope_", 1:8)
  set.seed(1)
  wide <- as.data.frame(matrix(runif(8e4), ncol = 8, dimnames = list(NULL, names)))
  wide$y <- wide$slope_1 + rnorm(1e4) / 9
  schema <- stats::setNames(c(rep(list(c(0, 1)), 8), list(c(-1, 2))), names(wide))
  for (delta in c(0, 1e-6)) {
    fit <- dp_ols(stats::reformulate(names, "y"), wide, eps = 2, delta = delta, schema = schema, unsafe_seed = 1)
    screen <- capture.output(print(summary(fit)))
    expect_lte(length(screen), 38)
    for (text in c("Rows: about", "Cost: ", "Noise", "Mark", "0 = not significant", "Details: summary(fit, full = TRUE) has")) {
      expect_match(screen, text, fixed = TRUE, all = FALSE)
    }
    expect_gt(length(capture.output(print(summary(fit, full = TRUE)))), length(screen))
  }
  few <- dp_mean(c(1, 2, 3), eps = 1, bounds = c(-1e6, 1e6), unsafe_seed = 1)
  expect_true(any(few$severe))
  for (shown in list(capture.output(print(few)), capture.output(print(summary(few))))) {
    expect_match(shown, "Warning: ", all = FALSE)
  }
  lost <- dp_ols(y ~ slope_1, wide[1:8, ], eps = 0.05, schema = schema, method = "adaptive", neighbors = "add-remove",
                 unsafe_seed = 1)
  expect_true(all(lost$marks == "too few rows to say"))
  expect_match(capture.output(print(lost)), "Warning: The noise hides \\(Intercept\\), slope_1", all = FALSE)
  fit$severe <- rep(c(TRUE, FALSE), length.out = length(fit$notes))
  shown <- gsub("\\s+", " ", paste(capture.output(print(fit)), collapse = " "))
  expect_true(all(vapply(fit$notes[fit$severe], grepl, NA, shown, fixed = TRUE)))
  expect_false(any(vapply(fit$notes[!fit$severe], grepl, NA, shown, fixed = TRUE)))
})

test_that("p-values of one fit agree everywhere", {
  set.seed(2)
  rows <- data.frame(x = runif(4000, -1, 1), z = runif(4000, -1, 1), g = sample(letters[1:3], 4000, TRUE))
  rows$y <- rows$x / 5 + rnorm(4000) / 3
  schema <- list(x = c(-1, 1), z = c(-1, 1), g = list(levels = letters[1:3]), y = c(-2, 2))
  for (method in c("auto", "gram")) {
    fit <- dp_ols(y ~ x + z + g, rows, eps = 2, schema = schema, method = method, unsafe_seed = 1)
    told <- summary(fit)$coefficients[c("x", "z"), "Pr(>|z|)"]
    expect_equal(anova(fit)[c("x", "z"), "Pr(>Chisq)"], unname(told), tolerance = 1e-12)
    expect_equal(drop1(fit)[c("x", "z"), "Pr(>Chisq)"], unname(told), tolerance = 1e-12)
    expect_equal(tidy(fit)$p.value[2:3], unname(told), tolerance = 1e-12)
    loaded <- reticulate::import("dpreg.results.base")$from_json(fit$python$json)
    theirs <- unlist(loaded$wald_test_terms()$table["pvalue"]$to_dict())
    expect_equal(anova(fit)[c("x", "z", "g"), "Pr(>Chisq)"], unname(theirs[c("x", "z", "g")]), tolerance = 1e-9)
    expect_match(attr(anova(fit), "heading"), "by the law of summary()", fixed = TRUE, all = FALSE)
  }
})
