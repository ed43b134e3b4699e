# Methods of the generics of insight, bayestestR and parameters, which ask one another.

#' @rdname other_packages
#' @exportS3Method insight::get_statistic
get_statistic.dp_result <- function(x, ...) {
  table <- coefficient_table(fitted_part(x, "get_statistic()"))
  structure(data.frame(Parameter = rownames(table), Statistic = unname(table[, "z value"])),
            statistic = "z-statistic", class = c("insight_statistic", "data.frame"))
}

# insight knows models by a list of its own, and parameters asks it: the table is made here.
#' @rdname other_packages
#' @param model A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param ci The level of the intervals.
#' @param exponentiate Give exp of the coefficients, odds ratios or ratios of rates?
#' @exportS3Method parameters::model_parameters
model_parameters.dp_result <- strict(function(model, ci = 0.95, exponentiate = FALSE, ...) {
  frame <- unstamped(as.data.frame(tidy.dp_result(model, conf.int = TRUE, conf.level = ci, type = "coefficients",
                                                  exponentiate = exponentiate)))
  # parameters gives standard errors on the scale of the estimates.
  if (exponentiate) frame$std.error <- frame$std.error * frame$estimate
  stamped(data.frame(Parameter = frame$term, Coefficient = frame$estimate, SE = frame$std.error, CI = ci,
                     CI_low = frame$conf.low, CI_high = frame$conf.high, z = frame$statistic, p = frame$p.value),
          model$seeded)
})

#' @rdname other_packages
#' @exportS3Method parameters::p_value
p_value.dp_result <- function(model, ...) {
  fit <- fitted_part(model, "p_value()")
  stamped(data.frame(Parameter = names(fit$coefficients), p = unname(error_pvalues(fit))), model$seeded)
}

#' @rdname other_packages
#' @exportS3Method bayestestR::ci
ci.dp_result <- function(x, ci = 0.95, ...) {
  limits <- unstamped(confint.dp_result(x, level = ci))
  stamped(data.frame(Parameter = rownames(limits), CI = ci, CI_low = unname(limits[, 1]), CI_high = unname(limits[, 2])),
          x$seeded)
}

# The laws of the intervals are not those of a t: they count the noise.
#' @rdname other_packages
#' @exportS3Method insight::get_df
get_df.dp_result <- function(x, ...) Inf

#' @rdname other_packages
#' @exportS3Method parameters::degrees_of_freedom
degrees_of_freedom.dp_result <- function(model, ...) Inf

#' @exportS3Method insight::get_deviance
get_deviance.dp_result <- function(x, ...) deviance.dp_result(x)

#' @exportS3Method insight::get_residuals
get_residuals.dp_result <- function(x, ...) residuals.dp_result(x)

#' @exportS3Method insight::get_predicted
get_predicted.dp_result <- function(x, data = NULL, ...) {
  if (is.null(data)) fitted.dp_result(x) else stats::predict(x, data, ...)
}
