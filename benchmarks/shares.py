"""The experiment behind the default shares of eps (`dpreg.request.SHARES`), at eps = 1.

Not a race: for each step that a selection may buy, what a smaller or larger share would bring, on
randhie, King County (where `DPREG_DATA` has it) and simulated Bay Area rows. Exact laws; no draws.

    python -m benchmarks.shares
"""

import math
from fractions import Fraction

import numpy as np

from dpreg import datasets
from dpreg.arrays import to_grid
from dpreg.errors import DatasetError
from dpreg.formula.design import build_design
from dpreg.grouped import CodedRows, GroupedCells, Layout, Sums
from dpreg.moments import Moments, accumulate
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.privacy.mechanisms.coins import assign_blocks
from dpreg.privacy.protection import Protection
from dpreg.privacy.ranks import RELIABLE, cell_counts, rank_scores
from dpreg.schema import Schema
from dpreg.selection.contest import lower_bound_shift, residual_change, residual_offset
from dpreg.selection.draws import RADII, block_norms, radius_blocks
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.scoring.problem import Problem
from dpreg.sources import as_source

SHARES = [Fraction(s) for s in ("0.02", "0.05", "0.1", "0.15", "0.2", "0.25", "0.35", "0.5")]
RHO = Fraction(1)
ONE_ROW = residual_change(RHO, Protection("replace-one"))


def _sets() -> dict[str, datasets.Dataset]:
    found = {"randhie": datasets.load_randhie(), "Bay Area": datasets.make_bay_area(235_760)}
    try:
        found["King County"] = datasets.load_kc_house()
    except DatasetError as err:
        print(f"without King County: {err}")
    return found


def _row(name: str, values: list[str]) -> None:
    print(f"  {name:<22}" + "".join(f"{value:>8}" for value in values))


def profile_share(name: str, residuals: float) -> None:
    """Rate of the draw, (1 - s) A, over the best share's; A at the median of its noise."""
    rates = []
    for share in SHARES:
        lower = residuals - lower_bound_shift(ONE_ROW, share, Fraction(1, 10**6))
        rates.append(max(0.0, float(1 - share) * lower))
    _row(name, [f"{rate / max(rates):.2f}" if max(rates) else "-" for rate in rates])


def sigma2_share(name: str, residuals: float) -> None:
    """Relative standard error of the noisy residual sum of squares, four fifths of the share."""
    _row(name, [f"{math.sqrt(2) * ONE_ROW.l1 / float(s * 4 / 5) / residuals:.3f}" for s in SHARES])


def radius_share(name: str, norms: np.ndarray) -> None:
    """Probability that the radius is the grid's end below the median norm, or next to it."""
    radii = np.array([float(radius) for radius in RADII])
    scores = rank_scores(cell_counts(norms, radii), round(len(norms) / 2))
    best = int(np.searchsorted(radii, np.median(norms)))
    near = slice(max(best - 1, 0), best + 2)
    chances = [
        selection_probabilities(
            scores, effective_t(share, 2, "permute-and-flip"), "permute-and-flip"
        )[near].sum()
        for share in SHARES
    ]
    _row(name, [f"{chance:.2f}" for chance in chances])


def run() -> None:
    rng = np.random.default_rng(0)
    measured = {}
    for name, data in _sets().items():
        design = build_design(data.formula, Schema.from_any(data.schema))
        size, source = len(design.columns) + 1, as_source(data.data)
        blocks = radius_blocks(len(data.data), size - 1)
        chunks = source.chunks(design.types, 8192)
        rows = [design.block(chunk) for chunk in chunks]
        sums = Sums(Layout(size), blocks)
        for some in rows:
            labels = assign_blocks(len(some), blocks, rng=rng)
            sums.add(CodedRows(to_grid(some), ()), labels)
        parts = [
            Moments(int(count), GroupedCells(Layout(size), vector))
            for count, vector in zip(sums.rows, sums.vectors(), strict=True)
        ]
        norms = block_norms(parts, range(size - 1), 1.0)
        moments = accumulate(rows, size)
        problem = Problem(moments, RHO)
        full = problem.score_one(range(size - 1)) + residual_offset(moments, RHO)
        measured[name] = full, norms, len(data.data), len(design.needed)
    for title, measure, place in (
        ("PCPL's bound: rate of the draw over the best share's", profile_share, 0),
        ("sigma2: relative standard error of the noisy residuals", sigma2_share, 0),
        ("radius: chance of the right end of the grid or its neighbours", radius_share, 1),
    ):
        print(title)
        _row("share of eps = 1", [f"{float(share):g}" for share in SHARES])
        for name, values in measured.items():
            measure(name, values[place])
    print(f"bounds: rows times eps of each column ({RELIABLE} wanted)")
    _row("share of eps = 1", [f"{float(share):g}" for share in SHARES])
    for name, (_, _, rows, columns) in measured.items():
        _row(name, [f"{rows * float(share) / columns:.0f}" for share in SHARES])


if __name__ == "__main__":
    run()
