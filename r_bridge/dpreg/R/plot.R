#' Plot a private result
#'
#' Coefficients with their intervals, each multiplied by half the declared range of its column so that
#' they can be compared, or selection frequencies.
#'
#' @param x A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param which `"coefficients"` or `"frequencies"`; by default coefficients, where there are any.
#' @param level The level of the intervals.
#' @param main,xlab Title and label.
#' @param ... Further arguments of [graphics::plot.default()] or [graphics::barplot()].
#' @returns `x`, invisibly.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' plot(dp_ols(mpg ~ wt + hp, mtcars, eps = 1000, schema = schema))
#' @export
plot.dp_result <- function(x, which = c("coefficients", "frequencies"), level = 0.95, main = NULL,
                           xlab = NULL, ...) {
  if (missing(which) && inherits(x, "dp_select") && is.null(x$regression)) which <- "frequencies"
  which <- match.arg(which)
  sub <- if (isTRUE(x$seeded)) stamp else cost(x)
  if (which == "coefficients") {
    plot_coefficients(fitted_part(x, "plot()"), level, main %||% "Coefficients", xlab, sub, ...)
  } else {
    plot_frequencies(x, main %||% "Selection frequencies", xlab, sub, ...)
  }
  invisible(x)
}

plot_coefficients <- function(fit, level, main, xlab, sub, ...) {
  frame <- slopes(fit, level)
  limits <- as.matrix(frame[c("low", "high")])
  old <- wide_margin(frame$term)
  on.exit(graphics::par(old))
  interval_plot(frame$estimate, limits, frame$term, range(0, limits, frame$estimate, finite = TRUE), 1, main = main,
                xlab = xlab %||% slope_unit(fit), sub = sub, ...)
  graphics::abline(v = 0, lty = 3)
}

# What plots show: slopes and their limits, times the widths of their columns where these are known.
slopes <- function(fit, level) {
  width <- unname(fit$column_widths %||% rep(1, length(fit$coefficients)))
  limits <- unstamped(confint.dp_result(fit, level = level)) * width
  frame <- data.frame(term = names(fit$coefficients), estimate = unname(fit$coefficients) * width,
                      low = limits[, 1], high = limits[, 2])
  frame[frame$term != "(Intercept)", ]
}

slope_unit <- function(fit) {
  if (is.null(fit$column_widths)) "coefficient" else "coefficient x half range of its column"
}

plot_frequencies <- function(x, main, xlab, sub, ...) {
  if (!inherits(x, "dp_select")) {
    dpreg_stop("argument_error", 'which = "frequencies" is for results of dp_select().')
  }
  old <- wide_margin(x$candidates)
  on.exit(graphics::par(old))
  graphics::barplot(rev(x$selection_frequencies), horiz = TRUE, las = 1, xlim = c(0, 1), main = main,
                    xlab = xlab %||% paste("share of", length(x$models), "draws"), sub = sub, ...)
}
