#' An account of privacy budget
#'
#' Give it as `budget =` to [dp_select()], [dp_ols()], [dp_glm()] and whatever else reads rows: each call is charged
#' before a row is read, and refused where the charge does not fit under every cap. There are no refunds. R
#' and Python, and several processes and users at once, may share the account.
#'
#' `verify_ledger()` goes through the whole book: hashes, sums and caps. Keep the `head` that it tells where
#' those who may write to the ledger cannot; given again later, it shows that no entry before it was changed.
#' `adopt_ledger()` lets a ledger be charged where it lies now, after it was moved, copied or restored; only do
#' this when the other copy is gone for good, for two copies spend the same budget twice.
#'
#' A *witness* keeps the last head in a second file, on another disk, or in another database: a ledger that was
#' restored from a backup is then refused, where else its budget would be spent again. A ledger that is made with a
#' witness is charged with it alone, so name it at each `dp_ledger()`; one that exists gets one by `adopt_ledger()`,
#' which also accepts on purpose that entries are lost. If both are restored together, no file can know of it.
#'
#' @param path The ledger's file, or the address of a PostgreSQL database, `"postgresql://..."` (see
#'   [install_dpreg()] for what that needs). It is made if it does not exist and `eps` is given. An address's
#'   password stays in this session: leave it to `~/.pgpass` where the ledger is to be opened by a later one.
#' @param eps,delta The most that may ever be charged. If the account exists they must be what it says;
#'   without `eps` it is opened as it is.
#' @param analyst_cap The most for each analyst: a number (an eps), `c(eps = 1, delta = 1e-6)`, or a named list
#'   of such for those who may charge, nobody else then.
#' @param period_cap The most in each period of the UTC calendar: a number, or `c(eps = 1, delta = 1e-6)`.
#' @param period `"day"`, `"month"`, `"quarter"` or `"year"`.
#' @param witness The file or the PostgreSQL address that keeps the last head.
#' @param analyst Who charges through this object; calls may say so by `analyst =` themselves.
#' @param read_only Only look at an account that exists?
#' @param timeout Seconds to wait for the account while others hold it.
#' @param ledger A ledger, or its path.
#' @param head A `head` that was seen earlier: the account must still hold it.
#' @param reason Why the ledger is adopted: public text, kept in it.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns `dp_ledger()` and `adopt_ledger()`: an object of class `dp_ledger`, a list with `path`, `witness`, `cap`,
#'   `spent`, `remaining` (exact decimals as text), `caps` (a data frame, of analysts and periods), `entries`
#'   (a data frame) and `head`, which `$` and `[[` read anew from the account. `as.data.frame()` gives the entries.
#'   `verify_ledger()`: a list with `head`,
#'   `entries`, their number, and `spent`; what is wrong with an account is an error of class
#'   `dpreg_ledger_error`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' ledger <- dp_ledger(tempfile(fileext = ".db"), eps = 20, analyst_cap = 15)
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400))
#' fit <- dp_select(mpg ~ wt + hp, mtcars, eps = 10, schema = schema, fit = NULL, budget = ledger,
#'                  analyst = "ada")
#' ledger
#' verify_ledger(ledger)$entries
#' @export
dp_ledger <- function(path, eps = NULL, delta = 0, analyst_cap = NULL, period_cap = NULL, period = "month",
                      analyst = NULL, witness = NULL, read_only = FALSE, timeout = 30, ...) {
  arguments <- Filter(length, received("dp_ledger", ..., .apart = "analyst")$arguments) # who charges is said at each charge
  arguments$path <- ledger_path(path)
  arguments$witness <- witness_path(witness)
  if (!is_address(arguments$path) && !dir.exists(dirname(arguments$path))) {
    dpreg_stop("budget_error", "there is no folder ", quoted(dirname(arguments$path)), " for the ledger's file.")
  }
  caps <- intersect(c("analyst_cap", "period_cap"), names(arguments))
  arguments[caps] <- rapply(arguments[caps], as.list, how = "list")
  new_ledger(python_call("ledger", arguments), arguments$path, analyst, read_only, arguments$witness)
}

new_ledger <- function(view, path, analyst, read_only = FALSE, witness = NULL) {
  # Python tells an address without its password.
  if (is_address(path)) the$addresses[[view$path]] <- path
  if (!is.null(witness) && is_address(witness)) the$addresses[[view$witness]] <- witness
  structure(c(view, list(analyst = analyst, read_only = read_only)), class = "dp_ledger")
}

