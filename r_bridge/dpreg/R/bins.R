# Terms that R itself takes apart: poly(x, 2, raw = TRUE) as powers, and cut(x, breaks) as a column of
# labels that R computes, row by row, from public breaks.

# poly(x, 2, raw = TRUE), as a term or a part of one, is (x + I(x^2)).
with_powers <- function(formula) {
  open <- function(e) {
    if (calls(e, "poly")) return(powers_of(e))
    if (is.call(e) && function_name(e) %in% c("+", "-", "*", ":", "^", "(", "%in%", "/")) e[-1] <- lapply(as.list(e[-1]), open)
    e
  }
  formula[[length(formula)]] <- open(formula[[length(formula)]])
  formula
}

powers_of <- function(call) {
  shown <- label_of(call)
  refuse <- function(...) refuse_term(shown, paste0(...))
  given <- tryCatch(
    match.call(function(x, degree = 1, raw = FALSE, simple = FALSE) NULL, without_package(call)),
    error = function(cond) refuse("poly() takes one column, a degree and raw = TRUE here")
  )
  raw <- given$raw
  if (!(isTRUE(raw) || identical(raw, quote(T)))) {
    refuse("it is computed across rows, and a private fit may read each row on its own only; write poly(x, 2, raw = TRUE), ",
           "or powers: x + I(x^2)")
  }
  degree <- given$degree %||% 1
  if (!is.numeric(degree) || length(degree) != 1 || !degree %in% 1:10) {
    refuse("the degree of poly() must be a whole number from 1 to 10, written out")
  }
  powers <- lapply(seq_len(degree), function(k) if (k == 1) given$x else bquote(I(.(given$x)^.(as.double(k)))))
  call("(", Reduce(function(a, b) call("+", a, b), powers))
}

# What R makes of a column for a term such as cut(x, c(0, 10, 20)): the call, its column, its levels.
derived_column <- function(variable) {
  if (!calls(variable, "cut")) return(NULL)
  call <- without_package(variable)
  column <- as.character(call[["x"]] %||% call[[2]])
  empty <- stats::setNames(list(numeric()), column)
  made <- tryCatch(eval(call, empty, row_functions_of_r), error = function(cond) {
    refuse_term(label_of(variable), "cut() cannot read its arguments")
  })
  list(call = call, column = column, levels = levels(made))
}

# The table and the schema with the columns that R makes.
add_derived <- function(data, schema, translation) {
  for (label in names(translation$derived)) {
    made <- translation$derived[[label]]
    schema[[label]] <- list(levels = as.list(made$levels))
    column <- .subset2(data, match(made$column, attr(data, "names")))
    if (!column_kind(column, made$column) %in% c("number", "logical")) {
      dpreg_stop("data_error", "column ", quoted(made$column), " must hold numbers: ", label, " makes bins of it.")
    }
    cells <- stats::setNames(list(as.double(plain_column(column, made$column)$values)), made$column)
    columns <- c(unclass(data), stats::setNames(list(eval(made$call, cells, row_functions_of_r)), label))
    data <- structure(columns, class = "data.frame", row.names = .set_row_names(.row_names_info(data, 2L)))
  }
  list(data = data, schema = schema)
}
