"""Other private linear regressions, written from their papers: float, seeded, never private.

Every peer sees the rows that dpreg sees: columns and response mapped to [-1, 1] by public bounds, a
constant in front. Privacy is for add-remove neighbours, whose sensitivities the papers use. A peer
is a module with `settings(eps, delta)` and `fit(rows, setting, eps, delta, repeats, rng)`, which
gives one row of coefficients for each repeat. Of its settings a study takes the best with hindsight
and charges nothing for it: each peer does at least as well here as it could for anyone.

Those that give errors have `released` with the arguments of `fit`, for coefficients and errors. A
row of NaN is no answer.

Not here: private least squares from queries that suit the data (Ferrando and Sheldon, arXiv
2405.15002) needs the synthesizer AIM and its graphical models, on a table of few levels a column.
"""

from benchmarks.peers import (
    adassp,
    binagg,
    blocks,
    boosted,
    cells,
    diffpriv,
    dprivstats,
    gradient,
    hessian,
    issp,
    kendall,
    newton,
    objective,
    ssp,
    tukey,
)

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
"""Of `benchmarks.regression`: coefficients alone."""

BESIDE = {
    "tukey": tukey,
    "kendall": kendall,
    "newton": newton,
    "binagg-published": binagg.PUBLISHED,
    "binagg": binagg.EXACT,
    "issp-floor": issp,
    "privacyunbiased": cells,
    "udp": blocks,
    "dprivstats": dprivstats,
}
"""With PEERS, of `benchmarks.beside`."""
