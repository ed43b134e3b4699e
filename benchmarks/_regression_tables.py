"""Tables of `benchmarks.regression`: geometric means, and the cells that a peer wins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from benchmarks.peers import PEERS

LEVELS = (0.0, 1e-6)


def geometric(values: Iterable[float]) -> float:
    kept = [math.log(value) for value in values]
    return math.exp(sum(kept) / len(kept)) if kept else math.nan


def best_peer(cell: dict, key: str = "excess") -> tuple[str, float]:
    """The peer with the least error of a cell."""
    found = {name: m[key] for name, m in cell["methods"].items() if name in PEERS}
    return min(found.items(), key=lambda item: item[1])


def tables(cells: list[dict]) -> str:
    """Mean excess by data, eps and delta; ratios to dpreg's default; cells that it loses."""
    cells = [cell for cell in cells if "auto" in cell["methods"] and len(cell["methods"]) > 2]
    return "\n\n".join([_means(cells), _ratios(cells), _losses(cells)])


def _groups(cells: list[dict]) -> list[tuple[str, float, float, list[dict]]]:
    found = []
    for real in (True, False):
        for delta in LEVELS:
            for eps in sorted({cell["eps"] for cell in cells}):
                own = [c for c in cells if (c["real"], c["delta"], c["eps"]) == (real, delta, eps)]
                if own:
                    found.append(("real" if real else "drawn", eps, delta, own))
    return found


def _means(cells: list[dict]) -> str:
    names = ["auto", "gram", *PEERS]
    lines = [
        f"| data | eps | delta | cells | {' | '.join(names)} |",
        "|---" * (4 + len(names)) + "|",
    ]
    for kind, eps, delta, own in _groups(cells):
        shown = []
        for name in names:
            values = [c["methods"][name]["excess"] for c in own if name in c["methods"]]
            shown.append(f"{geometric(values):.3g}" if len(values) == len(own) else "-")
        lines.append(f"| {kind} | {eps:g} | {delta:g} | {len(own)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _ratios(cells: list[dict]) -> str:
    head = ("data", "eps", "delta", "gram / auto", "best peer / auto", "(medians)",
            "(coefficients)", "one peer, one setting / auto", "lost by over 10%")  # fmt: skip
    single = {delta: fixed([c for c in cells if c["delta"] == delta]) for delta in LEVELS}
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    groups = _groups(cells)
    for real in ("real", "drawn"):
        for delta in LEVELS:
            own = [c for kind, _, d, part in groups if (kind, d) == (real, delta) for c in part]
            if own:
                groups.append((real, math.nan, delta, own))
    for kind, eps, delta, own in groups:
        peers = [f"{_over(own, best_peer, key):.2f}" for key in ("excess", "median", "distance")]
        gram = _over(own, lambda cell, key: ("gram", cell["methods"]["gram"][key]), "excess")
        name, setting = single[delta]
        plain = _over(own, lambda cell, key, n=name, s=setting: (n, tried(cell, n)[s]), "excess")
        cells_lost = sum(lost(cell) for cell in own)
        at = "all" if math.isnan(eps) else f"{eps:g}"
        shown = (
            kind,
            at,
            f"{delta:g}",
            f"{gram:.2f}",
            *peers,
            f"{plain:.2f}",
            f"{cells_lost} of {len(own)}",
        )
        lines.append("| " + " | ".join(shown) + " |")
    for delta, (name, setting) in single.items():
        lines.append(f"\nThe one peer at delta {delta:g}: {name}, {setting}.")
    return "\n".join(lines)


def tried(cell: dict, name: str) -> dict[str, float]:
    """Excess of each setting of a peer."""
    return cell["tried"].get(name, {})


def fixed(cells: list[dict]) -> tuple[str, str]:
    """The peer and the one setting with the least geometric mean over all cells, real and drawn."""
    shared = [
        (name, setting)
        for name in PEERS
        for setting in (tried(cells[0], name) if cells else {})
        if all(setting in tried(cell, name) for cell in cells)
    ]
    return min(shared, key=lambda one: geometric(tried(c, one[0])[one[1]] for c in cells),
               default=("", ""))  # fmt: skip


def _over(own: list[dict], other: Callable[[dict, str], tuple[str, float]], key: str) -> float:
    return geometric(other(cell, key)[1] / cell["methods"]["auto"][key] for cell in own)


def lost(cell: dict) -> bool:
    return cell["methods"]["auto"]["excess"] > 1.1 * best_peer(cell)[1]


def _losses(cells: list[dict]) -> str:
    head = "| data | rows | eps | delta | method | excess | best peer | its excess |"
    lines = [head, "|---" * 8 + "|"]
    for cell in sorted(filter(lost, cells), key=lambda c: (not c["real"], c["data"], c["eps"])):
        name, least = best_peer(cell)
        lines.append(
            f"| {cell['data']} | {cell['n']:,} | {cell['eps']:g} | {cell['delta']:g} "
            f"| {cell['taken']} | {cell['methods']['auto']['excess']:.3g} | {name} | {least:.3g} |"
        )
    return "\n".join(lines)
