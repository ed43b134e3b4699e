#' @rdname summary.dp_result
#' @export
print.dp_result <- strict(function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  heading(x)
  if (inherits(x, "dp_select")) {
    cat("Selected: ", deparse1(x$selected_formula), "\n", sep = "")
    print_groups(x$groups)
    cat("\n")
    if (length(x$models) > 1) {
      cat("Selection frequencies (", length(x$models), " draws):\n", sep = "")
      print(x$selection_frequencies, digits = digits)
      cat("\n")
    }
  }
  fit <- if (inherits(x, "dp_ols")) x else x$regression
  if (!is.null(fit)) {
    cat("Coefficients:\n")
    print(format(fit$coefficients, digits = digits), quote = FALSE)
    cat("\n")
  }
  print_cost(x)
}, print_options)

cost <- function(x) paste0("eps = ", format(x$eps), ", delta = ", format(x$delta))

# The foot of a result that is printed.
print_cost <- function(x) {
  cat("Privacy: ", cost(x), " (", x$neighbors, if (isTRUE(x$seeded)) paste0("; ", stamp), ")\n", sep = "")
  print_warnings(x)
  invisible(x)
}

#' Show a private result in R Markdown
#'
#' A result that stands at the end of a chunk is shown as tables.
#'
#' @param x A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param digits The number of digits after the point.
#' @param ... Not used.
#' @returns What [knitr::knit_print()] returns.
#' @exportS3Method knitr::knit_print
knit_print.dp_result <- function(x, digits = 4, ...) {
  summary <- summary.dp_result(x)
  knit_page(
    x$seeded,
    if (!is.null(summary$which)) paste0("Selected: `", deparse1(x$selected_formula), "`\n"),
    if (length(x$groups)) paste0("One of: ", paste0("`", braced(x$groups), "`", collapse = "; "), "\n"),
    if (!is.null(summary$terms)) knit_table(summary$terms[c("term", "kept", "selected", "level", "se")], "Terms", digits = 4),
    if (length(x$models) > 1) {
      knit_table(data.frame(term = x$candidates, frequency = unname(x$selection_frequencies)),
                 paste("Selection frequencies over", length(x$models), "draws"))
    },
    if (!is.null(summary$coefficients)) {
      knit_table(summary$coefficients, paste0("Coefficients and ", 100 * summary$level, "% intervals"),
                 digits = digits)
    },
    knit_claim(x)
  )
}

knit_claim <- function(x) {
  c(knit_table(unstamped(x$budget)[c("step", "mechanism", "rows", "eps", "delta")], "Privacy budget"), paste0(x$privacy, "\n"))
}

# Parts of a page, under the stamp: TRUE for that of a seeded result, or a text.
knit_page <- function(warn, ...) {
  if (isTRUE(warn)) warn <- stamp
  head <- if (is.character(warn)) paste0("**", warn, "**\n")
  knitr::asis_output(paste(c(head, unlist(list(...))), collapse = "\n"))
}

knit_table <- function(frame, caption, ...) {
  paste(c("", knitr::kable(frame, format = "pipe", caption = caption, ...), ""), collapse = "\n")
}
