import dataclasses
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

import dpreg
from dpreg.errors import ArgumentError, NotReleased
from dpreg.privacy.budget import BudgetTable, Spend
from dpreg.results.base import from_json, load
from dpreg.results.claim import STAMP, PrivacyClaim
from dpreg.results.classic import ClassicResults, HistogramResults
from dpreg.results.saved import fields_of


def claim(seeded=False):
    spends = BudgetTable((Spend("mean", "discrete laplace", Fraction(1, 10)),))
    return PrivacyClaim(neighbors="replace-one", contributions=1, spends=spends, seeded=seeded)


def classic(seeded=False, **changes):
    fields = {
        "statistic": "mean",
        "names": ("a", "b"),
        "estimates": [1.0, -2.0],
        "sampling_errors": [0.3, 0.6],
        "privacy_errors": [0.4, 0.8],
        "bounds": {"a": [0, 9], "b": [-5, 5]},
        "counts": [99.5],
        "nobs": 100,
        "noise": "laplace",
        "eps": "0.1",
        "delta": 0,
        "claim": claim(seeded),
    }
    return ClassicResults(**(fields | changes))


def histogram(seeded=False, **changes):
    fields = {
        "column": "x",
        "edges": [0.0, 1.0, 3.0],
        "binning": "given",
        "estimates": [0.25, 0.75],
        "sampling_errors": [0.03, 0.03],
        "privacy_errors": [0.04, 0.04],
        "bin_counts": [25.0, 75.0],
        "probabilities": [0.25, 0.75],
        "nobs": None,
        "noise": "laplace",
        "eps": Fraction(1),
        "delta": 0,
        "claim": claim(seeded),
    }
    return HistogramResults(**(fields | changes))


GROUPED = {
    "by": "g",
    "groups": ("u", "v"),
    "estimates": [1.0, 2.0, 3.0, 4.0],
    "sampling_errors": [1.0] * 4,
    "privacy_errors": [1.0] * 4,
    "counts": [5.0, 6.0],
}


@pytest.mark.parametrize("kind", [ClassicResults, HistogramResults])
def test_every_field_has_a_codec(kind):
    assert set(fields_of(kind)) == {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        classic,
        lambda seeded: classic(seeded, **GROUPED),
        lambda seeded: classic(seeded, lower=[0.0, -4.0], upper=[2.0, 0.0], alpha=0.1, counts=None),
        lambda seeded: classic(seeded, sufficient=[99.5, 5.0], sufficient_names=("n", "sum x")),
        histogram,
        lambda seeded: histogram(seeded, edges=None, levels=("no", "yes")),
    ],
)
def test_a_file_gives_an_equal_result(make, seeded, tmp_path):
    result = make(seeded)
    result.save(tmp_path / "result.json")
    again = load(tmp_path / "result.json")
    assert again == result
    assert str(again) == str(result)
    assert pickle.loads(pickle.dumps(result)) == result
    assert from_json(json.dumps(json.loads(result.to_json()))) == result
    for text in (str(result), repr(result), result.to_json(), result.summary().as_html()):
        assert (STAMP in text) == seeded
    assert (result.params.attrs.get("privacy") == STAMP) == seeded
    result.summary().as_latex()


def test_both_parts_of_the_error_make_the_interval():
    result = classic()
    np.testing.assert_allclose(result.bse, [0.5, 1.0])
    assert result.bse_sampling["a"] == 0.3
    assert result.bse_privacy["b"] == 0.8
    np.testing.assert_allclose(
        result.conf_int().loc["a"], 1 + np.array([-1, 1]) * 0.979982, rtol=1e-6
    )
    assert (str(result.spent), result.complete_rows["all"]) == ("eps=0.1", 99.5)
    assert result.budget["eps"].tolist() == ["0.1"]


