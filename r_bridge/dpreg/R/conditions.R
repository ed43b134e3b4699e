# What goes wrong arrives as a classed condition: "dpreg_error", below it one class for each error
# of Python's dpreg. Messages hold public facts only; calls and tracebacks are left out, since what
# a call holds may be rows.

dpreg_stop <- function(kind, ..., call = NULL) {
  stop(dpreg_condition(c(paste0("dpreg_", kind), "dpreg_error", "error"), paste0(...), call))
}

dpreg_warn <- function(message, call = NULL) {
  warning(dpreg_condition(c("dpreg_warning", "warning"), message, call))
}

dpreg_condition <- function(class, message, call = NULL) {
  structure(class = c(class, "condition"), list(message = message, call = call))
}

# "SchemaError" -> "schema_error", "NotReleased" -> "not_released"
snake_case <- function(class) {
  tolower(gsub("(?<=[a-z])(?=[A-Z])", "_", class, perl = TRUE))
}

quoted <- function(x, most = 80) {
  x <- enc2utf8(x)
  long <- nchar(x) > most
  x[long] <- paste0(substr(x[long], 1, most - 3), "...")
  paste0("'", x, "'")
}

listed <- function(x) paste(quoted(x), collapse = ", ")
