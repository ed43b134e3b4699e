# The one path by which a function of Python's dpreg is called.
#
# A request is a plain list: the function's name, its arguments as plain values, and the columns of
# a table as columns.R lays them out, or the number of one that Python has open (source.R). The reply
# is a list too: `ok`, then the value or the error, and the public warnings. A call that warns stops
# there, before it is charged; once R has signalled the warning, and nobody has ended the call over
# it, the same request goes out again. To wrap another function: an R function with the same arguments
# that calls `python_call()`, and in Python a line in dpreg_bridge/views.py if its result is of a new kind.

python_call <- function(verb, arguments = list(), data = NULL, columns = names(data),
                        source = NULL, labels = NULL) {
  table <- if (!is.null(data)) table_columns(data, columns)
  door <- open_door()
  request <- list(
    verb = verb, arguments = plain_arguments(arguments), columns = table,
    rows = if (!is.null(data)) as.double(nrow(data)), source = source$number, debug = isTRUE(getOption("dpreg.debug")),
    heard = 0L
  )
  check_text(request[c("verb", "arguments")], "an argument")
  repeat {
    reply <- door(request)
    if (is.null(reply)) {
      dpreg_stop("internal_error", "Python gave no answer: please report this.")
    }
    for (text in reply$warnings) dpreg_warn(in_r_words(text, labels))
    if (!isTRUE(reply$again)) break
    request$heard <- request$heard + length(reply$warnings)
  }
  if (!reply$ok) raise(reply, labels)
  reply$value
}

raise <- function(reply, labels) {
  if (identical(reply$class, "KeyboardInterrupt")) {
    # As R itself would: an interrupt for those who handle it, else back to the prompt.
    signalCondition(dpreg_condition("interrupt", ""))
    invokeRestart("abort")
  }
  dpreg_stop(snake_case(reply$class), in_r_words(reply$message, labels))
}

# The arguments that a matched call names, evaluated; Python's own defaults stand for the others.
given_arguments <- function(call, frame = parent.frame()) {
  names <- setdiff(names(call), c("", "formula", "data"))
  stats::setNames(lapply(names, get, envir = frame, inherits = FALSE), names)
}

plain_arguments <- function(arguments) Map(plain_argument, arguments, names(arguments))

plain_argument <- function(value, name) {
  if (is.list(value) && !is.object(value)) {
    inner <- names(value) %||% rep("", length(value))
    inner <- ifelse(nzchar(inner), paste0(name, "$", inner), paste0(name, "[[", seq_along(value), "]]"))
    return(Map(plain_argument, value, inner) |> stats::setNames(names(value)))
  }
  if (is.factor(value)) value <- as.character(value)
  if (is.object(value) || !(is.null(value) || is.logical(value) || is.numeric(value) ||
                            is.character(value))) {
    dpreg_stop("argument_error", name, " must be plain numbers, text, TRUE or FALSE, or a list of ",
               "these; got an object of class ", quoted(class(value)[1]), ".")
  }
  if (anyNA(value)) dpreg_stop("argument_error", name, " must not be NA.")
  if (!is.character(value)) return(value)
  check_text(value, name)
  enc2utf8(value)
}

# A call to keep in the result: what was typed, without rows. `do.call()` and pipes may put whole
# tables where a name is expected, and functions with all that they can see; so may `update()`, and
# bquote(), substitute() and rlang's inject() within an expression.
public_call <- function(call) {
  if (is.function(call[[1]])) call[[1]] <- function_symbol(call[[1]])
  call[[1]] <- as.name(sub("^.*::", "", deparse1(call[[1]])))
  for (name in setdiff(names(call), "")) {
    value <- call[[name]]
    path <- name == "data" && is.character(value)
    rows <- name %in% c("data", "newdata") || name == "x" && is.null(call$data)
    if (rows && !path) value <- call[[name]] <- if (is_of_a_name(value)) without_cells(value) else quote(data)
    # A ledger's address may hold a password.
    if (name == "budget" && !is.language(value)) call[[name]] <- quote(budget)
    if (is.function(value)) call[[name]] <- as.name(name)
    if (is.call(value)) call[[name]] <- without_objects(value)
    if (inherits(value, "formula")) call[[name]] <- bare_formula(value)
  }
  call
}

# Whether an expression starts from a name, as d, d$x and subset(d, x > 0) do, and c(23, 45) does not.
is_of_a_name <- function(e) {
  while (is.call(e) && length(e) > 1) e <- e[[2]]
  is.name(e)
}

# What was typed of an expression for rows, its cells left out: of c(d$x, 23, 45) the numbers. Constants
# that compare or index rows, as in d[d$x > 0, 1:3], or scale them, as in transform(d, x = x / 100), stay.
without_cells <- function(e, cells = FALSE) {
  if (!is.call(e)) return(if (cells && is.atomic(e) && !is.null(e)) quote(...) else e)
  verb <- sub("^.*::", "", deparse1(e[[1]]))
  if (verb %in% c("<", ">", "<=", ">=", "==", "!=", "%in%", "::", ":::")) return(e)
  cells <- cells || verb %in% vector_makers
  for (i in if (verb %in% c("[", "[[", "$", "@")) 2 else seq_along(e)) {
    value <- e[[i]]
    if (missing(value) || is.null(value)) next
    e[[i]] <- without_cells(value, cells)
  }
  e
}

vector_makers <- c("c", "list", "data.frame", "data.table", "tibble", "tribble", "cbind", "rbind", "append",
                   "replace", "matrix", "array", "rep", "structure")

# What was typed: objects that were put into an expression are left out, as are long vectors and the
# text of the file that `function(x) ...` was read from.
without_objects <- function(e) {
  if (is.function(e[[1]])) e[[1]] <- function_symbol(e[[1]])
  defines <- identical(e[[1]], quote(`function`))
  if (defines) e[4] <- list(NULL)
  kept <- if (inherits(e, "formula")) class(e)
  attributes(e)[c("srcref", "srcfile", "wholeSrcref", ".Environment")] <- NULL
  for (i in seq_along(e)) {
    if (is.call(e[[i]])) {
      e[[i]] <- without_objects(e[[i]])
    } else if (defines && i == 2) {
      if (length(e[[i]])) e[[i]] <- without_defaults(e[[i]])
    } else if (is_object(e[[i]])) {
      e[[i]] <- quote(...)
    }
  }
  if (is.null(kept)) e else structure(e, class = kept, .Environment = globalenv())
}

# The arguments of `function(x = 1) ...`, objects left out of their defaults.
without_defaults <- function(arguments) {
  for (i in seq_along(arguments)) {
    value <- arguments[[i]]
    if (missing(value) || is.null(value)) next
    if (is.call(value)) arguments[[i]] <- without_objects(value)
    if (is_object(value)) arguments[[i]] <- quote(...)
  }
  arguments
}

# Whether a part of a call is an object that nobody types: rows may be in it.
is_object <- function(value) {
  if (missing(value) || is.language(value) && !is.expression(value) || is.null(value)) return(FALSE)
  is.object(value) || !is.atomic(value) || length(value) > 3
}

# A formula carries the environment it was made in, and saveRDS() would save the rows found there.
bare_formula <- function(formula) {
  environment(formula) <- globalenv()
  formula
}
