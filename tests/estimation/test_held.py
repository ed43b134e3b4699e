"""The minimum of an objective over held rows: what floats tell, and where balls decide."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx

from dpreg.api.looks import can_hold
from dpreg.looks import minimum
from dpreg.looks.minimum import Objective
from dpreg.sources import as_source
from dpreg.sources.reader import Reader


def _objective(n=700, d=4, seed=2, scale=1.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))]) * scale
    y = rng.standard_normal(n) * 2
    b = [Fraction(round(cell * 2**30), 2**30) for cell in 5 * rng.standard_normal(d)]
    return Objective(x, y, rng.uniform(0.1, 1, n), 1.8, Fraction(7, 3), b)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 700])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_what_floats_tell_of_a_gradient_is_never_too_little(n, scale):
    at = _objective(n, scale=scale)
    found = minimum._searched(at, 1e-300)
    rng = np.random.default_rng(4)
    for t in (found, *(found + 10.0**-p * rng.standard_normal(4) / scale for p in (15, 9, 1))):
        with ctx.workprec(300):
            true = minimum._length(at.ball([arb(float(cell)) for cell in t]))
            assert bool(true <= arb(at.near(t)))
    assert at.near(found) <= 1e-9 * scale * max(n, 10)


def test_ball_arithmetic_decides_where_floats_cannot(monkeypatch):
    at = _objective()
    near = minimum.minimum(at, Fraction(1, 10**6), Fraction(0), 80)
    asked, honest = [], Objective.ball
    monkeypatch.setattr(Objective, "ball", lambda self, t: asked.append(t) or honest(self, t))
    assert minimum.minimum(at, Fraction(1, 10**6), Fraction(0), 80) == near
    assert not asked
    nearer = minimum.minimum(at, Fraction(1, 10**24), Fraction(0), 80)
    assert asked
    assert np.abs([(a - b) / 2.0**80 for a, b in zip(near, nearer, strict=True)]).max() < 1e-9
    found = minimum.minimum(at, Fraction(1, 10**24), Fraction(0), 160)
    with ctx.workprec(600):
        left = minimum._length(honest(at, [arb(cell) * arb((1, -160)) for cell in found]))
        assert bool(left <= 1.01e-24)


def test_only_rows_that_are_read_here_are_held(tmp_path):
    data = pd.DataFrame({"x": np.arange(50.0)})
    data.to_parquet(tmp_path / "rows.parquet")
    for source in (as_source(data), as_source(tmp_path / "rows.parquet")):
        assert can_hold(Reader(source, False))
        assert not can_hold(SimpleNamespace(source=source, persons=object()))
    assert not can_hold(SimpleNamespace(source=object(), persons=None))
