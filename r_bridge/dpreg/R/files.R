#' Save, load and report results
#'
#' `dp_save()` writes a result to a JSON file that R and Python read alike; `saveRDS()` keeps it for R
#' alone. `dp_load()` reads what either language wrote, and runs no code from it. `dp_report()` writes one HTML
#' page about a result, for its signatory and its readers: what was released, what it cost, and what the
#' numbers mean. What `saveRDS()` kept in an earlier version lacks what results hold since then;
#' `dp_load(dp_save(old, "old.json"))` makes it anew.
#'
#' @param object A result of [dp_select()], [dp_ols()], [dp_glm()], [dp_mean()] and its like, or [sample_aggregate()].
#' @param path The file's path. An earlier file there is replaced, at the end and as a whole. A result is not saved
#'   under a name that ends like a table's file, such as `.csv`.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns `dp_load()`: the result, as the call that made it returned it. Names of coefficients are R's; a
#'   formula that was typed in Python may hold a term that R has no words for, which is an error of class
#'   `dpreg_formula_error`. The others: the path, invisibly. `dp_save()` needs no Python.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' fit <- dp_ols(mpg ~ wt, mtcars, eps = 1000, schema = list(mpg = c(5, 40), wt = c(1, 6)))
#' file <- tempfile(fileext = ".json")
#' dp_save(fit, file)
#' all.equal(coef(dp_load(file)), coef(fit))
#' @export
dp_save <- strict(function(object, path, ...) {
  json <- result_text(object)
  path <- file_path(path)
  # Also in Python, by sources/files.py: dp_save() needs none.
  if (any(grepl("[.](parquet|pq|csv|csv[.]gz)$", c(path, normalizePath(path, mustWork = FALSE)), ignore.case = TRUE))) {
    dpreg_stop("argument_error", quoted(basename(path)), " ends like a table's file, and could be read as part of a ",
               "table: choose a name that ends in .json.")
  }
  near <- tempfile("dpreg-", dirname(path), ".json")
  on.exit(unlink(near))
  writeLines(json, near, useBytes = TRUE)
  if (!file.rename(near, path)) dpreg_stop("data_error", "no file can be written at ", quoted(path), ".")
  invisible(path)
})

#' @rdname dp_save
#' @export
dp_load <- strict(function(path, ...) {
  told <- python_call("read", list(path = file_path(path)))
  translation <- if (!is.null(told$formula)) translation_of(told$formula)
  if (told$kind %in% c("glm", "glm-selection")) translation <- saved_model(translation, told$offset, told$trials)
  view <- python_call("result", list(text = told$json), translation = translation)
  make <- switch(told$kind, glm = new_glm, selection = , `glm-selection` = new_selection, regression = new_regression, new_estimate)
  make(view, translation, released_call(told$call, translation))
})

#' @rdname dp_save
#' @export
dp_report <- strict(function(object, path, ...) {
  python_call("report", list(result = result_text(object), path = file_path(path)))
  invisible(path)
})

result_text <- function(object) {
  if (!inherits(object, "dp_result")) {
    dpreg_stop("argument_error", "object must be a result of dp_select(), dp_ols() or another call that releases ",
               "something; got an object of class ", quoted(class(object)[1]), ".")
  }
  object$python$json
}

file_path <- function(path) {
  if (!is.character(path) || length(path) != 1 || is.na(path)) {
    dpreg_stop("argument_error", "path must be the path of a file.")
  }
  path <- path_text(path, "path")
  if (!dir.exists(dirname(path))) dpreg_stop("data_error", "there is no folder ", quoted(dirname(path)), ".")
  path
}

# What translate_formula() makes of a formula that was typed in R, from Python's words for its terms and
# the R text of each of their variables.
translation_of <- function(told) {
  expressions <- lapply(told$texts, function(text) {
    e <- str2lang(text)
    # A column of bins that R made has the name of its call.
    if (is.name(e) && startsWith(as.character(e), "cut(")) str2lang(as.character(e)) else e
  })
  shown <- vapply(expressions, label_of, "")
  factors <- told$terms[lengths(told$terms) > 0]
  labels <- vapply(factors, function(codes) paste(shown[codes], collapse = ":"), "")
  constant <- length(factors) < length(told$terms)
  list(
    terms = c(if (constant) c(Intercept = "(Intercept)"), stats::setNames(labels, names(factors))),
    labels = shown,
    response = shown[[told$response]],
    expressions = stats::setNames(expressions, shown)
  )
}

# The call that made a result, as Python writes it from its record: what print() and update() show.
released_call <- function(text, translation) {
  if (is.null(text)) return(quote(dp_load(path)))
  call <- str2lang(text)
  if (!is.null(translation)) call$formula <- add_offsets(full_formula(translation), translation$in_formula)
  public_call(call)
}
