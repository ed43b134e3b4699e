"""`SelectionStudy` and `AdaptiveStudy`: the curator's tables and pages of a selection.

What a study of the paper's method computes is the law of the drawn model under each setting: a
table of models and probabilities, exact or estimated by repeated draws. Frequencies, agreement and
expected R-squared are means of a function of the model under it. Of a selection by looks it holds
simulated choices.

Every view says "curator only: not private, do not release": its repr and page, the ``attrs`` of
its frames, the first line of its CSV files, the titles of its pictures. Nothing claims privacy.

Tested in `tests/study/test_selection.py` and `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Floats, Ints
from dpreg.planning.pages import Columns, columns, grid, laid_out, plain, share, words
from dpreg.request import choice, count
from dpreg.results.summary import Block, Grid, Paragraph, Printed, Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURATOR_ONLY: Final = "curator only: not private, do not release"
"""On every view of exact quantities computed from raw rows."""
SIMULATED: Final = "simulated rows: not private, as public as the numbers they were made from"
"""On every view of a study whose rows were simulated."""
_SHOWN: Final = 20
"""Models that `probabilities` has."""
_PAGE_SHOWN: Final = {"settings": 24, "terms": 24, "columns": 8}
"""Lines and columns beyond these are left out of the page, and it says so."""
_SHORT: Final = {"radius": "R", "penalty": "pen", "mechanism": ""}
"""What heads of columns call a part of a setting, where it is not its own name."""

Frame = TypeVar("Frame", pd.DataFrame, pd.Series)


def marked(frame: Frame, stamp: str = CURATOR_ONLY) -> Frame:
    """Return `frame` with the stamp in its ``attrs``."""
    frame.attrs["privacy"] = stamp
    return frame


def left_out(rows: int, most: int, where: str) -> list[Paragraph]:
    """Say how many settings a page leaves out."""
    return [Paragraph("Left out", f"{rows - most} settings; see {where}.")] if rows > most else []


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of the arguments that a study varies.

    Attributes
    ----------
    key : tuple
        Its entry in the index of a study.
    phi, psi : Fraction
        What the penalty came to: the charge per column and per unit, in squared units of the scaled
        response. Looks charge nothing.
    """

    key: tuple[Any, ...]
    phi: Fraction = Fraction(0)
    psi: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of what is chosen under each of S settings.

    Attributes
    ----------
    models : bool array, shape (K, q) or (K, 3, q)
        Every model of the space, or, for drawn laws, each one that was drawn or is a reference. Of
        looks the terms found, those of the model that is fitted, and those of groups that the look
        cannot tell apart.
    probabilities : float64 array, shape (K, S)
        Columns sum to 1: exact probabilities, or shares of draws.
    rsquared : float64 array, shape (K, S) or (K, 1)
        R-squared of each model's fit, constrained to the setting's radius if it has one.
    bic : int
        The model that BIC least squares chooses.
    bic_rsquared : float
        R-squared of its unconstrained fit.
    draws : int or None
        How many draws stand behind the shares; None where probabilities are exact.
    """

    models: Bools
    probabilities: Floats
    rsquared: Floats
    bic: int
    bic_rsquared: float
    draws: int | None = None

    def mean(self, values: Floats) -> Floats:
        """Return the mean of functions (K, m) of the model under each setting: (m, S)."""
        return np.asarray(values.T @ self.probabilities)

    def error(self, mean: Floats, squares: Floats, less: int = 0) -> Floats:
        """Return the standard error of means, given those of squares, of so many draws less."""
        if self.draws is None:
            return np.zeros_like(mean)
        return np.asarray(np.sqrt(np.maximum(squares - mean**2, 0) / max(self.draws - less, 1)))


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
    rows : int
        Rows read, complete or not.
    settings : tuple of Setting
    law : Law
        What is chosen under each setting, and with which probability.
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
    rows: int
    settings: tuple[Setting, ...]
    law: Law

    varied: ClassVar[tuple[str, ...]]
    """The arguments that settings are combinations of: the names of the index."""
    tables: ClassVar[tuple[str, ...]]
    """The names of the tables, the one that `to_csv` writes first."""
    privacy: ClassVar[str] = CURATOR_ONLY
    """What may be done with any of this."""

    @property
    def index(self) -> pd.MultiIndex:
        """The settings."""
        return pd.MultiIndex.from_tuples([s.key for s in self.settings], names=self.varied)

    @property
    def exact(self) -> bool:
        """Whether probabilities are exact, rather than shares of draws."""
        return self.law.draws is None

    @property
    def frequencies(self) -> pd.DataFrame:
        """The chance, or share of draws, with which each term is chosen: terms x settings."""
        return self._shares(0)

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
        frame: pd.DataFrame = getattr(self, choice(table or self.tables[0], "table", self.tables))
        text = f"# {CURATOR_ONLY}\n" + frame.to_csv(lineterminator="\n")
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def headings(self, most: int) -> tuple[list[str], str]:
        """Return a head for each of the first settings, of what varies, and what does not."""
        labels = [[plain(part) for part in s.key] for s in self.settings[:most]]
        several = [i for i, parts in enumerate(zip(*labels, strict=True)) if len(set(parts)) > 1]
        names, several = [_SHORT.get(name, name) for name in self.varied], several or [0]
        heads = ["\n".join(f"{names[i]} {one[i]}".strip() for i in several) for one in labels]
        fixed = [i for i in range(len(names)) if i not in several]
        return heads, ", ".join(f"{self.varied[i]} {labels[0][i]}" for i in fixed)

    def __repr__(self) -> str:
        """Say what it is and that it must not be released."""
        size = f"{self.n_models:,} models x {len(self.settings)} settings, {self._how}"
        return f"<{type(self).__name__}: {self.response}, {size}; {CURATOR_ONLY}>"

    @property
    def _how(self) -> str:
        return "exact" if self.exact else f"{self.law.draws} draws each"

    def _terms(self, values: Floats) -> pd.DataFrame:
        frame = pd.DataFrame(values, index=list(self.candidates), columns=self.index)
        return marked(frame.rename_axis(index="term"))

    def _shares(self, part: int) -> pd.DataFrame:
        models = self.law.models if self.law.models.ndim == 2 else self.law.models[:, part]
        return self._terms(self.law.mean(models.astype(float)))

    def _page(
        self,
        name: str,
        settings: tuple[pd.DataFrame, Columns, str, str],
        terms: tuple[str, pd.DataFrame],
        notes: Iterable[Paragraph],
    ) -> Summary:
        """Make the page: facts, a line for each setting and each term, and notes.

        Parameters
        ----------
        name : str
            What kind of study it is.
        settings : (DataFrame, columns, str, str)
            A row for each setting, what is shown of it after the setting itself, the sides on which
            columns are aligned, and a title.
        terms : (str, DataFrame)
            A title, and texts: terms x settings.
        notes : iterable of Paragraph
        """
        sizes = {"kept": len(self.kept), "free": len(self.candidates)}
        facts = laid_out("study", study=self, settings=len(self.settings), how=self._how, **sizes)
        most, (table, columns, aligns, title) = _PAGE_SHOWN, settings
        keys: Columns = {key: (key, plain) for key in self.varied}
        lines = table.head(most["settings"]).reset_index()
        blocks: list[Block] = [
            Paragraph("Formula", self.formula),
            facts,
            grid(lines, keys | columns, aligns, title),
        ]
        if self.candidates:
            likeliest = np.argsort(-self.frequencies.to_numpy().mean(axis=1), kind="stable")
            rows = terms[1].iloc[likeliest[: most["terms"]], : most["columns"]]
            heads, fixed = self.headings(most["columns"])
            heads = [head.replace("-and", "-\nand") for head in heads]
            cells = tuple(
                (str(name), *row) for name, row in zip(rows.index, rows.to_numpy(), strict=True)
            )
            title = f"{terms[0]}: {fixed}"
            blocks.append(Grid(("term", *heads), cells, "l" + "r" * len(heads), title))
        cut = left_out(len(self.settings), most["settings"], "the data frames")
        return Summary(f"{name}: {self.response}", CURATOR_ONLY, (*blocks, *notes, *cut))


# ---- the paper's method --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionStudy(Study):
    """Selection under many settings, exactly. Curator only: not private, do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units, rows
        As in `Study`, like `hierarchy`, `max_terms`, `settings` and `law`.
    chosen : int array, shape (S,)
        The model with the lowest score without noise.
    """

    chosen: Ints

    varied = ("eps", "radius", "penalty", "mechanism")
    tables = ("agreement", "frequencies", "probabilities", "relative_rsquared")

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models of the law, as the right-hand sides of formulas."""
        kept = ["1" if name == "Intercept" else name for name in self.kept]
        free = np.array(["1" if name == "Intercept" else name for name in self.candidates], object)
        return tuple(" + ".join([*kept, *free[units]]) or "0" for units in self.law.models)

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
    def frequency_errors(self) -> pd.DataFrame:
        """Standard errors of `frequencies`: zero where probabilities are exact."""
        share = self.frequencies.to_numpy()
        return self._terms(self.law.error(share, share))

    @property
    def agreement(self) -> pd.DataFrame:
        """The chance of the non-private choice, a row for each setting.

        Two choices are meant. ``same score`` is the model that minimises the very score that the
        mechanism draws from, with the same radius and penalty and no noise (the first of equals):
        the reference of the paper's Figures 3 and 4. ``bic`` is least squares without a
        constraint, minimising n log RSS + columns log n over the same space.
        """
        law = self.law
        same = law.probabilities[self.chosen, np.arange(len(self.settings))]
        values = np.stack([same, law.probabilities[law.bic]])
        errors = law.error(values, values)
        columns: dict[str, Any] = {
            "same score": values[0],
            "bic": values[1],
            "same score's choice": [self.models[i] for i in self.chosen],
            "bic's choice": self.models[law.bic],
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
        law, bic = self.law, self.law.bic_rsquared
        expected = (law.rsquared * law.probabilities).sum(axis=0)
        scale = bic if bic > 0 else np.nan
        columns = {"relative": expected / scale, "expected": expected, "bic": bic}
        if not self.exact:
            squares = (law.rsquared**2 * law.probabilities).sum(axis=0)
            columns["relative se"] = law.error(expected, squares) / scale
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

        figure: Figure = getattr(plots, choice(kind, "kind", self.tables))(self, **options)
        return figure

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        law, likeliest = self.law, self.law.probabilities.argmax(axis=0)
        told = words("study-choices", model=self.models[law.bic], rsquared=law.bic_rsquared)
        notes = [Paragraph("Choices", told)]
        if not self.exact:
            notes.append(Paragraph("Draws", words("study-draws", draws=law.draws)))
        table = self.agreement.assign(
            relative=self.relative_rsquared["relative"],
            likeliest=[self.models[i] for i in likeliest],
            chance=law.probabilities.max(axis=0),
        )
        return self._page(
            "Selection study",
            (table, columns("agreement"), "rrrlrrrlr", "Agreement and fit"),
            ("Chance that the drawn model holds each term", self.frequencies.map(share)),
            notes,
        )


# ---- looks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AdaptiveStudy(Study):
    """Selection by looks under several budgets, simulated. Curator only: do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units, rows
        As in `Study`, like `hierarchy`, `max_terms`, `settings` and `law`.
    """

    varied = ("eps", "delta", "mechanism")
    tables = ("outcomes", "frequencies", "alternatives", "best")

    @property
    def held(self) -> Bools:
        """Which of the candidates least squares with BIC chooses, (q,)."""
        return np.asarray(self.law.models[self.law.bic, 0])

    @property
    def bic(self) -> tuple[str, ...]:
        """The terms that least squares with BIC chooses on the same rows."""
        return tuple(name for name, held in zip(self.candidates, self.held, strict=True) if held)

    @property
    def best(self) -> pd.DataFrame:
        """The share of draws in whose fitted model each term is, found or one of a group."""
        return self._shares(1)

    @property
    def alternatives(self) -> pd.DataFrame:
        """The share of draws that name each term in a group of which one at least matters."""
        return self._shares(2)

    @property
    def outcomes(self) -> pd.DataFrame:
        """What a draw gives on average, a row for each setting.

        ``found`` and ``useless`` count the reported terms that BIC chooses too, and those that it
        does not; ``in groups`` the terms named as one of several. ``same`` is the share of draws
        whose reported terms are BIC's. ``relative R-squared`` is that of the fitted model's least
        squares fit over that of BIC's. Each has its standard error over the draws.
        """
        law, (reported, _, grouped) = self.law, np.swapaxes(self.law.models, 0, 1)
        scale = law.bic_rsquared if law.bic_rsquared > 0 else np.nan
        values = {
            "found": (reported & self.held).sum(axis=1),
            "useless": (reported & ~self.held).sum(axis=1),
            "in groups": grouped.sum(axis=1),
            "same": (reported == self.held).all(axis=1),
            "relative R-squared": law.rsquared[:, 0] / scale,
        }
        table = np.column_stack(list(values.values())).astype(float)
        mean = law.mean(table)
        told = np.concatenate([mean, law.error(mean, law.mean(table**2), less=1)])
        names = [*values, *(f"{name} se" for name in values)]
        return marked(pd.DataFrame(told.T, index=self.index, columns=names))

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        told = words("study-looks", terms=", ".join(self.bic) or "none")
        cells = self.frequencies.map(share) + " (" + self.alternatives.map(share) + ")"
        title = "Share of draws that report each term, and that name it in a group (in brackets)"
        head = f"On average; BIC chooses {len(self.bic)} terms"
        table = self.outcomes, columns("outcomes"), "rrlrrrrr", head
        reading = [Paragraph("Reading", told)]
        return self._page("Study of selection by looks", table, (title, cells), reading)
