"""On clean rows the design's columns are patsy's own, bit for bit, and stored as the rule says.

patsy sees the same rows here with its whole language open, factors evaluated by Python.
"""

import warnings

import numpy as np
import pandas as pd
import patsy
import pytest
from oracles.design_rows import blocks

from dpreg.formula.design import build_design
from dpreg.schema import Schema
from dpreg.sources import as_source

SCHEMA = Schema(
    {
        "y": (-9, 9),
        "x": (0.5, 4),
        "z": (-3, 3),
        "w": (0.25, 0.75),
        "my col": (1, 2),
        "g": ["b", "a", "c"],
        "h": ["u", "v"],
        "k": {"levels": [1, 2, 3, 4]},
        "flag": bool,
    }
)

FORMULAS = """
1
x
x + z
0 + x
x - 1
x + 0
-1 + x + z
g
0 + g
g + h
g * h
g:h
0 + g:h
h:g
g:x
g:x + x
g * x
0 + g * x
h * x * z
h:x
flag:h
flag * g * x
(x + z + g) ** 2
(x + g + h) ** 3
(x + z + w + g) ** 2 - x:z
x / g
g / x
(x + z) / g
x ** 2
I(x ** 2)
I(x ** 2) + I(x ** 3) + I(x ** 7)
I(x ** -1) + I(x ** -2) + I(x ** 0.5) + I(x ** 1.5)
I(2 ** z) + I(x ** z) + I(z ** 2):w
np.log(x) + np.exp(z) + np.sqrt(x) + np.abs(z) + np.log1p(x)
np.log(x):np.exp(z):g
I(x / w) + I(z / x)
I((x + 1) * (z - 2) / 3 - 0.1)
I(-x + +z)
I(1 / 3 * x + 2 ** 3)
x > 2
z <= w
I(z >= 0) + I(x != 2) + I(x == 2)
I(x > 2) * z
I((x > 2) * z)
I(1.0 * (x > 2) + (z < 0))
I(g == 'a')
I((g == 'a') * x) + I((k == 2) * z) + I((g != 'a') * 1.0)
C(g)
C(g, Sum)
C(g, Sum) * z
0 + C(g, Sum) * h
C(g, Treatment)
C(g, Treatment('a'))
C(g, Treatment(reference='c')) * C(h, Sum)
C(g, Treatment(-1)):x
C(g, levels=['c', 'a', 'b'])
C(h, Sum) + flag
C(flag) + C(flag, levels=[True, False]):x
k
C(k) * x
C(k, levels=[2, 1, 4, 3])
Q('my col')
Q("my col"):g
x + I(x)
bs(x, knots=[1, 2, 3], lower_bound=0.5, upper_bound=4)
bs(x, knots=[3, 1, 2], degree=2, lower_bound=0, upper_bound=5)
0 + bs(x, knots=[1, 2, 3], degree=2, lower_bound=0, upper_bound=5, include_intercept=True)
bs(np.log(x), knots=[0.5], lower_bound=-1, upper_bound=2):h
bs(x, knots=[2], degree=1, lower_bound=0.5, upper_bound=4) * g
bs(x, knots=[1, 2, 3], degree=0, lower_bound=0.5, upper_bound=4)
bs(x, knots=[], lower_bound=0.5, upper_bound=4) + bs(z, knots=[0], lower_bound=-3, upper_bound=3)
""".strip().splitlines()

RESPONSES = ["y", "np.log(Q('my col'))", "I(x + z)"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(20261120)
    n = 400
    columns = {
        name: rng.uniform(bounds.lo, bounds.hi, n) for name, bounds in list(SCHEMA.items())[:5]
    }
    columns["x"][:4] = 2, 0.5, 4, 3  # ends, a knot, a compared value
    columns["g"] = rng.choice(["a", "b", "c"], n)
    columns["h"] = rng.choice(["u", "v"], n)
    columns["k"] = rng.integers(1, 5, n)
    columns["flag"] = rng.random(n) < 0.4
    return pd.DataFrame(columns, index=[f"row {i}" for i in range(n)])


@pytest.fixture(scope="module")
def seen_by_patsy(frame):
    """The same rows, with the schema's levels, which patsy would else take from the rows."""
    return frame.assign(
        g=pd.Categorical(frame.g, ["b", "a", "c"]),
        h=pd.Categorical(frame.h, ["u", "v"]),
        k=pd.Categorical(frame.k, [1, 2, 3, 4]),
    )


@pytest.mark.parametrize("right", FORMULAS)
def test_columns_are_patsys(right, frame, seen_by_patsy):
    response = RESPONSES[FORMULAS.index(right) % len(RESPONSES)]
    formula = f"{response} ~ {right}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left, matrix = patsy.dmatrices(formula, seen_by_patsy)
    design = build_design(formula, SCHEMA)
    info = matrix.design_info
    assert design.has_intercept == ("Intercept" in info.term_names)
    wanted = list(range(0 if design.has_intercept else 1, len(design.columns)))

    raw = design.matrix(frame, wanted)
    assert list(raw.columns) == info.column_names
    assert raw.index.equals(frame.index)
    assert np.array_equal(raw.to_numpy(), np.asarray(matrix))

    assert [term.name for term in design.terms] == info.term_names
    for term in design.terms:
        places = [wanted[i] for i in range(*info.slice(term.name).indices(len(wanted)))]
        assert list(term.columns) == places
        assert ":".join(term.factors) == ("" if term.name == "Intercept" else term.name)

    stored = np.concatenate(list(blocks(design, as_source(frame))))
    assert stored.shape == (len(frame), len(design.columns) + 1)
    assert (stored[:, 0] == 1).all()
    for j, values in zip(wanted, np.asarray(matrix).T, strict=True):
        column = design.columns[j]
        assert (values >= column.lo).all()
        assert (values <= column.hi).all()
        expected = np.clip((values - column.offset) / column.width, -1, 1)
        assert np.array_equal(stored[:, j], expected)
    y = np.asarray(left)[:, 0]
    expected = np.clip((y - design.response.offset) / design.response.width, -1, 1)
    assert np.array_equal(stored[:, -1], expected)


@pytest.mark.parametrize("right", FORMULAS)
def test_exclusive_terms_are(right, frame):
    for keep in (("Intercept",), ()):
        design = build_design(f"y ~ {right}", SCHEMA, keep=keep)
        stored = np.concatenate(list(blocks(design, as_source(frame))))
        for term in design.terms:
            cells = stored[:, list(term.columns)]
            if term.exclusive:
                assert cells.shape[1] > 1
                assert set(np.unique(cells)) <= {0.0, 1.0}
                assert (cells.sum(axis=1) <= 1).all()


@pytest.mark.parametrize("right", FORMULAS)
@pytest.mark.parametrize("keep", [("Intercept",), ()])
def test_user_units_predict_the_same(right, keep, frame):
    design = build_design(f"y ~ {right}", SCHEMA, keep=keep)
    chosen = list(range(0 if design.has_intercept else 1, len(design.columns)))
    transform, shift = design.to_user_units(chosen)
    assert transform.shape == (len(chosen), len(chosen))
    beta = np.random.default_rng(1).normal(size=len(chosen))
    stored = np.concatenate(list(blocks(design, as_source(frame))))[:, chosen]
    inside = stored @ beta * design.response.width
    raw = design.matrix(frame, chosen).to_numpy()
    outside = raw @ (transform @ beta + shift)
    if 0 in chosen:
        inside = inside + design.response.offset
    # two routes of a few rounded operations each
    assert np.allclose(outside, inside, rtol=1e-9, atol=1e-9)
