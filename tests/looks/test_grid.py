"""Forms: rounded once, exact from there on, and the way back with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.looks.coordinates import (
    LARGEST_REACH,
    Form,
    moved_rows,
    whitened_forms,
    written,
)


def forms_of(rng, p, size=1.0):
    whitening = rng.normal(size=(p, p)) * size
    offset = -whitening @ rng.uniform(-0.9, 0.9, p)
    return whitening, offset, whitened_forms(whitening, offset)


@pytest.mark.parametrize("p", [1, 4, 30])
@pytest.mark.parametrize("size", [1e-6, 1.0, 7e3, 1e12])
def test_every_partial_sum_of_a_form_is_a_float64(p, size):
    for form in forms_of(np.random.default_rng(p), p, size)[2]:
        total = abs(form.constant) + sum(map(abs, form.slopes))
        assert total * 2**20 <= 2**53
        assert total > 2**31 or form.shift == 52, "the grid is as fine as it may be"


def test_products_are_the_exact_integers_in_any_order():
    rng = np.random.default_rng(0)
    p = 12
    cells = rng.integers(-(2**20), 2**20, (p + 3, 50)).astype(float)
    cells[0] = 2**20
    places = rng.permutation(np.arange(1, p + 2))[:p].tolist()
    for form in forms_of(rng, p, 30.0)[2]:
        exact = [
            form.constant * 2**20
            + sum(s * int(cells[j, row]) for s, j in zip(form.slopes, places, strict=True))
            for row in range(50)
        ]
        row = form.on_cells(places, p + 3)
        for order in (np.arange(p + 3), rng.permutation(p + 3)):
            found = row[order] @ cells[order] * 2.0 ** (form.shift + 20)
            assert [int(value) for value in found] == exact


def test_a_form_with_larger_integers_is_refused():
    Form(0, 2**32, (-(2**32),))
    with pytest.raises(ArgumentError, match=r"2\*\*33"):
        Form(0, 2**32, (-(2**32), 1))


@pytest.mark.parametrize("p", [1, 5, 20])
def test_rounding_moves_nothing_that_matters(p):
    whitening, offset, forms = forms_of(np.random.default_rng(p), p)
    for rounded, meant in zip(written(forms), (whitening, offset), strict=True):
        np.testing.assert_allclose(rounded, meant, atol=1e-8)


def test_limits_hold_whatever_is_asked_for():
    wild = whitened_forms(
        np.array([[1e300, 1e299, 0.0], [0.0, 0.0, 0.0], [1e-300, 0.0, 1.0]]),
        np.array([1e301, 5.0, -7.0]),
    )
    whitening, offset = written(wild)
    reach = np.abs(whitening).sum(axis=1)
    assert (reach <= LARGEST_REACH).all()
    assert (np.abs(offset) <= reach).all()
    assert whitening[0, 0] == pytest.approx(LARGEST_REACH / 1.1)


def test_coefficients_go_back_with_the_rounded_numbers():
    rng = np.random.default_rng(3)
    forms = forms_of(rng, 4)[2]
    theta = rng.normal(size=5)
    whitening, offset = written(forms)
    beta = 0.3 * moved_rows(whitening, offset).T @ theta
    x = rng.uniform(-1, 1, (50, 4))
    u = x @ whitening.T + offset
    np.testing.assert_allclose(beta[0] + x @ beta[1:], 0.3 * (theta[0] + u @ theta[1:]), rtol=1e-12)
