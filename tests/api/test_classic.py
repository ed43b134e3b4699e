"""The classic calls: what they read, what they charge, what they refuse, what they can tell."""

import logging
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.accounts import with_cost

import dpreg
from dpreg.api import aggregate as aggregate_api
from dpreg.api import aggregate as blockwise
from dpreg.api import classic as classic_api
from dpreg.api.aggregate import sample_aggregate
from dpreg.api.classic import dp_mean, dp_quantile, dp_suffstats
from dpreg.api.histogram import dp_histogram
from dpreg.api.inputs import Choices, Columns, columns_of
from dpreg.errors import ArgumentError, BudgetError, DataError, DpregError
from dpreg.estimation import sums
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.noise import VectorNoise
from dpreg.results.claim import STAMP
from dpreg.results.classic import ClassicResults

SCHEMA = {"a": (0, 10), "b": (-1, 1), "g": ["u", "v", "w"], "t": bool}
NEIGHBORS = ("replace-one", "add-remove")


def frame(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.uniform(2, 6, n),
            "b": rng.uniform(-0.5, 0.5, n),
            "g": rng.choice(["u", "v", "w"], n),
            "t": rng.random(n) < 0.3,
        }
    )


CALLS = {
    "mean": lambda data, **o: dp_mean("a", data, schema=SCHEMA, **o),
    "means": lambda data, **o: dp_mean(["a", "b"], data, schema=SCHEMA, **o),
    "grouped": lambda data, **o: dp_mean("a", data, schema=SCHEMA, by="g", **o),
    "quantile": lambda data, **o: dp_quantile("a", 0.5, data, schema=SCHEMA, **o),
    "quantiles": lambda data, **o: dp_quantile(
        ["a", "b"], [0.3, 0.5], data, schema=SCHEMA, by="g", **o
    ),
    "histogram": lambda data, **o: dp_histogram("a", data, schema=SCHEMA, **o),
    "bins": lambda data, **o: dp_histogram("a", data, schema=SCHEMA, bins=5, by="g", **o),
    "levels": lambda data, **o: dp_histogram("g", data, schema=SCHEMA, **o),
    "gaussian": lambda data, **o: dp_suffstats("a", data, schema=SCHEMA, **o),
    "grouped aggregate": lambda data, **o: sample_aggregate(
        lambda block: block["a"].mean(), data, bounds=(0, 10), by="g", schema=SCHEMA, **o
    ),
    "aggregate": lambda data, **o: sample_aggregate(
        lambda block: block["a"].mean(), data, bounds=(0, 10), schema=SCHEMA, **o
    ),
}


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_call_costs_what_it_was_given_and_lists_it(call, neighbors, contributions):
    ledger = Ledger(1)
    result = call(
        frame(), eps="0.3", neighbors=neighbors, contributions=contributions, budget=ledger
    )
    assert result.spent.eps == Fraction(3, 10) == ledger.spent.eps
    assert result.spent.delta == 0
    assert (result.nobs is None) == (neighbors == "add-remove")
    assert (result.neighbors, result.contributions) == (neighbors, contributions)
    assert np.isfinite(result.params).all()
    assert np.isfinite(result.bse).all()
    limits = result.conf_int()
    assert (limits[0] <= limits[1]).all()
    str(result)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_seeds_repeat_and_are_stamped_and_no_seed_does_not_repeat(call):
    data = frame()
    first, second = (call(data, eps=1, unsafe_seed=7) for _ in range(2))
    assert first == second
    assert STAMP in str(first)
    assert first.seeded
    private = call(data, eps=1)
    # Two draws of a quantile agree once in 500 times: three more all do once in 10^8.
    assert any(call(data, eps=1) != private for _ in range(3))
    assert STAMP not in str(private)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_ledger_is_charged_before_a_row_is_read_or_noise_drawn(call, monkeypatch):
    log = []

    def note(owner, name, event):
        honest = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *args, **options: (log.append(event), honest(*args, **options))[1]
        )

    note(Ledger, "charge", "charge")
    note(Columns, "total", "read")
    note(VectorNoise, "draw", "draw")
    note(aggregate_api.blocks, "block_values", "read")
    call(frame(), eps=1, neighbors="add-remove", budget=Ledger(1))
    assert log[0] == "charge"
    assert log.count("charge") == 1
    assert {"read", "draw"} <= set(log)
    log.clear()
    with pytest.raises(BudgetError):
        call(frame(), eps=2, budget=Ledger(1))
    assert log == ["charge"]


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_is_drawn_costs_what_the_budget_lists(call, neighbors, contributions, monkeypatch):
    """Every noise and every choice of a call, at the cost that it was really calibrated to.

    Draws that read different groups count once; those of a group add up.
    """
    noises, choices = [], []
    draw, choose = VectorNoise.draw, choice.choose

    def drawn(self, size, rng=None):
        noises.append((self.cost.eps, id(self)))
        return draw(self, size, rng)

    def chosen(scores, *, eps, **options):
        choices.append(eps)
        return choose(scores, eps=eps, **options)

    monkeypatch.setattr(VectorNoise, "draw", drawn)
    monkeypatch.setattr(choice, "choose", chosen)
    result = call(frame(), eps=1, neighbors=neighbors, contributions=contributions)
    lines = max(len(result.groups), 1)
    vectors = sum(eps for eps, _ in set(noises))
    if isinstance(result, ClassicResults) and result.statistic == "quantile":
        vectors = noises[0][0] * len(noises) / lines  # one count for each column and group
    assert vectors + Fraction(sum(choices, Fraction(0)), lines) == 1


