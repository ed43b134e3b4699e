"""A family's rows: their own, bit for bit, and within the limits, whatever the cells are."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from staged.test_rows import Stored, chunk

from dpreg.errors import ArgumentError
from dpreg.families import rows as module
from dpreg.families.counts import capped, count_law
from dpreg.families.family import Binomial, Poisson
from dpreg.families.location import FamilyLocation
from dpreg.families.rows import FamilyRows
from dpreg.moments import accumulate

ONE, FULL = 2**20, 2**40
FAMILIES = [
    (Binomial(), (0.5, 0.5), None),
    (Poisson(20.0), (10.0, 10.0), None),
    (Poisson(3e5), (1.5e5, 1.5e5), None),
    (Poisson(20.0), (10.0, 10.0), 1.0),
    (Poisson(3e5), (1.5e5, 1.5e5), 40.0),
]
"""With the response, and the dispersion of counts whose rows have caps of their own."""


def table_of(family, scatter):
    """Return what rows' caps take off, where they have such."""
    return None if scatter is None else count_law(family, scatter, family.cap / 10).excess


def some_location(rng, family, p, o=0, steep=1.0, scatter=None):
    whitening = rng.normal(size=(p, p)) * 10.0 ** rng.uniform(-2, 4)
    return FamilyLocation.on_grid(
        family,
        whitening=whitening,
        offset=-whitening @ rng.uniform(-1, 1, p),
        slopes=rng.normal(size=p + o) * steep,
        intercept=rng.normal() * steep,
        mean_weight=10.0 ** rng.uniform(-3, 1),
        information=10.0 ** rng.uniform(0, 3),
        score=10.0 ** rng.uniform(-1, 3),
        excess=table_of(family, scatter),
    )


def made(location, z, response, offsets=()):
    p = location.size
    vectors = FamilyRows(Stored(np.shape(z)[1]), location, range(1, p + 1), offsets, response)
    return vectors, vectors.block(chunk(z))


