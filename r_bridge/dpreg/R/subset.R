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
    e <- python_call("row_test", list(tree = as_tree(e)))
  }
  check_text(e, "subset")
  call$subset <- e
  list(call = call, where = e)
}

holds_rows <- function(e) {
  if (is.call(e)) return(any(vapply(as.list(e)[-1], holds_rows, NA)))
  !is.name(e) && !(is.atomic(e) && length(e) == 1 && !is.object(e))
}

# The columns of a table that a test may name; Python says which it does.
tested_columns <- function(where, names) {
  if (is.null(where)) return(NULL)
  names[vapply(names, function(name) grepl(name, where, fixed = TRUE), NA)]
}
