need_python()

test_that("a study is exact, in R's names, and says that it is the curator's", {
  study <- selection_study(mpg ~ log(wt) + hp, mtcars, car_schema, eps = c(1, 1e6),
                           method = PCLS(penalty = c(0, 1)))
  expect_identical(nrow(study$settings), 4L)
  expect_identical(rownames(study$frequencies), c("log(wt)", "hp"))
  expect_equal(colSums(study$probabilities), rep(1, 4))
  expect_equal(unname(t(study$models) %*% study$probabilities), unname(study$frequencies))
  expect_identical(study$agreement$bic.choice[1], "(Intercept) + log(wt) + hp")
  expect_output(value <- withVisible(print(study)), "curator only: not private")
  expect_false(value$visible)
})

houses <- data.frame(price = c(1, 2, 3, 4) * 100, size = c(1, 2, 3, 4), county = c("Ala", "Kern", "Cc", "Ala"),
                     pool = c(TRUE, FALSE, TRUE, TRUE))
house_schema <- list(price = c(0, 1000), size = c(0, 5), county = c("Ala", "Cc", "Kern"), pool = logical())

test_that("columns have the names that coef() gives them", {
  study <- selection_study(price ~ county + size + pool, houses, house_schema, units = "column")
  many <- houses[rep(1:4, 50), ]
  fit <- dp_ols(price ~ county + size + pool, many, eps = 1e6, schema = house_schema)
  expect_identical(rownames(study$frequencies), setdiff(names(coef(fit)), "(Intercept)"))
  expect_identical(colnames(study$models), rownames(study$frequencies))
  expect_match(rownames(study$models), "^[(]Intercept[)]")
  by_term <- selection_study(price ~ county + size + pool, houses, house_schema)
  expect_identical(rownames(by_term$frequencies), c("county", "size", "pool"))
  expect_equal(unname(t(study$models) %*% study$probabilities), unname(study$frequencies))
})

test_that("a study is drawn, tabled and knitted, always with its warning", {
  study <- selection_study(mpg ~ wt + hp + log(qsec), mtcars, c(car_schema, list(qsec = c(10, 25))),
                           eps = c(1, 10),
                           method = PCLS(penalty = c(0, 0.5, 1), radius = c(0.5, 1),
                                         mechanism = c("permute-and-flip", "exponential")))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  before <- graphics::par("mar", "oma", "mfrow")
  for (which in c("agreement", "rsquared", "frequencies", "models")) {
    expect_identical(plot(study, which), study)
    expect_equal(graphics::par("mar", "oma", "mfrow"), before)
  }
  expect_identical(plot(study, reference = "bic"), study)
  over_eps <- selection_study(mpg ~ wt + hp, mtcars, car_schema, eps = c(0.1, 1, 10, 100))
  expect_identical(plot(over_eps), over_eps)
  expect_error(plot(study, "models", setting = 99), "1 to 24", class = "dpreg_argument_error")
  table <- as.data.frame(study)
  expect_identical(nrow(table), 24L)
  expect_identical(attr(table, "privacy"), study$privacy)
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(study), study$privacy, fixed = TRUE)
})

