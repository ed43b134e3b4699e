"""dp_select over all 2^100 models of 100,000 rows, from the frame to the draw, beside abess.

abess (Zhu et al. 2020) looks for the best subset of each size by splicing and picks a size by an
information criterion; it is not private and not exact. Both start from the same rows; dpreg reads a
frame through formula and schema, abess is given the matrix. Needs ``pip install abess``.

    python -m benchmarks.hundred
"""

import os

import numpy as np
import pandas as pd

import dpreg
from benchmarks._harness import compare, show

ROWS, TERMS = 100_000, 100


def main() -> None:
    try:
        from abess.linear import LinearRegression
    except ImportError:
        print("needs the peer: pip install abess")
        return

    rng = np.random.default_rng(0)
    for correlation in (0.0, 0.5):
        common = rng.normal(size=(ROWS, 1))
        x = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(
            size=(ROWS, TERMS)
        )
        x = np.clip(x / 4, -1, 1)
        y = x[:, :10] @ np.linspace(0.2, 0.6, 10) + rng.normal(0, 0.2, ROWS)
        names = [f"x{j}" for j in range(TERMS)]
        data = pd.DataFrame(x, columns=names).assign(y=y)
        schema = dict.fromkeys(names, (-1, 1)) | {"y": (-2, 2)}
        formula = "y ~ " + " + ".join(names)

        def private(
            formula: str = formula, data: pd.DataFrame = data, schema: dict = schema
        ) -> int:
            result = dpreg.dp_select(
                formula, data, eps=1, schema=schema, fit=None, method=dpreg.PCLS(radius=4)
            )
            assert result.engine == "tree"
            return len(result.selected)

        def splicing(x: np.ndarray = x, y: np.ndarray = y) -> object:
            return LinearRegression(support_size=range(31), thread=os.cpu_count() or 1).fit(x, y)

        show(
            [
                compare(
                    f"2^100 models, correlation {correlation:g}",
                    private,
                    "abess, sizes 0..30",
                    splicing,
                    goal=1.0,
                )
            ]
        )


if __name__ == "__main__":
    main()
