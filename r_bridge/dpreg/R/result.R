# From Python's view of a result (dpreg_bridge/views.py) to the R object: a plain list with R's names
# of terms and columns, no environment but the global one, and nothing that lives in Python.

new_selection <- function(view, translation, call) {
  schema <- r_schema(view$schema)
  # Where units are columns, Python names some candidates by their column.
  named <- function(names) vapply(names, unit_name, "", translation, schema, USE.NAMES = FALSE)
  order <- formula_order(view$candidates, translation, schema)
  candidates <- named(view$candidates)[order]
  columns <- lapply(view$columns, function(own) {
    vapply(own, column_name, "", translation, schema, USE.NAMES = FALSE)
  })
  object <- list(
    call = public_call(call),
    formula = full_formula(translation),
    selected = named(view$selected[formula_order(view$selected, translation, schema)]),
    selected_formula = selected_formula(view$selected, translation, schema),
    candidates = candidates,
    kept = named(view$kept),
    selection_frequencies = stats::setNames(view$frequencies[order], candidates),
    frequency_errors = stats::setNames(view$frequency_errors[order], candidates),
    models = lapply(view$models, named),
    n_models = as.double(view$n_models),
    columns = stats::setNames(columns, named(names(columns)))
  )
  # What a selection by looks tells beside its choice; NULL for the paper's methods.
  object["best"] <- list(if (length(view$best)) {
    named(view$best[formula_order(view$best, translation, schema)])
  })
  object$groups <- lapply(view$groups, named)
  for (name in c("level", "level_errors", "stability")) { # the last in files of dpreg 0.2
    object[name] <- list(if (!is.null(view[[name]])) stats::setNames(view[[name]][order], candidates))
  }
  object["false_inclusions"] <- list(view$false_inclusions)
  object["looks"] <- list(looks_frame(view$looks))
  make <- new_regression
  if (!is.null(view$family)) {
    make <- new_glm
    object$call <- with_added(object$call, translation$added, view$family)
    object$formula <- add_offsets(object$formula, translation$in_formula)
    object$selected_formula <- add_offsets(object$selected_formula, translation$in_formula)
    object[c("family", "link", "converged")] <- view[c("family", "link", "converged")]
  }
  known <- c(view$kept, view$candidates, view$regression$terms)
  shown <- c(named(c(view$kept, view$candidates)),
             vapply(view$regression$terms, column_name, "", translation, schema, USE.NAMES = FALSE))
  view <- with_names(view, known, as.character(shown))
  object["regression"] <- list(if (!is.null(view$regression)) make(view$regression, translation, call))
  settings <- c("method", "mechanism", "engine", "units", "hierarchy", "max_terms", "radius",
                "radius_source", "clip", "center", "penalty", "phi", "psi", "sigma2", "bounds")
  structure(c(object, claim_of(view, schema, translation$labels), settings = list(view[settings]),
              python = list(python_of(view))), class = c("dp_select", "dp_result"))
}

new_regression <- function(view, translation, call) {
  schema <- r_schema(view$schema)
  order <- formula_order(view$terms, translation, schema)
  names <- vapply(view$terms[order], column_name, "", translation, schema, USE.NAMES = FALSE)
  vector <- function(x) if (!is.null(x)) stats::setNames(as.double(x)[order], names)
  matrix <- function(x, rows = NULL) {
    if (!is.null(x)) structure(x[, order, drop = FALSE], dimnames = list(rows, names))
  }
  object <- list(
    call = public_call(call),
    formula = full_formula(translation),
    response = translation$response,
    coefficients = vector(view$params),
    estimates = vector(view$coefficients),
    vcov = matrix(view$covariance[order, , drop = FALSE], names),
    privacy_vcov = matrix(view$privacy_covariance[order, , drop = FALSE], names),
    noise_degrees = view$noise_degrees,
    se_sampling = vector(view$se_sampling),
    se_privacy = vector(view$se_privacy),
    sigma = if (!is.null(view$residual_variance)) sqrt(max(view$residual_variance, 0)),
    r.squared = view$r_squared,
    df.residual = view$df_residual,
    complete_rows = view$complete_rows,
    interval_method = view$interval_method,
    interval_draws = matrix(view$interval_draws),
    column_widths = vector(view$column_widths),
    design = c(design_recipe(view$terms, translation, schema), list(
      response = translation$expressions[[translation$response]], order = order
    )),
    ridged = view$ridged,
    conditional = stats::setNames(view$conditional[order[seq_along(view$conditional)]],
                                  names[seq_along(view$conditional)]),
    among = view$among,
    weak = stats::setNames(as.character(unlist(view$weak)), names[match(names(view$weak), view$terms[order])]),
    marks = if (!is.null(view$marks)) stats::setNames(unlist(view$marks)[order], names),
    cov_type = view$cov_type,
    looks = looks_frame(view$looks)
  )
  settings <- c("method", "noise", "scaling", "fit", "clip", "center", "bounds", "ridge")
  view <- with_names(view, view$terms[order], names)
  structure(c(object, claim_of(view, schema, translation$labels), settings = list(view[settings]),
              python = list(python_of(view))), class = c("dp_ols", "dp_result"))
}

