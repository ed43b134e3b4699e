#' Tidy tables of private results
#'
#' broom's verbs, with broom's column names.
#'
#' @param x A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param conf.int Add the columns `conf.low` and `conf.high`?
#' @param conf.level The level of the intervals.
#' @param exponentiate Give exp of the estimates and their limits: of a result of [dp_glm()] odds ratios or ratios of
#'   rates? Standard errors stay those of the coefficients, as in broom.
#' @param type For a selection: a row for each of the `"coefficients"`, or for each of the `"terms"`
#'   that could be chosen. By default the coefficients, where there are any.
#' @param data Not to be given: in [lm()]'s method it stands for the rows of the fit.
#' @param newdata A data frame of the analyst's own.
#' @param se_fit Add the column `.se.fit`?
#' @param interval Add the columns `.lower` and `.upper`: of the mean (`"confidence"`) or of a new
#'   observation (`"prediction"`).
#' @param type.predict What `.fitted` holds, as [predict.dp_glm()] names it.
#' @param type.residuals `"deviance"`, `"pearson"` or `"response"`: adds the column `.resid`, where `newdata` holds
#'   the response, and it is not a number of successes.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns A tibble, or a data frame where the package tibble is not installed. `tidy()`: `term`,
#'   `estimate`, `std.error`, `statistic`, `p.value`; for terms `term`, `kept`, `selected`,
#'   `frequency`, and of a selection by looks, `NA` for others, `level`, `se`, and `group`, the number of
#'   the group of terms that the release cannot tell apart. `glance()`: one row, with `NA` for what is not released; `nobs` is the
#'   noisy number of complete rows; `looks`
#'   counts those of a release by looks, and `groups` those groups. Of a result of [dp_glm()] it has `dispersion`
#'   and `converged` in place of `r.squared` and `sigma`. `augment()`: `newdata`, with `.rownames` where its rows
#'   have names, `.fitted`, and of a linear model `.resid` where it holds the response.
#' @name tidiers
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_ols(mpg ~ wt + hp, mtcars, eps = 1000, schema = schema)
#' tidy(fit, conf.int = TRUE)
#' glance(fit)
#' augment(fit, newdata = data.frame(wt = 3, hp = 110))
NULL

#' @importFrom generics tidy
#' @export
generics::tidy

#' @importFrom generics glance
#' @export
generics::glance

#' @importFrom generics augment
#' @export
generics::augment

#' @rdname tidiers
#' @export
tidy.dp_result <- strict(function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE,
                                  type = c("coefficients", "terms"), ...) {
  if (missing(type) && inherits(x, "dp_select") && is.null(x$regression)) type <- "terms"
  if (match.arg(type) == "terms") {
    if (is.null(x$terms)) dpreg_stop("argument_error", 'type = "terms" is for results of dp_select().')
    return(as_table(x$terms, x$seeded))
  }
  fit <- fitted_part(x, "tidy()")
  table <- coefficient_table(fit)
  frame <- data.frame(term = rownames(table), unname(table), row.names = NULL)
  names(frame)[-1] <- c("estimate", "std.error", "statistic", "p.value")
  if (conf.int) frame[c("conf.low", "conf.high")] <- confint.dp_result(fit, level = conf.level)
  if (!is.null(fit$marks)) frame$mark <- unname(fit$marks)
  if (exponentiate) {
    shown <- intersect(c("estimate", "conf.low", "conf.high"), names(frame))
    frame[shown] <- lapply(frame[shown], exp)
  }
  as_table(frame, x$seeded)
})

