"""What bounds cost that are too wide, or that cut: the table of the page "Choosing bounds".

    python -m benchmarks.bounds [--seeds 20]

20,000 rows at eps = 1: one column of each shape, a yes/no column, and a response that both explain.
Bounds of x reach so many times as far from the middle as the farthest cell does, or hold a share of
the cells. Errors are over those of least squares on all rows; an interval holds if the slope of
least squares on the declared (clipped) columns is in it; "unmarked" is of those that are not
marked "wide" or refused an interval.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import dpreg

ROWS = 20_000
SHAPES = {
    "even": lambda rng: rng.uniform(0, 10, ROWS),
    "normal": lambda rng: rng.normal(50, 10, ROWS),
    "lognormal": lambda rng: np.exp(rng.normal(3, 1, ROWS)),
}


def bounds_of(x: np.ndarray, wide: float) -> tuple[float, float]:
    """Return bounds `wide` times as wide as the cells; below 1, that hold such a share of them."""
    if wide < 1:
        return min(x.min(), 0.0), float(np.quantile(x, wide))
    low, high = x.min(), x.max()
    middle, half = (low + high) / 2, (high - low) / 2
    return middle - wide * half, middle + wide * half


def cell(shape: str, wide: float, delta: float, seed: int) -> dict[str, float]:
    """Fit once."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": SHAPES[shape](rng), "g": rng.random(ROWS) < 0.4})
    sd = data["x"].std()
    data["y"] = 2 * data["x"] / sd + data["g"] + rng.normal(0, 2, ROWS)
    x, y = bounds_of(data["x"].to_numpy(), wide), bounds_of(data["y"].to_numpy(), max(wide, 1))
    schema = {"x": x, "y": y, "g": bool}
    fit = dpreg.dp_ols("y ~ x + g", data, 1, delta=delta, schema=schema, unsafe_seed=seed)
    clipped = data.assign(x=data["x"].clip(*x))
    target = smf.ols("y ~ x + g", clipped).fit().params["x"]
    whole = smf.ols("y ~ x + g", data).fit(cov_type="HC0")
    low, high = fit.conf_int().loc["x"]
    z = fit.params["x"] / fit.bse["x"]
    return {
        "error": fit.bse["x"] / whole.bse["x"],
        "holds": float(low <= target <= high),
        "marked": float(fit.marks["x"] != "above noise"),
        "wrong sign": float(z < -3),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    seeds = range(parser.parse_args().seeds)
    lines = []
    for delta in (1e-6, 0):
        for shape in SHAPES:
            for wide in (0.95, 0.99, 1, 3, 10, 100):
                found = pd.DataFrame([cell(shape, wide, delta, seed) for seed in seeds])
                held = found["holds"].mean()
                lines.append(
                    [f"{delta:g}", shape, wide, found["error"].median(), held,
                     found["holds"][found["marked"] == 0].mean(), found["marked"].mean(),
                     found["wrong sign"].mean()]
                )  # fmt: skip
                print(*lines[-1], file=sys.stderr)
    titles = ["delta", "column", "bounds", "error", "holds", "unmarked", "marked", "wrong sign"]
    print(pd.DataFrame(lines, columns=titles).round(2).to_string(index=False))


if __name__ == "__main__":
    main()
