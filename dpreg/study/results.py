"""`SelectionStudy`: the curator's tables and pictures of a selection under many settings.

Every view says "curator only: not private, do not release": its repr and page, the ``attrs`` of
its frames, the first line of its CSV files, the titles of its pictures. Nothing claims privacy.

Tested in `tests/study/test_selection.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from dpreg.request import count
from dpreg.results.report import Report
from dpreg.study import views
from dpreg.study.base import Study
from dpreg.study.law import Law, Setting
from dpreg.study.stamp import CURATOR_ONLY, marked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SelectionStudy"]

_KEYS: Final = ["eps", "radius", "penalty", "mechanism"]


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
        return self.top(20)

    def top(self, models: int | None = None) -> pd.DataFrame:
        """Return the likeliest models' probabilities, by their average over the settings.

        Parameters
        ----------
        models : int, optional
            How many; all models of the law if None.
        """
        shown = None if models is None else count(models, "models")
        order = np.argsort(-self.law.probabilities.mean(axis=1), kind="stable")[:shown]
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

    def __repr__(self) -> str:
        """Say what it is and that it must not be released."""
        kind = "exact" if self.exact else f"{self.law.draws} draws"
        return (
            f"<SelectionStudy: {self.response}, {self.n_models:,} models x "
            f"{len(self.settings)} settings, {kind}; {CURATOR_ONLY}>"
        )

    def _report(self) -> Report:
        return views.report(self)
