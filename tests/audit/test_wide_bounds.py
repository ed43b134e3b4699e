"""Bounds at the ends of what `dpreg.columns` allows: computed and printed in silence."""

import warnings

import numpy as np
import pandas as pd
import pytest

import dpreg

ROWS = 300
CALLS = {
    "looks": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="adaptive", **more),
    "logit": lambda **more: dpreg.dp_glm("I(1 * (y > 0)) ~ a", **more),
    "gram": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="gram", **more),
    "adassp": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="adassp", **more),
    "select": lambda **more: dpreg.dp_select("y ~ a", delta="1e-6", **more),
    "mean": lambda **more: dpreg.dp_mean(["a", "y"], **more),
    "quantile": lambda **more: dpreg.dp_quantile(["a", "y"], [0.5], **more),
    "histogram": lambda **more: dpreg.dp_histogram("a", bins=5, **more),
    "suffstats": lambda **more: dpreg.dp_suffstats(["a", "y"], **more),
}
TABLE = pd.DataFrame({"a": np.linspace(0, 1, ROWS), "y": np.linspace(1, 0, ROWS)})


@pytest.mark.parametrize("top", [1e100, 1e-100])
@pytest.mark.parametrize("other", [1e100, 5.0, 1e-100])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_release_is_printed_whatever_the_bounds(call, top, other):
    ledger = dpreg.Ledger(dpreg.Budget(5, "0.1"))
    schema = {"a": (-other, other), "y": (-top, top)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        result = call(data=TABLE, eps=1, schema=schema, budget=ledger, progress=False)
        assert str(result)
        assert str(result.summary(full=True))
        result.to_json()
    assert ledger.spent.eps == 1


def test_the_bars_of_bins_of_the_narrowest_bounds():
    table = {"a": np.repeat([-1e-100, 0.9e-100], [ROWS, 9 * ROWS])}
    schema = {"a": (-1e-100, 1e-100)}
    found = dpreg.dp_histogram("a", table, bins=64, eps=50, schema=schema, progress=False)
    bars = [line.count("#") for line in str(found).splitlines() if line.endswith("#")]
    assert len(bars) == 2
    assert bars[1] >= 8 * bars[0] > 0
