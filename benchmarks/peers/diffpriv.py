"""diffprivlib's LinearRegression, which implements the functional mechanism (Zhang et al. 2012).

Pure at eps, whatever delta; it gets the public bounds of columns and response, and has no setting
to tune. Left out, and said so, where diffprivlib or a scikit-learn that it runs with is missing
(extra `bench`).
"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.peers._rows import Rows


def missing() -> str | None:
    """Why it cannot run here, if so."""
    try:
        import diffprivlib.models  # noqa: F401
    except ImportError as error:
        return str(error)
    return None


def settings(eps: float, delta: float) -> list[None]:
    return [] if missing() else [None]


def fit(
    rows: Rows,
    setting: None,
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    from diffprivlib.models import LinearRegression

    found = []
    for seed in rng.integers(2**31, size=repeats):
        model = LinearRegression(
            epsilon=eps, bounds_X=(-1, 1), bounds_y=(-1, 1), random_state=int(seed)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows.x[:, 1:], rows.y)
        found.append(np.append(model.intercept_, model.coef_))
    return np.array(found)
