"""A fitting look's noise: no neighbours cost more than the look, and what is drawn has its law."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.fit_units import (
    axis,
    gaussian_cost,
    informations,
    nobody,
    pure_costs,
    scores,
    unit_of,
)
from oracles.look_laws import log_density
from oracles.recording import record
from scipy.stats import gamma, kstest

from dpreg.errors import ArgumentError
from dpreg.privacy import look_noise as fit_noise
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.gaussian import LEAST_SCALE
from dpreg.privacy.look_noise import (
    PURE,
    Drawn,
    fit_cells,
    gaussian_fit,
    matrix_laplace_scales,
    pure_fit,
)
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import AccountError, Protection

MU_SQUARED, EPS, THIRD = Fraction(1, 7), Fraction(1, 2), Fraction(1, 3)
REPLACE, ADD = Protection("replace-one"), Protection("add-remove")
THREE = Protection("add-remove", 3)
PROTECTIONS = [
    *(Protection(name, k) for name in ("replace-one", "add-remove") for k in (1, 3)),
    *(Protection(name, 3, "id") for name in ("replace-one", "add-remove")),
]
TRACE = Fraction(1, 10)
MIDDLES = ["matrix", "trace"]
ALPHA = 1e-4


def units(columns, times):
    """Units at the corners of the proofs, and random ones."""
    generator = np.random.default_rng(columns)
    kinds = informations(columns, generator)
    found = [
        unit_of(rows, score, times=times)
        for rows, score in itertools.product(kinds[:2], scores(columns, generator))
    ]
    short = [axis(columns, 0), -axis(columns, 0), axis(columns, 1, 0.3)]
    found += [unit_of(rows, score, times=times) for rows, score in itertools.product(kinds, short)]
    # The proofs ask nothing of the two parts of a score but their lengths.
    ways = [axis(columns, place, size) for place in (0, 1) for size in (1.0, -1.0, 0.4)]
    found += [
        unit_of(kinds[0], one / (1 + times), other * times / (1 + times), times)
        for one, other in itertools.product(ways, ways)
    ]
    return [nobody(columns), *found]


def neighbours(columns, protection, times=1):
    """Lists of units taken and given: equal ones, as many as a person owns, and mixed ones."""
    pool, k = units(columns, times), protection.sums.contributions
    others = pool if protection.neighbors == "replace-one" else pool[:1]
    first = pool if len(others) == 1 else pool[:: max(1, len(pool) // 12)]
    for one, other in itertools.product(first, others):
        yield [one] * k, [other] * k
    generator = np.random.default_rng(1)
    for _ in range(20):
        pick = generator.integers(0, len(pool), (2, k))
        given = [pool[i] for i in pick[1]] if len(others) > 1 else []
        yield [pool[i] for i in pick[0]], given


def ids(one):
    return one.unit if isinstance(one, Protection) else one


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("middle", MIDDLES)
@pytest.mark.parametrize("protection", PROTECTIONS, ids=ids)
def test_no_neighbours_exceed_a_gaussian_looks_part(protection, middle, columns):
    noise = gaussian_fit(columns, MU_SQUARED, protection, information=THIRD, middle=middle)
    found = max(gaussian_cost(noise, *pair) for pair in neighbours(columns, protection))
    assert found <= MU_SQUARED
    if columns > 1 or protection.neighbors == "add-remove":
        assert found > MU_SQUARED * Fraction(99, 100)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("protection", PROTECTIONS, ids=ids)
def test_no_neighbours_exceed_a_pure_looks_eps(protection, times, columns):
    noise = pure_fit(columns, EPS, protection, trace=TRACE, times=times)
    pairs = neighbours(columns, protection, times)
    costs = np.array([pure_costs(noise, *pair) for pair in pairs])
    parts = np.array([float(EPS * share) for share in (1 - TRACE, TRACE)])
    assert (costs.max(axis=0) <= parts * (1 + 1e-9)).all()
    assert (costs.max(axis=0) > 0.99 * parts).all()


@pytest.mark.parametrize("spread", [1, 2, 4])
@pytest.mark.parametrize("protection", [REPLACE, ADD], ids=ids)
def test_the_loss_of_units_of_any_rank_along_exact_marginals(protection, spread):
    """Of tr(P N) - tr(Q N), for the projections P and Q on what is added and what is taken away.

    Divided by 2 c that is a difference of two gamma variables, moved by half the traces over c.
    """
    d = 8
    c = matrix_laplace_scales(d, EPS, Fraction(1, 1000), protection)[0]
    eps, sides = float(EPS), protection.changes
    x = np.concatenate([np.geomspace(1e-4, 1, 4000), np.linspace(1, 5000, 20_001)])

    def loss(trace):
        """Of a change whose units have rank `spread` and this trace."""
        shift = sides * trace * CELL_UNITS / c / 2
        at = np.concatenate([-x, x]) + shift
        at = at[np.abs(at) > 1e-12]
        shape = sides * spread * (d + 1) / 2
        return float(np.max(log_density(at - shift, shape) - log_density(at, shape)))

    assert 0.97 * eps < loss(1.0) <= eps * (1 + 1e-9)
    if spread > 1:  # a Frobenius norm of 1 is no limit
        assert loss(math.sqrt(spread)) > 1.3 * eps


def test_rows_outside_the_ball_would_be_seen():
    noise = gaussian_fit(2, MU_SQUARED, ADD, information=THIRD)
    one = unit_of([1.0, 0.0], [1.0, 0.0])
    assert gaussian_cost(noise, [one], []) > MU_SQUARED * (1 - Fraction(1, 10**12))
    for wider in (
        dataclasses.replace(one, rows=((2**20 + 1, 0),)),
        dataclasses.replace(one, inner=(2**19 + 1, 0)),
        dataclasses.replace(one, outer=(2**19 + 1, 0)),
    ):
        assert gaussian_cost(noise, [wider], []) > MU_SQUARED


def diagonal_sd(noise, block):
    """Of a matrix: sqrt(2) times that of the other cells, but for rounding; of a trace its own."""
    if block == "middle" and noise.middle == "trace":
        return noise.middle_sd
    scales = getattr(noise, f"{block}_scales")
    if noise.mechanism == "gaussian" and scales:
        return scales[0] / CELL_UNITS
    return math.sqrt(2) * getattr(noise, f"{block}_sd")


@pytest.mark.parametrize("k", [1, 3])
def test_gaussian_scales_under_replace_one(k):
    noise = gaussian_fit(4, MU_SQUARED, Protection("replace-one", k), information=THIRD)
    whole, rest = math.sqrt(MU_SQUARED * THIRD) / k, math.sqrt(MU_SQUARED * (1 - THIRD)) / k
    assert diagonal_sd(noise, "information") == pytest.approx(math.sqrt(2) / whole, rel=1e-12)
    assert noise.information_sd == pytest.approx(1 / whole, rel=1e-12)
    assert noise.score_sd == pytest.approx(2 / rest, rel=1e-12)
    assert noise.middle_sd == pytest.approx(2 / rest, rel=1e-12)
    assert diagonal_sd(noise, "middle") == pytest.approx(2 * math.sqrt(2) / rest, rel=1e-12)
    trace = gaussian_fit(
        4, MU_SQUARED, Protection("replace-one", k), information=THIRD, middle="trace"
    )
    assert trace.score_sd == pytest.approx(2 / rest, rel=1e-12)
    assert trace.middle_sd == pytest.approx(2 / rest, rel=1e-12)
    assert trace.information_sd == noise.information_sd


def test_gaussian_scales_under_add_remove():
    rest = math.sqrt(MU_SQUARED * (1 - THIRD))
    noise = gaussian_fit(4, MU_SQUARED, ADD, information=THIRD)
    assert diagonal_sd(noise, "information") == pytest.approx(1 / math.sqrt(MU_SQUARED * THIRD))
    assert noise.score_sd == pytest.approx(math.sqrt(5 / 4) / rest)
    assert diagonal_sd(noise, "middle") == pytest.approx(math.sqrt(5) / rest)
    assert noise.middle_sd == pytest.approx(math.sqrt(5 / 2) / rest)
    trace = gaussian_fit(4, MU_SQUARED, ADD, information=THIRD, middle="trace")
    assert trace.score_sd == pytest.approx(math.sqrt(17 / 16) / rest)
    assert trace.middle_sd == pytest.approx(math.sqrt(17) / rest)


@pytest.mark.parametrize(("protection", "moved"), [(REPLACE, 2), (ADD, 1)])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("times", "longer"), [(1, 1), (2, 4 / 3), (3, 3 / 2)])
def test_pure_scales(protection, moved, k, times, longer):
    protection = dataclasses.replace(protection, contributions=k)
    d = 4
    noise = pure_fit(d, EPS, protection, trace=TRACE, times=times)
    score, other = (float(EPS * share) for share in (1 - TRACE, TRACE))
    assert noise.information_sd == 0
    assert noise.score_sd == pytest.approx(longer * moved * k * math.sqrt(2 * d + 1) / score)
    assert noise.middle_sd == pytest.approx(math.sqrt(2) * k / other)


def test_scales_are_integers_or_floats_rounded_upwards():
    for eps in (Fraction(3, 7), Fraction(11, 7), Fraction(13, 9), Fraction(1, 3)):
        noise = pure_fit(3, eps, REPLACE, trace=TRACE, times=2)
        assert type(noise.score_scale) is int
        assert noise.score_scale == math.ceil(Fraction(8, 3) * CELL_UNITS / ((1 - TRACE) * eps))
        assert Fraction(noise.middle_scales[0]) * TRACE * eps >= CELL_UNITS
    much = pure_fit(3, Fraction(10**30), REPLACE, trace=TRACE, times=2)
    assert (much.score_scale, much.middle_scales) == (1, (1,))
    loud = gaussian_fit(3, Fraction(2**40), REPLACE, information=THIRD)
    assert loud.information_scales == (LEAST_SCALE,) * 2
    assert loud.score_scale == LEAST_SCALE


def opened(noise, protection=None, strength=None, rng=None, rows="all"):
    """A charged part of what the noise costs."""
    account = Account(protection or noise.protection, Budget(1, "1e-6"), rng)
    size = noise.strength if strength is None else strength
    if noise.mechanism == "gaussian":
        line = account.joint("a look", "gaussian", account.budget, mu_squared=size, rows=rows)
        account.charge(None, "a test")
        return line.part()
    part = account.joint("a look", "pure", Budget(size), by=PURE, rows=rows).part()
    account.charge(None, "a test")
    return part


NOISES = {
    "gaussian": gaussian_fit(3, MU_SQUARED, REPLACE, information=THIRD),
    "gaussian trace": gaussian_fit(3, MU_SQUARED, THREE, information=THIRD, middle="trace"),
    "gaussian without": gaussian_fit(3, MU_SQUARED, REPLACE, information=Fraction(0)),
    "gaussian added": gaussian_fit(3, MU_SQUARED, ADD, information=THIRD),
    "pure": pure_fit(3, EPS, REPLACE, trace=TRACE, times=2),
    "pure of three": pure_fit(3, EPS, THREE, trace=TRACE, times=2),
}


@pytest.mark.parametrize("name", NOISES)
def test_what_is_drawn_is_what_was_fitted(monkeypatch, name):
    """Every draw that reaches a mechanism, with its scale, and the part that it uses up."""
    noise, tape = NOISES[name], record(monkeypatch)
    part = opened(noise)
    line = part.line
    noise.draw(part)
    assert all(one.state == "drawn from" for one in line.parts)
    wanted = []
    if noise.mechanism == "gaussian":  # a matrix of three columns has as many cells beside as on it
        wanted += [("gaussian", scale, 3) for scale in noise.information_scales]
        size = 3 if noise.middle == "matrix" else 1
        wanted += [("gaussian", scale, size) for scale in noise.middle_scales]
        wanted.append(("gaussian", noise.score_scale, 6))
        found = [(draw.mechanism, draw.scale, draw.size) for draw in tape.draws]
        left_out = 0 if noise.information_scales else 6
        cells = fit_cells(3, noise.middle) - left_out
        assert sum(size for *_, size in found) == cells
    else:
        assert len(line.parts) == 2
        wanted.append(("l2-norm", noise.score_scale, 6))
        wanted += [("laplace", scale, 1) for scale in noise.middle_scales]
        found = [(draw.mechanism, draw.scale, draw.size) for draw in tape.draws]
    assert sorted(found, key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("name", NOISES)
def test_a_draw_has_its_shape_and_is_seeded_by_its_part(name):
    noise = NOISES[name]
    drawn = noise.draw(opened(noise))
    assert isinstance(drawn, Drawn)
    assert (drawn.information is None) == (not noise.information_scales)
    assert len(drawn.score) == len(drawn.contrast) == 3
    matrices = [one for one in (drawn.information, drawn.middle) if isinstance(one, tuple)]
    assert isinstance(drawn.middle, int) == (noise.middle == "trace")
    for matrix in matrices:
        assert matrix == tuple(zip(*matrix, strict=True))
        assert all(type(cell) is int and cell for row in matrix for cell in row)
    assert all(type(cell) is int for cell in drawn.score)
    one, two = (noise.draw(opened(noise, rng=np.random.default_rng(5))) for _ in range(2))
    assert one == two == noise.simulate(np.random.default_rng(5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        noise.columns = 2


def columns_of(noise, draws, rng=None):
    """Draws of all blocks, flat, in units of one."""
    drawn = [noise.simulate(rng) for _ in range(draws)]
    d = noise.columns
    upper = np.triu_indices(d, 1)

    def cells(block):
        if isinstance(block, int):
            return np.array([block], dtype=float), np.empty(0)
        found = np.array(block, dtype=float)
        return np.diag(found), found[upper]

    flat = {"score": np.array([one.score for one in drawn], dtype=float)}
    flat["contrast"] = np.array([one.contrast for one in drawn], dtype=float)
    for name in ("information", "middle"):
        if getattr(drawn[0], name) is not None:
            both = [cells(getattr(one, name)) for one in drawn]
            flat[f"{name} diagonal"] = np.array([one for one, _ in both])
            flat[name] = np.array([other for _, other in both])
    return {name: values / CELL_UNITS for name, values in flat.items()}


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("name", NOISES)
def test_cells_have_the_standard_deviations_that_are_told(name, seeded):
    noise = NOISES[name]
    found = columns_of(noise, 6000 if seeded else 500, np.random.default_rng(3) if seeded else None)
    told = {
        "score": noise.score_sd,
        "information": noise.information_sd,
        "information diagonal": diagonal_sd(noise, "information"),
        "middle": noise.middle_sd,
        "middle diagonal": diagonal_sd(noise, "middle"),
        "contrast": noise.score_sd,
    }
    for block, values in found.items():
        if values.size:
            seen = np.sqrt((values**2).mean())
            assert seen == pytest.approx(told[block], rel=0.05 if seeded else 0.3), block


@pytest.mark.parametrize("name", NOISES)
def test_no_two_cells_share_noise(name):
    """The difference of two cells that did would be released without any."""
    found = columns_of(NOISES[name], 2000, np.random.default_rng(4))
    cells = np.hstack([values for values in found.values() if values.size])
    both = np.corrcoef(cells.T) - np.eye(cells.shape[1])
    assert np.abs(both).max() < 0.12


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_pure_score_has_the_k_norm_law(d):
    """|v|/b is gamma of shape d, and directions have no preference."""
    noise = pure_fit(d, EPS, REPLACE, trace=TRACE, times=2)
    scale = noise.score_scale
    rng = np.random.default_rng(7)
    for draws, generator in ((3000, rng), (1500, None)):
        drawn = [noise.simulate(generator) for _ in range(draws)]
        found = np.array([one.score + one.contrast for one in drawn], dtype=float)
        length = np.linalg.norm(found, axis=1)
        assert kstest(length / scale, gamma(2 * d).cdf).pvalue > ALPHA
        for cells in (found, -found, found[:, ::-1]):
            first = cells[:, 0] / length
            assert abs((first > 0).mean() - 0.5) < 4 / math.sqrt(draws)
            assert (first**2).mean() == pytest.approx(1 / (2 * d), rel=0.15)


@pytest.mark.parametrize("name", NOISES)
def test_less_noise_than_was_charged_is_never_drawn(monkeypatch, name):
    def forbidden(*_, **__):
        raise AssertionError("noise was drawn")

    for door in ("gaussian_noise", "laplace_noise", "l2_norm_noise"):
        monkeypatch.setattr(fit_noise, door, forbidden)
    noise = NOISES[name]
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.draw(opened(noise, strength=noise.strength * Fraction(99, 100)))
    other = "add-remove" if noise.protection.neighbors == "replace-one" else "replace-one"
    for whom in (Protection(other), Protection(noise.protection.neighbors, 2)):
        with pytest.raises(AccountError, match="with a bound for"):
            noise.draw(opened(noise, whom))
    with pytest.raises(AccountError, match="is charged for the rows of half 1"):
        noise.draw(opened(noise, rows="half 1"))


@pytest.mark.parametrize("made", ["gaussian", "pure"])
def test_a_person_is_one_unit_however_many_rows(made):
    def fitted(protection):
        if made == "gaussian":
            return gaussian_fit(2, MU_SQUARED, protection, information=THIRD)
        return pure_fit(2, EPS, protection, trace=TRACE, times=2)

    call = Protection("replace-one", 7, "id")
    row, summed, whole = fitted(REPLACE), fitted(call.sums), fitted(call)
    assert row.score_scale == summed.score_scale == whole.score_scale
    assert row.information_scales == summed.information_scales == whole.information_scales
    assert row.middle_scales == summed.middle_scales == whole.middle_scales
    for noise in (summed, whole):
        noise.draw(opened(noise, call))
    # What was fitted to rows is not drawn for persons who own more than one.
    with pytest.raises(AccountError, match="a bound for replace-one, 1 row a person"):
        row.draw(opened(row, call))
    for other in (REPLACE, Protection("replace-one", 7), Protection("replace-one", 7, "other")):
        with pytest.raises(AccountError, match="a bound for replace-one, all rows of one 'id'"):
            whole.draw(opened(whole, other))


def test_cells_that_looks_count():
    assert fit_cells(4, "matrix") == 10 + 8 + 10
    assert fit_cells(4, "trace") == 10 + 8 + 1
    assert NOISES["gaussian without"].information_sd == 0


def test_refusals():
    with pytest.raises(ArgumentError, match="mu\\^2 must be positive"):
        gaussian_fit(2, Fraction(0), REPLACE, information=THIRD)
    with pytest.raises(ArgumentError, match="over 2\\*\\*200"):
        pure_fit(2, Fraction(1, 2**170), REPLACE, trace=TRACE, times=2)
    with pytest.raises(AssertionError):
        pure_fit(2, EPS, REPLACE, trace=Fraction(1), times=2)
