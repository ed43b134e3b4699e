"""The drawn cases of `benchmarks.holds`: right models, whose true coefficients are known.

Every run draws new rows. Bounds are the declared ones of somebody who knows the scale, or three,
ten or a hundred times as wide; no row lies beyond them, but for planted outliers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from benchmarks._holds_case import Case

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator], pd.DataFrame]
LEVELS = {"rare": 0.005, "a": 0.5, "b": 0.3, "c": 0.195}
EFFECTS = {"rare": 0.0, "a": 0.4, "b": -0.3, "c": 0.2}
APART = {"rare": 0.0, "a": 0.9, "b": 0.96, "c": 1.02}
"""With errors of a tenth: the rare rows are nine of them away from all others."""


def _slopes(p: int) -> Floats:
    return np.array([0.6, -0.4, 0.3, 0.2, 0.0, -0.15, 0.1, 0.0])[:p]


def _columns(p: int, skewed: bool, n: int, rng: np.random.Generator) -> Floats:
    """Columns with a correlation of .3, normal within 4 or lognormal up to 12."""
    common = rng.standard_normal((n, 1))
    z = np.sqrt(0.3) * common + np.sqrt(0.7) * rng.standard_normal((n, p))
    x: Floats = np.minimum(np.exp(0.8 * z), 12) if skewed else np.clip(z, -4, 4)
    return x


def _outcome(family: str, eta: Floats, rng: np.random.Generator) -> Floats:
    if family == "logit":
        return np.asarray(rng.random(len(eta)) < expit(eta), float)
    if family == "poisson":
        return np.asarray(np.minimum(rng.poisson(np.exp(eta)), 60), float)
    return eta + rng.standard_normal(len(eta))


def _plain(
    family: str, p: int, skewed: bool, n: int, start: float, rng: np.random.Generator
) -> pd.DataFrame:
    x = _columns(p, skewed, n, rng)
    slopes = _slopes(p) * (0.6 if family == "poisson" or skewed else 1)
    y = _outcome(family, start + x @ slopes, rng)
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(p)]).assign(y=y)


def _linear_or_glm(
    name: str,
    half: str,
    n: int,
    family: str = "linear",
    *,
    p: int = 8,
    skewed: bool = False,
    start: float = 0.0,
    times: float = 1.0,
) -> Case:
    """Make the case of a plain model; bounds are `times` as wide as need be."""
    slopes = _slopes(p) * (0.6 if family == "poisson" or skewed else 1)
    side: tuple[float, float] = (0, 12 * times) if skewed else (-4 * times, 4 * times)
    response = {"linear": (-8 * times, 8 * times), "logit": (0, 1), "poisson": (0, 60)}[family]
    if skewed and family == "linear":
        response = (-15 * times, 25 * times)
    columns = [f"x{j}" for j in range(p)]
    return Case(
        name=name, half=half, table="drawn", formula="y ~ " + " + ".join(columns),
        schema=dict.fromkeys(columns, side) | {"y": response}, family=family, drawn=True,
        right=True, truth=dict(zip(columns, slopes, strict=True)),
        frame=partial(_plain, family, p, skewed, n, start),
    )  # fmt: skip


def _drawn(
    name: str,
    half: str,
    frame: Draw,
    formula: str,
    schema: dict[str, Any],
    truth: dict[str, float] | None,
    family: str = "linear",
    **more: Any,
) -> Case:
    return Case(
        name=name, half=half, table="drawn", formula=formula, schema=schema, family=family,
        drawn=True, frame=frame, truth=truth, **({"right": truth is not None} | more),
    )  # fmt: skip


def _fan(n: int, rng: np.random.Generator) -> pd.DataFrame:
    x = _columns(2, False, n, rng)
    y = 0.5 * x[:, 0] + 0.2 * x[:, 1] + (0.2 + np.abs(x[:, 0])) * rng.standard_normal(n)
    return pd.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "y": y})


def _persons(family: str, even: bool, people: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of persons: half of what columns and errors vary by is the person's."""
    rows = np.full(people, 5) if even else 1 + rng.integers(0, 9, people)
    who = np.repeat(np.arange(people), rows)
    n = len(who)

    def shared() -> Floats:
        own = rng.standard_normal(people)[who]
        return np.asarray(np.sqrt(0.5) * (own + rng.standard_normal(n)), float)

    x = np.clip(np.column_stack([shared(), shared(), shared()]), -4, 4)
    eta = x @ [0.5, -0.3, 0.2]
    if family == "linear":
        y = eta + shared()
    else:  # half of a person's outcomes go together, and each one is the model's
        own = rng.random(people)[who]
        coin = np.where(rng.random(n) < 0.5, own, rng.random(n))
        y = np.asarray(coin < expit(eta), float)
    return pd.DataFrame(x, columns=["x0", "x1", "x2"]).assign(y=y, id=who)


def _rare(family: str, n: int, rng: np.random.Generator, apart: bool = False) -> pd.DataFrame:
    x = np.exp(rng.uniform(0, np.log(50), n))
    level = rng.choice(list(LEVELS), n, p=list(LEVELS.values()))
    if apart:
        own = pd.Series(level).map(APART).to_numpy()
        y = 0.3 * np.log(x) + own + 0.1 * rng.standard_normal(n)
    else:
        own = pd.Series(level).map(EFFECTS).to_numpy()
        y = _outcome(family, 0.5 * np.log(x) - 1 + own, rng)
    return pd.DataFrame({"x": x, "g": level, "y": y})


