# What goes wrong arrives as a classed condition: "dpreg_error", below it one class for each error
# of Python's dpreg. Messages hold public facts only; tracebacks of Python are left out, and of the
# user's call what may hold rows (call.R).

dpreg_stop <- function(kind, ..., call = users_call()) {
  stop(dpreg_condition(c(paste0("dpreg_", kind), "dpreg_error", "error"), paste0(...), call))
}

dpreg_warn <- function(message, call = users_call()) {
  warning(dpreg_condition(c("dpreg_warning", "warning"), message, call))
}

dpreg_message <- function(..., call = users_call()) {
  message(dpreg_condition(c("dpreg_message", "message"), paste0(..., "\n"), call))
}

dpreg_condition <- function(class, message, call = NULL) {
  structure(class = c(class, "condition"), list(message = message, call = call))
}

# The call by which the user came in: the outermost of this package's functions, as it was typed.
users_call <- function() {
  for (i in seq_len(sys.nframe())) {
    fun <- sys.function(i)
    if (!is.primitive(fun) && identical(topenv(environment(fun)), topenv())) {
      return(call_to_show(sys.call(i)))
    }
  }
  NULL
}

# A name for a function that stands in a call itself.
function_symbol <- function(fun) {
  space <- topenv()
  known <- Filter(function(name) identical(space[[name]], fun), ls(space))
  as.name(if (length(known)) known[[1]] else "FUN")
}

# "SchemaError" -> "schema_error", "NotReleased" -> "not_released"
snake_case <- function(class) {
  tolower(gsub("(?<=[a-z])(?=[A-Z])", "_", class, perl = TRUE))
}
