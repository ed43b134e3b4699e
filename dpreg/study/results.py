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

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Floats, Ints
from dpreg.errors import ArgumentError, shown
from dpreg.request import count
from dpreg.results.summary import Block, Facts, Grid, Paragraph, Printed, Summary

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

Frame = TypeVar("Frame", pd.DataFrame, pd.Series)


def marked(frame: Frame, stamp: str = CURATOR_ONLY) -> Frame:
    """Return `frame` with the stamp in its ``attrs``."""
    frame.attrs["privacy"] = stamp
    return frame


def share(value: float) -> str:
    """Write a probability as the slides do: .85, or 1 and 0 where it rounds to them."""
    text = f"{value:.3f}"
    return {"1.000": "1", "0.000": "0"}.get(text, text.lstrip("0"))


def left_out(rows: int, most: int, where: str) -> list[Paragraph]:
    """Say how many settings a page leaves out."""
    return [Paragraph("Left out", f"{rows - most} settings; see {where}.")] if rows > most else []


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

    tables: ClassVar[tuple[str, ...]]
    """The names of the tables, the one that `to_csv` writes first."""
    privacy: ClassVar[str] = CURATOR_ONLY
    """What may be done with any of this."""

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

    def _page(self, name: str, right: dict[str, str], blocks: Sequence[Block]) -> Summary:
        left = {
            "Rows": f"{self.rows:,}",
            "Models": f"{self.n_models:,}",
            "Terms": f"{len(self.kept)} kept, {len(self.candidates)} free",
        }
        if "Settings" in right:
            left["Units"] = self.units
        right |= {"Neighbours": self.neighbors, "Contributions": str(self.contributions)}
        facts = Facts(tuple(left.items()), tuple(right.items()))
        whole = (Paragraph("Formula", self.formula), facts, *blocks)
        return Summary(f"{name}: {self.response}", CURATOR_ONLY, whole)

    def _likeliest(self, frame: pd.DataFrame) -> Ints:
        """Return the terms that a page shows, the likeliest first."""
        return np.argsort(-frame.to_numpy().mean(axis=1), kind="stable")[: _PAGE_SHOWN["terms"]]