BAD = [
    (lambda **o: dp_mean([1.0, 2.0], eps=1, **o), ArgumentError, "no bounds"),
    (lambda **o: dp_mean([1.0], bounds=(0, 1), eps=0, **o), ArgumentError, "eps"),
    (lambda **o: dp_mean([1.0], bounds=(0, 1), eps=True, **o), ArgumentError, "eps"),
    (lambda **o: dp_mean([1.0], bounds=(1, 0), eps=1, **o), ArgumentError, "bounds"),
    (lambda **o: dp_mean([1.0], bounds=3, eps=1, **o), ArgumentError, "bounds"),
    (lambda **o: dp_mean([1.0], bounds={"y": (0, 1)}, eps=1, **o), ArgumentError, "not a column"),
    (lambda **o: dp_mean("a", eps=1, **o), ArgumentError, "second argument"),
    (lambda **o: dp_mean(3.0, bounds=(0, 1), eps=1, **o), ArgumentError, "float"),
    (lambda **o: dp_mean("zz", frame(), bounds=(0, 1), eps=1, **o), DataError, "no column"),
    (lambda **o: dp_mean(["a", "a"], frame(), bounds=(0, 1), eps=1, **o), ArgumentError, "once"),
    (lambda **o: dp_mean("g", frame(), schema=SCHEMA, eps=1, **o), ArgumentError, "labels"),
    (lambda **o: dp_mean("a", frame(), bounds=(0, 1), by="g", eps=1, **o), ArgumentError, "levels"),
    (lambda **o: dp_mean("a", frame(), schema=SCHEMA, by="a", eps=1, **o), ArgumentError, "itself"),
    (
        lambda **o: dp_mean(
            "a", frame(), schema=SCHEMA, eps=1, complete=True, neighbors="add-remove", **o
        ),
        ArgumentError,
        "replace-one",
    ),
    (
        lambda **o: dp_mean([1.0], bounds=(0, 1), eps=1, noise="gaussian", **o),
        ArgumentError,
        "delta",
    ),
    (
        lambda **o: dp_mean([1.0], bounds=(0, 1), eps=1, noise="uniform", **o),
        ArgumentError,
        "noise",
    ),
    (
        lambda **o: dp_mean([1.0], bounds=(0, 1), eps=1, contributions=0, **o),
        ArgumentError,
        "contr",
    ),
    (lambda **o: dp_mean([1.0], bounds=(0, 1), eps=1, neighbors="x", **o), ArgumentError, "neighb"),
    (lambda **o: dp_quantile([1.0], 1.5, bounds=(0, 1), eps=1, **o), ArgumentError, "q"),
    (lambda **o: dp_quantile([1.0], [], bounds=(0, 1), eps=1, **o), ArgumentError, "q"),
    (
        lambda **o: dp_quantile([1.0], 0.5, bounds=(0, 1), eps=1, alpha=2, **o),
        ArgumentError,
        "alpha",
    ),
    (
        lambda **o: dp_histogram([1.0], bounds=(0, 1), bins="auto", eps=1, **o),
        ArgumentError,
        "bins",
    ),
    (lambda **o: dp_histogram([1.0], bounds=(0, 1), bins=0, eps=1, **o), ArgumentError, "bins"),
    (lambda **o: dp_histogram([1.0], bins=[0, 0, 1], eps=1, **o), ArgumentError, "ascend"),
    (
        lambda **o: dp_histogram([1.0], bins=[0, 1], bounds=(0, 1), eps=1, **o),
        ArgumentError,
        "edges",
    ),
    (
        lambda **o: dp_histogram(["a", "b"], frame(), schema=SCHEMA, eps=1, **o),
        ArgumentError,
        "one",
    ),
    (
        lambda **o: dp_suffstats([1], family="gamma", bounds=(0, 1), eps=1, **o),
        ArgumentError,
        "fam",
    ),
    (
        lambda **o: dp_suffstats([1], family="poisson", bounds=(-1, 9), eps=1, **o),
        ArgumentError,
        "supp",
    ),
    (
        lambda **o: dp_suffstats([1], family="bernoulli", bounds=(0, 0.5), eps=1, **o),
        ArgumentError,
        "0, 1",
    ),
    (lambda **o: sample_aggregate(3, [1.0], bounds=(0, 1), eps=1, **o), ArgumentError, "callable"),
    (
        lambda **o: sample_aggregate(len, [1.0], bounds=(0, 1), by="g", eps=1, **o),
        ArgumentError,
        "by",
    ),
    (
        lambda **o: sample_aggregate(
            len, {"a": [1.0]}, bounds=(0, 1), by="g", schema={"g": ["u", "v"]}, eps=1, **o
        ),
        DataError,
        "no column 'g'",
    ),
    (
        lambda **o: sample_aggregate(len, frame(), bounds=(0, 1), by="g", eps=1, **o),
        ArgumentError,
        "schema must declare",
    ),
    (lambda **o: sample_aggregate(len, "abc", bounds=(0, 1), eps=1, **o), DataError, "no file"),
    (lambda **o: sample_aggregate(len, 3, bounds=(0, 1), eps=1, **o), ArgumentError, "data"),
    (lambda **o: sample_aggregate(len, [1.0], bounds=[], eps=1, **o), ArgumentError, "bounds"),
    (lambda **o: sample_aggregate(len, [1.0], bounds=(1, 1), eps=1, **o), ArgumentError, "bounds"),
    (
        lambda **o: sample_aggregate(len, [1.0], bounds=(0, 1), blocks=0, eps=1, **o),
        ArgumentError,
        "blocks",
    ),
    (
        lambda **o: sample_aggregate(len, [1.0], bounds=(0, 1), timeout=0, eps=1, **o),
        ArgumentError,
        "timeout",
    ),
    (
        lambda **o: sample_aggregate(len, [1.0], bounds=(0, 1), aggregation="x", eps=1, **o),
        ArgumentError,
        "aggr",
    ),
]