def corners(rng, n, p):
    """Rows of corners, of tiny and of ordinary cells, with y at both ends."""
    x = rng.choice([-1.0, 1.0, 0.0, 1e-6, 0.3], (n, p))
    x[: n // 2] = rng.uniform(-1, 1, (n // 2, p))
    y = rng.choice([-1.0, 1.0, 0.1], n)
    return np.column_stack([np.ones(n), x, y])


@pytest.mark.parametrize(("family", "response", "scatter"), FAMILIES)
@pytest.mark.parametrize("seed", range(12))
def test_no_row_leaves_its_limits(family, response, scatter, seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 7))
    location = some_location(rng, family, p, steep=10.0 ** rng.uniform(-1, 2), scatter=scatter)
    _, block = made(location, corners(rng, 4000, p), response)
    whole = block * ONE
    assert (whole == np.rint(whole)).all()
    k, f, q = whole[:, : p + 1].astype(np.int64), whole[:, p + 1], whole[:, p + 2]
    squares = (k * k).sum(axis=1)
    norm = np.array([-(-int(s) // max(int(np.sqrt(float(s))), 1)) for s in squares])  # rough
    assert squares.max() <= FULL
    exact = [int(s) * int(g) ** 2 for s, g in zip(squares, f, strict=True)]
    assert max(exact) <= location.limit**2
    assert norm.max() <= 2 * ONE
    assert q.min() >= 0
    assert q.max() <= ONE
    # q is |k f| over S, rounded up
    assert (q * location.limit / ONE + 1e-3 >= np.sqrt(np.array(exact, dtype=float))).all()


@pytest.mark.parametrize(("family", "response", "scatter"), FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_a_row_has_the_same_bits_in_any_chunk(family, response, scatter, seed):
    rng = np.random.default_rng([7, seed])
    location = some_location(rng, family, 5, steep=2.0, scatter=scatter)
    z = corners(rng, 333, 5)
    vectors, whole = made(location, z, response)
    for size in (1, 2, 3, 7, 64):
        pieces = [vectors.block(chunk(z[i : i + size])) for i in range(0, 333, size)]
        assert np.concatenate(pieces).tobytes() == np.ascontiguousarray(whole).tobytes()
    order = rng.permutation(333)
    assert vectors.block(chunk(z[order])).tolist() == whole[order].tolist()
    total = accumulate([whole.copy()], vectors.size)
    halves = accumulate([whole[:100].copy(), whole[100:].copy()], vectors.size)
    assert total == halves


@pytest.mark.parametrize(("family", "response", "scatter"), FAMILIES)
def test_blocks_are_information_and_score(family, response, scatter):
    """Against plain floats: omega w/wbar u u' and omega e u/sqrt(wbar), to the grid's precision."""
    rng = np.random.default_rng(3)
    p, n = 3, 500
    location = FamilyLocation.on_grid(
        family,
        whitening=np.eye(p) * 3,
        offset=np.full(p, 0.3),
        slopes=[0.4, -0.6, 0.1, 0.5],
        intercept=family.predictor(family.cap / 4),
        mean_weight=family.moments(np.array([family.predictor(family.cap / 4)]))[1][0],
        information=8.0,
        score=4.0 * np.sqrt(family.cap),
        excess=table_of(family, scatter),
    )
    z = corners(rng, n, p + 1)
    vectors, block = made(location, z, response, offsets=(p + 1,))
    moments = accumulate([block], vectors.size).as_float()
    x, y = (
        np.rint(z[:, 1:-1] * ONE) / ONE,
        response[0] + response[1] * np.rint(z[:, -1] * ONE) / ONE,
    )
    u = np.column_stack([np.ones(n), x[:, :p] * 3 + 0.3])
    eta = location.predictor.floats[0] + x @ location.predictor.floats[1]
    mean, weight = family.moments(eta)
    length, wbar = np.sqrt((u * u).sum(axis=1)), location.mean_weight
    farthest, bound = np.maximum(mean, family.cap - mean), location.score * np.sqrt(wbar)
    if scatter is not None:
        reach, farthest = np.maximum(bound / length, mean), mean
        cap, taken = capped(location.excess, family.cap, eta, mean, reach)
        assert 0.01 < (y > cap).mean() < 0.5
        y = np.minimum(y, cap) + taken
        y = mean + np.clip(y - mean, -reach, reach)
    omega = np.minimum(1, bound / (farthest * length))
    omega = np.minimum(omega, location.information * wbar / (weight * length**2))
    assert 0.2 < omega.mean() < 1
    information = (u * (omega * weight / wbar)[:, None]).T @ u / location.information
    score = u.T @ (omega * (y - mean) / np.sqrt(wbar))
    score /= np.sqrt(location.information) * location.residual
    np.testing.assert_allclose(moments[: p + 1, : p + 1], information, atol=n * 3e-6)
    np.testing.assert_allclose(moments[: p + 1, p + 1], score, atol=n * 3e-6)
    each = (omega * np.abs(y - mean) * length / np.sqrt(wbar)) / location.score
    np.testing.assert_allclose(moments[-1, -1], (each**2).sum(), rtol=1e-3)


def test_an_incomplete_row_counts_for_nothing_and_no_cell_raises():
    rng = np.random.default_rng(5)
    location = some_location(rng, Binomial(), 2)
    z = np.array(
        [[0, 0, 0, 0], [1, np.nan, np.inf, -np.inf], [1, 1e308, -1e308, 1], [0, 5, 5, np.nan]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, block = made(location, z, (0.5, 0.5))
    assert (block[[0, 3]] == 0).all()
    assert np.isfinite(block).all()


def test_rows_hold_public_facts_alone():
    rng = np.random.default_rng(6)
    location = some_location(rng, Binomial(), 2)
    vectors, block = made(location, corners(rng, 50, 2), (0.5, 0.5))
    again = pickle.loads(pickle.dumps(vectors))
    assert again == vectors
    assert repr(vectors) == "<FamilyRows: 2 columns, binomial>"
    assert again.types == vectors.types
    assert again.block(chunk(corners(np.random.default_rng(6), 50, 2))).shape == block.shape
    with pytest.raises(ArgumentError, match="other columns"):
        FamilyRows(Stored(5), location, [1], [], (0.5, 0.5))
    with pytest.raises(ArgumentError, match="different indices"):
        FamilyRows(Stored(4), location, [1, 1], [], (0.5, 0.5))
    some = {"slopes": [0.0], "intercept": np.nan, "mean_weight": 1, "information": 1, "score": 1}
    with pytest.raises(ArgumentError, match="finite"):
        FamilyLocation.on_grid(Binomial(), whitening=[[1.0]], offset=[0.0], **some)


def test_a_norm_that_is_not_held_is_seen(monkeypatch):
    """Without the cut of f a row leaves the score's limit, by a unit: the test above sees it."""
    rng = np.random.default_rng(8)
    location = FamilyLocation.on_grid(
        Binomial(),
        whitening=np.eye(2) * 50,
        offset=np.zeros(2),
        slopes=[1.0, 1.0],
        intercept=0.0,
        mean_weight=0.2,
        information=30.0,
        score=0.5,
    )
    monkeypatch.setattr(module, "_hold_score", lambda *_: None)
    _, block = made(location, corners(rng, 4000, 2), (0.5, 0.5))
    monkeypatch.undo()
    k, f = (block[:, :3] * ONE).astype(np.int64), block[:, 3] * ONE
    exact = [int(s) * int(g) ** 2 for s, g in zip((k * k).sum(axis=1), f, strict=True)]
    assert max(exact) > location.limit**2
