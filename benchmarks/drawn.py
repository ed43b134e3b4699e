"""How near a release comes to least squares on forty drawn tables, right models and wrong ones.

    python -m benchmarks.drawn [--runs N] [--eps E] [--delta D] [--only TEXT]
        [--neighbors NAME] [--most ROWS]

For slopes, in units of least squares: overlap with its intervals, width, root mean square of the
bias, the noise. Coverage is that of the line of three million rows; least squares' own stands
beside it, and the share of slopes that a flag names. This is a benchmark of accuracy, not of
privacy: rows are floats and noise comes from a seed.
"""

from __future__ import annotations

import argparse
from functools import cache

import numpy as np

from benchmarks._drawn_tables import TABLES, Draw, Table
from benchmarks._staged_rows import SHARES, Setting, staged
from benchmarks.coverage import ols_errors
from benchmarks.replication.measures import overlap
from dpreg.looks.need import rows_needed
from dpreg.staged import reference
from dpreg.staged.coefficients import coefficients
from dpreg.staged.flags import flags
from dpreg.staged.minimum import may_be_alone

PIECE, PIECES = 300_000, 10


@cache
def line_of(draw: Draw) -> np.ndarray:
    """The line of least squares of very many rows."""
    rng, gram = np.random.default_rng(99), None
    for _ in range(PIECES):
        x, y = draw(rng, PIECE)
        z = np.column_stack([np.ones(PIECE), x, y])
        gram = z.T @ z if gram is None else gram + z.T @ z
    assert gram is not None
    return np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])


def measure(
    table: Table, runs: int, eps: float, delta: float, neighbors: str, seed: int = 5
) -> dict[str, float]:
    """Run a table's cell."""
    truth = line_of(table.draw)
    setting = Setting(eps, delta, neighbors, 1, 0, table.levels)
    rng = np.random.default_rng([seed, sum(map(ord, table.label)), int(delta > 0)])
    last = setting.strength(SHARES[delta > 0][2])
    needed = rows_needed(len(truth), last, neighbors, gaussian=delta > 0)
    alone = not delta and may_be_alone(table.rows, needed, len(truth) + 1)
    shared, widths, gaps, hits, own, named = [], [], [], [], [], []
    for _ in range(runs):
        x, y = table.draw(rng, table.rows)
        beta, bse, _ = ols_errors(x, y, True)
        run = staged(x, y, setting, table.rows, rng, stretched=True, alone=alone)
        fit = coefficients(run.law)
        half = reference.quantiles(np.diag(fit.sampling), np.diag(fit.privacy), fit.degrees, 0.05)
        exact, private = (
            np.column_stack([center - reach, center + reach])
            for center, reach in ((beta, 1.96 * bse), (fit.params, half))
        )
        shared.append(overlap(exact, private))
        widths.append(half / (1.96 * bse))
        gaps.append((fit.params - beta) / bse)
        hits.append(np.abs(fit.params - truth) <= half)
        own.append(np.abs(beta - truth) <= 1.96 * bse)
        names = [f"x{j}" for j in range(len(beta))]
        told = {j for flag in flags(run.law, fit, names, needed=0.0) for j in flag.columns}
        named.append(len(told - {0}) / (len(beta) - 1))
    slopes = [np.array(one)[:, 1:] for one in (shared, widths, gaps, hits, own)]
    return {
        "overlap": float(np.median(slopes[0])),
        "width": float(np.median(slopes[1])),
        "bias": float(np.sqrt(np.square(slopes[2].mean(axis=0)).mean())),
        "noise": float(np.median(slopes[2].std(axis=0))),
        "error": float(np.square(slopes[2]).mean()),
        "coverage": float(slopes[3].mean()),
        "least squares": float(slopes[4].mean()),
        "flagged": float(np.mean(named)),
        "intercept": float(np.array(hits)[:, 0].mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--only", default="")
    parser.add_argument("--neighbors", default="replace-one")
    parser.add_argument("--most", type=int, default=10**9, help="tables of up to so many rows")
    given = parser.parse_args()
    found = []
    for table in TABLES:
        if given.only not in table.label or table.rows > given.most:
            continue
        found.append(measure(table, given.runs, given.eps, given.delta, given.neighbors))
        if len(found) == 1:
            print(f"{'':28s} " + " ".join(f"{name:>13s}" for name in found[0]))
        print(
            f"{table.label:28s} " + " ".join(f"{v:13.3f}" for v in found[-1].values()), flush=True
        )
    mean = {
        name: np.exp(np.mean(np.log([one[name] for one in found])))
        if name in ("width", "error")
        else np.mean([one[name] for one in found])
        for name in found[0]
    }
    print(
        f"{'mean (width, error: geometric)':28s} " + " ".join(f"{v:13.3f}" for v in mean.values())
    )


if __name__ == "__main__":
    main()
