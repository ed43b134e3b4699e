"""Studies of selections by looks: simulated choices on the curator's rows, and every stamp."""

import numpy as np
import pandas as pd
import pytest

from dpreg import dp_select
from dpreg.errors import ArgumentError
from dpreg.study.results import CURATOR_ONLY
from dpreg.study.selection import selection_study

SCHEMA = dict.fromkeys([*"abcd", "y"], (-1, 1))
FORMULA = "y ~ a + b + c + d"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (3_000, 4))
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["y"] = 0.3 * x[:, 0] + 0.022 * x[:, 1] + 0.2 * rng.standard_normal(3_000)
    return frame


@pytest.fixture(scope="module")
def studied(table):
    return selection_study(
        FORMULA, table, schema=SCHEMA, method="adaptive", eps=(1, 4), delta=(0, 1e-6), draws=40
    )


def test_it_tells_what_calls_would_report(table, studied):
    """Frequencies against seeded calls, within four standard errors."""
    calls = 40
    hits = pd.Series(0.0, index=list("abcd"))
    for seed in range(calls):
        found = dp_select(
            FORMULA, table, eps=1, delta=1e-6, schema=SCHEMA, method="adaptive", fit=None,
            unsafe_seed=seed, progress=False,
        )  # fmt: skip
        hits[[name for name in found.selected if name != "Intercept"]] += 1
    measured = hits / calls
    shares = studied.frequencies.iloc[:, 1]
    error = np.sqrt(2 * (shares * (1 - shares)).clip(lower=0.02) / calls)
    assert ((shares - measured).abs() <= 4 * error).all(), (shares, measured)
    assert 0.05 < shares["b"] < 0.98  # so that the comparison can fail


def test_outcomes_add_up(studied):
    outcomes, bic = studied.outcomes, studied.bic
    assert "a" in bic
    shares = studied.frequencies
    np.testing.assert_allclose(outcomes["found"], shares.loc[list(bic)].sum())
    others = [name for name in studied.candidates if name not in bic]
    np.testing.assert_allclose(outcomes["useless"], shares.loc[others].sum())
    assert (studied.best >= shares).all().all()
    assert outcomes["relative R-squared"].between(0.9, 1 + 1e-9).all()
    assert outcomes["found"].iloc[-1] >= outcomes["found"].iloc[0] - 0.2
    assert list(studied.index.names) == ["eps", "delta", "mechanism"]
    assert set(studied.index.get_level_values("mechanism")) == {"gaussian", "matrix-laplace"}


def test_the_same_seed_gives_the_same_study(table, studied):
    again = selection_study(
        FORMULA, table, schema=SCHEMA, method="adaptive", eps=(1, 4), delta=(0, 1e-6), draws=40
    )
    pd.testing.assert_frame_equal(again.frequencies, studied.frequencies)


def test_every_view_says_that_it_is_for_the_curator(studied, tmp_path):
    for frame in (studied.outcomes, studied.frequencies, studied.alternatives, studied.best):
        assert frame.attrs["privacy"] == CURATOR_ONLY
    for text in (repr(studied), str(studied), studied._repr_html_(), studied.to_csv()):
        assert CURATOR_ONLY in text
    studied.to_csv(tmp_path / "study.csv", table="frequencies")
    assert (tmp_path / "study.csv").read_text().startswith(f"# {CURATOR_ONLY}\n")
    assert studied.privacy == CURATOR_ONLY
    with pytest.raises(ArgumentError, match="table must be"):
        studied.to_csv(table="probabilities")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"radius": 1}, 'method="adaptive" has no radius'),
        ({"penalty": 2}, "penalty"),
        ({"eps": 0.001}, "need about"),
        ({"schema": {**SCHEMA, "y": None}}, "y"),
        ({"draws": 1}, "draws"),
        ({"method": "pcpl"}, "method"),
        ({"method": "pcls", "delta": 1e-6}, "delta is for"),
    ],
)
def test_bad_arguments_are_named(table, changes, message):
    call = {"schema": SCHEMA, "method": "adaptive", "draws": 2} | changes
    if call["schema"].get("y", 0) is None:
        call["schema"] = {name: bounds for name, bounds in SCHEMA.items() if name != "y"}
    with pytest.raises(ArgumentError, match=message):
        selection_study(FORMULA, table, **call)


def test_the_bar_counts_draws(table, capsys):
    selection_study(FORMULA, table, schema=SCHEMA, method="adaptive", draws=2, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_a_large_space_is_searched_for_the_choice_by_bic(table):
    rng = np.random.default_rng(4)
    names = [f"n{j}" for j in range(14)]
    wide = table.assign(**{name: rng.uniform(-1, 1, len(table)) for name in names})
    found = selection_study(
        "y ~ " + " + ".join([*"abcd", *names]), wide, method="adaptive", draws=2, eps=8, delta=1e-6,
        schema=SCHEMA | dict.fromkeys(names, (-1, 1)),
    )  # fmt: skip
    assert "a" in found.bic
    assert found.frequencies.loc["a"].iloc[0] == 1
