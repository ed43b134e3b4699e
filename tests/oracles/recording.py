"""What a call really draws, taken down at the doors where noise enters, and what that costs.

`Tape` listens at the mechanisms themselves: their scales, and the rows whose moments reach them.
Below are formulas for what one person can change, and for what a draw at a scale then costs; they
use neither dpreg's sensitivities nor its calibration. `oracles.recorded_costs` applies them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from dpreg import moments
from dpreg.estimation import gram, perturbed, sums
from dpreg.looks import minimum as held
from dpreg.privacy import ranks, seeded
from dpreg.privacy.mechanisms import additive, choice, wishart
from dpreg.privacy.mechanisms import floors as l2_norm
from dpreg.selection import draws as estimates
from dpreg.selection.scoring import problem
from dpreg.selection.tree import search as sampler

UNIT = 2.0**-40
"""Moments are integers in this unit."""


@dataclass(frozen=True)
class Draw:
    """One use of a mechanism: its law, its scale, and the rows that were read for it."""

    mechanism: str
    scale: float
    size: int
    rows: str = "all"
    widths: tuple[int, ...] = ()


@dataclass
class Tape:
    """Everything that was drawn, in order, and what the costs need to be known of it."""

    draws: list[Draw] = field(default_factory=list)
    notes: dict[str, list[Any]] = field(default_factory=dict)
    parts: tuple[Any, ...] = ()
    reading: str = "all"

    def note(self, name: str, value: Any) -> None:
        self.notes.setdefault(name, []).append(value)

    def add(self, mechanism: str, scale: float, size: int, **more: Any) -> None:
        self.draws.append(Draw(mechanism, float(scale), size, self.reading, **more))

    def read(self, found: Any) -> None:
        """Find out, from the exact cells, which of the groups of rows these moments sum."""
        groups = {"all": self.parts}
        if len(self.parts) > 1:
            groups |= {"half 1": self.parts[::2], "half 2": self.parts[1::2]}
        cells = {name: reduce(add, of).cells for name, of in groups.items() if of}
        named = [name for name, whole in cells.items() if whole == found.cells]
        self.reading = named[0] if named else "unknown rows"


class _Listening:
    """OpenDP's noisy minimum, with a note of each use."""

    def __init__(self, tape: Tape, built: Any, scale: float, mechanism: str) -> None:
        self.tape, self.built, self.scale, self.mechanism = tape, built, scale, mechanism
        self.map = built.map

    def __call__(self, scores: Any) -> Any:
        self.tape.add(self.mechanism, self.scale, len(scores))
        return self.built(scores)


def record(patch: Any) -> Tape:
    """Listen at every door; `patch` is pytest's monkeypatch."""
    tape = Tape()

    def everywhere(honest: Any, listening: Any) -> None:
        for module in [m for name, m in sys.modules.items() if name.startswith("dpreg")]:
            for name, value in list(vars(module).items()):
                if value is honest:
                    patch.setattr(module, name, listening)

    def vector(mechanism: str, honest: Any) -> Any:
        def drawn(size: int, scale: float, **options: Any) -> Any:
            tape.add(mechanism, scale, size)
            return honest(size, scale, **options)

        return drawn

    for mechanism, honest in (
        ("gaussian", additive.gaussian_noise),
        ("laplace", additive.laplace_noise),
    ):
        everywhere(honest, vector(mechanism, honest))
    round_noise = l2_norm.l2_norm_noise
    everywhere(round_noise, vector("l2-norm", round_noise))
    spectral = wishart.wishart_noise

    def symmetric(scales: Any, **options: Any) -> Any:
        tape.add("matrix-laplace", 0.0, len(scales), widths=tuple(scales))
        return spectral(scales, **options)

    everywhere(spectral, symmetric)
    built = choice._noisy_min
    patch.setattr(
        choice, "_noisy_min", lambda scale, name: _Listening(tape, built(scale, name), scale, name)
    )
    chosen = seeded.choose

    def seeded_choice(scores: Any, *, scale: float, mechanism: str, rng: Any) -> int:
        tape.add(mechanism, scale, len(scores))
        return chosen(scores, scale=scale, mechanism=mechanism, rng=rng)

    patch.setattr(seeded, "choose", seeded_choice)
    climbed = sampler.Tree.draw

    def from_tree(tree: Any, *args: Any, **options: Any) -> Any:
        tape.add(tree.mechanism, float(1 / tree.t), 0)
        return climbed(tree, *args, **options)

    patch.setattr(sampler.Tree, "draw", from_tree)
    scored = problem.Problem.__init__

    def score(self: Any, found: Any, rho: Any) -> None:
        tape.read(found)
        scored(self, found, rho)

    patch.setattr(problem.Problem, "__init__", score)
    _readers(tape, everywhere)
    return tape


