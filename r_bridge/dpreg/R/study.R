#' How a private selection would behave: for the curator only
#'
#' The law of [dp_select()] (with `fit = NULL`) under every combination of settings: how likely each model
#' and term is, how often the choice agrees with the one that needs no privacy. **Nothing here is private,
#' and nothing may be released**: the probabilities are functions of the confidential rows.
#'
#' @inheritParams dp_select
#' @param eps,delta Values to combine; `delta` with `method = "adaptive"`.
#' @param method `"pcls"` or [PCLS()], of which several values of radius, penalty and mechanism are combined, and whose law is exact where the models can be listed, or `"adaptive"`, whose looks are made
#'   anew in each of the `draws`.
#' @param draws,seed Used where there are too many models to list.
#' @param x A study.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object of class `selection_study`: a plain list of `settings` (a data frame), `models` (a
#'   logical matrix, models by terms), and by setting `probabilities` (models by settings),
#'   `frequencies` (terms by settings), `agreement` and `relative_rsquared` (data frames). Terms, or
#'   columns where `units = "column"`, have the names that [coef()] gives them. `as.data.frame()` is
#'   `agreement`, without the models' names, beside the frequencies. See [plot.selection_study()]. With
#'   `method = "adaptive"` an object of class `adaptive_study`: by setting `outcomes` (a data frame of means over
#'   the draws, and their standard errors), and `reported`, `in_groups` and `best`, shares of the draws
#'   (terms by settings); `bic` is what least squares with BIC chooses.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' selection_study(mpg ~ wt + hp, mtcars, schema, eps = c(1, 10, 100))
#' @export
selection_study <- function(formula, data, schema, eps = 1, delta = 0, method = "pcls", neighbors = "replace-one",
                            contributions = 1, units = "term", keep = "(Intercept)",
                            max_terms = NULL, hierarchy = "none", false_inclusions = 0.1, draws = 200,
                            seed = 0, progress = NULL, ...) {
  model_call(received("selection_study", ...), new_study)
}

new_study <- function(view, translation, call) {
  terms <- view$terms
  view$terms <- NULL
  by_terms <- intersect(c("frequencies", "frequency_errors", "reported", "in_groups", "best"), names(view))
  for (table in by_terms) rownames(view[[table]]) <- terms
  fields <- c(list(call = public_call(call), formula = full_formula(translation)), view)
  if (!is.null(view$outcomes)) return(structure(fields, class = "adaptive_study"))
  dimnames(fields$models) <- list(view$names, terms)
  rownames(fields$probabilities) <- view$names
  structure(fields[names(fields) != "names"], class = "selection_study")
}

# Python's page of a study.
#' @rdname selection_study
#' @export
print.selection_study <- strict(function(x, ...) {
  head <- switch(class(x)[1], selection_study = "Study of private selection: ", adaptive_study = "Study of selection by looks: ",
                 "Simulation study: ")
  about <- if (is.null(x$formula)) c("beta = (", paste(format(x$beta, trim = TRUE, digits = 6), collapse = ", "), ")")
  cat("*** ", x$privacy, " ***\n", head, about %||% deparse1(x$formula), "\n\n", sep = "")
  for (block in x$page) print_block(block)
  cat("*** ", x$privacy, " ***\n", sep = "")
  invisible(x)
}, c(print_options, "digits"))

#' @rdname selection_study
#' @export
print.adaptive_study <- print.selection_study

#' @rdname simulation_study
#' @export
print.simulation_study <- print.selection_study

#' @rdname selection_study
#' @param row.names,optional Not used.
#' @export
as.data.frame.selection_study <- strict(function(x, row.names = NULL, optional = FALSE, ...) {
  marked(x$outcomes %||% cbind(x$agreement[c(names(x$settings), "same.score", "bic")], t(x$frequencies)), x$privacy)
}, "stringsAsFactors")

#' @rdname selection_study
#' @export
as.data.frame.adaptive_study <- as.data.frame.selection_study

#' @rdname selection_study
#' @exportS3Method knitr::knit_print
knit_print.selection_study <- function(x, ...) {
  parts <- lapply(x$page, function(block) {
    if (is.null(block$cells)) return(paste0(block$text %||% paste0(names(block$facts), ": ", block$facts, collapse = "; "), "\n"))
    knit_table(matrix(block$cells, ncol = length(block$heads), dimnames = list(NULL, block$heads)), block$title)
  })
  knit_page(x$privacy, parts)
}

#' @rdname selection_study
#' @exportS3Method knitr::knit_print
knit_print.adaptive_study <- knit_print.selection_study

#' @rdname simulation_study
#' @exportS3Method knitr::knit_print
knit_print.simulation_study <- knit_print.selection_study
