#' Summaries of private results
#'
#' @param object A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param level The level of the intervals.
#' @param full All tables, the budget and every note, where the page is otherwise one screen?
#' @param ratios For a result of [dp_glm()]: also odds ratios, or ratios of rates, with their intervals?
#' @param x A summary.
#' @param digits The number of significant digits.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns A list of class `summary.dp_select`, `summary.dp_ols` or `summary.dp_glm`, printed on one screen, or
#'   with `full = TRUE` with all that was recorded. Among its entries: `coefficients`, a matrix of estimates, standard errors,
#'   z values, p-values and limits; `errors`, what sampling and the privacy noise alone would give as
#'   standard errors (after looks, `Sampling` also holds how far cutting residuals may have moved an estimate);
#'   `which`, for a selection, a logical matrix as in the package leaps: a row for
#'   each distinct model that was drawn, most frequent first, and a column for each term; `counts`, how
#'   often each was drawn; `terms`, for a selection by looks, a data frame that says of each term whether it was
#'   selected, or is one of a group, its level and standard error; `ratios`, a matrix; `looks`; `budget`; `privacy`; `notes`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), qsec = c(10, 25))
#' fit <- dp_select(mpg ~ wt + hp + qsec, mtcars, eps = 30, schema = schema, draws = 20, fit = NULL)
#' summary(fit)$which
#' @name summary.dp_result
#' @export
summary.dp_result <- function(object, level = 0.95, full = FALSE, ratios = FALSE, ...) {
  no_more(...)
  regression <- inherits(object, "dp_ols") || !is.null(object$regression)
  fit <- if (regression) fitted_part(object, "summary()")
  kept <- c("call", "formula", "selected_formula", "candidates", "kept", "n_models", "settings",
            "nobs", "neighbors", "contributions", "eps", "delta", "budget", "privacy", "seeded", "groups",
            "false_inclusions", "looks", "passes", "record", "notes", "severe", "screen")
  out <- object[intersect(kept, names(object))]
  if (inherits(object, "dp_select")) {
    out <- c(out, drawn_models(object))
    if (!is.null(object$level) || !is.null(object$stability)) out$terms <- term_table(object)
  }
  if (regression) {
    limits <- unstamped(confint.dp_result(fit, level = level))
    out$coefficients <- cbind(coefficient_table(fit), limits)
    out$errors <- cbind(Sampling = fit$se_sampling, Privacy = fit$se_privacy)
    out[c("sigma", "r.squared", "df.residual", "complete_rows", "interval_method", "ridged", "weak")] <-
      list(fit$sigma, fit$r.squared, fit$df.residual, fit$complete_rows, interval_words(fit),
           fit$ridged, fit$weak)
    out$fit_settings <- fit$settings
    if (inherits(fit, "dp_glm")) {
      out[c("family", "link", "dispersion", "converged")] <- fit[c("family", "link", "dispersion", "converged")]
      out[c("success", "offset", "trials")] <- list(fit$success, names(fit$design$offset$variables), fit$trials)
      if (ratios) out$ratios <- exp(cbind(fit$coefficients, limits))
      if (ratios) colnames(out$ratios)[1] <- if (fit$link == "logit") "odds ratio" else "rate ratio"
    } else if (ratios) {
      dpreg_stop("argument_error", "ratios are for results of dp_glm(); a linear model has none.")
    }
    out["marks"] <- list(fit$marks)
    if (is.null(out$looks)) out["looks"] <- list(fit$looks)
  }
  out[c("level", "full")] <- list(level, full)
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
  no_more(..., .harmless = print_options)
  heading(x)
  print_call(x$call)
  if (!x$full) return(invisible(print_screen(x, digits)))
  if (!is.null(x$which)) {
    cat("Selected: ", deparse1(x$selected_formula), "\n\n", sep = "")
    if (is.null(x$terms)) print_drawn(x) else print_chosen(x)
  }
  if (!is.null(x$coefficients)) if (is.null(x$family)) print_fit(x, digits) else print_glm(x, digits)
  if (!is.null(x$looks)) print_looks(x, digits)
  print_budget(x$budget, x$eps, x$delta)
  paragraph("Privacy: ", x$privacy)
  for (i in seq_along(x$notes)) paragraph(paste0("[", i, "] "), x$notes[i])
  invisible(x)
}

