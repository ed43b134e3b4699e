#' Any estimator, made private by averaging it over random blocks of rows
#'
#' Sample and aggregate (Smith 2008, 2011): coins send each row to one of many blocks, `estimator` is
#' computed in each, and a private average of its values is released.
#'
#' @section What the estimator may do:
#' It takes a block and returns one number or several, in the order of `bounds`. A block of a data frame is a
#' data frame (a tibble, a data.table) of the columns that `schema` declares: doubles where it has bounds
#' (values beyond them stay as they are), logicals for `logical()`, and factors of the declared levels, where any
#' other label is `NA`. A block of a vector is a vector of doubles, and of a matrix such a matrix with the same
#' column names.
#'
#' It must be a function of the block and of R's random numbers, which are started anew for each block and are
#' yours again at the end: what it remembers from one block to the next is not accounted for.
#'
#' Where it stops with an error, or returns anything but as many finite numbers as there are bounds, the
#' block counts as the midpoint of the bounds, and nothing is said about it, since that would reveal something about the rows.
#' Its warnings and messages are dropped. What it prints, plots or writes is its author's matter. An
#' interrupt at the keyboard ends the call; what it cost stays charged.
#'
#' How long the call takes depends on the rows.
#'
#' @inheritParams dp_mean
#' @param estimator A function of a block.
#' @param data A data frame, or a vector or matrix of numbers. Missing values are the estimator's to handle.
#' @param bounds Public bounds of each number that the estimator returns: `c(lowest, highest)`, or a list
#'   of such pairs, whose names name them.
#' @param blocks The number of blocks, or `NULL` for one that follows from the number of rows. Where that
#'   number is public, at most half of it (over the number of groups with `by`).
#' @param correct_bias Remove the bias of order one over the rows of a block, by a jackknife over four
#'   parts, at five calls a block instead of one?
#' @param aggregation `"winsorized"` buys a window that holds nearly all block values, so that noise is in
#'   proportion to their spread; `"mean"` adds noise in proportion to the width of the bounds; `"auto"`
#'   chooses by the number of blocks and `eps`.
#' @param by The name of a column of `data` with declared levels: estimates in each of its groups.
#' @param schema Needed for a data frame: the columns that the estimator gets, and `by`; see [dp_select()]. The
#'   classes and factor levels that `data` itself has are not passed on, since they may come from its rows:
#'   `factor()` makes a level of a label that a single row has.
#' @param timeout Seconds for each block, at most a million; later its value is the midpoint. The estimator
#'   is stopped where R can be interrupted, by [setTimeLimit()], which then forgets a limit set before; C
#'   code that never looks runs to its end, and is late. A time limit makes results depend on the load of
#'   the machine.
#' @param progress Show a bar that counts blocks, for the curator's eyes only? `NULL`: where R runs in a
#'   terminal and they take more than a second.
#' @returns An object of class `dp_estimate`, with the methods that [dp_mean()] lists. `se_sampling` comes
#'   from the spread of the blocks' values, whatever the estimator; bias that remains in them is not in the
#'   intervals.
#' @references Smith, A. (2008). Efficient, differentially private point estimators. arXiv:0809.4794.
#'
#' Smith, A. (2011). Privacy-preserving statistical estimation with optimal convergence rates. STOC.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' waits <- rexp(20000)
#' sample_aggregate(median, waits, eps = 1, bounds = c(0, 10))
#'
#' slope <- function(block) coef(lm(dist ~ speed, block))[["speed"]]
#' many <- cars[sample(nrow(cars), 5000, replace = TRUE), ]
#' sample_aggregate(slope, many, eps = 2, bounds = list(slope = c(0, 10)),
#'                  schema = list(speed = c(0, 50), dist = c(0, 200)))
#' @export
sample_aggregate <- function(estimator, data, eps, delta = 0, bounds, blocks = NULL,
                             correct_bias = TRUE, aggregation = "auto", neighbors = "replace-one",
                             contributions = NULL, person = NULL, by = NULL, schema = NULL, timeout = NULL,
                             noise = NULL, budget = NULL, analyst = NULL, progress = NULL, unsafe_seed = NULL, ...) {
  asked <- received("sample_aggregate", ..., .apart = c("estimator", "progress"))
  arguments <- asked$arguments
  if (!is.function(estimator)) {
    dpreg_stop("argument_error", "estimator must be a function: it takes a block and returns numbers.")
  }
  if (!is.null(progress) && !isTRUE(progress) && !isFALSE(progress)) {
    dpreg_stop("argument_error", "progress must be TRUE, FALSE or NULL.")
  }
  tabular <- is.data.frame(data)
  if (!is.null(by) && !is_name(by)) dpreg_stop("argument_error", "by must be the name of a column of a data frame.")
  for (name in c("person", "by", "schema")) {
    if (!tabular && !is.null(asked$arguments[[name]])) {
      dpreg_stop("argument_error", name, " is about the columns of a data frame, and data is none: leave it out.")
    }
  }
  if (!tabular) data <- plain_rows(data)
  arguments["schema"] <- list(plain_schema(schema))
  declared <- names(written_schema(arguments$schema))
  person <- person_column(person, c(by, declared))
  arguments <- with_ledger(arguments)
  if (is.list(bounds)) arguments$bounds <- lapply(bounds, as.list)
  if (!is.null(by)) check_declared(data, by, arguments$schema)
  step <- if (tabular) {
    python_call("open_run", arguments, data, as.character(unique(c(declared, by, person))))
  } else {
    python_call("open_run", c(arguments, rows = NROW(data)))
  }
  take <- if (tabular) {
    frame_blocks(step$columns, class(data))
  } else {
    function(index) if (is.matrix(data)) data[index, , drop = FALSE] else data[index]
  }
  on.exit(if (is.null(step$result)) python_call("close_run", list(run = step$run)))
  while (is.null(step$result)) {
    estimates <- block_estimates(estimator, take, step, progress)
    step <- python_call("send_estimates", list(run = step$run), estimates)
  }
  new_estimate(step$result, NULL, asked$call)
}

