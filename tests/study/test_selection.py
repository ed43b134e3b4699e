"""Selection studies: exact laws against the real mechanism, the paper's tables, and every stamp."""

import copy
import dataclasses
import pickle
import time
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.bounds import score_range
from oracles.design_rows import blocks
from scipy.stats import chi2

from dpreg import datasets, dp_select
from dpreg.errors import ArgumentError
from dpreg.options import PCLS
from dpreg.privacy.mechanisms.choice import choose
from dpreg.selection.draws import Enumerated
from dpreg.study.results import CURATOR_ONLY
from dpreg.study.selection import selection_study

PROSTATE = ("lcavol", "lweight", "age", "lcp", "lbph")
TOP = 5.583  # max |lpsa|, the paper's r


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (400, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["y"] = 0.4 * x[:, 0] - 0.2 * x[:, 1] + 0.2 * rng.standard_normal(400)
    return frame, dict.fromkeys([*"abcd", "y"], (-1, 1))


@pytest.fixture(scope="module")
def studied(table):
    data, schema = table
    return selection_study(
        "y ~ a + b + c + d",
        data,
        schema=schema,
        eps=(1, 5),
        method=PCLS(
            radius=(0.5, 1),
            penalty=(0, 2, "auto"),
            mechanism=("laplace", "permute-and-flip", "exponential"),
        ),
    )


def _fit(observed, expected):
    """Chi-square p-value; cells with fewer than five expected are pooled."""
    few = expected < 5
    cells = np.append(observed[~few], observed[few].sum())
    means = np.append(expected[~few], expected[few].sum())
    cells, means = cells[means > 0], means[means > 0]
    return chi2.sf(((cells - means) ** 2 / means).sum(), max(len(cells) - 1, 1))


# ---- against the real mechanism -----------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "laplace"])
def test_exact_chances_are_those_of_real_draws(table, mechanism):
    """The draws are OpenDP's, from the operating system's entropy, of scores made by the engine."""
    count = 1500 if mechanism == "laplace" else 5000  # laplace is slow; the audit draws 5,000
    data, schema = table
    study = selection_study(
        "y ~ a + b + c + d", data, schema=schema, eps=5, method=PCLS(penalty=1, mechanism=mechanism)
    )
    scores = _totals(data, schema, penalty=Fraction(1))
    draws = [
        choose(
            scores,
            eps=Fraction(5),
            score_range=score_range(Fraction(1), "replace-one", 1),
            mechanism=mechanism,
        )
        for _ in range(count)
    ]
    observed = np.bincount(draws, minlength=16)
    assert _fit(observed, count * study.law.probabilities[:, 0]) > 1e-6


def _totals(data, schema, penalty):
    from dpreg.formula.design import build_design
    from dpreg.moments import accumulate
    from dpreg.privacy.budget import Budget
    from dpreg.privacy.composition import plan_draws
    from dpreg.privacy.protection import Protection
    from dpreg.selection.contest import least_squares_contest
    from dpreg.selection.scoring.problem import Problem
    from dpreg.selection.space import build_space
    from dpreg.sources import as_source

    design = build_design("y ~ a + b + c + d", schema)
    space = build_space(design.terms, tuple(column.name for column in design.columns))
    moments = accumulate(blocks(design, as_source(data)), len(design.columns) + 1)
    plan = plan_draws(1, Budget(1), contributions=1)
    contest = least_squares_contest(Fraction(1), Protection("replace-one")).priced(
        penalty, Fraction(0), space
    )
    return Enumerated(Problem(moments, Fraction(1)), space, contest, plan).scores


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "laplace"])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_exact_chances_are_those_of_5000_calls_of_dp_select(table, mechanism, neighbors):
    data, schema = table
    facts = {"schema": schema, "penalty": "auto", "mechanism": mechanism, "neighbors": neighbors}
    study = selection_study("y ~ a + b + c + d", data, eps=3, contributions=2, **facts)
    names = {name: i for i, name in enumerate(study.models)}
    observed = np.zeros(len(names))
    for _ in range(5000):
        drawn = dp_select("y ~ a + b + c + d", data, 3, fit=None, contributions=2, **facts)
        observed[names[" + ".join(["1", *drawn.selected[1:]])]] += 1
    assert _fit(observed, 5000 * study.law.probabilities[:, 0]) > 1e-6


