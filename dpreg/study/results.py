"""`SelectionStudy` and `AdaptiveStudy`: the curator's tables and pictures of a selection.

Every view says "curator only: not private, do not release": its repr and page, the ``attrs`` of
its frames, the first line of its CSV files, the titles of its pictures. Nothing claims privacy.

Tested in `tests/study/test_selection.py` and `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Floats
from dpreg.errors import ArgumentError, shown
from dpreg.formula.design import Design
from dpreg.request import SelectionRequest, count
from dpreg.results.summary import Printed, Summary
from dpreg.selection.space import Space
from dpreg.study import views
from dpreg.study.adaptive import AdaptiveLaw
from dpreg.study.law import Law, Setting
from dpreg.study.stamp import CURATOR_ONLY, marked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AdaptiveStudy", "SelectionStudy", "Study", "facts_of"]

_KEYS: Final = ["eps", "radius", "penalty", "mechanism"]
_SHOWN: Final = 20
"""Models that `probabilities` has."""


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
        return Summary(views.report(self))

    def __repr__(self) -> str:
        """Say what it is and that it must not be released."""
        return f"<{type(self).__name__}: {self.response}, {self._size}; {CURATOR_ONLY}>"

    @property
    def _size(self) -> str:
        raise NotImplementedError

    def _known(self, name: str, argument: str) -> str:
        if name not in self.tables:
            raise ArgumentError(
                f"{argument} must be one of {', '.join(sorted(self.tables))}; got {shown(name)}."
            )
        return name

    def _terms(self, values: Floats) -> pd.DataFrame:
        frame = pd.DataFrame(values, index=list(self.candidates), columns=self.index)
        return marked(frame.rename_axis(index="term"))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionStudy(Study):
    """Selection under many settings, exactly. Curator only: not private, do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units
        As in `Study`, like `hierarchy` and `max_terms`.
    rows : int
        Rows read, complete or not.
    settings : tuple of Setting
    law : Law
        Models and their probabilities under each setting.
    """

    rows: int
    settings: tuple[Setting, ...]
    law: Law

    tables = ("agreement", "frequencies", "probabilities", "relative_rsquared")

    @property
    def exact(self) -> bool:
        """Whether probabilities are exact, rather than shares of draws."""
        return self.law.draws is None

    @property
    def index(self) -> pd.MultiIndex:
        """The settings: eps, radius, penalty, mechanism."""
        return pd.MultiIndex.from_tuples([s.key for s in self.settings], names=_KEYS)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models of the law, as the right-hand sides of formulas."""
        return tuple(views.model_name(self, row) for row in self.law.models)

    @property
    def penalties(self) -> pd.DataFrame:
        """What each setting charged per column (phi) and per term (psi)."""
        values = [(float(s.phi), float(s.psi)) for s in self.settings]
        return marked(pd.DataFrame(values, index=self.index, columns=["phi", "psi"]))

    @property
    def probabilities(self) -> pd.DataFrame:
        """The chance that each model is drawn: models x settings, the likeliest models first.

        The twenty models with the highest average over the settings; `top` gives more or fewer.
        """
        return self.top(_SHOWN)

    def top(self, models: int | None = None) -> pd.DataFrame:
        """Return the likeliest models' probabilities, by their average over the settings.

        Parameters
        ----------
        models : int, optional
            How many; all models of the law if None.
        """
        most = None if models is None else count(models, "models")
        order = np.argsort(-self.law.probabilities.mean(axis=1), kind="stable")[:most]
        names = [self.models[i] for i in order]
        frame = pd.DataFrame(self.law.probabilities[order], index=names, columns=self.index)
        return marked(frame.rename_axis(index="model"))

    @property
    def frequencies(self) -> pd.DataFrame:
        """The chance that the drawn model holds each term: terms x settings."""
        return self._terms(self.law.mean(self.law.models.astype(np.float64)))

    @property
    def frequency_errors(self) -> pd.DataFrame:
        """Standard errors of `frequencies`: zero where probabilities are exact."""
        return self._terms(self.law.error(self.law.models.astype(np.float64)))

    @property
    def agreement(self) -> pd.DataFrame:
        """The chance of the non-private choice, a row for each setting.

        Two choices are meant. ``same score`` is the model that minimises the very score that the
        mechanism draws from, with the same radius and penalty and no noise (the first of equals):
        the reference of the paper's Figures 3 and 4. ``bic`` is least squares without a
        constraint, minimising n log RSS + columns log n over the same space.
        """
        values, errors = self.law.mean(self.law.agreement), self.law.error(self.law.agreement)
        columns: dict[str, Any] = {
            "same score": values[0],
            "bic": values[1],
            "same score's choice": [self.models[i] for i in self.law.chosen],
            "bic's choice": self.models[self.law.bic],
        }
        if not self.exact:
            columns |= {"same score se": errors[0], "bic se": errors[1]}
        return marked(pd.DataFrame(columns, index=self.index))

    @property
    def relative_rsquared(self) -> pd.DataFrame:
        """Expected R-squared of the drawn model over that of BIC's, a row for each setting.

        ``expected`` is the mean, over the drawn model, of the R-squared of its least-squares fit
        within the radius; ``relative`` divides it by the R-squared of unconstrained least squares
        with BIC, on the same rows. R-squared is about the mean if the formula has an intercept.
        """
        values = self.law.rsquared[:, None, :]
        expected, error = self.law.mean(values)[0], self.law.error(values)[0]
        bic = self.law.bic_rsquared
        scale = bic if bic > 0 else np.nan
        columns = {"relative": expected / scale, "expected": expected, "bic": bic}
        if not self.exact:
            columns["relative se"] = error / scale
        return marked(pd.DataFrame(columns, index=self.index))

    def plot(self, kind: str = "agreement", **options: str | int) -> Figure:
        """Draw the study.

        Parameters
        ----------
        kind : {"agreement", "relative_rsquared", "frequencies", "probabilities"}
            Agreement or expected R-squared as lines over the penalty (over eps where only one
            number was given), a panel for each radius and mechanism; frequencies as a table in
            greys; probabilities of the likeliest models as bars.
        **options
            ``reference="bic"`` for agreement with BIC; ``models=`` and ``setting=`` (a row number)
            for probabilities.

        Returns
        -------
        matplotlib Figure
        """
        from dpreg.study import plots

        figure: Figure = getattr(plots, self._known(kind, "kind"))(self, **options)
        return figure

    @property
    def _size(self) -> str:
        kind = "exact" if self.exact else f"{self.law.draws} draws"
        return f"{self.n_models:,} models x {len(self.settings)} settings, {kind}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AdaptiveStudy(Study):
    """Selection by looks under several budgets, simulated. Curator only: do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units
        As in `Study`, like `hierarchy` and `max_terms`.
    settings : tuple of (eps, delta, mechanism)
    draws : int
        How often the looks were made under each.
    law : AdaptiveLaw
    """

    settings: tuple[tuple[Fraction, Fraction, str], ...]
    draws: int
    law: AdaptiveLaw

    tables = ("outcomes", "frequencies", "alternatives", "best")

    @property
    def rows(self) -> int:
        """Rows read, complete or not."""
        return self.law.rows

    @property
    def index(self) -> pd.MultiIndex:
        """The settings: eps, delta, mechanism."""
        keys = [(float(eps), float(delta), mechanism) for eps, delta, mechanism in self.settings]
        return pd.MultiIndex.from_tuples(keys, names=["eps", "delta", "mechanism"])

    @property
    def bic(self) -> tuple[str, ...]:
        """The terms that least squares with BIC chooses on the same rows."""
        return tuple(name for name, held in zip(self.candidates, self.law.bic, strict=True) if held)

    @property
    def frequencies(self) -> pd.DataFrame:
        """The share of draws that report each term: terms x settings."""
        return self._shares([one.reported for one in self.law.drawn])

    @property
    def alternatives(self) -> pd.DataFrame:
        """The share of draws that name each term in a group of which one at least matters."""
        return self._shares([one.grouped for one in self.law.drawn])

    @property
    def best(self) -> pd.DataFrame:
        """The share of draws in whose fitted model each term is, found or one of a group."""
        return self._shares([one.best for one in self.law.drawn])

    @property
    def outcomes(self) -> pd.DataFrame:
        """What a draw gives on average, a row for each setting.

        ``found`` and ``useless`` count the reported terms that BIC chooses too, and those that it
        does not; ``in groups`` the terms named as one of several. ``same`` is the share of draws
        whose reported terms are BIC's. ``relative R-squared`` is that of the fitted model's least
        squares fit over that of BIC's. Each has its standard error over the draws.
        """
        bic, rows = self.law.bic, []
        scale = self.law.bic_rsquared if self.law.bic_rsquared > 0 else np.nan
        for one in self.law.drawn:
            values = {
                "found": (one.reported & bic).sum(axis=1),
                "useless": (one.reported & ~bic).sum(axis=1),
                "in groups": one.grouped.sum(axis=1),
                "same": (one.reported == bic).all(axis=1),
                "relative R-squared": one.rsquared / scale,
            }
            row = {name: float(np.mean(value)) for name, value in values.items()}
            root = np.sqrt(max(self.draws - 1, 1))
            row |= {f"{name} se": float(np.std(value) / root) for name, value in values.items()}
            rows.append(row)
        return marked(pd.DataFrame(rows, index=self.index))

    @property
    def _size(self) -> str:
        return f"{len(self.settings)} settings, {self.draws} draws each"

    def _shares(self, tables: list[Bools]) -> pd.DataFrame:
        return self._terms(np.stack([table.mean(axis=0) for table in tables], axis=1))
