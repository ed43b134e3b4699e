"""`SimulationStudy`: how often the right model is drawn, over simulated data sets.

Tested in `tests/study/test_simulation.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pandas as pd

from dpreg.errors import ArgumentError, shown
from dpreg.results.summary import Printed, Summary
from dpreg.study.simulation import KEYS, OBSERVED, SimulationDesign
from dpreg.study.stamp import SIMULATED, marked
from dpreg.study.views import simulation_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SimulationStudy"]

_NEAR: Final = 0.9  # by definition: of the best chance, where a penalty counts as one that does


@dataclass(frozen=True, eq=False, repr=False)
class SimulationStudy(Printed):
    """Chance of the right model over simulated data sets, under many settings.

    Attributes
    ----------
    design : SimulationDesign
        What was simulated and compared.
    proportions : DataFrame
        One row a setting: ``right``, the mean over the data sets of the exact chance that the
        mechanism draws the right model; ``se``, its standard error (of sampling data sets; the
        mechanism adds none); ``without noise``, the share of data sets in which the same score
        picks it without noise. ``penalty/n`` is phi / n, or "auto".
    """

    design: SimulationDesign
    proportions: pd.DataFrame

    @property
    def best(self) -> pd.DataFrame:
        """The best number for the penalty under each setting, and how wide its success is.

        ``wide`` is the part of the tried interval of penalties where the chance is at least nine
        tenths of the best one's.
        """
        table = self._numeric
        rows = []
        for key, group in table.groupby(KEYS, sort=False):
            top = group.iloc[int(group["right"].to_numpy().argmax())]
            wide = float((group["right"] >= _NEAR * top["right"]).mean())
            rows.append((*key, top["penalty/n"], top["right"], top["se"], wide))
        columns = [*KEYS, "penalty/n", "right", "se", "wide"]
        return marked(pd.DataFrame(rows, columns=columns).set_index(KEYS), SIMULATED)

    @property
    def auto(self) -> pd.DataFrame:
        """The settings under ``penalty="auto"``, which needs no tuning."""
        if self.design.false_inclusions is None:
            raise ArgumentError('penalty="auto" was not tried: give false_inclusions to the study.')
        table = self.proportions[self.proportions["penalty/n"] == "auto"]
        return marked(table.drop(columns="penalty/n").set_index(KEYS), SIMULATED)

    @property
    def price_of_the_leak(self) -> pd.DataFrame:
        """What the paper's r = ``max |y|``, outside any budget, gains over a public bound.

        Best chances with the observed maximum and with each public bound, side by side.
        """
        if OBSERVED not in self.design.bounds or len(self.design.bounds) < 2:
            raise ArgumentError('this needs bound=("observed", a public number).')
        table = self.best["right"].unstack("bound")
        for bound in [name for name in table.columns if name != OBSERVED]:
            table[f"price at {bound:g}"] = table[OBSERVED] - table[bound]
        return marked(table, SIMULATED)

    def table(self, penalty: str = "best") -> pd.DataFrame:
        """Compare mechanisms: chance of the right model, mechanism x eps.

        Parameters
        ----------
        penalty : {"best", "auto"}
            The best number that was tried, or "auto".
        """
        if penalty not in ("best", "auto"):
            raise ArgumentError(f'penalty must be "best" or "auto"; got {shown(penalty)}.')
        frame = (self.best if penalty == "best" else self.auto)["right"]
        single = [name for name in KEYS if name != "eps" and self._values(name) == 1]
        rows = frame.reset_index().drop(columns=single)
        names = [name for name in KEYS if name not in (*single, "eps")] or ["mechanism"]
        if "mechanism" not in rows and names == ["mechanism"]:
            rows["mechanism"] = self.design.mechanisms[0]
        made = rows.pivot_table(index=names, columns="eps", values="right", sort=False)
        return marked(made, SIMULATED)

    def plot(
        self, n: int | None = None, *, reference: bool = True, **options: str | float
    ) -> Figure:
        """Draw the chance of the right model over phi: panels for n and R, a line for each eps.

        Parameters
        ----------
        n : int, optional
            One sample size alone.
        reference : bool
            Whether to draw the chance without noise, too.
        **options
            ``bound=``, ``mechanism=``, ``neighbors=``, ``scale=``: which to show where several were
            studied; the first by default.
        """
        from dpreg.study import plots

        figure: Figure = plots.simulation(self, n, reference, **options)
        return figure

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        varied = [key for key in KEYS if self._values(key) > 1] or ["n"]
        return Summary(simulation_report(self, varied))

    def __repr__(self) -> str:
        """Say what it is."""
        d = self.design
        beta = ", ".join(f"{b:g}" for b in d.beta)
        return (
            f"<SimulationStudy: beta = ({beta}), {d.datasets} data sets, "
            f"{len(self.proportions):,} settings; {SIMULATED}>"
        )

    @property
    def _numeric(self) -> pd.DataFrame:
        return self.proportions[self.proportions["penalty/n"] != "auto"].astype(
            {"penalty/n": float}
        )

    def _values(self, key: str) -> int:
        return int(self.proportions[key].nunique())
