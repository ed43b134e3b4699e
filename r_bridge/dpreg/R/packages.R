# Methods of other packages' generics. They are registered when those packages are loaded, and none is needed.

#' Private fits in other packages
#'
#' Methods that the packages emmeans, ggplot2, xtable, insight, parameters, car, performance and marginaleffects call. What
#' would go back to the rows, as those of effects and ggeffects do, is refused with the reason. `emmeans()` averages over a grid
#' of the schema's levels, with numbers at the middle of their declared bounds, where for an [lm()] it would
#' take the means of the rows; `at = ` and `data = ` set others.
#'
#' modelsummary, gtsummary and texreg use `tidy()`, `glance()` and `nobs()`. These three and marginaleffects were not at
#' hand: what they call follows their documentation, and was never run by them. `insight::is_model_supported()` is `FALSE`,
#' since insight goes by a list of its own.
#'
#' @param object,x A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param data A data frame of the analyst's own, in place of the grid from the schema.
#' @param trms,xlev,grid,params Handed over by emmeans.
#' @param level The level of the intervals.
#' @param caption,label,align,digits,display,auto As for `xtable::xtable()`.
#' @param ... Handed on, where there is something to hand it on to.
#' @returns What the generics return.
#' @name other_packages
#' @keywords internal
NULL

#' @rdname other_packages
#' @exportS3Method emmeans::recover_data
recover_data.dp_result <- function(object, data = NULL, params = NULL, ...) {
  fit <- fitted_part(object, "emmeans()")
  # An offset that was an argument counts as one of the formula: emmeans looks for it there.
  outside <- if (is.null(attr(stats::terms(fit), "offset"))) unname(fit$design$offset$variables)
  shown <- add_offsets(fit$formula, lapply(outside, function(e) call("offset", e)))
  terms <- stats::delete.response(stats::terms(if (length(outside)) shown else stats::formula(fit)))
  if (is.null(data)) data <- schema_rows(fit, all.vars(terms))
  call <- fit$call
  call$data <- quote(data)
  call["offset"] <- NULL
  emmeans::recover_data(call, terms, NULL, data = data, params = params, ...)
}

#' @rdname other_packages
#' @exportS3Method emmeans::emm_basis
emm_basis.dp_result <- function(object, trms, xlev, grid, ...) {
  fit <- fitted_part(object, "emmeans()")
  refuse_given(fit, "emmeans()")
  # The scale on which emmeans' type = "response" gives means.
  misc <- if (inherits(fit, "dp_glm")) {
    list(tran = fit$link, inv.lbl = if (fit$link == "logit") "prob" else "rate", sigma = NA)
  }
  list(X = stats::model.matrix(fit, grid), bhat = unname(fit$coefficients), nbasis = matrix(NA),
       V = unstamped(fit$vcov), dffun = function(k, dfargs) Inf, dfargs = list(), misc = as.list(misc))
}

# Rows from public facts: every level, and numbers that average to the middle of their bounds.
schema_rows <- function(fit, names) {
  columns <- lapply(fit$schema[names], function(spec) {
    if (is.logical(spec)) return(c(FALSE, TRUE))
    if (is.numeric(spec)) return(c(spec[1], mean(spec), spec[2]))
    levels <- levels_of(spec)
    if (is.character(levels)) factor(levels, levels) else levels
  })
  n <- 6 * max(lengths(columns), 1)
  structure(lapply(columns, rep_len, n), names = names, class = "data.frame", row.names = seq_len(n))
}

#' @rdname other_packages
#' @exportS3Method ggplot2::autoplot
autoplot.dp_result <- strict(function(object, level = 0.95, ...) {
  fit <- fitted_part(object, "autoplot()")
  frame <- slopes(fit, level)
  frame$term <- factor(frame$term, rev(frame$term))
  aes <- ggplot2::aes
  .data <- ggplot2::.data
  ggplot2::ggplot(frame, aes(.data[["estimate"]], .data[["term"]])) +
    ggplot2::geom_vline(xintercept = 0, linetype = "dotted") +
    ggplot2::geom_pointrange(aes(xmin = .data[["low"]], xmax = .data[["high"]])) +
    ggplot2::labs(
      x = slope_unit(fit), y = NULL,
      caption = paste0(if (isTRUE(object$seeded)) paste0(stamp, "; "), cost(object))
    )
})

#' @rdname other_packages
#' @exportS3Method xtable::xtable
xtable.dp_result <- strict(function(x, caption = NULL, label = NULL, align = NULL, digits = NULL, display = NULL,
                                    auto = FALSE, ...) {
  table <- if (inherits(x, "dp_estimate")) {
    estimate_table(x, 0.95)
  } else if (!inherits(x, "summary.dp_result")) {
    coefficient_table(fitted_part(x, "xtable()"))
  } else {
    x$coefficients %||% refuse_release("xtable()", "this call had fit = NULL, and fitted nothing")
  }
  if (is.matrix(table)) digits <- digits %||% c(0, 4, 4, 2, rep(4, ncol(table) - 3))
  caption <- caption %||% paste0(if (isTRUE(x$seeded)) paste0(stamp, ". "), cost(x))
  xtable::xtable(as.data.frame(table, optional = TRUE), caption = caption, label = label, align = align, digits = digits,
                 display = display, auto = auto)
})

#' @rdname other_packages
#' @exportS3Method xtable::xtable
xtable.summary.dp_result <- xtable.dp_result

#' @rdname other_packages
#' @exportS3Method xtable::xtable
xtable.dp_estimate <- xtable.dp_result

# car asks for the rows' model matrix; the tests are those of anova().
#' @rdname other_packages
#' @exportS3Method car::Anova
Anova.dp_result <- strict(function(mod, ...) anova.dp_result(mod))