def _curve(n: int, rng: np.random.Generator) -> pd.DataFrame:
    x = rng.uniform(0, 10, n)
    z = rng.choice(["no", "yes"], n, p=[0.7, 0.3])
    y = 0.3 * x - 0.02 * x**2 + (z == "yes") * (0.2 + 0.05 * x) + rng.standard_normal(n)
    return pd.DataFrame({"x": x, "z": z, "y": y})


def _outliers(share: float, lever: bool, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Normal rows, a few of which have their response, or all of them, at the end of its bounds."""
    rows = _plain("linear", 4, False, n, 0.0, rng)
    bad = rng.random(n) < share
    rows.loc[bad, "y"] = 40 * rng.choice([-1, 1], int(bad.sum())) if not lever else 40.0
    if lever:
        rows.loc[bad, "x0"] = 4.0
    return rows


def cases() -> list[Case]:
    """Return the drawn cases of both halves."""
    tuning, unseen = "tuning", "held-out"
    plane = {"x0": (-4, 4), "x1": (-4, 4)}
    fan = {**plane, "y": (-25, 25)}
    fan_truth = {"x0": 0.5, "x1": 0.2}
    people = {**plane, "x2": (-4, 4)}
    person_truth = {"x0": 0.5, "x1": -0.3, "x2": 0.2}
    who: dict[str, Any] = {"person": "id", "call": {"contributions": 5}}
    many = who | {"call": {"contributions": 9}}
    first = {"x": (1, 50), "y": (-8, 8), "g": ["rare", "a", "b", "c"]}
    last = first | {"g": ["a", "b", "c", "rare"]}
    log = "np.log(x)"
    to_rare = {log: 0.5, "g[T.a]": 0.4, "g[T.b]": -0.3, "g[T.c]": 0.2}
    to_a = {log: 0.5, "g[T.b]": -0.7, "g[T.c]": -0.2, "g[T.rare]": -0.4}
    apart, apart_last = first | {"y": (-1, 4)}, last | {"y": (-1, 4)}
    apart_rare = {log: 0.3, "g[T.a]": 0.9, "g[T.b]": 0.96, "g[T.c]": 1.02}
    apart_a = {log: 0.3, "g[T.b]": 0.06, "g[T.c]": 0.12, "g[T.rare]": -0.9}
    far = partial(_rare, "linear", 50_000, apart=True)
    curve = {"x": (0, 10), "z": ["no", "yes"], "y": (-6, 8)}
    curve_truth = {"x": 0.3, "I(x ** 2)": -0.02, "z[T.yes]": 0.2, "z[T.yes]:x": 0.05,
                   "x:z[T.yes]": 0.05}  # fmt: skip
    four = {f"x{j}": (-4, 4) for j in range(4)} | {"y": (-40, 40)}
    out, out_truth = "y ~ x0 + x1 + x2 + x3", {f"x{j}": v for j, v in enumerate(_slopes(4))}
    rare = f"y ~ {log} + g"
    return [
        _linear_or_glm("normal", tuning, 20_000),
        _linear_or_glm("normal_large", unseen, 100_000),
        _linear_or_glm("logit", unseen, 20_000, "logit", start=-0.5),
        _linear_or_glm("logit_rare", tuning, 50_000, "logit", p=4, start=-3.5),
        _linear_or_glm("poisson", tuning, 20_000, "poisson", p=4, start=0.3),
        _linear_or_glm("skewed", tuning, 20_000, p=5, skewed=True),
        _linear_or_glm("skewed_logit", unseen, 20_000, "logit", p=7, skewed=True, start=-1.5),
        _linear_or_glm("wide_x3", tuning, 20_000, p=4, times=3),
        _linear_or_glm("wide_x10", unseen, 20_000, p=4, times=10),
        _linear_or_glm("wide_x100", tuning, 50_000, p=4, times=100),
        _linear_or_glm("skewed_x3", unseen, 20_000, p=5, skewed=True, times=3),
        _drawn("fan", tuning, partial(_fan, 50_000), "y ~ x0 + x1", fan, fan_truth),
        _drawn("fan_large", unseen, partial(_fan, 200_000), "y ~ x0 + x1", fan, fan_truth),
        _drawn("persons", tuning, partial(_persons, "linear", True, 40_000), "y ~ x0 + x1 + x2",
               people | {"y": (-8, 8)}, person_truth, **who),
        _drawn("persons_uneven", unseen, partial(_persons, "linear", False, 40_000),
               "y ~ x0 + x1 + x2", people | {"y": (-8, 8)}, person_truth, **many),
        _drawn("persons_logit", unseen, partial(_persons, "logit", True, 40_000),
               "y ~ x0 + x1 + x2", people | {"y": (0, 1)}, person_truth, "logit", **who),
        _drawn("rare_reference", tuning, partial(_rare, "linear", 50_000), rare, first, to_rare),
        _drawn("rare_apart", tuning, far, rare, apart, apart_rare),
        _drawn("rare_apart_level", unseen, far, rare, apart_last, apart_a),
        _drawn("rare_level", unseen, partial(_rare, "linear", 50_000), rare, last, to_a),
        _drawn("rare_logit", unseen, partial(_rare, "logit", 50_000), rare,
               first | {"y": (0, 1)}, to_rare, "logit"),
        _drawn("curve", tuning, partial(_curve, 30_000), "y ~ x * z + I(x ** 2)", curve,
               curve_truth),
        _drawn("curve_left_out", unseen, partial(_curve, 30_000), "y ~ x + z", curve, None),
        _drawn("outliers", tuning, partial(_outliers, 0.002, False, 30_000), out, four, out_truth),
        _drawn("outliers_lever", unseen, partial(_outliers, 0.001, True, 30_000), out, four, None),
    ]  # fmt: skip
