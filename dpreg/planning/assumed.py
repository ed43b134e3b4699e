r"""Rows that a plan makes up, or is given, to stand for those to come. No confidential row is read.

Made-up raw columns are uniform between their bounds, or normal about the middle of them where `sd`
gives a standard deviation and no other term is made of the column; levels are equally frequent, or
as frequent as `sd` of their 0/1 columns implies; columns with bounds (0, 1) and an `sd` hold 0 and
1. Numbers are drawn from normal ones with one correlation between any two. The formula then makes
its own columns of them: powers, products and levels are related as they will be. Residuals are
normal, exactly uncorrelated with the columns. All of it comes from a fixed seed, so that a plan is
the same every time.

Real columns seldom fill their bounds. *Skewed* rows are the second assumption that a plan without
``like=`` makes: numbers bunch at the lower end, the median a tenth of the way up, with a long tail
upwards, each level but the first has 5% of the rows, and residuals have a long tail as well.

With ``like=``, rows of another table take their place: an earlier year's, a synthetic file. Where
it has the response, its residuals give theirs their shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpreg.arrays import Floats
from dpreg.columns import Numeric
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.sources import LocalSource, as_source

__all__ = ["Assumed", "of_formula", "of_numbers"]

_ROWS: Final = 4096  # work
_SEED: Final = 24
_MOST: Final = 100_000
"""Rows of ``like=`` that are used: the first ones."""
_LOW: Final = 0.1
"""Of the way between the bounds: the median of skewed numbers."""
_SKEW: Final = 0.7
"""Standard deviation of their logarithms."""
_RARE: Final = 0.05
"""Share of the rows that has a level, in skewed rows."""
_ALONE: Final = 1e-7
"""Least share of a column's variance that the others may leave of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Assumed:
    """Rows in stored units, whose columns are those of a design without the constant.

    Attributes
    ----------
    x : (m, p) array
    shape : (m,) array
        Residuals of mean square 1.
    given : mapping of int to float
        Standard deviations given the others, of columns by their place in `x`, as stated.
    like : bool
        Whether they are rows of another table.
    own : (m,) array or None
        The stored response of these, where they have it.
    """

    x: Floats = field(repr=False)
    shape: Floats = field(repr=False)
    given: Mapping[int, float]
    like: bool = False
    own: Floats | None = field(default=None, repr=False)

    def deviations(self) -> Floats:
        """Return the standard deviation of each column given the others, in these rows: (p,)."""
        centred = self.x - self.x.mean(axis=0)
        moments = centred.T @ centred / len(centred)
        scale = np.sqrt(np.maximum(np.diag(moments), np.finfo(float).tiny))
        inverse = np.diag(np.linalg.pinv(moments / np.outer(scale, scale), hermitian=True))
        return np.asarray(scale / np.sqrt(np.maximum(inverse, 1.0)))

    def stated(self) -> Floats:
        """Return them as they were stated, or else as they are in these rows: (p,)."""
        found = self.deviations()
        found[list(self.given)] = list(self.given.values())
        return found

    def response(self, beta: Floats, sigma: float) -> Floats:
        """Return the response, (m,), of coefficients (p,) and a residual standard deviation."""
        explained = (self.x - self.x.mean(axis=0)) @ beta
        return np.asarray(np.clip(explained + sigma * self.shape, -1.0, 1.0))


def of_numbers(
    columns: int, given: Mapping[int, float], correlation: float, *, skewed: bool = False
) -> Assumed:
    """Make up rows of columns in [-1, 1].

    Parameters
    ----------
    columns : int
    given : mapping of int to float
        Standard deviations given the others.
    correlation : float
        In [0, 1).
    skewed : bool
        See the module.
    """
    rows = max(_ROWS, 4 * columns)
    normal = _normal(rows, columns, correlation)
    x = 2 * (_bunched(normal) if skewed else ndtr(normal)) - 1
    for j, sd in given.items():
        x[:, j] = np.clip(sd * _inflation(columns, correlation) * normal[:, j], -1, 1)
    return Assumed(x, _residuals(x, None, skewed=skewed), given)


