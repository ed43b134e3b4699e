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
  no_more(...)
  tested <- row_test(match.call(), parent.frame())
  call <- tested$call
  required(x, eps)
  estimate_call("dp_mean", x, data, given_arguments(call[names(call) != "subset"]), call, tested$where)
}

#' @rdname dp_mean
#' @export
dp_quantile <- function(x, data = NULL, q, eps, bounds = NULL, schema = NULL, subset = NULL,
                        neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL, complete = FALSE,
                        alpha = 0.05, budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  no_more(...)
  tested <- row_test(match.call(), parent.frame())
  call <- tested$call
  required(x)
  # The order x, q, data is understood, too: plain numbers are no table.
  if (is.numeric(data) && !is.object(data) && (missing(q) || is.data.frame(q) || is_source(q))) {
    table <- if (!missing(q)) q
    q <- data
    data <- table
    names(call) <- replace(names(call), match(c("data", "q"), names(call), 0L), c("q", "data")[c("data", "q") %in% names(call)])
  }
  if (!"q" %in% names(call)) required(q)
  required(eps)
  estimate_call("dp_quantile", x, data, given_arguments(call[names(call) != "subset"]), call, tested$where)
}

#' @rdname dp_mean
#' @export
dp_histogram <- function(x, data = NULL, eps, delta = 0, bounds = NULL, bins = "private",
                         schema = NULL, subset = NULL, neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL,
                         complete = FALSE, width_share = 0.2, noise = NULL, budget = NULL, analyst = NULL,
                         progress = NULL, unsafe_seed = NULL, ...) {
  no_more(...)
  tested <- row_test(match.call(), parent.frame())
  call <- tested$call
  required(x, eps)
  estimate_call("dp_histogram", x, data, given_arguments(call[names(call) != "subset"]), call, tested$where)
}

#' @rdname dp_mean
#' @export
dp_suffstats <- function(x, data = NULL, family = "gaussian", eps, delta = 0, bounds = NULL,
                         schema = NULL, subset = NULL, neighbors = "replace-one", contributions = NULL, person = NULL, by = NULL,
                         complete = FALSE, noise = NULL, budget = NULL, analyst = NULL, progress = NULL,
                         unsafe_seed = NULL, ...) {
  no_more(...)
  tested <- row_test(match.call(), parent.frame())
  call <- tested$call
  required(x, eps)
  estimate_call("dp_suffstats", x, data, given_arguments(call[names(call) != "subset"]), call, tested$where)
}

# What every function of columns does.
estimate_call <- function(verb, x, data, arguments, call, where = NULL) {
  force(arguments)
  arguments$where <- where
  if (is.null(data)) {
    if (!is.data.frame(x)) plain_column(x, "x")
    data <- if (is.data.frame(x)) x else data.frame(x = x, stringsAsFactors = FALSE)
    x <- setdiff(names(data), c(arguments$by, arguments$person))
  }
  if (!is.null(arguments$by) && !is_name(arguments$by)) {
    dpreg_stop("argument_error", "by must be the name of a column of data, in quotes.")
  }
  source <- NULL
  if (is_source(data)) {
    source <- open_source(data)
    on.exit(close_source(source))
    data <- source$columns
  }
  if (!is.data.frame(data)) not_a_table(data)
  if (!is.character(x) || !length(x) || length(x) > 1 && !any(x %in% attr(data, "names"))) {
    dpreg_stop("argument_error", "x must be names of columns of data, in quotes; it has ", listed(attr(data, "names")), ".")
  }
  columns <- unique(c(x, arguments$by))
  check_text(columns, "a column's name in x or by")
  arguments["schema"] <- list(plain_schema(arguments$schema))
  check_names(data, arguments$schema)
  check_declared(data, columns, arguments$schema)
  person <- person_column(arguments$person, data, c(columns, names(arguments$schema)))
  arguments <- with_ledger(arguments)
  if (!is.null(arguments$bounds)) arguments$bounds <- as.list(arguments$bounds)
  arguments$x <- if (length(x) == 1) x else as.list(x)
  view <- if (is.null(source)) {
    python_call(verb, arguments, data, unique(c(columns, person, tested_columns(where, attr(data, "names")))))
  } else {
    python_call(verb, arguments, source = source)
  }
  new_estimate(view, call)
}

new_estimate <- function(view, call) {
  both <- function(a, b) sqrt(a^2 + b^2)
  estimates <- data.frame(
    term = view$term, estimate = view$estimate,
    std.error = both(view$se_sampling, view$se_privacy),
    se_sampling = view$se_sampling, se_privacy = view$se_privacy
  )
  if (!is.null(view$by)) estimates <- cbind(stats::setNames(data.frame(view$group), view$by), estimates)
  for (extra in c("counts", "probabilities")) estimates[[extra]] <- view[[extra]]
  labels <- if (is.null(view$by)) view$term else paste(view$group, view$term, sep = ":")
  kinds <- c("lower", "upper", "level", "complete_rows", "sufficient", "sufficient_names", "blocks",
             "bounds", "edges", "column", "binning", "noise", "by", "share_rows")
  released <- stats::setNames(view[kinds], kinds)
  structure(
    c(
      list(call = public_call(call), statistic = view$statistic, estimates = estimates,
           coefficients = stats::setNames(view$estimate, labels)),
      released, claim_of(view, list()), python = list(python_of(view))
    ),
    class = c("dp_estimate", "dp_result")
  )
}
