# The one path by which a function of Python's dpreg is called.
#
# A request is a plain list: the function's name, its arguments as plain values, and the columns of
# a table as columns.R lays them out, or the number of one that Python has open (source.R). The reply
# is a list too: `ok`, then the value or the error, and the public warnings. A call that warns stops
# there, before it is charged; once R has signalled the warning, and nobody has ended the call over
# it, the same request goes out again. To wrap another function: an R function with the same arguments
# that calls `python_call()`, and in Python a line in dpreg_bridge/views.py if its result is of a new kind.

python_call <- function(verb, arguments = list(), data = NULL, columns = names(data),
                        source = NULL, translation = NULL) {
  table <- if (!is.null(data)) table_columns(data, columns)
  door <- open_door()
  request <- list(
    verb = verb, arguments = Map(plain_argument, arguments, names(arguments)), columns = table,
    rows = if (!is.null(data)) as.double(nrow(data)), names = if (!is.null(data)) legal(names(data)),
    source = source$number, debug = isTRUE(getOption("dpreg.debug")), heard = 0L,
    words = if (!is.null(translation)) lapply(translation[c("terms", "labels")], as.list)
  )
  check_text(request[c("verb", "arguments")], "an argument")
  repeat {
    reply <- door(request)
    if (is.null(reply)) {
      dpreg_stop("internal_error", "Python gave no answer: please report this.")
    }
    for (text in reply$warnings) dpreg_warn(text)
    if (!isTRUE(reply$again)) break
    request$heard <- request$heard + length(reply$warnings)
  }
  if (!reply$ok) raise(reply)
  reply$value
}

raise <- function(reply) {
  if (identical(reply$class, "KeyboardInterrupt")) {
    # As R itself would: an interrupt for those who handle it, else back to the prompt.
    signalCondition(dpreg_condition("interrupt", ""))
    invokeRestart("abort")
  }
  dpreg_stop(snake_case(reply$class), reply$message)
}

# A call as a function of this package received it, from its `...`: `call`, matched, and `arguments`, those that
# were given, evaluated; Python's own defaults stand for the others. Columns and families that are read as they
# were written stay `apart`, in the function's `frame`; its own `caller` may know what they name.
received <- function(verb, ..., .apart = character(), .renamed = character()) {
  fun <- sys.function(sys.parent())
  frame <- parent.frame()
  caller <- parent.frame(2)
  no_more(..., .harmless = retired[[verb]], .caller = fun)
  tested <- row_test(match.call(fun, sys.call(sys.parent()), envir = caller), caller)
  call <- tested$call
  swapped <- names(call) %in% names(.renamed)
  names(call)[swapped] <- .renamed[names(call)[swapped]]
  required(fun, frame)
  given <- setdiff(names(call), c("", "formula", "data", "subset", .apart, retired[[verb]]))
  arguments <- stats::setNames(lapply(given, get, envir = frame, inherits = FALSE), given)
  arguments <- c(arguments, flat_arguments(verb, ...))
  arguments$where <- tested$where
  list(verb = verb, call = call, arguments = arguments, frame = frame, caller = caller)
}

