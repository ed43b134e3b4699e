# The law of estimates whose uncertainty is a set of draws, for intervals and p-values alike.
#
# Quantiles stand at Weibull's positions (R's type 6), which cover a truth that is exchangeable with the draws
# exactly. Beyond the outermost half percent there are too few draws: there the law goes on with an exponential
# tail, from the median through that point. An interval is widened to hold the estimate, which a ridge may have
# drawn out of the middle of the draws; the p-value of 0 is the largest alpha whose interval holds 0.

draw_anchor <- function(n) min(max(1 / 200, 1 / (n + 1)), 0.25)

# Limits for each column of draws, as a matrix with two columns.
draw_limits <- function(draws, estimates, level) {
  tail <- (1 - level) / 2
  anchor <- draw_anchor(nrow(draws))
  if (tail >= anchor) {
    limits <- draw_quantiles(draws, c(tail, 1 - tail))
  } else {
    found <- draw_quantiles(draws, c(anchor, 0.5, 1 - anchor))
    limits <- found[, 2] + (found[, c(1, 3), drop = FALSE] - found[, 2]) * (log(2 * tail) / log(2 * anchor))
  }
  cbind(pmin(limits[, 1], estimates), pmax(limits[, 2], estimates))
}

# The limits of combinations x b of the draws b, for the rows of x: as many at a time as keep the processor's cache.
combined_limits <- function(draws, x, estimates, level) {
  rows <- seq_len(nrow(x))
  limits <- matrix(NA_real_, nrow(x), 2)
  for (own in split(rows, (rows - 1) %/% 128)) {
    limits[own, ] <- draw_limits(tcrossprod(draws, x[own, , drop = FALSE]), estimates[own], level)
  }
  limits
}

# Quantiles of each column, a column for each probability; NA where a draw is.
draw_quantiles <- function(draws, probabilities) {
  place <- pmin(pmax((nrow(draws) + 1) * probabilities, 1), nrow(draws))
  low <- floor(place)
  high <- pmin(low + 1, nrow(draws))
  one <- function(own) {
    sorted <- if (anyNA(own)) NA_real_ else sort.int(own, partial = unique(c(low, high)))
    sorted[low] + (place - low) * (sorted[high] - sorted[low])
  }
  matrix(apply(draws, 2, one), ncol(draws), byrow = TRUE)
}

draw_pvalues <- function(draws, estimates) {
  middle <- draw_quantiles(draws, 0.5)[, 1]
  one <- function(j) {
    if (is.na(estimates[j]) || is.na(middle[j])) return(NA_real_)
    if (min(estimates[j], middle[j]) <= 0 && 0 <= max(estimates[j], middle[j])) return(1)
    side <- if (0 < middle[j]) 1 else -1
    min(2 * draw_tail(side * draws[, j], side * middle[j]), 1)
  }
  vapply(seq_along(estimates), one, 0)
}

# The probability below 0, which lies below the median.
draw_tail <- function(draws, middle) {
  n <- length(draws)
  anchor <- draw_anchor(n)
  outer <- draw_quantiles(matrix(draws), anchor)[1, 1]
  if (0 < outer) return(0.5 * (2 * anchor)^(middle / (middle - outer)))
  stats::approx(sort(draws), seq_len(n) / (n + 1), 0, rule = 2, ties = "max")$y
}
