# No table may end or hang R: 300 hostile ones, an ordinary fit after each, in this one process.
need_python()

bytes <- function(text) {
  Encoding(text) <- "bytes"
  text
}
n <- 12L
plain <- function() data.frame(y = runif(n), x = runif(n))
ordinary <- function() dp_ols(mpg ~ wt, mtcars, eps = 10, schema = car_schema)

# Some cells or all of them: what is refused does not depend on how many.
some <- function(bad, good) {
  bad <- rep_len(bad, n)
  if (runif(1) < 0.5) bad[sample(n, n - 1)] <- good
  bad
}

setClass("dpregTestNumbers", contains = "numeric", where = globalenv())
setClass("dpregTestSlots", representation(a = "numeric"), where = globalenv())

# A column of each kind, and whether every one of the kind is refused as dpreg_data_error.
columns <- list(
  no_levels = function() structure(rep(1L, n), class = "factor"),
  s4_numbers = function() methods::new("dpregTestNumbers", runif(n)),
  s4_slots = function() methods::new("dpregTestSlots", a = 1),
  labelled = function() structure(runif(n), class = c("haven_labelled", "vctrs_vctr", "double"), labels = c(a = 1)),
  nested = function() data.frame(a = 1:n, b = bytes("\xe9")),
  matrix = function() matrix(runif(2 * n), n),
  list = function() I(rep(list(1, "a", NULL, quote(x)), length.out = n)),
  functions = function() rep(list(sum), n),
  raw = function() as.raw(seq_len(n)),
  nul = function() as.raw(rep(0, n)),
  complex = function() complex(real = runif(n), imaginary = NaN),
  date = function() Sys.Date() + seq_len(n),
  time = function() Sys.time() + seq_len(n),
  lt = function() as.POSIXlt(Sys.time() + seq_len(n)),
  duration = function() as.difftime(seq_len(n), units = "mins"),
  hms = function() structure(as.double(seq_len(n)), class = c("hms", "difftime"), units = "secs"),
  unknown = function() structure(runif(n), class = "unheard-of"),
  bytes_class = function() structure(runif(n), class = bytes("\xe9")),
  short = function() runif(n - 1L),
  environment = function() globalenv(),
  call = function() quote(stop("evaluated")),
  pointer = function() methods::new("externalptr"),
  wrong_length = function() structure(list(1), class = "dpreg_bad_length")
)
# What some cells alone can cause refuses no call.
harmless <- list(
  bytes = function() some(bytes("\xe9"), "a"),
  broken_utf8 = function() some("\xff\xfe", "a"),
  claims_utf8 = function() some(`Encoding<-`("\xe9", "UTF-8"), "a"),
  bytes_level = function() structure(rep(1L, n), levels = bytes("\xe9"), class = "factor"),
  bytes_unused = function() structure(rep(1L, n), levels = c("a", bytes("\xe9")), class = "factor"),
  broken_level = function() structure(rep(1:2, length.out = n), levels = c("a", "\xe9"), class = "factor"),
  code_beyond = function() structure(rep(3L, n), levels = c("a", "b"), class = "factor"),
  level_twice = function() structure(rep(1:2, length.out = n), levels = c("a", "a"), class = "factor"),
  altrep = function() seq_len(n),
  altrep_text = function() as.character(seq_len(n)),
  latin1 = function() some(`Encoding<-`("\xe9", "latin1"), "a"),
  utf8 = function() some("\u65e5\u672c", "a"),
  na_text = function() rep(NA_character_, n),
  nothing = function() rep(NA, n),
  extremes = function() rep(c(Inf, -Inf, NaN, NA, .Machine$double.xmax, 5e-324), length.out = n),
  integers = function() rep(c(NA, .Machine$integer.max, -.Machine$integer.max), length.out = n),
  integer64 = function() structure(runif(n), class = "integer64"),
  level_na = function() addNA(factor(rep(c("a", NA), length.out = n))),
  ordered = function() ordered(rep(c("a", "b"), length.out = n)),
  asis = function() I(runif(n)),
  names = function() stats::setNames(runif(n), rep(bytes("\xe9"), n)),
  attributes = function() structure(runif(n), secret = bytes("\xe9"), tsp = NULL),
  control = function() rep("a\001\033[2J\r\n", n),
  long = function() rep(strrep("a", 1e5), n)
)
length.dpreg_bad_length <- function(x) stop("no length")
registerS3method("length", "dpreg_bad_length", length.dpreg_bad_length)

put <- function(column, name = "h") {
  frame <- unclass(plain())
  frame[[name]] <- column
  structure(frame, names = c("y", "x", name), row.names = .set_row_names(n), class = "data.frame")
}

outcome <- function(code) tryCatch(code, error = identity)
schema <- list(y = c(0, 1), x = c(0, 1))
declarations <- list(NULL, c(0, 1), c("a", "b"), list(levels = 1:3), logical(), bytes("\xe9"),
                     c("a", bytes("\xe9")), list(levels = c("a", "\xff")))
formulas <- list(y ~ x + h, h ~ x, y ~ x * h, y ~ factor(h), y ~ log(h + 2), y ~ .)

