# A normal estimate that was seen only because it fell into a known set: estimate, intervals and p-value of
# a coefficient that the same release chose, as files of dpreg 0.2 hold it (fit = "same").
#
# The chance, given the set, of an estimate as low as the one seen falls as the true value grows. Where it
# is 1/2 lies the median-unbiased estimate; where it is 1 - a/2 and a/2 lie the ends of the interval of level
# 1 - a (Lee, Sun, Sun and Taylor 2016). A law is a list of `estimate`, `se` and `intervals`, a row for each
# part of the set.

given_below <- function(law, beta) {
  low <- law$intervals[, 1]
  high <- law$intervals[, 2]
  scaled <- function(x) (x - beta) / law$se
  whole <- log_mass(scaled(low), scaled(high))
  cut <- pmin(high, law$estimate)
  under <- ifelse(cut > low, log_mass(scaled(low), scaled(cut)), -Inf)
  top <- max(whole)
  min(sum(exp(under - top)) / sum(exp(whole - top)), 1)
}

# Log of the normal probability of each [low, high], exact far out in either tail.
log_mass <- function(low, high) {
  flip <- low > 0
  a <- ifelse(flip, -high, low)
  b <- ifelse(flip, -low, high)
  top <- stats::pnorm(b, log.p = TRUE)
  bottom <- stats::pnorm(a, log.p = TRUE)
  ratio <- ifelse(is.finite(bottom), pmin(bottom - top, 0), -Inf)
  ifelse(top == -Inf | b <= a, -Inf, top + log1p(-exp(ratio)))
}

# The true value under which that chance is `probability`; infinite where none is near.
given_value <- function(law, probability) {
  reach <- 1
  while (reach <= 128) {
    ends <- law$estimate + c(-1, 1) * reach * law$se
    at <- vapply(ends, given_below, 0, law = law)
    if (at[1] >= probability && probability >= at[2]) {
      return(stats::uniroot(function(beta) given_below(law, beta) - probability, ends,
                            f.lower = at[1] - probability, f.upper = at[2] - probability,
                            tol = 1e-9 * law$se)$root)
    }
    reach <- 2 * reach
  }
  if (at[1] < probability) -Inf else Inf
}

given_limits <- function(laws, level) {
  ends <- function(law) c(given_value(law, (1 + level) / 2), given_value(law, (1 - level) / 2))
  t(vapply(laws, ends, numeric(2)))
}

given_pvalues <- function(laws) {
  vapply(laws, function(law) min(1, 2 * min(given_below(law, 0), 1 - given_below(law, 0))), 0)
}

# Stop for what combines coefficients that the same look chose.
refuse_given <- function(fit, what) {
  if (length(fit$conditional) || !is.null(fit$among)) {
    refuse_release(what, paste(
      "with fit = \"same\" each coefficient stands by itself, corrected for its choice, and combinations of",
      "them have no law. Use coef() and confint(), or fit = \"fresh\""
    ))
  }
}

# Stop for means, which need the coefficients that were not chosen as well.
refuse_means <- function(fit) {
  if (!is.null(fit$among)) {
    refuse_release("predict()", paste(
      "with fit = \"same\" coefficients are those beside all candidates, of which some were not chosen. Use",
      "fit = \"fresh\""
    ))
  }
}
