# An R formula as a patsy formula.
#
# R's own terms() reads the operators (`.`, `*`, `^`, `:`, `-1`), so that they mean what they mean in
# lm(); what is translated here is each variable of the result: a column, or an expression such as
# log(x). What has no translation that reads one row at a time is refused, with its name and why.

# patsy: the formula as text. terms: R's label of each term, named by patsy's; "(Intercept)" first if
# there is one. factors: for each term patsy's codes of its variables. labels: R's label of each
# variable, named by patsy's code. expressions: the call that computes each variable, named by its label.
# response: R's label. columns: the columns that Python reads. derived: columns that R makes (bins.R).
# `bounds` tells the declared bounds of a column. A model of a family may have `added` offsets (offset.R).
translate_formula <- function(formula, data, bounds = function(name) NULL, added = NULL) {
  if (!inherits(formula, "formula")) {
    dpreg_stop("formula_error", "formula must be an R formula such as y ~ a + log(b).")
  }
  if (length(formula) != 3) dpreg_stop("formula_error", "formula needs a response: y ~ a + b.")
  formula <- with_powers(bare_formula(formula))
  tt <- tryCatch(
    stats::terms(formula, data = data, allowDotAsName = FALSE),
    error = function(cond) {
      dpreg_stop("formula_error", "the formula cannot be read: ", conditionMessage(cond))
    }
  )
  variables <- as.list(attr(tt, "variables"))[-1]
  shown <- vapply(variables, label_of, "")
  incidence <- attr(tt, "factors")
  offset <- attr(tt, "offset")
  if (length(offset)) {
    if (is.null(added)) refuse_term(shown[offset[1]], refusals$offset)
    added$formula <- variables[offset]
    variables <- variables[-offset]
    shown <- shown[-offset]
    if (length(incidence)) incidence <- incidence[-offset, , drop = FALSE]
  }
  codes <- mapply(translate_variable, variables, shown, MoreArgs = list(known = names(data), bounds = bounds))
  codes <- as.character(codes)
  response <- codes[attr(tt, "response")]
  if (!is.null(added)) codes[attr(tt, "response")] <- response <- number_of_truth(response, variables[[1]])
  if (anyDuplicated(codes)) {
    twice <- shown[codes %in% codes[duplicated(codes)]]
    refuse_term(twice[2], paste0("it says the same as ", quoted(twice[1]), "; write one of them"))
  }
  factors <- lapply(seq_len(NCOL(incidence) * (length(incidence) > 0)), function(j) {
    codes[incidence[, j] > 0]
  })
  terms <- vapply(factors, paste, "", collapse = ":")
  derived <- Filter(Negate(is.null), stats::setNames(lapply(variables, derived_column), shown))
  constant <- attr(tt, "intercept") == 1
  translation <- list(
    patsy = paste(response, "~", right_side(terms, constant)),
    terms = c(if (constant) c(Intercept = "(Intercept)"),
              stats::setNames(attr(tt, "term.labels"), terms)),
    factors = stats::setNames(factors, terms),
    labels = stats::setNames(shown, codes),
    response = shown[attr(tt, "response")],
    expressions = stats::setNames(lapply(variables, with_boundary, bounds), shown),
    columns = unique(unlist(lapply(variables[!shown %in% names(derived)], all.vars))),
    derived = derived,
    declared = unique(unlist(lapply(variables, columns_with_levels)))
  )
  if (is.null(added)) translation else with_offset(translation, added, names(data))
}

right_side <- function(terms, constant) {
  if (!length(terms)) return(if (constant) "1" else "0")
  paste0(paste(terms, collapse = " + "), if (!constant) " - 1")
}

`%||%` <- function(x, y) if (is.null(x)) y else x

label_of <- function(variable) paste(deparse(variable, width.cutoff = 500L, backtick = TRUE),
                                     collapse = " ")

refuse_term <- function(term, reason) {
  dpreg_stop("formula_error", "term ", quoted(term), ": ", reason, ".")
}

# Plain functions of one row, by their Python names.
row_functions <- c(log = "np.log", log1p = "np.log1p", exp = "np.exp", sqrt = "np.sqrt",
                   abs = "np.abs")
operators <- c("+" = "+", "-" = "-", "*" = "*", "/" = "/", "^" = "**", "<" = "<", "<=" = "<=",
               ">" = ">", ">=" = ">=", "==" = "==", "!=" = "!=")

