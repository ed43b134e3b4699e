"""Rows for looks: hostile cells, places near and far, and what plain floats say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from dpreg.arrays import to_grid
from dpreg.columns import Numeric
from dpreg.grouped import CodedRows, Layout
from dpreg.looks.coordinates import Place, Point, place_of
from dpreg.looks.families import Binomial, Linear, Poisson
from dpreg.looks.records import Described, Told
from dpreg.looks.rows import Rows

ONE, FULL = 2**20, 2**40


@dataclass(frozen=True)
class Stored:
    """Rows that are already stored: the chunk's columns are the cells of (1, x, y)."""

    size: int

    @property
    def types(self) -> dict[str, Numeric]:
        return {f"z{j}": Numeric(-1, 1) for j in range(self.size)}

    def block(self, chunk: Any) -> np.ndarray:
        return np.column_stack([chunk[f"z{j}"] for j in range(self.size)])

    def cells(self, chunk: Any) -> np.ndarray:
        return to_grid(self.block(chunk))

    @property
    def layout(self) -> Layout:
        return Layout(self.size)

    def coded(self, chunk: Any) -> CodedRows:
        return CodedRows(self.cells(chunk), ())


def chunk(z: Any) -> dict[str, np.ndarray]:
    return {f"z{j}": column for j, column in enumerate(np.asarray(z, dtype=float).T)}


@dataclass(frozen=True)
class Kind:
    """A family with the response that it has in a table, and whether rows have trials."""

    family: Any
    response: tuple[float, float]
    most: float = 0.0

    def described(self, p: int, offsets: int = 0) -> Described:
        """Columns, offsets after them, then trials, then the response."""
        trials = None
        if self.most:
            trials = Told(p + offsets + 1, (self.most / 2, self.most / 2), self.most, True)
        places = tuple(range(p + 1, p + offsets + 1))
        known = tuple(0.5 + 0.25 * j for j in range(offsets))
        return Described(tuple(range(1, p + 1)), places, known, self.response, trials)


KINDS = {
    "linear": Kind(Linear(), (0.0, 1.0)),
    "logit": Kind(Binomial(), (0.5, 0.5)),
    "trials": Kind(Binomial(7.5), (20.0, 20.0), 40.0),
    "counts": Kind(Poisson(20.0), (10.0, 10.0)),
    "large counts": Kind(Poisson(3e5), (1.5e5, 1.5e5)),
}


def point_of(
    rng: np.random.Generator, kind: Kind, p: int, *, far: float = 1.0, steep: float = 1.0
) -> Point:
    """A point whose coordinates reach as far as `far`."""
    whitening = rng.normal(size=(p, p)) * far
    weight = 10.0 ** rng.uniform(-2, 1)
    return Point(
        rng.uniform(-1, 1, p), whitening, rng.normal(size=p) * steep,
        kind.family.predictor(kind.family.cap / 3), weight, 1.0, np.ones(p), np.ones(p),
    )  # fmt: skip


def rows_of(
    rng: np.random.Generator,
    kind: Kind,
    p: int,
    *,
    offsets: int = 0,
    together: bool = False,
    far: float = 1.0,
    steep: float = 1.0,
    limits: tuple[float, float] | None = None,
    times: int = 1,
) -> Rows:
    """Rows at a random place."""
    described = kind.described(p, offsets)
    information, score = limits or (10.0 ** rng.uniform(-1, 2), 10.0 ** rng.uniform(-2, 2))
    place, _ = place_of(
        point_of(rng, kind, p, far=far, steep=steep), kind.family, known=described.known,
        information=information, score=score, together=together, times=times,
    )  # fmt: skip
    size = p + offsets + 2 + (described.trials is not None)
    return Rows(Stored(size), described, place)


def hostile(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Rows at corners, beyond the box, missing, tiny and ordinary; the first cell says if whole."""
    z = rng.choice([-1.0, 1.0, 0.0, 1e-7, 0.3, 5.0, -np.inf, np.inf, np.nan], (n, size))
    z[: n // 2] = rng.uniform(-1, 1, (n // 2, size))
    quarter = slice(n // 2, 3 * n // 4)
    z[quarter] = rng.choice([-1.0, 1.0], z[quarter].shape)
    z[:, 0] = rng.choice([1.0, 1.0, 1.0, 0.0], n)
    return z


@dataclass(frozen=True)
class Plain:
    """What rows come to in plain floats, before any limit."""

    v: np.ndarray
    mean: np.ndarray
    weight: np.ndarray
    residual: np.ndarray
    farthest: np.ndarray
    held: np.ndarray
    eta: np.ndarray
    cap: np.ndarray
    """How many trials a row of yes or no has; else the largest response there can be."""


def plain(rows: Rows, cells: np.ndarray) -> Plain:
    """Compute u, mean, weight and residual row by row from the gridded cells, with scipy."""
    x, y = cells[1:-1] / ONE, cells[-1] / ONE
    place, described, family = rows.place, rows.described, rows.place.family
    columns = np.array([x[j - 1] for j in described.columns]).reshape(-1, cells.shape[1])
    u = [form.floats[0] + form.floats[1] @ columns for form in place.forms]
    v = np.array([np.ones(cells.shape[1]), *u])
    constant, slopes = place.predictor.floats
    both = [x[j - 1] for j in (*described.columns, *described.offsets)]
    eta = constant + slopes @ np.array(both).reshape(-1, cells.shape[1])
    answer = described.response[0] + described.response[1] * y
    held, whole, cap = cells[0] != 0, eta, np.full_like(eta, family.cap)
    none = np.full_like(eta, np.nan)
    if family.name == "gaussian":
        return Plain(v, eta, np.ones_like(eta), answer - eta, none, held, eta, cap)
    eta = np.clip(eta, *family.limits)
    if family.name == "binomial":
        counts = np.ones_like(eta)
        if described.trials is not None:
            t = described.trials
            counts = np.rint(t.scale[0] + t.scale[1] * cells[t.column] / ONE)
            held = held & (counts > 0)
        mean = counts * expit(eta)
        weight = counts * expit(eta) * expit(-eta)
        answer = np.minimum(answer, counts)
        farthest = np.maximum(mean, counts - mean)
        return Plain(v, mean, weight, answer - mean, farthest, held, whole, counts)
    mean = np.exp(eta)
    return Plain(v, mean, mean, np.minimum(answer, cap) - mean, none, held, whole, cap)


def squares(whole: np.ndarray) -> list[int]:
    """Exact sums of squares of each column of integers."""
    assert (whole == np.rint(whole)).all()
    return [sum(int(cell) ** 2 for cell in column) for column in whole.T]


def limits_of(place: Place) -> tuple[float, float, float]:
    """Root of the mean weight, and both limits, as floats."""
    return float(np.sqrt(place.weight)), place.information, place.score


def with_contrast(found):
    """k, f and the contrast, inner less outer part, of every row or person."""
    k, f, outer, far = found
    if len(f) < len(k):  # of a locating look, which has none
        return k, f, k[:0]
    contrast = f.copy()
    contrast[:, far] -= 2 * outer
    return k, f, contrast
