"""Results that dpreg 0.1 and 0.2 saved still load, say the same, and predict.

Those of 0.2 are written, and said how, by ``write_saved_0_2.py`` beside this file. Beside each lies
the page that 0.2 printed; a page may gain lines since (a note), and lose or change none.

Those of 0.1 were written by dpreg 0.1.0 from 4,000 rows of `dpreg.datasets.load_randhie`, each by
one call with ``unsafe_seed=1``: `dp_ols` (K-norm, AdaSSP), `dp_select` (split fit; five draws under
add-remove), `dp_mean` and `dp_histogram`.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from results import write_saved_0_2 as written

import dpreg
from dpreg.errors import LedgerError, NotReleased
from dpreg.results.report import report_html

OLD_LOOKS = "Intervals of 0.2's looks often do not hold the fit without privacy."
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


def said() -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((written.FOLDER / "said.json").read_text())
    return answers


def missing(before: str, now: str) -> list[str]:
    """Return the lines of one text that another does not hold in their order."""
    lines = iter(now.splitlines())
    return [line for line in before.splitlines() if line not in lines]


def test_every_kind_of_0_2_was_saved() -> None:
    packed = {path.name.partition(".")[0] for path in written.FOLDER.glob("*.json.gz")}
    assert packed == set(said()) == set(written.CALLS)
    results = [written.saved(name) for name in packed]
    assert {result.kind for result in results} == {
        *("classic", "glm", "glm-selection", "histogram", "regression", "selection"),
    }
    assert {r.method for r in results if r.kind in ("regression", "selection")} == {
        *("staged", "gram", "objective", "ssp", "adassp", "pcls", "pcpl"),
    }
    assert {r.family for r in results if r.kind == "glm"} == {
        *("binomial", "poisson", "quasipoisson"),
    }


def lost(saved: dict[str, Any], again: dict[str, Any]) -> set[str]:
    """Return the fields that are not as they were; further ones may have come."""
    return {field for field in saved if saved[field] != again.get(field)}


@pytest.mark.parametrize("name", written.CALLS)
def test_intervals_of_the_looks_of_0_2_have_a_line_that_says_how_they_fared(name: str) -> None:
    result = written.saved(name)
    fit = result if result.kind in ("regression", "glm") else getattr(result, "regression", None)
    looked = fit is not None and fit.method == "staged" and not fit.bse.isna().all()
    whole = str(result.summary(full=True))
    for page in (whole, report_html(result).replace("&#x27;", "'")):
        assert " ".join(page.split()).count(OLD_LOOKS) == looked
    assert (OLD_LOOKS in str(result)) == looked  # it is severe
    before = (written.FOLDER / f"{name}.txt").read_text()
    more = Counter(whole.splitlines()) - Counter(before.splitlines())
    opened = ("Found", "Cost", "Unclear", " ") if result.kind == "glm" else ()
    assert [line for line in more if not line.startswith(opened) and OLD_LOOKS not in line] == []


@pytest.mark.parametrize("name", written.CALLS)
def test_a_result_of_0_2_prints_as_it_did(name: str) -> None:
    result = written.saved(name)
    before = (written.FOLDER / f"{name}.txt").read_text()
    assert missing(before, str(result.summary(full=True))) == []
    assert "NOT PRIVATE" in result.summary().as_latex()
    assert "NOT PRIVATE" in result.summary().as_html()
    assert "NOT PRIVATE" in report_html(result)


@pytest.mark.parametrize("name", written.CALLS)
def test_a_result_of_0_2_predicts_as_it_did(name: str) -> None:
    now, before = written.said(written.saved(name)), said()[name]
    assert set(now) == set(before)
    for asked, answer in before.items():
        if isinstance(answer, str):
            assert now[asked] == answer
        else:
            np.testing.assert_allclose(now[asked], answer, rtol=1e-7, atol=1e-8, err_msg=asked)


@pytest.mark.parametrize("name", written.CALLS)
def test_a_result_of_0_2_is_saved_again_with_all_that_it_held(name: str) -> None:
    payload = gzip.decompress((written.FOLDER / f"{name}.json.gz").read_bytes())
    saved, again = json.loads(payload), written.saved(name).to_dict()
    if "alternatives" in saved:  # by term then, in groups now; none of these has any
        assert (saved.pop("alternatives"), again.pop("alternatives")) == ({}, [])
    fitted = saved.pop("regression", None)
    if fitted is not None:
        assert lost(fitted, again["regression"]) == set()
    assert lost(saved, again) <= {"dpreg"}


def test_a_ledger_of_0_2_opens_verifies_and_is_charged(tmp_path: Path) -> None:
    told = json.loads((written.FOLDER / "ledger.json").read_text())
    path = tmp_path / "ledger.db"
    path.write_bytes(gzip.decompress((written.FOLDER / "ledger.db.gz").read_bytes()))
    ledger = dpreg.Ledger.open(path)
    assert ledger.verify(told["head"]).entries == 3
    assert (ledger.identity, str(ledger.spent)) == (told["identity"], told["spent"])
    with pytest.raises(LedgerError):  # it is a copy
        ledger.charge(dpreg.Budget(1), "before it is adopted")
    ledger.adopt("unpacked for a test")
    ledger.charge(dpreg.Budget(1), "a mean", analyst="ben")
    with pytest.raises(dpreg.errors.BudgetError):
        ledger.charge(dpreg.Budget(2), "more than ben has left", analyst="ben")
    assert ledger.verify(told["head"]).entries == 5
    ledger.close()


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
    text = " ".join(str(result.summary(full=True)).split())
    for words in ("One of: {copy, a}", "stability", "0.39", "given the choice"):
        assert words in text
    assert "level" not in text
    with pytest.raises(NotReleased, match="t_test is not released"):
        result.t_test("b = 0")
    assert dpreg.load(path).to_dict() == result.to_dict()
    assert dpreg.results.base.from_json(result.to_json()) == result
