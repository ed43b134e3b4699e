#' Data sets to try things on
#'
#' Each with a public schema and a formula to start with. The first ships with Python's statsmodels. The next
#' two do not ship with dpreg and are never downloaded: they are read from the folder that the environment
#' variable `DPREG_DATA` names, and checked to be the very files. The last one is simulated.
#'
#' The rows are public, but the schemas are written as a curator of confidential rows has to write them: round
#' bounds from the codebook, the design of the study or common knowledge, never the smallest and largest row.
#'
#' @param n The number of rows.
#' @param seed The same seed gives the same rows.
#' @param ... None: an argument that this page does not name is refused by its name, unread.
#' @returns A list with `data`, a data frame; `schema`, for [dp_select()] and its like; `formula`; `source`,
#'   where the rows come from; and `simulated`.
#' * `load_randhie()`: 20,190 person-years of the RAND Health Insurance Experiment, visits to a doctor and the
#'   plan of the insured.
#' * `load_prostate()`: prostate-specific antigen and clinical measures of 97 men.
#' * `load_kc_house()`: 21,613 house sales in King County, Washington.
#' * `make_bay_area()`: SIMULATED house sales with the columns of the paper's Bay Area data.
#' @examplesIf isTRUE(dpreg::dpreg_available())
#' rand <- load_randhie()
#' dp_ols(mdvis ~ disea + lpi, rand$data, eps = 1, schema = rand$schema)
#' @name datasets
NULL

#' @rdname datasets
#' @export
load_randhie <- strict(function(...) dataset("load_randhie"))

#' @rdname datasets
#' @export
load_prostate <- strict(function(...) dataset("load_prostate"))

#' @rdname datasets
#' @export
load_kc_house <- strict(function(...) dataset("load_kc_house"))

#' @rdname datasets
#' @export
make_bay_area <- strict(function(n = 235760, seed = 0, ...) dataset("make_bay_area", list(n = n, seed = seed)))

# `loader` is the function's name in Python.
dataset <- function(loader, arguments = list()) {
  names(arguments)[names(arguments) == "name"] <- "which"
  told <- python_call("dataset", c(list(loader = loader), arguments))
  list(data = told$data, schema = told$schema, formula = full_formula(translation_of(told$formula)), source = told$source,
       simulated = told$simulated)
}
