test_verbs()

shown <- function(x) python_call("show", data = structure(list(x = x), class = "data.frame",
                                                          row.names = seq_along(x)))$x

test_that("every type goes over with its missing values", {
  one <- function(x, kind, cells) {
    told <- shown(x)
    expect_equal(told$kind, kind)
    expect_equal(as.logical(told$missing), is.na(cells))
    expect_equal(told$cells, ifelse(is.na(cells), "", cells))
  }
  one(c(TRUE, FALSE, NA), "bool", c("True", "False", NA))
  one(c(1L, -5L, NA), "numeric", c("1.0", "-5.0", NA))
  one(c(1.5, NA, NaN, Inf, -Inf, -2147483648), "numeric",
      c("1.5", NA, NA, "inf", "-inf", "-2147483648.0"))
  one(c("a", "NA", NA, "", "\u00e4", "01"), "string", c("'a'", "'NA'", NA, "''", "'\u00e4'", "'01'"))
  one(factor(c("b", "a", NA), levels = c("b", "a", "c")), "category", c("'b'", "'a'", NA))
  one(addNA(factor(c("b", NA))), "category", c("'b'", NA))
  one(ordered(c("lo", NA, "hi"), levels = c("lo", "hi")), "category", c("'lo'", NA, "'hi'"))
  one(I(c(1, NA)), "numeric", c("1.0", NA))
  skip_if_not_installed("bit64")
  # Whole, so that ids that differ in the last digit stay apart.
  one(bit64::as.integer64(c("9007199254740993", NA, "-3")), "numeric", c("9007199254740993", NA, "-3"))
})

test_that("text in another encoding arrives as UTF-8", {
  latin <- iconv("gr\u00f6\u00dfe", "UTF-8", "latin1")
  expect_equal(shown(latin)$cells, "'gr\u00f6\u00dfe'")
  expect_equal(shown(factor(latin))$cells, "'gr\u00f6\u00dfe'")
})

test_that("levels keep their order", {
  expect_equal(shown(factor("b", levels = c("z", "b", "a")))$categories, c("z", "b", "a"))
})

test_that("other types are refused by the name of the column", {
  refused <- function(x, why) {
    cond <- expect_error(plain_column(x, "x"), class = "dpreg_data_error")
    expect_match(conditionMessage(cond), "'x'", fixed = TRUE)
    expect_match(conditionMessage(cond), why)
  }
  refused(complex(real = 1, imaginary = NA), "complex")
  refused(list(1, NA), "list")
  refused(as.Date(NA), "dates or times")
  refused(Sys.time(), "dates or times")
  refused(as.POSIXlt(Sys.time()), "dates or times")
  refused(as.difftime(1, units = "days"), 'units = "days"')
  refused(structure(1, class = c("hms", "difftime"), units = "secs"), "seconds")
  refused(as.raw(1), "raw")
  refused(matrix(1, 1, 2), "matrix")
  refused(data.frame(a = 1), "data frame")
  refused(structure(1, class = "haven_labelled"), "haven_labelled")
})

test_that("tibbles and data.tables are data frames; other things are not", {
  frame <- data.frame(x = c(1, NA), g = c("a", NA))
  plain <- python_call("show", data = frame)
  skip_if_not_installed("tibble")
  expect_equal(python_call("show", data = tibble::as_tibble(frame)), plain)
  skip_if_not_installed("data.table")
  expect_equal(python_call("show", data = data.table::as.data.table(frame)), plain)
  expect_error(dp_select(y ~ x, list(y = 1, x = 2), eps = 1), class = "dpreg_argument_error")
  expect_error(dp_select(y ~ x, matrix(1), eps = 1), class = "dpreg_argument_error")
})

test_that("absent and repeated columns are named", {
  frame <- data.frame(x = 1, x = 2, check.names = FALSE)
  expect_error(table_columns(frame, "x"), "several columns named 'x'", class = "dpreg_data_error")
  expect_error(table_columns(frame, "y"), "'y'", class = "dpreg_data_error")
})

test_that("a table without rows and one without columns go over", {
  expect_equal(shown(numeric())$kind, "numeric")
  expect_equal(shown(character())$kind, "string")
  expect_equal(shown(factor(character()))$kind, "category")
  expect_length(python_call("show", data = data.frame(row.names = 1:3)), 0)
})

test_that("R's own vectors are not touched", {
  x <- c(1L, NA)
  y <- c(TRUE, NA)
  shown(x)
  shown(y)
  expect_identical(x, c(1L, NA))
  expect_identical(y, c(TRUE, NA))
})

test_that("a million rows of 15 columns go over in under a second", {
  n <- 1e6
  some <- function(values) rep_len(values, n)
  frame <- data.frame(
    a = some(c(1.5, NA)), b = some(2:9), c = some(c(TRUE, NA)), d = some(c("u", "v", NA)),
    e = factor(some(c("u", "v", NA))), f = some(letters), g = some(0.5), h = some(1:3),
    i = some(c("yes", "no")), j = some(4), k = some(5), l = some(1:2), m = some(FALSE),
    n = some(7), o = ordered(some(c("lo", "hi")))
  )
  door <- open_door()
  send <- function() {
    request <- list(verb = "echo", arguments = list(), columns = table_columns(frame, names(frame)),
                    rows = n, source = NULL, debug = FALSE, heard = 0L)
    door(request)
  }
  expect_true(send()$ok)
  used <- min(replicate(3, sum(system.time(send())[c("user.self", "sys.self")])))
  expect_lt(used, 1)
})