#' @rdname dp_ledger
#' @export
verify_ledger <- strict(function(ledger, head = NULL, ...) {
  python_call("verify_ledger", list(path = ledger_places(ledger), head = head))
})

#' @rdname dp_ledger
#' @export
adopt_ledger <- strict(function(ledger, reason, witness = NULL, ...) {
  path <- ledger_path(ledger)
  kept <- if (inherits(ledger, "dp_ledger")) unclass(ledger)
  witness <- witness_path(witness %||% kept$witness)
  arguments <- list(path = path, reason = reason, witness = witness)
  new_ledger(python_call("adopt_ledger", arguments), path, kept$analyst, witness = witness)
})

# What a ledger tells is read from the account whenever it is asked for: what was told once would soon be wrong.
ledger_facts <- c("cap", "spent", "remaining", "caps", "entries", "head")

ledger_now <- function(x) unclass(dp_ledger(x, witness = unclass(x)$witness, read_only = TRUE))

#' @export
`$.dp_ledger` <- function(x, name) (if (name %in% ledger_facts) ledger_now(x) else unclass(x))[[name]]

#' @export
`[[.dp_ledger` <- strict(function(x, i, ...) {
  told <- unclass(x)
  name <- if (is.numeric(i)) names(told)[i] else i
  (if (name %in% ledger_facts) ledger_now(x) else told)[[name]]
}, "exact")

#' @rdname dp_ledger
#' @param x A ledger.
#' @param row.names,optional,stringsAsFactors Not used.
#' @export
as.data.frame.dp_ledger <- strict(function(x, row.names = NULL, optional = FALSE, ..., stringsAsFactors = FALSE) {
  x$entries
})

#' @export
print.dp_ledger <- strict(function(x, ...) {
  now <- if (is_address(x$path) || file.exists(x$path)) tryCatch(ledger_now(x), dpreg_python_missing = function(cond) NULL)
  if (is.null(now)) cat("(As it was when it was opened: the account cannot be read now.)\n")
  now <- now %||% unclass(x)
  line <- function(pair) paste0("eps = ", pair[["eps"]], ", delta = ", pair[["delta"]])
  cat("Privacy ledger", now$path, "\n")
  cat("  cap:       ", line(now$cap), "\n  spent:     ", line(now$spent), "\n  remaining: ",
      line(now$remaining), "\n", sep = "")
  for (i in seq_len(nrow(now$caps))) cat("  ", now$caps$of[i], ": at most ", line(now$caps[i, ]), "\n", sep = "")
  shown <- now$entries[c("what", "eps", "delta", "when", if (any(nzchar(now$entries$analyst))) "analyst")]
  if (nrow(shown)) print(shown, row.names = FALSE)
  invisible(x)
}, print_options)

# What Python opens: a file's path or a server's address.
ledger_path <- function(budget, else_say = "a ledger is an object of dp_ledger(), or the path of its file.") {
  place <- if (inherits(budget, "dp_ledger")) budget$path else budget
  if (!is_name(place)) dpreg_stop("budget_error", else_say)
  check_text(place, "the ledger's path")
  place <- the$addresses[[place]] %||% place
  if (is_address(place)) place else path.expand(place)
}

witness_path <- function(witness) {
  if (!is.null(witness)) ledger_path(witness, "witness must be the path of a file, or the address of a PostgreSQL database.")
}

# The ledger's place, with its witness's if it has one.
ledger_places <- function(ledger) {
  witness <- if (inherits(ledger, "dp_ledger")) witness_path(unclass(ledger)$witness)
  if (is.null(witness)) ledger_path(ledger) else list(ledger_path(ledger), witness)
}

is_address <- function(path) grepl("^postgres(ql)?://", path)

# The arguments of a call with its ledger as Python opens it, charged on the account of whoever asks.
with_ledger <- function(arguments) {
  if (is.null(arguments$budget)) return(arguments)
  if (inherits(arguments$budget, "dp_ledger")) {
    arguments$analyst <- arguments$analyst %||% arguments$budget$analyst
    if (isTRUE(arguments$budget$read_only)) {
      dpreg_stop("budget_error", "this ledger was opened with read_only = TRUE: it cannot be charged.")
    }
  }
  arguments$budget <- ledger_places(arguments$budget)
  arguments
}
