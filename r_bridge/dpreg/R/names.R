# Python's names of terms and columns as R's: "county[T.cc]" is "countycc", "np.log(x)" is "log(x)".
#
# Names are not guessed from text: a column's name is put together from the variables of its term
# and the levels that the schema declares, and is translated when it is found that way. One that is
# not found keeps Python's name.

unit_name <- function(name, translation, schema) {
  term <- term_of(name, translation, schema)
  if (term == name) unname(translation$terms[term]) else column_name(name, translation, schema)
}

# The term (by Python's name) that a term or column of Python's name belongs to.
term_of <- function(name, translation, schema) {
  if (name %in% names(translation$terms)) return(name)
  found <- find_column(name, translation, schema)
  if (is.null(found)) dpreg_stop("internal_error", "Python names a term that R does not know: please report this.")
  found$code
}

column_name <- function(column, translation, schema) {
  if (column == "Intercept") return("(Intercept)")
  parts <- find_column(column, translation, schema)
  if (is.null(parts)) column else paste0(parts$labels, parts$ends, collapse = ":")
}

# The term of a column, by Python's name, and what its name is made of. Where a factor is in a formula as a part of
# products alone, patsy puts columns of fewer variables into its term, as flag[T.True] into g:flag.
find_column <- function(column, translation, schema) {
  most <- max(lengths(translation$factors), 0)
  for (left_out in seq_len(most) - 1) {
    for (term in names(translation$factors)) {
      codes <- translation$factors[[term]]
      if (left_out >= length(codes)) next
      for (own in utils::combn(seq_along(codes), length(codes) - left_out, simplify = FALSE)) {
        parts <- read_parts(column, codes[own], translation$labels, schema)
        if (!is.null(parts)) return(c(list(code = term), parts))
      }
    }
  }
  NULL
}

# The variables that a column's name is made of, by R's labels, and what follows each in R.
read_parts <- function(column, codes, labels, schema) {
  if (!length(codes)) return(if (!nzchar(column)) list(labels = character(), ends = character()))
  code <- codes[[1]]
  if (!startsWith(column, code)) return(NULL)
  rest <- substring(column, nchar(code) + 1)
  for (ending in endings(code, schema)) {
    if (!startsWith(rest, ending$python)) next
    after <- substring(rest, nchar(ending$python) + 1)
    if (length(codes) > 1) {
      if (!startsWith(after, ":")) next
      after <- substring(after, 2)
    }
    more <- read_parts(after, codes[-1], labels, schema)
    if (is.null(more)) next
    return(list(labels = c(labels[[code]], more$labels), ends = c(ending$r, more$ends)))
  }
  NULL
}

# What may follow a variable in a column's name: a level in brackets, a spline's number, or nothing.
endings <- function(code, schema) {
  if (startsWith(code, "bs(")) {
    return(Map(list, python = paste0("[", 0:99, "]"), r = as.character(1:100)))
  }
  levels <- unlist(lapply(schema, function(spec) {
    vapply(if (is.list(spec)) spec$levels else if (is.character(spec)) spec, level_text, "")
  }))
  written <- regmatches(code, regexpr("(?<=levels=\\[).*(?=\\]\\)$)", code, perl = TRUE))
  if (length(written)) levels <- c(levels, gsub('^"|"$', "", strsplit(written, ", ", fixed = TRUE)[[1]]))
  python <- c(unique(levels), "True", "False")
  r <- c(unique(levels), "TRUE", "FALSE")
  c(
    Map(list, python = paste0("[T.", python, "]"), r = r),
    Map(list, python = paste0("[", python, "]"), r = r),
    list(list(python = "", r = ""))
  )
}

level_text <- function(level) if (is.character(level)) level else python_number(level)

# Names of terms as R users give them (`keep`), for Python.
python_term_names <- function(terms, translation, argument) {
  names <- names(translation$terms)
  known <- c("(Intercept)", "Intercept", translation$terms, names)
  if (!is.character(terms) || length(terms) > 1 && !any(terms %in% known)) {
    dpreg_stop("argument_error", argument, " must be terms of the formula, in quotes; its terms are ",
               listed(translation$terms), ".")
  }
  vapply(terms, function(term) {
    if (term %in% c("(Intercept)", "Intercept")) return("Intercept")
    found <- match(term, translation$terms, nomatch = match(term, names, nomatch = 0L))
    if (found == 0L) {
      dpreg_stop("argument_error", argument, ": ", quoted(term), " is not a term of the formula; ",
                 "its terms are ", listed(translation$terms), ".")
    }
    names[found]
  }, "", USE.NAMES = FALSE)
}
