#' Plot a curator's study of selection
#'
#' `"agreement"` and `"rsquared"`: lines over the penalty, or over `eps` where fewer than two penalties
#' are numbers, with a panel for each radius and mechanism. `"frequencies"`: a table in greys. `"models"`:
#' bars of the likeliest models of one setting, the choice that needs no privacy filled. Every picture says
#' that it is for the curator only.
#'
#' @param x A result of [selection_study()].
#' @param which What is drawn.
#' @param reference For `"agreement"`: with the `"same.score"` without noise, or with the choice of
#'   `"bic"`; a pale line then says where the score without noise makes BIC's choice.
#' @param setting For `"models"`: the row of `x$settings`.
#' @param most For `"models"`: how many bars.
#' @param main A title.
#' @param ... Further arguments of [graphics::plot.default()] or [graphics::barplot()].
#' @returns `x`, invisibly.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), qsec = c(10, 25))
#' study <- selection_study(mpg ~ wt + hp + qsec, mtcars, schema, eps = c(1, 10, 100),
#'                          penalty = seq(0, 2, 0.25), radius = c(0.5, 1))
#' plot(study)
#' plot(study, "models", setting = 20)
#' @export
plot.selection_study <- function(x, which = c("agreement", "rsquared", "frequencies", "models"),
                                 reference = c("same.score", "bic"), setting = 1, most = 15,
                                 main = NULL, ...) {
  which <- match.arg(which)
  reference <- match.arg(reference)
  main <- main %||% paste0(deparse1(x$formula[[2]]), ": ", format(x$n_models, big.mark = ","), " models, ",
                           if (x$exact) "exact" else "shares of draws")
  switch(which,
    agreement = {
      frame <- x$agreement
      frame$same <- as.double(frame$same.score.choice == frame$bic.choice)
      whose <- if (reference == "bic") "of BIC's choice" else "of the choice without noise"
      plot_over_settings(frame, reference, paste("chance", whose), c(0, 1), main, x$privacy,
                         if (reference == "bic") "same", ...)
    },
    rsquared = plot_over_settings(x$relative_rsquared, "relative", "expected R-squared over BIC's",
                                  range(0, 1, x$relative_rsquared$relative, finite = TRUE), main, x$privacy, ...),
    frequencies = plot_term_table(x, main),
    models = plot_models(x, setting, most, main, ...)
  )
  invisible(x)
}

plot_over_settings <- function(frame, y, ylab, ylim, main, privacy, pale = NULL, ...) {
  numbers <- suppressWarnings(as.double(frame$penalty))
  if (length(unique(stats::na.omit(numbers))) > 1) {
    frame$penalty <- numbers
    line_panels(frame[!is.na(numbers), ], "penalty", y, "eps", "mechanism", "radius", "penalty for each column", ylab, ylim,
                main, privacy, pale, ...)
  } else {
    line_panels(frame, "eps", y, "penalty", "mechanism", "radius", "eps", ylab, ylim, main, privacy, ...)
  }
}

# How settings are told apart, in as few words as will do.
setting_labels <- function(settings) {
  several <- vapply(settings, function(values) length(unique(values)) > 1, NA)
  if (!any(several)) several["eps"] <- TRUE
  heads <- c(eps = "eps ", radius = "R ", penalty = "pen. ", mechanism = "")
  parts <- lapply(names(settings)[several], function(name) {
    values <- settings[[name]]
    if (is.numeric(values)) values <- format_each(values)
    paste0(heads[[name]], sub("permute-and-flip", "p&f", sub("\\.0$", "", values)))
  })
  do.call(paste, c(parts, sep = "\n"))
}

plot_term_table <- function(x, main) {
  values <- x$frequencies[rev(seq_len(nrow(x$frequencies))), seq_len(min(ncol(x$frequencies), 16)), drop = FALSE]
  labels <- setting_labels(x$settings)[seq_len(ncol(values))]
  deep <- max(lengths(strsplit(labels, "\n", fixed = TRUE)))
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  graphics::par(oma = c(0, 0, 3.5, 0), mar = c(2.5, min(2 + 0.55 * max(nchar(rownames(values))), 16),
                                               deep + 0.8, 1), las = 1)
  graphics::image(seq_len(ncol(values)), seq_len(nrow(values)), t(values), zlim = c(0, 1),
                  col = grDevices::grey(seq(1, 0.25, length.out = 101)), axes = FALSE, xlab = "", ylab = "")
  graphics::axis(2, seq_len(nrow(values)), rownames(values), tick = FALSE)
  graphics::mtext(labels, side = 3, at = seq_len(ncol(values)), line = 0.2, cex = 0.75)
  graphics::text(col(values), row(values), sprintf("%.2f", values), cex = 0.75, col = ifelse(values > 0.6, "white", "black"))
  left <- ncol(x$frequencies) - ncol(values)
  if (left) graphics::mtext(paste(left, "settings more are left out"), side = 1, line = 0.7, cex = 0.75)
  outer_title(paste0("Chance of each term; ", main), x$privacy)
}

