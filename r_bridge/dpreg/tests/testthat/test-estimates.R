need_python()

set.seed(3)
people <- data.frame(age = c(round(runif(999, 20, 60)), NA), income = rexp(1000, 1 / 30),
                     sex = sample(c("f", "m"), 1000, TRUE), member = rbinom(1000, 1, 0.3))
schema <- list(age = c(0, 120), income = c(0, 300), sex = c("f", "m"), member = c(0, 1))

test_that("means are near the rows' own at a large eps", {
  both <- dp_mean(c("age", "income"), people, eps = 1e5, schema = schema)
  expect_named(coef(both), c("age", "income"))
  expect_equal(coef(both)[["age"]], with(people[-1000, ], mean(age)), tolerance = 1e-3)
  vector <- dp_mean(people$income, eps = 1e5, bounds = c(0, 300))
  expect_equal(unname(coef(vector)), mean(people$income), tolerance = 1e-3)
  expect_equal(vector$estimates$std.error, sd(people$income) / sqrt(1000), tolerance = 0.05)
  limits <- confint(vector, level = 0.9)
  expect_identical(dimnames(limits), list("x", c("5 %", "95 %")))
  grouped <- dp_mean("income", people, eps = 1e5, schema = schema, by = "sex")
  expect_named(coef(grouped), c("f:income", "m:income"))
  expect_equal(unname(coef(grouped)), as.vector(tapply(people$income, people$sex, mean)),
               tolerance = 1e-3)
  expect_named(tidy(grouped, conf.int = TRUE),
               c("sex", "term", "estimate", "std.error", "statistic", "p.value", "conf.low", "conf.high"))
})

test_that("quantiles, histograms and families answer", {
  median <- dp_quantile("age", c(0.5, 0.9), people, eps = 1000, schema = schema)
  expect_lt(abs(coef(median)[[1]] - median(people$age, na.rm = TRUE)), 1)
  limits <- confint(median)
  expect_true(all(limits[, 1] <= coef(median) & coef(median) <= limits[, 2]))
  expect_true(diff(confint(median, level = 0.5)[1, ]) < diff(limits[1, ]))
  bars <- dp_histogram("sex", people, eps = 1000, schema = schema)
  expect_named(coef(bars), c("f", "m"))
  expect_equal(sum(bars$estimates$probabilities), 1)
  expect_named(dp_histogram("age", people, eps = 10, schema = schema, bins = 4)$estimates,
               c("term", "estimate", "std.error", "se_sampling", "se_privacy", "counts", "probabilities"))
  coin <- dp_suffstats("member", people, family = "bernoulli", eps = 1e5, schema = schema)
  expect_equal(unname(coef(coin)), mean(people$member), tolerance = 1e-3)
})

test_that("estimates print, are stamped, saved and refused like other results", {
  seeded <- dp_mean("income", people, eps = 1, schema = schema, unsafe_seed = 1)
  expect_output(value <- withVisible(print(seeded)), stamp, fixed = TRUE)
  expect_false(value$visible)
  expect_identical(attr(coef(seeded), "privacy"), stamp)
  expect_identical(seeded$nobs, 1000L)
  expect_identical(attr(as.data.frame(seeded), "privacy"), stamp)
  expect_error(dp_mean("sex", people, eps = 1, schema = schema["age"]), class = "dpreg_schema_error")
  expect_error(dp_mean("age", people, eps = 0, schema = schema), class = "dpreg_argument_error")
  expect_error(dp_mean("nothere", people, eps = 1), class = "dpreg_data_error")
})

test_that("variances are those that were released, and covariances none", {
  one <- dp_mean("income", people, eps = 10, schema = schema)
  expect_equal(vcov(one), matrix(one$estimates$std.error^2, dimnames = list("income", "income")))
  both <- dp_mean(c("age", "income"), people, eps = 10, schema = schema)
  expect_error(vcov(both), "covariances", class = "dpreg_not_released")
})

