#' A schema to fill in
#'
#' Lays out the `schema` of [dp_select()] for a table, with a gap wherever a public fact is to be written
#' down. Of the table only the columns' names and classes are looked at, and no row.
#'
#' @param data A data frame, or another table that [dp_select()] takes.
#' @param x A skeleton.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object of class `dp_skeleton`: a data frame of `column` and `kind`. `print()` shows R code to
#'   copy and to fill in, and `format()` is its lines.
#' @examples
#' schema_skeleton(data.frame(price = 1, county = "ala", pool = TRUE))
#' @export
schema_skeleton <- function(data, ...) {
  no_more(...)
  if (is_source(data)) {
    source <- open_source(data)
    on.exit(close_source(source))
    data <- source$columns
  }
  if (!is.data.frame(data)) not_a_table(data)
  names <- attr(data, "names")
  kinds <- vapply(seq_along(names), function(i) {
    tryCatch(column_kind(.subset2(data, i), names[i]), dpreg_data_error = function(cond) "other")
  }, "")
  structure(data.frame(column = readable(names), kind = kinds), class = c("dp_skeleton", "data.frame"))
}

skeleton_gaps <- list(
  number = c("c( , )", "numbers: the lowest and the highest legal value"),
  logical = c("logical()", "true or false"),
  text = c('c("", "")', "text: every level, the reference first"),
  labels = c('c("", "")', "labels: every level, the reference first"),
  other = c("", "neither numbers nor labels: make one of these of it before use")
)
skeleton_gaps$integer64 <- skeleton_gaps$number
skeleton_gaps$list <- skeleton_gaps$other

#' @rdname schema_skeleton
#' @export
format.dp_skeleton <- function(x, ...) {
  no_more(...)
  names <- ifelse(make.names(x$column) == x$column, x$column, paste0("`", x$column, "`"))
  gaps <- lapply(x$kind, function(kind) skeleton_gaps[[kind]])
  usable <- vapply(gaps, function(gap) nzchar(gap[1]), NA)
  last <- if (any(usable)) max(which(usable)) else 0
  lines <- vapply(seq_along(names), function(i) {
    entry <- if (usable[i]) paste0(names[i], " = ", gaps[[i]][1], if (i < last) ",") else paste0("# ", names[i], ":")
    paste0("  ", format(entry, width = 28), "  # ", gaps[[i]][2])
  }, "")
  c("schema <- list(", lines, ")")
}

#' @rdname schema_skeleton
#' @export
print.dp_skeleton <- function(x, ...) {
  no_more(..., .harmless = print_options)
  cat(format(x), sep = "\n")
  invisible(x)
}