# Numbers without anything that belongs to the whole: not even whether they are stored as integers,
# which may follow from the rows.
plain_rows <- function(data) {
  known <- (is.numeric(data) || is.logical(data)) && !is.object(data) && length(dim(data)) <= 2
  if (!known) {
    dpreg_stop("argument_error", "data must be a data frame, or a vector or matrix of numbers; got an object ",
               "of class ", quoted(class(data)[1]), ". Labels go into a data frame, and their levels into schema.")
  }
  if (is.matrix(data)) {
    matrix(as.double(data), nrow(data), dimnames = if (!is.null(colnames(data))) list(NULL, colnames(data)))
  } else {
    as.double(data)
  }
}

# Blocks of the columns as Python has read them, each cell by the column's declaration alone: classes
# and levels that R has found in the rows would make a block's value depend on other blocks.
frame_blocks <- function(columns, classes) {
  columns <- lapply(columns, declared_column)
  class(columns) <- intersect(classes, c("data.table", "tbl_df", "tbl", "data.frame"))
  attr(columns, "row.names") <- .set_row_names(length(columns[[1]]))
  function(index) {
    block <- columns[index, , drop = FALSE]
    attr(block, "row.names") <- .set_row_names(length(index))
    block
  }
}

declared_column <- function(cells) {
  if (!is.list(cells)) return(cells)
  if (is.null(cells$levels)) return(as.logical(cells$values))
  structure(cells$values, levels = cells$levels, class = "factor")
}

# The estimates that Python asks for, a row each, NA for none. The first of a block's is of the whole
# block; where it fails the others are not needed.
block_estimates <- function(estimator, take, step, progress = FALSE) {
  bar <- block_bar(length(step$calls), progress)
  on.exit(bar$close())
  put_back <- random_state()
  on.exit(put_back(), add = TRUE)
  estimates <- matrix(NA_real_, length(step$sizes), step$size)
  ends <- cumsum(step$sizes)
  first <- cumsum(step$calls) - step$calls
  one <- function(i) {
    index <- step$rows[seq.int(to = ends[i], length.out = step$sizes[i])]
    attempt(function() estimator(take(index)), step$size)
  }
  for (block in seq_along(step$calls)) {
    lines <- first[block] + seq_len(step$calls[block])
    set.seed(step$seeds[block], "Mersenne-Twister", "Inversion", "Rejection")
    found <- in_time(step$timeout, function(late) {
      made <- matrix(NA_real_, length(lines), step$size)
      for (j in seq_along(lines)) {
        if (late()) break
        made[j, ] <- one(lines[j])
        if (j == 1 && !all(is.finite(made[1, ]))) break
      }
      made
    })
    if (!is.null(found)) estimates[lines, ] <- found
    bar$show(block)
  }
  as.data.frame(estimates)
}

# R's random numbers as they are now; the function returned puts them back. Each block has a stream of
# its own in between: left alone, where a block begins would depend on the rows of those before it.
random_state <- function() {
  kinds <- RNGkind()
  seed <- get0(".Random.seed", globalenv(), inherits = FALSE)
  function() {
    if (!is.null(seed)) return(assign(".Random.seed", seed, globalenv()))
    suppressWarnings(RNGkind(kinds[1], kinds[2], kinds[3]))
    rm(".Random.seed", envir = globalenv())
  }
}

# A bar on stderr that counts blocks: at once where it was asked for; after a second where nobody did
# and R runs in a terminal.
block_bar <- function(total, progress) {
  start <- proc.time()[["elapsed"]] + is.null(progress)
  bar <- NULL
  list(
    show = function(done) {
      if (!(progress %||% isatty(stderr())) || proc.time()[["elapsed"]] < start) return()
      bar <<- bar %||% utils::txtProgressBar(max = total, style = 3, file = stderr())
      utils::setTxtProgressBar(bar, done)
    },
    close = function() if (!is.null(bar)) close(bar)
  )
}

# One call, in silence: NA for whatever is not `size` numbers. Nothing gets out but an interrupt.
attempt <- function(work, size) {
  interrupted <- FALSE
  values <- withRestarts(
    tryCatch(
      withCallingHandlers(
        as_numbers(work(), size),
        warning = function(cond) tryInvokeRestart("muffleWarning"),
        message = function(cond) tryInvokeRestart("muffleMessage"),
        interrupt = function(cond) interrupted <<- TRUE
      ),
      error = function(cond) NULL
    ),
    # As an estimator might, and as R itself does after an interrupt.
    abort = function() NULL
  )
  if (interrupted) invokeRestart("abort")
  values %||% rep(NA_real_, size)
}

as_numbers <- function(found, size) {
  if (is.list(found)) found <- unlist(found, use.names = FALSE)
  if (length(found) != size || !(is.numeric(found) || is.logical(found))) return(NULL)
  as.vector(as.double(found))
}

# The value of `work`, or NULL where it took longer than `seconds`. R's own limit stops it where R
# looks; the clock decides.
in_time <- function(seconds, work) {
  if (is.null(seconds)) return(work(function() FALSE))
  clock <- function() proc.time()[["elapsed"]]
  end <- clock() + seconds
  late <- function() clock() >= end
  value <- tryCatch(
    {
      setTimeLimit(elapsed = seconds, transient = TRUE)
      tryCatch(work(late), finally = setTimeLimit())
    },
    error = function(cond) NULL
  )
  setTimeLimit()
  if (late()) NULL else value
}