test_that("300 hostile tables harm nothing", {
  set.seed(20261122)
  kinds <- c(columns, harmless)
  for (i in seq_len(300)) {
    kind <- names(kinds)[(i - 1L) %% length(kinds) + 1L]
    frame <- put(kinds[[kind]]())
    if (i %% 7 == 0) frame <- put(numeric(n))[0, ]
    declared <- declarations[[if (i <= length(kinds)) 1L + (i %% 2L) else sample(length(declarations), 1)]]
    formula <- formulas[[if (i <= length(kinds)) 1L else sample(length(formulas), 1)]]
    rows <- schema
    rows[["h"]] <- declared
    what <- outcome(suppressMessages(suppressWarnings(if (i %% 5 == 0) {
      dp_mean("h", frame, eps = 1, schema = rows)
    } else if (i %% 11 == 0) {
      dp_mean("x", frame, eps = 1, schema = schema, person = "h")
    } else {
      dp_ols(formula, frame, eps = 1, schema = rows)
    })))
    expect(inherits(what, c("dpreg_error", "dp_result")), paste0(
      "table ", i, " (", kind, "): ", if (inherits(what, "error")) conditionMessage(what) else class(what)[1]
    ))
    expect_false(inherits(what, "dpreg_internal_error"), info = paste(i, kind))
    expect_length(coef(ordinary()), 2)
  }
})

test_that("every hostile column is refused by its name, in one class of condition", {
  for (kind in names(columns)) {
    for (declared in list(c(0, 1), c("a", "b"))) {
      cond <- outcome(dp_ols(y ~ x + h, put(columns[[kind]]()), eps = 1, schema = c(schema, list(h = declared))))
      expect(inherits(cond, "dpreg_data_error"), paste(kind, class(cond)[1]))
      if (inherits(cond, "error")) expect_match(conditionMessage(cond), "'h'", fixed = TRUE, info = kind)
    }
  }
})

test_that("a cell that is no text, or a code without a level, is missing, and refuses no call", {
  test_verbs()
  cells <- function(column) {
    shown <- python_call("show", data = put(column), columns = "h")$h
    replace(shown$cells, as.logical(shown$missing), NA)
  }
  good <- rep(c("a", "b", NA), length.out = n)
  for (bad in list(bytes("\xe9"), "\xff\xfe", `Encoding<-`("M\xfcller", "UTF-8"))) {
    expect_identical(cells(replace(good, 5, bad)), cells(replace(good, 5, NA)))
    expect_identical(cells(rep(bad, n)), rep(NA_character_, n))
    broken <- structure(match(good, c("a", "b")) * 1L, levels = c("a", "b", bad), class = "factor")
    expect_identical(cells(replace(unclass(broken), 5, 3L) |> structure(class = "factor")), cells(replace(good, 5, NA)))
  }
  labels <- structure(rep(c(1L, 2L, NA), length.out = n), levels = c("a", "b"), class = "factor")
  expect_identical(cells(labels), cells(good))
  for (code in c(0L, -1L, 3L, .Machine$integer.max)) {
    beyond <- structure(replace(unclass(labels), 5, code), class = "factor")
    expect_identical(cells(beyond), cells(replace(good, 5, NA)))
  }
  twice <- structure(rep(1:3, length.out = n), levels = c("a", "b", "a"), class = "factor")
  expect_identical(cells(twice), cells(rep(c("a", "b", "a"), length.out = n)))
})

test_that("one row's text decides of no call whether it succeeds", {
  released <- function(cell) {
    frame <- put(rep(c("a", "b"), length.out = n))
    set.seed(1)
    frame$y <- frame$x <- runif(n)
    frame$h[7] <- cell
    rows <- c(schema, list(h = c("a", "b")))
    list(
      coef(dp_ols(y ~ x + h, frame, eps = 1, schema = rows, unsafe_seed = 1)),
      dp_mean("y", frame, eps = 1, schema = rows, by = "h", unsafe_seed = 1)$estimates,
      dp_mean("y", frame, eps = 1, schema = schema, person = "h", contributions = 6, unsafe_seed = 1)$estimates
    )
  }
  nobody <- suppressMessages(suppressWarnings(released(NA)))
  for (cell in c(bytes("\xe9"), "M\xfcller")) {
    expect_identical(suppressMessages(suppressWarnings(released(cell))), nobody)
  }
})

test_that("text elsewhere is looked at as well", {
  bad <- bytes("\xe9")
  frame <- plain()
  refused <- function(code) expect_s3_class(outcome(code), "dpreg_error")
  refused(dp_ols(y ~ x, frame, eps = bad, schema = schema))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = bad))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = stats::setNames(schema, c("y", bad))))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = schema, method = Gram(noise = bad)))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = schema, budget = bad))
  refused(dp_select(y ~ x, frame, eps = 1, schema = schema, keep = bad))
  refused(dp_select(y ~ x, frame, eps = 1, schema = schema, shares = stats::setNames(list(0.5), bad)))
  refused(dp_ols(y ~ x, bad, eps = 1, schema = schema))
  refused(dp_mean(bad, frame, eps = 1))
  refused(dp_ledger(bad, eps = 1))
  refused(dp_ledger(tempfile(), eps = 1, analyst_cap = stats::setNames(list(1), bad)))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = schema, person = bad))
  refused(dp_load(bad))
  refused(dp_save(ordinary(), bad))
  names(frame)[2] <- bad
  refused(dp_ols(y ~ ., frame, eps = 1, schema = schema))
  refused(dp_ols(y ~ x, frame, eps = 1, schema = schema))
  expect_length(coef(ordinary()), 2)
})

test_that("text that R cannot hold comes back without harm", {
  test_verbs()
  expect_identical(python_call("hard_text"), c("a\ufffdb", "?"))
})
