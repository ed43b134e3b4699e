# Read before the other files, as R reads them by their names.

# A function that refuses, before anything else, what its `...` holds (unknown.R). `harmless` names what other packages
# hand to such a method and what changes no answer of it.
strict <- function(fun, harmless = character()) {
  body(fun) <- call("{", bquote(no_more(..., .harmless = .(substitute(harmless)))), body(fun))
  fun
}
