from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from oracles.accounts import bought, window

from dpreg.errors import ArgumentError
from dpreg.estimation import blocks as aggregate
from dpreg.estimation import sums
from dpreg.estimation.blocks import Limits, block_values
from dpreg.estimation.sums import CELL_UNITS
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.privacy.ranks import RANK_UNIT


def moved(k, neighbors="replace-one"):
    """k block values change."""
    return aggregate.block_changes(Protection(neighbors, k))


WIDE = Limits((0.0,), (20.0,))
ONE = Fraction(1)


def test_every_row_is_in_one_block_in_its_order():
    blocks = aggregate.draw_blocks(1_000, 7)
    assert len(blocks) == 7
    assert sorted(np.concatenate(blocks)) == list(range(1_000))
    assert all((np.diff(block) > 0).all() for block in blocks)
    assert min(map(len, blocks)) > 75  # 143 expected, six standard deviations
    assert [len(block) for block in aggregate.draw_blocks(0, 3)] == [0, 0, 0]
    assert aggregate.draw_blocks(50, 4)[0].tolist() != aggregate.draw_blocks(50, 4)[0].tolist()


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_k_rows_change_at_most_k_block_values(neighbors, k, monkeypatch):
    """With the coins of the common rows fixed, whatever the estimator does with its block."""
    rng = np.random.default_rng(k)

    def estimator(block):
        return hash(block.tobytes()) % 1_000

    def values(data, labels):
        monkeypatch.setattr(aggregate, "assign_blocks", lambda *args, **options: labels)
        blocks = aggregate.draw_blocks(len(data), 10)
        limits = Limits((0.0,), (1_000.0,))
        return block_values(
            estimator,
            data,
            blocks,
            limits,
            correct_bias=True,
            timeout=None,
            seeds=range(10),
        )

    worst = 0
    for _ in range(30):
        data, labels = rng.normal(size=80), rng.integers(10, size=80)
        changed = rng.choice(80, k, replace=False)
        if neighbors == "replace-one":
            other, coins = data.copy(), labels
            other[changed] = 9.0
        else:
            other, coins = np.delete(data, changed), np.delete(labels, changed)
        worst = max(worst, int((values(data, labels) != values(other, coins)).sum()))
    assert worst == k


def test_contiguous_blocks_would_not_do():
    """The mutant: under add-remove they reshuffle, and one row changes nearly all values."""
    data = np.random.default_rng(0).normal(size=80)
    sizes = [np.array_split(rows, 10) for rows in (data, data[1:])]
    assert sum(a.mean() != b.mean() for a, b in zip(*sizes, strict=True)) > 5


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("d", [1, 2])
def test_the_average_s_loss_is_reached_and_never_passed(noise, k, d):
    """Extreme block values moved from one end to the other: the cells move as far as claimed."""
    averaging = aggregate.plan_averages(d, 1, Budget(1, "1e-6"), moved(k), noise)
    coding, fitted = averaging
    limits = Limits((0.0,) * d, (20.0,) * d)
    losses = []
    for old, new in product([0.0, 5.0, 10.0, 13.0, 20.0], repeat=2):
        tables = [np.full((9, d), 7.0), np.full((9, d), 7.0)]
        tables[0][:k], tables[1][:k] = old, new
        cells = []
        for values in tables:
            grid = np.column_stack([sums.to_grid(c, 0.0, 20.0) for c in limits.clip(values).T])
            (exact,) = sums.accumulate([(grid, np.zeros(9, dtype=np.int64))], d, 1)
            cells.append(coding.encode(exact))
        change = [abs(a - b) for a, b in zip(*cells, strict=True)]
        losses.append(sum(change) if noise == "laplace" else sum(c * c for c in change))
    claimed = 2 * d * k * CELL_UNITS if noise == "laplace" else 4 * d * (k * CELL_UNITS) ** 2
    assert max(losses) == claimed
    if noise == "laplace":
        assert Fraction(fitted.scale) >= claimed


@pytest.mark.parametrize("k", [1, 3])
def test_the_window_claims_the_range_that_k_values_can_cause(k, monkeypatch):
    seen = []
    honest = aggregate.choose_rank

    def spy(cells, share, *, part, bound):
        seen.append((part.cost.eps, bound.width))
        return honest(cells, share, part=part, bound=bound)

    monkeypatch.setattr(aggregate, "choose_rank", spy)
    values = np.random.default_rng(0).normal(10, 1, (300, 2))
    limits = Limits((0.0, 0.0), (20.0, 20.0))
    window(values, limits, eps=Fraction(3, 10), changes=moved(k), contributions=k)
    assert sum(eps for eps, _ in seen) == Fraction(3, 10)
    assert {reach for _, reach in seen} == {2 * k * RANK_UNIT}


