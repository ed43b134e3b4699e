# What stats asks of a fitted model, from the released numbers alone.

# The regression inside: of a dp_select its own, which fit = NULL leaves out.
fitted_part <- function(object, what) {
  if (inherits(object, "dp_ols")) return(object)
  if (inherits(object, "dp_estimate")) refuse_release(what, "this is no regression")
  if (is.null(object$regression)) {
    dpreg_stop(
      "not_released", what, " is not released: this call had fit = NULL, which selects and fits ",
      'nothing. Call dp_select() with fit = "split", or spend more budget on dp_ols(',
      deparse1(object$selected_formula), ", ...)."
    )
  }
  object$regression
}

#' Methods for fitted objects
#'
#' The functions that work on an [lm()] work on the results of [dp_select()] and [dp_ols()], with the
#' same names for coefficients: `(Intercept)`, `countycc`, `log(x)`. None of them needs Python.
#' What is computed from single rows is never released: `residuals()`, `fitted()`, `deviance()`,
#' `logLik()` and their like fail with a condition of class `dpreg_not_released` that says why.
#'
#' @param object,x A result of [dp_select()] or [dp_ols()].
#' @param parm Names or numbers of coefficients; by default all.
#' @param level The level of the intervals.
#' @param which For a selection: the formula of the `"selected"` model, or the `"full"` one.
#' @param formula. A change of the full formula, as in [update.formula()].
#' @param evaluate Evaluate the new call or return it?
#' @param row.names,optional Not used.
#' @param ... Further arguments; for `update()`, arguments of the call.
#' @returns As for an [lm()]. `coef()` is a named vector; `vcov()` a matrix, sampling error and privacy
#'   noise together; `confint()` a matrix, from the normal law or from the released bootstrap draws;
#'   `nobs()` is `NA` where the number of rows is private.
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
coef.dp_result <- function(object, ...) {
  stamped(fitted_part(object, "coef()")$coefficients, object$seeded)
}

#' @rdname dp_result
#' @export
vcov.dp_result <- function(object, ...) {
  stamped(fitted_part(object, "vcov()")$vcov, object$seeded)
}

#' @rdname dp_result
#' @export
confint.dp_result <- function(object, parm, level = 0.95, ...) {
  fit <- fitted_part(object, "confint()")
  check_level(level)
  tails <- c((1 - level) / 2, (1 + level) / 2)
  limits <- if (is.null(fit$interval_draws)) {
    fit$coefficients + outer(std_errors(fit), stats::qnorm(tails))
  } else {
    draw_limits(unname(fit$interval_draws), tails)
  }
  dimnames(limits) <- list(names(fit$coefficients), percent_names(tails))
  if (!missing(parm)) limits <- limits[check_parm(parm, rownames(limits)), , drop = FALSE]
  stamped(limits, object$seeded)
}

# Names or numbers of what there is.
check_parm <- function(parm, names) {
  if (is.character(parm) || is.factor(parm)) {
    unknown <- setdiff(as.character(parm), names)
    parm <- as.character(parm)
  } else {
    unknown <- if (is.numeric(parm)) parm[is.na(parm) | abs(parm) > length(names)] else character()
  }
  if (length(unknown)) {
    dpreg_stop("argument_error", "parm: there is no ", listed(unknown), "; there are ", listed(names), ".")
  }
  parm
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
formula.dp_result <- function(x, which = c("selected", "full"), ...) {
  which <- match.arg(which)
  if (which == "full" || is.null(x$selected_formula)) x$formula else x$selected_formula
}

#' @rdname dp_result
#' @export
terms.dp_result <- function(x, ...) stats::terms(stats::formula(x))

#' @rdname dp_result
#' @export
nobs.dp_result <- function(object, ...) object$nobs %||% NA_integer_

#' @rdname dp_result
#' @export
sigma.dp_result <- function(object, ...) fitted_part(object, "sigma()")$sigma %||% NA_real_

#' @rdname dp_result
#' @export
df.residual.dp_result <- function(object, ...) {
  fitted_part(object, "df.residual()")$df.residual %||% NA_real_
}

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
  if (!evaluate) return(call)
  say_once("update", "the call is made again, and spends its eps anew; with budget = dp_ledger() that is counted.")
  eval(call, parent.frame())
}

# A message that is given once in a session.
say_once <- function(what, ...) {
  if (isTRUE(the$said[[what]])) return(invisible())
  the$said[[what]] <- TRUE
  dpreg_message(..., " (Said once in a session.)")
}

refuse_release <- function(what, reason) {
  dpreg_stop("not_released", what, " is not released: ", reason, ".")
}

one_per_row <- paste("there is one number for each row, and each would disclose that row. Use",
                     "predict() on a data frame that you may see")
exact_sums <- paste("it is computed from the exact residual sum of squares. To choose between models",
                    "privately, use dp_select()")

#' @export
residuals.dp_result <- function(object, ...) refuse_release("residuals()", one_per_row)

#' @export
fitted.dp_result <- function(object, ...) refuse_release("fitted()", one_per_row)

#' @export
model.frame.dp_result <- function(formula, ...) {
  refuse_release("model.frame()", "it would hold the rows")
}

#' @export
hatvalues.dp_result <- function(model, ...) refuse_release("hatvalues()", one_per_row)

#' @export
deviance.dp_result <- function(object, ...) refuse_release("deviance()", exact_sums)

#' @export
logLik.dp_result <- function(object, ...) refuse_release("logLik()", exact_sums)
