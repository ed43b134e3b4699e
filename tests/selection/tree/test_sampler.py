"""The tree's law in small, its bounds node by node, and mutants of both that must be caught."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from oracles.selection_law import ALPHA, FACTORS, Case, chi_square, exact_law, make_case

from dpreg.selection.tree import noise as tree_noise
from dpreg.selection.tree import search as tree
from dpreg.selection.tree import search as tree_search
from dpreg.selection.tree.bounds import Bounds
from dpreg.selection.tree.counts import Counts
from dpreg.selection.tree.noise import Arrival, Bits
from dpreg.selection.tree.search import Search, Tree

PLAIN = {name: levels[0] for name, levels in FACTORS.items()} | {"p": 6, "signal": "some"}

CELLS = [
    PLAIN,
    PLAIN | {"mechanism": "permute-and-flip", "method": "PCPL", "correlation": 0.9},
    PLAIN | {"mechanism": "permute-and-flip", "terms": "factors", "keep": "and one"},
    PLAIN | {"hierarchy": "strong", "limit": "max", "signal": "none"},
    PLAIN | {"mechanism": "permute-and-flip", "radius": "binding", "limit": "max"},
    PLAIN | {"terms": "factors", "limit": "max", "p": 9, "correlation": 0.9},
    PLAIN | {"mechanism": "permute-and-flip", "p": 9, "terms": "factors", "hierarchy": "strong"},
]


def sampler(case: Case, mechanism: str) -> Tree:
    return Tree(case.problem, case.space, case.contest, mechanism=mechanism, t=case.t)


def p_value(case: Case, mechanism: str, draws: int, seed: int) -> float:
    drawn_from = sampler(case, mechanism)
    index, counts = case.index(), np.zeros(len(case.models))
    bits = Bits(np.random.default_rng(seed))
    for _ in range(draws):
        counts[index[drawn_from.draw(bits).units]] += 1
    return chi_square(counts, exact_law(case.scores, case.t, mechanism))[0]


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_draws_follow_the_exact_law(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit tries every pair of circumstances with 20,000 draws each."""
    case = make_case(CELLS[number], seed=number)
    assert p_value(case, CELLS[number]["mechanism"], 1_000, number) > ALPHA


def test_draws_follow_the_law_where_comparisons_need_more_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 6 bits to begin with, most comparisons overlap; refined, they are right all the same."""
    for module in (tree, tree_noise, tree_search):
        monkeypatch.setattr(module, "PRECISION", 6)
    case = make_case(PLAIN | {"mechanism": "permute-and-flip"}, seed=7, spread=3)
    assert p_value(case, "permute-and-flip", 800, 7) > ALPHA
    refined = []
    honest = tree_noise.Arrival.refine
    monkeypatch.setattr(
        tree_noise.Arrival, "refine", lambda *args: refined.append(args) or honest(*args)
    )
    bits = Bits(np.random.default_rng(8))
    drawn_from = sampler(case, "permute-and-flip")
    for _ in range(50):
        drawn_from.draw(bits)
    assert refined


# --- mutants of the law ------------------------------------------------------------------------


def untruncated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node draws its maximum as if nothing were known above it."""

    def forgetful(cap: Arrival | None, count: int, bits: Bits, law: object) -> Arrival:
        return Arrival(None, count, bits, law)

    monkeypatch.setattr(tree_search, "Arrival", forgetful)


def wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that holds a unit counts its models as if that unit were free still."""
    size = Counts.size

    def unsplit(self: Counts, cell: object) -> int:
        return size(self, cell) << (cell.inside.bit_count() if cell.free else 0)

    monkeypatch.setattr(Counts, "size", unsplit)


def coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """One root, leaves by coins of odds exp(-t price), as many models as the odds add up to."""
    price = 2.0

    def weight(model: int) -> float:
        return 2.0 ** (-price * model.bit_count())

    def toss(self: Counts, cell: object, gone: frozenset[int], bits: Bits) -> int:
        within = 1 / (1 + 2.0**price)
        while True:
            model = sum((bits.word(53) < within * 2**53) << u for u in range(self.units))
            if model not in gone:
                return model

    def peel(self: Search, node: object) -> None:
        left = node.size - weight(node.leaf)
        if len(node.gone) + 1 < 2**self.counts.units:
            gone = node.gone | {node.leaf}
            noise = self.arrival(node.noise, left)
            self.place(tree_search.Node(node.cell, left, gone, noise, node.state, node.extra))

    monkeypatch.setattr(Counts, "size", lambda self, cell: (1 + 2.0**-price) ** self.units)
    monkeypatch.setattr(Counts, "draw_other", toss)
    monkeypatch.setattr(tree_noise, "fmpz", flint.arb)
    monkeypatch.setattr(Search, "peel", peel)
    monkeypatch.setattr(Search, "split", peel)


def too_high(monkeypatch: pytest.MonkeyPatch, share: float = 0.01) -> None:
    """Bounds on F (below zero) lie 1% too high."""
    least = Tree.least_score
    monkeypatch.setattr(
        Tree,
        "least_score",
        lambda self, bound, penalty: least(self, bound * (1 - share), penalty),
    )


@pytest.mark.parametrize("mutant", [untruncated, wrong_count])
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_mutants_of_the_noise_are_caught(
    mutant: object, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    monkeypatch.setattr(tree_search, "_PEEL", -np.inf)  # deep trees, where noise is drawn often
    case = make_case(PLAIN, seed=3, spread=30)
    assert p_value(case, mechanism, 1_500, 3) < ALPHA


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_what_catches_the_mutants_passes_without_them(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_search, "_PEEL", -np.inf)
    case = make_case(PLAIN, seed=3, spread=30)
    assert p_value(case, mechanism, 1_500, 3) > ALPHA


@pytest.mark.parametrize(
    ("mechanism", "right"), [("exponential", True), ("permute-and-flip", False)]
)
def test_odds_weighted_coins_are_right_for_the_exponential_mechanism_alone(
    mechanism: str, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(PLAIN | {"p": 4, "signal": "none"}, seed=5, spread=1)
    free = Case(
        case.problem,
        case.space,
        case.t,
        0,
        0,
        None,
        case.problem.scores(case.space.columns(case.models)),
        case.models,
    )
    coins(monkeypatch)
    # The law that the coins aim at: a price of 2 ln 2 nats a unit.
    price = round(2 * np.log(2) / float(case.t))
    target = exact_law(free.scores + price * case.models.sum(axis=1), case.t, mechanism)
    index, counts = case.index(), np.zeros(len(case.models))
    bits = Bits(np.random.default_rng(5))
    drawn_from = sampler(free, mechanism)
    for _ in range(4_000):
        counts[index[drawn_from.draw(bits).units]] += 1
    assert (chi_square(counts, target)[0] > ALPHA) == right


# --- bounds ------------------------------------------------------------------------------------


def check_every_bound(case: Case, mechanism: str, draws: int, seed: int) -> int:
    """Draw, and compare the bound of every node and leaf with the score of every model below it."""
    masks = [sum(1 << int(u) for u in np.flatnonzero(m)) for m in case.models]
    scores = dict(zip(masks, case.scores.tolist(), strict=True))
    seen = 0

    class Watched(Search):
        def push(self, item: object) -> None:
            nonlocal seen
            seen += 1
            if hasattr(item, "cell"):
                below = [m for m in scores if self.counts.holds(item.cell, m)]
            else:
                below = [item.model]
            assert all(item.score <= scores[model] for model in below)
            super().push(item)

    drawn_from = sampler(case, mechanism)
    with flint.ctx.workprec(tree_noise.PRECISION):
        for at in range(draws):
            Watched(drawn_from, Bits(np.random.default_rng([seed, at])), False).run()
    return seen


BOUND_CELLS = [
    PLAIN | {"p": 7, "radius": radius, "correlation": correlation, "terms": terms}
    for radius in ("free", "binding")
    for correlation in (0.0, 0.9)
    for terms in ("columns", "factors")
] + [
    PLAIN | {"p": 7, "method": "PCPL", "radius": "binding"},
    PLAIN | {"p": 8, "hierarchy": "strong", "limit": "max"},
    PLAIN | {"p": 8, "limit": "max", "radius": "binding"},
]


@pytest.mark.parametrize("number", range(len(BOUND_CELLS)))
@pytest.mark.parametrize("n", [5, 400])
def test_every_bound_is_at_most_every_leaf_below_it(
    number: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer rows than columns included; little peeling, so that the trees grow deep."""
    monkeypatch.setattr(tree_search, "_PEEL", -np.inf)
    monkeypatch.setattr(tree_search, "_REFRESH", 0.01)
    case = make_case(BOUND_CELLS[number], seed=number, n=n, spread=8)
    assert check_every_bound(case, "permute-and-flip", 12, number) > 60