plain_argument <- function(value, name) {
  if (inherits(value, "dp_method")) value <- unclass(value)
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

# A call to keep in the result: what was typed, without rows. It keeps what is known to hold none, and for
# anything else a placeholder: names, formulas, and the arguments that are public by what dpreg promises.
# `do.call()` and pipes may put whole tables where a name is expected, and functions with all that they can
# see; so may `update()`, and bquote(), substitute() and rlang's inject() within an expression.
public_call <- function(call) {
  call[[1]] <- called_name(call[[1]])
  columns <- c(column_arguments, if (!is.null(call$data)) "x")
  for (name in setdiff(names(call), "")) {
    value <- call[[name]]
    # A path, and a test of rows as row_test() has read it.
    harmless <- name %in% c("data", "subset") && is_name(value) || is_public(value, name, columns)
    shown <- if (!harmless) placeholder(name) else if (is.function(value)) as.name(name) else value
    call[name] <- list(if (is.call(shown)) without_objects(shown) else shown)
  }
  call
}

is_public <- function(value, name, columns = NULL) {
  is_reference(value) || is_formula(value) || name %in% c(public_arguments, columns)
}

# A call to show in a condition, as it was typed: there no argument has been looked at yet, and some may be at
# the wrong place. Of what is not known to hold no rows dots remain.
call_to_show <- function(call) {
  call[[1]] <- called_name(call[[1]])
  names <- names(call) %||% rep("", length(call))
  for (i in seq_along(call)[-1]) {
    value <- call[[i]]
    if (missing(value)) next
    harmless <- names[i] %in% column_arguments && is_name(value) || is_public(value, names[i])
    call[i] <- list(if (harmless) without_objects(value) else quote(...))
  }
  call
}

# What stands for an argument that a call does not keep; update() asks for it.
placeholder <- function(name) as.name(paste0("<", name, ">"))

# Arguments that are public whatever they are. None that may hold rows, a result, an account or an address: what
# is on neither list is left out.
public_arguments <- c(
  "formula", "eps", "delta", "schema", "method", "mechanism", "noise", "scaling", "neighbors", "contributions", "clip",
  "center", "shares", "analyst", "progress", "unsafe_seed", "vcov", "family", "response_cap", "units", "keep",
  "max_terms", "hierarchy", "radius", "penalty", "sigma2", "false_inclusions", "draws", "fit", "engine", "bounds",
  "bins", "complete", "width_share", "q", "alpha", "estimator", "blocks", "correct_bias", "aggregation", "timeout",
  "effects", "sigma", "n", "of", "chance", "candidates", "sd", "correlation", "mean", "spread", "scatter", "seed", "beta", "bound",
  "scale", "empty", "datasets", "analyst_cap", "period_cap", "period", "read_only"
)

# Arguments that name columns. A call that went through has found the columns; in one that did not there may be
# cells instead.
column_arguments <- c("offset", "weights", "exposure", "trials", "person", "by")

# d, d$x, d[["x"]], d@x and package::d: nothing that could hold a cell.
is_reference <- function(e) {
  if (is.name(e)) return(TRUE)
  if (!is.call(e) || length(e) != 3 || !is.name(e[[1]])) return(FALSE)
  part <- switch(as.character(e[[1]]), `::` = , `:::` = , `$` = , `@` = is.name(e[[3]]),
                 `[[` = is.character(e[[3]]) && length(e[[3]]) == 1, FALSE)
  part && is_reference(e[[2]])
}

# The name by which a function was called, or that of a function which stands in the call itself.
called_name <- function(e) {
  if (is.function(e)) return(function_symbol(e))
  if (is.name(e)) return(e)
  if (is_reference(e)) as.name(as.character(e[[3]])) else quote(FUN)
}

# What base R does for an argument without a default, without the call's cells in the condition.
required <- function(fun, frame) {
  for (name in setdiff(names(Filter(function(default) identical(default, quote(expr = )), formals(fun))), "...")) {
    if (eval(call("missing", as.name(name)), frame)) {
      stop(simpleError(paste0("argument \"", name, "\" is missing, with no default"), users_call()))
    }
    get(name, frame)
  }
}

# An argument as it was written.
written <- function(name, frame) eval(call("substitute", as.name(name)), frame)

# What was typed: objects that were put into an expression, or into a default of `function(x = 1) ...`, are left out, as
# are long vectors and the text of the file that such a function was read from.
without_objects <- function(e, defaults = FALSE) {
  if (!is.call(e) && !defaults) return(if (is_object(e)) quote(...) else e)
  if (is.call(e) && is.function(e[[1]])) e[[1]] <- function_symbol(e[[1]])
  defines <- identical(e[[1]], quote(`function`))
  if (defines) e[4] <- list(NULL)
  kept <- if (inherits(e, "formula")) class(e)
  attributes(e)[c("srcref", "srcfile", "wholeSrcref", ".Environment")] <- NULL
  for (i in seq_along(e)) {
    part <- e[[i]]
    if (!missing(part) && !is.null(part)) e[[i]] <- without_objects(part, defines && i == 2)
  }
  if (is.null(kept)) e else structure(e, class = kept, .Environment = globalenv())
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
