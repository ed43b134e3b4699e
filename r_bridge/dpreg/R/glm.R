#' Fit a logistic or a Poisson regression with differential privacy
#'
#' The first look releases the moments of rows on the unit scale of their bounds. Each later look releases the information
#' and the score at the fit so far. There are four looks, five with delta, each a pass over the rows. Standard errors hold
#' sampling error and privacy noise together. [dp_select()] explains formulas, schemas and conditions.
#'
#' @inheritParams dp_select
#' @param delta Above 0 it allows Gaussian noise, with which fewer rows are enough.
#' @param formula An R formula with an intercept. For `binomial()` the response is a column of 0 and 1, one that
#'   is declared as `logical()`, a comparison such as `visits > 0`, or a column with two declared levels, of which
#'   the second counts as 1; for counts it is one with bounds from 0 up. A count above its upper
#'   bound is set to that bound; tight bounds mean less noise. `offset()` is read as [glm()] reads it.
#' @param family `binomial()`, `poisson()` or `quasipoisson()`, as [glm()] takes it: a family, its function or its
#'   name. Links are the canonical ones, logit and log. For counts, standard errors allow for more or less spread than
#'   Poisson's; `quasipoisson()` reports it. [Binomial()], [Poisson()] and [QuasiPoisson()] have options as well.
#' @param offset What is added to the linear predictor with coefficient 1: an expression of columns, such as
#'   `log(years)`, as [glm()] takes it, or the same as text or in a one-sided formula. Its bounds must be
#'   declared.
#' @param noise `"gaussian"` (needs `delta`) or `"matrix-laplace"`; `NULL` takes the first where `delta` is above 0.
#' @param shares A named list: the part of `eps` for `bounds`, where the schema leaves some out.
#' @returns An object of classes `dp_glm` and `dp_ols`: a plain list with, among others, `coefficients`, `vcov`,
#'   `family` and `link` (their names), `dispersion`, `converged`, `success` (the level that counts as 1),
#'   `looks`, `budget` and `privacy`. It has the methods that [dp_select()] lists; [predict.dp_glm()] works
#'   as for a [glm()]. Where rows are too few for the budget, responses nearly separated, events rare or the fit
#'   still moves, there are coefficients without standard errors and intervals, and a note says what would be needed.
#'   Where the number of rows is public and too small, a warning says so before the charge.
#' @seealso [predict.dp_glm()]; [tidiers] for `exponentiate = TRUE`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' set.seed(1)
#' visits <- data.frame(age = runif(5000, 20, 80), years = runif(5000, 1, 3))
#' visits$number <- with(visits, rpois(5000, years * exp(-2 + 0.03 * age)))
#' facts <- list(number = c(0, 12), age = c(20, 80), years = c(1, 3))
#' rates <- dp_glm(number ~ age, visits, eps = 4, delta = 1e-6, family = poisson(),
#'                 offset = log(years), schema = facts)
#' tidy(rates, exponentiate = TRUE, conf.int = TRUE)
#' predict(rates, data.frame(age = 50, years = 1), type = "response")
#' any <- dp_glm(number > 0 ~ age, visits, eps = 4, delta = 1e-6, schema = facts)
#' summary(any, ratios = TRUE)
#' @export
dp_glm <- function(formula, data, eps, delta = 0, family = stats::binomial(), schema = NULL, subset = NULL, offset = NULL,
                   noise = NULL, neighbors = "replace-one", contributions = NULL, person = NULL, shares = NULL,
                   budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  model_call(of_family(received("dp_glm", ..., .apart = c("family", "offset")), family), new_glm)
}

