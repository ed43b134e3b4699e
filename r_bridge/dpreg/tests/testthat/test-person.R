need_python()

panel <- local({
  set.seed(8)
  n <- 900
  id <- pmin(rgeom(n, 0.02) + 1, 200)
  uniform <- function() round(runif(n), 3)
  data.frame(id = id, x = uniform(), z = uniform(), g = sample(c("u", "v"), n, TRUE), y = uniform())
})
bounds <- list(y = c(0, 2), x = c(0, 1), z = c(0, 1), g = c("u", "v"))

test_that("every call takes the column that says whose row it is", {
  calls <- list(
    function(...) dp_ols(y ~ x + g, panel, eps = 10, schema = bounds, ...),
    function(...) dp_select(y ~ x + z, panel, eps = 10, schema = bounds, ...),
    function(...) dp_mean(c("x", "y"), panel, eps = 10, schema = bounds, ...),
    function(...) dp_mean(panel[c("id", "x")], eps = 10, schema = bounds["x"], ...),
    function(...) dp_quantile("y", 0.5, panel, eps = 10, schema = bounds, ...),
    function(...) dp_histogram("g", panel, eps = 10, schema = bounds, ...),
    function(...) dp_suffstats("y", panel, eps = 10, schema = bounds, ...),
    function(...) {
      sample_aggregate(function(block) mean(block$y), panel, eps = 10, bounds = c(0, 2), schema = bounds, ...)
    }
  )
  for (call in calls) {
    told <- call(person = "id", contributions = 2)
    expect_true(is.na(nobs(told)))
    expect_match(told$privacy, "'id', of which .* 2 rows")
    expect_false("id" %in% names(coef(told)))
    expect_error(call(person = "who"), "no column 'who'", class = "dpreg_data_error")
    expect_error(call(person = 7), class = "dpreg_argument_error")
  }
})

test_that("the column is none of the model's", {
  expect_identical(names(coef(dp_ols(y ~ ., panel, eps = 100, schema = bounds, person = "id"))),
                   c("(Intercept)", "x", "z", "gv"))
  expect_error(dp_ols(y ~ id, panel, eps = 1, schema = bounds, person = "id"), "says whose row",
               class = "dpreg_data_error")
  expect_error(dp_mean("x", panel, eps = 1, schema = c(bounds, list(id = c(0, 9))), person = "id"), "says whose row",
               class = "dpreg_data_error")
  expect_error(dp_mean("x", transform(panel, id = Sys.Date()), eps = 1, schema = bounds, person = "id"), "'id'",
               class = "dpreg_data_error")
  expect_error(sample_aggregate(median, panel$x, eps = 1, bounds = c(0, 1), person = "id"), "data frame",
               class = "dpreg_argument_error")
})

test_that("an id is one whatever holds it", {
  skip_if_not_installed("bit64")
  same <- function(table) {
    dp_mean("x", table, eps = 1, schema = bounds, person = "id", unsafe_seed = 3)$estimates
  }
  expected <- same(panel)
  expect_identical(same(transform(panel, id = as.integer(id))), expected)
  expect_identical(same(transform(panel, id = as.character(id))), expected)
  expect_identical(same(transform(panel, id = factor(id))), expected)
  wide <- panel
  wide$id <- bit64::as.integer64(panel$id)
  expect_identical(same(wide), expected)
  # Ids that differ in the last digit alone.
  long <- panel
  long$id <- bit64::as.integer64("9007199254740992") + bit64::as.integer64(panel$id)
  text <- transform(panel, id = as.character(long$id))
  expect_identical(same(long), same(text))
})

test_that("blocks hold the kept rows of whole persons, and not the column", {
  seen <- list()
  told <- sample_aggregate(function(block) {
    seen[[length(seen) + 1]] <<- block
    mean(block$y)
  }, cbind(panel, mark = panel$id), eps = 10, bounds = c(0, 2), person = "id", contributions = 3, blocks = 20,
  correct_bias = FALSE, schema = c(bounds, list(mark = c(0, 200))))
  expect_named(seen[[1]], c("y", "x", "z", "g", "mark"))
  owners <- unlist(lapply(seen, function(block) unique(block$mark)))
  expect_identical(anyDuplicated(owners), 0L)
  expect_setequal(owners, unique(panel$id))
  counts <- unlist(lapply(seen, function(block) table(block$mark)))
  expect_identical(max(counts), 3L)
  expect_identical(sum(counts), sum(pmin(table(panel$id), 3L)))
  expect_identical(told$record$call, "sample_aggregate")
})

test_that("files have persons, too", {
  need_python("arrow")
  file <- tempfile(fileext = ".csv")
  write.csv(panel, file, row.names = FALSE)
  same <- function(data) coef(dp_ols(y ~ x + g, data, eps = 5, schema = bounds, person = "id", unsafe_seed = 2))
  expect_equal(same(file), same(panel), tolerance = 1e-12)
  expect_length(same(file), 3)
})
