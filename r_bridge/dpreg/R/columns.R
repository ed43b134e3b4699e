# A table's columns, laid out for Python. What a cell means must not depend on other cells, so the
# class of a column decides how it travels, never its values.
#
#   logical                     values, NA kept                      kind "logical"
#   integer, double             values, NA and NaN are missing       kind "number"
#   integer64 (bit64)           the 64 bits of each value            kind "integer64"
#   character                   codes into the distinct texts        kind "text"
#   factor, ordered             codes into the levels                kind "labels"
#
# All other kinds are refused by name, dates and times with how to make numbers of them. Numbers go over as a view of R's own memory; of texts only
# the distinct ones are converted.

table_columns <- function(data, columns) {
  if (!is.data.frame(data)) {
    dpreg_stop("argument_error", "data must be a data frame (a tibble and a data.table are); got ",
               "an object of class ", quoted(class(data)[1]), ".")
  }
  repeated <- columns[columns %in% names(data)[duplicated(names(data))]]
  if (length(repeated)) {
    dpreg_stop("data_error", "data has several columns named ", listed(repeated[1]),
               ": keep or rename one.")
  }
  absent <- setdiff(columns, names(data))
  if (length(absent)) {
    dpreg_stop("data_error", "data has no column ", listed(absent), "; it has ",
               listed(names(data)), ".")
  }
  stats::setNames(lapply(columns, function(name) plain_column(data[[name]], name)),
                  enc2utf8(columns))
}

plain_column <- function(x, name) {
  refuse <- function(...) dpreg_stop("data_error", "column ", quoted(name), " ", ...)
  class(x) <- setdiff(oldClass(x), "AsIs")
  if (inherits(x, c("Date", "POSIXt", "difftime", "times", "hms", "period"))) {
    refuse("holds dates or times: make a number of it, such as the days since a fixed date, ",
           'as.numeric(x - as.Date("2000-01-01")).')
  }
  if (is.factor(x)) return(labels_column(x))
  if (inherits(x, "integer64") && is.double(x)) return(list(kind = "integer64", values = unclass(x)))
  if (!is.null(dim(x))) refuse("is a matrix or a data frame: give each of its columns a name.")
  if (is.list(x)) refuse("is a list: a column must hold one number or label in each row.")
  if (is.complex(x)) refuse("holds complex numbers: take Re(), Im() or Mod() of it.")
  if (is.raw(x)) refuse("holds raw bytes: make numbers of them, by as.integer().")
  if (is.object(x)) {
    refuse("is of class ", quoted(class(x)[1]), ", which dpreg does not know: make it numeric, ",
           "logical, character or a factor.")
  }
  if (is.logical(x)) return(list(kind = "logical", values = x))
  if (is.numeric(x)) return(list(kind = "number", values = x))
  if (is.character(x)) return(text_column(x))
  refuse("is of type ", quoted(typeof(x)), ": make it numeric, logical, character or a factor.")
}

text_column <- function(x) {
  distinct <- unique(x)
  distinct <- distinct[!is.na(distinct)]
  list(kind = "text", values = match(x, distinct), levels = enc2utf8(distinct))
}

labels_column <- function(x) {
  # addNA() makes a level of NA; a missing label it remains.
  if (anyNA(levels(x))) x <- factor(x, exclude = NA)
  list(kind = "labels", values = as.integer(x), levels = enc2utf8(levels(x)),
       ordered = is.ordered(x))
}
