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
schema_skeleton <- strict(function(data, ...) with_table(data, function(data, source) skeleton_of(data)))

skeleton_of <- function(data) {
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
format.dp_skeleton <- strict(function(x, ...) {
  names <- ifelse(make.names(x$column) == x$column, x$column, paste0("`", x$column, "`"))
  gaps <- lapply(x$kind, function(kind) skeleton_gaps[[kind]])
  usable <- vapply(gaps, function(gap) nzchar(gap[1]), NA)
  last <- if (any(usable)) max(which(usable)) else 0
  lines <- vapply(seq_along(names), function(i) {
    entry <- if (usable[i]) paste0(names[i], " = ", gaps[[i]][1], if (i < last) ",") else paste0("# ", names[i], ":")
    paste0("  ", format(entry, width = 28), "  # ", gaps[[i]][2])
  }, "")
  c("schema <- list(", lines, ")")
})

#' @rdname schema_skeleton
#' @export
print.dp_skeleton <- strict(function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}, print_options)

#' Rows made up from a schema
#'
#' Draws rows from a schema alone, for writing and trying code before the rows may be touched. Each cell is drawn evenly
#' from what its column may hold, without regard to any other: no mean, share or coefficient of such rows means
#' anything. `set.seed()` makes them the same again.
#'
#' @param schema As for [dp_select()]: a named list, or the path of a TOML or JSON file.
#' @param n How many rows.
#' @param formula Only the columns that this formula names; `NULL` for all.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns A data frame whose rows are named "made up 1", "made up 2" and so on. Numbers are whole where both bounds are.
#' @examples
#' schema <- list(price = c(105, 905), county = c("ala", "cc"), pool = logical())
#' schema_sample(schema, 3, price ~ county)
#' @export
schema_sample <- strict(function(schema, n = 100, formula = NULL, ...) {
  required(sys.function(), environment())
  declared <- written_schema(plain_schema(schema))
  if (!is.numeric(n) || length(n) != 1 || is.na(n) || n < 1 || n %% 1 != 0) {
    dpreg_stop("argument_error", "n must be a whole number of at least 1.")
  }
  if (!is.null(formula)) {
    if (!inherits(formula, "formula")) dpreg_stop("formula_error", "formula must be an R formula such as y ~ a + log(b).")
    declared <- declared[names(declared) %in% all.vars(formula)]
  }
  if (!length(declared)) dpreg_stop("argument_error", "there is no column to draw.")
  columns <- lapply(declared, made_up_cells, n)
  structure(columns, class = "data.frame", row.names = paste("made up", seq_len(n)))
})

made_up_cells <- function(spec, n) {
  if (is.character(spec)) return(stats::runif(n) < 0.5)
  if (!is.null(spec$levels)) return(unlist(spec$levels)[sample.int(length(spec$levels), n, replace = TRUE)])
  ends <- unlist(spec$bounds)
  if (all(ends %% 1 == 0)) return(ends[1] + floor(stats::runif(n) * (ends[2] - ends[1] + 1)))
  stats::runif(n, ends[1], ends[2])
}
