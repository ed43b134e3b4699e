#' Choose the variables of a regression with differential privacy
#'
#' Every number in the result is drawn by a differentially private mechanism and charged to a budget,
#' or is public: it may be published.
#'
#' @section Formula:
#' R's own: `.`, `-1`, `a:b`, `a*b`, `(a + b)^2`, names in back-ticks. A term may hold columns of
#' `data`, numbers, `+ - * / ^`, comparisons, `log`, `log2`, `log10`, `log1p`, `exp`, `sqrt`, `abs`,
#' `I()`, `factor()`, `cut()` with its breaks written out, `poly(x, 2, raw = TRUE)`, which stands for
#' `x + I(x^2)`, and `splines::bs()` with knots written out, its boundary knots those of the schema unless
#' given. Whatever looks across rows, such as `poly()` without `raw = TRUE` and `scale()`, is refused by
#' name. Factors have treatment contrasts, also ordered ones.
#'
#' @section Schema:
#' The public facts about columns: `list(price = c(105, 905), county = c("ala", "cc"))`. Two numbers
#' are bounds; text is a factor's levels, the reference first; `list(levels = c(1, 2, 3))` are levels
#' that are numbers; `logical()` is true or false. `factor(levels = )` without rows gives its levels;
#' levels found in the rows are never used. The schema may also be the path of a TOML or JSON file.
#' Bounds of numeric columns that it leaves out are estimated from a share of `eps`.
#'
#' @section Conditions:
#' Errors are of class `dpreg_error`, and of a class of their own such as `dpreg_schema_error`;
#' warnings are of class `dpreg_warning`. What they say depends on public facts only. Warnings come before
#' anything is charged: `tryCatch(warning = )` and `options(warn = 2)` stop a call that has spent nothing.
#'
#' @param formula An R formula.
#' @param data Confidential rows: a data frame (also a tibble or data.table); the path of a Parquet or CSV
#'   file, or of several; or a Table, Dataset, RecordBatchReader or dplyr query of the package arrow. Files
#'   are read in pieces, and may be larger than memory. Text, a Dataset, a reader or a query is read once; where
#'   a call needs more passes, the columns in use are kept, up to 512 MB in memory, then in a temporary file
#'   without a name that goes with the call. A row with a missing or undeclared value is left out.
#' @param eps What the whole call may cost: a number or a decimal as text, taken exactly as typed.
#' @param delta Looks spend it where Gaussian noise is the smaller. `method = "pcpl"` needs one above 0; several
#'   draws and coefficients of the paper's methods use it where it saves noise.
#' @param schema The public facts about columns; see the section Schema of [dp_select()].
#' @param family `NULL` for a linear model, or a family as [dp_glm()] takes it: then the terms of a logistic or
#'   Poisson regression are chosen, from looks.
#' @param offset With a family; as for [dp_glm()]. An offset is in every model.
#' @param method `"adaptive"` looks at the rows several times, as [dp_ols()] does, and chooses from what the looks
#'   released: it finds more where there are many rows, needs no radius, and says which terms others might stand
#'   for.
#'   `"pcls"`, penalised constrained least squares, and `"pcpl"`, profile likelihood, are the paper's methods.
#'   `"auto"` takes `"adaptive"` where a public rule finds enough rows, else `"pcls"`, and a note says why; where
#'   the number of rows is private it first buys a noisy count.
#'   [PCLS()], [PCPL()], [Adaptive()] and [Auto()] have options as well.
#' @param subset Which rows the call is about: a test of declared columns, such as `op == "a" & age >= 18`, as [lm()] takes
#'   it, or the same as text. Other rows are excluded, and how many pass stays private.
#' @param neighbors `"replace-one"` (the number of rows is public) or `"add-remove"` (it is private).
#' @param contributions The most rows that one person may own; with `person`, the most that are used, drawn at
#'   random. `NULL` is 1, but looks (`"adaptive"`) then use all rows of a person.
#' @param person The name of the column that says whose row it is. The claim then holds for everybody, however
#'   many rows they own; looks sum a person's rows before they limit them, and the number of
#'   rows is private. `.` in a formula leaves this column out. Ids that are numbers are the same if they
#'   agree in 15 digits, whether they are numbers, text, levels or `integer64`; put a letter before longer ones.
#' @param units What enters or leaves a model: a `"term"` or a `"column"` of the model matrix.
#' @param keep Terms that are in every model, as in the formula.
#' @param max_terms The most units outside `keep`, or `NULL`.
#' @param hierarchy `"strong"`: an interaction only together with its main effects; or `"none"`.
#' @param false_inclusions The expected number of useless terms under `penalty = "auto"` and with
#'   `method = "adaptive"`.
#' @param shares A named list: the parts of `eps` for the steps `bounds`, `radius`, `sigma2`, `count`,
#'   `profile` and `fit`.
#' @param fit Coefficients of the chosen model. With `"adaptive"`: `"fresh"` spends a share of the budget on
#'   looks at the chosen columns, as [dp_ols()] makes them; `"same"` takes them from the look that chose, at no further
#'   cost, beside all candidates, with intervals that allow for as many, and marks them as narrow. With the paper's methods: `"split"` fits the other half, `"share"` the same rows
#'   with a share of `eps`. `NULL` fits nothing. `"auto"` is `"fresh"` with `"adaptive"`, else `"split"`.
#' @param budget A [dp_ledger()] to charge, before any row is read.
#' @param analyst Whose part of the account is charged, where the ledger has caps for analysts.
#' @param progress Show bars while rows are read and trees searched, for the curator's eyes only?
#'   `NULL`: where R runs in a terminal.
#' @param unsafe_seed Makes the result reproducible and **not private**; every view of it says so.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns An object of class `dp_select`: a plain list with, among others, `selected`,
#'   `selected_formula`, `selection_frequencies`, `budget`, `privacy`, and `regression`, which is an
#'   object of class `dp_ols` or `NULL`. With `method = "adaptive"` also `groups`, a list of terms
#'   that the release cannot tell apart, of each of which at least one matters (they are not among `selected`; the
#'   likeliest of each is in `best`, the model that the coefficients are of); `level`, the least
#'   `false_inclusions` at which each term would be selected; `level_errors`, the standard errors of their
#'   coefficients beside all candidates; and `looks`. There are methods for [print()], [summary()], [coef()],
#'   [vcov()], [confint()], [predict()], [formula()], [terms()], [nobs()], [plot()], [update()],
#'   [as.data.frame()], and for broom's `tidy()`, `glance()` and `augment()`.
#' @references Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018).
#'   Differentially private model selection with penalized and constrained likelihood. *Journal of the
#'   Royal Statistical Society A* 181, 609-633.
#' @seealso [dp_ols()] for a fixed formula; `vignette("dpreg")`.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), gear = list(levels = 3:5))
#' fit <- dp_select(mpg ~ log(hp) + wt + factor(gear), mtcars, eps = 10, schema = schema, fit = NULL)
#' fit
#' summary(fit)$which
#' @export
dp_select <- function(formula, data, eps, delta = 0, schema = NULL, subset = NULL, family = NULL, offset = NULL,
                      method = "auto",
                      neighbors = "replace-one", contributions = NULL, person = NULL, units = "term",
                      keep = "(Intercept)", max_terms = NULL, hierarchy = "none", false_inclusions = 0.1,
                      shares = NULL, fit = "auto", budget = NULL, analyst = NULL, progress = NULL,
                      unsafe_seed = NULL, ...) {
  asked <- received("dp_select", ..., .apart = c("family", "offset"))
  if (!is.null(family)) return(model_call(of_family(asked, family), new_selection))
  given <- intersect(c(added_names, "response_cap"), names(asked$call))
  if (length(given)) {
    dpreg_stop("argument_error", paste(given, collapse = ", "), " needs a family, such as poisson(): a linear model ",
               "has none.")
  }
  model_call(asked, new_selection)
}

