"""`AdaptiveStudy`: the curator's tables of a selection by looks under several budgets.

Every view says "curator only: not private, do not release", as those of `SelectionStudy` do.

Tested in `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools
from dpreg.results.report import Facts, Grid, Paragraph, Report
from dpreg.study.adaptive import AdaptiveLaw
from dpreg.study.base import Study
from dpreg.study.stamp import CURATOR_ONLY, marked
from dpreg.study.views import share

__all__ = ["AdaptiveStudy"]

_COLUMNS: Final = 8
_TERMS: Final = 24


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AdaptiveStudy(Study):
    """Adaptive selection under several budgets, simulated. Curator only: do not release.

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
            spread = {
                f"{name} se": float(np.std(value) / np.sqrt(max(self.draws - 1, 1)))
                for name, value in values.items()
            }
            rows.append(row | spread)
        return marked(pd.DataFrame(rows, index=self.index))

    def __repr__(self) -> str:
        """Say what it is and that it must not be released."""
        return (
            f"<AdaptiveStudy: {self.response}, {len(self.settings)} settings, {self.draws} draws "
            f"each; {CURATOR_ONLY}>"
        )

    def _shares(self, tables: list[Bools]) -> pd.DataFrame:
        return self._terms(np.stack([table.mean(axis=0) for table in tables], axis=1))

    def _report(self) -> Report:
        outcomes, frequencies, doubts = self.outcomes, self.frequencies, self.alternatives
        labels = [(f"{float(eps):g}", f"{float(delta):g}", m) for eps, delta, m in self.settings]
        facts = Facts(
            (
                ("Rows", f"{self.rows:,}"),
                ("Models", f"{self.n_models:,}"),
                ("Terms", f"{len(self.kept)} kept, {len(self.candidates)} free"),
            ),
            (
                ("Draws", f"{self.draws} each"),
                ("Neighbours", self.neighbors),
                ("Contributions", str(self.contributions)),
            ),
        )
        told = Grid(
            ("eps", "delta", "noise", "found", "useless", "in\ngroups", "P(BIC's)", "relative\nR2"),
            tuple(
                (
                    *label,
                    *(f"{row[name]:.2f}" for name in ("found", "useless", "in groups")),
                    share(float(row["same"])),
                    f"{row['relative R-squared']:.3f}",
                )
                for label, (_, row) in zip(labels, outcomes.iterrows(), strict=True)
            ),
            "rrlrrrrr",
            f"On average; BIC chooses {len(self.bic)} terms",
        )
        shown = min(len(labels), _COLUMNS)
        order = np.argsort(-frequencies.to_numpy().mean(axis=1), kind="stable")[:_TERMS]
        headers = tuple(f"eps {eps}\ndelta {delta}" for eps, delta, _ in labels[:shown])
        terms = Grid(
            ("term", "BIC", *headers),
            tuple(
                (
                    self.candidates[i],
                    "yes" if self.law.bic[i] else "no",
                    *(
                        f"{share(float(frequencies.iloc[i, s]))} "
                        f"({share(float(doubts.iloc[i, s]))})"
                        for s in range(shown)
                    ),
                )
                for i in order
            ),
            "ll" + "r" * shown,
            "Share of draws that report each term, and that name it in a group (in brackets)",
        )
        reading = Paragraph(
            "Reading",
            "The looks were made anew for each draw, with seeded noise of the law of a call. found "
            "and useless: reported terms that least squares with BIC chooses on these rows, and "
            "that it does not; in groups: terms of which the looks show that one at least matters.",
        )
        return Report(
            f"Study of selection by looks: {self.response}",
            CURATOR_ONLY,
            (Paragraph("Formula", self.formula), facts, told, terms, reading),
        )
