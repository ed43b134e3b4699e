"""Laws that were made to break a choice's promise: useless terms, by the second prior's variance.

    python -m benchmarks.hostile [--runs N] [--flat V ...] [--only TEXT]

*items*: many weak effects, and useless columns that are nearly their sum, or factors that bin it.
*hidden*: pairs of near-equal columns whose difference has an effect as large as the residual, which
the looks do not see, and two useless columns that go with one such difference. Of these nothing is
promised (`docs/found.md`); they are here to show what the second prior is for. A line holds terms
found and useless ones a release under each second prior; `FLAT` is the one that calls use.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise

import numpy as np

import dpreg.looks.loop
from benchmarks._power_runs import Setting, choosing_laws
from dpreg.choice import FLAT, choose, priors
from dpreg.selection.space import Space

Table = tuple[np.ndarray, np.ndarray, list[int], set[int]]
"""Columns, response, the widths of the terms, and those with an effect."""
SD, SIGMA = 0.25, 0.2


def items(
    rng: np.random.Generator, n: int, k: int, effect: float, noises: tuple[float, ...], bins: int
) -> Table:
    """Draw k items, noisy sums of all of them, and factors of four columns that bin their sum."""
    x = SD * rng.standard_normal((n, k))
    y = x @ np.full(k, effect) + SIGMA * rng.standard_normal(n)
    total = x.sum(axis=1) / np.sqrt(k)
    sums = [total + noise * SD * rng.standard_normal(n) for noise in noises]
    binned = []
    for _ in range(bins):
        noisy = total + 0.4 * SD * rng.standard_normal(n)
        level = np.digitize(noisy, np.quantile(noisy, [0.2, 0.4, 0.6, 0.8]))
        binned.append(2.0 * (level[:, None] == np.arange(1, 5)) - 1)
    return (
        np.column_stack([x, *sums, *binned]),
        y,
        [1] * (k + len(sums)) + [4] * bins,
        set(range(k)),
    )


def hidden(rng: np.random.Generator, n: int, pairs: int, apart: float, share: float) -> Table:
    """Draw ten columns, some in pairs whose differences explain a share of sigma2."""
    x, y = SD * rng.standard_normal((n, 10)), SIGMA * rng.standard_normal(n)
    for pair in range(pairs):
        z = rng.standard_normal(n)
        x[:, 2 * pair + 1] = x[:, 2 * pair] + apart * z
        y += np.sqrt(share) * SIGMA * z
    x[:, 8:] += 0.05 * z[:, None] + 0.1 * rng.standard_normal((n, 2))
    return x, y, [1] * 10, set(range(2 * pairs))


DESIGNS: dict[str, Callable[[np.random.Generator], Table]] = {
    "items: 8 of .03, two sums": lambda rng: items(rng, 20_000, 8, 0.03, (0.2, 0.4), 0),
    "items: 14 of .01, one sum": lambda rng: items(rng, 40_000, 14, 0.01, (0.2,), 0),
    "items: 14 of .02, one sum": lambda rng: items(rng, 40_000, 14, 0.02, (0.2,), 0),
    "items: 6 of .02, two binned sums": lambda rng: items(rng, 20_000, 6, 0.02, (), 2),
    "hidden: 1 pair, all of sigma2": lambda rng: hidden(rng, 20_000, 1, 0.01, 1.0),
    "hidden: 3 pairs, half of sigma2": lambda rng: hidden(rng, 20_000, 3, 0.01, 0.5),
    "hidden: 3 pairs, .3 of sigma2": lambda rng: hidden(rng, 20_000, 3, 0.02, 0.3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--flat", type=float, nargs="+", default=[0.25, FLAT])
    parser.add_argument("--only", default="")
    told = parser.parse_args()
    dpreg.looks.loop.priors = lambda d: (priors(d)[0], *told.flat)  # type: ignore[assignment]
    for name, draw in DESIGNS.items():
        if told.only not in name:
            continue
        for delta in (1e-6, 0.0):
            rng, counts = np.random.default_rng(len(name)), np.zeros((1 + len(told.flat), 2))
            wrong = 0
            for _ in range(told.runs):
                x, y, widths, real = draw(rng)
                x, y = np.clip(x, -1, 1), np.clip(y, -1, 1)
                first, *others = choosing_laws(x, y, Setting(1.0, delta), rng)
                ends = np.cumsum([1, *widths])
                units = tuple(tuple(range(a, b)) for a, b in pairwise(map(int, ends)))
                space = Space(tuple(map(str, range(len(units)))), units, (0,))
                for place, laws in enumerate([[first], *([first, other] for other in others)]):
                    choice = choose(laws, space)
                    found = set(choice.found)
                    counts[place] += len(found & real), len(found - real)
                wrong += sum(not real.intersection(group) for group in choice.groups)
            shown = zip(("none", *map(str, told.flat)), counts / told.runs, strict=True)
            text = "  ".join(f"{flat}: {a:.2f} / {b:.3f}" for flat, (a, b) in shown)
            print(
                f"{name:34s} delta {delta:g} of {len(real)}  {text}  wrong groups {wrong}",
                flush=True,
            )


if __name__ == "__main__":
    main()