plot_models <- function(x, setting, most, main, ...) {
  count <- nrow(x$settings)
  if (!is.numeric(setting) || length(setting) != 1 || is.na(setting) || setting < 1 || setting > count) {
    dpreg_stop("argument_error", "setting must be a row of the settings, 1 to ", count, ".")
  }
  chances <- x$probabilities[, setting]
  place <- utils::head(order(-chances), most)
  chosen <- x$agreement$same.score.choice[setting]
  labels <- rownames(x$models)[place]
  long <- nchar(labels) > 60
  labels[long] <- paste0(substr(labels[long], 1, 57), "...")
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  wide <- max(graphics::strwidth(labels, units = "inches", cex = 0.8)) + 0.3
  graphics::par(mai = c(0.9, min(wide, 0.6 * graphics::par("din")[1]), 0.9, 0.4), las = 1)
  middles <- graphics::barplot(rev(chances[place]), horiz = TRUE, names.arg = rev(labels), cex.names = 0.8,
                               col = rev(ifelse(rownames(x$models)[place] == chosen, "grey30", "white")),
                               xlim = c(0, 1.15 * max(chances)), xlab = paste0(
                                 "chance of the model (filled: the choice without noise); all others ",
                                 sprintf("%.3f", max(0, 1 - sum(chances[place])))), ...)
  graphics::text(rev(chances[place]), middles, sprintf(" %.3f", rev(chances[place])), adj = 0, cex = 0.75)
  one <- x$settings[setting, ]
  graphics::title(paste0(deparse1(x$formula[[2]]), ": ", one$mechanism, ", eps ", format_each(one$eps), ", R ",
                         format_each(one$radius), ", penalty ", sub("\\.0$", "", one$penalty)), line = 2.2)
  graphics::mtext(x$privacy, line = 0.9, cex = 0.75)
}

#' Plot a simulation study
#'
#' The chance of the right model over the penalty: rows of panels for `n`, columns for the radius, a line
#' for each `eps`; the pale line is the share of data sets in which the score without noise is right.
#'
#' @param x A result of [simulation_study()].
#' @param n Sample sizes to show; by default all.
#' @param bound,mechanism,neighbors,scale Which to show where several were studied; by default the first.
#' @param main A title.
#' @param ... Further arguments of [graphics::plot.default()].
#' @returns `x`, invisibly.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' study <- simulation_study(c(1, 1, 0), c(200, 1000), radius = c(1, 2.5), eps = c(1, 5),
#'                           datasets = 20, bound = 6)
#' plot(study)
#' @export
plot.simulation_study <- function(x, n = NULL, bound = NULL, mechanism = NULL, neighbors = NULL,
                                  scale = NULL, main = NULL, ...) {
  frame <- x$proportions[!is.na(x$proportions$penalty.n), ]
  wanted <- list(n = n, bound = bound, mechanism = mechanism, neighbors = neighbors, scale = scale)
  for (key in names(wanted)) {
    value <- wanted[[key]] %||% if (key == "n") unique(frame$n) else frame[[key]][1]
    if (!all(value %in% frame[[key]])) {
      dpreg_stop("argument_error", key, " = ", quoted(format(setdiff(value, frame[[key]])[1])),
                 " was not studied; there are ", listed(format(unique(frame[[key]]), trim = TRUE)), ".")
    }
    frame <- frame[frame[[key]] %in% value, ]
  }
  shown <- c(paste("bound", frame$bound[1]), frame$mechanism[1], frame$neighbors[1])
  main <- main %||% paste0("beta = (", paste(format(x$beta, trim = TRUE), collapse = ", "), "); ",
                           paste(shown, collapse = ", "))
  line_panels(frame, "penalty.n", "right", "eps", "n", "radius", xlab = "penalty / n",
              ylab = "chance of the right model", ylim = c(0, 1), main = main, sub = x$privacy,
              pale = "without.noise", ...)
  invisible(x)
}
