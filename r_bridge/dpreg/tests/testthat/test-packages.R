need_python()

rows <- transform(mtcars, am = am == 1)
fit <- dp_ols(mpg ~ wt * am + factor(gear), mtcars, eps = 1e6, method = "gram", schema = car_schema)
exact <- lm(mpg ~ wt * am + factor(gear), rows)
bare <- dp_select(mpg ~ wt + hp, mtcars, eps = 10, schema = car_schema, fit = NULL)

test_that("what lm answers from its formula and names, this answers alike", {
  expect_identical(labels(fit), labels(exact))
  expect_identical(variable.names(fit), variable.names(exact))
  expect_identical(attr(terms(fit), "dataClasses"), attr(terms(exact), "dataClasses"))
  expect_null(weights(fit))
  expect_identical(family(fit)$family, family(exact)$family)
  expect_match(format(fit), "<dp_ols: mpg ~ .*eps = 1e\\+06")
  expect_identical(toString(fit), format(fit))
  own <- model.matrix(fit, mtcars[1:5, ])
  expect_identical(unclass(own), model.matrix(terms(exact), rows[1:5, ], xlev = exact$xlevels)[, ], ignore_attr = TRUE)
  bins <- dp_ols(mpg ~ cut(wt, c(1, 3, 6)) + poly(hp, 2, raw = TRUE), mtcars, eps = 1e5, schema = car_schema)
  expect_identical(attr(terms(bins), "dataClasses"),
                   c(mpg = "numeric", `cut(wt, c(1, 3, 6))` = "factor", hp = "numeric", `I(hp^2)` = "numeric"))
})

test_that("anova and drop1 are Wald tests", {
  table <- anova(fit)
  expect_s3_class(table, c("anova", "data.frame"), exact = TRUE)
  expect_identical(rownames(table), c("wt", "am", "factor(gear)", "wt:am"))
  one <- (coef(fit)[["wt"]] / sqrt(vcov(fit)["wt", "wt"]))^2
  expect_equal(table["wt", "Chisq"], one)
  gears <- c("factor(gear)4", "factor(gear)5")
  expect_equal(table["factor(gear)", "Chisq"], c(coef(fit)[gears] %*% solve(vcov(fit)[gears, gears]) %*% coef(fit)[gears]))
  expect_identical(table[["Df"]], c(1, 1, 2, 1))
  expect_output(print(table), "Wald tests of terms")
  # With little noise they are lm's F tests, but for the degrees of freedom.
  expect_equal(drop1(fit)[["Chisq"]] / drop1(fit)[["Df"]], drop1(exact, test = "F")[-1, "F value"], tolerance = 0.15)
  expect_identical(rownames(drop1(fit)), c("factor(gear)", "wt:am"))
  expect_identical(rownames(drop1(fit, ~ wt)), "wt")
  expect_error(drop1(fit, "hp"), "'hp' is not a term", class = "dpreg_argument_error")
  expect_error(anova(fit, fit), "noise of its own", class = "dpreg_not_released")
  expect_error(anova(bare), "fit = NULL", class = "dpreg_not_released")
  expect_identical(anova(fit, test = "Chisq"), table)
  expect_error(drop1(fit, test = "F"), "Wald tests", class = "dpreg_argument_error")
  skip_if_not_installed("car")
  expect_identical(car::Anova(fit), table)
})

test_that("what single rows or exact sums would show is refused with the reason", {
  per_row <- list(influence, cooks.distance, rstandard, rstudent, dfbeta, dfbetas, dffits, case.names,
                  simulate, model.matrix, alias, effects, profile, proj, kappa, qr)
  for (f in per_row) expect_error(f(fit), class = "dpreg_not_released")
  for (f in list(extractAIC, step, function(x) add1(x, ~ . + hp))) {
    expect_error(f(fit), "dp_select", class = "dpreg_not_released")
  }
})

