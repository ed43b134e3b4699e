# Which rows a call is about: `subset`, an expression of columns as lm() takes it, or the same as text or quoted. It goes to
# Python as text, which tests each row by itself, within the promise; here no row is looked at.

# The call with the test as text, and the text, or NULL.
row_test <- function(call, caller) {
  e <- call$subset
  if (is.null(e)) return(list(call = call, where = NULL))
  refuse <- function(...) dpreg_stop("argument_error", "subset: ", ...)
  if (is.name(e)) {
    if (grepl("^[.][.][0-9]+$", e)) refuse("a test that is passed on by ... must be written as text.")
    held <- get0(as.character(e), caller, mode = "any")
    if (is.call(held) || is_name(held)) e <- held
  }
  if (is.call(e) && identical(e[[1]], quote(quote))) e <- e[[2]]
  if (!is_name(e)) {
    if (!is.name(e) && !is.call(e) || holds_rows(e)) {
      refuse('write a test of columns, such as op == "a" & age >= 18, or the same as text; a vector of rows would tell ',
             "how many pass.")
    }
    e <- test_text(e, function(...) refuse(..., "."))
  }
  check_text(e, "subset")
  call$subset <- e
  list(call = call, where = e)
}

holds_rows <- function(e) {
  if (is.call(e)) return(any(vapply(as.list(e)[-1], holds_rows, NA)))
  !is.name(e) && !(is.atomic(e) && length(e) == 1 && !is.object(e))
}

test_text <- function(e, refuse) {
  inside <- function(part) test_text(part, refuse)
  if (is.name(e)) return(python_name(as.character(e)))
  if (isTRUE(e) || isFALSE(e)) return(if (e) "True" else "False")
  if (!is.call(e)) refuse("it is no test of columns")
  name <- function_name(e, refuse)
  join <- c("&" = "and", "&&" = "and", "|" = "or", "||" = "or")
  if (name %in% names(join)) return(paste0("(", inside(e[[2]]), ") ", join[[name]], " (", inside(e[[3]]), ")"))
  if (name == "(") return(paste0("(", inside(e[[2]]), ")"))
  if (name == "!") return(paste0("not (", inside(e[[2]]), ")"))
  plain <- function(part) if (is.logical(part)) inside(part) else translate_expression(part, all.vars(part), refuse)
  if (name == "%in%") {
    return(paste(plain(e[[2]]), "in", python_list(literal_vector(e[[3]], refuse, "what follows %in%"))))
  }
  if (name %in% c("==", "!=")) return(paste(plain(e[[2]]), name, plain(e[[3]])))
  plain(e)
}

# The columns of a table that a test may name; Python says which it does.
tested_columns <- function(where, names) {
  if (is.null(where)) return(NULL)
  names[vapply(names, function(name) grepl(name, where, fixed = TRUE), NA)]
}
