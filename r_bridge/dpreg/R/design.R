# The columns of a fit, computed from new rows in R: what predict(), augment() and emmeans need.
#
# A fit keeps a recipe of plain values and calls: for each coefficient the variables of which its column
# is the product and, for labels, the level; for each variable the call that computes it. The sum over
# columns goes in Python's order, one product at a time, so that both languages give the same last digit.

# The variables of a recipe on the rows of `newdata`: numbers (a vector or a matrix), or codes with the
# texts of their levels.
design_values <- function(recipe, newdata, schema) {
  needed <- unique(unlist(lapply(recipe$variables, all.vars)))
  cells <- stats::setNames(lapply(needed, read_cells, newdata, schema), needed)
  lapply(recipe$variables, variable_values, cells, schema)
}

variable_values <- function(expression, cells, schema) {
  name <- if (is.name(expression)) as.character(expression)
  if (!is.null(name) && !is.numeric(schema[[name]])) return(coded(cells[[name]], schema[[name]]))
  if (calls(expression, "factor") || calls(expression, "as.factor")) {
    call <- match.call(function(x, levels) NULL, without_package(expression))
    name <- as.character(call$x)
    levels <- if (!is.null(call$levels)) list(levels = eval(call$levels, baseenv()))
    return(coded(cells[[name]], levels %||% schema[[name]]))
  }
  value <- suppressWarnings(eval(expression, cells, row_functions_of_r))
  if (is.factor(value)) return(list(codes = as.integer(value), texts = levels(value)))
  if (is.logical(value)) return(coded(value, logical()))
  value[!is.finite(value)] <- NA
  value
}

coded <- function(cells, spec) {
  if (is.logical(spec) || is.logical(cells)) {
    return(list(codes = as.integer(as.logical(cells)) + 1L, texts = c("FALSE", "TRUE")))
  }
  levels <- levels_of(spec)
  list(codes = match(cells, levels), texts = level_texts(levels))
}

# What a term may call, as dpreg computes it; a term of a fit calls nothing else.
row_functions_of_r <- local({
  functions <- mget(c("+", "-", "*", "/", "^", "(", "<", "<=", ">", ">=", "==", "!=", "c", ":", "exp",
                      "log1p", "sqrt", "abs"), envir = baseenv())
  functions$I <- function(x) x
  functions$log <- function(x, base) if (missing(base)) base::log(x) else base::log(x) / base::log(base)
  functions$log2 <- function(x) base::log(x) / base::log(2)
  functions$log10 <- function(x) base::log(x) / base::log(10)
  functions$bs <- function(x, ...) spline_values(x, ...)
  functions$cut <- function(x, ...) base::cut.default(x, ...)
  functions$`::` <- function(pkg, name) functions[[as.character(substitute(name))]]
  list2env(functions, parent = emptyenv())
})

# No value outside the spline's own bounds, except by rounding.
spline_values <- function(x, knots = NULL, degree = 3, intercept = FALSE, Boundary.knots) {
  bounds <- sort(Boundary.knots)
  slack <- 1e-9 * diff(bounds)
  x[is.na(x) | x < bounds[1] - slack | x > bounds[2] + slack] <- NA
  x <- pmin(pmax(x, bounds[1]), bounds[2])
  values <- matrix(NA_real_, length(x), length(knots) + degree + intercept)
  there <- !is.na(x)
  if (any(there)) {
    values[there, ] <- splines::bs(x[there], knots = knots, degree = degree, intercept = intercept,
                                   Boundary.knots = bounds)
  }
  values
}

# A raw column of new rows, as the schema declares it.
read_cells <- function(name, newdata, schema) {
  names <- attr(newdata, "names")
  if (!name %in% names) {
    dpreg_stop("data_error", "newdata has no column ", quoted(name), "; it has ", listed(names), ".")
  }
  x <- .subset2(newdata, match(name, names))
  kind <- column_kind(x, name)
  if (kind == "list" || !is.null(attr(x, "dim"))) plain_column(x, name)
  if (kind == "integer64" && requireNamespace("bit64", quietly = TRUE)) x <- as.double(x)
  x <- if (kind == "labels") as.character(x) else as.vector(unclass(x))
  spec <- schema[[name]]
  numbers <- kind %in% c("number", "integer64", "logical")
  if (is.logical(spec)) return(truths(x))
  if (is.numeric(spec)) {
    if (!numbers) dpreg_stop("data_error", "column ", quoted(name), " of newdata must hold numbers, as in the fit.")
    return(as.double(x))
  }
  if (is.null(spec)) return(if (numbers) as.double(x) else x)
  levels <- levels_of(spec)
  cells <- if (is.numeric(levels)) suppressWarnings(as.double(x)) else if (numbers) number_texts(x) else x
  if (any(is.na(match(cells, levels)) & !is.na(x))) {
    dpreg_stop("data_error", "column ", quoted(name), " of newdata has levels that the fit does not know; ",
               "it knows ", listed(level_texts(levels)), ".")
  }
  cells
}

truths <- function(x) {
  if (is.character(x)) x <- match(tolower(trimws(x)), c("false", "true")) - 1
  c(FALSE, TRUE)[match(x, c(0, 1))]
}

number_texts <- function(x) {
  distinct <- unique(x[!is.na(x)])
  texts <- if (is.logical(x)) ifelse(distinct, "True", "False") else vapply(distinct, python_number, "")
  texts[match(x, distinct)]
}

# One column of the design.
design_column <- function(column, values, rows) {
  product <- rep(1, rows)
  for (i in seq_along(column$labels)) {
    value <- values[[column$labels[i]]]
    end <- column$ends[i]
    part <- if (is.list(value)) {
      as.double(value$texts == end)[value$codes]
    } else if (is.matrix(value)) value[, as.integer(end)] else value
    product <- product * part
  }
  product
}

design_matrix <- function(fit, newdata) {
  rows <- .row_names_info(newdata, 2L)
  values <- design_values(fit$design, newdata, fit$schema)
  columns <- vapply(fit$design$columns, design_column, numeric(rows), values, rows)
  matrix(columns, rows, length(fit$design$columns))[, fit$design$order, drop = FALSE]
}

# The sum of coefficients times columns, for the columns that `wanted` marks, those of the same variables together.
linear_part <- function(fit, values, rows, wanted = TRUE) {
  columns <- fit$design$columns[wanted]
  weights <- unname(fit$estimates)[order(fit$design$order)][wanted]
  of <- vapply(columns, function(column) paste(column$labels, collapse = "\n"), "")
  total <- numeric(rows)
  for (own in split(seq_along(columns), cumsum(c(TRUE, of[-1] != of[-length(of)])))) {
    labels <- columns[[own[1]]]$labels
    value <- if (length(labels) == 1) values[[labels]]
    if (is.list(value)) { # a row has one of the levels, and the others add nothing
      table <- numeric(length(value$texts))
      table[match(vapply(columns[own], `[[`, "", "ends"), value$texts)] <- weights[own]
      total <- total + table[value$codes]
    } else {
      for (i in own) total <- total + design_column(columns[[i]], values, rows) * weights[i]
    }
  }
  total
}

# Levels as names of columns have them.
level_texts <- function(levels) if (is.character(levels)) levels else vapply(levels, python_number, "")

levels_of <- function(spec) if (is.list(spec)) unlist(spec$levels) else spec