every_kind <- function() {
  list(
    means = dp_mean(c("age", "income"), people, eps = 10, schema = schema),
    grouped = dp_mean("income", people, eps = 10, schema = schema, by = "sex"),
    quantiles = dp_quantile(c("age", "income"), c(0.25, 0.5), people, eps = 100, schema = schema),
    numeric = dp_histogram("income", people, eps = 10, schema = schema, bins = 8),
    levels = dp_histogram("sex", people, eps = 10, schema = schema),
    outlines = dp_histogram("income", people, eps = 10, schema = schema, bins = 8, by = "sex"),
    side_by_side = dp_histogram("sex", transform(people, m = member == 1), eps = 10,
                                schema = c(schema, list(m = logical())), by = "m"),
    family = dp_suffstats("income", people, eps = 10, schema = schema),
    aggregate = sample_aggregate(median, people$income, eps = 10, bounds = c(0, 300)),
    seeded = dp_mean("income", people, eps = 10, schema = schema, unsafe_seed = 1)
  )
}

test_that("summaries tell all, and print without Python's help", {
  for (result in every_kind()) {
    expect_output(print(summary(result)), "Noise: the share of the variance")
    whole <- summary(result, level = 0.9, full = TRUE)
    expect_s3_class(whole, "summary.dp_estimate")
    expect_true(all(c("5 %", "95 %", "se_sampling", "se_privacy") %in% names(whole$estimates)))
    expect_output(value <- withVisible(print(whole)), "Privacy: ")
    expect_false(value$visible)
    expect_output(print(result), "Privacy: eps = 10", fixed = TRUE)
  }
  family <- summary(every_kind()$family, full = TRUE)
  expect_identical(dim(family$sufficient), c(1L, 3L))
  expect_output(print(family), "sufficient statistics")
  expect_output(print(summary(every_kind()$seeded)), stamp, fixed = TRUE)
})

test_that("every kind of estimate is plotted, and nothing of the device is left changed", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  before <- graphics::par("mar", "mai", "oma", "mfrow", "las")
  for (result in every_kind()) {
    expect_identical(plot(result), result)
    expect_equal(graphics::par("mar", "mai", "oma", "mfrow", "las"), before)
  }
})

test_that("estimates show themselves in R Markdown", {
  skip_if_not_installed("knitr")
  kinds <- every_kind()
  for (result in kinds) expect_match(knitr::knit_print(result), "Privacy budget", fixed = TRUE)
  expect_match(knitr::knit_print(kinds$seeded), stamp, fixed = TRUE)
})

test_that("a quantile's arguments stand in either order", {
  given <- list(eps = 100, schema = schema, unsafe_seed = 1)
  told <- do.call(dp_quantile, c(list("age", people, 0.5), given))
  for (typed in list(list("age", 0.5, people), list("age", q = 0.5, people), list("age", 0.5, data = people))) {
    other <- do.call(dp_quantile, c(typed, given))
    expect_identical(coef(other), coef(told))
    expect_identical(other$call$q, 0.5)
  }
  kept <- dp_quantile("age", 0.5, people, eps = 100, schema = schema)$call
  expect_identical(as.list(kept)[c("data", "q")], list(data = quote(people), q = 0.5))
  alone <- dp_quantile(people$age, c(0.1, 0.5), eps = 100, bounds = c(0, 100))
  expect_length(coef(alone), 2)
  expect_identical(alone$call$x, quote(people$age))
  expect_error(dp_quantile("age", people, eps = 1), "argument \"q\" is missing")
  expect_error(dp_quantile("age", 0.5, q = 0.5, eps = 1), "data must be a data frame", class = "dpreg_argument_error")
})

test_that("an eps of arithmetic is taken as what it stands for, and a note says so", {
  sum <- dp_mean("age", people, eps = 0.1 + 0.2, schema = schema)
  expect_identical(sum$eps, 0.3)
  expect_match(sum$notes, "0.3 was taken, charged and claimed", all = FALSE, fixed = TRUE)
  blocks <- sample_aggregate(median, people$age, eps = 0.1 + 0.2, bounds = c(0, 100), blocks = 20)
  expect_match(blocks$notes, "0.3 was taken, charged and claimed", all = FALSE, fixed = TRUE)
  expect_no_match(sum$python$json, "00000004")
  expect_no_match(blocks$python$json, "00000004")
})
