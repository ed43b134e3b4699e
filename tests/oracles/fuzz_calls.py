"""Randomly built public calls, and pairs of hostile neighbouring tables to hold them against.

`pair` makes a call and two neighbours from one seed. Everything about the call is drawn: which
function, its method, mechanism, fit and engine, eps from 1e-6 to 1e3, delta, shares, radius,
groups, and which columns the schema leaves out. Everything about the tables is drawn too: from no
row to hundreds, constant and corner values, and in object columns whatever a cell can hold. With
`edges`, numbers lie at the ends of the ranges that `dpreg.columns` allows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import dpreg
from dpreg.audit.events import BEFORE, NOTHING, Observation, observe

Options = dict[str, Any]


class Shouting:
    """A cell whose every conversion raises its own text."""

    def __float__(self) -> float:
        raise OverflowError("a cell's own text")

    __int__ = __index__ = __str__ = __repr__ = __bool__ = __hash__ = __float__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise OverflowError("a cell's own text")


CELLS: tuple[Any, ...] = (
    None, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0, -0.0, 1, True, False, 2**70, 10**400,
    "word", "", "1", " 2 ", "nan", "1e999", "\ud800", b"\xff", Decimal("0.1"), Decimal("sNaN"),
    Fraction(1, 3), 1 + 2j, pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), [1], {"a": 1}, (),
    np.int64(3), np.array([1.0, 2.0]), np.float16(0.5), np.str_("u"), "u", object, Shouting(),
)  # fmt: skip
"""What a cell of an object column may hold."""

NUMBERS = (0.0, 1.0, -1.0, 0.5, 3.0, -4.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, 0.1)
SCHEMA = {"a": (-1, 1), "b": (-3, 3), "c": (0, 2), "g": ["u", "v", "w"], "y": (-4, 4)}
NUMERIC = ("a", "b", "c", "y")


@dataclass(frozen=True)
class Pair:
    """A call, what it was told, and two neighbouring tables."""

    name: str
    options: Mapping[str, Any]
    call: Callable[[Any, dpreg.Ledger], Any]
    table: pd.DataFrame
    neighbor: pd.DataFrame

    def __str__(self) -> str:
        told = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.name}({told}) on {len(self.table)} and {len(self.neighbor)} rows"


class AtEdges(np.random.Generator):
    """Draws calls whose numbers lie at the ends of their ranges; `scales` are columns' units."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64([17, seed]))
        units = (1.0, 1e100, 1e-100, 1e50, 1e-50)
        self.scales = {name: _one(self, units) for name in NUMERIC}


def _schema(rng: np.random.Generator) -> Options:
    """Declare the columns, each in its unit; a bound that is too large or small is at the end."""
    if not isinstance(rng, AtEdges):
        return SCHEMA

    def size(bound: float) -> float:
        return float(np.sign(bound) * min(max(abs(bound), 1e-100), 1e100))

    return SCHEMA | {
        name: tuple(size(rng.scales[name] * bound) for bound in SCHEMA[name]) for name in NUMERIC
    }


def pair(
    seed: int, among: tuple[str, ...] = (), *, person: bool = False, edges: bool = False
) -> Pair:
    """Make a call and two neighbours; with `person`, a call that is told whose rows they are."""
    rng = AtEdges(seed) if edges else np.random.default_rng([16, seed])
    name = _one(rng, among or tuple(MAKERS))
    options = _common(rng) | ({"person": "who"} if person else {})
    call = MAKERS[name](rng, options)
    table, neighbor = _tables(rng, options)
    if person:
        table, neighbor = _owned(rng, options, table, neighbor)
    return Pair(name, options, call, table, neighbor)


