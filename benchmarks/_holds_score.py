"""What the releases of a case of `benchmarks.holds` come to, and averages over cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._holds_case import Case, Scaled
from benchmarks._holds_fit import Fit

Floats = NDArray[np.float64]
LARGE = 8_000
"""Rows from which on a real table counts for the gate."""
_REAL, _RIGHT = f"real, n >= {LARGE:,}", "drawn, right"
_GOALS: dict[tuple[float, float], dict[str, float]] = {
    (1, 1e-6): {"held_unmarked": 0.93, "held": 0.90, "width": 2.2},
    (4, 1e-6): {"held_unmarked": 0.94, "width": 1.3},
    (1, 0): {"held_unmarked": 0.90},
    (2, 0): {"held_unmarked": 0.90, "width": 2.5},
}
"""What a release must reach on large real tables, by eps and delta."""
_SPOILT, _OPEN, _OPEN_RIGHT = 0.1, 0.25, 0.1
"""With delta: cases whose unmarked slopes hold below .8, and slopes that are marked or without
interval, of large real tables and of right models, at most."""
_FEWEST = 0.25
"""A slope that is printed in a smaller share of releases is no "least slope"."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """One case at one budget, over its releases; NaN where there is nothing to average.

    Attributes
    ----------
    held, held_unmarked : float
        Share of printed intervals, or of those without a mark, that hold their target.
    least : float
        The same as `held` of the slope where it is least.
    width, width_unmarked : float
        Median half-width over 1.96 robust errors of the fit without privacy.
    absent, marked : float
        Share of slopes without interval, and with one and a mark.
    signs : float
        Share of slopes at |z| > 2 whose sign is not that of their target.
    error : float
        Median of |estimate - target| over the robust error, printed or not.
    """

    case: str
    half: str
    kind: str
    family: str
    right: bool
    table: str
    n: int
    p: int
    eps: float
    delta: float
    runs: int
    held: float
    held_unmarked: float
    least: float
    width: float
    width_unmarked: float
    absent: float
    marked: float
    signs: float
    error: float
    why: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: None where there is nothing."""
        return {
            name: None if isinstance(value, float) and np.isnan(value) else value
            for name, value in asdict(self).items()
        }


def score(case: Case, eps: float, delta: float, runs: Sequence[tuple[Scaled, Fit]]) -> Score:
    """Score the releases of a case."""
    target = np.array([made.target for made, _ in runs])
    errors = np.array([made.errors for made, _ in runs])
    low, high = (np.array([getattr(fit, s) for _, fit in runs]) for s in ("low", "high"))
    estimate = np.array([fit.estimate for _, fit in runs])
    marks = np.array([[bool(mark) for mark in fit.marks] for _, fit in runs])
    printed = np.isfinite(low) & np.isfinite(high)
    plain = printed & ~marks
    with np.errstate(invalid="ignore"):
        holds = (low <= target) & (target <= high)
        width = (high - low) / (2 * 1.959964 * errors)
        sure = printed & (np.abs(estimate) > 2 * (high - low) / (2 * 1.959964))
        off = np.abs(estimate - target) / errors
        wrong = np.sign(estimate) != np.sign(target)
    often = printed.mean(axis=0) >= _FEWEST
    slopes = [_mean(holds[printed[:, j], j]) for j in np.flatnonzero(often)]
    return Score(
        case=case.name,
        half=case.half,
        kind="drawn" if case.drawn else "real",
        family=case.family,
        right=case.right,
        table=case.table,
        n=len(runs[0][0].y),
        p=target.shape[1],
        eps=eps,
        delta=delta,
        runs=len(runs),
        held=_mean(holds[printed]),
        held_unmarked=_mean(holds[plain]),
        least=min(slopes, default=np.nan),
        width=_median(width[printed]),
        width_unmarked=_median(width[plain]),
        absent=1 - float(printed.mean()),
        marked=float((printed & marks).mean()),
        signs=_mean(wrong[sure & (target != 0)]),
        error=_median(off[np.isfinite(off)]),
        why=dict(Counter(fit.why for _, fit in runs if fit.why)),
    )


