"""Other private logistic and Poisson regressions, written from their papers: float, seeded, never
private.

Every peer sees the rows that dpreg sees: columns mapped to [-1, 1] by public bounds, a constant in
front, and responses from 0 to a public cap. Privacy is for replaced rows, as dpreg's default. A
peer is a module with `settings(family, eps, delta)` and `fit(rows, setting, eps, delta, repeats,
rng)`, which gives one row of coefficients for each repeat. Of its settings a study takes the best
with hindsight at no cost: each module says so.
"""

from benchmarks.peers.glm import diffpriv, functional, gradient, objective

GLM_PEERS = {
    "objective": objective,
    "dp-gd": gradient,
    "functional": functional,
    "diffprivlib": diffpriv,
}
