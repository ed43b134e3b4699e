need_python()

set.seed(11)
n <- 6000
rows <- data.frame(age = runif(n, 20, 80), years = runif(n, 1, 3), g = sample(c("u", "v", "w"), n, TRUE))
rows$number <- with(rows, rpois(n, years * exp(-2 + 0.03 * age + 0.4 * (g == "v"))))
rows$any <- rows$number > 0
rows$word <- ifelse(rows$any, "yes", "no")
facts <- list(number = c(0, 15), age = c(20, 80), years = c(1, 3), g = c("u", "v", "w"), any = logical(),
              word = c("no", "yes"))
fit_to <- function(formula, family = binomial(), ..., eps = 500) {
  dp_glm(formula, rows, eps = eps, delta = 1e-6, family = family, schema = facts, ...)
}
yes <- fit_to(any ~ age + g)
counts <- fit_to(number ~ age * g + offset(log(years)), poisson())
exact_yes <- glm(any ~ age + g, binomial(), rows)
exact_counts <- glm(number ~ age * g + offset(log(years)), poisson(), rows)
few <- suppressWarnings(dp_glm(any ~ age + g, rows[1:300, ], eps = 0.2, schema = facts, unsafe_seed = 5))
near <- function(ours, theirs, tolerance = 0.05) expect_equal(ours, theirs, tolerance = tolerance, ignore_attr = TRUE)

test_that("the fit has glm's names, and nearly its numbers where eps is large", {
  for (pair in list(list(yes, exact_yes), list(counts, exact_counts))) {
    ours <- pair[[1]]
    theirs <- pair[[2]]
    expect_s3_class(ours, c("dp_glm", "dp_ols", "dp_result"), exact = TRUE)
    expect_identical(names(coef(ours)), names(coef(theirs)))
    expect_lt(max(abs(coef(ours) - coef(theirs)) / sqrt(diag(vcov(theirs)))), 1.5)
    near(sqrt(diag(vcov(ours))), sqrt(diag(vcov(theirs))), 0.2)
    expect_identical(dimnames(confint(ours)), dimnames(suppressMessages(confint(theirs))))
    near(nobs(ours), nobs(theirs), 0.01)  # complete rows are counted behind noise
    expect_identical(family(ours)[c("family", "link")], family(theirs)[c("family", "link")])
    expect_identical(labels(ours), attr(terms(theirs), "term.labels"))
    classes <- sub("character", "factor", attr(terms(theirs), "dataClasses"))
    expect_identical(attr(terms(ours), "dataClasses"), classes)
    expect_identical(attr(terms(ours), "offset"), attr(terms(theirs), "offset"))
    expect_identical(variable.names(ours), variable.names(theirs))
    expect_identical(sigma(ours), 1)
  }
})

test_that("predictions are as those of glm", {
  own <- data.frame(age = c(30, NA, 60), years = c(1, 2, 3), g = c("u", "v", "w"), row.names = letters[1:3])
  for (pair in list(list(yes, exact_yes), list(counts, exact_counts))) {
    for (type in c("link", "response")) {
      ours <- predict(pair[[1]], own, type = type, se.fit = TRUE)
      theirs <- predict(pair[[2]], own, type = type, se.fit = TRUE)
      expect_identical(names(ours), names(theirs))
      expect_identical(names(ours$fit), letters[1:3])
      near(ours$fit, theirs$fit)
      near(ours$se.fit, theirs$se.fit, 0.25)
      expect_identical(predict(pair[[1]], own, type = type), ours$fit)
      limits <- predict(pair[[1]], own, type = type, interval = "confidence", level = 0.9)
      expect_identical(colnames(limits), c("fit", "lwr", "upr"))
      expect_true(all(limits[c(1, 3), 2] < ours$fit[c(1, 3)] & ours$fit[c(1, 3)] < limits[c(1, 3), 3]))
    }
    expect_identical(predict(pair[[1]], own), predict(pair[[1]], own, type = "link"))
    parts <- predict(pair[[1]], own, type = "terms")
    expect_identical(colnames(parts), colnames(predict(pair[[2]], type = "terms")))
    added <- if (identical(pair[[1]], counts)) log(own$years) else 0
    expect_equal(rowSums(parts) + attr(parts, "constant") + added, predict(pair[[1]], own))
  }
  link <- predict(yes, own, interval = "confidence")
  near(unname(plogis(link)), unname(predict(yes, own, type = "response", interval = "confidence")), 1e-13)
  expect_error(predict(yes), class = "dpreg_not_released")
  expect_error(predict(yes, own, interval = "prediction"), "of its mean", class = "dpreg_argument_error")
  expect_error(predict(yes, own, dispersion = 2), "'dispersion'", class = "dpreg_argument_error")
  expect_error(predict(counts, own[c("age", "g")]), "no column 'years'", class = "dpreg_data_error")
  expect_error(predict(yes, transform(own, g = "z")), "it knows 'u'", class = "dpreg_data_error")
  the$door <- function(...) stop("Python was called")
  on.exit(the$door <- NULL)
  expect_length(predict(counts, own, type = "response", se.fit = TRUE, interval = "confidence"), 3)
})

