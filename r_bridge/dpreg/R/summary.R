#' Summaries of private results
#'
#' @param object A result of [dp_select()] or [dp_ols()].
#' @param level The level of the intervals.
#' @param x A summary.
#' @param digits The number of significant digits.
#' @param ... Not used.
#' @returns A list of class `summary.dp_select` or `summary.dp_ols`, printed with all that a reader of a
#'   published table needs. Among its entries: `coefficients`, a matrix of estimates, standard errors,
#'   z values, p-values and limits; `errors`, what sampling and the privacy noise alone would give as
#'   standard errors; `which`, for a selection, a logical matrix as in the package leaps: a row for
#'   each distinct model that was drawn, most frequent first, and a column for each term; `counts`, how
#'   often each was drawn; `budget`; `privacy`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), qsec = c(10, 25))
#' fit <- dp_select(mpg ~ wt + hp + qsec, mtcars, eps = 30, schema = schema, draws = 20, fit = NULL)
#' summary(fit)$which
#' @name summary.dp_result
#' @export
summary.dp_result <- function(object, level = 0.95, ...) {
  regression <- inherits(object, "dp_ols") || !is.null(object$regression)
  fit <- if (regression) fitted_part(object, "summary()")
  kept <- c("call", "formula", "selected_formula", "candidates", "kept", "n_models", "settings",
            "nobs", "neighbors", "contributions", "eps", "delta", "budget", "privacy", "seeded")
  out <- object[intersect(kept, names(object))]
  if (inherits(object, "dp_select")) out <- c(out, drawn_models(object))
  if (regression) {
    limits <- unstamped(confint.dp_result(fit, level = level))
    out$coefficients <- cbind(coefficient_table(fit), limits)
    out$errors <- cbind(Sampling = fit$se_sampling, Privacy = fit$se_privacy)
    out[c("sigma", "r.squared", "df.residual", "complete_rows", "interval_method", "ridged")] <-
      list(fit$sigma, fit$r.squared, fit$df.residual, fit$complete_rows, fit$interval_method,
           fit$ridged)
    out$fit_settings <- fit$settings
  }
  out$notes <- unique(c(object$notes, fit$notes))
  out$level <- level
  structure(out, class = c(paste0("summary.", class(object)[1]), "summary.dp_result"))
}

# The distinct drawn models, most frequent first, as `which` of leaps.
drawn_models <- function(object) {
  terms <- c(object$kept, object$candidates)
  texts <- vapply(object$models, function(model) paste(terms %in% model, collapse = " "), "")
  counts <- sort(table(factor(texts, levels = unique(texts))), decreasing = TRUE)
  first <- match(names(counts), texts)
  which <- t(vapply(object$models[first], function(model) terms %in% model, logical(length(terms))))
  dim(which) <- c(length(first), length(terms))
  dimnames(which) <- list(seq_along(first), terms)
  list(which = which, counts = stats::setNames(as.integer(counts), seq_along(first)))
}

coefficient_table <- function(fit) {
  error <- std_errors(fit)
  z <- fit$coefficients / error
  cbind(Estimate = fit$coefficients, `Std. Error` = error, `z value` = z,
        `Pr(>|z|)` = error_pvalues(fit))
}

unstamped <- function(x) {
  attr(x, "privacy") <- NULL
  x
}

#' @rdname summary.dp_result
#' @export
print.summary.dp_result <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  heading(x)
  print_call(x$call)
  if (!is.null(x$which)) {
    cat("Selected: ", deparse1(x$selected_formula), "\n\n", sep = "")
    print_drawn(x)
  }
  if (!is.null(x$coefficients)) print_fit(x, digits)
  print_budget(x$budget, x$eps, x$delta)
  paragraph("Privacy: ", x$privacy)
  for (i in seq_along(x$notes)) paragraph(paste0("[", i, "] "), x$notes[i])
  invisible(x)
}

heading <- function(x) {
  selection <- inherits(x, c("dp_select", "summary.dp_select"))
  if (isTRUE(x$seeded)) cat("*** ", stamp, " ***\n", sep = "")
  cat("Differentially private", if (selection) "variable selection" else "linear regression", "\n\n")
}

print_call <- function(call) cat("Call:\n", paste(deparse(call), collapse = "\n"), "\n\n", sep = "")

paragraph <- function(head, text) {
  cat(strwrap(paste0(head, text), width = 0.95 * getOption("width"), exdent = 4), sep = "\n")
}

print_drawn <- function(x) {
  settings <- x$settings
  draws <- sum(x$counts)
  cat("Models: ", format(x$n_models, big.mark = ",", scientific = x$n_models > 1e12), ", ",
      settings$mechanism, ", ", settings$engine, "; ", draws, if (draws == 1) " draw" else " draws",
      "; radius ", format(settings$radius), " (", settings$radius_source, "), penalty ",
      settings$penalty, "\n", sep = "")
  marks <- ifelse(x$which, "*", " ")
  rownames(marks) <- paste0(" ", format(paste0(x$counts, "x")))
  print(marks, quote = FALSE)
  cat("\n")
}

print_fit <- function(x, digits) {
  rows <- c(fixed = "all rows", split = "the rows held out", share = "all rows")[[x$fit_settings$fit]]
  cat("Coefficients (", x$fit_settings$method, ", ", x$fit_settings$noise, " noise, ", rows, "):\n",
      sep = "")
  stats::printCoefmat(x$coefficients[, 1:4, drop = FALSE], digits = digits, has.Pvalue = TRUE,
                      P.values = TRUE)
  cat("\n", format(100 * x$level), "% intervals", if (x$interval_method == "bootstrap") {
    " (bootstrap of the public noise)"
  }, ", and the standard errors that each source alone would give:\n", sep = "")
  print(cbind(x$coefficients[, 5:6, drop = FALSE], x$errors), digits = digits)
  parts <- c(
    if (!is.null(x$sigma)) paste("Residual standard error:", format(signif(x$sigma, digits))),
    if (!is.null(x$r.squared)) paste("R-squared:", formatC(x$r.squared, digits = digits)),
    if (!is.null(x$complete_rows)) paste("complete rows (noisy):", round(x$complete_rows)),
    if (isTRUE(x$ridged)) "ridged: the noise is large for these columns"
  )
  cat("\n", paste(parts, collapse = ", "), "\n\n", sep = "")
}

print_budget <- function(budget, eps, delta) {
  cat("Budget (eps = ", format(eps), ", delta = ", format(delta), " in all):\n", sep = "")
  shown <- unstamped(budget)[c("step", "mechanism", "rows", "eps", "delta")]
  print(shown, row.names = FALSE, right = FALSE)
  cat("\n")
}