def test_released_ends_are_kept_and_stretched_to_another_level():
    bounds = {"a": [-9, 9], "b": [-5, 5]}
    result = classic(lower=[0.0, -4.0], upper=[3.0, -1.0], alpha=0.05, bounds=bounds)
    assert result.conf_int().to_numpy().tolist() == [[0.0, 3.0], [-4.0, -1.0]]
    wider = result.conf_int(0.01).loc["a"]
    assert wider[0] == pytest.approx(1 - 2.5758 / 1.96, abs=1e-4)
    assert wider[1] == pytest.approx(1 + 2 * 2.5758 / 1.96, abs=1e-4)


def test_groups_are_an_index():
    result = classic(**GROUPED)
    assert result.params["v", "a"] == 3.0
    assert list(result.params.index.names) == ["g", None]
    assert result.complete_rows["v"] == 6.0
    one = classic(**(GROUPED | {"names": ("a",), "estimates": [1, 2], "sampling_errors": [1, 1],
                                "privacy_errors": [1, 1]}))  # fmt: skip
    assert one.params["v"] == 2.0
    assert one.params.index.name == "g"


def test_what_is_not_released_says_so():
    result = classic(counts=None)
    with pytest.raises(NotReleased, match="complete_rows"):
        _ = result.complete_rows
    with pytest.raises(NotReleased, match="sufficient"):
        _ = result.sufficient_statistics
    table = classic(sufficient=[99.5, 5.0], sufficient_names=("n", "sum x")).sufficient_statistics
    assert table.loc["all", "sum x"] == 5.0


@pytest.mark.parametrize(
    "changes",
    [
        {"estimates": [1.0]},
        {"lower": [0.0, 0.0]},
        {"counts": [1.0, 2.0]},
        {"sufficient": [1.0], "sufficient_names": ("n", "sum x")},
        {"groups": ("u", "v")},
        {"eps": "nan"},
    ],
)
def test_fields_that_do_not_fit_are_refused(changes):
    with pytest.raises(ArgumentError):
        classic(**changes)


@pytest.mark.parametrize(
    "changes",
    [{"edges": [0.0, 0.0, 1.0]}, {"edges": None}, {"levels": ("a", "b")}, {"edges": [0.0, 1.0]}],
)
def test_bins_that_do_not_fit_are_refused(changes):
    with pytest.raises(ArgumentError):
        histogram(**changes)


def test_results_are_frozen():
    result = classic()
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.nobs = 3
    with pytest.raises(ValueError, match="read-only"):
        result.estimates[0] = 3
    taken = result.params
    taken.iloc[0] = 9
    assert result.params["a"] == 1.0


def test_density_divides_by_widths():
    result = histogram()
    assert result.density.tolist() == [0.25, 0.375]
    assert result.counts.tolist() == [25.0, 75.0]
    assert list(result.params.index) == ["[0, 1)", "[1, 3]"]
    levels = histogram(edges=None, levels=("no", "yes"))
    assert levels.density["yes"] == 0.75


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"edges": None, "levels": ("$a^$", "b")},
        {**GROUPED, "counts": None, "bin_counts": [1, 2, 3, 4], "probabilities": [0.5] * 4},
        {
            "edges": np.linspace(0, 1, 91), "estimates": np.full(90, 1 / 90),
            "sampling_errors": np.zeros(90), "privacy_errors": np.zeros(90),
            "bin_counts": np.ones(90), "probabilities": np.full(90, 1 / 90),
        },
    ],
)  # fmt: skip
def test_pictures(changes, seeded):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    changes = {name: value for name, value in changes.items() if name != "counts"}
    axes = histogram(seeded, **changes).plot()
    axes.figure.canvas.draw()
    assert (STAMP in axes.get_title()) == seeded
    pyplot.close("all")


def test_a_summary_of_many_numbers_is_a_page():
    names = tuple(f"x{i}" for i in range(5))
    result = classic(names=names, estimates=np.arange(5), sampling_errors=np.ones(5),
                     privacy_errors=np.ones(5), blocks=40, counts=None,
                     notes=("Public.",))  # fmt: skip
    text = str(result.summary(full=True))
    assert "x4" in str(result)
    assert "x4" in text
    assert "Blocks:" in text
    assert "Public." in text
    assert isinstance(result.params, pd.Series)