test_that("the exponential is exp(), to the last digits, and knows its ends", {
  x <- c(-700, -20.5, -1e-9, 0, 1e-9, 1, 33.3, 700, rnorm(1000, sd = 50))
  expect_lt(max(abs(exact_exp(x) / exp(x) - 1)), 1e-15 * 10)
  expect_identical(exact_exp(c(a = 0, b = NA, c = 1000, d = Inf)), c(a = 1, b = NA, c = Inf, d = Inf))
  expect_identical(inverse_link("logit")(c(-1e4, -Inf, 0, Inf)), c(0, 0, 0.5, 1))
})

test_that("families are given as glm takes them, and links are checked", {
  for (family in list(poisson, poisson(), "poisson", stats::poisson(link = "log"))) {
    expect_identical(fit_to(number ~ age, family)$family, "poisson")
  }
  default <- formals(dp_glm)$family
  expect_identical(eval(default)$family, "binomial")
  refused <- function(family, ...) {
    cond <- expect_error(fit_to(number ~ age, family), class = "dpreg_argument_error")
    for (text in c("family", ...)) expect_match(conditionMessage(cond), text, fixed = TRUE)
  }
  refused(poisson("identity"), "poisson() has the link 'log' alone here; got 'identity'")
  refused(binomial("probit"), "'logit'", "'probit'")
  refused(gaussian, "dp_ols()")
  refused("quasibinomial", "another spread")
  refused(Gamma(), "'Gamma' is not offered")
  refused("nothing", "'nothing'")
  refused(3, "'numeric'")
  refused(function(x) stop("secret"), "makes no family")
  quasi <- fit_to(number ~ age, QuasiPoisson(exposure = "years"))
  expect_identical(family(quasi)$family, "quasipoisson")
  expect_equal(sigma(quasi)^2, quasi$dispersion)
  alone <- suppressWarnings(dp_glm(number ~ age, rows[1:200, ], eps = .5, family = quasipoisson(), schema = facts,
                                   unsafe_seed = 2))
  expect_identical(alone$dispersion, NA_real_)
  expect_output(print(alone), "quasi-Poisson")
  expect_output(print(summary(alone, full = TRUE)), "Scale: not released")
  expect_identical(glance(alone)$dispersion, NA_real_)
  called <- do.call(dp_glm, list(number ~ age, rows, eps = 500, delta = 1e-6, family = poisson, schema = facts))
  expect_identical(called$call$family, quote(poisson()))
  expect_identical(called$call$data, quote(`<data>`))
})

