"""The exact sampler of floored matrix-Laplace noise against its law; mutants it must catch."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from oracles.look_laws import cdf, floor_p_value

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import floors as floors_module
from dpreg.privacy.mechanisms import wishart
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
        numbers = floors_module.normals(uniforms)
        return numbers[: len(numbers) // 2] * 2

    monkeypatch.setattr(wishart, "normals", same_halves)
    assert floor_p_value(one(4000), laplace, 4.0) < ALPHA
    assert least_p_value(two(4000)) < ALPHA


def test_half_the_scale_and_rounding_instead_of_floors_are_caught():
    half = [wishart_noise((1,))[0][0] for _ in range(15_000)]
    assert floor_p_value(half, laplace, 4.0) < ALPHA
    rounded = [k + 1 for k in one(15_000)]
    assert floor_p_value(rounded, laplace, 4.0) < ALPHA


class Strings:
    """Fixed strings of bits, one a uniform number, each read on from where it stopped."""

    def __init__(self, count, seed):
        generator = np.random.default_rng(seed)
        self.bits = [
            "".join(str(bit) for bit in generator.integers(0, 2, 4000)) for _ in range(count)
        ]
        self.place, self.turn, self.calls = [0] * count, 0, 0

    def __call__(self, number):
        i, self.turn = self.turn, (self.turn + 1) % len(self.bits)
        start, self.place[i] = self.place[i], self.place[i] + number
        self.calls += 1
        return int(self.bits[i][start : start + number], 2)


def by_hand(strings, scales, nu):
    """floor(sum (x x' - y y')) at 2000 bits, by loops."""
    size = len(scales)
    with ctx.workprec(2100):
        u = [arb(int(bits[:2000], 2)) / arb(2) ** 2000 for bits in strings.bits]
        normal = []
        for a, b in zip(u[::2], u[1::2], strict=True):
            angle, radius = 2 * arb.pi() * b, (-2 * a.log()).sqrt()
            normal += [radius * angle.cos(), radius * angle.sin()]
        # P is filled row by row of its transpose, M row by row
        p = [normal[i * nu : (i + 1) * nu] for i in range(size)]
        m = [[normal[nu * size + k * size + i] for k in range(nu)] for i in range(size)]
        x = [
            [(a + b) / arb(2).sqrt() for a, b in zip(p[i], m[i], strict=True)] for i in range(size)
        ]
        y = [
            [(a - b) / arb(2).sqrt() for a, b in zip(p[i], m[i], strict=True)] for i in range(size)
        ]
        return tuple(
            tuple(
                int(
                    (
                        sum((a * b for a, b in zip(x[i], x[j], strict=True)), arb(0))
                        - sum((a * b for a, b in zip(y[i], y[j], strict=True)), arb(0))
                    )
                    .__mul__(arb(scales[i] * scales[j]).sqrt())
                    .floor()
                    .unique_fmpz()
                )
                for j in range(size)
            )
            for i in range(size)
        )


@pytest.mark.parametrize("spare", [-60, -20, 3, 96, 300])
def test_floors_are_exact_whatever_the_first_precision(monkeypatch, spare):
    """Scales of 2**80: no float knows the last digits. More bits continue the same strings."""
    scales, nu = (2**80 + 3, 2**80 + 3, 5**30), 4
    strings = Strings(2 * nu * 3, seed=4)
    monkeypatch.setattr(wishart, "SPARE_BITS", spare)
    drawn = wishart_noise(scales, source=strings)
    assert drawn == by_hand(strings, scales, nu)
    assert (strings.calls > 2 * nu * 3) == (spare < 50)


def test_a_sampler_in_floats_is_caught(monkeypatch):
    scales, nu = (2**80 + 3, 2**80 + 3, 5**30), 4
    strings = Strings(2 * nu * 3, seed=4)

    def floats(formula, count, *, bits, source):
        known = [source(bits) for _ in range(count)]
        with ctx.workprec(53):
            values = formula([arb(number) / arb(2) ** bits for number in known])
        return [math.floor(float(value.mid())) for value in values]

    monkeypatch.setattr(wishart, "floors", floats)
    assert wishart_noise(scales, source=strings) != by_hand(strings, scales, nu)


def test_noise_is_symmetric_integers_from_the_system():
    noise = wishart_noise((2**200,) * 4)
    assert all(type(cell) is int for row in noise for cell in row)
    assert noise == tuple(zip(*noise, strict=True))
    assert len({wishart_noise((2**40,)) for _ in range(50)}) == 50
    with pytest.raises(ArgumentError, match="scales of at least 1"):
        wishart_noise((3, 0))
    with pytest.raises(ArgumentError, match="scales of at least 1"):
        wishart_noise(())