test_that("tidiers keep the documented rules of modeltests", {
  skip_if_not_installed("tibble")
  # The package is not in Debian. Its rules: tibbles without row names or factors; term is text; arguments
  # by broom's names and defaults; glance has one row; augment keeps rows and adds dotted columns.
  for (table in list(tidy(fit, conf.int = TRUE), tidy(bare), glance(fit), glance(bare), augment(fit, newdata = mtcars))) {
    expect_s3_class(table, "tbl_df")
    expect_identical(.row_names_info(table), -nrow(table))
    expect_false(any(vapply(table, function(x) is.factor(x) || !is.null(dim(x)) || !is.null(names(x)), NA)))
    expect_identical(anyDuplicated(names(table)), 0L)
  }
  expect_type(tidy(fit)$term, "character")
  tidy_arguments <- formals(tidy.dp_result)
  expect_identical(unclass(tidy_arguments[c("conf.int", "conf.level")]), list(conf.int = FALSE, conf.level = 0.95))
  expect_identical(names(formals(augment.dp_result))[1:5], c("x", "data", "newdata", "se_fit", "interval"))
  expect_identical(nrow(glance(fit)), 1L)
  expect_true(is.integer(glance(fit)$nobs))
  chosen <- glance(dp_select(mpg ~ wt, mtcars, 1, schema = car_schema))
  expect_identical(names(chosen)[seq_along(glance(fit))], names(glance(fit)))
  added <- augment(fit, newdata = mtcars, se_fit = TRUE, interval = "confidence")
  expect_identical(nrow(added), nrow(mtcars))
  expect_true(all(startsWith(setdiff(names(added), names(mtcars)), ".")))
  expect_identical(setdiff(names(mtcars), names(added)), character())
})