test_that("an offset may be given in each of glm's ways", {
  own <- rows[1:5, ]
  inside <- fit_to(number ~ age + offset(log(years)), poisson(), unsafe_seed = 1)
  text <- "log(years)"
  for (other in list(
    fit_to(number ~ age, poisson(), offset = log(years), unsafe_seed = 1),
    fit_to(number ~ age, poisson(), offset = text, unsafe_seed = 1),
    fit_to(number ~ age, poisson(), offset = ~ log(years), unsafe_seed = 1),
    fit_to(number ~ age, Poisson(exposure = years), unsafe_seed = 1),
    do.call(fit_to, list(number ~ age, Poisson(exposure = "years"), unsafe_seed = 1))
  )) {
    expect_identical(coef(other), coef(inside))
    expect_identical(predict(other, own), predict(inside, own))
    expect_identical(deparse1(formula(other)), "number ~ age")
  }
  two <- fit_to(number ~ age + offset(log(years)), poisson(), offset = I(age / 100))
  near(predict(two, own), predict(glm(number ~ age + offset(log(years)), poisson(), rows, offset = age / 100), own))
  refused <- function(text, family = poisson(), ...) {
    expect_error(fit_to(number ~ age, family, ...), text, class = "dpreg_error")
  }
  refused("offset: 'yers' is not a column of data", offset = log(yers))
  refused("no numbers", offset = rows$years)
  refused("give offset or exposure, not both", Poisson(exposure = years), offset = log(years))
  refused("name of a column", Poisson(exposure = log(years)))
  refused("one-sided", offset = a ~ years)
  expect_error(fit_to(number ~ age + offset(age), poisson()), "not a term of the formula", class = "dpreg_argument_error")
  expect_error(dp_ols(number ~ age + offset(years), rows, 1, schema = facts), "is an argument",
               class = "dpreg_formula_error")
  expect_warning(flat <- fit_to(number ~ age, poisson(), exposure = years, unsafe_seed = 1), "family = Poisson",
                 class = "dpreg_warning")
  expect_identical(coef(flat), coef(inside))
  expect_error(suppressWarnings(fit_to(any ~ age, exposure = years)), "has no option 'exposure'",
               class = "dpreg_argument_error")
})

test_that("a response may be a truth, a comparison, or one of two levels", {
  told <- fit_to(any ~ age, unsafe_seed = 2)
  for (other in list(fit_to(number > 0 ~ age, unsafe_seed = 2), fit_to(I(number > 0) ~ age, unsafe_seed = 2),
                     fit_to(word ~ age, unsafe_seed = 2))) {
    expect_identical(coef(other), coef(told))
  }
  level <- fit_to(word ~ age)
  expect_identical(level$success, "yes")
  expect_output(print(summary(level, full = TRUE)), "Success: yes")
  expect_error(fit_to(g ~ age), "3 declared levels", class = "dpreg_schema_error")
  expect_error(fit_to(number ~ age), "c(0, 1), as logical()", fixed = TRUE, class = "dpreg_schema_error")
  expect_error(fit_to(cbind(any, 1) ~ age), "trials = ", class = "dpreg_formula_error")
  expect_error(fit_to(any ~ age - 1), "needs an intercept", class = "dpreg_formula_error")
  capped <- dp_glm(number ~ age, rows, eps = 50, family = Poisson(response_cap = 15), schema = facts["age"])
  expect_length(coef(capped), 2)
  expect_error(dp_glm(number ~ age, rows, eps = 1, family = poisson(), schema = facts["age"]), "response_cap",
               class = "dpreg_argument_error")
})