def _readers(tape: Tape, everywhere: Any) -> None:
    """Note what is read for a draw, and the released numbers that the costs of later draws need."""
    read_moments = moments.read_moments

    def reading(*args: Any, **options: Any) -> Any:
        tape.parts = read_moments(*args, **options)
        tape.note("sizes", tuple(part.rows for part in tape.parts))
        tape.read(reduce(add, tape.parts))
        return tape.parts

    everywhere(read_moments, reading)

    def of_moments(honest: Any, place: int) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            before = tape.reading
            tape.read(args[place])
            found = honest(*args, **options)
            tape.reading = before
            tape.note(honest.__name__, found)
            return found

        return called

    for honest, place in (
        (gram.release_gram, 0),
        (perturbed.release_sums, 0),
        (estimates.noisy_count, 0),
        (estimates.noisy_residuals, 1),
        (estimates.lower_bound, 1),
    ):
        everywhere(honest, of_moments(honest, place))
    ranked, summed, solved = ranks.choose_rank, sums.release, held.minimum

    def minimum(made: Any, tolerance: Any, slack: Any, places: int) -> Any:
        tape.note("minimum", (made, tolerance, places))
        return solved(made, tolerance, slack, places)

    def by_rank(cells: Any, share: int, **options: Any) -> int:
        tape.note("share", share)
        return ranked(cells, share, **options)

    def release(exact: Any, coding: Any, *args: Any, **options: Any) -> Any:
        tape.note("coding", coding)
        return summed(exact, coding, *args, **options)

    everywhere(solved, minimum)
    everywhere(ranked, by_rank)
    everywhere(summed, release)


# Formulas: what one person can change, and what a draw at a scale then costs


def gaussian_delta(mu: float, eps: float) -> float:
    """The exact delta of Gaussian noise at sensitivity / sigma = mu (Balle and Wang 2018)."""
    high = norm.logcdf(-eps / mu + mu / 2)
    low = eps + norm.logcdf(-eps / mu - mu / 2)
    return float(np.exp(high) - np.exp(low))


def bounded_range_delta(each: float, draws: int, eps: float) -> float:
    """The exact delta of K draws of bounded range (Dong, Durfee and Rogers 2020, Theorem 3)."""
    worst = 0.0
    for failures in range(draws):
        t = min(max((eps + (failures + 1) * each) / (draws + 1), 0.0), each)
        p = (math.exp(-t) - math.exp(-each)) / (1 - math.exp(-each))
        q = math.exp(t) * p
        tail = binom.cdf(failures, draws, 1 - q) - math.exp(eps) * binom.cdf(failures, draws, 1 - p)
        worst = max(worst, float(tail))
    return worst


def grid(rho: Fraction) -> Fraction:
    """The power of two in (2**-25 w, 2**-24 w], w the range of one row's loss."""
    w, g = row_range(rho), Fraction(1)
    while g > w / 2**24:
        g /= 2
    while 2 * g <= w / 2**24:
        g *= 2
    return g


def row_range(rho: Fraction) -> Fraction:
    return (1 + rho) ** 2 if rho >= 1 else 4 * rho


def score_range(rho: Fraction, rows: int, k: int) -> int:
    """Range of the scores' changes: `rows` losses for each of k rows, and one floor each."""
    return k * (math.ceil(rows * row_range(rho) / grid(rho)) + 1)


def residual_range(rho: Fraction, k: int) -> int:
    return k * (math.ceil((1 + rho) ** 2 / grid(rho)) + 1)


def vectors(columns: int) -> np.ndarray:
    """Rows (1, x, y) at the corners of the box and on its axes, and the row that counts nothing."""
    cells = product([-1.0, 0.0, 1.0], repeat=columns + 1)
    return np.array([[0.0] * (columns + 2), *([1.0, *cell] for cell in cells)])


def moment_changes(columns: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the upper triangle of zz' by one row, and how often the response is in a cell."""
    z = vectors(columns)
    first, second = np.triu_indices(columns + 2)
    products = z[:, first] * z[:, second]
    touches = (first == columns + 1).astype(int) + (second == columns + 1)
    if rows == 1:
        return products, touches
    return (products[:, None] - products[None]).reshape(-1, len(first)), touches


def coded_changes(coding: Any, *, replaced: bool, grouped: bool) -> np.ndarray:
    """Changes of a group's cells by one row, over corners: appeared, or replaced as well."""
    values = [-(2**20), -(2**19), 0, 2**19, 2**20]
    rows = [[0] * (1 + 2 * coding.columns)]
    for row in product(values, repeat=coding.columns):
        rows.append([1, *row, *(u * u for u in row)])
    if coding.weight == 0 and not coding.bernstein:
        rows = rows[1:]  # on the caller's word no row is missing
        rows.append([1] + [0] * 2 * coding.columns)
    cells = np.array([[float(c) for c in coding.encode(row)] for row in rows])
    if not replaced:
        return cells
    if grouped:
        return np.array([np.append(a, b) for a in cells for b in cells])
    return (cells[:, None] - cells[None]).reshape(-1, cells.shape[1])