def test_a_histogram_of_many_bins_prints_shares_as_fine_as_their_errors():
    empty = np.append(np.full(29, -4e-5), 1.0)
    result = histogram(
        edges=np.linspace(0, 1, 31), estimates=empty, probabilities=np.maximum(empty, 0),
        sampling_errors=np.zeros(30), privacy_errors=np.full(30, 2e-4), bin_counts=np.ones(30),
    )  # fmt: skip
    text = str(result)
    assert text.count(" -0.00004    0.00020") == 29
    assert "e-05" not in text
    assert "1.00000    0.00020 ####" in text
    text = str(result.summary(full=True))
    assert "last two columns" not in text
    assert "conf_int() has the intervals" in " ".join(text.split())


def test_released_ends_that_are_stretched_stay_within_the_bounds_and_say_so():
    data = np.random.default_rng(0).uniform(0, 1, 400)
    result = dpreg.dp_quantile(data, q=0.5, eps=1, bounds=(0, 1), unsafe_seed=1)
    limits = result.conf_int(1e-12).to_numpy()
    assert limits[0, 0] == 0.0
    assert limits[0, 1] <= 1.0
    assert "assumes no law" in " ".join(str(result.summary(full=True)).split())
    told = " ".join(str(result.summary(0.001, full=True)).split())
    assert "assumes no law" not in told
    assert "stretched to this level as a normal one would be and cut at the bounds" in told


def two_factors(seed, n=600):
    """Rows of two factors that do not depend on one another."""
    rng = np.random.default_rng(seed)
    levels = rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1]), rng.choice(list("uv"), n, p=[0.3, 0.7])
    return pd.DataFrame({"g": levels[0], "h": levels[1]})


def test_without_noise_the_association_is_pearson_s_chi_square():
    data = two_factors(1)
    data.loc[:80, "g"] = np.where(data["h"][:81] == "u", "a", "c")
    schema = {"g": list("abc"), "h": list("uv")}
    found = dpreg.dp_histogram("g", data, by="h", eps=1e5, schema=schema, unsafe_seed=1)
    test = found.test_nominal_association()
    statistic, pvalue, degrees, _ = chi2_contingency(pd.crosstab(data["h"], data["g"]))
    assert (test.statistic, test.pvalue) == pytest.approx((statistic, pvalue), rel=1e-3)
    assert test.df_constraints == degrees == 2
    assert STAMP in str(test)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_null_of_an_association_knows_the_noise(noise):
    """Of 120 tables without one, about 6 are found at .05; Pearson's test finds most of them."""
    schema = {"g": list("abc"), "h": list("uv")}
    call = {"by": "h", "eps": 0.3, "delta": 1e-6, "noise": noise, "schema": schema}
    own, theirs = [], []
    for seed in range(120):
        found = dpreg.dp_histogram("g", two_factors(seed), unsafe_seed=seed, **call)
        own.append(found.test_nominal_association().pvalue)
        counts = np.maximum(found.bin_counts.reshape(2, 3), 1)
        theirs.append(chi2_contingency(counts)[1])
    assert 1 <= np.sum(np.array(own) < 0.05) <= 14
    assert np.sum(np.array(theirs) < 0.05) > 24


def test_an_association_takes_groups_that_the_noise_does_not_hide():
    with pytest.raises(NotReleased, match="takes two factors"):
        histogram().test_nominal_association()
    schema = {"g": list("abc"), "h": list("uv")}
    hidden = dpreg.dp_histogram(
        "g", two_factors(1, 20), by="h", eps=0.01, schema=schema, unsafe_seed=1
    )
    with pytest.raises(NotReleased, match="the noise hides"):
        hidden.test_nominal_association()