test_that("successes out of trials are given in each of glm's ways", {
  games <- transform(rows, played = 1 + seq_len(n) %% 4)
  games$won <- with(games, rbinom(n, played, plogis(-2 + 0.04 * age)))
  known <- c(facts["age"], list(played = c(0, 4), won = c(0, 4)))
  fit <- function(formula, ...) dp_glm(formula, games, eps = 500, delta = 1e-6, schema = known, unsafe_seed = 4, ...)
  told <- fit(won ~ age, family = Binomial(trials = played))
  expect_identical(coef(fit(cbind(won, played - won) ~ age)), coef(told))
  expect_identical(coef(fit(won ~ age, family = Binomial(trials = "played"))), coef(told))
  near(coef(told), coef(glm(cbind(won, played - won) ~ age, binomial(), games)), 0.1)
  expect_output(print(summary(told, full = TRUE)), "Trials: played")
  again <- dp_load(dp_save(told, tempfile(fileext = ".json")))
  expect_identical(again$call$family, quote(Binomial(trials = played)))
  expect_identical(predict(again, games[1:3, ]), predict(told, games[1:3, ]))
  expect_error(fit(cbind(won, age) ~ age), "trials = ", class = "dpreg_formula_error")
  expect_error(fit(won ~ age, family = Binomial(trials = played + 1)), "name of a column", class = "dpreg_argument_error")
  expect_error(suppressWarnings(fit(won ~ age, family = poisson(), trials = played)), "has no option 'trials'",
               class = "dpreg_argument_error")
})

test_that("the terms of a family are chosen", {
  more <- transform(rows, z = runif(n), w = runif(n))
  known <- c(facts, list(z = c(0, 1), w = c(0, 1)))
  choose <- function(formula, ...) dp_select(formula, more, eps = 50, delta = 1e-6, schema = known, ...)
  chosen <- choose(number ~ age + g + z + w, family = poisson(), offset = log(years))
  expect_s3_class(chosen, c("dp_select", "dp_result"), exact = TRUE)
  expect_s3_class(chosen$regression, "dp_glm")
  expect_true(all(c("age", "g") %in% chosen$selected))
  expect_identical(family(chosen)$family, "poisson")
  expect_output(print(summary(chosen, ratios = TRUE)), "rate ratio")
  own <- more[1:5, ]
  expect_identical(predict(chosen, own), predict(chosen$regression, own))
  near(unstamped(predict(chosen, own, type = "response", interval = "confidence")), exp(predict(chosen, own, interval = "confidence")),
       1e-12)
  expect_identical(augment(chosen, newdata = own)$.fitted, unname(predict(chosen, own)))
  expect_true(all(c("dispersion", "converged", "n.models", "groups") %in% names(glance(chosen))))
  again <- dp_load(dp_save(chosen, tempfile(fileext = ".json")))
  expect_identical(predict(again, own), predict(chosen, own))
  expect_identical(again$level, chosen$level)
  unfitted <- choose(number ~ age + z, family = poisson(), offset = log(years), fit = NULL)
  again <- dp_load(dp_save(unfitted, tempfile(fileext = ".json")))
  expect_match(deparse1(again$formula), "offset(log(years))", fixed = TRUE)
  expect_match(deparse1(again$selected_formula), "offset(log(years))", fixed = TRUE)
  expect_identical(again$selected, unfitted$selected)
  inside <- choose(number ~ age + z + offset(log(years)), family = "poisson", fit = "same")
  expect_match(deparse1(formula(inside)), "offset(log(years))", fixed = TRUE)
  expect_error(coef(choose(any ~ age + z, family = binomial, fit = NULL)), "dp_glm(any ~", fixed = TRUE,
               class = "dpreg_not_released")
  expect_error(choose(number ~ age, offset = log(years)), "offset needs a family", class = "dpreg_argument_error")
  expect_error(choose(number ~ age, family = Gamma), "'Gamma'", class = "dpreg_argument_error")
  expect_error(choose(number ~ age, family = poisson, method = "pcls"), "linear models", class = "dpreg_argument_error")
})

test_that("what is summed or kept by row is refused with the reason", {
  for (f in list(residuals, fitted, deviance, logLik, AIC, BIC, hatvalues, model.frame, extractAIC, step, influence,
                 cooks.distance, rstandard, rstudent, dfbeta, case.names, simulate, model.matrix,
                 function(x) add1(x, ~ . + years), function(x) anova(x, x))) {
    expect_error(f(counts), class = "dpreg_not_released")
  }
  expect_error(deviance(yes), "no look releases it")
  expect_error(simulate(yes), "rbinom")
  expect_error(anova(yes, test = "F"), "Wald", class = "dpreg_argument_error")
  expect_identical(anova(yes, test = "Chisq"), anova(yes))
  expect_error(summary(dp_ols(number ~ age, rows, 1, schema = facts), ratios = TRUE), class = "dpreg_argument_error")
})

