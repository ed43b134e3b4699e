"""Fitted looks: what is drawn is what was charged, in the cells and at the scales that are told."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import look_of
from oracles.gram import rows

from dpreg.privacy import look_noise
from dpreg.privacy.look_noise import (
    box_gaussian,
    box_matrix_laplace,
    located_gaussian,
    located_matrix_laplace,
)
from dpreg.privacy.proofs import CELL_UNITS, layout
from dpreg.privacy.protection import AccountError, Protection

MU_SQUARED, EPS, HALF = Fraction(1, 9), Fraction(1, 2), Fraction(1, 2)
FACTOR = layout((0, 1, 2, 3, 4), ((3, 4),))


GAUSSIAN = [
    located_gaussian(4, HALF, MU_SQUARED, Protection("replace-one")),
    box_gaussian(FACTOR, MU_SQUARED, Protection("replace-one")),
]
LAPLACE = [
    located_matrix_laplace(4, Fraction(1, 3), EPS, Protection("replace-one")),
    box_matrix_laplace(FACTOR, Fraction(1, 3), EPS, Protection("replace-one")),
]


@pytest.mark.parametrize("noise", [*GAUSSIAN, *LAPLACE], ids=["lg", "bg", "lm", "bm"])
def test_a_draw_uses_its_part_and_has_its_sds(noise):
    size = MU_SQUARED if noise.mechanism == "gaussian" else EPS
    part = look_of(size, noise.mechanism)
    drawn = noise.draw(part)
    assert part.state == "drawn from"
    assert drawn == tuple(zip(*drawn, strict=True))
    assert all(type(cell) is int for row in drawn for cell in row)
    assert (np.array(drawn, dtype=float) != 0).tolist() == (noise.sd > 0).tolist()
    many = (
        np.array([noise.draw(look_of(size, noise.mechanism)) for _ in range(500)], dtype=float)
        / CELL_UNITS
    )
    seen = many.std(0)[noise.sd > 0] / noise.sd[noise.sd > 0]
    assert np.abs(seen - 1).max() < 0.3
    rng = np.random.default_rng(3)
    again = np.array([noise.simulate(rng) for _ in range(1500)], dtype=float) / CELL_UNITS
    assert np.abs(again.std(0)[noise.sd > 0] / noise.sd[noise.sd > 0] - 1).max() < 0.2


@pytest.mark.parametrize("noise", [*GAUSSIAN, *LAPLACE], ids=["lg", "bg", "lm", "bm"])
def test_less_noise_than_was_charged_is_never_drawn(monkeypatch, noise):
    def forbidden(*_, **__):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(look_noise, "gaussian_noise", forbidden)
    monkeypatch.setattr(look_noise, "wishart_noise", forbidden)
    size = MU_SQUARED if noise.mechanism == "gaussian" else EPS
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.draw(look_of(size * Fraction(99, 100), noise.mechanism))
    for whom in (("add-remove", 1), ("replace-one", 2)):
        part = look_of(size, noise.mechanism, *whom)
        with pytest.raises(AccountError, match="a bound for replace-one, 1 row a person"):
            noise.draw(part)
        assert part.state == "handed out"


PERSONS = {
    "located": lambda k, person: located_gaussian(
        3, HALF, MU_SQUARED, Protection("replace-one", k, person)
    ),
    "laplace": lambda k, person: located_matrix_laplace(
        3, HALF, EPS, Protection("replace-one", k, person)
    ),
}


@pytest.mark.parametrize("name", PERSONS)
def test_a_look_at_persons_sums_is_drawn_for_persons_alone(name):
    made = PERSONS[name]
    noise, row = made(5, "id"), made(1, None)
    assert noise.scales == row.scales != made(5, None).scales
    size = MU_SQUARED if noise.mechanism == "gaussian" else EPS
    noise.draw(look_of(size, noise.mechanism, "replace-one", 5, person="id"))
    with pytest.raises(AccountError, match="a bound for replace-one, all rows of one 'id'"):
        noise.draw(look_of(size, noise.mechanism, "replace-one", 5))
    with pytest.raises(AccountError, match="a bound for replace-one, all rows of one 'id'"):
        noise.draw(look_of(size, noise.mechanism, "replace-one", 5, person="other"))
    # Rows that were limited one by one are not drawn for as if their sums had been.
    with pytest.raises(AccountError, match="a bound for replace-one, 1 row a person"):
        row.draw(look_of(size, noise.mechanism, "replace-one", 5, person="id"))


def test_a_look_at_the_box_is_for_rows_that_were_kept_and_not_for_sums():
    who = Protection("replace-one", 2, "id")
    for noise, size in (
        (box_gaussian(FACTOR, MU_SQUARED, who), MU_SQUARED),
        (box_matrix_laplace(FACTOR, HALF, EPS, who), EPS),
    ):
        noise.draw(look_of(size, noise.mechanism, "replace-one", 2, person="id"))
        with pytest.raises(AccountError, match="a bound for replace-one, 2 rows a person"):
            noise.draw(look_of(size, noise.mechanism, "replace-one", 3, person="id"))


def test_a_seeded_part_draws_seeded_noise():
    for noise, size in ((GAUSSIAN[0], MU_SQUARED), (LAPLACE[0], EPS)):
        one, two = (
            noise.draw(look_of(size, noise.mechanism, rng=np.random.default_rng(5)))
            for _ in range(2)
        )
        assert one == two == noise.simulate(np.random.default_rng(5))


def test_the_boxs_cells_are_the_triangles():
    noise = GAUSSIAN[1]
    matrix = np.array(noise.draw(look_of(MU_SQUARED, "gaussian")), dtype=object)
    assert matrix[3, 4] == 0  # two levels of one factor
    assert matrix[0, 3] == matrix[3, 3]  # x = x^2
    assert noise.sd[0, 3] == noise.sd[3, 3] > 0 == noise.sd[3, 4]
    assert len(noise.cells) == len(FACTOR.cells)
    assert noise.degrees is None
    assert LAPLACE[0].degrees == 5
    assert LAPLACE[1].degrees == 7


def box_ratio(noise, triangle, neighbors, contributions):
    """The largest sum of (change / scale)^2 over pairs of corner rows, k times alike."""
    z, _ = rows(triangle, np.random.default_rng(1), 400)
    weight = np.zeros(noise.sd.shape)
    for places, scale in zip(noise.cells, noise.scales, strict=True):
        weight[places[0]] = (CELL_UNITS / scale) ** 2
    products = z[:, :, None] * z[:, None, :]
    best = 0.0
    for one in products if neighbors == "replace-one" else [np.zeros(weight.shape)]:
        best = max(best, ((products - one) ** 2 * weight).sum((1, 2)).max())
    return best * contributions**2


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("triangle", [layout((0, 1, 2, 3)), FACTOR], ids=["plain", "factor"])
def test_no_corner_of_the_box_exceeds_the_looks_part(triangle, contributions, neighbors):
    noise = box_gaussian(triangle, MU_SQUARED, Protection(neighbors, contributions))
    found = box_ratio(noise, triangle, neighbors, contributions)
    assert found <= MU_SQUARED * (1 + Fraction(1, 10**9))
    assert found > 0.6 * float(MU_SQUARED)
    assert box_ratio(noise, triangle, neighbors, contributions + 1) > MU_SQUARED  # one row more


def test_the_boxs_rows_keep_the_norm_that_matrix_laplace_counts_on():
    z, _ = rows(FACTOR, np.random.default_rng(2), 500)
    assert (z[:, :-1] ** 2).sum(1).max() == FACTOR.dimension - 1
    noise = LAPLACE[1]
    c = np.array(noise.scales, dtype=float) / CELL_UNITS
    assert (z**2 / c).sum(1).max() == pytest.approx(float(EPS), rel=1e-9)


def test_a_box_without_the_constant_is_refused():
    triangle = layout((1, 2))
    with pytest.raises(AssertionError):
        box_gaussian(triangle, MU_SQUARED, Protection("replace-one"))
    with pytest.raises(AssertionError):
        box_matrix_laplace(triangle, HALF, EPS, Protection("replace-one"))
