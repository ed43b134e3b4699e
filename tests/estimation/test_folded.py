"""Products with folded inverses and draws of their law, against eigenvectors; mutants caught."""

import numpy as np
import pytest

from dpreg.estimation import folded as room
from dpreg.estimation.folded import positive, reflected


class Unit:
    """Stands for a generator: normal numbers that are all 0 but one."""

    def __init__(self, place):
        self.place = place

    def standard_normal(self, shape):
        numbers = np.zeros(shape)
        numbers.flat[self.place] = 1
        return numbers


class Counting:
    """Notes how many normal numbers are asked for."""

    def standard_normal(self, shape):
        numbers = np.zeros(shape)
        self.size = numbers.size
        return numbers


def by_definition(matrix, least):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors / np.maximum(np.abs(values), least)) @ vectors.T


def covariance(folded, size):
    """B B' of the draw B z, column by column of B."""
    counting = Counting()
    folded.both(np.zeros(size), counting)
    columns = [folded.both(np.zeros(size), Unit(place))[1] for place in range(counting.size)]
    return np.array(columns).T @ np.array(columns)


def distance(found, expected):
    """The largest error along an eigenvector of what is expected, as a share of it there."""
    values, vectors = np.linalg.eigh(expected)
    return np.abs(
        (vectors.T @ (found - expected) @ vectors) / np.sqrt(np.outer(values, values))
    ).max()


def symmetric(values, seed=0):
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.normal(size=(len(values), len(values))))
    return (turn * values) @ turn.T


CASES = {
    "noise alone": (np.linspace(-3, 3, 12), 0.3),
    "eigenvalues at the floor": (np.array([-2, -1, -1, -0.5, 0, 1e-9, 0.3, 1, 1, 1, 2, 5.0]), 1.0),
    "one that is large": (np.append(np.linspace(-1, 1, 11), 1e6), 0.1),
    "a low floor": (np.linspace(-3, 3, 12) * 1e5, 1e-2),
    "a floor too low": (np.linspace(-3, 3, 12) * 1e9, 1e-5),
    "small numbers": (np.linspace(-3, 3, 12) * 1e-12, 1e-13),
    "positive": (np.linspace(1, 300, 12), 0.5),
    "two columns": (np.array([-1.0, 2.0]), 0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_products_and_draws_of_any_matrix(case):
    values, least = CASES[case]
    matrix = symmetric(values)
    expected, size = by_definition(matrix, least), len(values)
    folded = reflected(matrix, least)
    products = np.array([folded.both(unit, Counting())[0] for unit in np.eye(size)])
    assert distance(products, expected) < 1e-5
    assert distance(covariance(folded, size), expected) < 1e-5
    assert distance(folded.inverse(), expected) < 1e-8


def test_products_and_draws_of_a_positive_matrix():
    values, least = CASES["positive"]
    matrix = symmetric(values)
    expected, folded = np.linalg.inv(matrix), positive(matrix, least)
    products = np.array([folded.both(unit, Counting())[0] for unit in np.eye(12)])
    assert distance(products, expected) < 1e-10
    assert distance(covariance(folded, 12), expected) < 1e-10
    assert distance(folded.inverse(), expected) < 1e-10


def test_only_eigenvalues_above_the_floor_go_the_short_way():
    matrix = symmetric(np.linspace(1, 300, 12))
    assert positive(matrix, 0.999) is not None
    assert positive(matrix, 1.001) is None
    assert positive(-matrix, 0.5) is None


def test_arguments_stay_as_they_were():
    matrix = symmetric(np.linspace(1, 3, 12))
    kept = matrix.copy()
    for folded in (positive(matrix, 0.1), reflected(matrix, 0.1)):
        folded.both(np.ones(12), np.random.default_rng(0))
        folded.inverse()
    np.testing.assert_array_equal(matrix, kept)


@pytest.mark.parametrize(("name", "value"), [("_STEP", 1.5), ("_LOWEST", 0.3), ("_HIGHEST", 0.3)])
def test_mutants_with_too_few_points_are_caught(monkeypatch, name, value):
    monkeypatch.setattr(room, name, value)
    worst = 0.0
    for values, least in CASES.values():
        matrix = symmetric(values)
        found = covariance(reflected(matrix, least), len(values))
        worst = max(worst, distance(found, by_definition(matrix, least)))
    assert worst > 1e-3
