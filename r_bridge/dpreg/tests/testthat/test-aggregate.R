need_python()

set.seed(4)
waits <- rexp(6000)
table <- data.frame(a = runif(6000, 0, 10), b = rnorm(6000, 5), g = sample(c("u", "v", "w"), 6000, TRUE),
                    stringsAsFactors = TRUE)
declared <- list(a = c(0, 10), b = c(0, 10), g = c("w", "v", "u"))

test_that("an estimator of R's is averaged over blocks", {
  told <- sample_aggregate(median, waits, eps = 500, bounds = c(0, 10))
  expect_s3_class(told, "dp_estimate")
  expect_identical(told$statistic, "sample and aggregate")
  expect_named(coef(told), "theta0")
  expect_lt(abs(coef(told)[[1]] - log(2)), 0.15) # blocks are drawn: a sd of 0.012
  expect_true(told$blocks > 10)
  limits <- confint(told)
  expect_true(limits[1] < coef(told) && coef(told) < limits[2])
  both <- sample_aggregate(function(block) c(mean(block$a), sd(block$b)), table, eps = 1e6,
                           bounds = list(centre = c(0, 10), spread = c(0, 5)), schema = declared)
  expect_named(coef(both), c("centre", "spread"))
  expect_equal(coef(both), c(centre = mean(table$a), spread = sd(table$b)), tolerance = 0.02)
  grouped <- sample_aggregate(function(block) mean(block$a), table, eps = 1e6, bounds = c(0, 10),
                              by = "g", schema = list(a = c(0, 10), g = c("u", "v")), blocks = 20)
  expect_equal(unname(coef(grouped)), as.vector(tapply(table$a, table$g, mean))[1:2],
               tolerance = 0.02)
})

test_that("a block is of the type of the data, and knows nothing of the rest", {
  seen <- function(data, schema = if (is.data.frame(data)) declared) {
    kept <- NULL
    sample_aggregate(function(block) {
      kept <<- block
      1
    }, data, eps = 1, bounds = c(0, 2), blocks = 30, correct_bias = FALSE, schema = schema)
    kept
  }
  named <- table
  row.names(named) <- paste0("r", seq_len(6000))
  attr(named, "na.action") <- 1:3
  block <- seen(named)
  expect_setequal(names(attributes(block)), c("names", "class", "row.names"))
  expect_identical(attr(block, "row.names"), seq_len(nrow(block)))
  expect_identical(lapply(block, class), lapply(table, class))
  expect_identical(levels(block$g), declared$g)
  rows <- match(block$a, table$a)
  expect_identical(block$b, table$b[rows])
  expect_identical(as.character(block$g), as.character(table$g)[rows])
  matrix <- matrix(1:12000, 6000, dimnames = list(paste0("r", 1:6000), c("x", "y")))
  expect_identical(colnames(seen(matrix)), c("x", "y"))
  expect_null(rownames(seen(matrix)))
  expect_identical(seen(stats::setNames(waits, 1:6000))[0], numeric())
  one <- seen(table, declared["a"])
  expect_named(one, "a")
  expect_s3_class(one, "data.frame")
  skip_if_not_installed("tibble")
  expect_s3_class(seen(tibble::as_tibble(table)), "tbl_df")
  skip_if_not_installed("data.table")
  expect_s3_class(seen(data.table::as.data.table(table)), "data.table")
  grouped <- structure(table, class = c("grouped_df", "tbl_df", "tbl", "data.frame"), groups = 1:3)
  expect_identical(class(seen(grouped)), c("tbl_df", "tbl", "data.frame"))
  for (bad in list(list(1, 2), NULL, quote(x), array(1, c(2, 2, 2)), table$g, "a", as.Date("2020-01-01") + 1:9,
                   matrix("a"), 1i)) {
    expect_error(sample_aggregate(median, bad, eps = 1, bounds = c(0, 1)),
                 class = "dpreg_argument_error")
  }
})