def test_the_tree_draws_what_the_list_computes(table):
    data, schema = table
    facts = {"schema": schema, "eps": 4, "penalty": ("auto", 1), "radius": 1}
    formula = "y ~ a + b + c + d"
    for mechanism in ("permute-and-flip", "exponential"):
        exact = selection_study(formula, data, mechanism=mechanism, **facts)
        drawn = selection_study(
            formula, data, mechanism=mechanism, engine="tree", draws=150, seed=1, **facts
        )
        assert exact.exact
        assert not drawn.exact
        gap = (exact.frequencies - drawn.frequencies).abs()
        chance = exact.frequencies
        spread = np.sqrt(chance * (1 - chance) / 150)
        assert (gap <= 4.5 * spread + 1 / 150).all(axis=None)
        # The errors that the study states are those; where draws all agree it states zero.
        assert ((drawn.frequency_errors - spread).abs() <= 0.5 * spread + 1 / 150).all(axis=None)
        both = [study.agreement for study in (exact, drawn)]
        for name in ("same score", "bic"):
            assert both[0][f"{name}'s choice"].equals(both[1][f"{name}'s choice"])
            far = (both[0][name] - both[1][name]).abs() - 4.5 * both[1][f"{name} se"]
            assert far.max() <= 1 / 50
        fits = [study.relative_rsquared for study in (exact, drawn)]
        assert fits[0]["bic"].iloc[0] == pytest.approx(fits[1]["bic"].iloc[0], rel=1e-9)
        far = (fits[0]["relative"] - fits[1]["relative"]).abs() - 4.5 * fits[1]["relative se"]
        assert far.max() <= 0.01


# ---- what the views hold ------------------------------------------------------------------------


def test_chances_add_up(studied):
    np.testing.assert_allclose(studied.law.probabilities.sum(axis=0), 1, atol=1e-9)
    assert studied.top().shape == (16, 36)
    assert studied.probabilities.shape == (16, 36)
    np.testing.assert_allclose(studied.top().sum(), 1, atol=1e-9)
    assert studied.top(3).shape == (3, 36)
    assert studied.frequency_errors.to_numpy().max() == 0


def test_frequencies_are_sums_of_chances(studied):
    top = studied.top()
    with_a = top[[" a" in name for name in top.index]].sum()
    np.testing.assert_allclose(studied.frequencies.loc["a"], with_a, rtol=1e-12)


def test_agreement_is_the_chance_of_the_choice(studied):
    table, top = studied.agreement, studied.top()
    for at, line in table.iterrows():
        assert line["same score"] == top.loc[line["same score's choice"], at]
        assert line["bic"] == top.loc[line["bic's choice"], at]
    assert set(table["bic's choice"]) == {"1 + a + b"}


def test_bic_is_that_of_least_squares(studied, table):
    data, _ = table
    best, at = np.inf, None
    for k in range(16):
        names = [name for i, name in enumerate("abcd") if k >> i & 1]
        x = np.column_stack([np.ones(400), *(data[name] for name in names)])
        y = data["y"].clip(-1, 1)
        residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        criterion = 400 * np.log((residual**2).sum()) + np.log(400) * x.shape[1]
        if criterion < best:
            best, at = criterion, 1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum()
    assert studied.law.bic_rsquared == pytest.approx(at, abs=1e-5)


def test_relative_rsquared_is_an_expectation(studied):
    fit = studied.relative_rsquared
    np.testing.assert_allclose(fit["relative"] * fit["bic"], fit["expected"])
    generous = fit.xs((5.0, 1.0, 2.0, "permute-and-flip"))
    assert 0.98 < generous["relative"] < 1.02
    assert (fit["relative"] < 1.01).all()


def test_penalties_are_as_charged(studied):
    prices = studied.penalties
    assert (prices.xs(2.0, level="penalty")["phi"] == 2).all()
    auto = prices.xs("auto", level="penalty")
    assert (auto["psi"] > 0).all()
    assert (auto["phi"] == 0).all()


def test_everything_says_curator_only(studied):
    assert CURATOR_ONLY in repr(studied)
    assert CURATOR_ONLY in studied._repr_html_()
    for text in (str(studied), studied.summary().as_latex(), studied.summary().as_csv()):
        assert text.count(CURATOR_ONLY) == 2
    assert studied.privacy == CURATOR_ONLY
    frames = [
        *(studied.probabilities, studied.top(), studied.frequencies, studied.frequency_errors),
        *(studied.agreement, studied.relative_rsquared, studied.penalties),
    ]
    assert all(frame.attrs["privacy"] == CURATOR_ONLY for frame in frames)
    for name in ("agreement", "frequencies", "probabilities", "relative_rsquared"):
        assert studied.to_csv(table=name).startswith(f"# {CURATOR_ONLY}\n")


