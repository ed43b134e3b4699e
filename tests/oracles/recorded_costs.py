"""From what a tape holds to what each step of a call cost, by this folder's own formulas."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from oracles.recorded_fits import fits, minimum
from oracles.recorded_looks import wishart
from oracles.recorded_steps import Asked, Cost
from oracles.recording import (
    UNIT,
    Draw,
    Tape,
    coded_changes,
    moment_changes,
    residual_range,
    score_range,
)

NEAR = 1e-6
RANKS = 2**16


def _pure(step: str, draws: list[Draw], reaches: list[float], tight: bool = True) -> Cost:
    losses = tuple(reach / draw.scale for draw, reach in zip(draws, reaches, strict=True))
    return Cost(step, tuple(draws), losses, tight=tight)


def bounds(tape: Iterator[Draw], asked: Asked, names: list[str]) -> list[Cost]:
    """Centre and scale of every column, then both ends of each; a count is 256 units."""
    centres, scales = [next(tape) for _ in names], [next(tape) for _ in names]
    found = []
    for name, centre, scale in zip(names, centres, scales, strict=True):
        reaches = [256 * asked.k * moved for moved in (asked.rows, 2, 1, 1)]
        found.append(_pure(f"bounds of {name}", [centre, scale, next(tape), next(tape)], reaches))
    return found


def coefficients(tape: Iterator[Draw], asked: Asked, columns: int) -> Cost:
    """One release of the moments of a model with an intercept and numeric columns."""
    changes, touches = moment_changes(columns, asked.rows)
    first = next(tape)
    if first.mechanism == "gaussian":
        pools = [first, next(tape), next(tape)]
        assert [pool.size for pool in pools] == [int((touches == i).sum()) for i in range(3)]
        scales = np.array([pools[i].scale for i in touches]) * UNIT
        squared = ((changes / scales) ** 2).sum(axis=1).max()
        return Cost("coefficients", tuple(pools), mu=asked.k * math.sqrt(squared))
    if first.mechanism == "matrix-laplace":
        return wishart(first, asked, columns, "coefficients")
    assert first.size == len(touches)
    if first.mechanism == "laplace":
        reach = np.abs(changes).sum(axis=1).max()
    else:
        reach = (np.abs(changes) / np.array(first.widths)).max()
    return _pure("coefficients", [first], [asked.k * reach / UNIT])


def perturbed(tape: Iterator[Draw], asked: Asked, columns: int) -> Cost:
    """SSP releases X'X and X'y, AdaSSP the least eigenvalue too; `columns` with the constant."""
    adaptive = asked.options["method"] == "adassp"
    draws = [next(tape) for _ in range(4 if adaptive else 3)]
    wang = asked.options.get("noise") == "wang"
    if wang and not adaptive:
        draws = draws[:2]
    squared = (4.5 if asked.rows == 2 else 2.0) + (1.0 if adaptive else 0.0)
    sigma = max(draw.scale for draw in draws) * UNIT
    sizes = sorted(draw.size for draw in draws)
    triangle = columns * (columns - 1) // 2
    assert sizes == sorted([columns, columns, triangle] + ([1] if adaptive else []))
    return Cost(
        "coefficients", tuple(draws), mu=asked.k * math.sqrt(squared) / sigma,
        tight=asked.options.get("noise") is None,
    )  # fmt: skip


def selection(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    """Every step of `dp_select`, in the order of its budget table."""
    draws, options, k = iter(tape.draws), asked.options, asked.k
    lines = {spend.step: spend for spend in result.claim.spends}
    found = bounds(draws, asked, [s.removeprefix("bounds of ") for s in lines if "bounds of" in s])
    if "number of rows" in lines and options.get("method") == "auto":
        found.insert(0, _pure("number of rows", [next(draws)], [k]))
    if result.method == "adaptive":
        later = () if result.regression is None else result.regression.releases
        found.append(_looks(tape, draws, asked, result, later))
        assert next(draws, None) is None, "something was drawn that no step accounts for"
        return found
    rho = Fraction(result.radius) / Fraction(result.clip)
    if options.get("radius") == "private":
        found.append(_pure("radius", [next(draws)], [2 * k]))
    if options.get("sigma2") == "private":
        pair = [next(draws), next(draws)]
        found.append(_pure("residual variance", pair, [residual_range(rho, k), k]))
    elif "number of rows" in lines and options.get("method") != "auto":
        found.append(_pure("number of rows", [next(draws)], [k]))
    reach: float = score_range(rho, asked.rows, k)
    if options.get("method") == "pcpl":
        noise, d2 = next(draws), residual_range(rho, k)
        bound = tape.notes["lower_bound"][0]
        shift = tape.notes["noisy_residuals"][-1] - bound
        failure = 0.5 * math.exp(-(shift - d2) / noise.scale)
        found.append(Cost("bound on the residuals", (noise,), (d2 / noise.scale,), failure=failure))
        assert bound > 0, "these rows are to leave residuals large enough for a bound"
        moved = 2 * d2 if asked.rows == 2 else d2 + 1
        rows = result.nobs if result.nobs is not None else tape.notes["noisy_count"][0]
        rows //= 2 if options.get("fit", "split") == "split" else 1
        reach = rows * math.log1p(moved / bound) * 2**23
    models = [next(draws) for _ in range(options.get("draws", 1))]
    assert all(one.mechanism == result.mechanism for one in models)
    found.append(_pure("selection", models, [reach] * len(models)))
    if options.get("fit", "split") is not None:
        found.append(coefficients(draws, asked, len(result.regression.params) - 1))
    assert next(draws, None) is None, "something was drawn that no step accounts for"
    return found


def regression(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    draws = iter(tape.draws)
    names = [s.step.removeprefix("bounds of ") for s in result.claim.spends if "bounds" in s.step]
    found = bounds(draws, asked, names)
    size = len(result.params)
    if result.method == "adaptive":
        found.append(_looks(tape, draws, asked, result))
    elif result.method == "objective":
        found += _few(tape, draws, asked, result)
    elif asked.options["method"] == "gram":
        found.append(coefficients(draws, asked, size - 1))
    else:
        found.append(perturbed(draws, asked, size))
    assert next(draws, None) is None
    return found


def _looks(
    tape: Tape,
    draws: Iterator[Draw],
    asked: Asked,
    result: Any,
    later: tuple[Any, ...] = (),
) -> Cost:
    """The one line of all looks, by its name in the table."""
    (step,) = [spend.step for spend in result.claim.spends if spend.step.startswith("looks 1-")]
    assert len(result.releases) + len(later) <= int(step.removeprefix("looks 1-"))
    curved, minima = hasattr(result, "family"), tuple(tape.notes.get("minimum", ()))
    found = fits(draws, asked, result.releases, later, curved=curved, minima=minima)
    return replace(found, step=step)


def family(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    draws = iter(tape.draws)
    names = [s.step.removeprefix("bounds of ") for s in result.claim.spends if "bounds" in s.step]
    found = bounds(draws, asked, names)
    found.append(_looks(tape, draws, asked, result))
    assert next(draws, None) is None
    return found


def _few(tape: Tape, draws: Iterator[Draw], asked: Asked, result: Any) -> list[Cost]:
    """Sums of (1, y, y^2, squares of columns), of columns if told, and two minima."""
    lines, p, k = [spend.step for spend in result.claim.spends], len(result.params) - 1, asked.k
    sums = next(draws)
    assert sums.size == 4
    # A row of ones, the sums weighted by p, 2 p, 2 p and 3.
    found = [_pure("number and size of rows", [sums], [8 * p * k * 2.0**40])]
    if "middle of the columns" in lines:
        found.append(_pure("middle of the columns", [next(draws)], [asked.rows * p * k * 2.0**40]))
    first, second = tape.notes["minimum"]
    found.append(replace(minimum(draws, asked, *first), step="first coefficients"))
    found.append(_pure("spread of residuals", [next(draws)], [k * 2.0**20]))
    return [*found, minimum(draws, asked, *second)]


def _vector(step: str, draws: list[Draw], changes: np.ndarray, k: int) -> Cost:
    """Noise of one scale on all cells of all groups."""
    (scale,) = {draw.scale for draw in draws}
    if draws[0].mechanism == "laplace":
        loss = k * np.abs(changes).sum(axis=1).max() / scale
        return Cost(step, tuple(draws), (loss,), tight=False)
    ratio = k * math.sqrt((changes**2).sum(axis=1).max()) / scale
    return Cost(step, tuple(draws), mu=ratio, tight=False)


def sums(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    """`dp_mean` and `dp_suffstats`: one vector over all groups."""
    grouped = asked.options.get("by") is not None
    assert len(tape.draws) == (3 if grouped else 1)
    coding = tape.notes["coding"][0]
    changes = coded_changes(coding, replaced=asked.rows == 2, grouped=grouped)
    return [_vector(result.claim.spends.spends[0].step, tape.draws, changes, asked.k)]


def counts(moved: int) -> np.ndarray:
    return np.array([[1.0, -1.0] if moved == 2 else [1.0, 0.0]])


def histogram(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    steps = [spend.step for spend in result.claim.spends]
    assert len(steps) == len(tape.draws)
    return [
        _vector(step, [draw], counts(asked.rows), asked.k)
        for step, draw in zip(steps, tape.draws, strict=True)
    ]


def quantiles(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    """Every group has its own choices; a person's rows may lie in any of them."""
    options, draws, shares = asked.options, iter(tape.draws), iter(tape.notes["share"])
    grouped, known = options.get("by") is not None, options.get("complete", False)
    lines, names, asks = 3 if grouped else 1, options["x"], options["q"]
    counting: list[list[Draw]] = [[] for _ in names]
    choices: dict[tuple[int, int], list[tuple[list[Draw], list[float]]]] = {}
    for _ in range(lines):
        for column in range(len(names)):
            if not known:
                counting[column].append(next(draws))
            for ask in range(len(asks)):
                some, reaches = [], []
                for _ in range(3):  # 400 rows and this much eps always buy both ends
                    some.append(next(draws))
                    share = next(shares) / RANKS
                    one = 2 * max(share, 1 - share) if asked.rows == 1 or grouped else 2.0
                    doubled = 2 if grouped and asked.rows == 2 else 1
                    reaches.append(asked.k * one * doubled * RANKS)
                choices.setdefault((column, ask), []).append((some, reaches))
    assert next(draws, None) is None
    found = []
    if not known:
        moved = 2 if grouped and asked.rows == 2 else 1
        losses = tuple(asked.k * moved / max(d.scale for d in one) for one in map(list, counting))
        assert all(len({d.scale for d in one}) == 1 for one in counting)
        found.append(Cost("number of values", tuple(chain.from_iterable(counting)), losses))
    steps = [s.step for s in result.claim.spends if "interval" in s.step]
    for step, groups in zip(steps, choices.values(), strict=True):
        worst = max(groups, key=lambda g: sum(r / d.scale for d, r in zip(*g, strict=True)))
        found.append(_pure(step, *worst))
    return found


def aggregated(tape: Tape, asked: Asked, result: Any) -> list[Cost]:
    """A window of block values for each group, and their averages."""
    options, draws = asked.options, list(tape.draws)
    grouped = options.get("by") is not None
    lines, size = 3 if grouped else 1, len(result.names)
    moved = asked.k * (2 if grouped and asked.rows == 2 else 1)
    if options.get("person"):  # whose rows are in one block of each group
        moved = min(moved, lines)
    steps, found = [spend.step for spend in result.claim.spends], []
    if "number of rows" in steps:
        found.append(_pure("number of rows", [draws.pop(0)], [asked.k]))
    each = 2 * size if "window of block values" in steps else 0
    assert len(draws) == lines * (each + 1)
    groups = [draws[i * (each + 1) : (i + 1) * (each + 1)] for i in range(lines)]
    if each:
        window = [group[:each] for group in groups]
        assert len({tuple(d.scale for d in one) for one in window}) == 1
        found.append(_pure("window of block values", window[0], [2 * moved * RANKS] * each))
    changes = coded_changes(tape.notes["coding"][0], replaced=True, grouped=False)
    average = [group[-1] for group in groups]
    found.append(_vector("average over blocks", average, changes, moved))
    return found
