"""Flags: said where a release hides something, silent where it does not."""

from dataclasses import replace

import numpy as np
import pytest

from dpreg.staged.coefficients import coefficients
from dpreg.staged.flags import flags
from dpreg.staged.law import law
from dpreg.staged.released import NoisyLook, Tail, box


def released(collinear=False, sd=3.0, heavy=False):
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (4_000, 3))
    if collinear:
        x[:, 2] = x[:, 1] + 0.001 * x[:, 2]
    e = rng.standard_t(2.1, 4_000) * 0.1 if heavy else rng.normal(0, 0.1, 4_000)
    at = replace(box(3), width=0.25)
    raw = x @ [0.01, 0.02, 0.0] + e
    z = np.column_stack([np.ones(4_000), x, np.clip(raw / 0.25, -1, 1)])
    noise = np.triu(rng.standard_normal((5, 5)) * sd)
    look = NoisyLook(z.T @ z + noise + np.triu(noise, 1).T, np.full((5, 5), sd), at, None, 4_000)
    t = np.clip(raw / 2.0, -1, 1)
    return law(look, tail=Tail(float(t.sum()), float(t @ t), 1.0, 1.0, 2.0))


def kinds(found, needed=100.0, intercept=True):
    columns = range(4) if intercept else range(1, 4)
    names = ["Intercept", "a", "b", "c"][0 if intercept else 1 :]
    fit = coefficients(found, columns)
    return {f.kind: f for f in flags(found, fit, names, needed=needed)}


def test_a_clear_fit_has_no_flag():
    assert kinds(released()) == {}


def test_two_columns_that_vary_together_are_named_and_the_third_is_not():
    flag = kinds(released(collinear=True))["unseen"]
    assert flag.columns == (2, 3)
    assert "b, c" in flag.text
    flag = kinds(released(collinear=True), intercept=False)["unseen"]
    assert flag.columns == (1, 2)


def test_noise_above_all_columns_hides_all():
    flag = kinds(released(sd=3_000.0))["unseen"]
    assert flag.columns == (0, 1, 2, 3)


def test_heavy_residuals_concern_every_coefficient():
    flag = kinds(released(heavy=True))["heavy-residuals"]
    assert flag.columns == (0, 1, 2, 3)
    assert 'method="gram"' in flag.text
    assert kinds(released(heavy=True), intercept=False)["heavy-residuals"].columns == (0, 1, 2)


def test_too_few_rows_for_the_budget():
    flag = kinds(released(), needed=9_000.0)["rows"]
    assert "9000" in flag.text
    assert flag.columns == (0, 1, 2, 3)


def test_shortened_rows_are_told_by_their_weight():
    found = replace(released(), weight=0.4)
    assert "0.40" in kinds(found)["shortened-rows"].text


@pytest.mark.parametrize("column", [2, 3])
def test_one_of_two_twins_is_clear_without_the_other(column):
    """In the model with one of them nothing is hidden."""
    found = released(collinear=True)
    assert coefficients(found, [0, 1, column]).unresolved.max() < 0.01
    assert coefficients(found).unresolved[column] > 0.9
