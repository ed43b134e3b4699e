"""Bounds at the ends of float64: refused before the charge, or computed and printed in silence."""

import warnings

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import SchemaError

ROWS = 300
FITS = {
    "staged": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="staged", **more),
    "gram": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="gram", **more),
    "adassp": lambda **more: dpreg.dp_ols("y ~ a", delta="1e-6", method="adassp", **more),
    "select": lambda **more: dpreg.dp_select("y ~ a", delta="1e-6", **more),
}
FAR = {
    "mean": lambda **more: dpreg.dp_mean(["a", "y"], **more),
    "quantile": lambda **more: dpreg.dp_quantile(["a", "y"], [0.5], **more),
    "histogram": lambda **more: dpreg.dp_histogram("a", bins=5, **more),
    "suffstats": lambda **more: dpreg.dp_suffstats(["a", "y"], **more),
}
TABLE = pd.DataFrame({"a": np.linspace(0, 1, ROWS), "y": np.linspace(1, 0, ROWS)})


def silently(call, schema, ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        result = call(data=TABLE, eps=1, schema=schema, budget=ledger, progress=False)
        assert str(result)
        result.to_json()


@pytest.mark.parametrize("top", [1e155, 1e300, 1e-160])
@pytest.mark.parametrize("call", FITS.values(), ids=FITS)
def test_a_response_too_wide_to_be_squared_costs_nothing(call, top):
    ledger = dpreg.Ledger(dpreg.Budget(5, "0.1"))
    with pytest.raises(SchemaError, match="response 'y': half the width"):
        silently(call, {"a": (-5, 5), "y": (-top, top)}, ledger)
    assert ledger.spent.eps == 0


@pytest.mark.parametrize("top", [1e150, 1e-150])
@pytest.mark.parametrize("call", FITS.values(), ids=FITS)
def test_a_response_that_is_not_is_fitted(call, top):
    for other in (5.0, 1e-300, 1e300):
        ledger = dpreg.Ledger(dpreg.Budget(5, "0.1"))
        silently(call, {"a": (-other, other), "y": (-top, top)}, ledger)
        assert ledger.spent.eps == 1


@pytest.mark.parametrize("bounds", [(-1e-308, 1e-308), (-8e307, 8e307), (5e-324, 4e-323)])
@pytest.mark.parametrize("call", FAR.values(), ids=FAR)
def test_other_releases_are_printed_whatever_the_bounds(call, bounds):
    ledger = dpreg.Ledger(dpreg.Budget(5, "0.1"))
    schema = {"a": bounds, "y": bounds}
    try:
        silently(call, schema, ledger)
    except dpreg.errors.ArgumentError:
        assert ledger.spent.eps == 0


def test_the_bars_of_bins_narrower_than_float64_divides_by():
    table = {"a": np.repeat([-1e-308, 0.9e-308], [ROWS, 9 * ROWS])}
    schema = {"a": (-1e-308, 1e-308)}
    found = dpreg.dp_histogram("a", table, bins=64, eps=50, schema=schema, progress=False)
    bars = [line.count("#") for line in str(found).splitlines() if line.endswith("#")]
    assert len(bars) == 2
    assert bars[1] >= 8 * bars[0] > 0
