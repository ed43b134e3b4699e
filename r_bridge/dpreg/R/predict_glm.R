#' Predictions from a private logistic or Poisson regression
#'
#' The counterpart of [predict.glm()] for a data frame of the analyst's own; all of it is computed in R. An offset of
#' the fit is read from the rows, except with `type = "terms"`.
#'
#' @inheritParams predict.dp_result
#' @param object A result of [dp_glm()].
#' @param newdata A data frame, or a list that [as.data.frame()] makes one of, with the columns of the
#'   formula and the offset. It has to be given: fitted values of the confidential rows are not released.
#' @param interval `"confidence"` for intervals of the mean: those of the linear predictor, and with
#'   `type = "response"` taken through the link.
#' @param type `"link"` for the linear predictor; `"response"` for the mean, a chance or a count; `"terms"` for a
#'   matrix with what each term adds to the linear predictor. Terms are not centred, as [predict.glm()] centres
#'   them, since the means of the columns are not released; the attribute `"constant"` is the intercept.
#' @returns As [predict.glm()] returns it: a named vector; with `se.fit`, a list with `fit`, `se.fit` (of means by the
#'   delta method) and `residual.scale`; and with an interval, a matrix with the columns `fit`, `lwr` and `upr`
#'   in the vector's place. A row is `NA` where it lacks a value; a level that the schema does not declare is an
#'   error. Standard errors and limits are `NA` where the fit has earned none.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' set.seed(1)
#' rows <- data.frame(x = runif(5000))
#' rows$y <- rbinom(5000, 1, plogis(2 * rows$x - 1))
#' fit <- dp_glm(y ~ x, rows, eps = 4, delta = 1e-6, schema = list(y = c(0, 1), x = c(0, 1)))
#' predict(fit, data.frame(x = 0:1), type = "response", interval = "confidence")
#' @export
predict.dp_glm <- strict(function(object, newdata, se.fit = FALSE, interval = c("none", "confidence"), level = 0.95,
                                  type = c("link", "response", "terms"), terms = NULL, ...) {
  if (identical(interval, "prediction")) {
    dpreg_stop("argument_error", 'interval = "prediction" is not offered: a new response is 0 or 1, or a count. ',
               'interval = "confidence" is of its mean.')
  }
  predict_rows(object, object, newdata, se.fit, match.arg(interval), level, match.arg(type), terms)
})

inverse_link <- function(link) {
  if (link == "log") exact_exp else function(eta) 1 / (1 + exact_exp(-eta))
}

# The derivative of the mean by the linear predictor.
mean_slope <- function(link, mean) if (link == "log") mean else mean * (1 - mean)

# exp() as Python's dpreg computes it, by single sums and products, so that both have the same last digit:
# x = n log(2) + r, and a sum of powers of r. Above 700 it is infinite, and below -700 as at -700.
exact_exp <- function(x) {
  inside <- pmin(pmax(x, -700), 700)
  whole <- round(inside * 1.4426950408889634)
  rest <- inside - whole * 0.6931471803691238 - whole * 1.9082149292705877e-10
  total <- exact_terms[1]
  for (term in exact_terms[-1]) total <- total * rest + term
  value <- total * 2^whole
  value[!is.na(x) & x > 700] <- Inf
  value
}

exact_terms <- 1 / cumprod(c(1, 1:13))[14:1]
