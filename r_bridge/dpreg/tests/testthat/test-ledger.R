need_python()

spend <- function(ledger, eps = 0.1, ...) {
  dp_select(mpg ~ wt, mtcars, eps = eps, schema = car_schema, fit = NULL, budget = ledger, ...)
}

test_that("a ledger is charged, and refuses", {
  path <- tempfile(fileext = ".db")
  ledger <- dp_ledger(path, eps = "0.3")
  for (i in 1:3) spend(ledger)
  expect_error(spend(ledger), class = "dpreg_budget_error")
  now <- dp_ledger(path)
  expect_identical(now$spent, c(eps = "0.3", delta = "0"))
  expect_identical(now$remaining[["eps"]], "0")
  expect_identical(nrow(now$entries), 3L)
  expect_output(print(ledger), "spent:     eps = 0.3")
})

test_that("what a ledger tells is what the account holds now", {
  ledger <- dp_ledger(tempfile(fileext = ".db"), eps = 1, analyst = "ada")
  expect_identical(ledger$spent[["eps"]], "0")
  spend(ledger)
  expect_identical(ledger$spent[["eps"]], "0.1")
  expect_identical(ledger[["remaining"]], c(eps = "0.9", delta = "0"))
  spend(ledger, eps = 0.1 + 0.2)
  entries <- as.data.frame(ledger)
  expect_identical(entries$eps, c("0.1", "0.3"))
  expect_identical(entries, ledger$entries)
  expect_identical(ledger$analyst, "ada")
  expect_identical(ledger[[match("head", names(ledger))]], verify_ledger(ledger)$head)
  expect_error(as.data.frame(ledger, when = 1), "no argument 'when'", class = "dpreg_argument_error")
  file.rename(ledger$path, paste0(ledger$path, ".moved"))
  expect_error(ledger$spent, class = "dpreg_ledger_error")
  expect_output(print(ledger), "As it was when it was opened")
  expect_identical(dp_ledger(tempfile(fileext = ".db"), eps = 0.1 + 0.2)$cap[["eps"]], "0.3")
})

test_that("analysts and periods have caps of their own", {
  path <- tempfile(fileext = ".db")
  ledger <- dp_ledger(path, eps = 2, delta = 1e-6, analyst_cap = list(ada = 1, bob = c(eps = 0.2, delta = 1e-7)),
                      period_cap = 1.5, period = "year")
  expect_identical(ledger$caps$of, c("analyst ada", "analyst bob", "each year"))
  expect_identical(ledger$caps$eps, c("1", "0.2", "1.5"))
  expect_error(spend(ledger), "analyst = ", class = "dpreg_budget_error")
  expect_error(spend(ledger, analyst = "eve"), "'eve'", class = "dpreg_budget_error")
  expect_error(spend(ledger, 0.3, analyst = "bob"), "bob", class = "dpreg_budget_error")
  spend(ledger, analyst = "ada")
  bob <- dp_ledger(path, analyst = "bob")
  dp_mean("mpg", mtcars, eps = 0.1, schema = car_schema, budget = bob)
  sample_aggregate(median, mtcars$mpg, eps = 0.1, bounds = c(5, 40), budget = bob)
  expect_error(spend(bob), "bob", class = "dpreg_budget_error")
  expect_identical(dp_ledger(path)$entries$analyst, c("ada", "bob", "bob"))
  expect_output(print(ledger), "analyst bob: at most eps = 0.2, delta = 1e-7")
  expect_error(dp_ledger(path, eps = 2, delta = 1e-6, analyst_cap = 3), class = "dpreg_budget_error")
  whole <- dp_ledger(tempfile(fileext = ".db"), eps = 1, analyst_cap = "0.1")
  expect_identical(whole$caps$of, "each analyst")
})

test_that("a book can be gone through, and a copy is not charged before it is adopted", {
  path <- tempfile(fileext = ".db")
  ledger <- dp_ledger(path, eps = 1)
  first <- spend(ledger)$record$ledger
  expect_identical(first$entry, 1L)
  found <- verify_ledger(ledger, head = first$head)
  expect_identical(found$entries, 1L)
  expect_identical(found$head, first$head)
  other <- paste0("1:", chartr("0123456789abcdef", "123456789abcdef0", sub("^1:", "", first$head)))
  expect_error(verify_ledger(ledger, head = other), class = "dpreg_ledger_error")
  expect_error(verify_ledger(ledger, head = "x"), "verify_ledger()", fixed = TRUE, class = "dpreg_ledger_error")
  copy <- tempfile(fileext = ".db")
  file.copy(path, copy)
  expect_error(spend(copy), "adopt_ledger()", fixed = TRUE, class = "dpreg_ledger_error")
  adopt_ledger(copy, "moved by a test")
  expect_s3_class(spend(copy), "dp_select")
})

test_that("a session remembers what it saw of an account", {
  path <- tempfile(fileext = ".db")
  ledger <- dp_ledger(path, eps = 1)
  spend(ledger)
  unlink(paste0(path, c("", "-wal", "-shm")))
  python_call("ledger", list(path = paste0(path, "2"), eps = 1, delta = 0))
  file.rename(paste0(path, "2"), path)
  expect_error(spend(ledger), class = "dpreg_error")
})

test_that("what is wrong is said before anything is made", {
  path <- tempfile(fileext = ".db")
  expect_error(dp_ledger(path), "dp_ledger(path, eps)", fixed = TRUE, class = "dpreg_ledger_error")
  expect_error(dp_ledger(path, analyst_cap = 1), "needs eps", class = "dpreg_budget_error")
  expect_error(dp_ledger(path, eps = 1, period_cap = list(ada = 1)), "period_cap", class = "dpreg_budget_error")
  expect_error(dp_ledger(path, eps = 1, analyst_cap = c(1, 2)), "analyst_cap", class = "dpreg_budget_error")
  expect_error(dp_ledger(path, eps = 1, period = "week"), "'week'", class = "dpreg_budget_error")
  expect_error(dp_ledger(1), class = "dpreg_budget_error")
  expect_error(spend(7), "dp_ledger()", fixed = TRUE, class = "dpreg_budget_error")
  expect_false(file.exists(path))
  dp_ledger(path, eps = 1)
  expect_error(spend(dp_ledger(path, read_only = TRUE)), "read_only", class = "dpreg_budget_error")
})

test_that("an address's password stays in the session", {
  shown <- new_ledger(list(path = "postgresql://host/db", cap = c("1", "0"), spent = c("0", "0"),
                           remaining = c("1", "0"), caps = list(of = character(), eps = character(), delta = character()),
                           entries = list(what = character()), head = "0:", identity = "a"),
                      "postgresql://me:secret@host/db", NULL)
  expect_no_match(paste(deparse(shown), collapse = ""), "secret")
  expect_identical(ledger_path(shown), "postgresql://me:secret@host/db")
  call <- public_call(quote(dp_ols(y ~ x, data = d, budget = "postgresql://me:secret@host/db")))
  expect_no_match(deparse1(call), "secret")
  expect_no_match(deparse1(call_to_show(quote(dp_ols(y ~ x, d, budget = "postgresql://me:secret@host/db")))), "secret")
})
