"""What the studies of selections share: facts of the call, tables, and the page.

Tested in `tests/study/test_selection.py` and `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.errors import ArgumentError, shown
from dpreg.formula.design import Design
from dpreg.request import SelectionRequest
from dpreg.results.report import Report
from dpreg.results.summary import Printed, Summary
from dpreg.selection.space import Space
from dpreg.study.stamp import CURATOR_ONLY, marked

__all__ = ["Study", "facts_of"]


def facts_of(design: Design, space: Space, request: SelectionRequest) -> dict[str, Any]:
    """Return the fields of `Study`; `request` is any of those that were studied together."""
    return {
        "formula": design.formula,
        "response": design.response.name,
        "kept": design.keep,
        "candidates": space.units,
        "n_models": space.size,
        "neighbors": request.protection.neighbors,
        "contributions": request.protection.contributions,
        "units": request.units,
        "hierarchy": request.hierarchy,
        "max_terms": request.max_terms,
    }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Study(Printed):
    """A selection under several settings. Curator only: not private, do not release.

    Attributes
    ----------
    formula, response : str
    kept, candidates : tuple of str
        Terms (or columns) in every model, and those that enter or leave.
    n_models : int
        Models of the space.
    neighbors, contributions, units, hierarchy, max_terms
        As in the call.
    """

    formula: str
    response: str
    kept: tuple[str, ...]
    candidates: tuple[str, ...]
    n_models: int
    neighbors: str
    contributions: int
    units: str
    hierarchy: str
    max_terms: int | None

    tables: ClassVar[tuple[str, ...]]
    """The names of the tables, the one that `to_csv` writes first."""

    @property
    def privacy(self) -> str:
        """What may be done with any of this."""
        return CURATOR_ONLY

    @property
    def index(self) -> pd.MultiIndex:
        """The settings."""
        raise NotImplementedError

    def to_csv(self, path: str | os.PathLike[str] | None = None, table: str | None = None) -> str:
        """Write a table as CSV; its first line says that it is for the curator only.

        `DataFrame.to_csv` of pandas writes no such line.

        Parameters
        ----------
        path : path, optional
            Written where given.
        table : str, optional
            One of `tables`; by default the first.

        Returns
        -------
        str
            What was, or would be, written. Read it back with ``pandas.read_csv(..., comment="#")``.
        """
        frame: pd.DataFrame = getattr(self, self._known(table or self.tables[0], "table"))
        text = io.StringIO()
        text.write(f"# {CURATOR_ONLY}\n")
        frame.to_csv(text, lineterminator="\n")
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        return Summary(self._report())

    def _report(self) -> Report:
        raise NotImplementedError

    def _known(self, name: str, argument: str) -> str:
        if name not in self.tables:
            raise ArgumentError(
                f"{argument} must be one of {', '.join(sorted(self.tables))}; got {shown(name)}."
            )
        return name

    def _terms(self, values: NDArray[np.float64]) -> pd.DataFrame:
        frame = pd.DataFrame(values, index=list(self.candidates), columns=self.index)
        return marked(frame.rename_axis(index="term"))
