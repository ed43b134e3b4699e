#' How a private selection would behave: for the curator only
#'
#' The law of [dp_select()] (with `fit = NULL`) under every combination of settings: how likely each model
#' and term is, how often the choice agrees with the one that needs no privacy. **Nothing here is private,
#' and nothing may be released**: the probabilities are functions of the confidential rows.
#'
#' @inheritParams dp_select
#' @param eps,radius,penalty,mechanism Values to combine.
#' @param draws,seed Used where there are too many models to list.
#' @param x A study.
#' @param digits The number of digits after the point.
#' @param ... Not used.
#' @returns An object of class `selection_study`: a plain list of `settings` (a data frame), `models` (a
#'   logical matrix, models by terms), and by setting `probabilities` (models by settings),
#'   `frequencies` (terms by settings), `agreement` and `relative_rsquared` (data frames).
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' selection_study(mpg ~ wt + hp, mtcars, schema, eps = c(1, 10, 100))
#' @export
selection_study <- function(formula, data, schema, eps = 1, radius = NULL, penalty = "auto",
                            mechanism = "permute-and-flip", neighbors = "replace-one",
                            contributions = 1, units = "term", keep = "(Intercept)",
                            max_terms = NULL, hierarchy = "none", clip = 1, center = TRUE,
                            sigma2 = NULL, false_inclusions = 0.1, engine = "auto", draws = 200,
                            seed = 0, progress = FALSE) {
  call <- match.call()
  model_call("selection_study", formula, data, given_arguments(call), call, new_study)
}

new_study <- function(view, translation, call) {
  terms <- vapply(view$candidates, function(name) {
    if (name %in% names(translation$terms)) translation$terms[[name]] else name
  }, "", USE.NAMES = FALSE)
  settings <- as.data.frame(view$settings, stringsAsFactors = FALSE)
  models <- matrix(view$models == 1, ncol = length(terms), dimnames = list(NULL, terms))
  kept <- vapply(view$kept, function(name) translation$terms[[name]], "", USE.NAMES = FALSE)
  names <- apply(models, 1, function(model) paste(c(kept, terms[model]), collapse = " + "))
  rownames(models) <- names
  likely <- order(-rowMeans(view$probabilities))
  by_term <- function(x) matrix(x, length(terms), dimnames = list(terms, NULL))
  structure(
    list(
      call = public_call(call), formula = full_formula(translation), privacy = view$privacy,
      n_models = as.double(view$n_models), exact = view$exact, settings = settings,
      models = models[likely, , drop = FALSE],
      probabilities = matrix(view$probabilities[likely, ], length(likely),
                             dimnames = list(names[likely], NULL)),
      frequencies = by_term(view$frequencies), frequency_errors = by_term(view$frequency_errors),
      agreement = cbind(settings, same.score = view$agreement[, 1], bic = view$agreement[, 2],
                        same.score.choice = names[view$same_score], bic.choice = names[view$bic]),
      relative_rsquared = cbind(settings, stats::setNames(as.data.frame(view$rsquared),
                                                          c("relative", "expected", "bic")))
    ),
    class = "selection_study"
  )
}

#' @rdname selection_study
#' @export
print.selection_study <- function(x, digits = 3, ...) {
  warn <- paste0("*** ", x$privacy, " ***\n")
  cat(warn, "Study of private selection: ", deparse1(x$formula), "\n", format(x$n_models),
      " models, ", if (x$exact) "exact probabilities" else "shares of draws", "\n\n", sep = "")
  cat("Chance that a term is selected, and of the choice that needs no privacy:\n")
  print(cbind(x$settings, round(t(x$frequencies), digits),
              same.score = round(x$agreement$same.score, digits),
              bic = round(x$agreement$bic, digits)), row.names = FALSE)
  cat(warn)
  invisible(x)
}

#' Plan a private selection
#'
#' Predicts from no data at all what [dp_select()] would find: the chance of finding effects of a given
#' size, or the least `n` or `eps` at which they are found.
#'
#' @inheritParams dp_select
#' @param effects Named numbers: coefficients by term of one column, in their own units where there are a
#'   formula and a schema; else numbers in scaled units.
#' @param sigma The standard deviation of the errors, in units of the response.
#' @param n,eps Give both for the chance, or one for the least other.
#' @param chance The chance with which all effects are to be found.
#' @param candidates The number of terms that could be chosen, where there is no formula.
#' @param formula An R formula without `.`, or `NULL`.
#' @param schema The public facts about its columns, as a list.
#' @param sd Named numbers: standard deviations of columns given the others.
#' @param x A plan.
#' @param ... Not used.
#' @returns An object of class `dp_plan`: a plain list with `n`, `eps`, `solved` (which of them was
#'   found), `found`, `right`, `useless`, `each` and `rule_of_thumb`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(price = c(0, 1000), bsqft = c(300, 4000), age = c(0, 100))
#' dp_plan(c(bsqft = 0.1), sigma = 80, n = 5000, formula = price ~ bsqft + age, schema = schema)
#' @export
dp_plan <- function(effects, sigma, n = NULL, eps = NULL, chance = 0.8, candidates = NULL,
                    formula = NULL, schema = NULL, sd = NULL, mechanism = "auto",
                    neighbors = "replace-one", contributions = 1, keep = "(Intercept)",
                    max_terms = NULL, radius = NULL, clip = 1, center = TRUE, penalty = "auto",
                    sigma2 = NULL, false_inclusions = 0.1, fit = "split") {
  call <- match.call()
  given <- setdiff(names(call), c("", "formula"))
  arguments <- stats::setNames(lapply(given, get, envir = environment()), given)
  arguments["schema"] <- list(plain_schema(schema))
  translation <- NULL
  if (!is.null(formula)) {
    if (!is.list(schema)) {
      dpreg_stop("schema_error", "a plan with a formula needs its schema as a list.")
    }
    columns <- as.data.frame(stats::setNames(rep(list(numeric()), length(schema)), names(schema)),
                             optional = TRUE)
    translation <- translate_formula(formula, columns)
    arguments$formula <- translation$patsy
    names(arguments$effects) <- to_python(names(effects), translation)
    if (!is.null(arguments$keep)) {
      arguments$keep <- as.list(python_term_names(keep, translation, "keep"))
    }
    if (!is.null(sd)) names(arguments$sd) <- to_python(names(sd), translation)
  }
  for (name in intersect(c("effects", "sd"), given)) arguments[[name]] <- as.list(arguments[[name]])
  view <- python_call("plan", arguments, call = head_of(call))
  terms <- if (is.null(translation)) view$terms else from_python(view$terms, translation)
  view$each <- stats::setNames(view$each, terms)
  structure(c(list(call = public_call(call)), view[setdiff(names(view), "terms")]),
            class = "dp_plan")
}

to_python <- function(names, translation) {
  found <- match(names, translation$terms)
  ifelse(is.na(found), names, base::names(translation$terms)[found])
}

from_python <- function(names, translation) {
  found <- unname(translation$terms[names])
  ifelse(is.na(found), names, found)
}

#' @rdname dp_plan
#' @export
print.dp_plan <- function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}