def test_csv_can_be_read_back(studied, tmp_path):
    studied.to_csv(tmp_path / "study.csv", "agreement")
    back = pd.read_csv(tmp_path / "study.csv", comment="#")
    np.testing.assert_allclose(back["bic"], studied.agreement["bic"])
    with pytest.raises(ArgumentError, match="table"):
        studied.to_csv(table="rows")


@pytest.mark.parametrize("models", [0, -1, "x", 1.5])
def test_a_number_of_models_is_checked(studied, models):
    with pytest.raises(ArgumentError, match="models"):
        studied.top(models)


def test_a_study_is_a_value(studied):
    assert pickle.loads(pickle.dumps(studied)).agreement.equals(studied.agreement)
    assert copy.copy(studied).frequencies.equals(studied.frequencies)
    with pytest.raises(dataclasses.FrozenInstanceError):
        studied.rows = 5


def test_scores_are_computed_once_for_each_radius(table, monkeypatch):
    from dpreg.selection.scoring.problem import Problem

    seen = []
    real = Problem.scores
    monkeypatch.setattr(
        Problem, "scores", lambda self, columns: seen.append(self.rho) or real(self, columns)
    )
    data, schema = table
    grid = {"eps": (1, 2, 3), "radius": (0.5, 1), "penalty": (0, 1), "mechanism": "exponential"}
    selection_study("y ~ a + b + c + d", data, schema=schema, **grid)
    assert sorted(seen) == [Fraction(1, 2), Fraction(1)]


def test_a_progress_bar_only_when_asked(table, capsys):
    data, schema = table
    selection_study("y ~ a", data, schema=schema)
    assert capsys.readouterr() == ("", "")
    selection_study("y ~ a", data, schema=schema, eps=(1, 2), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "2/2" in err


def test_sigma2_and_bic_under_add_remove(table):
    data, schema = table
    study = selection_study(
        "y ~ a + b",
        data,
        schema=schema,
        neighbors="add-remove",
        method=PCLS(penalty=("bic", "auto"), sigma2=0.04),
    )
    np.testing.assert_allclose(study.penalties["phi"], 0.04 * np.log(400))


@pytest.mark.filterwarnings("ignore::dpreg.errors.DpregWarning")  # of the bounds it refuses to buy
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"radius": "private"}, "radius"),
        ({"sigma2": "private"}, "sigma2"),
        ({"eps": ()}, "eps"),
        ({"penalty": "much"}, "penalty"),
        ({"mechanism": "gaussian"}, "mechanism"),
        ({"mechanism": "laplace", "engine": "tree"}, "tree"),
        ({"keep": "a"}, "keep"),
        ({"schema": {"y": (-1, 1)}}, "declare those of a"),
    ],
)
def test_bad_arguments_are_named(table, changes, message):
    data, schema = table
    with pytest.raises(ArgumentError, match=message):
        selection_study("y ~ a", data, **{"schema": schema, **changes})


def test_too_large_a_table_is_refused(table, monkeypatch):
    monkeypatch.setattr("dpreg.study.selection._LARGEST_TABLE", 16 * 3)
    data, schema = table
    formula = "y ~ a + b + c + d"
    selection_study(formula, data, schema=schema, eps=(1, 2, 3))
    with pytest.raises(ArgumentError, match="too many to list"):
        selection_study(
            formula, data, schema=schema, eps=(1, 2, 3, 4), method=PCLS(engine="enumerate")
        )


def test_the_reserved_and_the_degenerate():
    """No free term, no row, a constant response: pages and pictures still come."""
    data = pd.DataFrame({"a": [0.0, 1.0], "y": [0.5, 0.5]})
    schema = {"a": (0, 1), "y": (0, 1)}
    for rows in (data, data.iloc[:0]):
        study = selection_study("y ~ a", rows, schema=schema, method=PCLS(penalty=(0, 1)))
        assert CURATOR_ONLY in str(study)
        study = selection_study("y ~ a", rows, schema=schema, keep=("Intercept", "a"))
        assert study.models == ("1 + a",)
        assert CURATOR_ONLY in str(study)


