#' Wald tests of the terms of a private fit
#'
#' `anova()` tests each term of the fit, and `drop1()` each term that may be dropped while the others stay:
#' that all of its coefficients are zero, given the other terms. The tests use [coef()] and [vcov()], so that
#' they count sampling error and privacy noise, and cost nothing. `anova()` of an [lm()] tests terms one after
#' the other and uses residual sums of squares, which are not released here; two fits cannot be compared, for
#' each has noise of its own.
#'
#' @param object A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param scope For `drop1()`: terms to test, as a formula or by name.
#' @param test `"Chisq"`, the test that there is.
#' @param ... None: a second fit is refused, and so is an argument that this page does not name.
#' @returns A data frame of class `anova` with the columns `Df`, `Chisq` and `Pr(>Chisq)`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), gear = list(levels = 3:5))
#' anova(dp_ols(mpg ~ wt + factor(gear), mtcars, eps = 1000, schema = schema))
#' @name anova.dp_result
#' @export
anova.dp_result <- function(object, ..., test = "Chisq") {
  fit <- fitted_part(object, "anova()")
  check_test(test)
  others <- names(substitute(list(...)))[-1]
  if (all(nzchar(others)) && length(others)) no_more(...)
  if (...length()) {
    refuse_release("a comparison of fits", paste(
      "each has noise of its own, and the sums of squares behind an F test are exact facts about the rows.",
      "anova() of the larger fit tests its terms"
    ))
  }
  wald_table(fit, fit_terms(fit), object$seeded)
}

#' @rdname anova.dp_result
#' @export
drop1.dp_result <- function(object, scope, ..., test = "Chisq") {
  no_more(...)
  fit <- fitted_part(object, "drop1()")
  check_test(test)
  known <- fit_terms(fit)
  may_go <- intersect(stats::drop.scope(fit$formula), known)
  if (!missing(scope)) {
    asked <- if (is.character(scope)) scope else {
      attr(stats::terms(stats::update.formula(fit$formula, scope)), "term.labels")
    }
    unknown <- setdiff(asked, known)
    if (length(unknown)) {
      dpreg_stop("argument_error", "scope: ", listed(unknown), " is not a term of the fit; its terms are ",
                 listed(known), ".")
    }
    may_go <- asked
  }
  wald_table(fit, may_go, object$seeded)
}

check_test <- function(test) {
  if (!identical(test, "Chisq")) {
    dpreg_stop("argument_error", 'test must be "Chisq": Wald tests are what there is, for F tests and likelihood ratios ',
               "use exact sums over the rows.")
  }
}

fit_terms <- function(fit) {
  own <- vapply(fit$design$columns, `[[`, "", "term")
  setdiff(intersect(attr(stats::terms(fit$formula), "term.labels"), own), "(Intercept)")
}

# The p-value of a joint test, by the law that p-values of single coefficients have, and as Python's wald_test() has it.
joint_pvalue <- function(fit, places, spread, statistic) {
  if (length(places) == 1) return(unname(error_pvalues(fit))[places])
  if (!is.null(fit$interval_draws)) {
    apart <- sweep(unname(fit$interval_draws)[, places, drop = FALSE], 2, unname(fit$coefficients)[places])
    farther <- rowSums(apart %*% solve(spread) * apart) >= statistic
    return((1 + sum(farther)) / (1 + length(farther)))
  }
  mean(stats::pchisq(statistic / pmax(mixing(fit$noise_degrees), 1), length(places), lower.tail = FALSE))
}

wald_table <- function(fit, terms, seeded) {
  refuse_given(fit, "a test of terms")
  own <- vapply(fit$design$columns, `[[`, "", "term")[fit$design$order]
  tests <- vapply(terms, function(term) {
    places <- which(own == term)
    beta <- unname(fit$coefficients)[places]
    spread <- unname(fit$vcov)[places, places, drop = FALSE]
    solved <- tryCatch(solve(spread, beta), error = function(cond) rep(NA_real_, length(beta)))
    statistic <- sum(beta * solved)
    if (is.na(statistic) || statistic < 0) return(c(length(places), NA, NA))
    c(length(places), statistic, joint_pvalue(fit, places, spread, statistic))
  }, numeric(3))
  tests <- matrix(tests, 3)
  table <- data.frame(tests[1, ], tests[2, ], tests[3, ], row.names = terms)
  names(table) <- c("Df", "Chisq", "Pr(>Chisq)")
  heading <- c(if (isTRUE(seeded)) paste0("*** ", stamp, " ***\n"),
               "Wald tests of terms, each given the others, by the law of summary() (privacy noise counted)\n",
               paste0("Response: ", fit$response))
  stamped(structure(table, heading = heading, class = c("anova", "data.frame")), seeded)
}
