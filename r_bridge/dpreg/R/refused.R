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

of_each_row <- c(
  "residuals", "fitted", "hatvalues", "influence", "cooks.distance", "rstandard", "rstudent", "dfbeta", "dfbetas", "effects",
  "proj", "check_model", "check_normality", "check_heteroscedasticity", "check_autocorrelation", "check_outliers",
  "check_predictions", "performance_mae"
)

# Why a generic of stats or of the package performance has no answer.
#' @rawNamespace
#' S3method(residuals,dp_result)
#' S3method(fitted,dp_result)
#' S3method(hatvalues,dp_result)
#' S3method(influence,dp_result)
#' S3method(cooks.distance,dp_result)
#' S3method(rstandard,dp_result)
#' S3method(rstudent,dp_result)
#' S3method(dfbeta,dp_result)
#' S3method(dfbetas,dp_result)
#' S3method(effects,dp_result)
#' S3method(proj,dp_result)
#' S3method(model.frame,dp_result)
#' S3method(qr,dp_result)
#' S3method(case.names,dp_result)
#' S3method(alias,dp_result)
#' S3method(profile,dp_result)
#' S3method(kappa,dp_result)
#' S3method(performance::check_model,dp_result)
#' S3method(performance::check_normality,dp_result)
#' S3method(performance::check_heteroscedasticity,dp_result)
#' S3method(performance::check_autocorrelation,dp_result)
#' S3method(performance::check_outliers,dp_result)
#' S3method(performance::check_predictions,dp_result)
#' S3method(performance::performance_mae,dp_result)
#' S3method(performance::check_overdispersion,dp_result)
#' S3method(performance::check_collinearity,dp_result)
refused <- c(
  stats::setNames(rep(one_per_row, length(of_each_row)), of_each_row),
  model.frame = "it would hold the rows", qr = "it would hold the rows",
  case.names = "the names of the rows tell who is among them",
  alias = "exact dependences among columns are facts about the rows",
  profile = "the likelihood is an exact sum over the rows. confint() has intervals",
  kappa = "it is computed from the rows' exact model matrix. The summary says what is weakly determined",
  check_overdispersion = "it is an exact sum over the rows. glance() has the dispersion that was released",
  check_collinearity = paste("vcov() holds the noise beside the sampling error, and says nothing of the columns alone. The",
                             "summary says what is weakly determined")
)

# A method that says so, with the arguments of its generic.
refusing <- function(generic) {
  method <- function() refuse_release(paste0(generic, "()"), refused[[generic]])
  formals(method) <- if (exists(generic)) formals(generic) else alist(x = , ... = )
  method
}
for (generic in names(refused)) assign(paste0(generic, ".dp_result"), refusing(generic))
rm(generic)

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
extractAIC.dp_result <- function(fit, scale = 0, k = 2, ...) {
  refuse_release("AIC (in step(), add1())", exact_sums(fit))
}

#' @export
add1.dp_result <- function(object, scope, ...) {
  refuse_release("add1()", paste("each model beside the fitted one would have to be fitted to the rows.",
                                 if (inherits(object, "dp_glm")) "Fit the larger model, and ask anova() of its terms"
                                 else "To choose between models privately, use dp_select()"))
}

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
