#' An account of privacy budget, kept in a file
#'
#' Give it as `budget =` to [dp_select()] or [dp_ols()]: each call is charged before a row is read, and
#' refused where the charge does not fit. There are no refunds. R and Python, and several processes at
#' once, may share the file.
#'
#' @param path The ledger's file. It is made if it does not exist and `eps` is given.
#' @param eps,delta The most that may ever be charged. If the file exists they must be what it says;
#'   without `eps` it is opened as it is.
#' @returns An object of class `dp_ledger`: a list with `path`, `cap`, `spent`, `remaining` (exact
#'   decimals as text) and `entries`, as they were when it was made or printed.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' ledger <- dp_ledger(tempfile(fileext = ".json"), eps = 20)
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_select(mpg ~ wt + hp, mtcars, eps = 10, schema = schema, fit = NULL, budget = ledger)
#' ledger
#' @export
dp_ledger <- function(path, eps = NULL, delta = 0) {
  arguments <- list(path = path_text(path, "path"))
  if (!dir.exists(dirname(arguments$path))) {
    dpreg_stop("budget_error", "there is no folder ", quoted(dirname(arguments$path)), " for the ledger's file.")
  }
  if (!is.null(eps)) arguments <- c(arguments, list(eps = eps, delta = delta))
  view <- python_call("ledger", arguments)
  pair <- function(x) stats::setNames(x, c("eps", "delta"))
  structure(
    list(
      path = view$path, cap = pair(view$cap), spent = pair(view$spent),
      remaining = pair(view$remaining),
      entries = as.data.frame(view[c("what", "eps", "delta", "when")], stringsAsFactors = FALSE)
    ),
    class = "dp_ledger"
  )
}

#' @export
print.dp_ledger <- function(x, ...) {
  now <- if (file.exists(x$path)) tryCatch(dp_ledger(x$path), dpreg_python_missing = function(cond) x) else x
  line <- function(pair) paste0("eps = ", pair[["eps"]], ", delta = ", pair[["delta"]])
  cat("Privacy ledger", now$path, "\n")
  cat("  cap:       ", line(now$cap), "\n  spent:     ", line(now$spent), "\n  remaining: ",
      line(now$remaining), "\n", sep = "")
  if (nrow(now$entries)) print(now$entries, row.names = FALSE)
  invisible(x)
}

# What Python opens: the path of the ledger's file.
ledger_path <- function(budget) if (inherits(budget, "dp_ledger")) budget$path else budget
