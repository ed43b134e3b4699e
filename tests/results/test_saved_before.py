"""Results that dpreg 0.1 and 0.2 saved still load, say the same, and predict.

The files of 0.1 were written by dpreg 0.1.0 from 4,000 rows of `dpreg.datasets.load_randhie`, each
by one call with ``unsafe_seed=1``: `dp_ols` (K-norm, AdaSSP), `dp_select` (split fit; five draws
under add-remove), `dp_mean` and `dp_histogram`.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import dpreg
from dpreg.errors import NotReleased

FOLDER = Path(__file__).parent / "saved-0.1"
SAVED = sorted(FOLDER.glob("*.json"), key=lambda path: path.name)


def test_every_kind_was_saved() -> None:
    kinds = {json.loads(path.read_text())["kind"] for path in SAVED}
    assert {"regression", "selection", "histogram"} <= kinds
    assert len(SAVED) == 6


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_a_result_of_0_1_loads(path: Path) -> None:
    saved = json.loads(path.read_text())
    assert saved["dpreg"] == "0.1"
    result = dpreg.load(path)
    assert "NOT PRIVATE" in str(result.summary())
    again = result.to_dict()
    changed = {name for name in saved if saved[name] != again[name]}
    assert changed <= {"dpreg", "privacy", "claim", "regression"}
    assert {**again["claim"], "person": None} == {**saved["claim"], "person": None}
    assert result.spent == dpreg.load(path).spent


def test_its_numbers_are_those_that_were_saved() -> None:
    saved = json.loads((FOLDER / "ols-knorm.json").read_text())
    fit = dpreg.load(FOLDER / "ols-knorm.json")
    assert fit.params.tolist() == saved["coefficients"]
    rows = dpreg.datasets.load_randhie().data.head(5)
    assert np.isfinite(fit.predict(rows)).all()
    assert np.isfinite(fit.conf_int()).to_numpy().all()
    chosen = dpreg.load(FOLDER / "select-split.json")
    inner = json.loads((FOLDER / "select-split.json").read_text())["regression"]
    assert chosen.params.tolist() == inner["coefficients"]


def test_a_choice_of_0_2_shows_its_stability_and_its_laws_given_the_choice() -> None:
    """By dpreg 0.2: `dp_select(..., method="staged", fit="same")`, of a, a copy of it, and b."""
    path = Path(__file__).parent / "saved-0.2" / "select-same.json"
    saved, result = json.loads(path.read_text()), dpreg.load(path)
    assert result.alternatives == (("copy", "a"),)
    assert result.stability.to_dict() == saved["chosen_again"]
    with pytest.raises(NotReleased, match="level"):
        _ = result.level
    assert len(result.regression.conditional) == 3
    assert result.conf_int().loc["b"].tolist() == pytest.approx([-0.521233, -0.484389], abs=1e-6)
    assert result.pvalues["Intercept"] == pytest.approx(0.692, abs=1e-3)
    text = " ".join(str(result.summary()).split())
    for words in ("One of: {copy, a}", "stability", "0.39", "given the choice"):
        assert words in text
    assert "level" not in text
    with pytest.raises(NotReleased, match="t_test is not released"):
        result.t_test("b = 0")
    assert dpreg.load(path).to_dict() == result.to_dict()
    assert dpreg.results.load.from_json(result.to_json()) == result
