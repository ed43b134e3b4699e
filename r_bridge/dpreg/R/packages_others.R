# Methods of packages that would go back to the rows: what was released in their place, or a refusal with the reason.

in_place_of_rows <- "emmeans() averages over a grid of the schema's levels, and predict() takes rows that you may see"

#' @rdname other_packages
#' @param mod A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param focal.predictors Handed over by effects.
#' @exportS3Method effects::Effect
Effect.dp_result <- function(focal.predictors, mod, ...) {
  refuse_release("an effect display of the package effects", paste("it averages over the rows, and matches levels by the rows.",
                                                                   in_place_of_rows))
}

# insight would look for the rows in the call's data; ggeffects and performance ask it.
#' @rdname other_packages
#' @exportS3Method insight::get_data
get_data.dp_result <- function(x, ...) {
  refuse_release("insight::get_data()", paste("it would hold the rows, which this package asks for them.", in_place_of_rows))
}

#' @rdname other_packages
#' @exportS3Method performance::r2
r2.dp_result <- strict(function(model, ...) {
  fit <- fitted_part(model, "r2()")
  if (is.null(fit$r.squared)) {
    refuse_release("r2()", "this fit has released no R-squared")
  }
  structure(list(R2 = c(R2 = fit$r.squared)), class = "r2_generic")
}, c("verbose", "model_info"))

#' @exportS3Method performance::model_performance
model_performance.dp_result <- strict(function(model, ...) {
  fit <- fitted_part(model, "model_performance()")
  told <- if (inherits(fit, "dp_glm")) list(Dispersion = fit$dispersion) else list(R2 = fit$r.squared, Sigma = fit$sigma)
  told <- Filter(Negate(is.null), told)
  if (!length(told)) refuse_release("model_performance()", "this fit has released no measure of fit")
  stamped(structure(data.frame(told), class = c("performance_model", "data.frame")), model$seeded)
}, "verbose")

# marginaleffects, which Debian lacks, takes these methods and an option with the names of classes, as its page on
# extensions documents. Its averages over the rows are refused by get_data(); newdata is the analyst's own.
marginaleffects_methods <- list(
  get_coef = function(model, ...) fitted_part(model, "marginaleffects")$coefficients,
  set_coef = function(model, coefs, ...) {
    fit <- fitted_part(model, "marginaleffects")
    fit$coefficients <- fit$estimates <- stats::setNames(unname(coefs), names(fit$coefficients))
    fit
  },
  get_vcov = function(model, vcov = NULL, ...) {
    if (isFALSE(vcov)) return(NULL)
    if (is.matrix(vcov)) return(vcov)
    if (!is.null(vcov) && !isTRUE(vcov)) dpreg_stop("argument_error", "vcov: ", no_row_errors, ".")
    unstamped(vcov.dp_result(model))
  },
  get_predict = function(model, newdata = NULL, type = "response", ...) {
    newdata <- own_rows(newdata, "marginaleffects")
    fit <- fitted_part(model, "marginaleffects")
    if (!inherits(fit, "dp_glm")) type <- "response"
    estimate <- unname(unstamped(stats::predict(fit, newdata, type = type %||% "response")))
    data.frame(rowid = newdata$rowid %||% seq_along(estimate), estimate = estimate)
  }
)

meet_marginaleffects <- function(...) {
  for (generic in names(marginaleffects_methods)) {
    registerS3method(generic, "dp_result", marginaleffects_methods[[generic]], asNamespace("marginaleffects"))
  }
  known <- getOption("marginaleffects_model_classes")
  options(marginaleffects_model_classes = union(known, c("dp_ols", "dp_glm", "dp_select")))
}

.onLoad <- function(libname, pkgname) {
  setHook(packageEvent("marginaleffects", "onLoad"), meet_marginaleffects)
  if (isNamespaceLoaded("marginaleffects")) meet_marginaleffects()
}
