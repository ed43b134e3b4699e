# What stats asks of a fitted model, from the released numbers alone.

# The regression inside: of a dp_select its own, which fit = NULL leaves out.
fitted_part <- function(object, what) {
  if (inherits(object, "dp_ols")) return(object)
  if (inherits(object, "dp_estimate")) refuse_release(what, "this is not a regression")
  if (is.null(object$regression)) {
    dpreg_stop(
      "not_released", what, " is not released: this call had fit = NULL, which selects and fits ",
      'nothing. Call dp_select() with fit = "split", or spend more budget on ',
      if (is.null(object$family)) "dp_ols(" else "dp_glm(",
      deparse1(object$selected_formula), ", ...)."
    )
  }
  object$regression
}

#' Methods for fitted objects
#'
#' The functions that work on an [lm()] work on the results of [dp_select()] and [dp_ols()], and those that work on
#' a [glm()] on the results of [dp_glm()], with the same names for coefficients: `(Intercept)`, `countycc`,
#' `log(x)`. None of them needs Python, but for intervals and p-values of a result of dpreg 0.2 with `fit = "same"`.
#' What is computed from single rows is never released: `residuals()`, `fitted()`, `deviance()`,
#' `logLik()` and their like fail with a condition of class `dpreg_not_released` that says why.
#'
#' @param object,x A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param parm Names or numbers of coefficients; by default all.
#' @param level The level of the intervals.
#' @param which For a selection: the formula of the `"selected"` model, or the `"full"` one.
#' @param formula. A change of the full formula, as in [update.formula()].
#' @param evaluate Evaluate the new call or return it?
#' @param row.names,optional,stringsAsFactors Not used.
#' @param ... For `update()`, arguments of the call, `data` among them where the call keeps no name of it; for
#'   `as.data.frame()`, those of `tidy()`. Else none: an argument that this page does not name is refused by its name,
#'   unread, as are `vcov = "HC1"` and the like.
#' @returns As for an [lm()]. `coef()` is a named vector; `vcov()` a matrix, sampling error and privacy
#'   noise together; `confint()` a matrix, from the law of both errors or from the released bootstrap
#'   draws; `nobs()` is the noisy number of complete rows that the fit released, or `NA`; the element `nobs` is the public
#'   number of all rows, incomplete ones among them. After [dp_select()] with `fit = "same"`
#'   both `coef()` and `confint()` account for the choice, coefficient by coefficient, and `vcov()` is not
#'   released.
#' @name dp_result
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_ols(mpg ~ wt + hp, mtcars, eps = 1000, schema = schema)
#' coef(fit)
#' vcov(fit)
#' confint(fit, "wt")
NULL

#' @rdname dp_result
#' @export
coef.dp_result <- strict(function(object, ...) {
  stamped(fitted_part(object, "coef()")$coefficients, object$seeded)
}, "complete")

#' @rdname dp_result
#' @export
vcov.dp_result <- strict(function(object, ...) {
  fit <- fitted_part(object, "vcov()")
  refuse_given(fit, "vcov()")
  stamped(fit$vcov, object$seeded)
}, "complete")

#' @rdname dp_result
#' @export
confint.dp_result <- strict(function(object, parm, level = 0.95, ...) {
  estimates <- inherits(object, "dp_estimate")
  fit <- if (estimates) object else fitted_part(object, "confint()")
  check_level(level)
  limits <- if (estimates) estimate_limits(fit, level) else coefficient_limits(fit, level)
  dimnames(limits) <- list(names(fit$coefficients), percent_names(c((1 - level) / 2, (1 + level) / 2)))
  if (!missing(parm)) limits <- limits[check_parm(parm, rownames(limits)), , drop = FALSE]
  stamped(limits, object$seeded)
})

#' @rdname dp_estimate
#' @export
confint.dp_estimate <- confint.dp_result

# The places of what is asked for by names or numbers.
check_parm <- function(parm, names) {
  if (is.factor(parm)) parm <- as.character(parm)
  places <- stats::setNames(seq_along(names), names)[parm]
  if (anyNA(places)) {
    dpreg_stop("argument_error", "parm: there is no ", listed(parm[is.na(places)]), "; there are ", listed(names), ".")
  }
  places
}

percent_names <- function(tails) {
  paste(format(100 * tails, trim = TRUE, scientific = FALSE, digits = 3), "%")
}

check_level <- function(level) {
  if (!is.numeric(level) || length(level) != 1 || is.na(level) || level <= 0 || level >= 1) {
    dpreg_stop("argument_error", "level must be a number between 0 and 1.")
  }
}

std_errors <- function(fit) {
  variances <- diag(as.matrix(fit$vcov))
  stats::setNames(sqrt(positive(variances)), names(fit$coefficients))
}

#' @rdname dp_result
#' @export
formula.dp_result <- strict(function(x, which = c("selected", "full"), ...) {
  which <- match.arg(which)
  if (which == "full" || is.null(x$selected_formula)) x$formula else x$selected_formula
})

