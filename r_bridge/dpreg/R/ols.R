#' Fit a linear model with differential privacy
#'
#' Coefficients of a fixed formula, with standard errors that hold sampling error and privacy noise
#' together. [dp_select()] explains formulas, schemas and conditions.
#'
#' @inheritParams dp_select
#' @param delta Above 0 it allows Gaussian noise; `"ssp"` and `"adassp"` need it.
#' @param offset A column, or an expression of columns, whose coefficient is 1: the model is of the response less the
#'   offset, and so is what [predict()] gives.
#' @param weights A column with declared bounds from 0 up: a row counts by its weight, as in [lm()]. The upper bound is
#'   the cap, from public knowledge: larger weights count as it. Needs looks.
#' @param vcov Which standard errors are wanted: `"HC"` (robust) or, with `person`, `"cluster"`, which looks give;
#'   `"iid"`, which `"gram"` gives. `NULL` takes what the method gives. Others are refused with the reason.
#' @param shares A named list: the part of `eps` for `bounds`, where the schema leaves some out.
#' @param method `"adaptive"` looks at the rows four or five times, each time at the fit that the looks before gave: robust errors,
#'   clustered where `person` is given (the old name, `"staged"`, works with a warning);
#'   `"gram"` releases the matrix of moments once, which does better where rows are few. `"auto"` takes
#'   one of them by a public rule, and a note says why. `"objective"` gives coefficients alone, nearer where rows are few;
#'   it spends no `delta`, needs an intercept, and takes no `person`. `"ssp"` and `"adassp"` are published alternatives that
#'   give coefficients alone, and need `delta`. [Adaptive()], [Gram()] and so on have options as well.
#' @returns An object of class `dp_ols`: a plain list with, among others, `coefficients`, `vcov`,
#'   `se_sampling`, `se_privacy`, `sigma`, `budget` and `privacy`; of an adaptive fit also `looks`, `cov_type` (`"HC"` or `"cluster"`) and `marks`,
#'   which says of each coefficient whether it is above the noise. It has the methods that
#'   [dp_select()] lists.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_ols(mpg ~ wt + log(hp), mtcars, eps = 1000, schema = schema)
#' coef(fit)
#' confint(fit, level = 0.9)
#' predict(fit, data.frame(wt = 3, hp = 110), se.fit = TRUE)
#' @export
dp_ols <- function(formula, data, eps, delta = 0, schema = NULL, subset = NULL, offset = NULL, weights = NULL,
                   method = "auto", vcov = NULL, neighbors = "replace-one", contributions = NULL, person = NULL,
                   shares = NULL, budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  asked <- received("dp_ols", ..., .apart = c("offset", "weights", "vcov"))
  asked$arguments$cov_type <- wanted_errors(vcov)
  asked$own <- c("offset", "weights")
  model_call(asked, new_regression)
}

# Python's word for the errors that are asked for, by the words of sandwich, fixest and others.
wanted_errors <- function(vcov) {
  if (is.null(vcov)) return(NULL)
  if (!is_name(vcov)) {
    dpreg_stop("argument_error", "vcov must be \"HC\", \"cluster\" or \"iid\": no formula, function or matrix.")
  }
  words <- c(hetero = "HC", iid = "nonrobust", const = "nonrobust")
  if (vcov %in% names(words)) words[[vcov]] else vcov
}
