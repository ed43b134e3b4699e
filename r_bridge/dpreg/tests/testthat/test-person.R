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
    expect_true(is.null(told$nobs))
    expect_match(told$privacy, "'id', (of which .* 2 rows|however many)")
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

test_that("another row has no say in who a row's person is, whatever it makes of the ids", {
  test_verbs()
  skip_if_not_installed("bit64")
  who <- function(ids) python_call("persons", data = data.frame(id = ids), columns = "id")
  read <- function(ids) {
    text <- tempfile()
    write.csv(data.frame(id = ids), text, row.names = FALSE)
    read.csv(text)$id
  }
  # 2^53 + 1 and the like are doubles here: what R has of them.
  ids <- c(0, 17, -2, 1e5, 123456789, 2^24 + 1, 1e15 + 5, 1e15 + 15, 2^53, 2^53 + 2, 2^60, 0.1 + 0.2, 1 / 3)
  set.seed(3)
  ids <- c(ids, floor(runif(200) * 2^53), floor(runif(200) * 2^62))
  expected <- who(ids)
  expect_false(anyNA(expected) || anyDuplicated(expected[1:7]) > 0)
  for (other in list(NA, 3, 0.5, "word", "017", TRUE)) {
    mixed <- c(ids, other)
    for (form in list(mixed, as.character(mixed), factor(mixed), ordered(mixed), read(mixed), read(factor(mixed)), format(mixed, digits = 15))) {
      expect_identical(who(form)[seq_along(ids)], expected)
    }
  }
  whole <- ids[ids == floor(ids) & abs(ids) < 2^53]
  long <- bit64::as.integer64(whole)
  expect_identical(who(long), who(whole))
  expect_identical(who(as.character(long)), who(whole))
  expect_identical(who(c(TRUE, FALSE, NA)), who(c("TRUE", "F", NA)))
  expect_identical(who(c(TRUE, FALSE, NA)), who(c(1L, 0L, NA)))
  expect_identical(who(c("0x11", " 17 ", "17\t")), who(c(17, 17, 17)))
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