# A call with its family: the name and the cap among its arguments, and `added`, what makes offsets of columns' names.
of_family <- function(asked, family) {
  dots <- as.list(eval(quote(substitute(list(...))), asked$frame))[-1]
  flat <- intersect(c("exposure", "trials", "response_cap"), names(dots))
  if (length(flat)) {
    dpreg_warn(paste0(asked$verb, ": these arguments are removed in the next version: give ", paste(flat, collapse = ", "),
               " in the family, as in family = Poisson(exposure = ...) or Binomial(trials = ...)."))
  }
  name <- family_name(family)
  options <- if (inherits(family, "dp_family")) family else {
    list(columns = dots[setdiff(flat, "response_cap")], where = asked$caller, cap = eval(dots$response_cap, asked$caller))
  }
  asked$arguments$family <- name
  asked$arguments$response_cap <- options$cap
  asked$call <- with_family(asked$call, family, name, options$cap)
  asked$added <- function(columns) {
    own <- Map(row_expression, options$columns, names(options$columns), list(columns), lapply(options$columns, function(e) {
      function() eval(e, options$where)
    }))
    for (argument in names(own)) {
      if (!is.null(own[[argument]]) && !is.name(own[[argument]])) {
        dpreg_stop("argument_error", argument, " must be the name of a column",
                   if (argument == "exposure") "; offset = takes expressions", ".")
      }
    }
    c(row_expressions("offset", asked$frame, columns), own)
  }
  asked
}

# A family that the call holds itself, or by a name of the caller's, by its own call.
with_family <- function(call, family, name, cap) {
  if (!is.null(call$family) && !is.call(call$family) && !is.character(call$family)) {
    call$family <- if (inherits(family, "dp_family")) {
      as.call(c(as.name(family_makers[[name]]), if (!is.null(cap)) list(response_cap = cap)))
    } else {
      call(name)
    }
  }
  call
}

family_makers <- c(binomial = "Binomial", poisson = "Poisson", quasipoisson = "QuasiPoisson")

# The call with its offset, and with exposure and trials in its family, as they were read.
with_added <- function(call, added, name) {
  if (!is.null(added$offset)) call["offset"] <- added["offset"]
  flat <- c("exposure", "trials", "response_cap")
  own <- c(added[intersect(flat, names(added))], Filter(Negate(is.null), as.list(call)["response_cap"]))
  if (!length(own)) return(call)
  family <- call$family
  made <- is.call(family) && is.name(family[[1]]) && as.character(family[[1]]) %in% family_makers
  if (!made) family <- call(family_makers[[name]])
  family[names(own)] <- own
  call$family <- family
  call[!names(call) %in% flat]
}

# As new_regression(), with what belongs to families.
new_glm <- function(view, translation, call) {
  fit <- new_regression(view, translation, with_added(call, translation$added, view$family))
  fit$formula <- add_offsets(fit$formula, translation$in_formula)
  fit["trials"] <- list(if (!is.null(translation$added$trials)) label_of(translation$added$trials))
  offset <- translation$offset
  if (!is.null(offset)) fit$design$offset <- list(variables = stats::setNames(list(offset), label_of(offset)))
  structure(fit, class = c("dp_glm", "dp_ols", "dp_result"))
}

# Links of the families that are offered.
glm_links <- c(binomial = "logit", poisson = "log", quasipoisson = "log")

# The name of a family that is given as glm() takes it.
family_name <- function(family) {
  refuse <- function(...) dpreg_stop("argument_error", "family", ...)
  if (is.function(family)) {
    family <- tryCatch(family(), error = function(cond) refuse(": the function makes no family; write binomial(), say."))
  }
  if (inherits(family, "dp_family")) return(family$name)
  name <- if (inherits(family, "family")) family$family else family
  if (!is.character(name) || length(name) != 1 || is.na(name)) {
    refuse(" must be a family such as binomial(), its function or its name; got an object of class ",
           quoted(class(family)[1]), ".")
  }
  if (!name %in% names(glm_links)) {
    refuse(": ", quoted(name), " is not offered; binomial(), poisson() and quasipoisson() are.", switch(name,
      gaussian = " dp_ols() fits a linear model.",
      quasibinomial = " Standard errors of binomial() allow for another spread already."
    ))
  }
  if (inherits(family, "family") && !identical(family$link, glm_links[[name]])) {
    refuse(": ", name, "() has the link ", quoted(glm_links[[name]]), " alone here; got ", quoted(family$link), ".")
  }
  name
}

# The family, made anew: a fit holds its name, and no function.
made_family <- function(fit) getExportedValue("stats", fit$family)()
