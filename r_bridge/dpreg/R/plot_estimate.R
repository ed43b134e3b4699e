#' Plot released estimates
#'
#' A histogram as bars (of the density, or of the shares of levels) with intervals; groups as outlines over
#' each other, or as bars side by side. All other estimates as points with their intervals, in a panel for
#' each scale: columns with other bounds, parameters of another kind.
#'
#' @param x A result of [dp_mean()], [dp_quantile()], [dp_histogram()], [dp_suffstats()] or
#'   [sample_aggregate()].
#' @param level The level of the intervals.
#' @param main,xlab Title and label.
#' @param ... Further arguments of [graphics::plot.default()] or, for levels, [graphics::barplot()].
#' @returns `x`, invisibly.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' plot(dp_histogram("mpg", mtcars, eps = 20, bounds = c(5, 40), bins = 7))
#' plot(dp_mean(c("mpg", "wt"), mtcars, eps = 20, schema = list(mpg = c(5, 40), wt = c(1, 6))))
#' @export
plot.dp_estimate <- function(x, level = 0.95, main = NULL, xlab = NULL, ...) {
  main <- main %||% paste0(toupper(substr(estimate_title(x), 1, 1)), substring(estimate_title(x), 2))
  sub <- if (isTRUE(x$seeded)) stamp else cost(x)
  limits <- unstamped(confint.dp_estimate(x, level = level))
  if (x$statistic != "histogram") {
    plot_estimates(x, limits, paste0(format(100 * level), "% intervals; ", sub), main, xlab, ...)
  } else if (is.null(x$edges)) {
    plot_levels(x, limits, level, sub, main, xlab, ...)
  } else {
    plot_density(x, limits, level, sub, main, xlab, ...)
  }
  invisible(x)
}

plot_density <- function(x, limits, level, sub, main, xlab, ...) {
  edges <- x$edges
  bins <- length(edges) - 1
  heights <- matrix(x$estimates$probabilities / diff(edges), bins)
  grouped <- ncol(heights) > 1
  # With more bins than this intervals would hide the picture.
  bars <- if (!grouped && bins <= 60) limits / diff(edges)
  label <- if (is.null(bars)) "density" else paste0("density (", format(100 * level), "% intervals)")
  old <- graphics::par(mar = c(5.1, 5.3, 4.1, 1.5))
  on.exit(graphics::par(old))
  graphics::plot.default(range(edges), c(0, 1), type = "n", ylim = c(0, max(heights, bars) * 1.02), bty = "l",
                         las = 1, main = main, sub = sub, xlab = xlab %||% x$column, ylab = "", ...)
  graphics::title(ylab = label, line = 4)
  if (grouped) {
    groups <- unique(x$estimates[[x$by]])
    style <- line_style(seq_along(groups))
    outlines <- rbind(0, heights[rep(seq_len(bins), each = 2), ], 0)
    graphics::matlines(rep(edges, each = 2), outlines, col = style$col, lty = style$lty, lwd = 1.5)
    graphics::legend("topright", groups, title = x$by, bty = "n", col = style$col, lty = style$lty, lwd = 1.5)
  } else {
    graphics::rect(edges[-bins - 1], 0, edges[-1], heights, col = "grey85", border = "grey30")
    if (!is.null(bars)) {
      middles <- (edges[-1] + edges[-bins - 1]) / 2
      graphics::segments(middles, pmax(bars[, 1], 0), middles, bars[, 2], lwd = 1.5)
    }
  }
}

plot_levels <- function(x, limits, level, sub, main, xlab, ...) {
  terms <- unique(x$estimates$term)
  groups <- if (is.null(x$by)) NULL else unique(x$estimates[[x$by]])
  count <- max(length(groups), 1)
  shares <- t(matrix(x$estimates$probabilities, length(terms)))
  low <- t(matrix(pmax(limits[, 1], 0), length(terms)))
  high <- t(matrix(limits[, 2], length(terms)))
  shades <- if (count == 1) "grey85" else grDevices::grey(seq(0.35, 0.95, length.out = count))
  middles <- graphics::barplot(
    shares, beside = TRUE, names.arg = terms, col = shades, border = "grey30", las = 1,
    ylim = c(0, max(shares, high) * if (count > 1) 1.2 else 1.02), main = main, sub = sub,
    xlab = xlab %||% x$column, ylab = paste0("share (", format(100 * level), "% intervals)"),
    legend.text = groups, args.legend = list(x = "top", horiz = TRUE, bty = "n", title = x$by), ...
  )
  graphics::segments(middles, low, middles, high, lwd = 1.5)
}

# Estimates that share a scale, by their bounds, share a panel.
plot_estimates <- function(x, limits, sub, main, xlab, ...) {
  panels <- split(seq_len(nrow(x$estimates)), scale_of(x))
  names <- names(x$coefficients)
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  rows <- lengths(panels)
  graphics::layout(matrix(seq_along(panels)), heights = 1.2 + rows)
  wide <- max(graphics::strwidth(names, units = "inches")) + 0.35
  graphics::par(cex = 0.85, oma = c(1.5, 0, 3.5, 0), mai = c(0.5, min(wide, 0.5 * graphics::par("din")[1]), 0.1, 0.2),
                mgp = c(1.8, 0.6, 0))
  for (own in panels) {
    last <- identical(own, panels[[length(panels)]])
    interval_plot(unname(x$coefficients[own]), limits[own, , drop = FALSE], names[own], bty = "l",
                  xlab = if (last) xlab %||% "estimate" else "", ...)
  }
  outer_title(main, sub)
}

# Means of columns with the same bounds, quantiles of one column, values of one parameter.
scale_of <- function(x) {
  terms <- x$estimates$term
  key <- if (x$statistic == "quantile") {
    sub(": q[0-9.]+$", "", ifelse(grepl(": ", terms, fixed = TRUE), terms, ""))
  } else if (all(terms %in% names(x$bounds))) {
    vapply(x$bounds[terms], paste, "", collapse = " ")
  } else {
    terms
  }
  factor(key, unique(key))
}