# What each look released, except the moments themselves; NULL where there were none.
looks_frame <- function(looks) {
  if (is.null(looks)) return(NULL)
  if (!is.null(looks$opened)) looks$opened <- looks$opened == 1
  data.frame(look = seq_along(looks$rows), looks, stringsAsFactors = FALSE)
}

# Notes and the page, by R's names of terms and coefficients.
with_names <- function(view, python, names) {
  view$notes <- named_in_r(view$notes, python, names)
  view$page <- lapply(view$page, function(block) {
    if (!is.null(block$text)) block$text <- in_r_words(named_in_r(block$text, python, names))
    known <- match(block$cells, python)
    if (!is.null(block$cells)) block$cells <- ifelse(is.na(known), in_r_words(block$cells), names[known])
    block
  })
  view
}

# Of those that list coefficients.
named_in_r <- function(notes, python, names) {
  lists <- grepl("^(Marked|Weak|Never selected|The noise hides|Nothing is known of|z is in the thousands for|The fit was ridged because)", notes)
  longest <- order(-nchar(python))
  for (i in longest[python[longest] != names[longest]]) {
    pattern <- paste0("(?<=: |, | of | for |hides )\\Q", python[i], "\\E(?=, |\\. |: | and | \\(|$)")
    notes[lists] <- gsub(pattern, gsub("\\", "\\\\", names[i], fixed = TRUE), notes[lists], perl = TRUE)
  }
  notes
}

# What all kinds have: what was claimed and paid.
claim_of <- function(view, schema, labels = NULL) {
  list(
    nobs = view$nobs,
    neighbors = view$neighbors,
    contributions = view$contributions,
    eps = view$eps,
    delta = view$delta,
    budget = stamped(as.data.frame(view$budget, stringsAsFactors = FALSE), view$seeded),
    privacy = view$privacy,
    seeded = view$seeded,
    notes = vapply(view$notes, in_r_words, "", labels, USE.NAMES = FALSE),
    severe = view$severe == 1,
    screen = view$screen,
    page = lapply(view$page, function(block) {
      if (!is.null(block$facts)) block$facts <- vapply(block$facts, in_r_words, "", labels)
      block
    }),
    passes = view$passes,
    record = view$record,
    schema = schema
  )
}

# The whole result as Python wrote it, for dpreg.load().
python_of <- function(view) list(formula = view$formula, json = view$json)

# As plain_schema() reads it.
r_schema <- function(schema) {
  lapply(schema, function(spec) {
    if (identical(spec, "bool")) return(logical())
    if (!is.null(names(spec))) return(list(levels = unlist(spec$levels)))
    unlist(spec)
  })
}

# Python sorts terms its own way; R's objects have the order of the formula, as lm() has.
formula_order <- function(names, translation, schema) {
  terms <- vapply(names, term_of, "", translation, schema, USE.NAMES = FALSE)
  order(match(terms, names(translation$terms)))
}

full_formula <- function(translation) {
  labels <- translation$terms
  formula_from(translation$response, setdiff(labels, "(Intercept)"), "(Intercept)" %in% labels)
}

# A factor is in the formula where any of its columns was selected.
selected_formula <- function(selected, translation, schema) {
  terms <- vapply(selected, term_of, "", translation, schema, USE.NAMES = FALSE)
  inside <- translation$terms[names(translation$terms) %in% terms]
  formula_from(translation$response, setdiff(inside, "(Intercept)"), "(Intercept)" %in% inside)
}

formula_from <- function(response, terms, constant) {
  stats::as.formula(paste(response, "~", right_side(terms, constant)), env = globalenv())
}

stamp <- "NOT PRIVATE: seeded"

stamped <- function(x, seeded) {
  if (isTRUE(seeded)) attr(x, "privacy") <- stamp
  x
}