test_that("what one row does to classes and levels reaches no other block", {
  mark <- function(data, schema) {
    found <- NULL
    sample_aggregate(function(block) {
      found <<- c(found, list(list(levels(block$g), vapply(block, typeof, ""))))
      1
    }, data, eps = 1, bounds = c(0, 2), blocks = 20, correct_bias = FALSE, schema = schema)
    unique(found)
  }
  with_row <- function(a, b, g, f) {
    rows <- data.frame(a = 1:100, b = rep(c(TRUE, FALSE), 50), g = "u", f = 1:100)
    rbind(data.frame(a = a, b = b, g = g, f = f), rows)
  }
  schema <- list(a = c(0, 9), b = logical(), g = c("u", "v"), f = list(levels = 1:9))
  plain <- mark(with_row(1L, TRUE, "u", 1L), schema)
  expect_identical(plain, list(list(c("u", "v"), c(a = "double", b = "logical", g = "integer", f = "integer"))))
  other <- with_row(0.5, NA, "only here", 1e9)
  expect_identical(mark(other, schema), plain)
  expect_identical(mark(transform(other, g = factor(g), f = factor(f)), schema), plain)
  expect_error(mark(other, NULL), "schema must declare the columns", class = "dpreg_argument_error")
  numbers <- function(data) {
    sample_aggregate(function(block) is.integer(block), data, eps = 1e6, bounds = c(0, 2), unsafe_seed = 1)
  }
  expect_identical(coef(numbers(1:100)), coef(numbers(c(1:99, 0.5))))
  expect_identical(coef(numbers(matrix(1:100))), coef(numbers(matrix(c(1:99, 0.5)))))
  expect_error(sample_aggregate(median, 1:9, eps = 1, bounds = c(0, 1), schema = declared), "leave it out",
               class = "dpreg_argument_error")
})

# What Python's function answers to failures, this one does: the midpoint, and not a word.
failures <- list(
  "an error" = function(block) stop("secret ", block[1]),
  "a condition" = function(block) stop(structure(class = c("odd", "error", "condition"),
                                                 list(message = "secret", call = NULL))),
  "the wrong length" = function(block) c(1, 2),
  "nothing" = function(block) NULL,
  "text" = function(block) "1",
  "a function" = function(block) mean,
  "not finite" = function(block) Inf,
  "missing" = function(block) NA,
  "endless recursion" = function(block) {
    again <- function() again()
    again()
  },
  "a jump to the top" = function(block) invokeRestart("abort"),
  "a limit of time" = function(block) {
    setTimeLimit(elapsed = 1e-3, transient = TRUE)
    repeat NULL
  }
)

test_that("a block on which the estimator fails is the midpoint, in silence", {
  old <- options(warn = 2, error = quote(cat("secret")))
  on.exit(options(old))
  for (name in names(failures)) {
    blocks <- if (name == "endless recursion") 2 else 40
    told <- character()
    shown <- capture.output(
      withCallingHandlers(
        result <- sample_aggregate(failures[[name]], waits, eps = 1e6, bounds = c(0, 10),
                                   blocks = blocks),
        message = function(cond) told <<- c(told, conditionMessage(cond)),
        warning = function(cond) told <<- c(told, conditionMessage(cond))
      ),
      type = "output"
    )
    expect_lt(abs(coef(result)[[1]] - 5), 0.01)
    expect_identical(c(told, shown), character(), info = name)
    expect_false(any(grepl("secret", deparse(result[names(result) != "call"]))))
  }
  expect_identical(setTimeLimit(), NULL)
})

test_that("warnings and messages are dropped, and the value stands", {
  old <- options(warn = 2)
  on.exit(options(old))
  loud <- function(block) {
    warning("row ", block[1])
    message("row ", block[1])
    as.integer("x") # NA, with a warning
    3L
  }
  expect_silent(result <- sample_aggregate(loud, waits, eps = 1e6, bounds = c(0, 10), blocks = 30))
  expect_lt(abs(coef(result)[[1]] - 3), 0.01)
  listed <- sample_aggregate(function(block) list(TRUE, 2L), waits, eps = 1e6,
                             bounds = list(c(0, 10), c(0, 10)), blocks = 30)
  expect_equal(unname(coef(listed)), c(1, 2), tolerance = 0.01)
})

test_that("one failing part leaves the block as it is, and a failing number its midpoint", {
  part <- function(block) if (any(block == min(waits))) NA else 4
  told <- sample_aggregate(part, waits, eps = 1e6, bounds = c(0, 10), blocks = 2, aggregation = "mean")
  expect_lt(abs(coef(told)[[1]] - 4.5), 0.01)
  short <- function(block) if (length(block) < 5000) NA else 4
  told <- sample_aggregate(short, waits, eps = 1e6, bounds = c(0, 10), blocks = 1, aggregation = "mean")
  expect_lt(abs(coef(told)[[1]] - 4), 0.01)
  half <- sample_aggregate(function(block) c(2, NaN), waits, eps = 1e6,
                           bounds = list(c(0, 10), c(0, 10)), blocks = 30)
  expect_equal(unname(coef(half)), c(2, 5), tolerance = 0.01)
})

