#' Options of methods and families
#'
#' What a method or a family may be told beyond its name: the value of `method` in [dp_ols()], [dp_select()],
#' [dp_plan()] and [selection_study()], and of `family` in [dp_glm()], [dp_select()] and their plans. A name, such as
#' `"pcls"` or `poisson()`, stands for all defaults.
#'
#' `Auto()` is the method that a public rule takes; `Adaptive()` looks at the rows several times; `Gram()` releases
#' the matrix of moments once; `Objective()`, `SSP()` and `AdaSSP()` give coefficients alone; `PCLS()` and `PCPL()`
#' are Algorithms 1 and 2 of the paper that [dp_select()] names.
#'
#' @param clip The scaled response is clipped to `[-clip, clip]`.
#' @param center Is the response centred at the middle of its bounds before it is scaled?
#' @param noise `"gaussian"` (needs `delta`) or `"matrix-laplace"`; for `Gram()` also `"laplace"`;
#'   `NULL` for the one with the least expected error. For `SSP()` and `AdaSSP()`: `"analytic"`, `"wang"` or
#'   `"classical"`.
#' @param scaling How rows are scaled: `"box"`, `"row-norm"`, `"row-norm-xy"` or `"max-norm"`.
#' @param radius The bound on the sum of the moduli of the scaled coefficients, `"private"`, or `NULL`
#'   for `clip`. In a study several numbers, as `penalty` and `mechanism`: all combinations are studied.
#' @param penalty `"auto"`, `"bic"`, or a number charged for each column.
#' @param sigma2 The residual variance in squared units of the scaled response, `"private"`, or `NULL`.
#' @param mechanism `"auto"`, `"permute-and-flip"`, `"exponential"` or `"laplace"`.
#' @param draws How many models are drawn; the most frequent one is reported.
#' @param engine `"auto"`, `"enumerate"` or `"tree"`: how the models are searched; the law is the same.
#' @param trials The column with a row's number of trials, of which the response counts the successes;
#'   its upper bound has to be declared. The response `cbind(won, played - won)` says the same.
#' @param exposure For rates: a positive column whose logarithm is the offset, by its name.
#' @param response_cap For counts that the schema leaves out: the largest that matters, from public knowledge.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object for `method` or `family`.
#' @examples
#' PCLS(radius = 2, draws = 5)
#' Poisson(exposure = years, response_cap = 40)
#' @name options_of_methods
NULL

#' @rdname options_of_methods
#' @export
Auto <- function(noise = NULL, clip = 1, center = TRUE, ...) method_of(received("auto", ...))

#' @rdname options_of_methods
#' @export
Adaptive <- function(noise = NULL, clip = 1, center = TRUE, ...) method_of(received("adaptive", ...))

#' @rdname options_of_methods
#' @export
Gram <- function(noise = NULL, clip = 1, center = TRUE, ...) method_of(received("gram", ...))

#' @rdname options_of_methods
#' @export
Objective <- function(clip = 1, center = TRUE, ...) method_of(received("objective", ...))

#' @rdname options_of_methods
#' @export
SSP <- function(noise = NULL, scaling = "box", clip = 1, center = TRUE, ...) method_of(received("ssp", ...))

#' @rdname options_of_methods
#' @export
AdaSSP <- function(noise = NULL, scaling = "box", clip = 1, center = TRUE, ...) method_of(received("adassp", ...))

#' @rdname options_of_methods
#' @export
PCLS <- function(radius = NULL, penalty = "auto", sigma2 = NULL, mechanism = "auto", draws = 1, engine = "auto",
                 clip = 1, center = TRUE, ...) method_of(received("pcls", ...))

#' @rdname options_of_methods
#' @export
PCPL <- function(radius = NULL, penalty = "auto", sigma2 = NULL, mechanism = "auto", draws = 1, engine = "auto",
                 clip = 1, center = TRUE, ...) method_of(received("pcpl", ...))

#' @rdname options_of_methods
#' @export
Binomial <- function(trials = NULL, ...) family_of(received("binomial", ..., .apart = columns_of_families))

#' @rdname options_of_methods
#' @export
Poisson <- function(exposure = NULL, response_cap = NULL, ...) family_of(received("poisson", ..., .apart = columns_of_families))

#' @rdname options_of_methods
#' @export
QuasiPoisson <- function(exposure = NULL, response_cap = NULL, ...) family_of(received("quasipoisson", ..., .apart = columns_of_families))

method_of <- function(asked) structure(c(list(name = asked$verb), asked$arguments), class = "dp_method")

columns_of_families <- c("exposure", "trials")

# Columns are kept as they were written, with where they were.
family_of <- function(asked) {
  columns <- as.list(asked$call)[names(asked$call) %in% columns_of_families]
  structure(list(name = asked$verb, columns = columns, where = asked$caller, cap = asked$arguments$response_cap),
            class = "dp_family")
}

#' @export
print.dp_method <- strict(function(x, ...) {
  family <- inherits(x, "dp_family")
  options <- if (family) c(x$columns, if (!is.null(x$cap)) list(response_cap = x$cap)) else unclass(x)[-1]
  cat("<", if (family) "family " else "method ", x$name, options_text(options), ">\n", sep = "")
  invisible(x)
}, print_options)

#' @export
print.dp_family <- print.dp_method

options_text <- function(options) {
  if (!length(options)) return("")
  paste0(": ", paste(names(options), "=", vapply(options, function(one) {
    if (is.language(one) || is.atomic(one) && length(one) <= 3) deparse1(one) else "..."
  }, ""), collapse = ", "))
}

# Arguments that are options of a method or a family now: still taken for one version.
retired <- local({
  paper <- c("mechanism", "radius", "penalty", "sigma2", "draws", "engine", "clip", "center")
  counts <- c("exposure", "response_cap", "trials")
  list(
    dp_select = c(paper, "expected_rows", counts),
    dp_ols = c("noise", "scaling", "clip", "center", "expected_rows"),
    dp_glm = counts, dp_plan_glm = counts,
    dp_plan = c(setdiff(paper, c("draws", "engine")), "noise", "response_cap"),
    selection_study = setdiff(paper, "draws")
  )
})

# The values of those that a call names, Python's to warn of.
flat_arguments <- function(verb, ...) {
  names <- ...names()
  places <- which(names %in% setdiff(retired[[verb]], c("exposure", "trials", "response_cap")))
  stats::setNames(lapply(places, function(place) ...elt(place)), names[places])
}

# The arguments for Python: the family's options with its name.
with_options <- function(arguments) {
  own <- intersect(c("exposure", "response_cap", "trials"), names(arguments))
  own <- own[!vapply(arguments[own], is.null, NA)]
  if (length(own) && !is.null(arguments$family)) {
    arguments$family <- c(list(name = arguments$family), arguments[own])
  }
  arguments[setdiff(names(arguments), c("exposure", "response_cap", "trials"))]
}
