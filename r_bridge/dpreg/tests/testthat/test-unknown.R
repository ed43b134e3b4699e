need_python()

# No cell in what R says, whatever argument rows come by; and no argument that is left unread.

set.seed(35)
secrets <- data.frame(y = runif(60), x = runif(60), depth = 61.5 + runif(60), who = sprintf("secret-%04d", sample(9999, 60)))
facts <- list(y = c(0, 1), x = c(0, 1), depth = c(50, 70))
leak <- paste(c(substr(as.character(secrets$depth), 1, 8), secrets$who), collapse = "|")

told <- function(code) {
  caught <- tryCatch(suppressWarnings(suppressMessages(code)), error = identity)
  if (!inherits(caught, "error")) return("")
  expect_s3_class(caught, "dpreg_error")
  paste(conditionMessage(caught), paste(deparse(conditionCall(caught)), collapse = " "))
}

test_that("rows that come by an argument that a function lacks are in no error", {
  h <- function(df, ...) dp_ols(y ~ x, df, ..., eps = 1)
  caught <- expect_error(h(secrets, offset = secrets$depth), class = "dpreg_argument_error")
  expect_match(conditionMessage(caught), "^offset must be an expression of columns")
  expect_false(grepl(leak, told(h(secrets, weights = secrets$depth))))
  expect_match(told(h(secrets, subset = secrets$depth > 62)), "subset: a test that is passed on by ... must be written as text", fixed = TRUE)
  means <- function(df, ...) dp_mean("x", df, ..., eps = 1, bounds = c(0, 1))
  expect_match(told(means(secrets, weights = secrets$depth)), "^dp_mean\\(\\) has no argument 'weights'")
})

test_that("every exported function and every method takes any argument's name, and reads no value", {
  space <- asNamespace("dpreg")
  exported <- Filter(function(name) {
    identical(environment(space[[name]]), space) && is.function(space[[name]])
  }, intersect(getNamespaceExports("dpreg"), ls(space)))
  expect_gt(length(exported), 20)
  h <- function(f, ...) f(...)
  for (name in exported) {
    expect_true("..." %in% names(formals(space[[name]])), info = name)
    for (rows in list(secrets$depth, secrets$who, secrets)) {
      said <- told(h(space[[name]], nonsense_argument = rows))
      expect_match(said, "has no argument 'nonsense_argument'", info = name)
      expect_false(grepl(leak, said), info = name)
      expect_false(grepl(leak, told(do.call(name, list(nonsense_argument = rows)))), info = name)
    }
    # What is refused by its name is not evaluated.
    expect_match(told(space[[name]](nonsense_argument = stop("evaluated"))), "has no argument", info = name)
  }
})

test_that("rows in the place of any argument are in no error and in no call of one", {
  # Studies take several values of an argument, are for the curator alone, and tell the first that is wrong.
  calls <- list(
    dp_ols = list(y ~ x, secrets, eps = 1, schema = facts), dp_glm = list(y ~ x, secrets, eps = 1, schema = facts),
    dp_select = list(y ~ x, secrets, eps = 1, schema = facts), dp_mean = list("x", secrets, eps = 1, schema = facts),
    dp_quantile = list("x", q = 0.5, data = secrets, eps = 1, schema = facts),
    dp_histogram = list("x", secrets, eps = 1, schema = facts), dp_suffstats = list("x", secrets, eps = 1, schema = facts),
    sample_aggregate = list(function(block) mean(block$x), secrets, eps = 1, bounds = c(0, 1), schema = facts),
    dp_plan = list(effects = c(x = 1), sigma = 1, formula = y ~ x, schema = facts),
    dp_plan_glm = list(y ~ x, schema = facts, mean = 0.5), dp_ledger = list(tempfile(), eps = 1)
  )
  found <- character()
  for (name in names(calls)) {
    given <- as.list(match.call(get(name), as.call(c(as.name(name), calls[[name]]))))[-1]
    for (argument in setdiff(names(formals(name)), "...")) {
      for (rows in list(secrets$depth, secrets$who, secrets, as.list(secrets$depth))) {
        given_rows <- given
        given_rows[[argument]] <- rows
        caught <- tryCatch(suppressWarnings(suppressMessages(do.call(name, given_rows))), error = identity)
        wrong <- inherits(caught, "error") && !inherits(caught, "dpreg_error") || inherits(caught, "dpreg_internal_error")
        said <- if (!inherits(caught, "error")) caught$call else list(conditionMessage(caught), conditionCall(caught))
        if (wrong || any(grepl(leak, deparse(said)))) found <- c(found, paste(name, argument, class(rows), class(caught)[1]))
      }
    }
  }
  expect_identical(found, character())
})