#' @rdname tidiers
#' @export
glance.dp_result <- strict(function(x, ...) {
  fit <- if (inherits(x, "dp_ols")) x else x$regression
  own <- if (inherits(fit, "dp_glm")) {
    list(dispersion = fit$dispersion, converged = fit$converged)
  } else {
    list(r.squared = fit$r.squared %||% NA_real_, sigma = fit$sigma %||% NA_real_)
  }
  frame <- data.frame(
    own,
    df = if (is.null(fit)) NA_integer_ else sum(names(fit$coefficients) != "(Intercept)"),
    df.residual = fit$df.residual %||% NA_real_,
    nobs = rows_used(x),
    eps = x$eps,
    delta = x$delta,
    looks = NROW(x$looks)
  )
  chosen <- if (inherits(x, "dp_select")) list(n.models = x$n_models, draws = length(x$models), groups = length(x$groups))
  frame[names(chosen)] <- chosen
  as_table(frame, x$seeded)
})

#' @rdname tidiers
#' @export
augment.dp_result <- function(x, data = NULL, newdata = NULL, se_fit = FALSE,
                              interval = c("none", "confidence", "prediction"), conf.level = 0.95,
                              ...) {
  fit <- fitted_part(x, "augment()")
  if (inherits(fit, "dp_glm")) { # which a selection chose
    return(augment.dp_glm(fit, data, newdata, se_fit = se_fit, interval = interval[1], conf.level = conf.level, ...))
  }
  no_more(...)
  frame <- augmented(x, data, newdata, se_fit, match.arg(interval), conf.level, "response")
  if (has_response(fit, newdata)) frame$.resid <- response_values(fit, newdata) - frame$.fitted
  as_table(frame, x$seeded)
}

#' @rdname tidiers
#' @export
augment.dp_glm <- strict(function(x, data = NULL, newdata = NULL, type.predict = c("link", "response"),
                                  type.residuals = NULL, se_fit = FALSE, interval = c("none", "confidence"),
                                  conf.level = 0.95, ...) {
  frame <- augmented(x, data, newdata, se_fit, interval[1], conf.level, match.arg(type.predict))
  if (!is.null(type.residuals) && has_response(x, newdata) && is.null(x$trials)) {
    type.residuals <- match.arg(type.residuals, c("deviance", "pearson", "response"))
    mean <- unname(unstamped(predict.dp_glm(x, newdata, type = "response")))
    y <- response_values(x, newdata)
    family <- made_family(x)
    frame$.resid <- switch(type.residuals,
      deviance = sign(y - mean) * sqrt(family$dev.resids(y, mean, rep(1, length(y)))),
      pearson = (y - mean) / sqrt(family$variance(mean)),
      response = y - mean
    )
  }
  as_table(frame, x$seeded)
})

# The rows with what is predicted of them.
augmented <- function(x, data, newdata, se_fit, interval, level, type) {
  newdata <- own_rows(newdata, "augment()", if (!is.null(data)) ", not as data, which stands for the rows of the fit")
  told <- stats::predict(x, newdata, se.fit = se_fit, interval = interval, level = level, type = type)
  values <- as.matrix(if (se_fit) told$fit else told)
  frame <- structure(unclass(newdata), class = "data.frame")
  if (.row_names_info(newdata) > 0) frame <- cbind(.rownames = row.names(frame), frame)
  frame$.fitted <- unname(values[, 1])
  if (interval != "none") frame[c(".lower", ".upper")] <- values[, 2:3]
  if (se_fit) frame$.se.fit <- unname(told$se.fit)
  row.names(frame) <- NULL
  frame
}

has_response <- function(fit, newdata) all(all.vars(fit$design$response) %in% names(newdata))

response_values <- function(fit, newdata) {
  recipe <- list(variables = list(y = fit$design$response))
  value <- design_values(recipe, newdata, fit$schema)$y
  if (is.list(value)) as.double(value$codes - 1L) else value
}

as_table <- function(frame, seeded) {
  if (requireNamespace("tibble", quietly = TRUE)) frame <- tibble::as_tibble(frame)
  stamped(frame, seeded)
}

#' @rdname dp_result
#' @export
as.data.frame.dp_result <- function(x, row.names = NULL, optional = FALSE, ..., stringsAsFactors = FALSE) {
  stamped(as.data.frame(tidy.dp_result(x, ...)), x$seeded)
}