across_rows <- "it is computed across rows, and a private fit may read each row on its own only; "
refusals <- list(
  poly = paste0(across_rows, "write poly(x, 2, raw = TRUE), or powers: x + I(x^2)"),
  scale = paste0(across_rows, "write the column itself: dpreg scales by the declared bounds"),
  ns = paste0(across_rows, "write bs(x, knots = c(2, 5), Boundary.knots = c(0, 9)) with public ",
              "numbers"),
  s = paste0(across_rows, "write bs() with public knots"),
  offset = "in a linear model an offset is an argument: dp_ols(y ~ x, data, offset = z)",
  cut = "it makes labels, and stands by itself: write y ~ cut(x, c(0, 10, 20))",
  ordered = paste0("polynomial contrasts are not offered; write the column itself and declare its ",
                   "levels in order, or make a number of it"),
  C = "other contrasts are not offered; factors have treatment contrasts, the first level first",
  ifelse = "conditions are not offered; multiply by a comparison: I((x > 1) * z)",
  `%%` = "the remainder is not offered; compute such a column beforehand and declare its bounds",
  `%/%` = "whole division is not offered; compute such a column beforehand and declare its bounds",
  `&` = "write a product of comparisons: I((x > 1) * (z < 2))",
  `|` = "write I((x > 1) + (z < 2) > 0)",
  `!` = "turn the comparison around",
  `[` = "it picks rows by index; write the column itself",
  `$` = "name the column alone: it is looked up in data",
  cbind = "a response is one column of numbers",
  `:` = "a sequence is not offered",
  relevel = "declare the levels in the schema with the reference level first"
)
refusals$center <- refusals$scale
refusals$`[[` <- refusals$`[`
refusals$`&&` <- refusals$`&`
refusals$`||` <- refusals$`|`
for (name in c("mean", "median", "sd", "var", "min", "max", "sum", "rank", "cumsum", "diff", "lag",
               "ave", "quantile")) {
  refusals[[name]] <- paste0(across_rows, "put a public number in its place, or compute the column ",
                             "beforehand")
}
rm(name)

# One variable of a formula: what stands between `+`, `:` and `~`.
translate_variable <- function(variable, shown, known, bounds = function(name) NULL) {
  refuse <- function(...) refuse_term(shown, paste0(...))
  # deparse() puts brackets wherever a call that was built needs them.
  variable <- str2lang(deparse1(variable, backtick = TRUE))
  inside <- function(e) translate_expression(e, known, refuse)
  if (!is.call(variable)) return(inside(variable))
  switch(function_name(variable, refuse),
    I = paste0("I(", inside(variable), ")"),
    factor = , as.factor = translate_factor(variable, known, refuse),
    bs = translate_spline(with_boundary(variable, bounds), inside, refuse),
    cut = translate_cut(variable, shown, known, refuse),
    {
      code <- inside(variable)
      # patsy gives operators outside I() a meaning of its own.
      one_call <- function_name(variable, refuse) %in% names(row_functions) && startsWith(code, "np.")
      if (one_call) code else paste0("I(", code, ")")
    }
  )
}

function_name <- function(e, refuse) {
  head <- e[[1]]
  if (is.call(head) && as.character(head[[1]]) %in% c("::", ":::") &&
      as.character(head[[2]]) %in% c("base", "stats", "splines")) {
    head <- head[[3]]
  }
  if (!is.name(head)) refuse("it calls something that has no plain name")
  as.character(head)
}

translate_expression <- function(e, known, refuse) {
  inside <- function(part) translate_expression(part, known, refuse)
  if (is.name(e)) return(translate_name(as.character(e), known, refuse))
  if (is.numeric(e)) return(python_number(e))
  if (is.character(e)) return(python_text(e))
  if (!is.call(e)) refuse("it holds ", quoted(deparse1(e)), ", which is not a number, text or column")
  name <- function_name(e, refuse)
  arguments <- as.list(e)[-1]
  one <- function() {
    if (length(arguments) != 1) refuse(name, "() takes one argument here")
    inside(arguments[[1]])
  }
  if (name == "(") return(paste0("(", one(), ")"))
  if (name == "I") return(one())
  if (name %in% names(operators)) {
    parts <- vapply(arguments, inside, "")
    if (length(parts) == 1) return(paste0(operators[[name]], parts))
    return(paste(parts[1], operators[[name]], parts[2]))
  }
  if (name == "log" && length(arguments) == 2) {
    base <- arguments[[2]]
    if (!is.numeric(base)) refuse("the base of log() must be a number")
    return(paste0("(np.log(", inside(arguments[[1]]), ") / np.log(", python_number(base), "))"))
  }
  if (name %in% c("log2", "log10")) {
    return(paste0("(np.log(", one(), ") / np.log(", sub("log", "", name), "))"))
  }
  if (name %in% names(row_functions)) return(paste0(row_functions[[name]], "(", one(), ")"))
  refuse(refusals[[name]] %||% paste0(
    "the function ", name, "() is not offered; a term may hold columns, numbers, + - * / ^, ",
    "comparisons, log, log2, log10, log1p, exp, sqrt, abs, I(), factor(), cut() with public breaks, ",
    "poly() with raw = TRUE, and bs() with public knots"
  ))
}

