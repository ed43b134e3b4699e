import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpreg import datasets
from dpreg.errors import ArgumentError
from dpreg.options import PCLS
from dpreg.planning import plan
from dpreg.privacy.proofs import loss_range

FACTS = {"sigma": 0.25, "candidates": 10}
PAPER = {**FACTS, "method": "pcls"}


def test_n_is_the_least_that_reaches_the_chance():
    found = plan({"a": 0.2, "b": 0.1}, eps=1, chance=0.9, **PAPER)
    assert found.solved == "n"
    assert found.found >= 0.9
    assert found.at(n=round(found.n * 0.99)).found < 0.9
    assert found.at(n=found.n).found == found.found


def test_eps_is_the_least_that_reaches_the_chance():
    found = plan({"a": 0.2, "b": 0.1}, n=20_000, chance=0.9, **PAPER)
    assert found.solved == "eps"
    assert found.found >= 0.9
    assert found.at(eps=found.eps * 0.99).found < 0.9


def test_n_and_eps_give_the_chance():
    found = plan([0.2, 0.1], n=20_000, eps=1, **PAPER)
    assert found.solved is None
    assert list(found.each.index) == ["x1", "x2"]
    assert 0 < found.found <= found.each.min() < 1
    assert found.right <= found.found
    assert 0.08 < found.useless < 0.11
    assert plan(0.2, n=20_000, eps=1, **PAPER).each.index.tolist() == ["x1"]


def test_half_of_the_rows_select_unless_all_do():
    half = plan(0.1, n=20_000, eps=1, **PAPER)
    whole = plan(0.1, n=10_000, eps=1, fit=None, **PAPER)
    shared = plan(0.1, n=10_000, eps=2, fit="share", **PAPER)
    assert half.found == whole.found == shared.found


def test_contributions_and_neighbours_cost_what_they_cost():
    one = plan(0.1, n=20_000, eps=1, **PAPER)
    assert plan(0.1, n=20_000, eps=3, contributions=3, **PAPER).found == pytest.approx(one.found)
    added = plan(0.1, n=20_000, eps=0.5, neighbors="add-remove", **PAPER)
    assert added.found == pytest.approx(one.found)


def test_the_rule_of_thumb_is_the_one_of_the_design():
    found = plan([0.2, 0.1], n=20_000, eps=1, chance=0.9, fit=None, **PAPER)
    scale = 2 * float(loss_range(found.facts.request.rho))
    _, psi = found.paper.charges
    by_hand = (psi + math.log(2 / 0.1) * scale) / (0.01 / 3)
    assert found.rule_of_thumb == pytest.approx(by_hand, rel=0.01)
    assert found.at(n=found.rule_of_thumb).found >= 0.9


def test_clip_changes_the_units_and_nothing_else():
    """Effects, sigma, radius and penalty in clipped units are the same numbers over c."""
    whole = plan(0.1, sigma=0.2, n=5000, eps=1, candidates=4, method=PCLS(radius=2, penalty=3))
    clipped = plan(
        0.05, sigma=0.1, n=5000, eps=1, candidates=4, method=PCLS(radius=1, clip=0.5, penalty=0.75)
    )
    assert clipped.found == pytest.approx(whole.found)


def test_bic_is_added_where_sigma2_is_known():
    plain = plan(0.1, n=5000, eps=10, **FACTS).paper.charges
    both = plan(0.1, n=5000, eps=10, sigma2=0.0625, **FACTS).paper.charges
    alone = plan(0.1, n=5000, eps=10, sigma2=0.0625, penalty="bic", **FACTS).paper.charges
    assert plain[0] == 0
    assert both == (pytest.approx(0.0625 * math.log(2500)), pytest.approx(plain[1]))
    assert alone == (both[0], 0)


# ---- a formula and a schema ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def area():
    return datasets.make_bay_area(2)


def test_user_units_are_scaled_by_the_schema(area):
    found = plan(
        {"bsqft": 0.11, "county[T.sc]": 170, "county[T.mss]": 240},
        sigma=150,
        n=200_000,
        eps=1,
        formula=area.formula,
        schema=area.schema,
        method=PCLS(radius=2),
    )
    stated = found.stated
    assert stated.names == ("county", "bsqft")
    assert stated.scaled == pytest.approx(((170 + 240) / 400, 0.11 * 1500 / 400))
    assert stated.models == 256
    assert found.paper.columns.tolist() == [6, 1]
    assert found.paper.useless.tolist() == [1] * 6
    line = np.array([170, 240, *[0] * 5]) / 400  # of each county, as likely as any other
    np.testing.assert_allclose(found.paper.strength, [line.var(), (0.11 * 1500 / 400) ** 2 / 3],
                               rtol=0.01)  # fmt: skip
    assert found.paper.sigma2 == pytest.approx((150 / 400) ** 2)


