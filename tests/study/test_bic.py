"""The choice by BIC: by steps as by enumeration, with hierarchies and limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpreg.formula.design import build_design
from dpreg.moments import read_moments
from dpreg.selection.space import build_space
from dpreg.sources import as_source
from dpreg.sources.reader import Reader
from dpreg.study.selection import bic_by_steps, least_squares

SCHEMA = dict.fromkeys("abcdey", (-1, 1))
FORMULA = "y ~ a + b + c + d + e + a:b + b:c"


def table(seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.uniform(-1, 1, (400, 5)), columns=list("abcde"))
    rows["e"] = 0.9 * rows["a"] + 0.1 * rows["e"]
    signal = rows.to_numpy() @ rng.choice([0, 0.1, 0.4], 5) + 0.3 * rows["a"] * rows["b"]
    rows["y"] = np.clip(0.4 * signal + 0.2 * rng.normal(size=400), -1, 1)
    return rows


@pytest.mark.parametrize("limit", [{}, {"max_terms": 2}, {"hierarchy": "strong"}])
@pytest.mark.parametrize("seed", range(8))
def test_steps_find_the_model_that_enumeration_finds(seed, limit):
    design = build_design(FORMULA, SCHEMA)
    (moments,) = read_moments(Reader(as_source(table(seed)), False), design)
    names = [column.name for column in design.columns]
    space = build_space(design.terms, names, **limit)
    models = space.models()
    bic, left = least_squares(space.columns(models), moments)
    best = int(bic.argmin())
    found = bic_by_steps(space, moments)
    assert found == tuple(np.flatnonzero(models[best]))
    chosen = np.zeros((1, len(space.units)), dtype=np.bool_)
    chosen[0, list(found)] = True
    assert least_squares(space.columns(chosen), moments)[1][0] == pytest.approx(left[best])


def test_useless_columns_by_the_dozen_take_no_time():
    """A tree of models once took minutes here: none of these columns stands out."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.uniform(-1, 1, (500, 41)), columns=[f"x{j}" for j in range(40)] + ["y"])
    rows["y"] = 0.4 * rows["x3"] + 0.2 * rows["y"]
    design = build_design("y ~ " + " + ".join(rows.columns[:-1]), dict.fromkeys(rows, (-1, 1)))
    (moments,) = read_moments(Reader(as_source(rows), False), design)
    space = build_space(design.terms, [column.name for column in design.columns])
    assert 3 in bic_by_steps(space, moments)
