"""`StagedStudy`: the curator's tables of a staged selection under several budgets.

Every view says "curator only: not private, do not release", as those of `SelectionStudy` do.

Tested in `tests/study/test_staged.py`.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools
from dpreg.errors import ArgumentError
from dpreg.results.report import Facts, Grid, Paragraph, Report
from dpreg.results.summary import Summary
from dpreg.study.staged import StagedLaw
from dpreg.study.stamp import CURATOR_ONLY, marked
from dpreg.study.views import share

__all__ = ["StagedStudy"]

_TABLES: Final = ("outcomes", "frequencies", "alternatives", "best")
_COLUMNS: Final = 8
_TERMS: Final = 24


@dataclass(frozen=True, eq=False, repr=False)
class StagedStudy:
    """Staged selection under several budgets, simulated. Curator only: do not release.

    Attributes
    ----------
    formula, response : str
    kept, candidates : tuple of str
        Terms (or columns) in every model, and those that enter or leave.
    n_models : int
        Models of the space.
    neighbors, contributions, units, hierarchy, max_terms
        As in the call.
    settings : tuple of (eps, delta, mechanism)
    draws : int
        How often the looks were made under each.
    law : StagedLaw
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
    settings: tuple[tuple[Fraction, Fraction, str], ...]
    draws: int
    law: StagedLaw

    @property
    def privacy(self) -> str:
        """What may be done with any of this."""
        return CURATOR_ONLY

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
        return self._terms([one.reported for one in self.law.drawn])

    @property
    def alternatives(self) -> pd.DataFrame:
        """The share of draws that leave each term in doubt: it, or another in its place."""
        drawn = self.law.drawn
        return self._terms([(one.best & ~one.reported) | one.rivals for one in drawn])

    @property
    def best(self) -> pd.DataFrame:
        """The share of draws in whose best model each term is, reported or in doubt."""
        return self._terms([one.best for one in self.law.drawn])

    @property
    def outcomes(self) -> pd.DataFrame:
        """What a draw gives on average, a row for each setting.

        ``found`` and ``useless`` count the reported terms that BIC chooses too, and those that it
        does not; ``in doubt`` the terms of the best model that are not reported. ``same`` is the
        share of draws whose reported terms are BIC's. ``relative R-squared`` is that of the best
        model's least squares fit over that of BIC's. Each has its standard error over the draws.
        """
        bic, rows = self.law.bic, []
        scale = self.law.bic_rsquared if self.law.bic_rsquared > 0 else np.nan
        for one in self.law.drawn:
            values = {
                "found": (one.reported & bic).sum(axis=1),
                "useless": (one.reported & ~bic).sum(axis=1),
                "in doubt": (one.best & ~one.reported).sum(axis=1),
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

    def to_csv(self, path: str | os.PathLike[str] | None = None, table: str = "outcomes") -> str:
        """Write a table as CSV; its first line says that it is for the curator only.

        Parameters
        ----------
        path : path, optional
            Written where given.
        table : {"outcomes", "frequencies", "alternatives", "best"}

        Returns
        -------
        str
            What was, or would be, written.
        """
        if table not in _TABLES:
            raise ArgumentError(f"table must be one of {', '.join(_TABLES)}; got {table!r}.")
        frame: pd.DataFrame = getattr(self, table)
        text = io.StringIO()
        text.write(f"# {CURATOR_ONLY}\n")
        frame.to_csv(text, lineterminator="\n")
        if path is not None:
            Path(path).write_text(text.getvalue(), encoding="utf-8")
        return text.getvalue()

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        return Summary(self._report())

    def __repr__(self) -> str:
        """Say what it is and that it must not be released."""
        return (
            f"<StagedStudy: {self.response}, {len(self.settings)} settings, {self.draws} draws "
            f"each; {CURATOR_ONLY}>"
        )

    def __str__(self) -> str:
        """Return the page as text."""
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def _terms(self, tables: list[Bools]) -> pd.DataFrame:
        values = np.stack([table.mean(axis=0) for table in tables], axis=1)
        frame = pd.DataFrame(values, index=list(self.candidates), columns=self.index)
        return marked(frame.rename_axis(index="term"))

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
            ("eps", "delta", "noise", "found", "useless", "in\ndoubt", "P(BIC's)", "relative\nR2"),
            tuple(
                (
                    *label,
                    *(f"{row[name]:.2f}" for name in ("found", "useless", "in doubt")),
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
            "Share of draws that report each term, and that leave it in doubt (in brackets)",
        )
        reading = Paragraph(
            "Reading",
            "The looks were made anew for each draw, with seeded noise of the law of a call. found "
            "and useless: reported terms that least squares with BIC chooses on these rows, and "
            "that it does not; in doubt: terms of the best model that others might stand for.",
        )
        return Report(
            f"Study of staged selection: {self.response}",
            CURATOR_ONLY,
            (Paragraph("Formula", self.formula), facts, told, terms, reading),
        )