# What every function of a formula and a table does with a call that it received. Of a family it has `added`, which
# makes its offsets from the names of columns; `own` are arguments that are expressions of columns.
model_call <- function(asked, make) {
  with_table(asked$frame$data, function(data, source) model_of_table(asked, make, data, source))
}

model_of_table <- function(asked, make, data, source) {
  arguments <- asked$arguments
  names <- attr(data, "names")
  arguments["schema"] <- list(plain_schema(arguments$schema))
  parted <- parted_response(asked$frame$formula, asked, names)
  own <- Filter(Negate(is.null), row_expressions(asked$own, asked$frame, names))
  tested <- tested_columns(arguments$where, names)
  used <- c(unlist(lapply(c(list(parted$formula), parted$added, own), all.vars)), names(arguments$schema))
  person <- person_column(arguments$person, used)
  bounds <- function(name) declared_bounds(arguments$schema, name)
  translation <- translate_formula(parted$formula, empty_columns(setdiff(names, person)), bounds, parted$added)
  check_declared(data, translation$columns, arguments$schema, translation$declared)
  if (length(translation$derived)) {
    if (!is.null(source)) {
      refuse_term(names(translation$derived)[1], paste(
        "R makes its bins, and does not see the rows of a file; make the column beforehand"
      ))
    }
    made <- add_derived(data, written_schema(arguments$schema), translation)
    data <- made$data
    arguments$schema <- made$schema
  }
  say_of_ordered(data, translation)
  if (!is.null(arguments$keep)) arguments$keep <- python_terms(arguments$keep, translation)
  if (!is.null(arguments$shares)) arguments$shares <- named_shares(arguments$shares)
  arguments <- with_ledger(arguments)
  arguments$formula <- translation$patsy
  arguments[names(translation$sent)] <- translation$sent
  if (length(own)) arguments[names(own)] <- as.list(codes_of(own, vapply(own, label_of, ""), data))
  arguments <- with_options(arguments)
  more <- c(names(translation$derived), person, tested, unlist(lapply(own, all.vars)))
  view <- python_call(asked$verb, arguments, if (is.null(source)) data, unique(c(translation$columns, more)), source,
                      translation)
  make(view, translation, asked$call)
}