fit <- dp_ols(y ~ x, secrets, eps = 100, schema = facts, method = "gram", unsafe_seed = 1)
chosen <- dp_select(y ~ x, secrets, eps = 100, schema = facts, unsafe_seed = 1)
one <- dp_mean("x", secrets, eps = 1, schema = facts)

test_that("no method leaves an argument unread", {
  methods <- grep("^S3method", readLines(system.file("NAMESPACE", package = "dpreg")), value = TRUE)
  methods <- do.call(rbind, strsplit(gsub("^S3method\\(|\\)$|[a-zA-Z0-9]+::", "", methods), ",", fixed = TRUE))
  objects <- list(dp_result = fit, dp_estimate = one, summary.dp_result = summary(fit), summary.dp_estimate = summary(one))
  # knitr, emmeans, insight and bayestestR hand these methods arguments of their own.
  handed <- grepl("^(knit_print|recover_data|emm_basis|get_|ci|p_value|degrees_of_freedom)", methods[, 1])
  drawn <- methods[, 1] == "plot" # graphical parameters
  for (i in which(methods[, 2] %in% names(objects) & !handed & !drawn)) {
    method <- get(paste(methods[i, ], collapse = "."), asNamespace("dpreg"))
    suppressMessages(expect_error(method(objects[[methods[i, 2]]], nonsense_argument = secrets$depth),
                                  class = "dpreg_error", info = paste(methods[i, ], collapse = ".")))
  }
  expect_gt(sum(methods[, 2] == "dp_result"), 40)
})

test_that("what lm's users ask of a summary is refused in words", {
  for (ask in list(
    quote(summary(fit, vcov = "HC1")), quote(summary(fit, robust = TRUE)), quote(tidy(fit, vcov = "HC1")),
    quote(vcov(fit, type = "HC1")), quote(confint(fit, vcov. = vcov(fit))), quote(glance(fit, foo = 1)),
    quote(summary(chosen, cluster = "x")), quote(as.data.frame(fit, foo = 1)), quote(summary(one, robust = TRUE))
  )) expect_match(told(eval(ask)), "has no argument '(vcov[.]?|robust|type|foo|cluster)'", info = deparse(ask))
  expect_match(told(summary(fit, vcov = "HC1")), "residuals, which were not released")
  expect_match(told(summary(fit, alpha = 0.1)), "did you mean level? It is 1 - alpha", fixed = TRUE)
  expect_match(told(tidy(fit, conf.levl = 0.9)), "did you mean conf.level?", fixed = TRUE)
  expect_identical(coef(fit, complete = FALSE), coef(fit))
  expect_identical(data.frame(fit)$estimate, unname(coef(fit)), ignore_attr = TRUE)
})

test_that("near and foreign names of arguments are told from those that exist", {
  said <- function(...) told(dp_ols(y ~ x, secrets, schema = facts, ...))
  expect_match(said(epsilon = 1), "has no argument 'epsilon'; did you mean eps?", fixed = TRUE)
  expect_match(said(eps = 1, seed = 1), "did you mean unsafe_seed? Its results can be repeated, and are not private", fixed = TRUE)
  expect_match(said(eps = 1, alpha = 0.1), "confint(fit, level = 0.95)", fixed = TRUE)
  expect_match(said(eps = 1, neigbours = "add-remove"), "did you mean neighbors?", fixed = TRUE)
  expect_match(said(1, 0, facts, "auto", NULL, "box", "replace-one", 1, NULL, 1, TRUE, NULL, NULL, NULL, NULL, NULL, NULL, 9),
               "dp_ols() was given more arguments than it has", fixed = TRUE)
  expect_match(told(sample_aggregate(mean, secrets$x, 1, bounds = c(0, 1), na.rm = TRUE)), "called with a block alone")
})