def of_formula(
    design: Design,
    given: Mapping[int, float],
    correlation: float,
    like: Any = None,
    *,
    skewed: bool = False,
    least: int = _ROWS,
) -> Assumed:
    """Make up rows of a design, or make them of another table's rows.

    Parameters
    ----------
    design : Design
    given : mapping of int to float
        Standard deviations given the others, in stored units, by column of the design, from 1.
    correlation : float
        In [0, 1), between any two raw columns of numbers.
    like : table, optional
        With the raw columns of the formula; the response may be missing.
    skewed : bool
        See the module.
    least : int
        Rows to make up at least.
    """
    known = {
        design.columns[j].name: sd * design.columns[j].width
        for j, sd in given.items()
        if _alone(design, j)
    }
    rows = max(least, 4 * len(design.columns))
    table = _raw(design, known, correlation, rows, skewed=skewed) if like is None else like
    source, outcome = _local(table), design.needed[0]
    missing = [name for name in design.needed[1:] if name not in source.names]
    if missing:
        raise ArgumentError(f"like lacks columns of the formula: {', '.join(missing)}.")
    own = like is not None and outcome in source.names
    read = {name: kind for name, kind in design.types.items() if own or name != outcome}
    blocks = [design.block(_with(design, chunk, own)) for chunk in source.chunks(read, _MOST)]
    z = np.concatenate([block[block[:, 0] > 0] for block in blocks])[:_MOST]
    x = z[:, 1:-1]
    if len(x) <= 2 * x.shape[1] + 2:
        raise ArgumentError(
            "like must have complete rows of the formula's columns, more than twice as many as "
            "the formula has columns."
        )
    response = np.ascontiguousarray(z[:, -1]) if own else None
    shape = _residuals(x, response, skewed=skewed)
    stated = {j - 1: sd for j, sd in given.items()}
    return Assumed(np.ascontiguousarray(x), shape, stated, like=like is not None, own=response)


def _local(table: Any) -> LocalSource:
    source = as_source(table)
    if not isinstance(source, LocalSource):
        raise ArgumentError("like must be a table of this process, such as a DataFrame or a file.")
    return source


def _alone(design: Design, j: int) -> bool:
    """Whether no other term is made of the raw column too.

    Given its powers and products a column varies little, whatever its own spread is.
    """
    own = next(term for term in design.terms if j in term.columns)
    words = {word for factor in own.factors for word in re.findall(r"\w+", factor)}
    others = [factor for term in design.terms if term is not own for factor in term.factors]
    return not any(words & set(re.findall(r"\w+", factor)) for factor in others)


def _with(design: Design, chunk: Mapping[str, Any], own: bool) -> Mapping[str, Any]:
    """Return a chunk with a response, in the middle of its bounds where it has none of its own."""
    if own:
        return chunk
    declared = design.schema[design.needed[0]]
    value = (declared.lo + declared.hi) / 2 if isinstance(declared, Numeric) else 0.0
    rows = len(next(iter(chunk.values())))
    return {**chunk, design.needed[0]: np.full(rows, value)}


def _raw(
    design: Design, known: Mapping[str, float], correlation: float, rows: int, *, skewed: bool
) -> pd.DataFrame:
    """Make up the raw columns that a formula reads."""
    needed = design.needed[1:]
    numeric = [name for name in needed if isinstance(design.schema[name], Numeric)]
    normal = dict(zip(numeric, _normal(rows, len(numeric), correlation).T, strict=True))
    rng = np.random.default_rng([_SEED, 1])
    table: dict[str, Any] = {}
    for name in needed:
        declared = design.schema[name]
        if isinstance(declared, Numeric):
            spread = known.get(name)
            inflated = None if spread is None else spread * _inflation(len(numeric), correlation)
            table[name] = _numbers(declared, normal[name], inflated, skewed=skewed)
            continue
        levels = list(getattr(declared, "levels", (False, True)))
        shares = _shares(levels, name, known, skewed=skewed)
        counts = np.diff(np.round(np.cumsum([0.0, *shares]) * rows).astype(int))
        table[name] = np.array(levels, dtype=object)[
            rng.permutation(np.repeat(np.arange(len(levels)), counts))
        ]
    return pd.DataFrame(table)


