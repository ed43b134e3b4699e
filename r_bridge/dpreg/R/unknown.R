# Arguments that a function does not have. Each exported function and each method takes `...` and refuses by name what is
# in it, unevaluated: R's own "unused argument" would print the values, which may be rows, and to leave them unread
# would answer another question than the one that was asked.

# `.harmless` names what other packages hand to a method and what changes no answer of it.
no_more <- function(..., .harmless = character(), .caller = sys.function(sys.parent())) {
  if (!...length()) return(invisible())
  names <- names(substitute(list(...)))[-1] %||% rep("", ...length())
  if (all(names %in% .harmless)) return(invisible())
  unknown <- setdiff(names[nzchar(names)], .harmless)
  what <- paste0(sub("[.](summary[.])?(dp_[a-z]+|[a-z]+_study)$", "", as.character(function_symbol(.caller))), "()")
  if (!length(unknown)) dpreg_stop("argument_error", what, " was given more arguments than it has.")
  known <- setdiff(names(formals(.caller)), "...")
  dpreg_stop("argument_error", what, " has no argument ", listed(unknown), about_argument(unknown[1], known))
}

# How a print method may be asked to lay things out, which those of this package do their own way.
print_options <- c("quote", "right", "row.names", "max", "signif.stars", "signif.legend")

# What follows the name of an argument that is not known: another that was meant, or why there is none.
about_argument <- function(name, known) {
  plain <- gsub("[._]", "", tolower(readable(name)))
  meant <- intersect(argument_aliases[[plain]], known)
  if (length(meant)) {
    remark <- if (meant[1] %in% names(argument_remarks)) paste0(" ", argument_remarks[[meant[1]]])
    return(paste0("; did you mean ", meant[1], "?", remark))
  }
  if (plain %in% names(argument_reasons)) {
    return(paste0(": ", argument_reasons[[plain]], "."))
  }
  apart <- utils::adist(plain, gsub("[._]", "", known), ignore.case = TRUE)[1, ]
  near <- which.min(apart)
  if (length(near) && apart[near] <= max(1, nchar(plain) / 3)) return(paste0("; did you mean ", known[near], "?"))
  if ("estimator" %in% known) return(": the estimator is called with a block alone.")
  "."
}

argument_aliases <- list(
  epsilon = "eps", seed = c("unsafe_seed", "seed"), randomstate = c("unsafe_seed", "seed"),
  alpha = c("level", "conf.level", "ci"), confidence = c("level", "conf.level"), conflevel = c("level", "ci"),
  ci = c("level", "conf.level"), level = c("conf.level", "ci"), id = "person", ledger = "budget", group = "by",
  groups = "by", lower = "bounds", upper = "bounds", probs = "q", where = "subset", filter = "subset", covtype = "vcov", se = "vcov", exp = c("exponentiate", "ratios"),
  exponentiate = "ratios", ratios = "exponentiate"
)

same_level <- "It is 1 - alpha: 0.95 where alpha is 0.05."
argument_remarks <- list(unsafe_seed = "Its results can be repeated, and are not private.", level = same_level,
                         conf.level = same_level, ci = same_level)

no_row_errors <- paste(
  "standard errors of another kind are sums over the rows' residuals, which were not released; those that are shown",
  "count sampling and the noise"
)
argument_reasons <- c(
  weights = "all rows count alike here; dp_ols() takes weights",
  offset = "dp_ols(), dp_glm() and dp_select() of a family take an offset",
  alpha = "levels of intervals are chosen when they are read, as in confint(fit, level = 0.95)",
  level = "levels of intervals are chosen when they are read, as in confint(fit, level = 0.95)",
  naaction = "a row with a missing value is left out", contrasts = "factors have treatment contrasts",
  vcov = no_row_errors, vcovtype = no_row_errors, covtype = no_row_errors, robust = no_row_errors,
  cluster = no_row_errors, clusters = no_row_errors, setype = no_row_errors, hc = no_row_errors
)
