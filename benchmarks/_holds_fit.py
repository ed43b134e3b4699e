"""What fits a case of `benchmarks.holds`: dpreg's public calls, or a function of scaled arrays."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpreg
from benchmarks._holds_case import FAMILIES, Case, Scaled
from dpreg.errors import DpregError, DpregWarning, NotReleased

Floats = NDArray[np.float64]
_NORMAL = 1.959964


@dataclass(frozen=True)
class Fit:
    """Slopes of one release in scaled units; NaN where there is no interval.

    `marks` says what is said of a slope, "" where nothing is; `why` why nothing was fitted.
    """

    estimate: Floats
    low: Floats
    high: Floats
    marks: tuple[str, ...]
    why: str = ""

    @classmethod
    def nothing(cls, size: int, why: str) -> Fit:
        """Return a release that gave nothing."""
        none = np.full(size, np.nan)
        return cls(none, none, none, ("",) * size, why)


Engine = Callable[[Case, Scaled, int, float, float], Fit]
"""Fits a case: (case, its scaled rows, the run, eps, delta)."""


def engine(name: str) -> Engine:
    """Return "calls", or what wraps a function written as ``module:function``."""
    return by_calls if name == "calls" else by_function(name)


def by_calls(case: Case, made: Scaled, run: int, eps: float, delta: float) -> Fit:
    """Fit by `dp_ols` or `dp_glm`, from the frame."""
    arguments: dict[str, Any] = {
        "schema": dict(case.schema), "delta": str(delta), "progress": False,
        "unsafe_seed": int(case.rng(run, 1).integers(2**31)), **case.call,
    }  # fmt: skip
    call: Callable[..., Any] = dpreg.dp_ols
    if case.family != "linear":
        call, arguments["family"] = dpreg.dp_glm, FAMILIES[case.family]
    if case.person is not None:
        arguments["person"] = case.person
    taken = inspect.signature(call).parameters
    arguments = {name: value for name, value in arguments.items() if name in taken}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregWarning)
        try:
            result = call(case.formula, case.rows(run), str(eps), **arguments)
        except DpregError as error:
            return Fit.nothing(len(made.names), f"{type(error).__name__}: {error}")
    names = list(made.names)
    estimate = result.params[names].to_numpy() / made.factors
    try:
        limits: pd.DataFrame = result.conf_int().loc[names]
        low, high = (limits[side].to_numpy() / made.factors for side in (0, 1))
    except NotReleased:
        low = high = np.full(len(names), np.nan)
    marks: Mapping[str, str] = getattr(result, "marks", result.weak)
    said = {name: "" if mark == "above noise" else mark for name, mark in marks.items()}
    return Fit(estimate, low, high, tuple(said.get(name, "") for name in names))


def by_function(name: str) -> Engine:
    """Wrap a function f(family, X, y, cap, eps, delta, rng) of scaled arrays.

    It returns a mapping with `params` (the intercept first), and `se` or both `low` and `high`
    (NaN where there is no interval), and may say `marks`: words, one for each of `params`, "" or
    None where nothing is said. One that has the argument `persons` is given (n,) whole numbers that
    say whose a row is, or None.
    """
    module, _, attribute = name.partition(":")
    function: Callable[..., Mapping[str, Any]] = getattr(importlib.import_module(module), attribute)
    takes_persons = "persons" in inspect.signature(function).parameters

    def fit(case: Case, made: Scaled, run: int, eps: float, delta: float) -> Fit:
        more = {"persons": made.persons} if takes_persons else {}
        rng = case.rng(run, 1)
        try:
            found = function(case.family, made.x, made.y, made.cap, eps, delta, rng, **more)
        except np.linalg.LinAlgError as error:
            return Fit.nothing(len(made.names), f"LinAlgError: {error}")
        params = np.asarray(found["params"], float)[1:]
        if "low" in found:
            low, high = (np.asarray(found[side], float)[1:] for side in ("low", "high"))
        else:
            half = _NORMAL * np.asarray(found["se"], float)[1:]
            low, high = params - half, params + half
        marks = found.get("marks")
        said = [""] * len(params) if marks is None else [mark or "" for mark in list(marks)[1:]]
        return Fit(params, low, high, tuple(said))

    return fit
