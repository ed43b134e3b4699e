"""What reaches a mechanism, and what leaves it: a call's releases, replayed on other tables.

`oracles.recording` sees what is drawn; it does not see what that is added to, nor a number beside
it that nothing was added to. Here a call is run once on a *reference* table, with small noise that
is never 0, and every released number is written on a tape: each sum of an exact number and a noise,
each choice, each draw of a tree. Then the call is run on other tables, and the mechanisms give what
is on the tape. As that is what a real table once gave, it lies inside the range in which later
steps work: nothing is clipped to an end that would hide a later leak. If whatever leaves a release
went through a mechanism, no view of the result, no argument of a mechanism (scale, size, order),
and no argument (centre, limit, noise, count) or result of a release may differ from what it was.

A new room is plugged in by lines of `WATCHED`, one for each function that releases, and for each
that decides how: its module (or class), its name, which of its arguments hold rows (all others must
be equal on all tables), and, where what it returns can be set beside the exact numbers, how (each
pair must differ on the reference). For looks that release information, score, middle and count::

    Watched(looks, "release", ("sums",), lambda told, found: [
        *paired(found.information, told["sums"].information),
        *paired(found.score, told["sums"].score),
        *paired(found.middle, told["sums"].middle),
        (found.count, told["sums"].count),
    ]),
    Watched(looks, "plan_look"),

and by its calls in `test_replay.CELLS`. Noise needs no line of its own where it is drawn by
`dpreg.privacy.mechanisms` and added to numbers one by one. Then plant faults: a released cell
without its noise, a limit or a count from exact moments (`mutants/catalogue/replay.toml`).
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from dpreg.api import looks
from dpreg.api import select as select_adaptive
from dpreg.choice import rule
from dpreg.estimation import blocks as aggregate
from dpreg.estimation import few, gram, histogram, perturbed, sums
from dpreg.estimation import histogram as quantile
from dpreg.looks import coordinates as place
from dpreg.looks import law, locate, loop, plan, rows, table
from dpreg.looks import law as estimates_of_looks
from dpreg.looks import locate as limits
from dpreg.looks import loop as chosen
from dpreg.looks import minimum as least
from dpreg.privacy import gaussian, ranks, seeded
from dpreg.privacy import noise as objective
from dpreg.privacy import noise as scale_noise
from dpreg.privacy import noise as vector_noise
from dpreg.privacy import ranks as quantiles
from dpreg.privacy.account import Part
from dpreg.privacy.mechanisms import additive, choice, coins, wishart
from dpreg.privacy.mechanisms import floors as l2_norm
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.selection import draws as estimates
from dpreg.selection.scoring import problem
from dpreg.selection.tree import search as sampler

Pairs = Iterable[tuple[float, float]]
GRID = 2**20


@dataclasses.dataclass(frozen=True)
class Watched:
    """A function whose arguments, but for the secret ones, and whose result no table may change."""

    owner: ModuleType | type
    name: str
    secret: tuple[str, ...] = ()
    pairs: Callable[[Mapping[str, Any], Any], Pairs] | None = None
    hidden: bool = False
    """Whether the result is a secret as well: of a function that prepares a release."""


def paired(found: Any, exact: Any) -> Pairs:
    """Set released numbers beside exact ones, cell by cell."""
    return zip(np.ravel(found).tolist(), np.ravel(exact).tolist(), strict=True)


def _gram(told: Mapping[str, Any], found: Any) -> Pairs:
    exact = told["moments"].cells
    if rest_of := told.get("rest_of"):
        row = gram.with_rest(exact, rest_of)
        exact = [row(place) for place in range(len(exact) + 1)]
    places = [*told["columns"], len(exact) - 1]
    yield found.count, exact[0][0] / CELL_UNITS
    for i, j in np.argwhere(np.asarray(found.noise_sd) > 0).tolist():
        yield float(found.cells[i, j]), exact[places[i]][places[j]] / CELL_UNITS


def _sums(told: Mapping[str, Any], found: Any) -> Pairs:
    for own, exact in zip(found, told["exact"], strict=True):
        count, *rest = exact
        totals, squares = rest[: len(own.sums)], rest[len(own.sums) :]
        if told.get("rows") is None:
            yield own.count, count
        yield from paired(own.sums, np.array(totals) / GRID)
        if len(own.squares):
            yield from paired(own.squares, np.array(squares) / GRID**2)


def _counts(told: Mapping[str, Any], found: Any) -> Pairs:
    for own, exact in zip(found, told["counts"], strict=True):
        yield from paired(own.counts, exact)


def _cells(told: Mapping[str, Any], found: Any) -> Pairs:
    whole = np.ravel(np.array(told["exact"], dtype=object))
    return paired(np.ravel(found), [float(Fraction(cell, CELL_UNITS)) for cell in whole])


def _summed(told: Mapping[str, Any], found: Any) -> Pairs:
    units = told["self"].units
    return paired(found, [float(Fraction(int(cell), units)) for cell in told["exact"]])


WATCHED = (
    Watched(table, "_noisy", ("exact",), _cells),
    *(Watched(table.Table, name, ("self",)) for name in ("box", "fitting", "locating", "minimum")),
    Watched(rows.Rows, "__init__", ("self",), hidden=True),
    *(
        Watched(plan.LookPlan, name)
        for name in ("fit_noise", "minimum_noise", "locating_noise", "box_noise")
    ),
    Watched(limits, "fit_limits"),
    Watched(limits, "locating_limits"),
    Watched(locate, "from_box"),
    Watched(locate, "advance"),
    Watched(place, "place_of"),
    Watched(loop, "look", ("rows",)),
    Watched(loop, "look_at_chosen", ("rows",)),
    Watched(chosen, "laws_for_choice"),
    Watched(chosen, "point_of_chosen"),
    Watched(rule, "choose"),
    Watched(select_adaptive, "choose_by_looks", ("table",)),
    Watched(law, "law"),
    Watched(law, "fit"),
    Watched(estimates_of_looks, "estimates"),
    Watched(looks.Looks, "refuses", ("self",)),
    Watched(gram, "release_gram", ("moments",), _gram),
    Watched(gram, "planned_noise"),
    Watched(sums, "release", ("exact",), _sums),
    Watched(sums, "plan"),
    Watched(histogram, "release_counts", ("counts", "left"), _counts),
    Watched(histogram, "count_noise"),
    Watched(perturbed, "release_sums", ("moments",)),
    Watched(
        perturbed,
        "_noisy",
        ("units",),
        lambda told, found: paired(found, told["units"].astype(float) / CELL_UNITS),
    ),
    Watched(perturbed, "privacy_of_constants"),
    Watched(quantile, "private_quantile", ("cells",)),
    Watched(ranks, "choose_rank", ("cells",)),
    Watched(aggregate, "window", ("values",)),
    Watched(aggregate, "draw_blocks", ("rows", "coins"), hidden=True),
    Watched(quantiles, "search_ranges"),
    Watched(estimates, "noisy_rows", ("rows",), lambda told, found: [(found, told["rows"])]),
    Watched(estimates, "noisy_residuals", ("problem", "moments")),
    Watched(estimates, "lower_bound", ("problem", "moments")),
    Watched(estimates, "private_sigma2", ("problem", "moments")),
    Watched(estimates, "private_radius", ("norms",)),
    Watched(estimates, "block_norms", ("blocks",), hidden=True),
    Watched(problem.Problem, "__init__", ("self", "moments"), hidden=True),
    Watched(vector_noise, "fit_noise"),
    Watched(gaussian, "discrete_sigma"),
    Watched(objective, "objective_noise"),
    *(Watched(scale_noise, name) for name in ("scales_noise", "means_noise", "part_noise")),
    Watched(scale_noise.SumsNoise, "released", ("exact",), _summed),
    Watched(few, "scales_of", ("moments", "opened")),
    Watched(least, "released_minimum", ("held",)),
    *(Watched(few, name) for name in ("_cut", "_around")),
    Watched(few, "_held", ("reader", "design"), hidden=True),
    Watched(few, "_spread", ("held",)),
    Watched(few, "few_fit", ("reader", "design", "opened")),
)


Law = tuple[str, int, Any, Any]
"""Of one noise: the mechanism, which of its draws, the place in it, and the scale."""


class Tape:
    """What was released on the reference table, and what a run shows at each door.

    `sums` are the exact numbers that noise was added to, and the scores that were chosen by, each
    with its law: `oracles.path_loss` says what they cost.
    """

    def __init__(self) -> None:
        self.released: list[Any] = []
        self.place: int | None = None
        self.doors: list[str] = []
        self.alike: list[tuple[str, float]] = []
        self.draws = 0
        self.sums: list[tuple[Law, Any]] = []

    def start(self, *, replaying: bool) -> None:
        """Begin a run."""
        self.place = 0 if replaying else None
        self.doors = []
        self.draws, self.sums = 0, []

    def settle(self, made: Callable[[], Any]) -> Any:
        """Return what is released: made on the reference table, and the same on every other."""
        if self.place is None:
            self.released.append(made())
            return self.released[-1]
        if self.place == len(self.released):
            self.doors.append("more is released than on the reference table")
            return self.released[-1]
        self.place += 1
        return self.released[self.place - 1]


class Drawn:
    """One noise, which is never 0: added to a number it gives what the tape says."""

    __array_ufunc__ = None

    def __init__(self, tape: Tape, value: int, law: Law) -> None:
        self.tape, self.value, self.law = tape, value, law

    @property
    def __class__(self) -> type:  # noise is an integer
        return int

    def __repr__(self) -> str:
        return repr(self.value)

    def __add__(self, exact: Any) -> Any:
        self.tape.sums.append((self.law, exact))
        return self.tape.settle(lambda: exact + self.value)

    __radd__ = __add__

    def __rmul__(self, times: int) -> int:
        """A multiple of noise, to which nothing was added: a number like any other."""
        return times * self.value


class _Least:
    """OpenDP's noisy minimum without noise, replayed."""

    def __init__(self, tape: Tape, built: Any, name: str, scale: float) -> None:
        self.tape, self.name, self.scale = tape, f"{name} {scale}", float(scale)
        self.map = getattr(built, "map", None)

    def __call__(self, scores: Any) -> int:
        self.tape.doors.append(f"{self.name} among {len(scores)}")
        self.tape.draws += 1
        law = "choice", self.tape.draws, len(scores), self.scale
        self.tape.sums.append((law, [int(score) for score in scores]))
        return int(self.tape.settle(lambda: int(np.argmin(scores))))


