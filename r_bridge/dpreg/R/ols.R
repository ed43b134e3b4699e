#' Fit a linear model with differential privacy
#'
#' Coefficients of a fixed formula, with standard errors that hold sampling error and privacy noise
#' together. [dp_select()] explains formulas, schemas and conditions.
#'
#' @inheritParams dp_select
#' @param delta Above 0 it allows Gaussian noise; `"ssp"` and `"adassp"` need it.
#' @param shares A named list: the part of `eps` for `bounds`, where the schema leaves some out.
#' @param method `"adaptive"` looks at the rows three to five times, each time at the fit that the looks before gave: robust errors,
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
dp_ols <- function(formula, data, eps, delta = 0, schema = NULL, method = "auto", neighbors = "replace-one",
                   contributions = NULL, person = NULL, shares = NULL, budget = NULL, analyst = NULL,
                   progress = NULL, unsafe_seed = NULL, ...) {
  no_more(..., .harmless = retired$dp_ols)
  call <- match.call()
  required(formula, data, eps)
  arguments <- c(given_arguments(call[!names(call) %in% retired$dp_ols]), flat_arguments("dp_ols", ...))
  model_call("dp_ols", formula, data, arguments, call, new_regression)
}
