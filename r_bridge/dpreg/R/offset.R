# Offsets of a model of a family, what is added to its linear predictor, and its numbers of trials.
#
# glm() takes them in the formula, offset(log(x)), or as an argument that it evaluates among the columns. The
# sum of all goes to Python as one expression.

added_names <- c("offset", "exposure", "trials")

# The formula and what is added to it of a call's columns. glm()'s response of successes and failures,
# cbind(won, played - won), is won out of trials = played.
parted_response <- function(formula, asked, columns) {
  added <- if (!is.null(asked$added)) asked$added(columns)
  left <- if (inherits(formula, "formula") && length(formula) == 3) formula[[2]]
  if (is.null(added) || !is.call(left) || !identical(left[[1]], quote(cbind))) return(list(formula = formula, added = added))
  failures <- if (length(left) == 3) left[[3]]
  if (!is.call(failures) || !identical(failures[[1]], quote(`-`)) || length(failures) != 3 ||
      !identical(failures[[3]], left[[2]]) || !(is.null(added$trials) || identical(added$trials, failures[[2]]))) {
    refuse_term(label_of(left), "write the successes as the response and trials = the column of their number")
  }
  added$trials <- failures[[2]]
  formula[[2]] <- left[[2]]
  list(formula = formula, added = added)
}

# An argument that glm() would evaluate among the columns: an expression of them, or such a one as text or in a
# one-sided formula. Where it names no column, `value()` evaluates it where the call was made.
row_expression <- function(e, argument, columns, value) {
  refuse <- function(...) dpreg_stop("argument_error", argument, ...)
  if (is.language(e) && !is_formula(e) && !all(all.vars(e) %in% columns)) {
    e <- tryCatch(value(), error = function(cond) {
      refuse(": ", listed(setdiff(all.vars(e), columns)), " is not a column of data; it has ", listed(columns), ".")
    })
  }
  if (is_formula(e)) {
    if (length(e) != 2) refuse(" must be a one-sided formula, such as ~ log(x).")
    e <- e[[2]]
  }
  if (is.character(e) && length(e) == 1 && !is.na(e)) {
    check_text(e, argument)
    if (e %in% columns) return(as.name(e))
    e <- tryCatch(str2lang(e), error = function(cond) refuse(": the text is not an expression of columns."))
  }
  if (is.null(e)) return(NULL)
  if (!is.language(e) || !length(all.vars(e))) {
    refuse(" must be an expression of columns, such as log(x), and no numbers: those of the rows are in data.")
  }
  e
}

# These arguments of a function, in whose `frame` they are; NULL for what was not given.
row_expressions <- function(arguments, frame, columns) {
  sapply(arguments, function(name) {
    row_expression(written(name, frame), name, columns, function() get(name, frame))
  }, simplify = FALSE)
}

is_formula <- function(e) inherits(e, "formula") || is.call(e) && identical(e[[1]], quote(`~`))

# The translation with what Python gets (`sent`, as arguments); `offset`, a list of its code, label and
# expression, or NULL; `in_formula`, the offset() terms; and `added`, the arguments as they go into the call.
with_offset <- function(translation, added, data) {
  parts <- c(lapply(added$formula, function(term) term[[2]]), added$offset)
  translation["in_formula"] <- list(added$formula)
  translation$added <- Filter(Negate(is.null), added[added_names])
  code_of <- function(e) codes_of(list(e), label_of(e), data)
  translation$sent <- lapply(translation$added[names(translation$added) != "offset"], code_of)
  translation$columns <- unique(c(translation$columns, all.vars(added$trials)))
  expression <- if (length(parts)) {
    Reduce(function(a, b) call("+", a, b), parts)
  } else if (!is.null(added$exposure)) call("log", added$exposure)
  if (is.null(expression)) return(translation)
  code <- code_of(expression)
  if (length(parts)) translation$sent$offset <- code
  translation$offset <- expression
  translation$labels <- c(translation$labels, stats::setNames(label_of(expression), code))
  translation$columns <- unique(c(translation$columns, all.vars(expression)))
  translation
}

# Of a saved fit: its offset is one of the formula's terms, however it was given, and a comparison is the
# response again.
saved_model <- function(translation, offset, trials) {
  if (!is.null(trials)) translation$added <- list(trials = str2lang(trials))
  if (!is.null(offset)) {
    translation$offset <- str2lang(offset)
    translation$in_formula <- list(call("offset", translation$offset))
  }
  number <- translation$expressions[[translation$response]]
  if (is.call(number) && identical(number[[1]], quote(I)) && identical(number[[2]][1:2], quote(`*`(1))[1:2])) {
    truth <- number[[2]][[3]][[2]]
    place <- match(translation$response, names(translation$expressions))
    translation$expressions[[place]] <- truth
    names(translation$expressions)[place] <- translation$response <- label_of(truth)
  }
  translation
}

# What the offset() terms of a formula compute, by their labels.
parts_of_offset <- function(terms) {
  found <- as.list(attr(terms, "variables"))[-1][attr(terms, "offset")]
  stats::setNames(lapply(found, `[[`, 2), vapply(found, label_of, ""))
}

add_offsets <- function(formula, offsets) {
  for (term in offsets) formula[[3]] <- call("+", formula[[3]], term)
  formula
}