test_that("tables can be made as texreg and modelsummary make them", {
  # Neither is in Debian. What they ask of a model that they do not know: tidy() with these columns and broom's
  # arguments, terms that are different texts, and glance() as one row of numbers and truths.
  for (x in list(fit, dp_select(mpg ~ wt, mtcars, eps = 100, schema = car_schema))) {
    table <- tidy(x, conf.int = TRUE, conf.level = 0.9)
    expect_identical(names(table)[1:7], c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"))
    expect_true(all(names(table)[-(1:7)] == "mark"))
    expect_identical(anyDuplicated(table$term), 0L)
    expect_true(all(vapply(table[2:7], is.double, NA)))
    line <- glance(x)
    expect_identical(nrow(line), 1L)
    expect_true(all(vapply(line, function(column) is.numeric(column) || is.logical(column), NA)))
    expect_no_warning(as.numeric(line[1, ]))
    expect_type(nobs(x), "integer")
    expect_s3_class(formula(x), "formula")
  }
})

test_that("emmeans averages over the schema, never over the rows", {
  skip_if_not_installed("emmeans")
  ours <- as.data.frame(emmeans::emmeans(fit, "gear"))
  theirs <- as.data.frame(emmeans::emmeans(exact, "gear", at = list(wt = 3.5)))
  expect_equal(ours$emmean, theirs$emmean, tolerance = 0.05)
  expect_equal(ours$SE, theirs$SE, tolerance = 0.05)
  slopes <- as.data.frame(emmeans::emtrends(fit, "am", var = "wt"))
  expect_equal(slopes$wt.trend, unname(coef(fit)["wt"] + c(0, coef(fit)["wt:amTRUE"])))
  pairs <- as.data.frame(emmeans::contrast(emmeans::emmeans(fit, "gear"), "pairwise"))
  expect_equal(pairs$estimate[1], -unname(coef(fit)["factor(gear)4"]))
  grid <- emmeans::ref_grid(fit)@grid
  expect_identical(unique(grid$wt), 3.5)
})

test_that("xtable, autoplot, parameters and insight show the fit", {
  skip_if_not_installed("xtable")
  expect_output(print(xtable::xtable(fit)), "factor\\(gear\\)4 & ")
  skip_if_not_installed("ggplot2")
  drawn <- ggplot2::ggplot_build(ggplot2::autoplot(fit))
  expect_identical(nrow(drawn$data[[2]]), 5L)
  skip_if_not_installed("parameters")
  table <- parameters::model_parameters(fit)
  expect_identical(table$Parameter, names(coef(fit)))
  expect_equal(table$CI_low, unname(confint(fit)[, 1]))
  skip_if_not_installed("insight")
  expect_identical(insight::find_predictors(fit)$conditional, c("wt", "am", "gear"))
  expect_equal(insight::get_statistic(fit)$Statistic, tidy(fit)$statistic)
  expect_equal(insight::get_varcov(fit), vcov(fit))
  expect_error(insight::get_data(fit), "it would hold the rows", class = "dpreg_not_released")
})

test_that("what insight and parameters ask beyond tables is answered, or refused with the reason", {
  skip_if_not_installed("parameters")
  limits <- parameters::ci(fit, ci = 0.9)
  expect_identical(limits$Parameter, names(coef(fit)))
  expect_equal(limits$CI_low, unname(confint(fit, level = 0.9)[, 1]))
  expect_identical(insight::get_df(fit), Inf)
  expect_identical(parameters::degrees_of_freedom(fit), Inf)
  for (f in list(insight::get_deviance, insight::get_residuals, insight::get_predicted, insight::get_loglikelihood)) {
    expect_error(f(fit), class = "dpreg_not_released")
  }
  expect_identical(insight::get_predicted(fit, mtcars), predict(fit, mtcars))
  expect_error(parameters::ci(bare), "fit = NULL", class = "dpreg_not_released")
})

test_that("lmtest tests what is released, and says that a refit costs", {
  skip_if_not_installed("lmtest")
  fit <- dp_ols(mpg ~ wt * am, mtcars, eps = 1e6, method = "gram", schema = list(mpg = c(5, 40), wt = c(1, 6), am = logical()))
  expect_equal(lmtest::coeftest(fit)[, 1], coef(fit))
  the$said <- list()
  expect_message(test <- lmtest::waldtest(fit, . ~ . - wt:am), "spends its eps anew", class = "dpreg_message")
  expect_equal(test$Chisq[2], anova(fit)["wt:am", "Chisq"], tolerance = 0.05)
})

test_that("one law gives the p-values of one fit, whatever asks for them", {
  # At pure eps and few rows it is far from normal.
  some <- transform(mtcars[rep(1:32, 5), ], gear = factor(gear))
  known <- list(mpg = c(5, 40), wt = c(1, 6), gear = as.character(3:5))
  noisy <- dp_ols(mpg ~ wt + gear, some, eps = 2, schema = known, method = "gram", unsafe_seed = 1)
  own <- summary(noisy)$coefficients
  expect_identical(tidy(noisy)$p.value, unname(own[, 4]))
  expect_gt(max(abs(own[, 4] - 2 * pnorm(-abs(own[, 3])))), 0.02)
  skip_if_not_installed("lmtest")
  expect_equal(unclass(lmtest::coeftest(noisy))[, 1:4], own[, 1:4], ignore_attr = TRUE)
  expect_output(print(lmtest::coeftest(noisy)), "z tests of coefficients, by the law of summary")
  expect_identical(lmtest::coefci(noisy), confint(noisy))
  expect_identical(lmtest::coefci(noisy, "wt", level = 0.9), confint(noisy, "wt", level = 0.9))
  expect_equal(lmtest::coeftest(noisy, vcov. = diag(4))[2, 2], 1)
  expect_error(lmtest::coeftest(noisy, robust = TRUE), "no argument 'robust'", class = "dpreg_argument_error")
  skip_if_not_installed("car")
  one <- car::linearHypothesis(noisy, "wt = 0")
  expect_equal(one$`Pr(>Chisq)`[2], unname(own["wt", 4]))
  both <- car::linearHypothesis(noisy, c("gear4 = 0", "gear5 = 0"))
  expect_equal(unlist(both[2, ]), unlist(anova(noisy)["gear", ]), ignore_attr = TRUE)
  expect_equal(car::linearHypothesis(noisy, rbind(c(0, 0, 1, 0), c(0, 0, 0, 1)))$Chisq, both$Chisq)
  moved <- car::linearHypothesis(noisy, "2 * wt = 3")
  expect_equal(moved$Chisq[2], (2 * coef(noisy)[["wt"]] - 3)^2 / (4 * vcov(noisy)["wt", "wt"]))
  expect_error(car::linearHypothesis(noisy, "wt = 0", white.adjust = TRUE), class = "dpreg_argument_error")
})

# A package that exports what DPrivStats does, which is not in Debian, and the other fits' names as well.
clashing_package <- function(names) {
  place <- tempfile("clash-")
  library <- file.path(place, "library")
  source <- file.path(place, "clashing")
  dir.create(file.path(source, "R"), recursive = TRUE)
  dir.create(library)
  writeLines(c("Package: clashing", "Version: 1.0", "Title: Same Names", "Description: Made by a test.", "License: BSD_3_clause",
               "Author: A Test", "Maintainer: A Test <test@example.org>"), file.path(source, "DESCRIPTION"))
  writeLines(paste0("export(", names, ")"), file.path(source, "NAMESPACE"))
  writeLines(paste0(names, " <- function(...) stop(\"the other package was called\")"), file.path(source, "R", "clash.R"))
  command <- c("CMD", "INSTALL", "--no-docs", "--no-test-load", paste0("--library=", shQuote(library)), shQuote(source))
  stopifnot(system2(file.path(R.home("bin"), "R"), command, stdout = FALSE, stderr = FALSE) == 0)
  library
}

test_that("dpreg:: works where a package with the same names is attached after it", {
  names <- c("dp_mean", "dp_glm", "dp_histogram", "dp_ols", "dp_select")
  place <- clashing_package(names)
  name <- "clashing"
  suppressWarnings(library(name, lib.loc = place, character.only = TRUE, warn.conflicts = FALSE))
  on.exit({
    detach("package:clashing", unload = TRUE)
    unlink(dirname(place), recursive = TRUE)
  })
  expect_error(eval(quote(dp_mean("mpg", mtcars, eps = 1)), globalenv()), "the other package was called")
  typed <- function(code) eval(substitute(code), list(car_schema = car_schema), globalenv())
  expect_s3_class(typed(dpreg::dp_mean("mpg", mtcars, eps = 1, schema = car_schema)), "dp_estimate")
  expect_s3_class(typed(dpreg::dp_histogram("gear", mtcars, eps = 1, schema = car_schema)), "dp_estimate")
  expect_s3_class(suppressWarnings(typed(dpreg::dp_glm(am ~ wt, mtcars, eps = 1, delta = 1e-6, schema = car_schema))), "dp_glm")
  fit <- typed(dpreg::dp_ols(mpg ~ wt + hp, mtcars, eps = 10, schema = car_schema))
  # The call is evaluated where it was asked for, and is dpreg's there.
  smaller <- eval(quote(update(fit, . ~ . - hp)), list(fit = fit, car_schema = car_schema), globalenv())
  expect_named(coef(smaller), c("(Intercept)", "wt"))
  expect_identical(smaller$call[[1]], quote(dp_ols))
  expect_length(coef(typed(dpreg::dp_select(mpg ~ wt, mtcars, eps = 10, schema = car_schema, fit = "split", method = "pcls")))[1], 1)
  expect_s3_class(tidy(fit), "data.frame")
})

test_that("effects and ggeffects, which reread the rows, are refused in words", {
  skip_if_not_installed("effects")
  plain <- dp_ols(mpg ~ wt + am, mtcars, eps = 1e4, schema = car_schema)
  for (display in list(
    quote(effects::Effect("wt", plain)), quote(effects::allEffects(plain)), quote(effects::effect("wt", plain)),
    quote(effects::predictorEffects(plain)), quote(effects::Effect("wt", dp_select(mpg ~ wt, mtcars, 10, schema = car_schema)))
  )) expect_error(eval(display), "averages over the rows", class = "dpreg_not_released")
  skip_if_not_installed("ggeffects")
  for (f in c("ggpredict", "ggeffect", "ggemmeans")) {
    expect_error(getExportedValue("ggeffects", f)(plain, "wt"), "emmeans() averages", fixed = TRUE, class = "dpreg_not_released")
  }
})

test_that("performance shows what was released, and checks of rows are refused", {
  skip_if_not_installed("performance")
  expect_identical(performance::r2(fit)$R2[["R2"]], fit$r.squared)
  expect_identical(performance::model_performance(fit)$Sigma, sigma(fit))
  for (f in c("check_model", "check_normality", "check_heteroscedasticity", "check_outliers", "check_collinearity", "check_predictions",
              "check_overdispersion", "check_autocorrelation", "performance_mae")) {
    expect_error(getExportedValue("performance", f)(fit), class = "dpreg_not_released", info = f)
  }
  expect_error(performance::r2(bare), "fit = NULL", class = "dpreg_not_released")
})

test_that("xtable takes summaries and estimates", {
  skip_if_not_installed("xtable")
  shown <- xtable::xtable(summary(fit))
  expect_identical(rownames(shown), names(coef(fit)))
  expect_match(attr(shown, "caption"), "eps = 1e+06", fixed = TRUE)
  expect_output(print(shown), "97.5")
  expect_output(print(xtable::xtable(dp_mean("mpg", mtcars, eps = 10, schema = car_schema))), "mpg")
  expect_error(xtable::xtable(summary(bare)), "fit = NULL", class = "dpreg_not_released")
})

test_that("marginaleffects gets what its page on extensions asks for", {
  # The package is not in Debian: its four generics are called as it documents them.
  plain <- dp_ols(mpg ~ wt * am, mtcars, eps = 1e4, schema = car_schema)
  own <- data.frame(wt = c(2, 3), am = c(TRUE, FALSE))
  me <- marginaleffects_methods
  beta <- me$get_coef(plain)
  expect_identical(beta, plain$coefficients)
  expect_equal(me$get_vcov(plain), vcov(plain), ignore_attr = TRUE)
  expect_null(me$get_vcov(plain, vcov = FALSE))
  expect_error(me$get_vcov(plain, vcov = "HC3"), "residuals, which were not released", class = "dpreg_argument_error")
  told <- me$get_predict(plain, own)
  expect_identical(names(told), c("rowid", "estimate"))
  expect_equal(told$estimate, unname(predict(plain, own)))
  # The delta method: errors of predictions by steps of the coefficients are those of predict().
  steps <- vapply(seq_along(beta), function(i) {
    moved <- me$set_coef(plain, replace(beta, i, beta[[i]] + 1e-4))
    (me$get_predict(moved, own)$estimate - told$estimate) / 1e-4
  }, numeric(2))
  expect_equal(sqrt(diag(steps %*% me$get_vcov(plain) %*% t(steps))), unname(predict(plain, own, se.fit = TRUE)$se.fit),
               tolerance = 1e-6)
  expect_error(me$get_predict(plain), class = "dpreg_not_released")
  # It finds them when it is loaded.
  expect_true(any(vapply(getHook(packageEvent("marginaleffects", "onLoad")), identical, NA, meet_marginaleffects)))
})

test_that("the number of rows is that of those used, never of incomplete ones", {
  set.seed(7)
  gaps <- data.frame(x = runif(4000), b = rbinom(4000, 1, 0.5))
  gaps$y <- gaps$x / 2 + runif(4000) / 2
  gaps$x[1:1500] <- NA
  known <- list(x = c(0, 1), y = c(0, 1), b = c(0, 1))
  near <- function(object, rows) {
    expect_type(nobs(object), "integer")
    expect_lt(abs(nobs(object) - rows), 200)
    expect_identical(glance(object)$nobs, nobs(object))
  }
  for (method in c("gram", "adaptive")) near(dp_ols(y ~ x, gaps, eps = 5, schema = known, method = method), 2500)
  near(dp_ols(y ~ x, gaps, eps = 5, schema = known, method = "gram", neighbors = "add-remove"), 2500)
  near(suppressWarnings(dp_glm(b ~ x, gaps, eps = 5, delta = 1e-6, schema = known)), 2500)
  near(dp_mean("x", gaps, eps = 5, schema = known), 2500)
  near(dp_select(y ~ x + b, gaps, eps = 20, schema = known, method = "pcls"), 1250)
  expect_identical(nobs(dp_select(y ~ x + b, gaps, eps = 20, schema = known, method = "pcls", fit = NULL)), NA_integer_)
  expect_identical(nobs(dp_ols(y ~ x, gaps, eps = 5, delta = 1e-6, schema = known, method = "ssp")), NA_integer_)
  skip_if_not_installed("insight")
  near(dp_ols(y ~ x, gaps, eps = 5, schema = known), insight::n_obs(dp_ols(y ~ x, gaps, eps = 5, schema = known)))
})
