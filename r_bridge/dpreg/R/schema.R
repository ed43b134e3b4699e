# A schema as R users write it, laid out for Python:
#
#   list(price = c(105, 905), county = c("ala", "cc"), idp = logical(), rooms = list(levels = 1:3))
#
# or the path of a TOML or JSON file. Levels come from what is written down, never from rows: a
# factor that holds rows is refused, an empty one (a prototype) gives its levels in their order.

plain_schema <- function(schema) {
  if (is.null(schema)) return(NULL)
  if (is.character(schema) && length(schema) == 1 && is.null(names(schema))) {
    return(path_text(schema, "schema"))
  }
  if (!is.list(schema) || is.data.frame(schema) || is.null(names(schema)) && length(schema)) {
    dpreg_stop("schema_error", "schema must be a named list such as ",
               'list(price = c(105, 905), county = c("ala", "cc")), or the path of a TOML or JSON ',
               "file.")
  }
  twice <- names(schema)[duplicated(names(schema))]
  if (length(twice)) dpreg_stop("schema_error", "schema names ", listed(unique(twice)), " more than once.")
  Map(plain_declaration, schema, names(schema))
}

plain_declaration <- function(spec, name) {
  refuse <- function(...) dpreg_stop("schema_error", "column ", quoted(name), ": ", ...)
  if (is.factor(spec)) {
    if (length(spec)) {
      refuse("levels are public facts that you write down, and this factor holds rows; write ",
             'c("level", ...), or factor(levels = c("level", ...)).')
    }
    spec <- levels(spec)
  }
  if (identical(spec, logical()) || is_name(spec) && spec %in% c("logical", "bool", "boolean")) return("bool")
  if (!is.object(spec)) {
    if (is.list(spec)) return(lapply(spec, as.list))
    if (is.character(spec)) return(list(levels = as.list(enc2utf8(spec))))
    if (is.numeric(spec) && length(spec) == 2) return(list(bounds = as.list(unname(spec))))
  }
  refuse('write c(lowest, highest) for numbers, c("level", ...) for text, list(levels = c(1, 2, 3)) ',
         "for numbers that are labels, or logical().")
}

# Text without declared levels: of a file Python would read it as numbers, after a warning.
check_declared <- function(data, columns, schema, exempt = character()) {
  if (is.character(schema)) return(invisible())
  for (name in intersect(setdiff(columns, c(names(schema), exempt)), attr(data, "names"))) {
    kind <- column_kind(.subset2(data, match(name, attr(data, "names"))), name)
    if (kind %in% c("text", "labels")) {
      dpreg_stop(
        "schema_error", "column ", quoted(name), " holds ", kind, ", and its levels must be declared, for those found ",
        "in the rows are not public: add ", if (make.names(name) == name) name else paste0("`", name, "`"),
        ' = c("level", "level", ...) to the schema, the reference level first.'
      )
    }
  }
}

# A schema that a file holds, as a list.
written_schema <- function(schema) {
  if (!is.character(schema)) return(schema)
  plain_schema(python_call("schema", list(schema = schema)))
}

# The bounds that a schema declares for a column, or NULL.
declared_bounds <- function(schema, name) unlist(written_schema(schema)[[name]]$bounds)
