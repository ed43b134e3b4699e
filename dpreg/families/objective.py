r"""Losses of families, and the rows that they are summed over: held in memory, each read once.

A complete row (1, x, y) of gridded cells, with o what columns of known slopes add to its predictor,
has the loss, of the predictor eta = (1, x)'t + o,

    omega l(eta, y),    omega = min(1, R^2 / |(1, x)|^2),

    yes/no:  l = log(1 + exp(eta)) - y eta,         |l'| <= 1,    0 <= l'' <= 1/4,
    counts:  l' = exp(min(eta, a)) - min(y, top),   |l'| <= top,  0 <= l'' <= top, a = log(top).

omega depends on the columns alone, so that a right model stays right. A row's gradient is at most R
times the bound on |l'| long, and its second derivative at most R^2 times that on l''. The search
for the minimum is that of `dpreg.staged.objective`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb

from dpreg.arrays import Floats
from dpreg.moments import CELL_BITS, Vectors, to_grid
from dpreg.sources import LocalSource
from dpreg.sources.reader import Reader
from dpreg.staged.objective import HeldRows

__all__ = ["Loss", "held_rows"]


def held_rows(
    reader: Reader,
    design: Vectors,
    columns: Sequence[int],
    offsets: Sequence[int],
    known: Sequence[float],
    response: tuple[float, float],
    cap: float,
) -> HeldRows:
    """Read the complete rows of a `LocalSource` once.

    Parameters
    ----------
    reader, design, columns, offsets, known, response
        As for `dpreg.families.looks.look_at_family`.
    cap : float
        The largest response.
    """
    assert isinstance(reader.source, LocalSource)
    blocks = []
    for chunk in reader.chunks(design.types, "rows"):
        made = design.block(chunk)
        cells = to_grid(made, out=made) * 2.0**-CELL_BITS
        blocks.append(cells[cells[:, 0] == 1.0])
    cells = np.concatenate(blocks) if blocks else np.zeros((0, design.size))
    y = np.clip(response[0] + response[1] * cells[:, -1], 0.0, cap)
    added = np.zeros(len(cells))
    for place, slope in zip(offsets, known, strict=True):
        added += slope * cells[:, place]
    return HeldRows(cells[:, [0, *columns]], y, added)


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of the predictor; see the module.

    Parameters
    ----------
    counts : bool
    top : float
        Of counts: what responses and means are cut at; else 1.
    """

    counts: bool
    top: float = 1.0

    @property
    def slope(self) -> float:
        """Bound on |l'|."""
        return self.top

    @property
    def bend(self) -> float:
        """Bound on l''."""
        return self.top if self.counts else 0.25

    @property
    def cut(self) -> bool:
        """Whether l' is a predictor less a response, cut: it is not."""
        return False

    @property
    def last(self) -> float:
        """A: where the mean of counts stays."""
        return float(np.log(self.top))

    def derivatives(self, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return l' and l''."""
        if self.counts:
            mean = np.exp(np.minimum(eta, self.last))
            return mean - y, np.where(eta < self.last, mean, 0.0)
        mean = 1 / (1 + np.exp(-np.clip(eta, -700, 700)))
        return mean - y, mean * (1 - mean)

    def ball(self, eta: arb, y: float) -> arb:
        """Return l' as a ball that holds it."""
        if self.counts:
            return eta.min(arb(self.last)).exp() - y
        return 1 / (1 + (-eta).exp()) - y