@pytest.mark.parametrize(("call", "kind", "match"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_by_name_and_nothing_is_charged(call, kind, match):
    ledger = Ledger(10)
    with pytest.raises(kind, match=match):
        call(budget=ledger)
    assert ledger.entries == ()


def test_columns_come_in_many_forms():
    data = frame(5_000)
    options = {"bounds": (0, 10), "eps": 10**6, "neighbors": "add-remove"}
    forms = [
        dp_mean("a", data, **options),
        dp_mean("a", data.to_dict("list"), **options),
        dp_mean(data["a"], **options),
        dp_mean(data["a"].to_numpy(), **options),
        dp_mean(data["a"].to_list(), **options),
        dp_mean(data[["a"]], **options),
        dp_mean({"a": data["a"].to_numpy()}, **options),
        dp_mean(data[["a", "b"]].to_numpy(), **options),
        dp_mean("a", data, schema=SCHEMA, eps=10**6),
    ]
    for result in forms:
        assert result.params.iloc[0] == pytest.approx(data["a"].mean(), abs=1e-3)
    assert [r.params.index[0] for r in forms] == ["a", "a", "a", "x", "x", "a", "a", "x0", "a"]
    truth = dp_mean("t", data, schema=SCHEMA, eps=10**6)
    assert truth.params["t"] == pytest.approx(data["t"].mean(), abs=1e-3)


def test_groups_have_their_own_estimates():
    data = frame(6_000)
    data["a"] += (data["g"] == "v") * 2.0
    data.loc[:99, "g"] = "undeclared"
    for neighbors in NEIGHBORS:
        options = {"schema": SCHEMA, "by": "g", "eps": 1000, "neighbors": neighbors}
        expected = data[100:].groupby("g")["a"]
        result = dp_mean("a", data, **options)
        np.testing.assert_allclose(result.params, expected.mean(), atol=0.01)
        np.testing.assert_allclose(result.complete_rows, expected.size(), atol=1)
        quantile = dp_quantile("a", 0.25, data, **options)
        np.testing.assert_allclose(quantile.params, expected.quantile(0.25), atol=0.02)
        by_truth = dp_mean("a", data, **(options | {"by": "t"}))
        assert list(by_truth.params.index) == ["False", "True"]
        shares = dp_histogram("a", data, bins=[0, 4, 10], **options)
        exact = (data[100:]["a"] < 4).groupby(data["g"]).mean()
        np.testing.assert_allclose(shares.params.xs("[0, 4)", level=1), exact, atol=0.01)


def test_missing_values_count_for_nothing():
    data = frame(4_000)
    data.loc[:999, "a"] = np.nan
    result = dp_mean(["a", "b"], data, schema=SCHEMA, eps=1000)
    np.testing.assert_allclose(result.params, data[1_000:][["a", "b"]].mean(), atol=0.01)
    assert result.complete_rows.iloc[0] == pytest.approx(3_000, abs=1)
    assert result.nobs == 4_000
    shares = dp_histogram("a", data, schema=SCHEMA, bins=1, eps=1000)
    assert shares.counts.iloc[0] == pytest.approx(3_000, abs=1)
    assert shares.params.iloc[0] == pytest.approx(1, abs=0.01)
    middle = dp_mean("a", data, schema=SCHEMA, eps=1000, complete=True)
    assert middle.params.iloc[0] == pytest.approx(data["a"].fillna(5.0).mean(), abs=0.01)


def test_private_bins_are_few_for_few_rows_and_more_for_many():
    sizes = []
    for n in (1_000, 200_000):
        x = np.random.default_rng(n).beta(2, 5, n)
        drawn = [dp_histogram(x, bounds=(0, 1), eps=1, unsafe_seed=seed) for seed in range(9)]
        sizes.append(np.median([len(result.params) for result in drawn]))
        for result in drawn:
            assert result.binning == "private"
            assert result.probabilities.sum() == pytest.approx(1)
            assert result.budget["eps"].tolist() == ["0.2", "0.8"]
    assert sizes[0] < 40 < sizes[1]


def test_a_timed_out_estimator_is_a_failed_one():
    def estimator(block):
        while True:
            pass

    result = sample_aggregate(
        estimator, [1.0] * 20, bounds=(0, 10), blocks=2, eps=10**6, timeout=0.2
    )
    assert result.params.iloc[0] == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_aggregates_by_group(neighbors):
    data = frame(6_000)
    data["a"] += (data["g"] == "v") * 2.0
    data.loc[:99, "g"] = "undeclared"
    for table in (data, {"a": data["a"].to_numpy(), "g": data["g"].to_list()}):
        result = sample_aggregate(
            lambda block: np.mean(block["a"]), table, bounds={"mean": (0, 10)}, by="g",
            schema={name: SCHEMA[name] for name in "ag"}, blocks=40, eps=10**4, neighbors=neighbors,
            unsafe_seed=1,
        )  # fmt: skip
        expected = data[100:].groupby("g")["a"].mean()
        np.testing.assert_allclose(result.params, expected, atol=0.05)
        assert result.params.index.name == "g"


def test_a_replaced_row_that_changes_groups_is_paid_for(monkeypatch):
    seen = []
    honest = blockwise.blocks.plan_averages

    def spy(size, groups, cost, changes, noise):
        seen.append((groups, changes.after.contributions))
        return honest(size, groups, cost, changes, noise)

    monkeypatch.setattr(blockwise.blocks, "plan_averages", spy)
    for neighbors, k in product(NEIGHBORS, (1, 3)):
        for name in ("aggregate", "grouped aggregate"):
            CALLS[name](frame(200), eps=1, neighbors=neighbors, contributions=k)
    # Planned twice: for the charge, and for the draw.
    expected = [(1, 1), (3, 2), (1, 3), (3, 6), (1, 1), (3, 1), (1, 3), (3, 3)]
    assert seen == [one for one in expected for _ in range(2)]


def test_nothing_of_a_failing_block_is_heard(capfd, caplog, recwarn):
    def estimator(block):
        raise RuntimeError(f"secret {block}")

    with caplog.at_level(logging.DEBUG):
        result = sample_aggregate(
            estimator, list(range(4_000)), bounds=(0, 10), eps=10, unsafe_seed=1
        )
    assert result.params.iloc[0] == pytest.approx(5.0, abs=0.5)
    assert "secret" not in str(result) + result.to_json()
    assert capfd.readouterr() == ("", "")
    # A Spark session of other tests in this process logs when its garbage is collected.
    assert not [
        record
        for record in caplog.records
        if "py4j" not in record.pathname and record.name != "dpreg.calls"
    ]
    assert not list(recwarn)


HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, "text", "7", None, pd.NA, pd.NaT, 3 + 4j,
           b"x", [1], True, 10**400, pd.Timestamp(0)]  # fmt: skip


@given(st.lists(st.sampled_from(HOSTILE), max_size=6))
def test_no_cell_raises_or_warns(cells):
    data = {"a": [*cells, 1.0], "g": ["u", *cells]}
    for neighbors in NEIGHBORS:
        declared = {name: SCHEMA[name] for name in data}
        options = {"schema": declared, "eps": 1, "neighbors": neighbors, "unsafe_seed": 1}
        dp_mean("a", data, by="g", **options)
        dp_quantile("a", 0.5, data, **options)
        dp_histogram("a", data, **options)
        dp_histogram("g", data, **options)
        dp_suffstats("a", data, family="exponential", **options)


def test_errors_say_the_same_whatever_the_rows():
    told = set()
    for cells in ([1.0, 2.0], [np.nan, 99.0], []):
        with pytest.raises(DpregError) as caught:
            dp_mean("a", {"a": cells}, eps=1)
        told.add(str(caught.value))
    assert len(told) == 1


# ---- corner attacks, through what a call really reads and really adds -----------------------

CORNERS = [0.0, 10.0, 5.0, 7.5, -1e300, np.nan]


def released_cells(rows, *, by, neighbors, contributions, degree, complete=False):
    """The exact cells that a call would add noise to, and the noise that it fitted."""
    data = {"a": np.array([a for a, _ in rows]), "g": [g for _, g in rows]}
    declared = {name: SCHEMA[name] for name in data}
    call = {
        "x": "a", "data": data, "bounds": None, "schema": declared, "where": None,
        "by": "g" if by else None, "progress": False, "eps": 1, "neighbors": neighbors,
        "contributions": contributions, "person": None, "unsafe_seed": None, "complete": False,
    }  # fmt: skip
    columns = columns_of(call, Choices.of(call))
    coding, fitted = with_cost(sums.plan)(
        1, columns.lines, degree=degree, grouped=by, eps=Fraction(1), delta=Fraction(0),
        neighbors=neighbors, contributions=contributions, complete=complete,
    )  # fmt: skip
    tally = partial(classic_api._summed, columns.bounds, columns.lines)
    exact = columns.total(tally, "sums").reshape(columns.lines, -1)
    return np.array([coding.encode(one) for one in exact], dtype=object).ravel(), fitted


def worst_loss(*, by, neighbors, contributions, degree, claimed=None, complete=False):
    """The largest L1 change over the scale: the exact privacy loss that can be reached."""
    common = [(4.0, "u"), (6.0, "v")]
    options = {"by": by, "neighbors": neighbors, "degree": degree, "complete": complete}
    kinds = list(product(CORNERS, ["u", "v", None] if by else ["u"]))
    pairs = product(kinds, repeat=2) if neighbors == "replace-one" else product([None], kinds)
    worst = Fraction(0)
    for old, new in pairs:
        rows = [common + [kind] * contributions if kind else common for kind in (old, new)]
        (first, fitted), (second, _) = (
            released_cells(r, contributions=claimed or contributions, **options) for r in rows
        )
        worst = max(worst, Fraction(int(abs(second - first).sum())) / Fraction(fitted.scale))
    return worst


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("by", [False, True])
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_neighbours_reach_eps_and_never_pass_it(neighbors, degree, by, contributions):
    loss = worst_loss(by=by, neighbors=neighbors, contributions=contributions, degree=degree)
    assert Fraction(999, 1000) < loss <= 1


def test_a_false_word_that_rows_are_complete_costs_no_privacy():
    loss = worst_loss(by=False, neighbors="replace-one", contributions=1, degree=2, complete=True)
    assert Fraction(999, 1000) < loss <= 1


def test_contributions_forgotten_would_be_caught():
    for neighbors in NEIGHBORS:
        loss = worst_loss(by=True, neighbors=neighbors, contributions=3, claimed=1, degree=2)
        assert loss > 2


def test_groups_forgotten_would_be_caught(monkeypatch):
    honest = sums.plan

    def forgetful(*args, grouped, **options):
        return honest(*args, grouped=False, **options)

    monkeypatch.setattr(sums, "plan", forgetful)
    assert worst_loss(by=True, neighbors="replace-one", contributions=1, degree=2) > 1


@pytest.mark.parametrize("share", [0.0005, 0.002])
def test_intervals_of_rare_shares_cover(share):
    """Without the rows that are added they cover .42 and .84 of them."""
    rng = np.random.default_rng(1)
    hits = np.zeros(2)
    for seed in range(150):
        x = (rng.random(1000) < share) * 1
        given = {"eps": 10, "unsafe_seed": seed}
        bins = dpreg.dp_histogram("x", {"x": x}, schema={"x": {"levels": [0, 1, 2]}}, **given)
        one = dpreg.dp_suffstats("x", {"x": x}, family="bernoulli", bounds=(0, 1), **given)
        limits = np.array([bins.conf_int().loc["1"], one.conf_int().iloc[0]])
        assert ((limits >= 0) & (limits <= 1)).all()
        hits += (limits[:, 0] <= share) & (share <= limits[:, 1])
    assert (hits >= 0.9 * 150).all()


def test_a_group_that_the_noise_hides_has_no_intervals():
    data = {"x": ["a"] * 300, "g": ["u"] * 300}
    schema = {"x": ["a", "b", "c"], "g": ["u", "v"]}
    result = dpreg.dp_histogram("x", data, eps=1, by="g", schema=schema, unsafe_seed=1)
    limits = result.conf_int()
    assert limits.loc["v"].isna().all(axis=None)
    assert limits.loc["u"].notna().all(axis=None)
    assert any(note.startswith("v: the noise hides how many rows") for note in result.notes)
    assert any("1 of 3 shares seem to be of fewer than 10 rows" in note for note in result.notes)
    assert "nan" in str(result.summary())
    sure = dpreg.dp_histogram("x", data, eps=50, by="g", schema=schema, unsafe_seed=1)
    assert any("3 of 6" in note or "2 of 3" in note for note in sure.notes)


def test_a_mean_that_few_rows_decide_is_said_to_be_so():
    rare, common = np.zeros(1000), np.zeros(1000)
    rare[:2] = 1
    common[:300] = 1
    told = dpreg.dp_mean(rare, bounds=(0, 1), eps=100, unsafe_seed=1)
    assert any("a few rows may account" in remark for remark in told.remarks)
    assert not dpreg.dp_mean(common, bounds=(0, 1), eps=100, unsafe_seed=1).remarks
