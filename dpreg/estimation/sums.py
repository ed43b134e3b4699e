"""Release count, sums and sums of squares of bounded columns jointly: all that means need.

`dpreg.estimation.coding` says what is released, and how far one row can move it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Floats, Ints, Objects
from dpreg.estimation.coding import CELL_UNITS, GRID_ONE, Coding, Sums
from dpreg.privacy.vector_noise import VectorNoise, fit_noise

if TYPE_CHECKING:
    from dpreg.privacy.account import Part
    from dpreg.privacy.budget import Budget
    from dpreg.privacy.protection import Protection

__all__ = ["NoisySums", "accumulate", "plan", "release", "to_grid"]


_TOGETHER: Final = 1 << 20
"""Rows added up in int64: with |u| <= 2**20 units their squares stay below 2**60."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Released sums of one group, in units of u, with the covariance of their noise.

    Attributes
    ----------
    count : float
        Released number of complete rows, or n where it is public.
    sums, squares : (d,) arrays
        sum u and sum u^2 of each column; squares are absent (empty) at degree 1.
    noise : (3, 3) array
        Covariance of the noise in (count, sum, square), the same for every column.
    """

    count: float
    sums: Floats
    squares: Floats
    noise: Floats


def plan(
    columns: int,
    groups: int,
    *,
    degree: int,
    grouped: bool,
    cost: Budget,
    protection: Protection,
    complete: bool = False,
    noise: str | None = None,
) -> tuple[Coding, VectorNoise]:
    """Choose coding and noise, from public facts: the least noise in the sums.

    Parameters
    ----------
    columns, groups : int
        d, and the number of groups whose cells are released (1 without `grouped`).
    degree : {1, 2}
        2 releases sums of squares as well.
    grouped : bool
        Whether a replaced row may move between groups.
    cost : Budget
    protection : Protection
    complete : bool
        The caller says that no value is missing; n is public.
    noise : {None, "laplace", "gaussian"}
    """
    plans = []
    for mechanism in ("laplace", "gaussian") if noise is None else (noise,):
        if noise is None and mechanism == "gaussian" and cost.delta == 0:
            continue
        coding = _coding(columns, degree, grouped, protection, complete, mechanism)
        bound = coding.sensitivity(protection, grouped)
        fitted = fit_noise(mechanism, bound, cells=groups * coding.cells, cost=cost)
        plans.append((fitted.variance * (2 if coding.bernstein else 1), coding, fitted))
    _, coding, fitted = min(plans, key=lambda option: option[0])
    return coding, fitted


def _coding(
    d: int, degree: int, grouped: bool, protection: Protection, complete: bool, mechanism: str
) -> Coding:
    if complete:
        return Coding(False, degree, d)
    replaced = protection.changes == 2
    if mechanism == "laplace":
        if grouped or not replaced:
            return Coding(True, degree, d)
        return Coding(False, degree, d, Fraction(3 * d, 4) if degree == 2 else Fraction(d))
    together = Fraction(3, 2) if replaced and not grouped else Fraction(1)  # proved
    return Coding(False, degree, d, together)


def release(
    exact: Sequence[Sums],
    coding: Coding,
    noise: VectorNoise,
    *,
    part: Part,
    rows: int | None = None,
) -> list[NoisySums]:
    """Add the noise and read the sums off again, group by group.

    Parameters
    ----------
    exact : sequence of Sums
        One a group, in a public order.
    coding, noise
        From `plan`.
    part : Part
        What the sums of all groups may cost: they are one vector.
    rows : int, optional
        n, where the coding leaves the count out.
    """
    decoder, released = coding.decoder(), []
    d = coding.columns
    covariance = noise.variance / CELL_UNITS**2 * (decoder @ decoder.T)
    first = [0, 1, 1 + d][: 1 + coding.degree]
    small = np.zeros((3, 3))
    small[: len(first), : len(first)] = covariance[np.ix_(first, first)]
    for sums, own in zip(exact, part.across(len(exact)), strict=True):
        cells = coding.encode(sums)
        drawn = noise.draw(len(cells), own)
        noisy = np.array([(c + z) / CELL_UNITS for c, z in zip(cells, drawn, strict=True)])
        read = decoder @ noisy
        squares = read[1 + d :]
        if rows is not None:
            read[0] = rows
            squares = squares + rows / 2  # the part of the count in u^2 - c/2
        released.append(NoisySums(float(read[0]), read[1 : 1 + d], squares, small))
    return released


def to_grid(values: Floats, lo: float, hi: float) -> Floats:
    """Clip to the bounds, scale to [-1, 1], round to whole units of 2**-20. NaN stays NaN."""
    middle, half = lo + (hi - lo) / 2, (hi - lo) / 2
    scaled = np.clip((np.clip(values, lo, hi) - middle) / half, -1.0, 1.0)
    return np.asarray(np.rint(scaled * GRID_ONE), dtype=np.float64)


def accumulate(
    chunks: Iterable[tuple[Floats, Ints]], columns: int, groups: int
) -> tuple[Sums, ...]:
    """Sum exactly, group by group, over chunks of any size.

    Parameters
    ----------
    chunks : iterable of (grid, labels)
        Rows (m, d) from `to_grid`, and each row's group, -1 for none. A row with a NaN is excluded.
    columns, groups : int
    """
    totals = [Sums(0, (0,) * columns, (0,) * columns) for _ in range(groups)]
    for grid, labels in chunks:
        kept = (labels >= 0) & ~np.isnan(grid).any(axis=1)
        cells, where = grid[kept].astype(np.int64), labels[kept]
        for group in range(groups) if groups > 1 else (0,):
            part = cells if groups == 1 else cells[where == group]
            for start in range(0, len(part), _TOGETHER):
                some = part[start : start + _TOGETHER]
                totals[group] = totals[group] + Sums(
                    len(some),
                    tuple(int(s) for s in some.sum(axis=0)),
                    tuple(int(s) for s in (some * some).sum(axis=0)),
                )
    return tuple(totals)


def pack(groups: Iterable[Sums]) -> Objects:
    """Write sums as one vector of integers, which adds as they do."""
    flat: list[int] = []
    for one in groups:
        flat += [one.count, *one.sums, *one.squares]
    return np.array(flat, dtype=object)


def unpack(vector: Ints | Objects, columns: int) -> tuple[Sums, ...]:
    """Read sums of some columns off the vector that `pack` wrote."""
    parts = []
    for count, *rest in vector.reshape(-1, 1 + 2 * columns).tolist():
        parts.append(Sums(int(count), tuple(rest[:columns]), tuple(rest[columns:])))
    return tuple(parts)
