#' Predictions from a private fit
#'
#' The counterpart of [predict.lm()] for a data frame of the analyst's own; all of it is computed in R.
#' Numbers are not clipped to the schema's bounds: a prediction extrapolates as that of [lm()] does.
#' After [dp_select()] with `fit = "same"` predictions use the least-squares estimates of the chosen model,
#' and neither standard errors nor intervals are released.
#'
#' @param object A result of [dp_select()] or [dp_ols()].
#' @param newdata A data frame, or a list that [as.data.frame()] makes one of, with the columns of the
#'   formula. It has to be given: fitted values of the confidential rows are not released.
#' @param se.fit Also standard errors?
#' @param interval `"confidence"` for the mean, `"prediction"` for a new observation. Where the fit
#'   released bootstrap draws (`method = "gram"` without Gaussian noise), an interval takes some 0.05
#'   milliseconds a row, for it runs between two of 2,000 numbers; others come from a formula, in 0.002.
#' @param level The level of the intervals.
#' @param type `"response"`, or `"terms"` for a matrix with what each term adds. Terms are not centred, as
#'   [predict.lm()] centres them, since the means of the columns are not released; the attribute
#'   `"constant"` is the intercept.
#' @param terms With `type = "terms"`, the terms wanted; by default all.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns As [predict.lm()] returns it: a named vector; with an interval, a matrix with the columns `fit`,
#'   `lwr` and `upr`; with `se.fit`, a list with `fit`, `se.fit`, `df` and `residual.scale`. A row is `NA`
#'   where it lacks a value; a level that the schema does not declare is an error.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_ols(mpg ~ wt + log(hp), mtcars, eps = 1000, schema = schema)
#' predict(fit, data.frame(wt = 2:3, hp = 100), interval = "confidence")
#' @export
predict.dp_result <- strict(function(object, newdata, se.fit = FALSE,
                                     interval = c("none", "confidence", "prediction"), level = 0.95,
                                     type = c("response", "terms"), terms = NULL, ...) {
  fit <- fitted_part(object, "predict()")
  if (inherits(fit, "dp_glm")) { # which a selection chose
    return(predict.dp_glm(fit, newdata, se.fit, interval[1], level, if (missing(type)) "link" else type, terms))
  }
  predict_rows(object, fit, newdata, se.fit, match.arg(interval), level, match.arg(type), terms)
})

# `type` "response" is of the mean; that of a linear model is its predictor.
predict_rows <- function(object, fit, newdata, se.fit, interval, level, type, terms) {
  refuse_means(fit)
  newdata <- own_rows(if (!missing(newdata)) newdata, "predict()")
  if (type == "terms") return(predicted_terms(fit, newdata, terms, se.fit, interval, object$seeded))
  check_level(level)
  told <- predicted(fit, newdata, se.fit, interval, level)
  bent <- type == "response" && !is.null(fit$link)
  value <- stamped(if (bent) inverse_link(fit$link)(told$value) else told$value, object$seeded)
  if (!se.fit) return(value)
  if (bent) told$error <- told$error * mean_slope(fit$link, inverse_link(fit$link)(told$centre))
  if (!is.null(fit$link)) return(list(fit = value, se.fit = told$error, residual.scale = sqrt(fit$dispersion)))
  list(fit = value, se.fit = told$error, df = fit$df.residual %||% NA_real_, residual.scale = fit$sigma %||% NA_real_)
}

# Linear predictors of rows, `centre`; their standard errors where they are asked for; and as `value` the
# predictors, or a matrix of them and their limits.
predicted <- function(fit, newdata, se.fit, interval, level) {
  rows <- row.names(newdata)
  values <- design_values(fit$design, newdata, fit$schema)
  centre <- linear_part(fit, values, length(rows))
  if (!is.null(fit$design$offset)) centre <- centre + design_values(fit$design$offset, newdata, fit$schema)[[1]]
  centre <- stats::setNames(centre, rows)
  if (!se.fit && interval == "none") return(list(centre = centre, value = centre))
  refuse_given(fit, "the error of a prediction")
  x <- design_matrix(fit, newdata)
  error <- sqrt(positive(quadratic(x, fit$vcov)))
  value <- centre
  if (interval != "none") {
    limits <- mean_limits(fit, x, unname(centre), error, level)
    if (interval == "prediction") limits <- observation_limits(fit, unname(centre), limits, level)
    value <- cbind(fit = centre, lwr = limits[, 1], upr = limits[, 2])
    rownames(value) <- rows
  }
  list(centre = centre, value = value, error = stats::setNames(error, rows))
}

own_rows <- function(newdata, what, more = NULL) {
  if (is.null(newdata)) {
    dpreg_stop("not_released", "fitted values are not released: give ", what, " a data frame of your own as newdata", more, ".")
  }
  as_newdata(newdata)
}

as_newdata <- function(newdata) {
  if (is.data.frame(newdata)) return(newdata)
  made <- if (is.list(newdata)) {
    tryCatch(as.data.frame(newdata, optional = TRUE, stringsAsFactors = FALSE), error = function(cond) NULL)
  }
  if (is.null(made)) {
    dpreg_stop("argument_error", "newdata must be a data frame, or a list of columns of one length; got an ",
               "object of class ", quoted(class(newdata)[1]), ".")
  }
  made
}

# NaN for a variance below zero, which noise can produce.
positive <- function(variances) ifelse(variances >= 0, variances, NaN)

predicted_terms <- function(fit, newdata, wanted, se.fit, interval, seeded) {
  if (se.fit || interval != "none") {
    dpreg_stop("argument_error", 'type = "terms" gives neither standard errors nor intervals; ',
               "leave out se.fit and interval.")
  }
  kept <- known_terms(fit, wanted, "terms")
  rows <- row.names(newdata)
  own <- vapply(fit$design$columns, `[[`, "", "term")
  values <- design_values(fit$design, newdata, fit$schema)
  parts <- vapply(kept, function(term) linear_part(fit, values, length(rows), own == term), numeric(length(rows)))
  parts <- matrix(parts, length(rows), dimnames = list(rows, kept))
  stamped(structure(parts, constant = sum(fit$estimates[names(fit$estimates) == "(Intercept)"])), seeded)
}

mean_limits <- function(fit, x, centre, error, level) {
  if (!is.null(fit$interval_draws)) return(combined_limits(unname(fit$interval_draws), x, centre, level))
  noise <- if (!is.null(fit$noise_degrees)) privacy_part(fit, x)
  centre + outer(half_widths(fit, error, noise, level), c(-1, 1))
}

# Each side of the interval of the mean and that of a normal residual add in quadrature.
observation_limits <- function(fit, centre, limits, level) {
  residual <- stats::qnorm((1 + level) / 2) * (fit$sigma %||% NA_real_)
  cbind(centre - sqrt((centre - limits[, 1])^2 + residual^2),
        centre + sqrt((limits[, 2] - centre)^2 + residual^2))
}
