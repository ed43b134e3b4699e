need_python("arrow")
test_verbs()
# What a table of R's arrow package is to this package, without it: an object with a method
# export_to_c(address) that writes a stream there, as pyarrow does here.
reticulate::py_run_string("
def _add_streams():
    import ctypes
    import pandas as pd
    import pyarrow as pa
    from dpreg_bridge.verbs import VERBS
    def export(data, address):
        table = pa.Table.from_pandas(data, preserve_index=False)
        table.to_reader()._export_to_c(int(address))
    VERBS['export'] = export
_add_streams()
", local = TRUE)

stand_in <- function(frame, class = "RecordBatchReader") {
  reader <- new.env()
  reader$export_to_c <- function(address) {
    python_call("export", list(address = address), frame)
    invisible(NULL)
  }
  structure(reader, class = c(class, "ArrowObject", "R6"))
}

set.seed(6)
people <- data.frame(income = round(runif(2000, 0, 100), 2), age = round(runif(2000, 20, 60), 2),
                     sex = sample(c("f", "m"), 2000, TRUE), `odd name` = 1, check.names = FALSE)
people$income[3] <- NA
schema <- list(income = c(0, 100), age = c(0, 120), sex = c("f", "m"))
file <- tempfile(fileext = ".csv")
utils::write.csv(people, file, row.names = FALSE, na = "")

same <- function(told, expected) {
  # A file's rows are read in another order of coins only where that is said: seeded runs agree.
  expect_equal(coef(told), coef(expected), tolerance = 1e-6)
  expect_identical(told$nobs, expected$nobs)
}

test_that("a path stands for its rows", {
  fit <- function(data, ...) {
    dp_select(income ~ age + sex, data, eps = 100, schema = schema, unsafe_seed = 4, ...)
  }
  same(fit(file), fit(people))
  expect_identical(fit(file)$selected, fit(people)$selected)
  expect_identical(dp_mean("age", file, eps = 1, schema = schema)$call$data, quote(file))
  ols <- function(data) dp_ols(income ~ ., data, eps = 100, unsafe_seed = 4,
                               schema = c(schema, list("odd name" = c(0, 2))))
  expect_identical(names(coef(ols(file))), names(coef(ols(people))))
  same(ols(file), ols(people))
  mean <- function(data) dp_mean("income", data, eps = 10, schema = schema, by = "sex", unsafe_seed = 1)
  same(mean(file), mean(people))
  study <- function(data) selection_study(income ~ age + sex, data, schema, units = "column")
  expect_equal(study(file)$frequencies, study(people)$frequencies)
  other <- tempfile(fileext = ".csv")
  file.copy(file, other)
  expect_identical(dp_mean("income", c(file, other), eps = 1e6, schema = schema)$nobs, 4000L)
  expect_error(dp_mean("income", c(file, file), eps = 1, schema = schema), "same file", class = "dpreg_argument_error")
})

test_that("what a path lacks is said in R's words", {
  expect_error(dp_ols(income ~ nothere, file, eps = 1, schema = schema), "nothere", class = "dpreg_formula_error")
  expect_error(dp_ols(income ~ age + sex, file, eps = 1, schema = schema[1:2]), "levels must be declared",
               class = "dpreg_schema_error")
  expect_error(dp_mean("income", "nowhere.parquet", eps = 1, schema = schema), class = "dpreg_data_error")
  expect_error(dp_mean("income", NA_character_, eps = 1, schema = schema), class = "dpreg_argument_error")
  expect_error(dp_mean("income", 1:3, eps = 1, schema = schema), "'integer'", class = "dpreg_argument_error")
  told <- update(dp_ols(income ~ age, file, eps = 1, schema = schema), eps = 2)
  expect_identical(told$eps, 2)
})

test_that("arrow's tables cross over as streams", {
  fit <- function(data) {
    dp_select(income ~ age + sex, data, eps = 100, schema = schema, method = "pcls", unsafe_seed = 4)
  }
  told <- fit(stand_in(people))
  same(told, fit(people))
  expect_identical(names(coef(told)), names(coef(fit(people))))
  same(dp_mean("age", stand_in(people), eps = 10, schema = schema, unsafe_seed = 2),
       dp_mean("age", people, eps = 10, schema = schema, unsafe_seed = 2))
  # A reader is gone through once, and its rows are held for bounds and looks.
  bought <- function(data) {
    suppressWarnings(dp_ols(income ~ age, data, eps = 1, schema = schema["income"], unsafe_seed = 4))
  }
  expect_identical(coef(bought(stand_in(people))), coef(bought(people)))
})

test_that("other tables of arrow are made readers by arrow itself", {
  # Of a whole table Python keeps the record batches, which R holds in any case.
  told <- python_call("open_source", list(stream = export_stream(stand_in(people)), whole = TRUE))
  whole <- list(number = told$source)
  expect_warning(
    told <- python_call("dp_ols", list(formula = "income ~ age", eps = 50, schema = plain_schema(schema["income"])),
                        source = whole),
    "leaves out age", class = "dpreg_warning"
  )
  expect_identical(told$nobs, 2000L)
  python_call("close_source", list(source = whole$number))
  for (class in c("ArrowTabular", "Dataset", "arrow_dplyr_query")) {
    expect_true(is_source(structure(list(), class = class)))
  }
  if (!nzchar(system.file(package = "arrow"))) {
    expect_error(export_stream(structure(list(), class = "Dataset")), "version 8",
                 class = "dpreg_argument_error")
  }
})

test_that("nothing stays open", {
  reticulate::py_run_string("from dpreg_bridge import sources as _s; _left = len(_s._sources) + len(_s._rooms)")
  expect_identical(as.integer(reticulate::py_eval("_left")), 0L)
})