# ---- the paper's method --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of the arguments that a study varies.

    Attributes
    ----------
    eps, radius : Fraction
    penalty : Fraction or str
        As the caller gave it.
    mechanism : str
    phi, psi : Fraction
        What it came to: the charge per column and per unit, in squared units of the scaled
        response.
    """

    eps: Fraction
    radius: Fraction
    penalty: Fraction | str
    mechanism: str
    phi: Fraction
    psi: Fraction

    @property
    def key(self) -> tuple[float, float, float | str, str]:
        """The setting as an entry of an index."""
        penalty = self.penalty if isinstance(self.penalty, str) else float(self.penalty)
        return float(self.eps), float(self.radius), penalty, self.mechanism


@dataclass(frozen=True, slots=True)
class Law:
    """Probabilities of models under each of S settings.

    Attributes
    ----------
    models : bool array, shape (K, q)
        Every model of the space, or, for drawn laws, each model that was drawn or is a reference.
    probabilities : float64 array, shape (K, S)
        Columns sum to 1: exact probabilities, or shares of draws.
    rsquared : float64 array, shape (K, S)
        R-squared of each model's constrained fit at the setting's radius.
    chosen : int array, shape (S,)
        The model with the lowest score without noise.
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
    chosen: Ints
    bic: int
    bic_rsquared: float
    draws: int | None

    def mean(self, values: Floats) -> Floats:
        """Return the mean, under each setting, of functions of the model.

        Parameters
        ----------
        values : (K, m), or (K, m, S) where the functions differ between settings

        Returns
        -------
        float64 array, shape (m, S)
        """
        if values.ndim == 2:
            return np.asarray(values.T @ self.probabilities)
        return np.asarray(np.einsum("kms,ks->ms", values, self.probabilities))

    def error(self, values: Floats) -> Floats:
        """Return the standard error of `mean`: zero where probabilities are exact."""
        mean = self.mean(values)
        if self.draws is None:
            return np.zeros_like(mean)
        spread = np.maximum(self.mean(values**2) - mean**2, 0.0)
        return np.asarray(np.sqrt(spread / self.draws))

    @property
    def agreement(self) -> Floats:
        """Indicators, (K, 2, S): is it the choice of the score without noise; is it BIC's."""
        out = np.zeros((len(self.models), 2, len(self.chosen)))
        out[self.chosen, 0, np.arange(len(self.chosen))] = 1.0
        out[self.bic, 1] = 1.0
        return out


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SelectionStudy(Study):
    """Selection under many settings, exactly. Curator only: not private, do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units, rows
        As in `Study`, like `hierarchy` and `max_terms`.
    settings : tuple of Setting
    law : Law
        Models and their probabilities under each setting.
    """

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
        names = ["eps", "radius", "penalty", "mechanism"]
        return pd.MultiIndex.from_tuples([s.key for s in self.settings], names=names)

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

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        notes = [
            Paragraph(
                "Choices",
                "P(same choice) is the chance of the model that minimises the same score without "
                "noise; P(BIC's choice) that of least squares with BIC, which is "
                f"{self.models[self.law.bic]} (R-squared {self.law.bic_rsquared:.3f}). Relative "
                "R-squared is the expected one of the drawn model's constrained fit over that of "
                "BIC's.",
            )
        ]
        if not self.exact:
            notes.append(
                Paragraph(
                    "Draws",
                    "The space is too large to list: chances are shares of "
                    f"{self.law.draws} draws, with standard errors in frequency_errors and in the "
                    "tables' se columns.",
                )
            )
        notes += left_out(len(self.settings), _PAGE_SHOWN["settings"], "the data frames")
        law = "exact" if self.exact else f"{self.law.draws} draws each"
        right = {"Settings": str(len(self.settings)), "Probabilities": law}
        tables = (self._settings(), *self._frequencies())
        return self._page("Selection study", right, (*tables, *notes))

    @property
    def _size(self) -> str:
        kind = "exact" if self.exact else f"{self.law.draws} draws"
        return f"{self.n_models:,} models x {len(self.settings)} settings, {kind}"

    def _label(self, row: int) -> tuple[str, ...]:
        return tuple(
            part if isinstance(part, str) else f"{part:g}" for part in self.settings[row].key
        )

    def _settings(self) -> Grid:
        agreement, relative = self.agreement, self.relative_rsquared["relative"]
        likeliest = self.law.probabilities.argmax(axis=0)
        rows = tuple(
            (
                *self._label(s),
                share(float(agreement["same score"].iloc[s])),
                share(float(agreement["bic"].iloc[s])),
                f"{float(relative.iloc[s]):.3f}",
                self.models[likeliest[s]],
                share(float(self.law.probabilities[likeliest[s], s])),
            )
            for s in range(min(len(self.settings), _PAGE_SHOWN["settings"]))
        )
        headers = (
            *("eps", "radius", "penalty", "mechanism", "P(same\nchoice)", "P(BIC's\nchoice)"),
            *("relative\nR-squared", "likeliest model", "its P"),
        )
        return Grid(headers, rows, "rrrlrrrlr", "Agreement and fit")

    def _frequencies(self) -> list[Grid]:
        """Make the slides' table: terms x settings, as many settings as a page is wide."""
        shown, values = min(len(self.settings), _PAGE_SHOWN["columns"]), self.frequencies
        if values.empty:
            return []
        labels = [self._label(s) for s in range(shown)]
        varied = [i for i in range(4) if len({label[i] for label in labels}) > 1] or [0]
        names = ("eps", "R", "pen", "")
        headers = tuple(
            "\n".join(f"{names[i]} {label[i]}".strip().replace("-and", "-\nand") for i in varied)
            for label in labels
        )
        rows = tuple(
            (self.candidates[i], *(share(float(v)) for v in values.to_numpy()[i, :shown]))
            for i in self._likeliest(values)
        )
        whole = enumerate(("eps", "R", "penalty", "mechanism"))
        fixed = ", ".join(f"{name} {labels[0][i]}" for i, name in whole if i not in varied)
        title = f"Chance that the drawn model holds each term: {fixed}"
        return [Grid(("term", *headers), rows, "l" + "r" * shown, title)]


