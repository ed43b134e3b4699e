# What stats offers for an lm() and no private fit can give, with the reason.

refuse_release <- function(what, reason) {
  dpreg_stop("not_released", what, " is not released: ", reason, ".")
}

one_per_row <- paste("there is one number for each row, and each would disclose that row. Use",
                     "predict() on a data frame that you may see")
exact_sums <- function(object) {
  if (inherits(object, "dp_glm")) {
    paste("it is an exact sum over the rows, and no look releases it. Compare models by intervals of their",
          "coefficients; anova() tests terms")
  } else {
    paste("it is computed from the exact residual sum of squares. To choose between models privately, use",
          "dp_select()")
  }
}

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
deviance.dp_result <- function(object, ...) refuse_release("deviance()", exact_sums(object))

#' @export
logLik.dp_result <- function(object, ...) refuse_release("logLik()", exact_sums(object))

#' @export
simulate.dp_result <- function(object, nsim = 1, seed = NULL, ...) {
  draws <- if (!inherits(object, "dp_glm")) {
    "Add draws of rnorm(n, 0, sigma(fit)) to predict() on"
  } else if (object$family == "binomial") {
    "Draw rbinom(n, 1, predict(fit, rows, type = \"response\")) for the rows of"
  } else "Draw rpois(n, predict(fit, rows, type = \"response\")) for the rows of"
  refuse_release("simulate()", paste("it would start from the fitted value of each row.", draws,
                                     "a data frame that you may see"))
}

#' @export
influence.dp_result <- function(model, ...) refuse_release("influence()", one_per_row)

#' @export
cooks.distance.dp_result <- function(model, ...) refuse_release("cooks.distance()", one_per_row)

#' @export
rstandard.dp_result <- function(model, ...) refuse_release("rstandard()", one_per_row)

#' @export
rstudent.dp_result <- function(model, ...) refuse_release("rstudent()", one_per_row)

#' @export
dfbeta.dp_result <- function(model, ...) refuse_release("dfbeta()", one_per_row)

#' @export
dfbetas.dp_result <- function(model, ...) refuse_release("dfbetas()", one_per_row)

#' @export
case.names.dp_result <- function(object, ...) {
  refuse_release("case.names()", "the names of the rows tell who is among them")
}

#' @export
extractAIC.dp_result <- function(fit, scale = 0, k = 2, ...) {
  refuse_release("AIC (in step(), add1())", exact_sums(fit))
}

#' @export
add1.dp_result <- function(object, scope, ...) {
  refuse_release("add1()", paste("each model beside the fitted one would have to be fitted to the rows.",
                                 if (inherits(object, "dp_glm")) "Fit the larger model, and ask anova() of its terms"
                                 else "To choose between models privately, use dp_select()"))
}

#' @export
alias.dp_result <- function(object, ...) {
  refuse_release("alias()", "exact dependences among columns are facts about the rows")
}

#' @export
effects.dp_result <- function(object, ...) refuse_release("effects()", one_per_row)

#' @export
profile.dp_result <- function(fitted, ...) {
  refuse_release("profile()", "the likelihood is an exact sum over the rows. confint() has intervals")
}

#' @export
proj.dp_result <- function(object, ...) refuse_release("proj()", one_per_row)

#' @export
kappa.dp_result <- function(z, ...) {
  refuse_release("kappa()", "it is computed from the rows' exact model matrix. The summary says what is weakly determined")
}

#' @export
qr.dp_result <- function(x, ...) refuse_release("qr()", "it would hold the rows")

# Stop for what combines coefficients that the same look chose.
refuse_given <- function(fit, what) {
  if (length(fit$conditional) || !is.null(fit$among)) {
    refuse_release(what, paste(
      "with fit = \"same\" each coefficient stands by itself, corrected for its choice, and combinations of",
      "them have no law. Use coef() and confint(), or fit = \"fresh\""
    ))
  }
}

# Stop for means, which need the coefficients that were not chosen as well.
refuse_means <- function(fit) {
  if (!is.null(fit$among)) {
    refuse_release("predict()", paste(
      "with fit = \"same\" coefficients are those beside all candidates, of which some were not chosen. Use",
      "fit = \"fresh\""
    ))
  }
}
