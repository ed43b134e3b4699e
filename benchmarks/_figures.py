"""The simulations of Lei et al. (2018), section 5.1, as they stand in the paper, and a table more.

Simulated rows: nobody's. The paper's real tables need real rows: `dpreg.selection_study`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import pandas as pd

from dpreg.study.results import SIMULATED, marked
from dpreg.study.simulation import OBSERVED, SimulationDesign, SimulationStudy, proportions

__all__ = ["BETAS", "figure", "mechanism_table"]

BETAS: Final = {1: (1.0, 1.0, 1.0, 0.0, 0.0, 0.0), 2: (1.5, 1.0, 0.5, 0.0, 0.0, 0.0)}
"""The coefficients behind Figures 1 and 2."""

_RADII: Final = (1.0, 2.5, 3.5, 10.0)
_EPS: Final = (0.1, 1.0, 5.0, 10.0)
_ROWS: Final = (
    ("laplace", "replace-one", "paper"),
    ("laplace", "replace-one", "range"),
    ("exponential", "replace-one", "range"),
    ("permute-and-flip", "replace-one", "range"),
    ("permute-and-flip", "add-remove", "range"),
)


def figure(
    number: int,
    *,
    bounds: tuple[float | str, ...] = (OBSERVED,),
    points: int = 51,
    datasets: int = 500,
    seed: int = 0,
    progress: bool = False,
) -> SimulationStudy:
    """Return the study behind Figure 1 or 2: laplace with the noise that Algorithm 1 prints.

    Parameters
    ----------
    number : {1, 2}
    bounds : tuple
        "observed", the paper's r = max |y|, or public numbers.
    points : int
        Penalties between 0 and n/2.
    datasets, seed : int
    progress : bool
    """
    design = SimulationDesign(
        beta=np.array(BETAS[number]),
        sigma=1.0,
        n=(100, 1000),
        radius=_RADII,
        eps=_EPS,
        penalty=tuple(np.linspace(0.0, 0.5, points).tolist()),
        false_inclusions=None,
        mechanism=("laplace",),
        neighbors=("replace-one",),
        scale=("paper",),
        bound=bounds,
        empty=False,
        datasets=datasets,
        seed=seed,
    )
    return SimulationStudy(design, marked(proportions(design, progress=progress), SIMULATED))


def mechanism_table(
    *,
    radius: float = 2.5,
    bound: float | str = OBSERVED,
    eps: tuple[float, ...] = (1.0, 5.0),
    n: int = 1000,
    datasets: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare the mechanisms on the paper's first model: chance of the right model.

    Parameters
    ----------
    radius : float
    bound : float or "observed"
    eps : tuple of float
    n, datasets, seed : int

    Returns
    -------
    DataFrame
        Rows: mechanism, neighbours, scale ("paper": Algorithm 1's own noise). Columns: eps, each at
        the best phi of 51 between 0 and n/2 and under ``penalty="auto"`` with 0.1 useless terms.
    """
    parts = []
    for mechanism, neighbors, scale in _ROWS:
        design = SimulationDesign(
            beta=np.array(BETAS[1]),
            sigma=1.0,
            n=(n,),
            radius=(radius,),
            eps=eps,
            penalty=tuple(np.linspace(0.0, 0.5, 51).tolist()),
            false_inclusions=Fraction(1, 10),
            mechanism=(mechanism,),
            neighbors=(neighbors,),
            scale=(scale,),
            bound=(bound,),
            empty=True,
            datasets=datasets,
            seed=seed,
        )
        study = SimulationStudy(design, proportions(design))
        for penalty, found in (("best", study.best), ("auto", study.auto)):
            line = found["right"].reset_index()
            parts.append(line.assign(penalty=penalty))
    frame = pd.concat(parts)
    order = pd.MultiIndex.from_tuples(_ROWS, names=["mechanism", "neighbors", "scale"])
    made = frame.set_index(["mechanism", "neighbors", "scale", "eps", "penalty"])["right"]
    return marked(made.unstack(["eps", "penalty"]).reindex(order), SIMULATED)