def told(value: Any) -> str:
    """Write an argument or a result, as far as it could hold a number."""
    if isinstance(value, Part):
        return f"part({value.line.step}, {value.cost}, {value.protection})"
    if value is None or isinstance(value, bool | int | float | str | Fraction | np.generic):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {told(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset | range):
        return "(" + ", ".join(map(told, value)) + ")"
    if dataclasses.is_dataclass(value):
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        return type(value).__name__ + told(fields)
    return type(value).__name__


def listen(patch: pytest.MonkeyPatch, watched: Iterable[Watched] = WATCHED) -> Tape:
    """Put replaying mechanisms in the place of dpreg's own, and listen at all that is watched."""
    tape = Tape()

    def everywhere(honest: Any, instead: Any) -> None:
        for module in [m for name, m in sys.modules.items() if name.startswith("dpreg")]:
            for name, value in list(vars(module).items()):
                if value is honest:
                    patch.setattr(module, name, instead)

    def drawn(mechanism: str, scales: Any, places: Any = None, scale: Any = None) -> list[Drawn]:
        tape.doors.append(f"{mechanism} {told(scales)}")
        tape.draws += places is None
        sizes = [float(own) * 0.3 * math.sin(j + 1.0) for j, own in enumerate(scales)]
        laws = zip(places or range(len(sizes)), scales, strict=True)
        return [
            Drawn(tape, round(size) or 1, (mechanism, tape.draws, place, scale or float(own)))
            for size, (place, own) in zip(sizes, laws, strict=True)
        ]

    def vector(mechanism: str) -> Any:
        return lambda size, scale, rng=None: drawn(mechanism, [float(scale)] * size)

    def spectral(scales: Any, **_: Any) -> Any:
        size, cells, whole = len(scales), {}, tuple(map(float, scales))
        tape.draws += 1
        for i in range(size):
            of_row = [math.sqrt(scales[i] * one) for one in scales[: i + 1]]
            places = [(i, j) for j in range(i + 1)]
            row = drawn("matrix-laplace", of_row, places, whole)
            cells |= {(i, j): one for j, one in enumerate(row)}
        return tuple(tuple(cells[max(i, j), min(i, j)] for j in range(size)) for i in range(size))

    everywhere(additive.gaussian_noise, vector("gaussian"))
    everywhere(additive.laplace_noise, vector("laplace"))
    everywhere(l2_norm.l2_norm_noise, vector("l2-norm"))
    everywhere(wishart.wishart_noise, spectral)

    built = choice._noisy_min
    patch.setattr(
        choice,
        "_noisy_min",
        lambda scale, name: _Least(tape, built(scale, name), name, scale),
    )

    def seeded_least(scores: Any, *, scale: float, mechanism: str, rng: Any) -> int:
        return _Least(tape, None, mechanism, scale)(scores)

    patch.setattr(seeded, "choose", seeded_least)
    climbed = sampler.Tree.draw

    def from_tree(tree: Any, *args: Any, **options: Any) -> Any:
        tape.doors.append(f"tree {tree.mechanism} {tree.t}")
        return tape.settle(lambda: climbed(tree, *args, **options))

    patch.setattr(sampler.Tree, "draw", from_tree)
    patch.setattr(
        coins.Coins, "labels", lambda self, start, rows: (start + np.arange(rows)) % self.groups
    )
    everywhere(
        coins.assign_blocks, lambda rows, blocks, rng=None: np.arange(rows, dtype=np.int64) % blocks
    )
    everywhere(coins.secret_key, lambda unsafe_seed=None: bytes(range(32)))
    everywhere(coins.block_seeds, lambda blocks, rng=None: list(range(blocks)))
    for one in watched:
        _watch(tape, one, patch, everywhere)
    return tape


def _watch(tape: Tape, one: Watched, patch: pytest.MonkeyPatch, everywhere: Any) -> None:
    honest = getattr(one.owner, one.name)
    signature = inspect.signature(honest)

    def watched(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options).arguments
        shown = {name: value for name, value in bound.items() if name not in one.secret}
        tape.doors.append(f"{one.name} of {told(shown)}")
        found = honest(*args, **options)
        if not one.hidden:
            tape.doors.append(f"{one.name} gives {told(found)}")
        if one.pairs is not None and tape.place is None:
            alike = (number for number, exact in one.pairs(bound, found) if number == exact)
            tape.alike += [(one.name, number) for number in alike]
        return found

    if inspect.isclass(one.owner):
        patch.setattr(one.owner, one.name, watched)
    else:
        everywhere(honest, watched)


__all__ = ["Drawn", "Law", "Tape", "Watched", "listen", "paired", "told"]
