"""Other private linear regressions, written from their papers: float, seeded, never private.

Every peer sees the rows that dpreg sees: columns and response mapped to [-1, 1] by public bounds, a
constant in front. Privacy is for add-remove neighbours, whose sensitivities the papers use. A peer
is a module with `settings(eps, delta)` and `fit(rows, setting, eps, delta, repeats, rng)`, which
gives one row of coefficients for each repeat. Of its settings a study takes the best with hindsight
and charges nothing for it: each peer does at least as well here as it could for anyone.
"""

from benchmarks.peers import adassp, boosted, diffpriv, gradient, hessian, objective, ssp

PEERS = {
    "ssp": ssp,
    "adassp-published": adassp.PUBLISHED,
    "adassp": adassp.ANALYTIC,
    "boosted": boosted,
    "ihm": hessian,
    "dp-gd": gradient,
    "objective": objective,
    "diffprivlib": diffpriv,
}
