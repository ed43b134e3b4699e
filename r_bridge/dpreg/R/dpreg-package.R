#' @keywords internal
#' @importFrom stats coef confint deviance df.residual fitted formula hatvalues logLik model.frame nobs
#' @importFrom stats predict residuals sigma terms update vcov
"_PACKAGE"
