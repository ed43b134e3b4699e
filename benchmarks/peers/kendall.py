"""KT: private choice of columns by Kendall's tau, then TukeyEM (Dick, Gillenwater, Joseph 2023).

In each of k rounds the column is drawn whose n |tau| / 2 with the response is largest after the
mean of the same with columns already chosen is taken off: the exponential mechanism at eps / k,
sensitivity 3/2 in the first round and 3 later. tau holds no unit, so no bounds are needed.
In its favour: the number of columns, the share of eps for the choice (.05 in the paper) and the
number of models are the best with hindsight. It gives no errors.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import kendalltau

from benchmarks.peers import tukey
from benchmarks.peers._rows import Rows

COLUMNS, SHARES, MODELS = (5, 10), (0.05, 0.2), (1000, 1250, 1500)


def settings(eps: float, delta: float) -> list[tuple[int, float, int]]:
    return [(k, s, m) for k in COLUMNS for s in SHARES for m in MODELS] if delta else []


def chosen(
    rows: Rows, k: int, eps: float, rng: np.random.Generator, known: dict[tuple[int, int], float]
) -> list[int]:
    """Columns of `rows.x` (0 is the constant); `known` keeps coefficients from draw to draw."""
    columns = [rows.y, *rows.x.T[1:]]
    wanted = range(1, len(columns))

    def against(place: int) -> np.ndarray:
        for j in wanted:
            if (place, j) not in known:
                known[place, j] = abs(kendalltau(columns[place], columns[j]).statistic)
        return np.array([known[place, j] for j in wanted]) * len(rows.y) / 2

    value, taken, apart = against(0), [], np.zeros(len(wanted))
    for step in range(min(k, len(wanted))):
        scores = value - apart / max(step, 1)
        noise = 2 * (3.0 if step else 1.5) * k / eps * rng.gumbel(size=len(scores))
        place = int(np.argmax(np.where(np.isin(wanted, taken), -np.inf, scores + noise)))
        taken.append(place + 1)
        apart = apart + against(place + 1)
    return taken


def fit(
    rows: Rows,
    setting: tuple[int, float, int],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    k, share, m = setting
    found, known = np.zeros((repeats, rows.size)), {}
    for row in found:
        kept = [0, *chosen(rows, k, share * eps, rng, known)]
        row[kept] = tukey.fit(Rows(rows.x[:, kept], rows.y), m, (1 - share) * eps, delta, 1, rng)[0]
    return found
