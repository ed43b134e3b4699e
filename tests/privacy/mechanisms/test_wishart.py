"""The exact sampler of floored matrix-Laplace noise against its law; mutants it must catch."""

import math
import random

import numpy as np
import pytest
from flint import arb, ctx
from oracles.look_laws import cdf, floor_p_value

from dpreg.privacy.mechanisms import wishart
from dpreg.privacy.mechanisms.floors import normals
from dpreg.privacy.mechanisms.wishart import wishart_noise

ALPHA = 1e-6
TWO = (2, 3)


def one(number):
    return [wishart_noise((2,))[0][0] for _ in range(number)]


def two(number, scales=TWO):
    return np.array([wishart_noise(scales) for _ in range(number)])


def laplace(x):
    x = np.asarray(x, dtype=float)
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


def least_p_value(drawn):
    """The cells of D = 2, nu = 3: 2 c V(3/2) on the diagonal, sqrt(c1 c2) V(3) off it."""
    diagonal, crossed = cdf(1.5), cdf(3.0)
    return min(
        floor_p_value(drawn[:, 0, 0], diagonal, 2.0 * TWO[0]),
        floor_p_value(drawn[:, 1, 1], diagonal, 2.0 * TWO[1]),
        floor_p_value(drawn[:, 0, 1], crossed, math.sqrt(TWO[0] * TWO[1])),
    )


def test_one_place_is_laplace():
    assert floor_p_value(one(15_000), laplace, 4.0) > ALPHA


def test_two_places_have_their_marginal_laws():
    assert least_p_value(two(15_000)) > ALPHA


def test_two_places_have_their_joint_law():
    """The three cells together: floors of u'Nu along other directions, on a fine grid."""
    drawn = two(6000, (2**40, 2**44)).astype(float)
    diagonal = cdf(1.5)
    for angle in (0.4, 1.1, 2.0):
        u = np.array([math.cos(angle) / 2**20, math.sin(angle) / 2**22])
        values = np.floor(drawn @ u @ u * 8)
        assert floor_p_value(values, diagonal, 16.0) > ALPHA
    sizes = np.abs(drawn[:, 0, 0]) / 2**40, np.abs(drawn[:, 1, 1]) / 2**44
    product = (drawn[:, 0, 1] / 2**42) ** 2
    assert np.corrcoef(sizes[0], product)[0, 1] > 0.08  # uncorrelated cells, not independent ones


def test_the_seeded_law_is_the_same():
    rng = np.random.default_rng(1)
    drawn = np.array([wishart_noise(TWO, rng=rng) for _ in range(15_000)])
    assert least_p_value(drawn) > ALPHA
    again = wishart_noise((2**40,) * 3, rng=np.random.default_rng(7))
    assert again == wishart_noise((2**40,) * 3, rng=np.random.default_rng(7))


def test_too_few_degrees_of_freedom_are_caught(monkeypatch):
    monkeypatch.setattr(wishart, "degrees", lambda size: size)
    assert floor_p_value(one(15_000), laplace, 4.0) < ALPHA
    assert least_p_value(two(15_000)) < ALPHA


def test_one_wishart_instead_of_two_is_caught(monkeypatch):
    def same_halves(uniforms):
        cells = normals(uniforms)
        return cells[: len(cells) // 2] * 2

    monkeypatch.setattr(wishart, "normals", same_halves)
    assert floor_p_value(one(4000), laplace, 4.0) < ALPHA
    assert least_p_value(two(4000)) < ALPHA


def test_half_the_scale_and_rounding_instead_of_floors_are_caught():
    half = [wishart_noise((1,))[0][0] for _ in range(15_000)]
    assert floor_p_value(half, laplace, 4.0) < ALPHA
    rounded = [k + 1 for k in one(15_000)]
    assert floor_p_value(rounded, laplace, 4.0) < ALPHA


class Strings:
    """Fair bits of so many numbers in turn, each a string of 4000 bits."""

    def __init__(self, count, seed):
        bits = random.Random(seed).getrandbits
        self.numbers, self.left = [bits(4000) for _ in range(count)], [4000] * count
        self.asked = 0

    def __call__(self, bits):
        place = self.asked % len(self.numbers)
        self.asked += 1
        self.left[place] -= bits
        return self.numbers[place] >> self.left[place] & (1 << bits) - 1

    def normals(self):
        """By Box and Muller, from all the bits."""
        uniforms = [(arb(2 * number + 1) / arb(2) ** 4001) for number in self.numbers]
        for u, v in zip(uniforms[::2], uniforms[1::2], strict=True):
            radius = (-2 * u.log()).sqrt()
            yield radius * (2 * v).cos_pi()
            yield radius * (2 * v).sin_pi()


def by_hand(strings, scales, nu):
    """floor(sum (x x' - y y')) from all bits of the same numbers, by loops."""
    size = len(scales)
    with ctx.workprec(4100):
        normal = list(strings.normals())
        # P is filled row by row of its transpose, M row by row
        p = [normal[i * nu : (i + 1) * nu] for i in range(size)]
        m = [[normal[nu * size + k * size + i] for k in range(nu)] for i in range(size)]
        x = [
            [(a + b) / arb(2).sqrt() for a, b in zip(p[i], m[i], strict=True)] for i in range(size)
        ]
        y = [
            [(a - b) / arb(2).sqrt() for a, b in zip(p[i], m[i], strict=True)] for i in range(size)
        ]

        def cell(i, j):
            plus = sum((a * b for a, b in zip(x[i], x[j], strict=True)), arb(0))
            minus = sum((a * b for a, b in zip(y[i], y[j], strict=True)), arb(0))
            return int(((plus - minus) * arb(scales[i] * scales[j]).sqrt()).floor().unique_fmpz())

        return tuple(tuple(cell(i, j) for j in range(size)) for i in range(size))


SCALES = (2**80 + 3, 2**80 + 3, 5**30)


@pytest.mark.parametrize("spare", [-60, -20, 3, 96, 300])
def test_floors_are_exact_whatever_the_first_precision(monkeypatch, spare):
    """Scales of 2**80: no float knows the last digits. More bits continue the same strings."""
    monkeypatch.setattr(wishart, "SPARE_BITS", spare)
    strings = Strings(24, 4)
    drawn = wishart_noise(SCALES, source=strings)
    assert (strings.asked > 24) == (spare < 10)
    assert drawn == by_hand(strings, SCALES, 4)


def test_noise_is_symmetric_integers_from_the_system():
    noise = wishart_noise((2**200,) * 4)
    assert all(type(cell) is int for row in noise for cell in row)
    assert noise == tuple(zip(*noise, strict=True))
    assert len({wishart_noise((2**40,)) for _ in range(50)}) == 50
