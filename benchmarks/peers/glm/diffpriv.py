"""diffprivlib's LogisticRegression: objective perturbation at pure eps (Chaudhuri et al. 2011).

Pure at eps, whatever delta. It gets the public largest norm of a row; in its favour its penalty C
is the best with hindsight. Yes/no only. Left out, and said so, where diffprivlib or a scikit-learn
that it runs with is missing (extra `bench`).
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from benchmarks.peers.diffpriv import missing
from benchmarks.peers.glm._rows import GLMRows

PENALTIES = (0.1, 1.0, 10.0)


def settings(family: str, eps: float, delta: float) -> list[tuple[float, ...]]:
    return [] if missing() or family != "binomial" else [(c,) for c in PENALTIES]


def fit(
    rows: GLMRows,
    setting: tuple[float, ...],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    from diffprivlib.models import LogisticRegression

    found, longest = [], math.sqrt(rows.columns - 1)
    for seed in rng.integers(2**31, size=repeats):
        model = LogisticRegression(
            epsilon=eps * rows.size / len(rows.x),
            data_norm=longest,
            C=setting[0] * rows.size / len(rows.x),
            random_state=int(seed),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows.x[:, 1:], rows.y.astype(int))
        found.append(np.append(model.intercept_, model.coef_))
    return np.array(found)
