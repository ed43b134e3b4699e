# The law of a coefficient's error, for intervals and p-values: normal, or where the noise was a
# matrix-Laplace release with `degrees` nu, N(0, sampling + privacy V) with V ~ chi2_(2 nu) / (2 nu),
# taken as the mean over 256 midpoints of V.

mixing <- function(degrees) {
  if (is.null(degrees)) 1 else stats::qchisq(((1:256) - 0.5) / 256, 2 * degrees) / (2 * degrees)
}

# The part of the variances of `x %*% beta` that the noise adds.
privacy_part <- function(fit, x) quadratic(x, fit$privacy_vcov)

# The variances of `x %*% beta`; NA only where x has weight on a coefficient without a variance.
quadratic <- function(x, vcov) {
  vcov <- unname(as.matrix(vcov))
  unknown <- is.na(diag(vcov))
  vcov[unknown, ] <- vcov[, unknown] <- 0
  found <- rowSums((x %*% vcov) * x)
  found[rowSums(x[, unknown, drop = FALSE] != 0) > 0] <- NA
  found
}

# Limits of the coefficients, a row each.
coefficient_limits <- function(fit, level) {
  if (length(fit$conditional)) return(conditional_law(fit, level)$limits)
  if (!is.null(fit$interval_draws)) return(draw_limits(unname(fit$interval_draws), fit$coefficients, level))
  half <- half_widths(fit, std_errors(fit), diag(as.matrix(fit$privacy_vcov %||% fit$vcov)), own_level(fit, level))
  fit$coefficients + outer(half, c(-1, 1))
}

error_pvalues <- function(fit) {
  if (length(fit$conditional)) return(conditional_law(fit)$pvalues)
  if (!is.null(fit$interval_draws)) {
    return(stats::setNames(draw_pvalues(unname(fit$interval_draws), unname(fit$coefficients)), names(fit$coefficients)))
  }
  errors <- std_errors(fit)
  alone <- if (is.null(fit$noise_degrees)) {
    2 * stats::pnorm(-abs(fit$coefficients / errors))
  } else {
    noise <- diag(as.matrix(fit$privacy_vcov))
    scales <- sqrt(pmax(errors^2 - noise + outer(noise, mixing(fit$noise_degrees)), 0))
    rowMeans(2 * stats::pnorm(-abs(fit$coefficients) / scales))
  }
  pmin(alone * (fit$among %||% 1), 1)
}

# Limits and p-values of coefficients that the same release chose, as files of dpreg 0.2 hold them: Python has
# their truncated laws.
conditional_law <- function(fit, level = 0.95) {
  told <- python_call("conditional_law", list(text = fit$python$json, level = level))
  list(limits = told$limits[fit$design$order, , drop = FALSE], pvalues = told$pvalues[fit$design$order])
}

# The level of each interval: coefficients that the same look chose share what may be missed among all
# columns on offer.
own_level <- function(fit, level) 1 - (1 - level) / (fit$among %||% 1)

# Half the width of the intervals of combinations with standard errors `error`.
half_widths <- function(fit, error, noise, level) {
  if (is.null(fit$noise_degrees)) return(stats::qnorm((1 + level) / 2) * error)
  share <- ifelse(error > 0, noise / error^2, 0)
  known <- which(!is.na(share))
  share[known] <- unit_widths(share[known], fit$noise_degrees, level)
  error * share
}

# For errors of variance 1, of which the noise has a share. The width is a smooth function of the share:
# of many it is taken from a spline.
unit_widths <- function(share, degrees, level) {
  exact <- function(share) {
    scales <- sqrt(pmax(1 - share + outer(share, mixing(degrees)), .Machine$double.xmin))
    # Newton's method from below: the chance outside falls with the width, and is convex.
    width <- stats::qnorm((1 + level) / 2) * apply(scales, 1, min)
    for (i in 1:60) {
      outside <- rowMeans(2 * stats::pnorm(-width / scales)) - (1 - level)
      step <- outside / rowMeans(2 * stats::dnorm(width / scales) / scales)
      width <- width + step
      if (all(abs(step) <= 1e-14 * width)) break
    }
    width
  }
  if (!length(share)) return(numeric())
  if (length(share) <= 300 || diff(range(share)) == 0) return(exact(share))
  nodes <- seq(min(share), max(share), length.out = 300)
  stats::splinefun(nodes, exact(nodes))(share)
}
