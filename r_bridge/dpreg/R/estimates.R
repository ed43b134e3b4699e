#' Means, quantiles, histograms and parameters with differential privacy
#'
#' The tools of Smith's talk of 2008: `dp_mean()`, `dp_quantile()` and `dp_histogram()` of bounded
#' columns, and `dp_suffstats()`, the sufficient statistics of an exponential family and its maximum
#' likelihood. The arguments are those of Python's functions of the same names.
#'
#' @inheritParams dp_select
#' @param delta Above 0 it allows Gaussian noise, which is used where it is the smaller.
#' @param x Names of columns of `data`; or, without `data`, a vector or a data frame.
#' @param data A data frame, the path of a Parquet or CSV file, or another table that [dp_select()] takes;
#'   or `NULL`.
#' @param q Numbers between 0 and 1. `dp_quantile(x, q, data)`, in Python's order, is understood as well.
#' @param bounds Public bounds, `c(lowest, highest)`, or a list of such pairs by column. Columns without
#'   take theirs from `schema`.
#' @param by The name of a column of `data` with declared levels: estimates in each of its groups, at
#'   the cost of one.
#' @param complete Is it a public fact that no value is missing?
#' @param noise `"laplace"`, `"gaussian"` (needs `delta`), or `NULL` for the one with the least noise.
#' @param alpha The released intervals of quantiles have level `1 - alpha`.
#' @param bins `"private"`, a number of bins, or their edges.
#' @param width_share The part of `eps` that buys the width of private bins.
#' @param family `"gaussian"`, `"bernoulli"`, `"poisson"` or `"exponential"`.
#' @returns An object of class `dp_estimate`: a plain list whose `estimates` is a data frame with the
#'   columns `term`, `estimate`, `std.error`, `se_sampling` and `se_privacy`, and the group where there
#'   are groups. Its methods are listed in [dp_estimate].
#' @seealso [sample_aggregate()] for any other estimator.
#' @references Smith, A. (2008). Integrating differential privacy with statistical theory. Talk.
#' @name dp_mean
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' dp_mean("mpg", mtcars, eps = 10, bounds = c(5, 40))
#' dp_quantile(mtcars$mpg, c(0.25, 0.5), eps = 100, bounds = c(5, 40))
#' dp_histogram("gear", mtcars, eps = 10, schema = list(gear = list(levels = 3:5)))
NULL

#' @rdname dp_mean
#' @export
dp_mean <- function(x, data = NULL, eps, delta = 0, bounds = NULL, schema = NULL, subset = NULL,
                    neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL, complete = FALSE,
                    noise = NULL, budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  estimate_call(received("dp_mean", ...), x, data)
}

#' @rdname dp_mean
#' @export
dp_quantile <- function(x, data = NULL, q, eps, bounds = NULL, schema = NULL, subset = NULL,
                        neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL, complete = FALSE,
                        alpha = 0.05, budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  # The order x, q, data is understood, too: plain numbers are no table.
  swapped <- is.numeric(data) && !is.object(data) && (missing(q) || is.data.frame(q) || is_source(q))
  if (swapped) {
    table <- if (!missing(q)) q
    q <- data
    data <- table
  }
  estimate_call(received("dp_quantile", ..., .renamed = if (swapped) c(data = "q", q = "data")), x, data)
}

#' @rdname dp_mean
#' @export
dp_histogram <- function(x, data = NULL, eps, delta = 0, bounds = NULL, bins = "private",
                         schema = NULL, subset = NULL, neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL,
                         complete = FALSE, width_share = 0.2, noise = NULL, budget = NULL, analyst = NULL,
                         progress = NULL, unsafe_seed = NULL, ...) {
  estimate_call(received("dp_histogram", ...), x, data)
}

#' @rdname dp_mean
#' @export
dp_suffstats <- function(x, data = NULL, family = "gaussian", eps, delta = 0, bounds = NULL,
                         schema = NULL, subset = NULL, neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL,
                         complete = FALSE, noise = NULL, budget = NULL, analyst = NULL, progress = NULL,
                         unsafe_seed = NULL, ...) {
  estimate_call(received("dp_suffstats", ...), x, data)
}

# What every function of columns does.
estimate_call <- function(asked, x, data) {
  by <- asked$arguments$by
  if (is.null(data)) {
    if (!is.data.frame(x)) plain_column(x, "x")
    data <- if (is.data.frame(x)) x else data.frame(x = x, stringsAsFactors = FALSE)
    x <- setdiff(names(data), c(by, asked$arguments$person))
  }
  if (!is.null(by) && !is_name(by)) {
    dpreg_stop("argument_error", "by must be the name of a column of data, in quotes.")
  }
  with_table(data, function(data, source) estimate_of_table(asked, x, by, data, source))
}

estimate_of_table <- function(asked, x, by, data, source) {
  arguments <- asked$arguments
  names <- attr(data, "names")
  if (!is.character(x) || !length(x) || length(x) > 1 && !any(x %in% names)) {
    dpreg_stop("argument_error", "x must be names of columns of data, in quotes; it has ", listed(names), ".")
  }
  columns <- unique(c(x, by))
  arguments["schema"] <- list(plain_schema(arguments$schema))
  check_declared(data, columns, arguments$schema)
  person <- person_column(arguments$person, c(columns, names(arguments$schema)))
  arguments <- with_ledger(arguments)
  if (!is.null(arguments$bounds)) arguments$bounds <- as.list(arguments$bounds)
  arguments$x <- if (length(x) == 1) x else as.list(x)
  used <- unique(c(columns, person, tested_columns(arguments$where, names)))
  new_estimate(python_call(asked$verb, arguments, if (is.null(source)) data, used, source), NULL, asked$call)
}

new_estimate <- function(view, translation, call) new_result(view, call, "dp_estimate")
