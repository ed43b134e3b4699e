#' Plan a private selection or regression
#'
#' Predicts from no data at all what [dp_select()] would find: the chance of finding effects of a given
#' size, or the least `n` or `eps` at which they are found. With `of = "ols"`, how near the coefficients and
#' decisions of [dp_ols()] would come to those of [lm()]. With a `family`, what [dp_select()] would find among
#' the terms of a generalised linear model, or with `of = "glm"` the standard errors of [dp_glm()], or the
#' least `n` or `eps` at which it gives intervals: the same as `dp_plan_glm()`.
#'
#' @inheritParams dp_select
#' @param effects Named numbers. With a formula and a schema: coefficients in the columns' own units, by
#'   the names that [coef()] gives them, such as `countycc` for the level `cc` of the factor `county`. Else
#'   numbers in scaled units, by any names. With a family they are on the scale of the linear predictor.
#' @param sigma The standard deviation of the errors, in units of the response; a family has none.
#' @param n,eps Give both for the chance, or one for the least other.
#' @param of `"select"` for [dp_select()], where an effect is found if its term is chosen, or `"ols"` for
#'   [dp_ols()], where it is found if it is significant at 5 percent. With a family `"select"` or `"glm"`.
#' @param chance The chance with which all effects are to be found, or each of them with `of = "ols"`.
#' @param correlation Of the columns with each other.
#' @param like A data frame of rows like those to come, which are public: an earlier year's, or synthetic ones.
#' @param candidates The number of terms that could be chosen, where there is no formula.
#' @param formula An R formula, or `NULL`; `.` stands for the columns of the schema.
#' @param schema The public facts about its columns; see [dp_select()].
#' @param sd Named numbers: standard deviations of columns given the others, named as the effects.
#' @param x A plan.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object of class `dp_plan`: a plain list with `n`, `eps` and `solved` (which of them was found). Of a
#'   selection also `found`, `right`, `useless`, `each` and `rule_of_thumb`; of a regression `overlap`, `same`
#'   and `coefficients`, a data frame; of a model of a family `enough` (are intervals expected?),
#'   `coefficients` and `notes`, and of a choice of its terms `found`, `right`, `useless` and `each`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(price = c(0, 1000), bsqft = c(300, 4000), age = c(0, 100), county = c("ala", "cc"))
#' dp_plan(c(bsqft = 0.1, countycc = 70), sigma = 80, n = 5000, eps = 1,
#'         formula = price ~ bsqft + age + county, schema = schema)
#' @export
dp_plan <- function(effects = NULL, sigma = NULL, n = NULL, eps = NULL, delta = 0, of = "select", chance = 0.8, candidates = NULL,
                    formula = NULL, schema = NULL, sd = NULL, correlation = 0, like = NULL, method = "auto",
                    neighbors = "replace-one", contributions = 1, keep = "(Intercept)", max_terms = NULL,
                    false_inclusions = 0.1, fit = "auto", family = NULL, mean = NULL, spread = NULL,
                    scatter = NULL, ...) {
  asked <- received("dp_plan", ..., .apart = c("like", if (is.null(family)) "family"))
  if (!is.null(family)) {
    asked <- of_family(asked, family)
    asked$added <- function(columns) list()
    asked$arguments <- with_options(asked$arguments)
  }
  plan_call(asked, formula, like)
}

#' @rdname dp_plan
#' @param mean The mean of the response, about: a chance, or a count; not needed where `like` holds the response.
#' @param delta,noise,offset As for [dp_glm()].
#' @param family `binomial()`, `poisson()` or `quasipoisson()`; in `dp_plan()` `NULL` for a linear model.
#' @param spread The standard deviation of the linear predictor, or `NULL`.
#' @param scatter Of counts: their variance over that of the family.
#' @export
dp_plan_glm <- function(formula, schema, mean = NULL, n = NULL, eps = NULL, delta = 0, family = stats::binomial(),
                        spread = NULL, scatter = 1, sd = NULL, correlation = 0, like = NULL, offset = NULL,
                        noise = NULL, neighbors = "replace-one", contributions = 1, ...) {
  plan_call(of_family(received("dp_plan_glm", ..., .apart = c("family", "like", "offset")), family), formula, like)
}

plan_call <- function(asked, formula, like) {
  arguments <- asked$arguments
  arguments["schema"] <- list(plain_schema(arguments$schema))
  translation <- NULL
  if (!is.null(formula)) {
    if (is.null(arguments$schema)) dpreg_stop("schema_error", "a plan with a formula needs a schema.")
    declared <- python_call("schema", arguments["schema"])
    columns <- empty_columns(union(names(declared), if (!is.null(asked$added)) setdiff(all.vars(formula), ".")))
    parted <- parted_response(formula, asked, names(columns))
    translation <- translate_formula(parted$formula, columns, function(name) declared[[name]], parted$added)
    if (asked$verb == "dp_plan" && length(translation$in_formula)) {
      refuse_term(label_of(translation$in_formula[[1]]), "a plan has no offset")
    }
    if (length(translation$derived)) {
      arguments$schema <- add_derived(columns, written_schema(arguments$schema), translation)$schema
    }
    arguments[names(translation$sent)] <- translation$sent
    arguments$formula <- translation$patsy
    if (!is.null(arguments$keep)) arguments$keep <- python_terms(arguments$keep, translation)
  }
  arguments <- with_options(arguments)
  for (name in c("effects", "sd")) if (!is.null(arguments[[name]])) arguments[[name]] <- as.list(arguments[[name]])
  if (!is.null(like)) {
    if (!is.data.frame(like)) dpreg_stop("argument_error", "like must be a data frame.")
    if (is.null(translation)) dpreg_stop("argument_error", "like needs a formula and a schema.")
    if (length(translation$derived)) dpreg_stop("argument_error", "like: make the bins of cut() beforehand.")
  }
  view <- python_call(sub("dp_", "", asked$verb), arguments, like, translation$columns, translation = translation)
  structure(c(list(call = public_call(asked$call)), view), class = "dp_plan")
}

#' @rdname dp_plan
#' @export
print.dp_plan <- strict(function(x, ...) {
  cat(x$text, "\n", sep = "")
  invisible(x)
}, print_options)
