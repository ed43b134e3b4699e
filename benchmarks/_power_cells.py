"""The settings of `benchmarks.power`: columns, errors, and which terms have an effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import ndtr
from scipy.stats import expon, lognorm, norm, poisson, t

from benchmarks._regression_cells import boxed, load
from dpreg.selection.space import Space

SIGMA = 0.2
FAINT = 0.03
"""An effect that is just found with 10,000 rows and no correlation."""
PROXIES = {"proxy2": (3, 0.3), "proxy4": (2, 0.5), "proxy8": (1, 0.5)}
"""How many proxies, and their noise beside sums scaled to one."""
SPREAD = 0.25
"""Standard deviation of a column, in its box [-1, 1]."""
EFFECTS = (0.2, -0.15, 0.1, 0.06, 0.03)
"""Of a column with that standard deviation."""
STRONG = 0.1
LEVELS = (0.4, 0.3, 0.2, 0.08, 0.02)
"""Shares of a factor's levels, the base first."""
LEVEL_EFFECTS = (0.04, -0.04, 0.05, 0.08)
_FARTHEST = 12.0
"""Where errors that are not normal are cut, in standard deviations."""
_WIDE = 0.2
"""What such errors and effects are multiplied by: their box is five times as wide."""


@dataclass(frozen=True)
class Cell:
    """One setting of the grid.

    design: "equal" (equicorrelated columns, five effects), "chain" (each column correlated with
    the next, half of them with an effect), "copies" (three noisy copies of strong columns at the
    end), "sums" (three noisy sums of two columns with an effect at the end), "null" (no effect),
    "faint" (equicorrelated, every other one with the same effect, near what is just found), "links"
    (the same in a chain), "proxy2" and the like (three noisy sums of two faint columns each at the
    end; or two of four, or one of eight).
    columns: "normal", "exponential", "lognormal", "count", "rare" (every third is 0/1 with one in
    fifty), "factor" (the second, with an effect, and the last, without, are factors).
    errors: "normal", "t4", "exponential", "lognormal", "spread" (lognormal, and spread further
    where the fit is larger).
    neighbors: "replace-one", or "add-remove".
    each: rows of a person, who is the unit where it is not 0; half of the variance of normal errors
    is the person's then.
    """

    p: int = 8
    n: int = 10_000
    eps: float = 1.0
    delta: float = 0.0
    rho: float = 0.5
    design: str = "equal"
    columns: str = "normal"
    errors: str = "normal"
    neighbors: str = "replace-one"
    each: int = 0

    @property
    def name(self) -> str:
        budget = f"eps{self.eps:g} " + ("1e-6" if self.delta else "pure")
        budget += f" {self.neighbors}" if self.neighbors != "replace-one" else ""
        budget += f" persons of {self.each}" if self.each else ""
        kind = "" if self.columns == self.errors == "normal" else f" {self.columns}/{self.errors}"
        return f"{self.design}{kind} p{self.p} rho{self.rho:g} n{self.n:g} {budget}"

    @property
    def space(self) -> Space:
        """The units on offer: a column each, or the four of a factor."""
        widths = [
            4 if self.columns == "factor" and u in (1, self.p - 1) else 1 for u in range(self.p)
        ]
        ends = np.cumsum([1, *widths])
        places = [tuple(range(a, b)) for a, b in pairwise(ends)]
        return Space(
            units=tuple(f"x{u}" for u in range(1, self.p + 1)),
            unit_columns=tuple(places),
            keep_columns=(0,),
        )


def main_cells() -> list[Cell]:
    """The grid of found and useless terms, the telling ones first."""
    found = [
        Cell(p, n, eps, delta, rho)
        for p in (8, 20, 50, 100)
        for rho in (0.0, 0.5, 0.9)
        for n in (1_000, 10_000, 100_000, 1_000_000)
        for eps in (0.5, 1.0, 2.0, 4.0)
        for delta in (0.0, 1e-6)
    ]

    def order(cell: Cell) -> tuple[float, ...]:
        far = abs(np.log10(cell.n / 10_000)) + abs(np.log2(cell.eps)) + (cell.rho != 0.5)
        return far + {8: 0, 20: 0.5, 50: 1, 100: 1.5}[cell.p] + 2 * (
            cell.n > 100_000
        ), cell.n * cell.p

    return sorted(found, key=order)


def hard_cells() -> list[Cell]:
    """Designs with stand-ins: chains, noisy copies and sums."""
    return [
        Cell(p, n, 1.0, delta, rho, design)
        for n in (10_000, 30_000, 3_000, 1_000)
        for design, rho in (("copies", 0.3), ("chain", 0.9), ("chain", 0.98), ("sums", 0.3))
        for p in (8, 20)
        for delta in (1e-6, 0.0)
    ]