test_that("late blocks are the midpoint", {
  slow <- function(block) repeat NULL
  start <- proc.time()[["elapsed"]]
  told <- sample_aggregate(slow, waits, eps = 1e6, bounds = c(0, 10), blocks = 3, timeout = 0.1)
  expect_lt(abs(coef(told)[[1]] - 5), 0.01)
  expect_lt(proc.time()[["elapsed"]] - start, 60)
  stubborn <- function(block) tryCatch(repeat NULL, error = function(cond) 1)
  told <- sample_aggregate(stubborn, waits, eps = 1e6, bounds = c(0, 10), blocks = 3, timeout = 0.1)
  expect_lt(abs(coef(told)[[1]] - 5), 0.01)
  quick <- sample_aggregate(function(block) 1, waits, eps = 1e6, bounds = c(0, 10), blocks = 3,
                            timeout = 60)
  expect_lt(abs(coef(quick)[[1]] - 1), 0.01)
  expect_error(sample_aggregate(median, waits, eps = 1, bounds = c(0, 1), timeout = 0), "timeout",
               class = "dpreg_argument_error")
})

test_that("R's random numbers have no say in who is in which block", {
  once <- function(seed) {
    set.seed(seed)
    sample_aggregate(median, waits, eps = 1, bounds = c(0, 10), unsafe_seed = 1)
  }
  state <- function() get(".Random.seed", globalenv())
  set.seed(1)
  before <- state()
  first <- sample_aggregate(median, waits, eps = 1, bounds = c(0, 10))
  expect_identical(state(), before)
  expect_identical(coef(once(1)), coef(once(2)))
  set.seed(1)
  expect_false(identical(coef(sample_aggregate(median, waits, eps = 1, bounds = c(0, 10))), coef(first)))
})

test_that("a block draws numbers of its own, and the caller's go on where they stood", {
  values <- function(data, timeout = NULL, seed = 1) {
    kept <- numeric()
    set.seed(1)
    before <- .GlobalEnv$.Random.seed
    sample_aggregate(function(block) {
      whole <- block[!is.na(block)]
      kept <<- c(kept, mean(whole + rnorm(length(whole))))
      0.5
    }, data, eps = 1, bounds = c(0, 1), blocks = 40, correct_bias = FALSE, timeout = timeout, unsafe_seed = seed)
    expect_identical(.GlobalEnv$.Random.seed, before)
    kept
  }
  other <- replace(waits, 7, NA) # so that its block draws one number less
  for (timeout in list(NULL, 60)) {
    plain <- values(waits, timeout)
    expect_identical(values(waits, timeout), plain)
    expect_identical(sum(values(other, timeout) != plain), 1L)
  }
  draws <- function(seed) {
    kept <- numeric()
    set.seed(seed, kind = "L'Ecuyer-CMRG")
    sample_aggregate(function(block) {
      kept <<- c(kept, runif(1))
      0.5
    }, waits, eps = 1, bounds = c(0, 1), blocks = 40, correct_bias = FALSE)
    expect_identical(RNGkind()[1], "L'Ecuyer-CMRG")
    kept
  }
  kinds <- RNGkind()
  on.exit(RNGkind(kinds[1], kinds[2], kinds[3]))
  expect_identical(anyDuplicated(c(draws(1), draws(1))), 0L)
  rm(".Random.seed", envir = globalenv())
  sample_aggregate(median, waits, eps = 1, bounds = c(0, 10))
  expect_false(exists(".Random.seed", globalenv(), inherits = FALSE))
  expect_identical(RNGkind()[1], "L'Ecuyer-CMRG")
})

