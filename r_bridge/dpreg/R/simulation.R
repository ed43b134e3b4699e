#' How often a private selection is right, over simulated data sets
#'
#' Section 5.1 of Lei et al. (2018): columns independent and uniform on `[-1, 1]`, no intercept,
#' `y = x'beta + sigma z` with `z` standard normal. In each data set the chance that the right model is
#' drawn is computed exactly, so that what is left of chance is the sampling of data sets. No rows of
#' anybody's are read; the arguments are those of Python's `dpreg.simulation_study`.
#'
#' @param beta True coefficients, in units of the response; at most 12, some may be zero.
#' @param n Numbers of rows.
#' @param radius,eps,mechanism,neighbors Values to combine; `radius` bounds the sum of the moduli of the
#'   coefficients, in units of the response.
#' @param penalty Penalties as parts of `n`, or `NULL` for 51 from 0 to 1/2.
#' @param bound Where responses are clipped: numbers, or `"observed"`, the largest modulus in each data
#'   set, as in the paper, which no budget pays for. `list("observed", 6)` shows the price of that leak.
#' @param scale `"range"`, the noise of this package, or `"paper"`, the paper's, or both.
#' @param false_inclusions Where given, `penalty = "auto"` with this expected number of useless terms is
#'   tried as well.
#' @param sigma The standard deviation of the errors.
#' @param empty Is the model without any column a candidate?
#' @param datasets,seed How many data sets are simulated, and from which seed.
#' @param progress Show a progress bar? `NULL`: where R runs in a terminal.
#' @param object,x A study, or its summary.
#' @param which The `"proportions"` under all settings, or the `"best"` penalty of each.
#' @param digits The number of digits after the point.
#' @param row.names,optional Not used.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object of class `simulation_study`: a plain list with `beta`, `sigma`, `datasets`,
#'   `n_models` and three data frames. `proportions`, a row for each setting: `penalty.n`, the penalty over
#'   `n` (`NA` for `"auto"`), `right`, the mean over data sets of the chance that the right model is drawn,
#'   `se`, its standard error, and `without.noise`, the share of data sets in which the score without noise
#'   is right. `best`, the best number for the penalty under each setting, with `wide`, the part of the
#'   tried penalties that reach nine tenths of it. `leak`, where `bound` has `"observed"` and a number:
#'   what the leak gains; else `NULL`. `summary()` adds `table`, the chances by mechanism and `eps`, and
#'   `auto`, the rows of that penalty. See [plot.simulation_study()].
#' @references Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018).
#'   Differentially private model selection with penalized and constrained likelihood. *Journal of the
#'   Royal Statistical Society A* 181, 609-633.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' study <- simulation_study(c(1, 1, 0), 500, radius = 2.5, eps = c(1, 5), datasets = 20,
#'                           penalty = seq(0, 0.3, 0.05), bound = 6)
#' study
#' summary(study)$table
#' @export
simulation_study <- function(beta, n = c(100, 1000), radius = c(1, 2.5, 3.5, 10),
                             eps = c(0.1, 1, 5, 10), penalty = NULL, mechanism = "laplace",
                             neighbors = "replace-one", bound = "observed", scale = "range",
                             false_inclusions = NULL, sigma = 1, empty = FALSE, datasets = 500,
                             seed = 0, progress = NULL, ...) {
  asked <- received("simulation_study", ...)
  asked$arguments$beta <- as.list(beta)
  view <- python_call("simulation_study", asked$arguments)
  for (table in c("proportions", "best")) view[[table]] <- marked(view[[table]], view$privacy)
  if (!is.null(view$leak)) view$leak <- marked(view$leak, view$privacy)
  structure(c(list(call = public_call(asked$call)), view), class = "simulation_study")
}

simulation_keys <- c("n", "bound", "radius", "eps", "mechanism", "neighbors", "scale")

# The keys that take several values; one of them in any case.
varied_keys <- function(frame, else_one = "n") {
  several <- vapply(frame[simulation_keys], function(x) length(unique(x)) > 1, NA)
  if (any(several)) simulation_keys[several] else else_one
}

#' @rdname simulation_study
#' @export
summary.simulation_study <- strict(function(object, ...) {
  best <- object$best
  rows <- setdiff(varied_keys(best, "mechanism"), "eps")
  if (!length(rows)) rows <- "mechanism"
  labels <- interaction(lapply(best[rows], function(x) factor(x, unique(x))), sep = ", ", lex.order = TRUE,
                        drop = TRUE)
  table <- tapply(best$right, list(labels, factor(best$eps, unique(best$eps))), mean)
  names(dimnames(table)) <- c(paste(rows, collapse = ", "), "eps")
  proportions <- object$proportions
  auto <- proportions[is.na(proportions$penalty.n), setdiff(names(proportions), "penalty.n")]
  out <- object[setdiff(names(object), "proportions")]
  out["auto"] <- list(if (nrow(auto)) marked(auto, object$privacy))
  structure(c(out, list(table = marked(table, object$privacy))), class = "summary.simulation_study")
})

#' @rdname simulation_study
#' @export
print.summary.simulation_study <- strict(function(x, digits = 3, ...) {
  print.simulation_study(x)
  cat("\nChance of the right model at the best penalty:\n")
  print(round(unstamped(x$table), digits))
  if (!is.null(x$auto)) {
    cat("\nUnder penalty = \"auto\", which needs no tuning:\n")
    measures <- round(x$auto[c("right", "se", "without.noise")], digits)
    print(cbind(x$auto[varied_keys(x$auto)], measures), row.names = FALSE)
  }
  if (!is.null(x$leak)) {
    cat("\nWhat an observed bound, paid for by no budget, gains:\n")
    print(x$leak, digits = digits, row.names = FALSE)
  }
  invisible(x)
}, print_options)

#' @rdname simulation_study
#' @export
as.data.frame.simulation_study <- strict(function(x, row.names = NULL, optional = FALSE,
                                                  which = c("proportions", "best"), ...) {
  x[[match.arg(which)]]
}, "stringsAsFactors")