translate_name <- function(name, known, refuse) {
  if (!name %in% known) {
    if (name %in% c("T", "F", "pi")) refuse("write the number in place of ", name)
    refuse(quoted(name), " is not a column of data (variables outside data are not seen)")
  }
  python_name(name)
}

# factor(g), factor(g, levels = c("a", "b"))
translate_factor <- function(call, known, refuse) {
  call <- match.call(function(x, levels) NULL, without_package(call), envir = baseenv()) |>
    tryCatch(error = function(cond) refuse("factor() takes a column and, if need be, levels"))
  if (!is.name(call$x)) refuse("factor() takes a column")
  column <- translate_name(as.character(call$x), known, refuse)
  if (is.null(call$levels)) return(paste0("C(", column, ")"))
  levels <- literal_vector(call$levels, refuse, "levels")
  paste0("C(", column, ", levels=", python_list(levels), ")")
}

# bs(x, knots = c(2, 5), degree = 3, intercept = FALSE, Boundary.knots = c(0, 9))
translate_spline <- function(call, inside, refuse) {
  force(call)
  call <- match.call(function(x, df, knots, degree, intercept, Boundary.knots) NULL,
                     without_package(call), envir = baseenv()) |>
    tryCatch(error = function(cond) refuse("bs() has an argument that is not known"))
  if (!is.null(call$df) || is.null(call$Boundary.knots)) {
    refuse("bs() finds knots and bounds in the rows unless they are public; write ",
           "bs(x, knots = c(2, 5), Boundary.knots = c(0, 9)) with public numbers, or leave out ",
           "Boundary.knots where the schema declares the bounds of x")
  }
  knots <- if (is.null(call$knots)) numeric() else literal_vector(call$knots, refuse, "knots")
  bounds <- literal_vector(call$Boundary.knots, refuse, "Boundary.knots")
  if (length(bounds) != 2) refuse("Boundary.knots must be two numbers")
  degree <- literal_vector(call$degree %||% 3, refuse, "degree")
  intercept <- call$intercept %||% FALSE
  if (!isTRUE(intercept) && !isFALSE(intercept)) refuse("intercept must be TRUE or FALSE")
  paste0(
    "bs(", inside(call$x), ", knots=", python_list(knots), ", degree=", python_number(degree),
    ", include_intercept=", if (intercept) "True" else "False",
    ", lower_bound=", python_number(bounds[1]), ", upper_bound=", python_number(bounds[2]), ")"
  )
}

# bs() without Boundary.knots has those that the schema declares.
with_boundary <- function(variable, bounds) {
  if (!is.call(variable) || !identical(without_package(variable)[[1]], quote(bs))) return(variable)
  x <- variable[["x"]] %||% variable[[min(2, length(variable))]]
  if (!is.null(variable$Boundary.knots) || !is.name(x)) return(variable)
  declared <- bounds(as.character(x))
  if (is.numeric(declared) && length(declared) == 2) variable$Boundary.knots <- declared
  variable
}

without_package <- function(call) {
  if (is.call(call[[1]])) call[[1]] <- call[[1]][[3]]
  call
}

# Columns whose levels the formula itself writes down.
columns_with_levels <- function(variable) {
  if (!is.call(variable)) return(NULL)
  call <- without_package(variable)
  name <- call[[1]]
  if (!identical(name, quote(factor)) || length(call) < 3) return(NULL)
  all.vars(call[[2]])
}

# Numbers or texts that are written in the formula: 2, -1, "a", c(1, 2), 1:3.
literal_vector <- function(e, refuse, what) {
  if (is.atomic(e)) return(e)
  allowed <- c("c", "-", ":", "(")
  calls <- setdiff(all.names(e), all.vars(e))
  if (length(all.vars(e)) || !all(calls %in% allowed)) {
    refuse(what, " must be written out, such as c(1, 2)")
  }
  eval(e, baseenv())
}

python_list <- function(x) {
  items <- vapply(x, if (is.character(x)) python_text else python_number, "")
  paste0("[", paste(items, collapse = ", "), "]")
}

# The shortest decimal that is this number.
python_number <- function(x) {
  if (is.na(x) || is.infinite(x)) return("nan")
  for (digits in 15:17) {
    text <- format(as.double(x), digits = digits, scientific = abs(x) >= 1e15, trim = TRUE)
    if (as.double(text) == x) return(text)
  }
  text
}

python_text <- function(x) {
  x <- gsub("\\", "\\\\", enc2utf8(x), fixed = TRUE)
  paste0('"', gsub('"', '\\"', x, fixed = TRUE), '"')
}

reserved <- c(
  "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
  "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in",
  "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with",
  "yield", "match", "case", "type", "_", "C", "I", "Q", "bs", "np", "numpy", "Intercept"
)

python_name <- function(name) {
  plain <- grepl("^[A-Za-z_][A-Za-z0-9_]*$", name) && !name %in% reserved
  if (plain) name else paste0("Q(", python_text(name), ")")
}