test_that("a record tells the minute of the charge, or of the start", {
  reticulate::py_run_string("
import datetime
from dpreg_bridge import aggregate as _a
_honest, _a.now = _a.now, iter([datetime.datetime(2031, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc)] * 2).__next__
")
  on.exit(reticulate::py_run_string("_a.now = _honest"))
  when <- function(...) sample_aggregate(median, waits, eps = "0.5", bounds = c(0, 10), blocks = 5, ...)$record$when
  expect_identical(when(), "2031-05-06T07:08+00:00")
  ledger <- dp_ledger(tempfile(fileext = ".json"), eps = 1)
  expect_identical(when(budget = ledger), sub(":\\d\\d\\+", "+", dp_ledger(ledger$path)$entries$when))
})

test_that("the ledger is charged once, before the estimator sees a row", {
  ledger <- dp_ledger(tempfile(fileext = ".json"), eps = 1)
  spent <- function() dp_ledger(ledger$path)$spent[["eps"]]
  seen <- character()
  spy <- function(block) {
    if (!length(seen)) seen <<- spent()
    1
  }
  sample_aggregate(spy, waits, eps = "0.6", bounds = c(0, 10), blocks = 5, budget = ledger)
  expect_identical(seen, "0.6")
  expect_identical(spent(), "0.6")
  seen <- character()
  expect_error(sample_aggregate(spy, waits, eps = "0.6", bounds = c(0, 10), budget = ledger),
               class = "dpreg_budget_error")
  expect_identical(seen, character())
  expect_identical(nrow(dp_ledger(ledger$path)$entries), 1L)
})

test_that("bad arguments are refused before anything is charged", {
  refused <- function(..., class = "dpreg_argument_error") {
    ledger <- dp_ledger(tempfile(fileext = ".json"), eps = 1)
    given <- utils::modifyList(list(estimator = median, data = table, eps = 1, bounds = c(0, 1),
                                    budget = ledger), list(...))
    expect_error(do.call(sample_aggregate, given), class = class)
    expect_identical(dp_ledger(ledger$path)$spent[["eps"]], "0")
  }
  refused(estimator = "median")
  refused(bounds = c(1, 1))
  refused(bounds = 1:3)
  refused(eps = 0)
  refused(blocks = 0)
  refused(correct_bias = 1)
  refused(aggregation = "best")
  refused(by = c("g", "a"))
  refused(by = "a", class = "dpreg_error")
  refused(by = "g", class = "dpreg_schema_error")
  refused(by = "nothere", schema = list(nothere = "x"), class = "dpreg_data_error")
  refused(data = waits, by = "g")
})

test_that("an interrupt ends the call, and the next one works", {
  skip_on_os("windows")
  system(paste0("(sleep 1; kill -INT ", Sys.getpid(), ") &"))
  endless <- function(block) tryCatch(repeat NULL, error = function(cond) 1)
  outcome <- tryCatch(sample_aggregate(endless, waits, eps = 1, bounds = c(0, 10)),
                      interrupt = function(cond) "stopped")
  expect_identical(outcome, "stopped")
  # Without a handler R jumps to the top: here, to a restart that stands for it.
  system(paste0("(sleep 1; kill -INT ", Sys.getpid(), ") &"))
  outcome <- withRestarts(sample_aggregate(endless, waits, eps = 1, bounds = c(0, 10)),
                          abort = function() "to the top")
  expect_identical(outcome, "to the top")
  expect_s3_class(sample_aggregate(median, waits, eps = 1, bounds = c(0, 10)), "dp_estimate")
  reticulate::py_run_string("from dpreg_bridge import aggregate as _a; _left = len(_a._runs)")
  expect_identical(as.integer(reticulate::py_eval("_left")), 0L)
})

test_that("the object holds no rows, however the call was made", {
  secret <- waits + 0.123456789
  told <- local({
    hidden <- secret
    do.call(sample_aggregate, list(function(block) median(block - 0 * hidden[1]), secret, eps = 1,
                                   bounds = c(0, 10)))
  })
  expect_identical(told$call$data, quote(`<data>`))
  expect_identical(told$call$estimator, quote(estimator))
  inline <- eval(parse(text = "sample_aggregate(function(block) { median(block) }, waits, eps = 1,
                                                bounds = c(0, 10)) # 0.123456789", keep.source = TRUE))
  expect_output(print(inline), "median(block)", fixed = TRUE)
  averaged <- do.call(dp_mean, list(secret, eps = 1, bounds = c(0, 20)))
  expect_identical(averaged$call$x, quote(`<x>`))
  for (object in list(told, inline, averaged)) {
    bytes <- serialize(object, NULL)
    expect_lt(length(bytes), 2e4)
    expect_length(grepRaw(writeBin(secret[1], raw(), endian = "big"), bytes, fixed = TRUE), 0)
    expect_length(grepRaw("0.123456789", bytes, fixed = TRUE), 0)
  }
})

test_that("a bar counts blocks on stderr where it is asked for", {
  shown <- function(progress) {
    capture.output(
      sample_aggregate(median, seq_len(2000) / 200, eps = 10, bounds = c(0, 10), blocks = 50,
                       progress = progress),
      type = "message"
    )
  }
  expect_match(paste(shown(TRUE), collapse = ""), "100%", fixed = TRUE)
  expect_identical(shown(FALSE), character())
  expect_identical(shown(NULL), character())
  expect_error(sample_aggregate(median, 1:100, eps = 1, bounds = c(0, 1), progress = "yes"),
               "progress must be TRUE, FALSE or NULL", class = "dpreg_argument_error")
})