test_that("a simulation study has Python's numbers", {
  study <- simulation_study(c(1, 1, 0), c(200, 1000), radius = c(1, 2.5), eps = c(1, 5), datasets = 10,
                            penalty = c(0.05, 0.1, 0.2), bound = list("observed", 6),
                            mechanism = c("laplace", "permute-and-flip"), false_inclusions = 0.1)
  expect_identical(nrow(study$proportions), 2L * 2L * 2L * 2L * 2L * 4L)
  expect_identical(sum(is.na(study$proportions$penalty.n)), 32L)
  expect_identical(unique(study$proportions$bound), c("observed", "6"))
  best <- study$best
  one <- with(study$proportions, study$proportions[n == 200 & bound == "6" & radius == 1 & eps == 5 &
                                                     mechanism == "laplace" & !is.na(penalty.n), ])
  same <- with(best, best[n == 200 & bound == "6" & radius == 1 & eps == 5 & mechanism == "laplace", ])
  expect_equal(same$right, max(one$right))
  expect_identical(study$n_models, 7L)
  expect_output(value <- withVisible(print(study)), "Simulation study: beta = (1, 1, 0)", fixed = TRUE)
  expect_false(value$visible)
  whole <- summary(study)
  expect_identical(ncol(whole$table), 2L)
  expect_identical(nrow(whole$auto), 32L)
  expect_output(value <- withVisible(print(whole)), "paid for by no budget")
  expect_false(value$visible)
  expect_identical(as.data.frame(study), study$proportions)
  expect_identical(as.data.frame(study, which = "best"), study$best)
  expect_match(attr(study$best, "privacy"), "simulated rows")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(study), study)
  expect_identical(plot(study, n = 200, bound = "6", mechanism = "permute-and-flip"), study)
  expect_error(plot(study, n = 7), "not studied", class = "dpreg_argument_error")
  small <- simulation_study(1, 100, radius = 1, eps = 1, datasets = 2, penalty = 0.1, bound = 3, empty = TRUE)
  expect_identical(small$n_models, 2L)
  expect_true(is.numeric(small$proportions$bound))
  expect_null(small$leak)
  expect_identical(rownames(summary(small)$table), "laplace")
  expect_error(simulation_study(numeric(), 100), class = "dpreg_argument_error")
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(study), "simulated rows", fixed = TRUE)
})

test_that("a plan takes the names that coef() gives", {
  plan <- function(effects, ...) {
    dp_plan(effects, sigma = 80, n = 5000, formula = price ~ size + county + pool, schema = house_schema, ...)
  }
  whole <- plan(c(countyKern = 70, poolTRUE = 100), sd = c(countyKern = 0.3))
  expect_named(whole$each, c("county", "pool"))
  expect_output(print(whole), "county")
  expect_identical(whole$each, plan(c("county[T.Kern]" = 70, pool = 100), sd = c("county[T.Kern]" = 0.3))$each)
  cond <- expect_error(plan(c(county = 70)), class = "dpreg_argument_error")
  cond <- expect_error(plan(c(countyNapa = 70)), class = "dpreg_argument_error")
  expect_match(conditionMessage(cond), "'countyKern'", fixed = TRUE)
  expect_error(plan(70), "names", class = "dpreg_argument_error")
  expect_output(print(dp_plan(c("log(size)" = 70), sigma = 80, n = 5000, formula = price ~ log(size) + county,
                              schema = c(house_schema["price"], list(size = c(1, 5), county = c("a", "b"))))),
                "\nlog[(]size[)] ")
  all <- dp_plan(c(size = 30), sigma = 80, n = 5000, formula = price ~ ., schema = house_schema)
  expect_named(all$each, "size")
  file <- tempfile(fileext = ".json")
  writeLines('{"columns": {"price": [0, 1000], "size": [0, 5]}}', file)
  expect_named(dp_plan(c(size = 30), sigma = 80, n = 5000, formula = price ~ ., schema = file)$each, "size")
})

test_that("a plan needs no data", {
  plan <- dp_plan(c("log(wt)" = -17), sigma = 3, n = 5000, formula = mpg ~ log(wt) + hp,
                  schema = car_schema)
  expect_identical(plan$solved, "eps")
  expect_named(plan$each, "log(wt)")
  expect_gte(plan$found, 0.79)
  expect_output(print(plan), "Plan of a private selection")
  bare <- dp_plan(c(0.3, 0.2), sigma = 0.2, eps = 1, candidates = 5)
  expect_identical(bare$solved, "n")
  expect_error(dp_plan(0.1, sigma = -1, n = 10), class = "dpreg_argument_error")
})

