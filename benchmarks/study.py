"""Time the exact study of 8,192 models under 64 settings against repeating the real mechanism.

The peers draw 200 times: by the whole pipeline after the rows are read (`run.select`, which scores
the models anew for each draw, as a replication of `dp_select` has to), and by OpenDP's noisy
minimum alone on scores made before, for one setting of the 64.
"""

from fractions import Fraction

from dpreg import datasets
from dpreg.privacy.mechanisms.choice import choose
from dpreg.request import SelectionRequest
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.draws import Enumerated
from dpreg.selection.run import design_of, prepare, space_of
from dpreg.selection.scoring.problem import Problem
from dpreg.sources import as_source
from dpreg.sources.reader import Reader
from dpreg.study.selection import selection_study

from ._harness import Comparison, compare, show

REPLICATIONS = 200
AREA = datasets.make_bay_area()
GRID = {
    "eps": ("0.5", 1, 2, 5),
    "radius": ("0.25", "0.5", 1, 2),
    "penalty": (4, 8, 16, 32),
}
DEFAULTS = {
    "delta": 0,
    "method": "pcls",
    "neighbors": "replace-one",
    "contributions": 1,
    "units": "column",
    "keep": ("Intercept",),
    "max_terms": None,
    "hierarchy": "none",
    "radius": 1,
    "clip": 1,
    "center": True,
    "penalty": 8,
    "sigma2": None,
    "false_inclusions": "0.1",
    "shares": None,
    "draws": 1,
    "fit": None,
    "engine": "enumerate",
    "unsafe_seed": None,
}


def _study(mechanism: str) -> object:
    study = selection_study(
        AREA.formula, AREA.data, schema=AREA.schema, units="column", mechanism=mechanism, **GRID
    )
    assert study.law.probabilities.shape == (8192, 64)
    return study


def _comparisons(mechanism: str) -> list[Comparison]:
    reader = Reader(as_source(AREA.data))
    request = SelectionRequest.of(
        {**DEFAULTS, "formula": AREA.formula, "eps": 1, "mechanism": mechanism}
    )
    schema = Schema.from_any(AREA.schema)
    design = design_of(request, schema)
    preparation = prepare(request, design, reader, account := request.account())
    space = space_of(request, design)
    rows = run.read_rows(request, design, reader)
    account.charge(None, "a benchmark")
    tuning = run.tune(preparation, design, rows)
    problem = Problem(rows.selecting, tuning.rho)
    contest = run.contest_of(preparation, tuning, problem, rows.selecting)
    priced = contest.priced(*run.penalties(preparation, tuning, contest, space), space)
    scores = Enumerated(problem, space, priced, preparation.plan).scores
    width = priced.score_range.width

    def replications() -> None:
        for _ in range(REPLICATIONS):
            fresh = prepare(request, design, reader, account := request.account())
            account.charge(None, "a benchmark")
            run.select(fresh, tuning, space, rows.selecting)

    def bare_draws() -> None:
        for _ in range(REPLICATIONS):
            choose(scores, eps=Fraction(1), score_range=width, mechanism=mechanism)

    def ours() -> object:
        return _study(mechanism)

    exact = f"{mechanism}: exact, 8,192 models x 64 settings"
    peer = f"{REPLICATIONS} replications, 1 setting"
    lines = [compare(exact, ours, peer, replications, rounds=1, goal=1.0)]
    if mechanism == "permute-and-flip":
        bare = f"{REPLICATIONS} draws on given scores"
        lines.append(compare(exact, ours, bare, bare_draws, rounds=3))
    return lines


if __name__ == "__main__":
    mechanisms = ("permute-and-flip", "laplace")
    show([line for mechanism in mechanisms for line in _comparisons(mechanism)])
