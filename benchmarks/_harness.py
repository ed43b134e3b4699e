"""Time dpreg against a named peer in one run, on the same machine and data.

Seconds mean little away from the machine they were taken on; the ratio to a peer that everyone
has travels better. Each round times both, one after the other, so that a slow minute hits both.

Benchmarks are modules, run as ``python -m benchmarks.NAME`` (`make bench` runs them all): run as
files they would put this folder in front of the standard library, whose ``select`` one of them
would hide.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one comparison measured: median seconds of each, and the median ratio of the rounds."""

    name: str
    peer: str
    ours: float
    theirs: float
    ratio: float
    lowest: float
    highest: float
    rounds: int
    goal: float | None

    @property
    def reached(self) -> str:
        if self.goal is None:
            return "-"
        return "yes" if self.ratio <= self.goal else "NO"


def compare(
    name: str,
    ours: Callable[[], object],
    peer: str,
    theirs: Callable[[], object],
    *,
    rounds: int = 5,
    goal: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Time `ours` over `theirs`, median of `rounds`, after one round that is not counted."""
    pairs = [(_seconds(ours, clock), _seconds(theirs, clock)) for _ in range(rounds + 1)][1:]
    ratios = [a / b for a, b in pairs]
    return Comparison(
        name=name,
        peer=peer,
        ours=statistics.median(a for a, _ in pairs),
        theirs=statistics.median(b for _, b in pairs),
        ratio=statistics.median(ratios),
        lowest=min(ratios),
        highest=max(ratios),
        rounds=rounds,
        goal=goal,
    )


def show(comparisons: Iterable[Comparison]) -> None:
    """Print one line for each comparison under a heading."""
    head = ("case", "peer", "ours, s", "peer, s", "ratio", "range", "goal", "reached")
    rows = [
        (
            c.name,
            c.peer,
            f"{c.ours:.4g}",
            f"{c.theirs:.4g}",
            f"{c.ratio:.3f}",
            f"{c.lowest:.3f}-{c.highest:.3f}",
            "-" if c.goal is None else f"{c.goal:g}",
            c.reached,
        )
        for c in comparisons
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, tuple("-" * width for width in widths), *rows):
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    call()
    return clock() - start