#' @rdname dp_result
#' @export
terms.dp_result <- strict(function(x, ...) {
  fit <- if (inherits(x, "dp_ols")) x else x$regression
  made <- stats::terms(stats::formula(x))
  if (!is.null(fit)) attr(made, "dataClasses") <- data_classes(fit, made)
  made
})

# What model.frame() would note of each variable; of the fit's own, no rows are needed for it.
data_classes <- function(fit, terms) {
  labels <- vapply(as.list(attr(terms, "variables"))[-1], label_of, "")
  none <- lapply(fit$schema, function(spec) {
    if (is.logical(spec)) logical() else if (is.numeric(spec)) numeric() else levels_of(spec)[0]
  })
  known <- c(fit$design$variables, stats::setNames(list(fit$design$response), fit$response), parts_of_offset(terms))
  # What R made bins of is in no schema of Python's.
  others <- setdiff(unlist(lapply(known[labels], all.vars)), names(none))
  none[others] <- rep(list(numeric()), length(others))
  none <- structure(none, class = "data.frame", row.names = integer())
  values <- design_values(list(variables = known[labels]), none, fit$schema)
  classes <- vapply(values, function(value) {
    if (is.list(value)) return(if (identical(value$texts, c("FALSE", "TRUE"))) "logical" else "factor")
    if (is.matrix(value)) paste0("nmatrix.", ncol(value)) else "numeric"
  }, "")
  stats::setNames(classes, labels)
}

#' @rdname dp_result
#' @export
labels.dp_result <- strict(function(object, ...) attr(stats::terms(object), "term.labels"))

#' @rdname dp_result
#' @export
variable.names.dp_result <- strict(function(object, ...) {
  names(fitted_part(object, "variable.names()")$coefficients)
}, "full")

#' @rdname dp_result
#' @export
weights.dp_result <- strict(function(object, ...) NULL, "type")

#' @rdname dp_result
#' @export
family.dp_result <- strict(function(object, ...) {
  fit <- fitted_part(object, "family()")
  if (inherits(fit, "dp_glm")) made_family(fit) else stats::gaussian()
})

#' @rdname dp_result
#' @export
format.dp_result <- strict(function(x, ...) {
  what <- if (inherits(x, "dp_estimate")) x$statistic else deparse1(stats::formula(x))
  paste0("<", class(x)[1], ": ", what, ", ", cost(x), if (isTRUE(x$seeded)) paste0("; ", stamp), ">")
}, c("digits", "width"))

#' @rdname dp_result
#' @export
toString.dp_result <- strict(function(x, ...) format.dp_result(x), "collapse")

#' @rdname dp_result
#' @param data A data frame of the analyst's own, for the model matrix of its rows.
#' @export
model.matrix.dp_result <- strict(function(object, data = NULL, ...) {
  fit <- fitted_part(object, "model.matrix()")
  if (is.null(data)) refuse_release("model.matrix()", "it would hold the rows. Give a data frame of your own as data")
  data <- as_newdata(data)
  x <- design_matrix(fit, data)
  dimnames(x) <- list(row.names(data), names(fit$coefficients))
  x
})

#' @rdname dp_result
#' @export
nobs.dp_result <- strict(function(object, ...) rows_used(object), "use.fallback")

# How many rows a fit has used, by the noisy count that it released: the public number counts incomplete ones, too.
rows_used <- function(object) {
  fit <- if (inherits(object, "dp_select")) object$regression else object
  count <- fit$complete_rows
  if (length(count) != 1 || !is.finite(count)) return(NA_integer_)
  as.integer(min(max(round(count), 0), fit$nobs %||% .Machine$integer.max))
}

#' @rdname dp_result
#' @export
sigma.dp_result <- strict(function(object, ...) fitted_part(object, "sigma()")$sigma %||% NA_real_, "use.fallback")

#' @rdname dp_result
#' @export
df.residual.dp_result <- strict(function(object, ...) fitted_part(object, "df.residual()")$df.residual %||% NA_real_)

#' @rdname dp_result
#' @export
update.dp_result <- function(object, formula., ..., evaluate = TRUE) {
  call <- object$call
  call$formula <- object$formula
  if (!missing(formula.)) {
    call$formula <- bare_formula(stats::update.formula(object$formula, formula.))
  }
  changes <- match.call(expand.dots = FALSE)$...
  for (name in names(changes)) call[name] <- changes[name] # an argument may be NULL
  for (name in setdiff(names(call), "")) {
    if (identical(call[[name]], placeholder(name))) {
      dpreg_stop("argument_error", "the call does not keep what was typed as ", name, ", as it might hold cells or a ",
                 "password: give ", name, " again.")
    }
  }
  # Another package may have attached a function of the same name. waldtest() and others evaluate the call themselves.
  call[[1]] <- call("::", quote(dpreg), called_name(call[[1]]))
  say_once("update", "each refit is a call of its own and spends its eps anew; with budget = dp_ledger() that ",
           "is counted.")
  if (evaluate) eval(call, parent.frame()) else call
}

# A message that is given once in a session.
say_once <- function(what, ...) {
  if (isTRUE(the$said[[what]])) return(invisible())
  the$said[[what]] <- TRUE
  dpreg_message(..., " (Said once in a session.)")
}
