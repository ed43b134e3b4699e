#' Methods for released estimates
#'
#' What the results of [dp_mean()], [dp_quantile()], [dp_histogram()], [dp_suffstats()] and
#' [sample_aggregate()] answer to. None of it needs Python.
#'
#' @param object,x A result of these functions, or a summary of one.
#' @param parm Names or numbers of estimates; by default all.
#' @param level,conf.level The level of the intervals. They are normal ones, those of shares about the share that two
#'   more rows of each kind would give; those of aggregates are Student's; of quantiles the released ends are
#'   stretched to another level as normal ones would be.
#' @param conf.int Add the columns `conf.low` and `conf.high`?
#' @param full All numbers, the budget and every note, where the page is otherwise one screen?
#' @param digits The number of significant digits; for `knit_print()`, of digits after the point.
#' @param row.names,optional Not used.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns `coef()` is a named vector, `confint()` a matrix, `tidy()` a table with broom's column names,
#'   `as.data.frame()` the table of estimates with both kinds of standard error. `vcov()` is the variance
#'   of a single estimate; of several, covariances are not released, and it fails with a condition of
#'   class `dpreg_not_released`. `summary()` is a list of class `summary.dp_estimate`, whose `estimates`
#'   have the intervals beside them, printed with the budget and the claim.
#' @name dp_estimate
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' both <- dp_mean(c("mpg", "wt"), mtcars, eps = 20, schema = list(mpg = c(5, 40), wt = c(1, 6)))
#' both
#' confint(both, level = 0.9)
#' summary(both)
NULL

#' @rdname dp_estimate
#' @export
coef.dp_estimate <- strict(function(object, ...) stamped(object$coefficients, object$seeded), "complete")

#' @rdname dp_estimate
#' @export
vcov.dp_estimate <- strict(function(object, ...) {
  names <- names(object$coefficients)
  if (length(names) > 1) {
    dpreg_stop("not_released", "vcov() is not released: this call released ", length(names), " estimates ",
               "with the standard error of each, and nothing about their covariances. as.data.frame() has ",
               "the standard errors.")
  }
  stamped(matrix(object$estimates$std.error^2, 1, 1, dimnames = list(names, names)), object$seeded)
}, "complete")

estimate_limits <- function(object, level) {
  estimate <- object$coefficients
  error <- object$estimates$std.error
  tails <- c((1 - level) / 2, (1 + level) / 2)
  if (!is.null(object$share_rows)) {
    # About the share that two more rows of each kind would give (Agresti and Coull).
    centre <- (pmin(pmax(estimate, 0), 1) * object$share_rows + 2) / (object$share_rows + 4)
    return(pmin(pmax(centre + outer(error, stats::qnorm(tails)), 0), 1))
  }
  if (is.null(object$lower) || !is.null(object$blocks)) return(estimate + outer(error, stats::qt(tails, estimate_degrees(object))))
  # Released ends, stretched to another level as normal ones would be.
  stretch <- if (isTRUE(all.equal(level, object$level))) 1 else {
    stats::qnorm(tails[2]) / stats::qnorm((1 + object$level) / 2)
  }
  stretched <- estimate + stretch * (cbind(object$lower, object$upper) - estimate)
  pmin(pmax(stretched, object$ends[, 1]), object$ends[, 2])
}

# Of a mean over blocks; of anything else the law is normal.
estimate_degrees <- function(object) if (is.null(object$blocks)) Inf else max(object$blocks - 1, 1)

#' @rdname dp_estimate
#' @export
print.dp_estimate <- strict(function(x, digits = max(3L, getOption("digits") - 3L), level = 0.95, ...) {
  heading(x)
  shown <- estimate_table(x, level)
  print(shown[setdiff(names(shown), c("se_sampling", "se_privacy"))], digits = digits,
        row.names = FALSE)
  cat("\n")
  print_cost(x)
}, print_options)

#' @rdname dp_estimate
#' @export
summary.dp_estimate <- strict(function(object, level = 0.95, full = FALSE, ...) {
  out <- unclass(object)
  out$coefficients <- NULL
  out$estimates <- estimate_table(object, level)
  if (!is.null(object$sufficient)) {
    groups <- if (is.null(object$by)) "all" else unique(object$estimates[[object$by]])
    out$sufficient <- matrix(object$sufficient, length(groups), byrow = TRUE,
                             dimnames = list(groups, object$sufficient_names))
  }
  out[c("level", "full")] <- list(level, full)
  # Notes speak of the level that was released.
  if (!is.null(object$lower) && !isTRUE(all.equal(level, object$level))) {
    out$stretched <- "Intervals are stretched to this level as normal ones would be, and cut at the bounds."
  }
  structure(out, class = "summary.dp_estimate")
})

#' @rdname dp_estimate
#' @export
tidy.dp_estimate <- strict(function(x, conf.int = FALSE, conf.level = 0.95, ...) {
  frame <- x$estimates
  frame$statistic <- frame$estimate / frame$std.error
  frame$p.value <- 2 * stats::pt(-abs(frame$statistic), estimate_degrees(x))
  frame <- frame[c(x$by, "term", "estimate", "std.error", "statistic", "p.value")]
  if (conf.int) frame[c("conf.low", "conf.high")] <- confint.dp_estimate(x, level = conf.level)
  as_table(frame, x$seeded)
})

#' @rdname dp_estimate
#' @export
as.data.frame.dp_estimate <- strict(function(x, row.names = NULL, optional = FALSE, ...) {
  stamped(x$estimates, x$seeded)
}, "stringsAsFactors")

#' @rdname dp_estimate
#' @exportS3Method knitr::knit_print
knit_print.dp_estimate <- function(x, digits = 4, ...) {
  summary <- summary.dp_estimate(x)
  knit_page(
    x$seeded,
    knit_table(summary$estimates, paste0("Differentially private ", estimate_title(x), ", with ",
                                         100 * summary$level, "% intervals"), digits = digits),
    knit_claim(x)
  )
}

# The estimates and their limits, as they are printed.
estimate_table <- function(x, level) {
  limits <- unstamped(confint.dp_estimate(x, level = level))
  head <- intersect(c(x$by, "term", "estimate", "std.error"), names(x$estimates))
  table <- cbind(x$estimates[head], unname(limits),
                 x$estimates[setdiff(names(x$estimates), head)])
  names(table)[length(head) + 1:2] <- colnames(limits)
  rownames(table) <- NULL
  table
}

estimate_title <- function(x) {
  paste0(x$statistic, if (!is.null(x$column)) paste(" of", x$column), if (!is.null(x$by)) paste(" by", x$by))
}