def _owned(
    rng: np.random.Generator, options: Options, table: pd.DataFrame, neighbor: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Say whose the rows are. Those that differ are one person's, of another number if replaced."""
    size = len(table)
    common = size
    if options["neighbors"] == "replace-one":
        common -= min(int(options["contributions"]), 3, size)
        neighbor = neighbor.iloc[: common + int(rng.integers(0, size - common + 1))]
    ids = [f"p{j}" for j in rng.integers(0, max(common // 2, 1), common)]

    def told(rows: pd.DataFrame, name: str) -> pd.DataFrame:
        return rows.assign(who=[*ids, *[name] * (len(rows) - common)])

    return told(table, "one"), told(neighbor, "other")


def _one(rng: np.random.Generator, among: tuple[Any, ...]) -> Any:
    return among[rng.integers(len(among))]


def _some(rng: np.random.Generator, chance: float) -> bool:
    return bool(rng.random() < chance)


def _common(rng: np.random.Generator) -> Options:
    """Draw what every call is told. eps is often ordinary, lest most calls be refused."""
    exponent = rng.uniform(-1, 2) if _some(rng, 0.6) else rng.uniform(-12, 3)
    exponent += 6 * (exponent < -6)  # less than 1e-6 is refused
    left_out = [column for column in NUMERIC if _some(rng, 0.15)]
    edges = isinstance(rng, AtEdges)
    many = (1, 1, 10**6) if edges else (1, 1, 1, 2, 3, 7, 1000)
    eps = _one(rng, ("1e-6", "1e-4", "1", "1e6", "1e6")) if edges else f"{10**exponent:.4g}"
    return {
        "eps": eps,
        "neighbors": _one(rng, ("replace-one", "add-remove")),
        "contributions": _one(rng, many),
        "schema": {name: how for name, how in _schema(rng).items() if name not in left_out},
    }


def _delta(rng: np.random.Generator) -> str:
    if isinstance(rng, AtEdges):
        return str(_one(rng, (0, "1e-300", "1e-6", "0.99")))
    return str(_one(rng, (0, "1e-6", "1e-6", "1e-12", "0.01", "1e-300", "0.4")))


def _formula(rng: np.random.Generator) -> str:
    return str(
        _one(
            rng,
            (
                "y ~ a + b + c",
                "y ~ a",
                "y ~ a + C(g)",
                "y ~ a * g + b",
                "y ~ a + b - 1",
                "y ~ a:b + I(c**2)",
                "y ~ 1",
                "np.exp(a) ~ b + c",
            ),
        )
    )


def _shares(rng: np.random.Generator, steps: tuple[str, ...]) -> Any:
    if _some(rng, 0.6):
        return None
    return {_one(rng, steps): f"{10 ** rng.uniform(-15, -0.05):.3g}"}


def _select(rng: np.random.Generator, options: Options) -> Any:
    options |= {
        "delta": _delta(rng),
        "method": _one(rng, ("adaptive", "pcls", "pcls", "pcpl")),
        "mechanism": _one(rng, ("auto", "permute-and-flip", "exponential", "laplace")),
        "fit": _one(rng, ("split", "share", None)),
        "engine": _one(rng, ("auto", "auto", "enumerate", "tree")),
        "units": _one(rng, ("term", "column")),
        "hierarchy": _one(rng, ("none", "none", "strong")),
        "keep": _one(rng, (("Intercept",), ())),
        "max_terms": _one(rng, (None, None, 0, 1, 2)),
        "radius": _one(rng, (None, "private", 1, "0.25", "1e-9", "1e9")),
        "sigma2": _one(rng, (None, "private", "0.05")),
        "penalty": _one(rng, ("auto", "bic", 0, "1e-3", "1e30")),
        "draws": _one(rng, (1, 1, 1, 3, 30)),
        "shares": _shares(rng, ("bounds", "radius", "sigma2", "count", "profile", "fit")),
    }
    if options["method"] == "adaptive":
        options |= {"shares": None, "fit": _one(rng, ("same", None))}
        for name in ("mechanism", "radius", "sigma2", "penalty", "draws", "engine"):
            del options[name]
    formula = options["formula"] = _formula(rng)
    told = {key: value for key, value in options.items() if key != "formula"}
    return lambda data, ledger: dpreg.dp_select(formula, data, **told, budget=ledger)


def _select_family(rng: np.random.Generator, options: Options) -> Any:
    """A choice among the terms of a family: what a family shares with `_glm`, what a choice has."""
    options |= {
        "family": _one(rng, ("binomial", "poisson")),
        "delta": _delta(rng),
        "fit": _one(rng, ("same", "fresh", None)),
        "units": _one(rng, ("term", "column")),
        "hierarchy": _one(rng, ("none", "none", "strong")),
        "max_terms": _one(rng, (None, None, 0, 1)),
        "offset": _one(rng, (None, None, "c")),
    }
    if options["fit"] == "fresh":
        options["shares"] = _shares(rng, ("fit",))
    response = "I(1 * (y > 0))" if options["family"] == "binomial" else "I(y + 4)"
    formula = options["formula"] = f"{response} ~{_formula(rng).partition('~')[2]}"
    told = {key: value for key, value in options.items() if key != "formula"}
    return lambda data, ledger: dpreg.dp_select(formula, data, **told, budget=ledger)


def _ols(rng: np.random.Generator, options: Options) -> Any:
    methods = ("auto", "adaptive", "gram", "objective", "ssp", "adassp")
    method = options["method"] = _one(rng, methods)
    gram = method in ("auto", "adaptive", "gram", "objective")
    noises: tuple[str | None, ...]
    noises = (None, "gaussian", "matrix-laplace") if gram else (None, "wang", "classical")
    if method == "gram":
        noises = (*noises, "laplace")
    if method == "objective":
        noises = (None,)
    scalings = ("box",) if gram else ("box", "row-norm", "row-norm-xy", "max-norm")
    options |= {
        "delta": _delta(rng),
        "noise": _one(rng, noises),
        "scaling": _one(rng, scalings),
        "clip": _one(rng, (1, 1, "0.1")),
        "center": bool(rng.integers(2)) or not gram,
        "shares": _shares(rng, ("bounds",)),
    }
    if method == "adaptive":  # or it would refuse few rows, where their number is public
        options["eps"] = 10**5
    formula = options["formula"] = _formula(rng)
    told = {key: value for key, value in options.items() if key != "formula"}
    return lambda data, ledger: dpreg.dp_ols(formula, data, **told, budget=ledger)


def _glm(rng: np.random.Generator, options: Options) -> Any:
    response = _one(rng, ("I(1 * (y > 0))", "h", "g2"))
    declared, counts = _some(rng, 0.7), _some(rng, 0.4)
    if declared:
        options["schema"] |= {"h": (0, 1), "g2": ["u", "v"]}
    if counts:
        options["family"] = _one(rng, ("poisson", "quasipoisson"))
        options["response_cap"] = _one(rng, (None, 1, 20, "1e6", "1e-3"))
        options["exposure"] = _one(rng, (None, "I(c + 1)"))
    options |= {
        "delta": _delta(rng),
        "noise": _one(rng, (None, None, "gaussian", "matrix-laplace")),
        "offset": _one(rng, (None, None, "c", "I(a + b)")),
        "trials": _one(rng, (None, None, None, "I(c * 5)")),
        "shares": _shares(rng, ("bounds",)),
    }
    columns = _formula(rng).partition("~")[2].removesuffix(" - 1").replace(" 1", " a")
    if rng.random() < 0.9:  # else what does not go together is refused before the charge
        if counts:
            response = "I(y + 4)" if "y" in options["schema"] or declared else "h"
            options["trials"] = None
            if response != "h" or "h" in options["schema"]:
                options["response_cap"] = None
        if options["trials"]:
            response, options["schema"] = "h", options["schema"] | {"h": (0, 1)}
        if (options["offset"] == "c" and "c" in columns) or options.get("exposure"):
            options["offset"] = None
    formula = options["formula"] = f"{response} ~{columns}"
    told = {key: value for key, value in options.items() if key != "formula"}

    def call(data: Any, ledger: dpreg.Ledger) -> Any:
        return dpreg.dp_glm(formula, _with_levels(data), **told, budget=ledger)

    return call


def _with_levels(data: Any) -> Any:
    """Two more responses, each from a row's own cells."""
    return data.assign(h=data["y"], g2=data["g"]) if isinstance(data, pd.DataFrame) else data


def _columns(rng: np.random.Generator, options: Options) -> list[str]:
    """Draw columns; the classic calls need bounds for each."""
    options["schema"] = _schema(rng)
    names = [name for name in NUMERIC if _some(rng, 0.4)] or ["a"]
    options["x"] = names
    if _some(rng, 0.4):
        options["by"] = "g"
    return names


def _told(options: Options, *left_out: str) -> Options:
    return {key: value for key, value in options.items() if key not in ("x", *left_out)}


def _mean(rng: np.random.Generator, options: Options) -> Any:
    names = _columns(rng, options)
    options |= {"delta": _delta(rng), "noise": _one(rng, (None, "laplace", "gaussian"))}
    told = _told(options)
    return lambda data, ledger: dpreg.dp_mean(names, data, **told, budget=ledger)


def _suffstats(rng: np.random.Generator, options: Options) -> Any:
    name = _columns(rng, options)[0]
    options |= {"delta": _delta(rng), "noise": _one(rng, (None, "laplace", "gaussian"))}
    if _some(rng, 0.4):
        family = _one(rng, ("bernoulli", "poisson", "exponential"))
        options["family"] = family
    told = _told(options)
    return lambda data, ledger: dpreg.dp_suffstats(name, data, **told, budget=ledger)


def _quantile(rng: np.random.Generator, options: Options) -> Any:
    names = _columns(rng, options)
    q = _one(rng, (0.5, [0.25, 0.75], 1e-5, 0.999))
    options |= {"q": q, "alpha": _one(rng, (0.05, 0.5))}
    told = _told(options, "q")
    return lambda data, ledger: dpreg.dp_quantile(names, q, data, **told, budget=ledger)


def _histogram(rng: np.random.Generator, options: Options) -> Any:
    name = _columns(rng, options)[0]
    options |= {
        "delta": _delta(rng),
        "bins": _one(rng, ("private", 1, 7)),
        "noise": _one(rng, (None, "laplace", "gaussian")),
    }
    if options["bins"] == "private":
        options["width_share"] = _one(rng, ("0.2", "1e-9"))
    told = _told(options)
    return lambda data, ledger: dpreg.dp_histogram(name, data, **told, budget=ledger)


def _odd_estimate(block: pd.DataFrame) -> Any:
    """An estimator with everything wrong that a block can bring about."""
    column = block["a"]
    if len(column) % 5 == 0:
        raise ValueError(f"a text with {column.tolist()}")
    warnings.warn(f"mean {column.mean()}", RuntimeWarning, stacklevel=1)
    return column.mean()


def _frame_facts(block: pd.DataFrame) -> float:
    """What a block's frame shows beside its cells."""
    width = pd.get_dummies(block["g"]).shape[1]
    return float(width + sum(kind.kind == "O" for kind in block.dtypes) + len(block.attrs))


def _aggregate(rng: np.random.Generator, options: Options) -> Any:
    _columns(rng, options)
    options |= {
        "delta": _delta(rng),
        "bounds": (-1, 6) if not isinstance(rng, AtEdges) else _schema(rng)["a"],
        "blocks": _one(rng, (1, 20)),  # a released count may ask for a million at a tiny eps
        "aggregation": _one(rng, ("auto", "mean", "winsorized")),
        "correct_bias": bool(rng.integers(2)),
        "estimator": _one(rng, (_odd_estimate, _frame_facts)),
    }
    estimator, told = options["estimator"], _told(options, "estimator")
    return lambda data, ledger: dpreg.sample_aggregate(estimator, data, **told, budget=ledger)


MAKERS: dict[str, Callable[[np.random.Generator, Options], Any]] = {
    "dp_select": _select,
    "dp_ols": _ols,
    "dp_glm": _glm,
    "dp_select of a family": _select_family,
    "dp_mean": _mean,
    "dp_suffstats": _suffstats,
    "dp_quantile": _quantile,
    "dp_histogram": _histogram,
    "sample_aggregate": _aggregate,
}


def _tables(rng: np.random.Generator, options: Options) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two tables that differ by what one person may change.

    Kinds of columns are drawn once for both: a column of objects, or of float64.
    """
    size = int(_one(rng, (0, 1, 2, 3, 10, 60, 300)))
    moved = min(int(options["contributions"]), 3)
    manner = _one(rng, ("plain", "plain", "corners", "constant", "hostile", "hostile"))
    objects = {name for name in NUMERIC if manner == "hostile" and _some(rng, 0.6)}
    columns = {name: _cells(rng, name, size + moved, manner, objects) for name in SCHEMA}
    extra = {name: _cells(rng, name, moved, "hostile", objects) for name in SCHEMA}

    def frame(cells: Mapping[str, list[Any]]) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: _series(
                    _scaled(rng, name, held),
                    object if name in objects or name == "g" else np.float64,
                )
                for name, held in cells.items()
            }
        )

    common = {name: held[:size] for name, held in columns.items()}
    if options["neighbors"] == "add-remove":
        return frame(common), frame({name: common[name] + extra[name] for name in SCHEMA})
    moved = min(moved, size)
    kept = {name: held[: size - moved] for name, held in common.items()}
    return frame(common), frame({name: kept[name] + extra[name][:moved] for name in SCHEMA})


def _scaled(rng: np.random.Generator, name: str, held: list[Any]) -> list[Any]:
    """Give ordinary numbers in their column's unit."""
    unit = rng.scales.get(name, 1.0) if isinstance(rng, AtEdges) else 1.0
    return [cell * unit if type(cell) is float and unit != 1.0 else cell for cell in held]


def _series(held: list[Any], kind: type) -> pd.Series:
    if kind is not object:
        return pd.Series(held, dtype=kind)
    cells = np.empty(len(held), dtype=object)
    for place, cell in enumerate(held):
        cells[place] = cell
    return pd.Series(cells, dtype=object)


def _cells(
    rng: np.random.Generator, name: str, size: int, manner: str, objects: set[str]
) -> list[Any]:
    if name == "g":
        if manner == "hostile":
            return [_one(rng, (*CELLS, "u", "v", "w", "u", "v")) for _ in range(size)]
        return [_one(rng, ("u", "v", "w")) for _ in range(size)]
    if name in objects:
        return [_one(rng, CELLS) if _some(rng, 0.5) else rng.normal() for _ in range(size)]
    if manner == "hostile":
        return [float(_one(rng, NUMBERS)) for _ in range(size)]
    if manner == "constant":
        return [0.5] * size
    if manner == "corners":
        return [float(_one(rng, (-4.0, 4.0))) for _ in range(size)]
    return [float(value) for value in rng.normal(size=size)]


# ---- the structural promises ------------------------------------------------------------------

HARD = ("raised", BEFORE, "logged", "printed", "charged")
"""What may not differ between any two runs of a call, on either table."""


def broken(one: Pair, runs: int = 2) -> tuple[list[str], list[list[Observation]]]:
    """Run a pair and name every structural promise that it breaks; also return what was seen."""
    seen = [[observe(one.call, table) for _ in range(runs)] for table in (one.table, one.neighbor)]
    every = [run for side in seen for run in side]
    found = []
    for run in every:
        text = str(run.seen["raised"])
        if text != NOTHING and run.charged.eps:
            found.append(f"raised after the charge: {text}")
        elif text != NOTHING and not _is_ours(text):
            found.append(f"refused in words that are not dpreg's: {text}")
        if "RuntimeWarning: " in str(run.seen["warnings"]):
            found.append(f"a library's remark came out: {run.seen['warnings']}")
    for name in HARD:
        values = {str(run.seen[name]) for run in every}
        if len(values) > 1:
            found.append(f"{name} varies: {sorted(values)}")
    return found, seen


def _is_ours(text: str) -> bool:
    """Whether an error is one of dpreg's own."""
    return getattr(dpreg.errors, text.split(":")[0], None) is not None