def test_a_bound_one_percent_too_high_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    too_high(monkeypatch)
    case = make_case(BOUND_CELLS[0], seed=0, n=400, spread=8)
    with pytest.raises(AssertionError):
        check_every_bound(case, "permute-and-flip", 12, 0)


def test_every_state_of_removed_units_bounds_all_models_without_them() -> None:
    """Views with what is left out added, and one more unit removed, for all 2**7 states."""
    for rho, n, correlation in ((8, 400, 0.9), (Fraction(3, 10), 400, 0.9), (1, 5, 0.0)):
        cell = PLAIN | {"p": 7, "correlation": correlation}
        case = make_case(cell, seed=11, n=n)
        problem = type(case.problem)(moments_of(cell, n), Fraction(rho))
        gram, cross = problem.moments()
        bounds = Bounds(gram, cross, problem.rho, case.space)
        value = (problem.scores(case.space.columns(case.models)) + 1) * float(problem.grid)
        for removed in range(2**7):
            state = bounds.state(removed)
            for model, above in zip(case.models, value, strict=True):
                if any(model[u] and removed >> u & 1 for u in range(7)):
                    continue
                out = [u for u in range(7) if not model[u] and not removed >> u & 1]
                view = state.view
                assert view.bound + view.weight[out].sum() <= above
                assert view.reserve[len(out)] <= view.weight[out].sum() + 1e-9
                assert (state.without[out] <= above).all()


def moments_of(cell: dict, n: int) -> object:
    from oracles.selection_law import make_rows

    from dpreg.moments import accumulate

    return accumulate([make_rows(n, cell["p"], cell["correlation"], True, 11)], cell["p"] + 2)


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_a_node_counts_its_models_that_are_not_gone(mechanism, monkeypatch):
    """Else cells from which a model is peeled are drawn too often, or for ever."""
    placed = []
    place = Search.place

    def checked(self, node):
        placed.append(len(node.gone))
        assert node.size == self.counts.size(node.cell) - len(node.gone)
        place(self, node)

    monkeypatch.setattr(Search, "place", checked)
    drawn = sampler(make_case(PLAIN, seed=1), mechanism)
    for seed in range(20):
        drawn.draw(Bits(np.random.default_rng(seed)))
    assert max(placed) > 0


# --- the call ----------------------------------------------------------------------------------


def test_seeded_draws_repeat_and_report_their_work() -> None:
    case = make_case(PLAIN, seed=1)
    found = [
        Tree(case.problem, case.space, case.contest, mechanism="exponential", t=case.t).draw(
            Bits(np.random.default_rng(4))
        )
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert found[0].nodes >= 1
    assert found[0].leaves >= 1


def test_a_space_of_one_model_is_drawn() -> None:
    case = make_case(PLAIN, seed=1)
    space = type(case.space)((), (), (0, 1))
    found = Tree(case.problem, space, case.contest, mechanism="exponential", t=case.t).draw()
    assert found.units == ()


def test_progress_goes_to_stderr_and_is_off_by_default(capsys: pytest.CaptureFixture) -> None:
    case = make_case(PLAIN, seed=1)
    for progress in (False, True):
        sampler(case, "exponential").draw(progress=progress)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("nodes" in shown.err) == progress
