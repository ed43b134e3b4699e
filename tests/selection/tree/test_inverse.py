"""What floats get wrong of G's inverse stays below what is allowed for, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from dpreg.selection.tree.bounds import Inverse, diagonal_minorant

RHO = 1.5


def problem(size, seed):
    """A positive definite G, near singular, and b, as they come from correlated columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, size)) + 30 * rng.normal(size=(40, 1))
    gram = x.T @ x
    return (gram + gram.T) / 2, x.T @ rng.normal(size=40)


def exact(array):
    return np.vectorize(Fraction, otypes=[object])(array)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_is_allowed_for(seed):
    """At a minimiser beta, b'V c and b'G^-1 c are the same up to the error of V."""
    gram, cross = problem(5, seed)
    found = Inverse(gram, cross, RHO, float(gram.diagonal().max()), 0.0)
    residual = exact(cross) - exact(gram) @ exact(found.beta)
    off = exact(gram) @ exact(found.matrix) - exact(np.eye(5))
    assert max(abs(residual)) <= Fraction(found.residual)
    assert np.abs(off).max() <= Fraction(found.off)
    for norm in (1.0, 4.0):
        allowed = 2 * RHO * (float(max(abs(residual))) + float(np.abs(off).max()) * norm)
        assert found.error(norm, 3) >= allowed > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_base_lies_below_what_it_stands_for(seed):
    gram, cross = problem(5, seed)
    found = Inverse(gram, cross, RHO, float(gram.diagonal().max()), 0.25)
    beta = exact(found.beta)
    assert Fraction(found.base) <= -(beta @ exact(gram) @ beta) - Fraction(1, 4)


@pytest.mark.parametrize("seed", range(5))
def test_the_minorant_leaves_a_positive_definite_matrix(seed):
    gram, _ = problem(6, seed)
    diagonal = diagonal_minorant(gram, np.linalg.inv(gram), float(gram.diagonal().max()))
    assert (diagonal >= 0).all()
    left = np.linalg.eigvalsh(gram - np.diag(diagonal))
    assert left[0] > 0
    assert np.linalg.eigvalsh(gram - 1.5 * np.diag(diagonal))[0] < 0 or not diagonal.any()
