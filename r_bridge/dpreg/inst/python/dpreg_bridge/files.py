"""Saved results and data sets to try things on, for R."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

import dpreg
from dpreg.errors import ArgumentError
from dpreg.results.base import from_json
from dpreg.results.glm import GLMResults
from dpreg.results.selection import GLMSelectionResults
from dpreg_bridge.formulas import added_in_r, call_in_r, in_r
from dpreg_bridge.views import declared

__all__ = ["dataset", "read", "report"]

_DATASETS: Final = ("load_randhie", "load_prostate", "load_kc_house", "make_bay_area")


def read(path: str) -> dict[str, Any]:
    """Read a saved result; of a model also its formula in R's words, and its call."""
    result = dpreg.load(path)
    told: dict[str, Any] = {"kind": result.kind, "json": result.to_json()}
    coded = getattr(result, "design_formula", None) or getattr(result, "formula", None)
    if isinstance(result, GLMResults | GLMSelectionResults):
        told["formula"] = in_r(result.formula)
        told |= added_in_r(_with_added(result))
    elif coded is not None:
        told["formula"] = in_r(coded)
    if result.record is not None:
        told["call"] = call_in_r(result.record, model=coded is not None)
    return told


def _with_added(result: GLMResults | GLMSelectionResults) -> GLMResults | GLMSelectionResults:
    """Return what names the offset and the trials: of an older choice, its fit."""
    if isinstance(result, GLMResults) or result.regression is None:
        return result
    return result.regression


def report(result: str, path: str) -> None:
    """Write the report on a result, given as JSON."""
    dpreg.write_report(from_json(result), path)


def dataset(loader: str, which: Any = None, **options: Any) -> dict[str, Any]:
    """Load or make a data set; `loader` is the function's name."""
    if loader not in _DATASETS:
        raise ArgumentError(f"there is no data set {loader!r}")
    if which is not None:
        options["name"] = which
    found = getattr(dpreg.datasets, loader)(**options)
    return {
        "data": pd.DataFrame({name: _cells(found.data[name]) for name in found.data}),
        "schema": declared(found.schema.to_dict()),
        "formula": in_r(found.formula),
        "source": found.source,
        "simulated": found.simulated,
    }


def _cells(column: pd.Series[Any]) -> Any:
    """Return truths, 32-bit integers, numbers or texts; only the last two may be missing."""
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.bool_)
    if pd.api.types.is_integer_dtype(column.dtype) and abs(column).max() < 2**31:
        return column.to_numpy(dtype=np.int32)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64)
    return column.to_numpy(dtype=object)