# ---- the paper's and the slides' tables ---------------------------------------------------------


@pytest.fixture(scope="module")
def prostate(data_folder):
    """As in the paper: every column mapped to [-1, 1] by its own extremes; lpsa as it is."""
    rows = datasets.load_prostate().data
    x = rows[list(PROSTATE)]
    x = 2 * (x - x.min()) / (x.max() - x.min()) - 1
    schema = dict.fromkeys(PROSTATE, (-1, 1)) | {"lpsa": (-TOP, TOP)}
    return x.assign(lpsa=rows["lpsa"]), schema


def _prostate_study(prostate, **changes):
    data, schema = prostate
    return selection_study(
        "lpsa ~ " + " + ".join(PROSTATE), data, schema=schema, center=False, keep=(), **changes
    )


def test_prostate_without_noise_is_the_papers_choice(prostate):
    phi = np.array([0.5, 1, 2, 4, 6, 10, 20, 40])
    study = _prostate_study(
        prostate,
        eps=(1, 5, 10, 50),
        radius=(round(1 / TOP, 6), round(5.68 / TOP, 6)),
        penalty=[round(p / TOP**2, 9) for p in phi],
        mechanism="laplace",
    )
    assert study.n_models == 64
    assert study.kept == ()
    assert set(study.agreement["bic's choice"]) == {"1 + lcavol + lweight"}
    wide = round(5.68 / TOP, 6)
    at = study.agreement.xs(wide, level="radius").xs(5.0, level="eps")
    chosen = at["same score's choice"].to_list()
    assert chosen[1:5] == ["1 + lcavol + lweight"] * 4
    # Too large a penalty does not identify the model, even without noise.
    assert chosen[-1] == "1 + lcavol"
    # Figure 3: utility falls quickly with eps, and is small for usual ones.
    best = study.agreement.xs(wide, level="radius")["bic"].groupby("eps").max()
    assert best.is_monotonic_increasing
    assert best[1.0] < 0.1
    assert best[50.0] > 0.2


def test_king_county_agrees_over_a_large_range_of_penalties(data_folder):
    """Figure 4's claim on other houses: even small eps agree, once phi is large enough."""
    houses = datasets.load_kc_house()
    start = time.perf_counter()
    study = selection_study(
        houses.formula,
        houses.data,
        schema=houses.schema,
        eps=(1, 5),
        method=PCLS(radius=(0.25, 0.5, 1, 3), penalty=(4, 8, 16, 32, 64)),
    )
    assert time.perf_counter() - start < 30
    agree = study.agreement["same score"].unstack("penalty").droplevel("mechanism")
    assert (agree.loc[1.0].loc[[0.5, 1.0], 64.0] > 0.99).all()
    assert (agree.loc[5.0].loc[[0.5, 1.0], [8.0, 16.0, 32.0, 64.0]] > 0.9).all(axis=None)
    # The slides' first table: a small radius costs fit, whatever eps; a fitting one does not.
    fit = study.relative_rsquared["relative"].unstack("penalty").droplevel("mechanism")
    assert (fit.loc[1.0].loc[0.25] < 0.3).all()
    assert (fit.loc[5.0].loc[3.0] > 0.94).all()
    assert fit.loc[5.0].loc[3.0, 4.0] > 0.99
    spread = fit.loc[1.0].loc[0.5] - fit.loc[5.0].loc[0.5]
    assert spread.abs().max() < 0.02
    # The second: strong terms are always in.
    assert study.frequencies.loc["view"].xs(0.5, level="radius").min() > 0.99


def test_simulated_bay_area_in_the_slides_size():
    area = datasets.make_bay_area()
    study = selection_study(
        area.formula,
        area.data,
        schema=area.schema,
        units="column",
        eps=(1, 5),
        method=PCLS(radius=(0.25, 2.5), penalty=(4, 32)),
    )
    assert study.n_models == 8192
    fit = study.relative_rsquared["relative"]
    assert fit.xs(0.25, level="radius").max() < 0.8
    assert fit.xs(2.5, level="radius").min() > 0.9
    sure = study.frequencies.loc[["bsqft", "time"]].xs(5.0, axis=1, level="eps")
    assert sure.xs(2.5, axis=1, level="radius").min(axis=None) > 0.99
