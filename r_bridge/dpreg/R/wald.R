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
drop1.dp_result <- strict(function(object, scope, ..., test = "Chisq") {
  fit <- fitted_part(object, "drop1()")
  check_test(test)
  asked <- if (missing(scope)) {
    intersect(stats::drop.scope(fit$formula), fit_terms(fit))
  } else if (is.character(scope)) {
    scope
  } else {
    attr(stats::terms(stats::update.formula(fit$formula, scope)), "term.labels")
  }
  wald_table(fit, known_terms(fit, asked, "scope"), object$seeded)
})

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

# These of its terms, or all.
known_terms <- function(fit, asked, argument) {
  known <- fit_terms(fit)
  unknown <- setdiff(asked, known)
  if (length(unknown)) {
    dpreg_stop("argument_error", argument, ": ", listed(unknown), " is not a term of the fit; its terms are ", listed(known), ".")
  }
  asked %||% known
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
  tests <- vapply(terms, function(term) wald(fit, which(own == term)), numeric(3))
  tests <- matrix(tests, 3)
  table <- data.frame(tests[1, ], tests[2, ], tests[3, ], row.names = terms)
  names(table) <- c("Df", "Chisq", "Pr(>Chisq)")
  wald_page(table, "Wald tests of terms, each given the others,", seeded, paste0("Response: ", fit$response))
}

# The degrees of freedom, statistic and p-value of these coefficients together.
wald <- function(fit, places) {
  beta <- unname(fit$coefficients)[places]
  spread <- unname(fit$vcov)[places, places, drop = FALSE]
  solved <- tryCatch(solve(spread, beta), error = function(cond) rep(NA_real_, length(beta)))
  statistic <- sum(beta * solved)
  if (is.na(statistic) || statistic < 0) return(c(length(places), NA, NA))
  c(length(places), statistic, joint_pvalue(fit, places, spread, statistic))
}

wald_page <- function(table, what, seeded, ...) {
  heading <- c(if (isTRUE(seeded)) paste0("*** ", stamp, " ***\n"),
               paste(what, "by the law of summary() (privacy noise counted)\n"), ...)
  stamped(structure(table, heading = heading, class = c("anova", "data.frame")), seeded)
}

#' @rdname other_packages
#' @param model A result of [dp_select()], [dp_ols()] or [dp_glm()].
#' @param hypothesis.matrix,rhs As for `car::linearHypothesis()`.
#' @exportS3Method car::linearHypothesis
linearHypothesis.dp_result <- strict(function(model, hypothesis.matrix, rhs = NULL, ...) {
  fit <- fitted_part(model, "linearHypothesis()")
  refuse_given(fit, "linearHypothesis()")
  L <- hypothesis.matrix
  if (is.character(L)) L <- car::makeHypothesis(names(fit$coefficients), L, rhs)
  if (is.null(dim(L))) L <- t(L)
  size <- length(fit$coefficients)
  if (ncol(L) > size) rhs <- L[, size + 1]
  L <- L[, seq_len(size), drop = FALSE]
  rhs <- rep_len(rhs %||% 0, nrow(L))
  turn <- function(v) L %*% unname(as.matrix(v)) %*% t(L)
  # The combinations as coefficients of their own.
  fit$coefficients <- c(L %*% fit$coefficients) - rhs
  fit$vcov <- turn(fit$vcov)
  if (!is.null(fit$privacy_vcov)) fit$privacy_vcov <- turn(fit$privacy_vcov)
  if (!is.null(fit$interval_draws)) {
    fit$interval_draws <- sweep(unname(fit$interval_draws) %*% t(L), 2, rhs)
  }
  test <- rbind(NA, wald(fit, seq_len(nrow(L))))
  # As car's: the second line is the test.
  table <- data.frame(Df = test[, 1], Chisq = test[, 2], `Pr(>Chisq)` = test[, 3], check.names = FALSE)
  wald_page(table, "Wald test of a linear hypothesis", model$seeded)
})

# lmtest's default would take p-values from Student's law, whatever the noise.
#' @rdname other_packages
#' @param vcov.,df As for `lmtest::coeftest()`: where one is given, its default method answers.
#' @exportS3Method lmtest::coeftest
coeftest.dp_result <- function(x, vcov. = NULL, df = NULL, ...) {
  if (!is.null(vcov.) || !is.null(df)) return(NextMethod())
  no_more(...)
  structure(coefficient_table(fitted_part(x, "coeftest()")), method = "z tests of coefficients, by the law of summary()",
            class = "coeftest")
}

#' @rdname other_packages
#' @param parm As for [confint()].
#' @exportS3Method lmtest::coefci
coefci.dp_result <- function(x, parm = NULL, level = 0.95, vcov. = NULL, df = NULL, ...) {
  if (!is.null(vcov.) || !is.null(df)) return(NextMethod())
  no_more(...)
  if (is.null(parm)) confint.dp_result(x, level = level) else confint.dp_result(x, parm, level)
}
