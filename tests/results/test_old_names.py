"""Names of dpreg 0.1 that still read, each with a warning that gives the new one."""

from dataclasses import replace

import numpy as np
import pytest

import dpreg
from dpreg.results.classic import ClassicResults
from dpreg.results.histogram import HistogramResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

RAND = dpreg.datasets.load_randhie()
OLD = {
    RegressionResults: {
        "r_squared": "rsquared",
        "residual_df": "df_resid",
        "residual_variance": "scale",
        "se_privacy": "bse_privacy",
        "se_sampling": "bse_sampling",
    },
    ClassicResults: {"se_privacy": "bse_privacy", "se_sampling": "bse_sampling"},
    HistogramResults: {"se_privacy": "bse_privacy", "se_sampling": "bse_sampling"},
    SelectionResults: {"chosen": "selected", "chosen_again": "stability"},
}
CASES = [(kind, old, new) for kind, names in OLD.items() for old, new in names.items()]


@pytest.fixture(scope="module")
def results():
    shared = {"schema": RAND.schema, "unsafe_seed": 1}
    made = [
        dpreg.dp_select("mdvis ~ disea + lpi", RAND.data, eps=20, method="adaptive", **shared),
        dpreg.dp_ols("mdvis ~ disea + lpi", RAND.data, eps=1, method="gram", **shared),
        dpreg.dp_mean("disea", RAND.data, eps=1, **shared),
        dpreg.dp_histogram("disea", RAND.data, eps=1, bins=9, **shared),
    ]
    # Stability is what 0.2 had in the place of levels: files of it still show it.
    made[0] = replace(made[0], levels={}, choice_errors={}, stabilities={"disea": 1.0, "lpi": 0.4})
    return {type(one): one for one in made}


@pytest.mark.parametrize(("kind", "old", "new"), CASES)
def test_an_old_name_reads_and_warns_once_with_the_new_one(results, kind, old, new):
    result = results[kind]
    says = rf"^{old} is now called {new}; the old name will be removed in dpreg 0\.3$"
    with pytest.warns(DeprecationWarning, match=says) as told:
        before = getattr(result, old)
    assert len(told) == 1
    assert told[0].filename == __file__
    now = getattr(result, new)
    if isinstance(before, dict):
        before = list(before.values())
    assert list(np.atleast_1d(before)) == list(np.atleast_1d(now))


@pytest.mark.parametrize("kind", OLD)
def test_nothing_of_the_package_reads_an_old_name(results, kind, tmp_path):
    """Warnings are errors here: every view of a result is made without one."""
    result = results[kind]
    assert str(result.summary())
    assert result.summary().as_html()
    assert result.summary().as_latex()
    result.save(tmp_path / "result.json")
    assert dpreg.load(tmp_path / "result.json") == result
    assert replace(result, notes=("other",)).notes == ("other",)
    assert result._repr_html_()
    dpreg.write_report(result, tmp_path / "report.html")


@pytest.mark.parametrize("kind", OLD)
def test_saved_results_keep_their_keys(results, kind):
    saved = results[kind].to_dict()
    assert set(OLD[kind]) <= set(saved)
    assert not set(kind.saved_as) & set(saved)
    assert set(kind.saved_as.values()) == set(OLD[kind])


def test_selections_without_looks_have_no_stability(results):
    result = dpreg.dp_select(
        "mdvis ~ disea", RAND.data, eps=1, schema=RAND.schema, method="pcls", unsafe_seed=1
    )
    with pytest.raises(dpreg.errors.NotReleased):
        _ = result.stability
    with pytest.warns(DeprecationWarning, match="stability"):
        assert result.chosen_again == {}