named_shares <- function(shares) {
  shares <- as.list(shares)
  if (length(shares) && (is.null(names(shares)) || !all(nzchar(names(shares))))) {
    dpreg_stop("argument_error", "shares must be named, as in list(bounds = 0.1).")
  }
  shares
}

# The name of the column that says whose row it is, or NULL. `used` are the columns that a call uses for
# something else.
person_column <- function(person, used) {
  if (is.null(person)) return(NULL)
  if (!is_name(person)) {
    dpreg_stop("argument_error", "person must be the name of a column of data, in quotes.")
  }
  if (person %in% used) {
    dpreg_stop("data_error", "person: column ", quoted(person), " says whose row it is, and is neither a number nor a label: ",
               "leave it out of the formula, the columns and the schema, or name another.")
  }
  person
}

# One text: several where a name belongs may be a column's cells.
is_name <- function(x) is.character(x) && length(x) == 1 && !is.na(x)

# A table without rows: what `.` stands for.
empty_columns <- function(names) {
  structure(rep(list(numeric()), length(names)), names = names, class = "data.frame", row.names = integer())
}

# R gives ordered factors polynomial contrasts; users of ordered factors are told what they get here.
say_of_ordered <- function(data, translation) {
  plain <- vapply(Filter(is.name, translation$expressions), as.character, "")
  ordered <- Filter(function(name) {
    column <- .subset2(data, match(name, attr(data, "names")))
    isTRUE(tryCatch(is.ordered(column), error = function(cond) FALSE)) # what else it is, columns.R says
  }, plain)
  if (length(ordered)) {
    dpreg_message(
      "ordered factor ", listed(ordered), ": the coefficients are differences from the first declared level ",
      "(treatment contrasts), where lm() would use polynomial contrasts; write factor() to say so."
    )
  }
}

# Terms as they are typed in R, for Python, which says which are none; several texts may be a column's cells.
python_terms <- function(terms, translation) {
  known <- c(translation$terms, Intercept = "(Intercept)")
  if (!is.character(terms) || length(terms) > 1 && !any(terms %in% c(known, names(known)))) {
    dpreg_stop("argument_error", "keep must be terms of the formula, in quotes; its terms are ", listed(translation$terms), ".")
  }
  place <- match(terms, known)
  as.list(ifelse(is.na(place), terms, names(known)[place]))
}