def standing_cells() -> list[Cell]:
    """Faint terms, with and without useless ones that stand for them."""
    kinds = [("faint", r) for r in (0.0, 0.5, 0.9)] + [("links", 0.9)] + [(k, 0.0) for k in PROXIES]
    return [
        Cell(10, n, 1.0, delta, rho, design)
        for n in (10_000, 20_000, 40_000)
        for delta in (1e-6, 0.0)
        for design, rho in kinds
    ]


def skewed_cells() -> list[Cell]:
    """Columns and errors that are not normal, with effects and without any."""
    kinds = [
        ("lognormal", "spread"), ("lognormal", "lognormal"), ("exponential", "spread"),
        ("count", "exponential"), ("rare", "spread"), ("rare", "lognormal"), ("normal", "spread"),
        ("normal", "t4"), ("factor", "lognormal"), ("count", "lognormal"),
    ]  # fmt: skip
    return [
        Cell(p, n, 1.0, delta, 0.5, design, columns, errors)
        for design in ("equal", "null")
        for n, p in ((20_000, 12), (100_000, 8))
        for columns, errors in kinds
        for delta in (1e-6, 0.0)
    ]


def wide_cells() -> list[Cell]:
    """Hundreds of columns, and rows enough to look at so many."""
    return [
        Cell(p, n, 4.0, delta, rho)
        for p, n in ((100, 100_000), (300, 100_000))
        for rho in (0.0, 0.5)
        for delta in (1e-6, 0.0)
    ]


def relation_cells() -> list[Cell]:
    """Other neighbours: rows that come or go, and persons with five rows each."""
    kinds = [("add-remove", 0), ("replace-one", 5), ("add-remove", 5)]
    return [
        Cell(8, 20_000, 1.0, delta, rho, neighbors=neighbors, each=each)
        for neighbors, each in kinds
        for rho in (0.5, 0.9)
        for delta in (1e-6, 0.0)
    ]


def coverage_cells() -> list[Cell]:
    """The audit of intervals after the choice: 28 cells."""
    plain = [
        Cell(p, n, 1.0, delta, rho)
        for p, n, delta, rho in (
            (8, 10_000, 0.0, 0.5), (8, 10_000, 1e-6, 0.5), (5, 10_000, 0.0, 0.0),
            (5, 10_000, 1e-6, 0.9), (8, 100_000, 0.0, 0.9), (8, 100_000, 1e-6, 0.0),
            (15, 10_000, 1e-6, 0.5),
            (15, 100_000, 0.0, 0.0), (20, 100_000, 0.0, 0.5), (20, 10_000, 1e-6, 0.0),
            (20, 100_000, 1e-6, 0.9), (15, 100_000, 0.0, 0.9), (5, 100_000, 0.0, 0.5),
            (5, 100_000, 1e-6, 0.0), (20, 30_000, 1e-6, 0.5), (15, 10_000, 1e-6, 0.9),
        )
    ]  # fmt: skip
    odd = [
        Cell(p, n, 1.0, delta, 0.5, "equal", columns, errors)
        for p, n, delta, columns, errors in (
            (8, 10_000, 1e-6, "normal", "t4"), (8, 100_000, 0.0, "normal", "t4"),
            (5, 10_000, 0.0, "factor", "normal"), (8, 100_000, 1e-6, "factor", "normal"),
            (8, 10_000, 1e-6, "normal", "exponential"), (8, 100_000, 0.0, "normal", "lognormal"),
            (5, 10_000, 0.0, "exponential", "exponential"),
            (8, 100_000, 1e-6, "lognormal", "spread"),
            (8, 10_000, 1e-6, "count", "spread"), (15, 100_000, 1e-6, "exponential", "lognormal"),
            (8, 20_000, 1e-6, "rare", "lognormal"), (5, 100_000, 0.0, "count", "exponential"),
        )
    ]  # fmt: skip
    return [cell for pair in zip(plain, odd, strict=False) for cell in pair] + plain[len(odd) :]


REAL = {"kc_house": "King County", "randhie": "randhie", "bike": "bike"}
PERMUTED = 3
"""Useless columns that are added to real rows: permuted copies of their first ones."""