test_that("printing shows the family, ratios on request, and no interval that is not earned", {
  expect_output(print(yes), "logistic regression")
  told <- paste(capture.output(print(summary(counts, ratios = TRUE, full = TRUE))), collapse = "\n")
  for (text in c("Poisson regression", "Link: log", "rate ratio", "Offset: log(years)", "Scale: 1", "to fit",
                 "limit of score", "z value")) expect_match(told, text, fixed = TRUE)
  expect_equal(unname(summary(yes, ratios = TRUE)$ratios), unname(exp(cbind(coef(yes), confint(yes)))))
  hidden <- which(few$marks[names(coef(few))] == "too few rows to say")
  expect_true(length(hidden) > 0)
  expect_true(all(is.na(confint(few)[hidden, ])))
  numbers <- setdiff(names(tidy(few, conf.int = TRUE)), c("term", "estimate", "mark"))
  expect_true(all(is.na(tidy(few, conf.int = TRUE)[hidden, numbers])))
  expect_output(print(summary(few, full = TRUE)), "too few rows to say")
  expect_true(all(is.na(predict(few, rows[1:2, ], interval = "confidence")[, -1])))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  for (x in list(yes, few)) expect_identical(plot(x), x)
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(yes), "Coefficients and 95% intervals", fixed = TRUE)
  skip_if_not_installed("ggplot2")
  for (x in list(yes, few)) expect_no_warning(ggplot2::ggplot_build(ggplot2::autoplot(x)))
})

test_that("broom's verbs are as for a glm", {
  table <- tidy(yes, conf.int = TRUE, exponentiate = TRUE)
  expect_named(table, c("term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high", "mark"))
  expect_equal(table$estimate, unname(exp(coef(yes))))
  expect_equal(table$conf.low, unname(exp(confint(yes)[, 1])))
  expect_equal(table$std.error, unname(sqrt(diag(vcov(yes)))))
  expect_named(glance(counts), c("dispersion", "converged", "df", "df.residual", "nobs", "eps", "delta", "looks"))
  own <- data.frame(rows[1:4, ], row.names = NULL)
  plain <- augment(yes, newdata = own, se_fit = TRUE)
  expect_named(plain, c(names(rows), ".fitted", ".se.fit"))
  expect_identical(plain$.fitted, unname(predict(yes, own)))
  for (type in c("deviance", "pearson", "response")) {
    ours <- augment(yes, newdata = own, type.predict = "response", type.residuals = type)
    near(ours$.resid, residuals(exact_yes, type)[1:4], 0.1)
  }
  expect_named(augment(yes, newdata = data.frame(age = 30, g = "u"), type.residuals = "pearson"), c("age", "g", ".fitted"))
  expect_error(augment(yes), class = "dpreg_not_released")
  expect_named(augment(counts, newdata = own, interval = "confidence"), c(names(rows), ".fitted", ".lower", ".upper"))
})

