# An R formula as a patsy formula.
#
# R's own terms() reads the operators (`.`, `*`, `^`, `:`, `-1`), so that they mean what they mean in
# lm(); Python translates each variable of the result: a column, or an expression such as log(x).

# patsy: the formula as text. terms: R's label of each term, named by patsy's; "(Intercept)" first if
# there is one. labels: R's label of each variable, named by patsy's code. expressions: the call that computes
# each variable, named by its label.
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
    if (is.null(added)) {
      refuse_term(shown[offset[1]], "in a linear model an offset is an argument: dp_ols(y ~ x, data, offset = z)")
    }
    added$formula <- variables[offset]
    variables <- variables[-offset]
    shown <- shown[-offset]
    if (length(incidence)) incidence <- incidence[-offset, , drop = FALSE]
  }
  variables <- lapply(variables, with_boundary, bounds)
  codes <- codes_of(variables, shown, data, truth = !is.null(added))
  response <- codes[attr(tt, "response")]
  if (anyDuplicated(codes)) {
    twice <- shown[codes %in% codes[duplicated(codes)]]
    refuse_term(twice[2], paste0("it says the same as ", quoted(twice[1]), "; write one of them"))
  }
  labels <- attr(tt, "term.labels")
  terms <- vapply(seq_along(labels), function(j) paste(codes[incidence[, j] > 0], collapse = ":"), "")
  derived <- Filter(Negate(is.null), stats::setNames(lapply(variables, derived_column), shown))
  constant <- attr(tt, "intercept") == 1
  translation <- list(
    patsy = paste(response, "~", right_side(terms, constant)),
    terms = c(if (constant) c(Intercept = "(Intercept)"), stats::setNames(labels, terms)),
    labels = stats::setNames(shown, codes),
    response = shown[attr(tt, "response")],
    expressions = stats::setNames(variables, shown),
    columns = unique(unlist(lapply(variables[!shown %in% names(derived)], all.vars))),
    derived = derived,
    declared = unique(unlist(lapply(variables, columns_with_levels)))
  )
  if (is.null(added)) translation else with_offset(translation, added, data)
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

# patsy's codes of variables: columns, or expressions of them. Python reads them (dpreg_bridge/expressions.py).
codes_of <- function(variables, shown, data, truth = FALSE) {
  trees <- Map(function(variable, label) {
    # deparse() puts brackets wherever a call that was built needs them.
    list(shown = label, tree = as_tree(str2lang(deparse1(variable, backtick = TRUE))))
  }, variables, shown)
  python_call("codes", list(variables = unname(trees), known = legal(names(data)), truth = truth))
}

as_tree <- function(e) {
  if (is.name(e)) return(list(name = as.character(e)))
  if (!is.call(e)) return(list(value = e))
  arguments <- as.list(e)[-1]
  trees <- Map(function(part, name) c(as_tree(part), as = name), arguments, names(arguments) %||% rep("", length(arguments)))
  list(call = function_name(e), arguments = unname(trees))
}

# "" where what is called has no plain name.
function_name <- function(e) {
  head <- e[[1]]
  if (is.call(head) && as.character(head[[1]]) %in% c("::", ":::") &&
      as.character(head[[2]]) %in% c("base", "stats", "splines")) {
    head <- head[[3]]
  }
  if (is.name(head)) as.character(head) else ""
}

# bs() without Boundary.knots has those that the schema declares.
with_boundary <- function(variable, bounds) {
  if (!calls(variable, "bs")) return(variable)
  x <- variable[["x"]] %||% variable[[min(2, length(variable))]]
  if (!is.null(variable$Boundary.knots) || !is.name(x)) return(variable)
  declared <- bounds(as.character(x))
  if (is.numeric(declared) && length(declared) == 2) variable$Boundary.knots <- declared
  variable
}

# Whether an expression calls this function, base::f or f.
calls <- function(e, name) is.call(e) && identical(without_package(e)[[1]], as.name(name))

without_package <- function(call) {
  if (is.call(call[[1]])) call[[1]] <- call[[1]][[3]]
  call
}

# Columns whose levels the formula itself writes down.
columns_with_levels <- function(variable) {
  if (calls(variable, "factor") && length(variable) > 2) all.vars(variable[[2]])
}

# The shortest decimal that is this number.
python_number <- function(x) {
  if (is.na(x) || is.infinite(x)) return("nan")
  texts <- vapply(15:17, function(digits) format(as.double(x), digits = digits, scientific = abs(x) >= 1e15, trim = TRUE), "")
  texts[as.double(texts) == x][1]
}
