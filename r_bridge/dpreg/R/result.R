# From the fields that Python lays out (dpreg_bridge/views.py) to the R object: a plain list with R's names
# of terms and columns, no environment but the global one, and nothing that lives in Python. What is added
# here is of R's language: the call, formulas, and the expressions that compute columns from new rows.

new_selection <- function(view, translation, call) {
  selected <- translation$terms[names(translation$terms) %in% view$selected_terms]
  view$selected_terms <- NULL
  view$terms[is.na(view$terms)] <- NA # not NaN, which Python has for it
  dimnames(view$which) <- list(seq_len(nrow(view$which)), view$terms$term)
  object <- c(list(formula = full_formula(translation), selected_formula = formula_of(selected, translation)), view)
  make <- new_regression
  if (!is.null(view$family)) {
    make <- new_glm
    call <- with_added(call, translation$added, view$family)
    object$formula <- add_offsets(object$formula, translation$in_formula)
    object$selected_formula <- add_offsets(object$selected_formula, translation$in_formula)
  }
  object["regression"] <- list(if (!is.null(view$regression)) make(view$regression, translation, call))
  new_result(object, call, "dp_select")
}

new_regression <- function(view, translation, call) {
  names <- names(view$coefficients)
  for (matrix in c("vcov", "privacy_vcov")) {
    if (!is.null(view[[matrix]])) dimnames(view[[matrix]]) <- list(names, names)
  }
  if (!is.null(view$interval_draws)) colnames(view$interval_draws) <- names
  used <- unique(unlist(lapply(view$design$columns, `[[`, "labels")))
  view$design$variables <- translation$expressions[used]
  view$design$response <- translation$expressions[[translation$response]]
  new_result(c(list(formula = full_formula(translation), response = translation$response), view), call, "dp_ols")
}

new_result <- function(fields, call, class) {
  fields$budget <- stamped(fields$budget, fields$seeded)
  structure(c(list(call = public_call(call)), fields), class = c(class, "dp_result"))
}

full_formula <- function(translation) formula_of(translation$terms, translation)

# The formula of these of its terms.
formula_of <- function(labels, translation) {
  right <- right_side(setdiff(labels, "(Intercept)"), "(Intercept)" %in% labels)
  stats::as.formula(paste(translation$response, "~", right), env = globalenv())
}

stamp <- "NOT PRIVATE: seeded"

stamped <- function(x, seeded) if (isTRUE(seeded)) marked(x, stamp) else x

# What a study or a seeded result says of itself, on each of its tables.
marked <- function(x, privacy) `attr<-`(x, "privacy", privacy)
