"""Data frames and formulas of rpy2 give the numbers of the same rows in pandas.

In a process of its own: R once started stays, with its handlers of signals.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

import dpreg
from dpreg.request import formula_text

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rpy2") is None or shutil.which("R") is None, reason="needs R and rpy2"
)

PROGRAM = """
import numpy as np
import pandas as pd
import rpy2.robjects as ro
from rpy2.robjects import Formula, pandas2ri

import dpreg
from dpreg.sources import as_source

held = ro.r('''
set.seed(1)
data.frame(
  x = c(NA, runif(2999)), y = runif(3000),
  g = factor(sample(c("b", "a", NA), 3000, TRUE), c("b", "a")),
  s = sample(c("u", "v", NA), 3000, TRUE), t = sample(c(TRUE, FALSE, NA), 3000, TRUE),
  i = c(1:2999, NA), d = as.Date("2020-01-01"), l = I(as.list(1:3000)),
  stringsAsFactors = FALSE
)
''')
columns = {name: list(column) for name, column in zip(held.names, held)}
plain = pd.DataFrame({
    "x": columns["x"], "y": columns["y"],
    "g": [{1: "b", 2: "a"}.get(cell) for cell in columns["g"]],
    "s": [cell if type(cell) is str else None for cell in columns["s"]],
    "t": [cell if isinstance(cell, bool) else None for cell in columns["t"]],
    "i": [cell if isinstance(cell, int) else np.nan for cell in columns["i"]],
})
schema = {"x": (0, 1), "y": (0, 1), "g": ["a", "b"], "s": ["u", "v"], "t": bool, "i": (0, 3000)}
call = {"eps": 1, "delta": 1e-6, "schema": schema, "unsafe_seed": 1}
theirs = dpreg.dp_ols("y ~ x + g * s + t + i", plain, **call).params
for formula in ("y ~ x + g * s + t + i", Formula("y ~ x + g * s + t + i")):
    pd.testing.assert_series_equal(dpreg.dp_ols(formula, held, **call).params, theirs)
with (ro.default_converter + pandas2ri.converter).context():
    fit = dpreg.dp_ols(Formula("y ~ x + g * s + t + i"), held, **call)
    pd.testing.assert_series_equal(fit.params, theirs)
    ro.globalenv["errors"] = fit.bse
    ro.globalenv["limits"] = fit.conf_int()
    np.testing.assert_array_equal(np.asarray(ro.r("errors")), fit.bse)
    np.testing.assert_array_equal(np.asarray(ro.r("limits$`1`")), fit.conf_int()[1])
kinds = as_source(held)
assert [kinds.kind(name) for name in ("d", "l")] == ["datetime", "other"]
try:
    dpreg.dp_ols(Formula("log(y) ~ x"), held, **call)
except dpreg.errors.ArgumentError as error:
    assert "functions of R" in str(error)
else:
    raise AssertionError
print("same")
"""


def test_r_s_rows_are_those_of_pandas():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"RPY2_CFFI_MODE": "ABI"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.endswith("same\n"), done.stderr[-3000:]


def test_what_only_looks_like_a_formula_of_rpy2_is_refused():
    with pytest.raises(dpreg.errors.ArgumentError, match="must be a string; got Formula"):
        formula_text(type("Formula", (), {})(), "formula")