def test_sd_given_the_rest_is_in_the_columns_units(area):
    facts = {"sigma": 150, "n": 50_000, "eps": 1, "formula": area.formula, "schema": area.schema}
    uniform = plan({"age": 1.0}, **facts)
    same = plan({"age": 1.0}, sd={"age": 120 / math.sqrt(12)}, **facts)
    less = plan({"age": 1.0}, sd={"age": 10}, **facts)
    assert same.found == pytest.approx(uniform.found)
    assert less.found < uniform.found


def test_truths_are_two_points():
    facts = {"sigma": 0.2, "n": 5000, "eps": 1, "formula": "y ~ flag + x"}
    found = plan({"flag": 0.4}, schema={"y": (-1, 1), "flag": bool, "x": (0, 1)}, **facts)
    stated = found.stated
    assert found.rows.variance[0] == pytest.approx((0.5 / 0.5) ** 2, rel=0.01)
    assert stated.scaled[0] == pytest.approx(0.2)


# ---- the page -----------------------------------------------------------------------------------


def test_the_page_says_what_was_assumed_and_that_no_data_were_used():
    text = str(plan({"a": 0.2, "b": 0.1}, eps=1, chance=0.9, **PAPER))
    for words in ("No data were used", "(found)", "Theorem 4.1", "Theorem 4.2", "all of them"):
        assert words in text
    assert "clipped" in str(plan(1.5, n=100, eps=1, **PAPER))
    assert "beyond the radius" in str(plan(1.5, n=100, eps=1, **PAPER))
    assert repr(plan(0.2, n=100, eps=1, **PAPER)).startswith("<Plan: n=100, eps=1: ")
    assert "<table" in plan(0.2, n=100, eps=1, **PAPER)._repr_html_()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": None, "eps": None}, "give n, eps or both"),
        ({"effects": {}}, "effects"),
        ({"effects": [0.1] * 13}, "12"),
        ({"effects": [0.0]}, "zero"),
        ({"candidates": 1, "effects": [0.1, 0.2]}, "candidates"),
        ({"chance": 1}, "chance"),
        ({"sigma": 0}, "sigma"),
        ({"schema": {"x": (0, 1)}}, "formula"),
        ({"formula": "y ~ x"}, "schema"),
        ({"penalty": "bic"}, "sigma2"),
        ({"penalty": -1}, "penalty"),
        ({"mechanism": "gaussian"}, "mechanism"),
        ({"sd": {"z": 1}}, "sd names 'z'"),
        ({"n": None, "effects": 1e-9}, "no n up to"),
        ({"eps": None, "n": 4, "effects": 1e-3, "penalty": 5}, "no eps up to"),
        ({"effects": None}, "effects"),
        ({"effects": 1e-200}, "effects"),
        ({"effects": "1e390"}, "effects"),
        ({"effects": {"a": "x"}}, "effects"),
        ({"sigma": 1e-200}, "sigma"),
        ({"sigma": "1e390"}, "sigma"),
        ({"chance": "high"}, "chance"),
        ({"chance": None}, "chance"),
        ({"chance": "0.99999999999999999999"}, "chance"),
        ({"n": 10**390}, "n must be at most"),
        ({"eps": "1e-390"}, "eps"),
        ({"eps": "1e390"}, "eps"),
        ({"candidates": 1001}, "candidates"),
        ({"sd": 0.5}, "sd must be a mapping"),
        ({"sd": "x"}, "sd must be a mapping"),
        ({"sd": {"x1": 1e-200}}, "sd"),
        ({"radius": "1e-300"}, "radius"),
        ({"radius": "1e390"}, "radius"),
        ({"clip": "1e-300"}, "clip"),
        ({"center": 5}, "center"),
        ({"keep": ("x1",)}, "keep"),
        ({"keep": 5}, "keep"),
        ({"max_terms": "x"}, "max_terms"),
        ({"max_terms": -1}, "max_terms"),
        ({"max_terms": 1, "effects": [0.1, 0.2]}, "max_terms=1 leaves no room for 2"),
        ({"penalty": "x"}, '"auto", "bic" or a finite number'),
        ({"penalty": "1e300"}, "penalty"),
        ({"sigma2": "private"}, "sigma2"),
        ({"sigma2": "1e300"}, "sigma2"),
        ({"contributions": 10**390}, "contributions"),
        ({"of": "glm"}, "of must be"),
        ({"method": "gram"}, "method must be"),
        ({"of": "ols", "method": "pcls"}, "method must be"),
        ({"of": "ols", "penalty": 1}, 'of="ols" has no penalty'),
        ({"of": "ols", "effects": [0.1] * 201}, "200"),
        ({"of": "ols", "effects": 0, "eps": None}, "without an effect"),
        ({"method": "adaptive", "radius": 2}, 'method="adaptive" has no radius'),
        ({"method": "pcls", "fit": "fresh"}, 'fit="fresh" needs'),
        ({"delta": 1}, "delta"),
        ({"method": PCLS(draws=3)}, "a plan is of one draw"),
        ({"correlation": 1}, "correlation"),
        ({"correlation": -0.1}, "correlation"),
        ({"like": {"x": [1.0]}}, "without a formula has no like"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    call = {"effects": 0.1, "sigma": 0.2, "n": 100, "eps": 1, **changes}
    with pytest.raises(ArgumentError, match=message):
        plan(call.pop("effects"), **call)


def test_numbers_of_every_kind_are_one_effect():
    for one in (0.2, np.float32(0.2), Fraction(1, 5), Decimal("0.2"), "0.2"):
        assert plan(one, n=3_000, eps=1, **FACTS).found == pytest.approx(
            plan([0.2], n=3_000, eps=1, **FACTS).found, abs=1e-6
        )


@pytest.mark.parametrize("changes", [{"n": 0}, {"n": "x"}, {"eps": -1}, {"eps": "1e390"}])
def test_another_n_or_eps_is_checked_as_well(changes):
    with pytest.raises(ArgumentError, match=next(iter(changes))):
        plan(0.2, n=100, eps=1, **FACTS).at(**changes)


@pytest.mark.parametrize(
    "mechanism",
    ["permute-and-flip", pytest.param("exponential", marks=pytest.mark.audit), "laplace"],
)
def test_the_page_of_a_thousand_candidates_is_printed(mechanism):
    found = plan(
        0.2, n=10**6, eps=1, sigma=0.25, candidates=1_000, method=PCLS(mechanism=mechanism)
    )
    assert "e+301" in str(found)
    assert found.found > 0.99


def test_no_model_is_counted_that_max_terms_excludes():
    few = plan({"a": 0.2}, n=4_000, eps=1, max_terms=2, **FACTS)
    assert few.stated.models == 1 + 10 + 45
    assert plan({"a": 0.2}, n=4_000, eps=1, max_terms=99, **FACTS).stated.models == 2**10


def test_max_terms_must_hold_the_effects_of_a_formula(area):
    with pytest.raises(ArgumentError, match="max_terms=1 leaves no room for 2"):
        plan(
            {"bsqft": 0.12, "lat": 5},
            sigma=1,
            n=99,
            eps=1,
            formula=area.formula,
            schema=area.schema,
            max_terms=1,
        )


@pytest.mark.parametrize("bounds", [(0, 1e-100), (0, 1e100)])
def test_effects_out_of_all_proportion_to_the_bounds_are_refused(bounds):
    with pytest.raises(ArgumentError, match="proportion"):
        plan(0.1, sigma=1, n=9, eps=1, formula="y ~ x1", schema={"x1": bounds, "y": (0, 1)})


def test_one_column_by_two_names_is_refused():
    schema = {"g": ["u", "v"], "y": (0, 1)}
    with pytest.raises(ArgumentError, match="twice"):
        plan({"g": 0.1, "g[T.v]": 0.2}, sigma=1, n=9, eps=1, formula="y ~ g", schema=schema)


def test_the_noisy_count_of_add_remove_is_paid_for():
    """`dp_select` buys it where sigma2 is given and n is private: a fiftieth of eps."""
    facts = {"n": 4_000, "eps": 1, "neighbors": "add-remove", **FACTS}
    plain, priced = plan(0.2, **facts), plan(0.2, sigma2=0.0625, **facts)
    assert priced.paper.rate == pytest.approx(0.98 * plain.paper.rate)
    assert plan(0.2, sigma2=0.0625, penalty=1, **facts).paper.rate == plain.paper.rate
    shared = plan(0.2, sigma2=0.0625, fit="share", **facts)
    assert shared.paper.rate == pytest.approx(0.49 * plain.paper.rate)


def test_unknown_columns_are_named(area):
    with pytest.raises(ArgumentError, match=r"county\[T.ala\]"):
        plan({"county": 1}, sigma=1, n=9, eps=1, formula=area.formula, schema=area.schema)


# ---- the picture --------------------------------------------------------------------------------


@pytest.mark.parametrize(("over", "facts"), [("n", {"n": 10**18}), ("eps", {"eps": "1e30"})])
def test_the_picture_ends_where_plans_do(over, facts):
    pytest.importorskip("matplotlib").use("agg")
    plan(0.2, **({"n": 100, "eps": 1} | facts), **FACTS).plot(over)


def test_the_picture_marks_the_plan():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    found = plan({"a": 0.2, "$b$": 0.1}, eps=1, chance=0.9, **FACTS)
    axes = found.plot()
    assert axes.get_xlabel() == "rows n"
    assert "no data" in axes.get_title()
    point = axes.lines[-1]
    assert point.get_xdata()[0] == found.n
    assert point.get_ydata()[0] == found.found
    together = next(line for line in axes.lines if line.get_label() == "all of them")
    assert (np.diff(together.get_ydata()) > -1e-9).all()
    axes.figure.canvas.draw()
    assert found.plot("eps").get_xlabel() == "eps of the whole call"
    with pytest.raises(ArgumentError, match="over"):
        found.plot("time")
    pyplot.close("all")