_COLUMNS = ("held_unmarked", "held", "least", "width", "absent", "marked", "signs", "error")
_HEADS = ("unmarked", "printed", "least", "width", "absent", "marked", "signs", "error")


def lines(scores: Sequence[Score]) -> Iterable[str]:
    """Return a table with a line for each case."""
    yield f"{'case':16s} {'family':8s} {'n':>7s} {'p':>3s} " + _row(_HEADS)
    for s in scores:
        cells = [_cell(getattr(s, column)) for column in _COLUMNS]
        why = "  " + "; ".join(why[:60] for why in s.why) if s.why else ""
        yield f"{s.case:16s} {s.family:8s} {s.n:7,d} {s.p:3d} {_row(cells)}{why}"


def averages(scores: Sequence[Score]) -> dict[str, dict[str, float]]:
    """Return averages over cases, by group; widths and errors are medians over cases."""
    groups = {
        _REAL: [s for s in scores if s.kind == "real" and s.n >= LARGE],
        "real, fewer rows": [s for s in scores if s.kind == "real" and s.n < LARGE],
        _RIGHT: [s for s in scores if s.kind == "drawn" and s.right],
        "drawn, other": [s for s in scores if s.kind == "drawn" and not s.right],
        "all": list(scores),
    }
    return {name: _average(group) for name, group in groups.items() if group}


def _average(group: Sequence[Score]) -> dict[str, float]:
    def column(name: str) -> Floats:
        values = np.array([getattr(s, name) for s in group], float)
        kept: Floats = values[~np.isnan(values)]
        return kept

    told = {name: _mean(column(name)) for name in _COLUMNS}
    told |= {name: _median(column(name)) for name in ("width", "width_unmarked", "error")}
    below = _mean(column("held_unmarked") < 0.8)
    return {"cases": float(len(group)), **told, "cases_below_.8": below}


def average_lines(found: dict[str, dict[str, float]]) -> Iterable[str]:
    """Return the averages as a table."""
    yield f"{'averages over cases':28s} {'cases':>8s} {_row(_HEADS)} {'< .8':>8s}"
    for name, told in found.items():
        cells = [_cell(told[column]) for column in (*_COLUMNS, "cases_below_.8")]
        yield f"{name:28s} {told['cases']:8.0f} {_row(cells)}"


def missed(found: dict[str, dict[str, float]], eps: float, delta: float) -> list[str]:
    """Return the goals of a budget that averages miss, in words; none where it has no goals."""
    said: list[str] = []
    goals = _GOALS.get((eps, delta))
    if goals is None:
        return said
    real, right = found.get(_REAL), found.get(_RIGHT)
    if real is not None:
        for name, goal in goals.items():
            value = real[name]
            if not (value <= goal if name == "width" else value >= goal):
                said.append(f"{_REAL}: {name} {value:.3f}, goal {goal:g}")
        if delta and not real["cases_below_.8"] <= _SPOILT:
            said.append(f"{_REAL}: {real['cases_below_.8']:.2f} of cases below .8")
    if right is not None and not right["held_unmarked"] >= 0.93:
        said.append(f"{_RIGHT}: held_unmarked {right['held_unmarked']:.3f}, goal 0.93")
    for name, told, most in ((_REAL, real, _OPEN), (_RIGHT, right, _OPEN_RIGHT)):
        if delta and told is not None and not told["absent"] + told["marked"] <= most:
            said.append(f"{name}: {told['absent'] + told['marked']:.2f} marked or without interval")
    return said


def _row(cells: Iterable[str]) -> str:
    return " ".join(f"{cell:>8s}" for cell in cells)


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:.3g}"


def _mean(values: NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")
