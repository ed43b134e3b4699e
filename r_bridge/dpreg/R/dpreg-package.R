#' @keywords internal
#' @importFrom stats coef confint deviance df.residual fitted formula hatvalues logLik model.frame nobs
#' @importFrom stats add1 anova case.names cooks.distance dfbeta dfbetas drop1 extractAIC family influence
#' @importFrom stats model.matrix predict residuals rstandard rstudent sigma simulate terms update
#' @importFrom stats alias effects profile proj variable.names vcov weights
"_PACKAGE"