test_that("emmeans, parameters, insight and car know the link", {
  skip_if_not_installed("emmeans")
  ours <- as.data.frame(emmeans::emmeans(yes, "g", type = "response"))
  theirs <- as.data.frame(emmeans::emmeans(exact_yes, "g", type = "response", at = list(age = 50)))
  near(ours$prob, theirs$prob)
  odds <- as.data.frame(emmeans::contrast(emmeans::emmeans(yes, "g"), "pairwise", type = "response"))
  expect_equal(odds$odds.ratio[1], exp(-coef(yes)[["gv"]]))
  means <- as.data.frame(emmeans::emmeans(counts, "g", type = "response", at = list(age = 40, years = 2)))
  at <- data.frame(age = 40, years = 2, g = c("u", "v", "w"))
  expect_equal(means$rate, unname(predict(counts, at, type = "response")))
  outside <- fit_to(number ~ age + g, poisson(), offset = log(years))
  means <- as.data.frame(emmeans::emmeans(outside, "g", type = "response", at = list(age = 40, years = 2)))
  expect_equal(means$rate, unname(predict(outside, at, type = "response")))
  skip_if_not_installed("car")
  expect_identical(car::Anova(yes), anova(yes))
  expect_equal(car::linearHypothesis(yes, "age = 0")[2, "Chisq"], anova(yes)["age", "Chisq"])
  skip_if_not_installed("parameters")
  table <- parameters::model_parameters(yes, exponentiate = TRUE)
  expect_equal(table$Coefficient, unname(exp(coef(yes))))
  expect_equal(parameters::p_value(yes)$p, tidy(yes)$p.value)
  skip_if_not_installed("insight")
  expect_true(insight::model_info(yes)$is_logit)
  expect_identical(insight::find_offset(counts), "years")
  expect_equal(insight::link_inverse(counts)(1), exp(1))
})

test_that("a saved model comes back whole, and update() calls again", {
  file <- tempfile(fileext = ".json")
  fits <- list(yes, counts, few, fit_to(word ~ log(age)), fit_to(number > 2 ~ age),
               fit_to(number ~ g, QuasiPoisson(exposure = years)))
  for (fit in fits) {
    again <- dp_load(dp_save(fit, file))
    expect_identical(class(again), class(fit))
    expect_identical(coef(again), coef(fit))
    expect_identical(predict(again, rows[1:9, ], type = "response"), predict(fit, rows[1:9, ], type = "response"))
    same <- c("response", "family", "link", "dispersion", "converged", "success", "looks", "vcov", "budget", "python")
    expect_identical(again[same], fit[same])
  }
  expect_identical(deparse1(formula(dp_load(dp_save(counts, file)))), deparse1(formula(counts)))
  more <- suppressMessages(update(counts, . ~ . - age:g, eps = 100))
  expect_identical(deparse1(formula(more)), "number ~ age + g + offset(log(years))")
  page <- tempfile(fileext = ".html")
  dp_report(yes, page)
  expect_match(paste(readLines(page, warn = FALSE), collapse = "\n"), "<html", fixed = TRUE)
  bytes <- serialize(yes, NULL)
  expect_lt(length(bytes), 3e5)
})

test_that("a ledger is charged, persons are counted, and seeds are stamped", {
  ledger <- dp_ledger(tempfile(fileext = ".db"), eps = 3, delta = 1e-5)
  charged <- function() {
    dp_glm(any ~ age, rows, eps = 2, delta = 1e-6, schema = facts, budget = ledger)
  }
  expect_s3_class(charged(), "dp_glm")
  expect_error(charged(), class = "dpreg_budget_error")
  owned <- transform(rows, owner = seq_len(n) %/% 2)
  of_persons <- dp_glm(any ~ age, owned, eps = 20, delta = 1e-6, schema = facts, person = "owner", contributions = 2)
  expect_true(is.null(of_persons$nobs))
  expect_error(dp_glm(any ~ age, owned, eps = 1, schema = facts, person = "owner", offset = owner), "person",
               class = "dpreg_data_error")
  seeded <- fit_to(any ~ age, unsafe_seed = 3)
  for (view in list(coef(seeded), confint(seeded), tidy(seeded), predict(seeded, rows[1:2, ], type = "response"),
                    augment(seeded, newdata = rows[1:2, ]))) expect_identical(attr(view, "privacy"), stamp)
  expect_output(print(seeded), stamp, fixed = TRUE)
})

test_that("a file's rows can be fitted", {
  need_python("arrow")
  file <- tempfile(fileext = ".csv")
  write.csv(rows[c("number", "age", "years")], file, row.names = FALSE)
  fit <- dp_glm(number ~ age, file, eps = 500, delta = 1e-6, family = "poisson", offset = log(years),
                schema = facts[c("number", "age", "years")])
  expect_lt(abs(coef(fit)[["age"]] - 0.03), 0.01)
})