def _bunched(normal: Floats) -> Floats:
    """Return skewed numbers between 0 and 1."""
    return np.minimum(_LOW * np.exp(_SKEW * normal), 1.0)


def _numbers(
    declared: Numeric, normal: Floats, spread: float | None, *, skewed: bool = False
) -> Floats:
    low, high = declared.lo, declared.hi
    if spread is None and skewed:
        if (low, high) == (0, 1):
            return (normal > ndtri(1 - _RARE)).astype(float)
        return np.asarray(low + (high - low) * _bunched(normal))
    if spread is None:
        return np.asarray(low + (high - low) * ndtr(normal))
    if (low, high) == (0, 1):
        share = 0.5 - math.sqrt(max(0.5**2 - spread**2, 0.0))
        at_least_two = max(round(share * len(normal)), 2)
        return (np.argsort(np.argsort(-normal)) < at_least_two).astype(float)
    return np.asarray(np.clip((low + high) / 2 + spread * normal, low, high))


def _shares(
    levels: list[Any], name: str, known: Mapping[str, float], *, skewed: bool = False
) -> list[float]:
    """Return the shares of levels: equal, or as 1/sd^2 = 1/share + 1/share of the base has it."""
    stated = [known.get(f"{name}[T.{level}]") for level in levels[1:]]
    if not any(stated) and skewed:
        rare = min(_RARE, 0.5 / len(levels))
        return [1 - rare * (len(levels) - 1), *[rare] * (len(levels) - 1)]
    if not any(stated):
        return [1 / len(levels)] * len(levels)

    def shares(base: float) -> list[float]:
        others = [base if sd is None else 1 / max(sd**-2 - 1 / base, 1.0) for sd in stated]
        return [base, *others]

    # The largest share of the base with which all of them add up to 1, or nearly so.
    gaps = {base: abs(sum(shares(base)) - 1) for base in np.linspace(1, 0, 1001)[1:-1]}
    found = shares(min(gaps, key=lambda base: (round(gaps[base], 2), -base)))
    return [share / sum(found) for share in found]


def _normal(rows: int, columns: int, correlation: float) -> Floats:
    """Draw normal columns whose means, variances and correlations are as asked for, exactly."""
    drawn = np.random.default_rng(_SEED).standard_normal((rows, columns + 1))
    drawn -= drawn.mean(axis=0)
    drawn = np.linalg.qr(drawn)[0] * math.sqrt(rows)
    shared = drawn[:, :1] * math.sqrt(correlation)
    return np.asarray(drawn[:, 1:] * math.sqrt(1 - correlation) + shared)


def _inflation(columns: int, correlation: float) -> float:
    """Return a column's standard deviation over that given the others: equal correlations."""
    if columns < 2:
        return 1.0
    others = columns - 1
    explained = others * correlation**2 / (1 + (others - 1) * correlation)
    return 1 / math.sqrt(1 - explained)


def _residuals(x: Floats, response: Floats | None, *, skewed: bool = False) -> Floats:
    """Return residuals of mean square 1, orthogonal to the constant and the columns."""
    design = np.column_stack([np.ones(len(x)), x])
    drawn = np.random.default_rng([_SEED, 2]).standard_normal(len(x))
    if skewed:
        drawn = np.exp(_SKEW * drawn)
    basis = np.linalg.qr(design)[0]
    start = drawn if response is None else response
    left = start - basis @ (basis.T @ start)
    size = math.sqrt(float(np.square(left).mean()))
    if size <= _ALONE:
        return drawn
    return np.asarray(left / size)
