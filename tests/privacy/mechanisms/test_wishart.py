"""The exact sampler of floored matrix-Laplace noise against its law; mutants it must catch."""

import math
import random
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from oracles.look_laws import cdf, floor_p_value

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import wishart
from dpreg.privacy.mechanisms.wishart import Normals, wishart_noise

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
    class SameHalves(Normals):
        __slots__ = ()

        def signed_digits(self):
            digits = super().signed_digits()
            half = digits[:, : digits.shape[1] // 2]
            return np.hstack([half, half])

    monkeypatch.setattr(wishart, "Normals", SameHalves)
    assert floor_p_value(one(4000), laplace, 4.0) < ALPHA
    assert least_p_value(two(4000)) < ALPHA


def test_half_the_scale_and_rounding_instead_of_floors_are_caught():
    half = [wishart_noise((1,))[0][0] for _ in range(15_000)]
    assert floor_p_value(half, laplace, 4.0) < ALPHA
    rounded = [k + 1 for k in one(15_000)]
    assert floor_p_value(rounded, laplace, 4.0) < ALPHA


def recorded(monkeypatch):
    """A list to which all numbers go that a draw asks for, ever more digits of the same."""
    seen = []

    class Seen(Normals):
        __slots__ = ()

        def __init__(self, *known, **fields):
            super().__init__(*known, **fields)
            seen.append(self)

    monkeypatch.setattr(wishart, "Normals", Seen)
    return seen


def bits_of(seed):
    return random.Random(seed).getrandbits


def by_hand(numbers, scales, nu):
    """floor(sum (x x' - y y')) from 2000 bits of the same numbers, by loops."""
    size = len(scales)
    longer = numbers.continued(100)
    with ctx.workprec(2100):
        normal = []
        for sign, whole, digits in zip(longer.signs, longer.wholes, longer.digits, strict=True):
            x = reduce(lambda known, digit: known << 20 | int(digit), digits, 0)
            normal.append(int(sign) * (int(whole) + arb(x) / arb(2) ** (20 * len(digits))))
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


SCALES = (2**80 + 3, 2**80 + 3, 5**30)


@pytest.mark.parametrize("spare", [-60, -20, 3, 96, 300])
def test_floors_are_exact_whatever_the_first_precision(monkeypatch, spare):
    """Scales of 2**80: no float knows the last digits. More bits continue the same strings."""
    seen = recorded(monkeypatch)
    monkeypatch.setattr(wishart, "SPARE_BITS", spare)
    drawn = wishart_noise(SCALES, source=bits_of(4))
    assert (len(seen) > 2) == (spare < 0)
    assert drawn == by_hand(seen[-1], SCALES, 4)
    for shorter, longer in pairwise(seen):
        known = shorter.digits.shape[1]
        np.testing.assert_array_equal(longer.digits[:, :known], shorter.digits)


@pytest.mark.parametrize("terms", [1, 3])
def test_sums_of_few_terms_at_a_time_are_the_same(monkeypatch, terms):
    expected = wishart_noise(SCALES, source=bits_of(4))
    monkeypatch.setattr(wishart, "_TERMS", terms)
    assert wishart_noise(SCALES, source=bits_of(4)) == expected


def test_numbers_of_any_size_are_multiplied_exactly(monkeypatch):
    seen = recorded(monkeypatch)
    draw = Normals.draw.__func__

    def enlarged(cls, *arguments):
        numbers = draw(cls, *arguments)
        numbers.wholes[::5] += 2**45 + 7
        return numbers

    monkeypatch.setattr(wishart.Normals, "draw", classmethod(enlarged))
    drawn = wishart_noise(SCALES, source=bits_of(4))
    assert drawn == by_hand(seen[-1], SCALES, 4)


def test_integers_of_python_s_give_the_same_draw(monkeypatch):
    expected = wishart_noise(SCALES, source=bits_of(4))
    monkeypatch.setattr(wishart, "_MOST", 1)
    assert wishart_noise(SCALES, source=bits_of(4)) == expected


@pytest.mark.parametrize(("digits", "dtype"), [(30, np.int64), (31, object)])
def test_sums_that_int64_might_not_hold_are_python_s_integers(digits, dtype):
    """nu is 2**16, all digits are of the largest modulus, and each is added to its transpose."""
    nu = 1 << 16
    left = np.full((digits, 1, nu), 2**20 - 1)
    sums, _ = wishart._product(left, -left.reshape(digits, nu, 1))
    assert sums.dtype == dtype
    pairs = [
        sum(i < digits and place - i < digits for i in range(place + 1))
        for place in range(digits + 1)
    ]
    expected = [-2 * nu * (2**20 - 1) ** 2 * count for count in pairs]
    both = sums + np.swapaxes(sums, 1, 2)
    assert [int(one) for one in both.ravel()] == expected
    (found,) = wishart._joined(both.reshape(-1, 1))
    assert found == reduce(lambda known, one: (known << 20) + one, expected, 0)


def exactly(digits):
    """The numbers of signed digits, in units of the last one."""
    return reduce(lambda known, digit: (known << 20) + digit.astype(object), digits, 0)


def worst_error(last, seed):
    """How far a product of numbers whose unknown digits are all large is off, and the bound."""
    rng = np.random.default_rng(seed)
    size, nu, unknown = 2, 7, 4
    digits = rng.integers(0, 2**20, (1 + last + unknown, 2 * nu * size))
    digits[2:] = 2**20 - 1
    digits[0] = rng.integers(0, 6, digits.shape[1])
    if seed % 2:
        digits *= rng.choice([-1, 1], digits.shape[1])
    left, right = digits[:, : nu * size].reshape(-1, size, nu), digits[:, nu * size :]
    right = right.reshape(-1, nu, size)
    whole = exactly(left) @ exactly(right)
    sums, error = wishart._product(left[: last + 1], right[: last + 1])
    found = wishart._joined(sums.reshape(len(sums), -1)).reshape(size, size)
    units = 1 << 20 * (2 * (last + unknown) - (last + 1))
    return max(
        abs(Fraction(int(v)) / units - f) for v, f in zip(whole.flat, found.flat, strict=True)
    ), error


@pytest.mark.parametrize("last", [3, 4, 5, 8])
def test_what_a_product_leaves_out_is_within_its_bound(last):
    found = [worst_error(last, seed) for seed in range(6)]
    assert all(off <= error for off, error in found)
    assert max(off / error for off, error in found) > 0.3


def test_a_product_whose_error_is_forgotten_is_caught(monkeypatch):
    """Its floors are taken as decided where they are not."""
    seen, product = recorded(monkeypatch), wishart._product
    monkeypatch.setattr(wishart, "SPARE_BITS", -60)
    monkeypatch.setattr(wishart, "_product", lambda *parts: (product(*parts)[0], 0))
    assert wishart_noise(SCALES, source=bits_of(4)) != by_hand(seen[-1], SCALES, 4)


def test_noise_is_symmetric_integers_from_the_system():
    noise = wishart_noise((2**200,) * 4)
    assert all(type(cell) is int for row in noise for cell in row)
    assert noise == tuple(zip(*noise, strict=True))
    assert len({wishart_noise((2**40,)) for _ in range(50)}) == 50
    with pytest.raises(ArgumentError, match="scales of at least 1"):
        wishart_noise((3, 0))
    with pytest.raises(ArgumentError, match="scales of at least 1"):
        wishart_noise(())
