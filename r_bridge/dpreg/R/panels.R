# Parts that plots share: panels in rows and columns, lines told apart in grey, one legend.

line_shades <- c("black", "grey25", "grey35", "grey45", "grey20", "grey50")
line_types <- c("solid", "dashed", "dotdash", "dotted", "longdash", "twodash")
line_marks <- c(19, 15, 17, 18, 6, 4)

line_style <- function(k) {
  k <- (k - 1) %% length(line_types) + 1
  list(col = line_shades[k], lty = line_types[k], pch = line_marks[k])
}

wide_margin <- function(labels) {
  longest <- max(4.1, 0.55 * max(nchar(labels), 0) + 2)
  graphics::par(mar = c(5.1, min(longest, 14), 4.1, 2.1))
}

# Points with their intervals, beside their names.
interval_plot <- function(values, limits, names, xlim = range(limits, values, finite = TRUE), lwd = 1.5, ...) {
  place <- rev(seq_along(values))
  graphics::plot.default(values, place, xlim = xlim, ylim = c(0.5, length(place) + 0.5), yaxt = "n", pch = 19, ylab = "", ...)
  graphics::axis(2, place, names, las = 1)
  sides <- graphics::par("usr") # an end may be infinite
  graphics::segments(pmax(limits[, 1], sides[1]), place, pmin(limits[, 2], sides[2]), place, lwd = lwd)
}

# Lines y over x, a panel for each pair of `row` and `column`, a line for each `line`: columns of
# `frame`. `pale`, where there is one, is a column drawn wide and pale behind the first line.
line_panels <- function(frame, x, y, line, row, column, xlab, ylab, ylim, main, sub, pale = NULL, ...) {
  rows <- unique(frame[[row]])
  columns <- unique(frame[[column]])
  lines <- unique(frame[[line]])
  at <- sort(unique(frame[[x]]))
  log <- if (grows(at)) "x" else ""
  key <- data.frame(label = paste(line, lines), line_style(seq_along(lines)), lwd = 1)
  if (!is.null(pale)) key <- rbind(list("no noise", "grey80", "solid", NA, 4), key)
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  panels <- matrix(seq_len(length(rows) * length(columns)), length(rows), byrow = TRUE)
  graphics::layout(cbind(panels, max(panels) + 1),
                   widths = c(rep(1, length(columns)), legend_width(key$label, length(columns))))
  graphics::par(cex = 0.8, oma = c(2.5, 2.5, 4, 0), mar = c(2.6, 2.6, 1.8, 0.6), mgp = c(1.6, 0.5, 0), tcl = -0.3,
                las = 1)
  for (i in seq_along(rows)) for (j in seq_along(columns)) {
    part <- frame[frame[[row]] == rows[i] & frame[[column]] == columns[j], ]
    part <- part[order(part[[x]]), ]
    graphics::plot.default(range(at), ylim, type = "n", log = log, ylim = ylim, bty = "l",
                           xlab = "", ylab = "", xaxt = "n", ...)
    if (nzchar(log) && length(at) <= 8) graphics::axis(1, at, format_each(at)) else graphics::axis(1)
    if (!is.null(pale)) graphics::lines(part[part[[line]] == part[[line]][1], c(x, pale)], col = "grey80", lwd = 4)
    for (k in seq_along(lines)) {
      own <- part[part[[line]] == lines[k], c(x, y)]
      style <- line_style(k)
      graphics::lines(own, col = style$col, lty = style$lty)
      marked <- unique(round(seq(1, nrow(own), length.out = min(nrow(own), 7))))
      graphics::points(own[marked, ], col = style$col, pch = style$pch, cex = 0.9)
    }
    if (i == 1) graphics::mtext(paste("R =", signif(columns[j], 4)), line = 0.4, cex = 0.8)
    if (j == 1 && length(rows) > 1) {
      name <- if (is.numeric(rows)) paste(row, "=", format(rows[i], big.mark = ",", scientific = FALSE)) else rows[i]
      graphics::mtext(name, side = 2, line = 2.6, las = 0, cex = 0.75)
    }
  }
  graphics::par(mar = c(0, 0, 0, 0))
  graphics::plot.new()
  graphics::legend("left", key$label, bty = "n", col = key$col, lwd = key$lwd, lty = key$lty, pch = key$pch, seg.len = 3)
  graphics::mtext(xlab, side = 1, outer = TRUE, line = 0.8, cex = 0.85)
  graphics::mtext(ylab, side = 2, outer = TRUE, line = if (length(rows) > 1) 1.4 else 0.6, las = 0, cex = 0.85)
  outer_title(main, sub)
}

outer_title <- function(main, sub) {
  graphics::mtext(main, outer = TRUE, line = 2, font = 2)
  graphics::mtext(sub, outer = TRUE, line = 0.7, cex = 0.75)
}

# The legend's part of the width, in panels.
legend_width <- function(labels, panels) {
  inches <- max(graphics::strwidth(labels, units = "inches"), 0.5) + 0.8
  min(inches / max(graphics::par("din")[1] - inches - 0.4, 1) * panels, panels)
}

# Values that grow by factors want a logarithmic axis.
grows <- function(at) {
  last <- length(at)
  last > 2 && at[1] > 0 && at[last] >= 8 * at[1] && at[2] - at[1] <= diff(range(at)) / (last - 1) / 2
}

format_each <- function(x) vapply(x, function(one) format(signif(one, 4), scientific = FALSE), "")
