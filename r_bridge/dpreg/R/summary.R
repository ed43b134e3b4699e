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
summary.dp_result <- strict(function(object, level = 0.95, full = FALSE, ratios = FALSE, ...) {
  regression <- inherits(object, "dp_ols") || !is.null(object$regression)
  fit <- if (regression) fitted_part(object, "summary()")
  own <- Filter(Negate(is.null), unclass(object))
  out <- c(own, fit[setdiff(names(fit), names(own))]) # a selection, with what its fit has besides
  out[c("regression", "estimates")] <- NULL
  if (is.null(object$level) && is.null(object$stability)) out$terms <- NULL
  if (regression) {
    limits <- unstamped(confint.dp_result(fit, level = level))
    out$coefficients <- cbind(coefficient_table(fit), limits)
    out$errors <- cbind(Sampling = fit$se_sampling, Privacy = fit$se_privacy)
    if (inherits(fit, "dp_glm")) {
      out[c("converged", "offset")] <- list(fit$converged, names(fit$design$offset$variables))
      if (ratios) out$ratios <- exp(cbind(fit$coefficients, limits))
      if (ratios) colnames(out$ratios)[1] <- if (fit$link == "logit") "odds ratio" else "rate ratio"
    } else if (ratios) {
      dpreg_stop("argument_error", "ratios are for results of dp_glm(); a linear model has none.")
    }
  }
  out[c("level", "full")] <- list(level, full)
  structure(out, class = c(paste0("summary.", class(object)[1]), "summary.dp_result"))
})

coefficient_table <- function(fit) {
  error <- std_errors(fit)
  z <- fit$coefficients / error
  cbind(Estimate = fit$coefficients, `Std. Error` = error, `z value` = z,
        `Pr(>|z|)` = error_pvalues(fit))
}

unstamped <- function(x) marked(x, NULL)

#' @rdname summary.dp_result
#' @export
print.summary.dp_result <- strict(function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  heading(x)
  if (!x$full) return(invisible(print_screen(x, digits)))
  if (!is.null(x$which)) cat("Selected: ", deparse1(x$selected_formula), "\n\n", sep = "")
  print_groups(x$groups)
  if (!is.null(x$coefficients)) {
    told <- cbind(x$coefficients, x$errors)
    if (all(is.na(told[, 2]))) told <- told[, 1, drop = FALSE]
    print(told, digits = digits)
    cat("\n")
  }
  print_ratios(x, digits)
  if (!is.null(x$estimates)) {
    print(x$estimates, digits = digits, row.names = FALSE)
    cat("\n")
  }
  if (!is.null(x$stretched)) paragraph("", x$stretched)
  if (!is.null(x$sufficient)) {
    cat("\nReleased sufficient statistics:\n")
    print(x$sufficient, digits = digits)
  }
  if (!is.null(x$estimates)) cat("\n")
  print_record(x)
  invisible(x)
}, print_options)

#' @rdname dp_estimate
#' @export
print.summary.dp_estimate <- print.summary.dp_result

# What Python's whole page says beside the estimates, what was paid and claimed, and all notes.
print_record <- function(x) {
  for (block in x$page) print_block(block)
  paragraph("Privacy: ", x$privacy)
  for (i in seq_along(x$notes)) paragraph(paste0("[", i, "] "), x$notes[i])
}

print_block <- function(block) {
  if (!is.null(block$facts)) {
    paragraph("", paste0(names(block$facts), ": ", block$facts, collapse = "; "))
  } else if (!is.null(block$text)) {
    paragraph("", block$text)
  } else {
    if (nzchar(block$title)) cat(block$title, ":\n", sep = "")
    cells <- matrix(block$cells, ncol = length(block$heads))
    print(structure(cells, dimnames = list(rep("", nrow(cells)), block$heads)), quote = FALSE)
  }
  cat("\n")
}

print_ratios <- function(x, digits) {
  if (!is.null(x$ratios)) print(x$ratios[, !apply(is.na(x$ratios), 2, all), drop = FALSE], digits = digits)
}