# One screen: rows, cost, the table with the noise's share of the variance and marks, and what not to trust.
print_screen <- function(x, digits) {
  said(x, c("Rows", "Cost"))
  if (!is.null(x$which)) {
    paragraph("Selected: ", deparse1(x$selected_formula))
    print_groups(x$groups)
    if (is.null(x$coefficients)) if (is.null(x$terms)) print_drawn(x) else print_chosen(x)
  }
  if (!is.null(x$coefficients)) print_table(x, digits)
  if (!is.null(x$ratios)) print(x$ratios[, !apply(is.na(x$ratios), 2, all), drop = FALSE], digits = digits)
  said(x, "Assumes")
  cat("Privacy: formula, schema and the call are public; $privacy has the claim.\n")
  print_warnings(x, "summary(fit, full = TRUE)")
  x
}

# What Python's page says, line by line.
said <- function(x, names) for (name in names) paragraph(paste0(name, ": "), x$screen[[name]])

# Severe notes whole, and how many there are besides.
print_warnings <- function(x, more) {
  severe <- x$notes[x$severe %in% TRUE]
  others <- length(x$notes) - length(severe)
  if (others) cat("Details: ", more, " has ", others, " more note", if (others > 1) "s", ".\n", sep = "")
  for (note in severe) paragraph("Warning: ", note)
}

print_table <- function(x, digits) {
  numbers <- function(values) vapply(values, function(value) format(signif(value, digits)), "")
  table <- x$coefficients
  marks <- mark_letters(x)
  shown <- data.frame(Estimate = numbers(table[, 1]), row.names = rownames(table))
  if (!all(is.na(table[, 2]))) {
    share <- pmin((x$errors[, "Privacy"] / table[, 2])^2, 1)
    limits <- apply(table[, 5:6, drop = FALSE], 2, numbers)
    shown <- cbind(shown, `Std. Error` = numbers(table[, 2]), `Pr(>|z|)` = format.pval(table[, 4], digits = 3),
                   matrix(limits, nrow(table), dimnames = list(NULL, colnames(table)[5:6])),
                   Noise = ifelse(is.na(share), "", paste0(round(100 * share), "%")))
  }
  shown$Mark <- if (any(nzchar(marks$letters))) marks$letters
  cat("\n")
  print(shown, right = TRUE)
  cat("\n")
  if (length(marks$said)) paragraph("Mark: ", paste0(paste(marks$said, collapse = "; "), "."))
  if (!is.null(shown$Noise)) cat("Noise: the share of the variance (squared standard error) that privacy adds.\n")
}

# What is to be said of each coefficient, in a letter and in words; as Python's page does.
mark_letters <- function(x) {
  names <- rownames(x$coefficients)
  p <- x$coefficients[, 4]
  zero <- !is.na(p) & p >= 1 - x$level & names != "(Intercept)"
  said <- if (any(zero)) {
    sprintf("0 = not significant at the %s%% level, which does not show it is 0", format(100 * (1 - x$level)))
  }
  why <- c(x$marks[x$marks != "above noise"], x$weak)
  known <- c(wide = "w", narrow = "n", `too few rows to say` = "?", `hidden direction` = "h", `rare level` = "r")
  start <- sub(":.*", "", why)
  letter <- ifelse(start %in% names(known), known[start], "*")
  list(
    letters = paste0(ifelse(zero, "0", ""), ifelse(names %in% names(why), letter[match(names, names(why))], "")),
    said = unique(c(said, if (length(why)) paste(letter, "=", why)))
  )
}

