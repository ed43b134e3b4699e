"""Expected useless terms under ``penalty="auto"``: exact, and by 2,000 draws (issue 3).

Two terms are so strong that they are always in. Four factors of nine levels and four numbers are
useless; alpha is spread over all ten terms, so eight tenths of it are what can come.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.bounds import score_range
from oracles.design_rows import blocks
from oracles.scores import penalty_counts

from dpreg.options import PCLS
from dpreg.privacy import seeded
from dpreg.privacy.mechanisms.choice import noise_scale
from dpreg.privacy.proofs import score_grid
from dpreg.study.selection import selection_study

ROWS, DRAWS = 4000, 2000
LEVELS = tuple("abcdefghi")
FACTORS, NUMBERS = ("f1", "f2", "f3", "f4"), ("u1", "u2", "u3", "u4")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    columns = {name: rng.choice(LEVELS, ROWS) for name in FACTORS}
    columns |= {name: rng.uniform(-1, 1, ROWS) for name in (*NUMBERS, "s1", "s2")}
    y = 0.45 * columns["s1"] - 0.4 * columns["s2"] + 0.03 * rng.standard_normal(ROWS)
    schema = {name: list(LEVELS) for name in FACTORS}
    schema |= dict.fromkeys((*NUMBERS, "s1", "s2", "y"), (-1, 1))
    return pd.DataFrame(columns | {"y": y}), schema


@pytest.mark.parametrize("alpha", ["0.1", "0.3"])
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
def test_useless_terms_are_alpha_at_most_and_not_much_less(table, mechanism, alpha):
    data, schema = table
    formula = "y ~ " + " + ".join(("s1", "s2", *FACTORS, *NUMBERS))
    study = selection_study(
        formula,
        data,
        schema=schema,
        eps=1,
        false_inclusions=alpha,
        method=PCLS(mechanism=mechanism),
    )
    wanted = float(alpha)
    frequencies = study.frequencies.iloc[:, 0]
    assert frequencies[["s1", "s2"]].min() > 0.9999
    exact = frequencies.drop(["s1", "s2"]).sum()
    assert 0.7 * wanted <= exact <= wanted

    # 2,000 draws from the same scores by the seeded mechanism, not from the probabilities.
    law = study.law
    rho = Fraction(1)
    scale = noise_scale(Fraction(1), score_range(rho, "replace-one", 1), mechanism)
    scores = _scores(study, data, schema, formula, rho)
    rng = np.random.default_rng(11)
    strong = np.isin(study.candidates, ["s1", "s2"])
    useless = law.models[:, ~strong].sum(axis=1)
    drawn = np.array(
        [
            useless[seeded.choose(scores, scale=scale, mechanism=mechanism, rng=rng)]
            for _ in range(DRAWS)
        ]
    )
    error = drawn.std() / np.sqrt(DRAWS)
    assert drawn.mean() <= wanted + 3 * error
    assert drawn.mean() >= 0.7 * wanted - 3 * error
    assert abs(drawn.mean() - exact) <= 4 * error


def _scores(study, data, schema, formula, rho):
    """Total integer scores, from the study's own charges and canonical scores computed afresh."""
    from dpreg.formula.design import build_design
    from dpreg.moments import accumulate
    from dpreg.selection.scoring.problem import Problem
    from dpreg.selection.space import build_space
    from dpreg.sources import as_source

    design = build_design(formula, schema)
    space = build_space(design.terms, tuple(column.name for column in design.columns))
    rows = blocks(design, as_source(data))
    problem = Problem(accumulate(rows, len(design.columns) + 1), rho)
    q = problem.scores(space.columns(study.law.models))
    columns, units = penalty_counts(space, study.law.models)
    grid = score_grid(rho)
    (setting,) = study.settings
    return q + columns * round(setting.phi / grid) + units * round(setting.psi / grid)