def real_cells() -> list[Cell]:
    """Real rows and useless columns: what BIC chooses counts as what has an effect."""
    sizes = {name: real_rows(name)[0].shape for name in REAL}
    return [
        Cell(p + PERMUTED, n, 1.0, delta, 0.0, name)
        for name, (n, p) in sizes.items()
        for delta in (0.0, 1e-6)
    ]


@lru_cache(4)
def real_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and the response of a real data set, in its box."""
    x, y = boxed(load(name))
    return x[:, 1:], y


def bic(cell: Cell, sums: np.ndarray) -> set[int]:
    """Return the units that BIC keeps, from the moments of (1, x, y)."""
    return bic_units(sums, cell.space)


def bic_units(sums: np.ndarray, space: Space) -> set[int]:
    """Return the units that backward elimination by BIC keeps, from the moments of (1, x, y)."""
    n = sums[0, 0]
    moments = sums[1:, 1:] - np.outer(sums[0, 1:], sums[0, 1:]) / n
    places = [[c - 1 for c in unit] for unit in space.unit_columns]
    kept = list(range(len(places)))
    while kept:
        at = [c for u in kept for c in places[u]]
        inverse = np.linalg.pinv(moments[np.ix_(at, at)], hermitian=True)
        slopes = inverse @ moments[at, -1]
        left = moments[-1, -1] - slopes @ moments[at, -1]
        losses, first = [], 0
        for unit in kept:
            block = slice(first, first + len(places[unit]))
            first = block.stop
            own = slopes[block] @ np.linalg.solve(inverse[block, block], slopes[block])
            losses.append(n * np.log1p(own / left) - len(places[unit]) * np.log(n))
        worst = int(np.argmin(losses))
        if losses[worst] > 0:
            break
        kept.pop(worst)
    return set(kept)


GRIDS = {
    "real": real_cells,
    "main": main_cells,
    "hard": hard_cells,
    "skewed": skewed_cells,
    "standing": standing_cells,
    "wide": wide_cells,
    "relations": relation_cells,
    "coverage": coverage_cells,
}


def all_cells(grids: list[str]) -> Iterator[Cell]:
    """Yield the cells of the grids named, each once."""
    yield from dict.fromkeys(cell for grid in grids for cell in GRIDS[grid]())


def effects(cell: Cell) -> np.ndarray:
    """Return which units have an effect, and how large, (p,): for a factor its largest level's."""
    beta = np.zeros(cell.p)
    if cell.design in REAL:
        rows = np.column_stack([np.ones(cell.n), *real_rows(cell.design)])
        beta[list(bic(replace(cell, p=cell.p - PERMUTED), rows.T @ rows))] = 1.0
    elif cell.design == "chain":
        beta[np.linspace(0, cell.p - 1, cell.p // 2).astype(int)] = 0.1
    elif cell.design == "equal":
        beta[: len(EFFECTS)] = EFFECTS[: cell.p]
        if cell.p == len(EFFECTS):
            beta[2] = 0.0  # one useless term at least
    elif cell.design in ("faint", "links"):
        beta[::2] = FAINT / np.sqrt(1 - cell.rho)
    elif cell.design in PROXIES:
        beta[: PROXIES[cell.design][0] * int(cell.design[5:])] = FAINT
    elif cell.design != "null":
        beta[:3] = 0.2
    return beta


@lru_cache(4)
def _root(p: int, rho: float, design: str) -> np.ndarray:
    """The factor of the correlation of the p normal columns that all others are made of."""
    index = np.arange(p)
    if design in ("chain", "links"):
        return np.linalg.cholesky(rho ** np.abs(index[:, None] - index))
    covariance = np.full((p, p), rho) + (1 - rho) * np.eye(p)
    if design in ("copies", "sums"):
        mixed = np.eye(p)
        for place in range(3):
            mixed[p - 3 + place] = 0.0
            mixed[p - 3 + place, place] = 1.0
            if design == "sums":
                mixed[p - 3 + place, (place + 1) % 3] = 1.0
                mixed[p - 3 + place] *= 0.6
        covariance = mixed @ covariance @ mixed.T
        covariance[-3:, -3:] += (0.2 if design == "sums" else 0.1) ** 2 * np.eye(3)
    if design in PROXIES:
        number, noise = PROXIES[design]
        mixed, each = np.eye(p), int(design[5:])
        for place in range(number):
            mixed[p - number + place] = 0.0
            mixed[p - number + place, place * each : (place + 1) * each] = each**-0.5
        covariance = mixed @ covariance @ mixed.T
        covariance[-number:, -number:] += noise**2 * np.eye(number)
    return np.linalg.cholesky(covariance)


def _columns(cell: Cell, z: np.ndarray) -> np.ndarray:
    """Return (n, c) columns in the box."""
    kind = cell.columns
    if kind == "exponential":
        return np.minimum(expon.ppf(ndtr(np.minimum(z, 6))) / 4, 2) - 1
    if kind == "lognormal":
        return np.minimum(np.exp(z) / np.exp(2.8), 2) - 1
    if kind == "count":
        table = poisson.ppf(ndtr(np.linspace(-6, 6, 2401)), 2)
        return np.minimum(table[np.clip(200 * (z + 6), 0, 2400).astype(int)] / 6, 2) - 1
    x = np.clip(SPREAD * z, -1, 1)
    if kind == "rare":
        x[:, 1::3] = np.where(z[:, 1::3] > norm.isf(0.02), 1.0, -1.0)
    if kind == "factor":
        blocks = [
            x[:, [u]] if u not in (1, cell.p - 1) else _levels(z[:, u]) for u in range(cell.p)
        ]
        return np.hstack(blocks)
    return x


def _levels(z: np.ndarray) -> np.ndarray:
    level = np.searchsorted(norm.ppf(np.cumsum(LEVELS)[:-1]), z)
    return (level[:, None] == np.arange(1, 5)).astype(float)


@lru_cache(16)
def population(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return the second moments of (1, x), from 400,000 drawn rows, and the coefficients of x."""
    rng = np.random.default_rng(17)
    total, rows = 0.0, 50_000
    for _ in range(8):
        x = _draw_columns(cell, rows, rng)
        ones = np.column_stack([np.ones(rows), x])
        total = total + ones.T @ ones / (8 * rows)
    sd = np.sqrt(np.diag(total)[1:] - total[0, 1:] ** 2)
    own, space = effects(cell), cell.space
    beta = np.zeros(len(sd))
    for unit, places in enumerate(space.unit_columns):
        at = [c - 1 for c in places]
        if len(at) > 1:
            beta[at] = np.array(LEVEL_EFFECTS) * (own[unit] != 0)
        else:
            beta[at] = own[unit] * (SPREAD / sd[at] if cell.columns != "normal" else 1.0)
    return np.asarray(total), beta * _unit(cell)


def _unit(cell: Cell) -> float:
    return 1.0 if cell.errors == "normal" else _WIDE


def _draw_columns(cell: Cell, n: int, rng: np.random.Generator) -> np.ndarray:
    return _columns(cell, rng.standard_normal((n, cell.p)) @ _root(cell.p, cell.rho, cell.design).T)


@lru_cache(8)
def _standard(errors: str) -> tuple[float, float]:
    """Mean and standard deviation of the errors, cut far out."""
    u = (np.arange(2_000_000) + 0.5) / 2_000_000
    raw = _raw(errors, u)
    return float(raw.mean()), float(raw.std())


def _raw(errors: str, u: np.ndarray) -> np.ndarray:
    law = {"t4": t(4), "exponential": expon(), "lognormal": lognorm(0.8), "spread": lognorm(0.8)}
    raw = law[errors].ppf(u)
    return np.clip(raw, -_FARTHEST * 1.4, _FARTHEST * 1.4)


@lru_cache(8)
def _table(errors: str) -> np.ndarray:
    mean, sd = _standard(errors)
    return (_raw(errors, (np.arange(2_000_000) + 0.5) / 2_000_000) - mean) / sd


def draw(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw n rows: columns and response in the box, the model linear with errors of mean 0."""
    if cell.design in REAL:
        x, y = real_rows(cell.design)
        return np.hstack([x, rng.permuted(x[:, :PERMUTED], axis=0)]), y
    _, beta = population(cell)
    x = _draw_columns(cell, cell.n, rng)
    fit = x @ beta
    if cell.errors == "normal":
        errors = rng.standard_normal(cell.n)
        if cell.each:
            own = np.repeat(rng.standard_normal(-(-cell.n // cell.each)), cell.each)[: cell.n]
            errors = (errors + own) / np.sqrt(2)
        return x, np.clip(fit + SIGMA * errors, -1, 1)
    errors = _table(cell.errors)[rng.integers(0, 2_000_000, cell.n)]
    if cell.errors == "spread":
        at = np.zeros(cell.n) if not fit.any() else (fit - fit.mean()) / fit.std()
        if not fit.any():
            at = (x[:, 0] - x[:, 0].mean()) / x[:, 0].std()
        errors = errors * np.clip(np.exp(0.4 * at) / 1.08, 0.2, 2.5)
    return x, np.clip(fit + _WIDE * SIGMA * errors, -1, 1)