# One screen: rows, cost, the table with the noise's share of the variance and marks, and what not to trust.
print_screen <- function(x, digits) {
  said(x, c("Rows", "Cost"))
  if (!is.null(x$which)) {
    paragraph("Selected: ", deparse1(x$selected_formula))
    print_groups(x$groups)
    if (is.null(x$coefficients)) for (block in x$page) if ("term" %in% block$heads) print_block(block)
  }
  if (!is.null(x$coefficients)) print_table(x, digits)
  if (!is.null(x$estimates)) {
    shown <- x$estimates[setdiff(names(x$estimates), c("se_sampling", "se_privacy"))]
    shown$noise <- noise_share(x$estimates$se_privacy, x$estimates$std.error)
    print_shown(shown, digits = digits, row.names = FALSE)
  }
  print_ratios(x, digits)
  said(x, "Assumes")
  cat("Privacy: ", if (is.null(x$estimates)) "formula, schema and the call are" else "the call is",
      " public; $privacy has the claim.\n", sep = "")
  print_warnings(x)
  x
}

noise_share <- function(privacy, error) {
  share <- pmin((privacy / error)^2, 1)
  ifelse(is.na(share), "", paste0(round(100 * share), "%"))
}

# A table, and what is beneath it of its last columns.
print_shown <- function(shown, marks = NULL, ...) {
  cat("\n")
  print(shown, ...)
  cat("\n")
  if (length(marks)) paragraph("Mark: ", paste0(paste(marks, collapse = "; "), "."))
  if (any(tolower(names(shown)) == "noise")) {
    cat("Noise: the share of the variance (squared standard error) that privacy adds.\n")
  }
}

# What Python's page says, line by line.
said <- function(x, names) for (name in names) paragraph(paste0(name, ": "), x$screen[[name]])

# Severe notes whole, and how many there are besides.
print_warnings <- function(x) {
  severe <- x$notes[x$severe %in% TRUE]
  others <- length(x$notes) - length(severe)
  if (others) cat("Details: summary(fit, full = TRUE) has ", others, " more note", if (others > 1) "s", ".\n", sep = "")
  for (note in severe) paragraph("Warning: ", note)
}

print_table <- function(x, digits) {
  numbers <- function(values) vapply(values, function(value) format(signif(value, digits)), "")
  table <- x$coefficients
  marks <- mark_letters(x)
  shown <- data.frame(Estimate = numbers(table[, 1]), row.names = rownames(table))
  if (!all(is.na(table[, 2]))) {
    limits <- apply(table[, 5:6, drop = FALSE], 2, numbers)
    shown <- cbind(shown, `Std. Error` = numbers(table[, 2]), `Pr(>|z|)` = format.pval(table[, 4], digits = 3),
                   matrix(limits, nrow(table), dimnames = list(NULL, colnames(table)[5:6])),
                   Noise = noise_share(x$errors[, "Privacy"], table[, 2]))
  }
  shown$Mark <- if (any(nzchar(marks$letters))) marks$letters
  print_shown(shown, marks$said, right = TRUE)
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

# What a page begins with.
heading <- function(x) {
  what <- if (inherits(x, c("dp_estimate", "summary.dp_estimate"))) {
    estimate_title(x)
  } else if (inherits(x, c("dp_select", "summary.dp_select"))) {
    "variable selection"
  } else {
    switch(x$family %||% "", binomial = "logistic regression", poisson = "Poisson regression",
           quasipoisson = "quasi-Poisson regression", "linear regression")
  }
  if (isTRUE(x$seeded)) cat("*** ", stamp, " ***\n", sep = "")
  cat("Differentially private ", what, "\n\n", sep = "")
  cat("Call:\n", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
}

paragraph <- function(head, text) {
  cat(strwrap(paste0(head, text), width = 0.95 * getOption("width"), exdent = 4), sep = "\n")
}

print_groups <- function(groups) {
  if (length(groups)) paragraph("One of: ", paste(braced(groups), collapse = "; "))
}

# "{a, b}" for each group of terms that the release cannot tell apart.
braced <- function(groups) vapply(groups, function(group) sprintf("{%s}", paste(group, collapse = ", ")), "")
