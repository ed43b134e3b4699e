# A table's columns, laid out for Python. What a cell means must not depend on other cells, so the
# class of a column decides how it travels, never its values.
#
#   logical                     values, NA kept                      kind "logical"
#   integer, double             values, NA and NaN are missing       kind "number"
#   integer64 (bit64)           the 64 bits of each value            kind "integer64"
#   character                   codes into the distinct texts        kind "text"
#   factor, ordered             codes into the levels                kind "labels"
#
# All other kinds are refused by name, dates and times with how to make numbers of them. Numbers go
# over as a view of R's own memory; of texts only the distinct ones are converted.
#
# Whatever R could stumble over is done here: an R error inside Python would end the process. A cell of
# text in no known encoding, which rpy2 could not read, is missing, as is a factor's code without a
# level: were its column refused, one row would decide whether the call succeeds.

table_columns <- function(data, columns) {
  if (!is.data.frame(data)) {
    dpreg_stop("argument_error", "data must be a data frame (a tibble and a data.table are); got ",
               "an object of class ", quoted(class(data)[1]), ".")
  }
  names <- attr(data, "names")
  repeated <- intersect(columns, names[duplicated(names)])
  if (length(repeated)) {
    dpreg_stop("data_error", "data has several columns named ", listed(repeated), ": keep or rename one.")
  }
  absent <- setdiff(columns, names)
  if (length(absent)) {
    dpreg_stop("data_error", "data has no column ", listed(absent), "; it has ", listed(names), ".")
  }
  check_text(columns, "the name of a column")
  rows <- .row_names_info(data, 2L)
  laid_out <- lapply(columns, function(name) plain_column(.subset2(data, match(name, names)), name, rows))
  stats::setNames(laid_out, enc2utf8(columns))
}

plain_column <- function(x, name, rows = length(x)) {
  reading_column(name, function(refuse) lay_out(x, rows, refuse))
}

# "number", "integer64", "logical", "text", "labels" or "list"; any other is refused.
column_kind <- function(x, name) reading_column(name, function(refuse) column_class(x, refuse))

reading_column <- function(name, read) {
  refuse <- function(...) dpreg_stop("data_error", "column ", quoted(name), " ", ...)
  withCallingHandlers(
    tryCatch(read(refuse), error = function(cond) {
      if (inherits(cond, "dpreg_error")) stop(cond)
      # R's own words may hold cells.
      refuse("cannot be read by R itself: make it numeric, logical, character or a factor.")
    }),
    warning = function(cond) tryInvokeRestart("muffleWarning")
  )
}

lay_out <- function(x, rows, refuse) {
  kind <- column_class(x, refuse)
  if (!is.null(attr(x, "dim"))) refuse(unreadable[["data.frame"]])
  if (is.list(x)) refuse("is a list: a column must hold one number or label in each row.")
  if (length(x) != rows) refuse("has another length than data has rows.")
  if (kind == "labels") return(labels_column(x, refuse))
  if (kind == "text") return(c(kind = kind, coded_texts(x)))
  x <- unclass(x)
  # A vector that R would compute only when it is read (ALTREP) is computed here, where it may fail.
  if (length(x)) .colSums(x, length(x), 1L)
  list(kind = kind, values = x)
}

# What is no column, by its class, the narrower one first.
since_a_date <- paste0("holds dates or times: make a number of it, such as the days since a fixed date, ",
                       'as.numeric(x - as.Date("2000-01-01")).')
unreadable <- c(
  hms = "holds durations: make a number of it, such as the seconds, as.numeric(x).",
  difftime = 'holds durations: make a number of it, such as the days, as.numeric(x, units = "days").',
  POSIXt = paste0("holds dates or times: make a number of it, such as the hours since a fixed time, ",
                  'as.numeric(difftime(x, as.POSIXct("2000-01-01", tz = "UTC"), units = "hours")).'),
  Date = since_a_date, times = since_a_date, period = since_a_date,
  haven_labelled = "is of class 'haven_labelled': make a factor of it by haven::as_factor(), or numbers by haven::zap_labels().",
  data.frame = "is a matrix or a data frame: give each of its columns a name.",
  complex = "holds complex numbers: take Re(), Im() or Mod() of it.",
  raw = "holds raw bytes: make numbers of them, by as.integer()."
)

# The kind of a column, by its class and type alone.
column_class <- function(x, refuse) {
  if (isS4(x)) refuse(unknown_class(x))
  classes <- setdiff(oldClass(x), "AsIs")
  known <- names(unreadable)[vapply(names(unreadable), inherits, NA, x = x)]
  if (length(known)) refuse(unreadable[[known[1]]])
  if (is.factor(x)) return("labels")
  if (inherits(x, "integer64") && is.double(x)) return("integer64")
  if (length(classes) && !is.list(x)) refuse(unknown_class(x))
  switch(typeof(x),
    logical = "logical", integer = , double = "number", character = "text", list = "list",
    refuse("is of type ", quoted(typeof(x)), ": make it numeric, logical, character or a factor.")
  )
}

unknown_class <- function(x) {
  paste0("is of class ", quoted(class(x)[1]), ", which dpreg does not know: make it numeric, logical, ",
         "character or a factor.")
}

# Texts as places among the distinct ones, which alone are converted; NA for what is no legal text.
coded_texts <- function(x) {
  x <- as.vector(unclass(x))
  x[!are_legal(x)] <- NA
  distinct <- unique(x[!is.na(x)])
  list(values = match(x, distinct), levels = enc2utf8(distinct))
}

labels_column <- function(x, refuse) {
  codes <- as.integer(unclass(x))
  labels <- attr(x, "levels")
  if (!is.character(labels) || !typeof(x) %in% c("integer", "double")) {
    refuse("is not a factor that R can read: make it anew by factor().")
  }
  codes[codes < 1L | codes > length(labels)] <- NA
  known <- coded_texts(labels) # addNA() makes a level of NA
  list(kind = "labels", values = known$values[codes], levels = known$levels, ordered = is.ordered(x))
}
