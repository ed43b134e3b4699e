"""The exact L2 K-norm sampler against its law, and mutants that it must catch."""

import math

import numpy as np
import pytest
from oracles.look_laws import cdf, floor_p_value
from scipy.stats import gamma, kstest

from dpreg.privacy.mechanisms import floors as l2_norm
from dpreg.privacy.mechanisms.floors import l2_norm_noise, l2_norm_variance

ALPHA = 1e-6


def laplace(x):
    x = np.asarray(x, dtype=float)
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def test_one_cell_is_laplace():
    drawn = [l2_norm_noise(1, 3)[0] for _ in range(12_000)]
    assert floor_p_value(drawn, laplace, 3.0) > ALPHA


def test_two_cells_have_their_marginal_law():
    """exp(-|v|) in the plane has marginals |x| K_1(|x|)/pi: V(3/2)."""
    drawn = np.array([l2_norm_noise(2, 3) for _ in range(12_000)])
    for cell in drawn.T:
        assert floor_p_value(cell, cdf(1.5), 3.0) > ALPHA


def sphere_p_values(drawn, scale):
    """Lengths are gamma(d), directions uniform: for d = 3 each of their cells is."""
    length = np.linalg.norm(drawn, axis=1)
    directions = drawn / length[:, None]
    return [
        kstest(length / scale, gamma(3).cdf).pvalue,
        *(kstest(cell, lambda x: (x + 1) / 2).pvalue for cell in directions.T),
    ]


def test_length_and_direction_in_three_dimensions():
    scale = 2**60
    drawn = np.array([l2_norm_noise(3, scale) for _ in range(5000)], dtype=float)
    assert min(sphere_p_values(drawn, scale)) > ALPHA
    assert drawn.var() / l2_norm_variance(3, scale) == pytest.approx(1, abs=0.15)
    seeded = np.random.default_rng(1)
    drawn = np.array([l2_norm_noise(3, scale, rng=seeded) for _ in range(5000)])
    assert min(sphere_p_values(drawn.astype(float), scale)) > ALPHA


def test_mutants_are_caught(monkeypatch):
    scale = 2**60
    drawn = np.array([l2_norm_noise(3, scale) for _ in range(3000)], dtype=float)
    assert min(sphere_p_values(drawn / 2, scale)) < ALPHA  # half the scale
    honest = l2_norm.normals

    def uniform_directions(uniforms):
        return [2 * u - 1 for u in uniforms]  # a cube's directions

    monkeypatch.setattr(l2_norm, "normals", uniform_directions)
    drawn = np.array([l2_norm_noise(3, scale) for _ in range(30_000)], dtype=float)
    assert min(sphere_p_values(drawn, scale)) < ALPHA
    monkeypatch.setattr(l2_norm, "normals", honest)

    def shorter(formula, count, *, bits, source):
        return floors(lambda uniforms: formula(uniforms[:-1]), count, bits=bits, source=source)

    floors = l2_norm.floors
    monkeypatch.setattr(l2_norm, "floors", shorter)  # the length is gamma(d - 1)
    drawn = np.array([l2_norm_noise(3, scale) for _ in range(3000)], dtype=float)
    assert min(sphere_p_values(drawn, scale)) < ALPHA


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_densitys_ratio_is_at_most_exp_eps_for_every_shift(size):
    """log density ratio = (|v| - |v - s|)/b, at most |s|/b = eps, attained along s."""
    generator = np.random.default_rng(2)
    shift = generator.standard_normal(size)
    eps, scale = 0.7, np.linalg.norm(shift) / 0.7
    v = generator.standard_normal((4000, size)) * 5 * scale
    v = np.vstack([v, np.outer(np.linspace(1, 30, 50), shift)])
    loss = (np.linalg.norm(v, axis=1) - np.linalg.norm(v - shift, axis=1)) / scale
    assert loss.max() == pytest.approx(eps, rel=1e-9)


def test_integers():
    noise = l2_norm_noise(5, 2**300)
    assert len(noise) == 5
    assert all(type(cell) is int for cell in noise)
    assert max(abs(cell) for cell in noise) > 2**250
    assert math.isfinite(l2_norm_variance(5, 2**300))
