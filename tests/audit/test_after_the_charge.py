"""Whatever a call refuses, it refuses before it charges: public arguments at their extremes."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import DpregError
from dpreg.estimation import histogram

SCHEMA = dict.fromkeys("aby", (-1, 1))
EPS = ("1e-6", "2e-5", "1e-4", "0.001", "0.1", "1", "10", "200", "1e3", "1e6")
SHARE = ("1e-18", "1e-14", "1e-6", "0.1", "0.3")


def _table(pick: random.Random) -> pd.DataFrame:
    rows = pick.choice([0, 1, 2, 6, 30])
    rng = np.random.default_rng(pick.randrange(2**32))
    cells = pick.choice(
        [
            np.zeros((rows, 3)),
            rng.uniform(-1, 1, (rows, 3)),
            np.full((rows, 3), np.nan),
            rng.choice([1e308, -np.inf, 5e-324, 0.0], (rows, 3)),
        ]
    )
    return pd.DataFrame(cells, columns=["a", "b", "y"])


def _common(pick: random.Random) -> dict[str, Any]:
    return {
        "eps": pick.choice(EPS),
        "neighbors": pick.choice(["replace-one", "add-remove"]),
        "contributions": pick.choice([1, 1, 2, 1000, 10**5, 10**6]),
    }


def _select(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    private = {
        "radius": pick.choice([None, "private", "0.25", 16, 2**20]),
        "sigma2": pick.choice([None, "private", "1e-30", "1e30"]),
        "schema": pick.choice([SCHEMA, {"y": (-1, 1)}, None]),
        "method": pick.choice(["pcls", "pcpl"]),
        "fit": pick.choice(["split", "share", None]),
        **_common(pick),
    }
    needed = {
        "radius": private["radius"] == "private",
        "sigma2": private["sigma2"] == "private",
        "bounds": private["schema"] is not SCHEMA,
        "profile": private["method"] == "pcpl",
        "fit": private["fit"] == "share",
        "count": private["method"] == "pcpl"
        and private["neighbors"] == "add-remove"
        and private["sigma2"] != "private",
    }
    shares = {step: pick.choice(SHARE) for step in needed if needed[step] and pick.random() < 0.4}
    return dpreg.dp_select(
        "y ~ a + b",
        frame,
        delta=pick.choice([0, "1e-6", "1e-300"]),
        mechanism=pick.choice(["permute-and-flip", "laplace"]),
        penalty=pick.choice(["auto", 0, "1e30"]),
        engine=pick.choice(["auto", "tree"]),
        shares=shares,
        budget=budget,
        **private,
    )


def _ols(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    schema = pick.choice([SCHEMA, {"y": (-1, 1)}])
    delta = pick.choice([0, "1e-6"])
    return dpreg.dp_ols(
        "y ~ a + b", frame, schema=schema, delta=delta, budget=budget, **_common(pick)
    )


def _glm(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    schema = pick.choice([SCHEMA, {"y": (-1, 1)}])
    formula = "I(1 * (y > 0)) ~ a + b"
    return dpreg.dp_glm(formula, frame, schema=schema, delta="1e-6", budget=budget, **_common(pick))


def _select_family(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    options = {
        "schema": pick.choice([SCHEMA, {"y": (-1, 1)}]),
        "fit": pick.choice(["same", "fresh", None]),
        "delta": pick.choice([0, "1e-6", "1e-300"]),
        "offset": pick.choice([None, None, "b"]),
        "units": pick.choice(["term", "column"]),
        **_common(pick),
    }
    response, family = pick.choice([("I(1 * (y > 0))", "binomial"), ("I(y + 1)", "poisson")])
    right = "a" if options["offset"] else "a * b"
    return dpreg.dp_select(f"{response} ~ {right}", frame, family=family, budget=budget, **options)


def _quantile(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    return dpreg.dp_quantile("a", 0.5, frame, schema=SCHEMA, budget=budget, **_common(pick))


def _mean(pick: random.Random, frame: pd.DataFrame, budget: dpreg.Ledger) -> object:
    return dpreg.dp_mean(["a", "y"], frame, schema=SCHEMA, budget=budget, **_common(pick))


CALLS = (_select, _select, _select, _ols, _glm, _quantile, _mean, _select_family)


def _raised_after_the_charge(calls: int, among: tuple[Any, ...] = CALLS) -> Iterator[str]:
    for number in range(calls):
        pick = random.Random(number)
        frame = _table(pick)
        ledger = dpreg.Ledger(dpreg.Budget("1e9", "0.99"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
            try:
                pick.choice(among)(pick, frame, ledger)
            except DpregError as err:
                if ledger.entries:
                    yield f"{number}: {err}"


@pytest.mark.parametrize("calls", [120, pytest.param(400, marks=pytest.mark.audit)])
def test_nothing_is_refused_after_the_charge(calls: int) -> None:
    assert list(_raised_after_the_charge(calls)) == []


def test_a_check_that_is_left_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram, "check_eps", lambda *_, **__: None)
    assert next(_raised_after_the_charge(400, (_quantile,)), "")