# ---- looks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What the draws under one setting gave; K draws over q terms on offer.

    Attributes
    ----------
    reported : bool array, shape (K, q)
        Terms found.
    best : bool array, shape (K, q)
        Terms of the model that is fitted.
    grouped : bool array, shape (K, q)
        Terms of a group that the look cannot tell apart.
    rsquared : float array, shape (K,)
        Of that model's least squares fit.
    """

    reported: Bools
    best: Bools
    grouped: Bools
    rsquared: Floats


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AdaptiveStudy(Study):
    """Selection by looks under several budgets, simulated. Curator only: do not release.

    Attributes
    ----------
    formula, response, kept, candidates, n_models, neighbors, contributions, units, rows
        As in `Study`, like `hierarchy` and `max_terms`.
    settings : tuple of (eps, delta, mechanism)
    draws : int
        How often the looks were made under each.
    drawn : tuple of Drawn
        One a setting.
    held : bool array, shape (q,)
        The terms that least squares with BIC chooses.
    bic_rsquared : float
    """

    settings: tuple[tuple[Fraction, Fraction, str], ...]
    draws: int
    drawn: tuple[Drawn, ...]
    held: Bools
    bic_rsquared: float

    tables = ("outcomes", "frequencies", "alternatives", "best")

    @property
    def index(self) -> pd.MultiIndex:
        """The settings: eps, delta, mechanism."""
        keys = [(float(eps), float(delta), mechanism) for eps, delta, mechanism in self.settings]
        return pd.MultiIndex.from_tuples(keys, names=["eps", "delta", "mechanism"])

    @property
    def bic(self) -> tuple[str, ...]:
        """The terms that least squares with BIC chooses on the same rows."""
        return tuple(name for name, held in zip(self.candidates, self.held, strict=True) if held)

    @property
    def frequencies(self) -> pd.DataFrame:
        """The share of draws that report each term: terms x settings."""
        return self._shares("reported")

    @property
    def alternatives(self) -> pd.DataFrame:
        """The share of draws that name each term in a group of which one at least matters."""
        return self._shares("grouped")

    @property
    def best(self) -> pd.DataFrame:
        """The share of draws in whose fitted model each term is, found or one of a group."""
        return self._shares("best")

    @property
    def outcomes(self) -> pd.DataFrame:
        """What a draw gives on average, a row for each setting.

        ``found`` and ``useless`` count the reported terms that BIC chooses too, and those that it
        does not; ``in groups`` the terms named as one of several. ``same`` is the share of draws
        whose reported terms are BIC's. ``relative R-squared`` is that of the fitted model's least
        squares fit over that of BIC's. Each has its standard error over the draws.
        """
        bic, rows = self.held, []
        scale = self.bic_rsquared if self.bic_rsquared > 0 else np.nan
        for one in self.drawn:
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

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        labels = [(f"{eps:g}", f"{delta:g}", mechanism) for eps, delta, mechanism in self.index]
        told = Grid(
            ("eps", "delta", "noise", "found", "useless", "in\ngroups", "P(BIC's)", "relative\nR2"),
            tuple(
                (
                    *label,
                    *(f"{row[name]:.2f}" for name in ("found", "useless", "in groups")),
                    share(float(row["same"])),
                    f"{row['relative R-squared']:.3f}",
                )
                for label, (_, row) in zip(labels, self.outcomes.iterrows(), strict=True)
            ),
            "rrlrrrrr",
            f"On average; BIC chooses {len(self.bic)} terms",
        )
        frequencies, doubts = self.frequencies, self.alternatives.to_numpy()
        shown = min(len(labels), _PAGE_SHOWN["columns"])
        rows = tuple(
            (
                self.candidates[i],
                "yes" if self.held[i] else "no",
                *(
                    f"{share(float(a))} ({share(float(b))})"
                    for a, b in zip(frequencies.to_numpy()[i, :shown], doubts[i], strict=False)
                ),
            )
            for i in self._likeliest(frequencies)
        )
        headers = tuple(f"eps {eps}\ndelta {delta}" for eps, delta, _ in labels[:shown])
        title = "Share of draws that report each term, and that name it in a group (in brackets)"
        terms = Grid(("term", "BIC", *headers), rows, "ll" + "r" * shown, title)
        reading = Paragraph(
            "Reading",
            "The looks were made anew for each draw, with seeded noise of the law of a call. found "
            "and useless: reported terms that least squares with BIC chooses on these rows, and "
            "that it does not; in groups: terms of which the looks show that one at least matters.",
        )
        right = {"Draws": f"{self.draws} each"}
        return self._page("Study of selection by looks", right, (told, terms, reading))

    @property
    def _size(self) -> str:
        return f"{len(self.settings)} settings, {self.draws} draws each"

    def _shares(self, table: str) -> pd.DataFrame:
        return self._terms(np.stack([getattr(one, table).mean(axis=0) for one in self.drawn], 1))
