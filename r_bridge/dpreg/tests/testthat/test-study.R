need_python()

test_that("a study is exact, in R's names, and says that it is the curator's", {
  study <- selection_study(mpg ~ log(wt) + hp, mtcars, car_schema, eps = c(1, 1e6),
                           penalty = c(0, 1))
  expect_identical(nrow(study$settings), 4L)
  expect_identical(rownames(study$frequencies), c("log(wt)", "hp"))
  expect_equal(colSums(study$probabilities), rep(1, 4))
  expect_equal(unname(t(study$models) %*% study$probabilities), unname(study$frequencies))
  expect_identical(study$agreement$bic.choice[1], "(Intercept) + log(wt) + hp")
  expect_output(value <- withVisible(print(study)), "curator only: not private")
  expect_false(value$visible)
})

test_that("a plan needs no data", {
  plan <- dp_plan(c("log(wt)" = -17), sigma = 3, n = 5000, formula = mpg ~ log(wt) + hp,
                  schema = car_schema)
  expect_identical(plan$solved, "eps")
  expect_named(plan$each, "log(wt)")
  expect_gte(plan$found, 0.79)
  expect_output(print(plan), "Plan of a private selection")
  bare <- dp_plan(c(0.3, 0.2), sigma = 0.2, eps = 1, candidates = 5)
  expect_identical(bare$solved, "n")
  expect_error(dp_plan(0.1, sigma = -1, n = 10), class = "dpreg_argument_error")
})