test_that("regressions and models of families are planned by R's names", {
  need_python()
  schema <- list(y = c(0, 10), x = c(0, 1), g = c("a", "b", "c"))
  plan <- dp_plan(c(x = 1, gb = 0.5), sigma = 2, n = 5000, formula = y ~ x + g, schema = schema, eps = 1, of = "ols",
                  delta = 1e-6)
  expect_s3_class(plan, "dp_plan")
  expect_identical(rownames(plan$coefficients), c("x", "gb"))
  expect_identical(names(plan$each), c("x", "gb"))
  expect_equal(plan$coefficients$std.err^2, with(plan$coefficients, sampling.error^2 + privacy.noise^2))
  expect_true(plan$overlap > 0.5 && plan$overlap < 1)
  expect_output(print(plan), "gb ")
  like <- data.frame(y = runif(200, 0, 10), x = runif(200) / 10, g = c("a", "b", "c", "a"))
  narrow <- dp_plan(c(x = 1), sigma = 2, n = 5000, formula = y ~ x + g, schema = schema, eps = 1, like = like)
  wide <- dp_plan(c(x = 1), sigma = 2, n = 5000, formula = y ~ x + g, schema = schema, eps = 1)
  expect_lt(narrow$found, wide$found)
  expect_error(dp_plan(c(x = 1), sigma = 2, n = 5000, eps = 1, like = like), "formula", class = "dpreg_argument_error")
  odds <- dp_plan_glm(y > 5 ~ log(x + 1) + g, schema, mean = 0.3, n = 5000, eps = 1, delta = 1e-6,
                      sd = c(`log(x + 1)` = 0.1))
  expect_identical(rownames(odds$coefficients), c("(Intercept)", "gb", "gc", "log(x + 1)"))
  expect_true(odds$enough)
  named <- dp_plan(formula = y > 5 ~ log(x + 1) + g, schema = schema, mean = 0.3, n = 5000, eps = 1, delta = 1e-6,
                   sd = c(`log(x + 1)` = 0.1), family = binomial(), of = "glm")
  expect_identical(named[names(named) != "call"], odds[names(odds) != "call"])
  chosen <- dp_plan(c(gb = 0.8), formula = y > 5 ~ x + g, schema = schema, mean = 0.3, n = 20000, eps = 1, delta = 1e-6,
                    family = binomial)
  expect_named(chosen$each, "g")
  expect_identical(rownames(chosen$coefficients), c("(Intercept)", "gb", "gc"))
  expect_true(chosen$enough)
  expect_gt(chosen$found, 0.5)
  expect_error(dp_plan(n = 10, eps = 1), "effects", class = "dpreg_argument_error")
  least <- dp_plan_glm(y ~ x + g, schema, mean = 2, n = 5000, delta = 1e-6, family = poisson)
  expect_identical(least$solved, "eps")
  few <- dp_plan_glm(y ~ x + g, schema, mean = 2, n = 50, eps = 0.1, family = "poisson")
  expect_false(few$enough)
  counts <- function(formula, ...) {
    dp_plan_glm(formula, schema, n = 20000, eps = 2, delta = 1e-6, family = "poisson", ...)$coefficients
  }
  rated <- counts(y ~ g, mean = 2, offset = log(x + 1))
  expect_equal(counts(y ~ g + offset(log(x + 1)), mean = 2), rated)
  expect_false(isTRUE(all.equal(counts(y ~ g, mean = 2), rated)))
  expect_identical(dim(counts(y ~ x + g, like = like)), c(4L, ncol(rated) - 1L)) # given rows have no range
})

test_that("selections by looks are studied, for the curator alone", {
  need_python()
  set.seed(6)
  n <- 4000
  rows <- data.frame(x = runif(n), z = runif(n), g = sample(c("a", "b", "c"), n, TRUE))
  rows$y <- with(rows, 3 + 2 * x + (g == "b") + rnorm(n))
  schema <- list(y = c(0, 10), x = c(0, 1), z = c(0, 1), g = c("a", "b", "c"))
  study <- selection_study(y ~ z + g + x, rows, schema, eps = c(0.5, 5), delta = c(0, 1e-6), method = "adaptive", draws = 4)
  expect_s3_class(study, "adaptive_study")
  expect_identical(rownames(study$reported), c("z", "g", "x"))
  expect_identical(study$bic, c("g", "x"))
  expect_identical(ncol(study$reported), nrow(study$settings))
  expect_true(all(study$reported["x", ] == 1))
  expect_identical(study$outcomes$found[study$settings$eps == 5][1], 2)
  expect_output(print(study), study$privacy, fixed = TRUE)
  expect_identical(attr(as.data.frame(study), "privacy"), study$privacy)
  skip_if_not_installed("knitr")
  expect_match(knitr::knit_print(study), study$privacy, fixed = TRUE)
})