def test_the_window_holds_nearly_all_values_and_little_more():
    rng = np.random.default_rng(1)
    for scale, size in product([0.01, 0.3, 3.0], [300, 2_000]):
        values = np.clip(rng.normal(8, scale, (size, 1)), 0, 20)
        found = [
            window(values, WIDE, eps=Fraction(1, 2), changes=moved(1), rng=rng) for _ in range(20)
        ]
        inside = [((values >= w.lower[0]) & (values <= w.upper[0])).mean() for w in found]
        widths = [w.upper[0] - w.lower[0] for w in found]
        assert np.mean(inside) > 0.97
        assert np.median(widths) < 18 * scale


def test_averages_have_honest_errors():
    rng = np.random.default_rng(2)
    averaging = aggregate.plan_averages(1, 1, Budget(1), moved(1))
    found = []
    for _ in range(400):
        values = rng.normal(10, 0.5, (300, 1))
        limits, part = Limits((8.5,), (11.5,)), bought(1, rng=rng)
        (one,) = aggregate.release_averages(values, limits, averaging, part)
        found.append((one.value, one.sampling, one.privacy))
    value, sampling, privacy = np.array(found).T
    assert sampling.mean() == pytest.approx(0.5 / np.sqrt(300), rel=0.15)
    assert privacy.mean() == pytest.approx(1.5 * np.sqrt(8) / 300, rel=0.01)
    assert value.std() == pytest.approx(np.hypot(sampling.mean(), privacy.mean()), rel=0.1)


def test_numbers_of_blocks_are_public_functions():
    assert aggregate.default_blocks(10_000, ONE) == 200
    assert aggregate.default_blocks(10**6, ONE) == 2_811
    assert (
        aggregate.default_blocks(10**6, Fraction(1, 4))
        > 2 * aggregate.default_blocks(10**6, ONE) - 3
    )
    assert aggregate.default_blocks(10, ONE) == 1
    assert aggregate.default_blocks(1_000, Fraction(1, 100)) == 50
    assert aggregate.window_pays(200, ONE)
    assert not aggregate.window_pays(200, Fraction(99, 100))
    assert aggregate.window_share(200, ONE) == Fraction(1, 2)
    assert aggregate.window_share(3_000, ONE) == Fraction(1, 20)
    assert aggregate.window_share(3_000, Fraction(1, 6)) == Fraction(3, 10)


@pytest.mark.parametrize("bounds", [(1e16, 1e16 + 4), (0.0, 2e-323), (-1e-320, 1e-320)])
def test_a_window_between_bounds_that_nearly_touch_has_a_width(bounds):
    """Its ends once were one float, and numpy warned of 0/0."""
    limits = Limits((bounds[0],), (bounds[1],))
    values = np.full((500, 1), bounds[1])
    averaging = aggregate.plan_averages(1, 1, Budget(1), moved(1))
    for _ in range(5):
        found = window(values, limits, eps=Fraction(5), changes=moved(1))
        assert bounds[0] <= found.lower[0] < found.upper[0] <= bounds[1]
        (one,) = aggregate.release_averages(found.clip(values), found, averaging, bought(1))
        assert bounds[0] <= one.value <= bounds[1]


def test_a_huge_eps_overflows_nowhere():
    assert aggregate.default_blocks(10_000, Fraction(10**390)) == 200


@pytest.mark.parametrize(("size", "k"), [(1, 1), (3, 4)])
def test_an_eps_that_passes_the_check_is_enough_for_a_window(size, k):
    values = np.zeros((40, size))
    limits = Limits((0.0,) * size, (1.0,) * size)

    def call(eps):
        part = eps * aggregate.window_share(40, eps / (size * k))
        window(values, limits, eps=part, changes=moved(k), contributions=k)

    for eps in (Fraction(1, 10**7), Fraction(1, 10**8)):
        aggregate.check_window(size, moved(k), eps)
        call(eps)
    for refuse in (call, lambda eps: aggregate.check_window(size, moved(k), eps)):
        with pytest.raises(ArgumentError, match="eps is too small"):
            refuse(Fraction(1, 10**12))