heading <- function(x) {
  what <- if (inherits(x, c("dp_select", "summary.dp_select"))) {
    "variable selection"
  } else {
    switch(x$family %||% "", binomial = "logistic regression", poisson = "Poisson regression",
           quasipoisson = "quasi-Poisson regression", "linear regression")
  }
  if (isTRUE(x$seeded)) cat("*** ", stamp, " ***\n", sep = "")
  cat("Differentially private", what, "\n\n")
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

# A selection by looks: no draws, but what is unclear.
print_chosen <- function(x) {
  cat("Models: ", format(x$n_models, big.mark = ",", scientific = x$n_models > 1e12), ", ", x$settings$mechanism,
      " looks\n", sep = "")
  shown <- x$terms[c("term", "selected", "level", "se")]
  grouped <- shown$term %in% unlist(x$groups)
  shown$selected <- ifelse(x$terms$kept, "kept", ifelse(shown$selected, "yes", ifelse(grouped, "one of", "no")))
  for (name in c("level", "se")) shown[[name]] <- ifelse(is.na(shown[[name]]), "", format(shown[[name]], digits = 2))
  print(shown, row.names = FALSE, right = FALSE)
  print_groups(x$groups)
  cat("\n")
}

print_groups <- function(groups) {
  if (!length(groups)) return(invisible())
  paragraph("One of: ", paste(braced(groups), collapse = "; "))
}

# "{a, b}" for each group of terms that the release cannot tell apart.
braced <- function(groups) vapply(groups, function(group) sprintf("{%s}", paste(group, collapse = ", ")), "")

print_looks <- function(x, digits) {
  cat("Looks at the rows:\n")
  alone <- x$looks$mechanism == "objective perturbation"
  shown <- x$looks[setdiff(names(x$looks), c("mechanism", "stretch", "power"))]
  shown$look[alone] <- "alone" # the line is that of the look which the coefficients equal
  if (!is.null(shown$opened)) shown$opened <- ifelse(shown$opened, "yes", "no")
  for (name in intersect(c("radius", "information.limit", "column.limit", "score.limit"), names(shown))) {
    shown[[name]] <- ifelse(is.na(shown[[name]]), "", format(shown[[name]], digits = 3))
  }
  print(shown, digits = 3, row.names = FALSE)
  # A note names the others.
  weak <- if (any(startsWith(x$notes, "Weakly determined: "))) x$weak[x$weak != "hidden direction"] else x$weak
  marked <- x$marks[x$marks != "above noise"]
  if (length(marked)) paragraph("Marked: ", paste0(names(marked), " (", marked, ")", collapse = "; "))
  if (length(weak)) paragraph("Weakly determined: ", paste0(names(weak), " (", weak, ")", collapse = "; "))
  cat("\n")
}

interval_words <- function(fit) {
  if (length(fit$conditional)) return("given the choice")
  if (!is.null(fit$among)) return(paste("for the choice among", fit$among))
  if (!is.null(fit$marks)) return(if (identical(fit$cov_type, "cluster")) "robust, clustered" else "robust")
  fit$interval_method
}

print_fit <- function(x, digits) {
  rows <- if (identical(x$fit_settings$fit, "split")) "the rows held out" else "all rows"
  print_coefficients(x, digits, paste0(x$fit_settings$method, ", ", x$fit_settings$noise, " noise, ", rows))
  parts <- c(
    if (!is.null(x$sigma)) paste("Residual standard error:", format(signif(x$sigma, digits))),
    if (!is.null(x$r.squared)) paste("R-squared:", formatC(x$r.squared, digits = digits)),
    if (!is.null(x$complete_rows)) paste("complete rows (noisy):", round(x$complete_rows)),
    if (isTRUE(x$ridged)) "ridged: the noise is large for these columns"
  )
  cat("\n", paste(parts, collapse = ", "), "\n\n", sep = "")
}

print_glm <- function(x, digits) {
  print_coefficients(x, digits, paste0(x$family, ", link ", x$link, "; ", x$fit_settings$noise, " noise"))
  if (!is.null(x$ratios)) {
    cat("\nRatios:\n")
    print(x$ratios[, !apply(is.na(x$ratios), 2, all), drop = FALSE], digits = digits)
  }
  parts <- c(
    paste("Dispersion:", if (is.na(x$dispersion)) "not released" else format(signif(x$dispersion, digits))),
    if (!is.null(x$complete_rows)) paste("complete rows (noisy):", round(x$complete_rows)),
    if (!is.null(x$offset)) paste("offset:", x$offset),
    if (!is.null(x$success)) paste("counted as 1:", x$success),
    if (!is.null(x$trials)) paste("trials:", x$trials),
    if (!isTRUE(x$converged)) "not converged"
  )
  cat("\n", paste(parts, collapse = ", "), "\n\n", sep = "")
}

print_coefficients <- function(x, digits, how) {
  cat("Coefficients (", how, "):\n", sep = "")
  earned <- !all(is.na(x$coefficients[, 2]))
  if (!earned) {
    print(x$coefficients[, 1, drop = FALSE], digits = digits)
    cat("\nNo standard errors and intervals are earned: the notes say why.\n")
    return(invisible())
  }
  stats::printCoefmat(x$coefficients[, 1:4, drop = FALSE], digits = digits, has.Pvalue = TRUE,
                      P.values = TRUE)
  cat("\n", format(100 * x$level), "% intervals", switch(x$interval_method,
    bootstrap = " (bootstrap of the public noise)", `given the choice` = " (given the choice)"
  ), ", and the standard errors that each source alone would give:\n", sep = "")
  print(cbind(x$coefficients[, 5:6, drop = FALSE], x$errors), digits = digits)
}

print_budget <- function(budget, eps, delta) {
  cat("Budget (eps = ", format(eps), ", delta = ", format(delta), " in all):\n", sep = "")
  shown <- unstamped(budget)[c("step", "mechanism", "rows", "eps", "delta")]
  print(shown, row.names = FALSE, right = FALSE)
  cat("\n")
}
