"""A released selection: which terms a differentially private mechanism chose, and how.

Tested in `tests/results/test_selection.py` and `tests/api/test_select_family.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.errors import NotReleased
from dpreg.request import choice
from dpreg.results import notes, plots
from dpreg.results.base import with_names_of
from dpreg.results.glm import GLMResults
from dpreg.results.regression import OfFormula, RegressionResults
from dpreg.results.saved import Huge

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Number = Fraction | float


@with_names_of(RegressionResults)
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SelectionResults(OfFormula):
    """Variables of a linear model, selected with differential privacy.

    Parameters
    ----------
    formula : str
        As typed.
    schema : mapping
        The public facts about columns, as `Schema.to_dict()` writes them; bounds that were
        estimated privately are in it.
    response : str
        The response's name.
    candidates : tuple of str
        What could be chosen: terms, or columns where `units="column"`.
    kept : tuple of str
        Terms that are in every model.
    columns : mapping
        Term (or column) to the names of its design columns, for kept and candidates.
    models : tuple of tuples of str
        The K released draws, in order; each holds the kept terms too.
    reported : tuple of str
        The reported model: the most frequent draw, kept terms first. Read it as `selected`.
    selected_formula : str
    n_models : int
        The number of models in the space, exact.
    nobs : int or None
        Rows, where their number is public (replace-one, without `person`); else None.
    method, mechanism, engine : str
        "pcls"; "permute-and-flip", ...; "enumerate", "tree". "adaptive" has the noise of its looks
        for a mechanism, and the engine "tests".
    units, hierarchy : str
    max_terms : int or None
    eps, delta : Fraction
        As typed in the call: the most that it may cost. `spent` is what it did cost.
    radius, clip : Fraction
        Of the l1 ball (None for "adaptive") and of the response, in units of the scaled response.
    radius_source : {"given", "default", "private", "none"}
    center : bool
    penalty : str
        The rule: "given", "auto" or "bic".
    phi, psi : Fraction, float or None
        What was charged per column and per term, in squared units of the scaled response.
    sigma2 : Fraction, float or None
        The residual variance that went into phi, where one was given or estimated privately.
    bounds : mapping
        Column to "schema" or "private": where its bounds come from.
    claim : PrivacyClaim
    notes : tuple of str
        Public remarks and the texts of public warnings, printed under the summary.
    record : ReleaseRecord or None
        When and by what it was released, and where it stands in its ledger.
    regression : RegressionResults or None
        The coefficients of the selected model; None with `fit=None`.
    passes : int
        How often the rows were read for this call; a count of them alone is not a pass.
    best : tuple of str
        "adaptive": the model that `params` describe: `reported`, and of each of `alternatives` the
        terms that say most of it.
    alternatives : tuple of tuples of str
        "adaptive": groups of two to six terms that the release cannot tell apart. Each explains
        more than chance would, and of none is it known which of its terms does.
    levels, choice_errors : mappings of str to float
        "adaptive": read them as `level` and `level_errors`.
    false_inclusions : float or None
        "adaptive": the level that terms were held against.
    stabilities : mapping of str to float
        In files of dpreg 0.2, which had it in the place of `level`.
    certified : bool or None
        In files of dpreg 0.2: whether it was proved that no model is better.
    releases : tuple of ReleasedLook
        "adaptive": what was released, look by look.
    looks : tuple of Look
        The same in files of dpreg 0.2.
    """

    kind = "selection"
    title = "variable selection: {0.response}"
    subject = "selected_formula"
    saved_as: ClassVar[Mapping[str, str]] = {"reported": "chosen", "stabilities": "chosen_again"}

    response: str
    candidates: tuple[str, ...]
    kept: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    models: tuple[tuple[str, ...], ...]
    reported: tuple[str, ...]
    selected_formula: str
    n_models: Huge
    mechanism: str
    engine: str
    units: str
    hierarchy: str
    max_terms: int | None = None
    radius: Number | None = None
    radius_source: str = "none"
    penalty: str = "auto"
    phi: Number | None = None
    psi: Number | None = None
    sigma2: Number | None = None
    regression: RegressionResults | None = None
    best: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, ...], ...] = ()
    levels: Mapping[str, float] = field(default_factory=dict)
    choice_errors: Mapping[str, float] = field(default_factory=dict)
    false_inclusions: float | None = None
    stabilities: Mapping[str, float] = field(default_factory=dict)
    certified: bool | None = None

    def _faults(self) -> Iterator[tuple[bool, str]]:
        terms = set(self.kept + self.candidates)
        twice = len(terms) < len(self.kept) + len(self.candidates)
        yield twice, "a term occurs twice among kept and candidates"
        yield not self.models, "models must hold at least one released draw"
        unknown = set(self.reported) not in [set(model) for model in self.models]
        yield unknown, "reported must be one of the released models"
        named = {term for group in (*self.models, *self.alternatives) for term in group}
        named |= {*self.columns, *self.best, *self.levels, *self.choice_errors, *self.stabilities}
        strange = ", ".join(sorted(named - terms))
        yield strange != "", f"terms that are neither kept nor candidates: {strange}"

    @property
    def selected(self) -> list[str]:
        """The terms of the reported model, kept ones included."""
        return list(self.reported)

    @property
    def by_looks(self) -> bool:
        """Whether terms were chosen from looks; ``"staged"`` is what dpreg 0.2 called it."""
        return self.method in ("adaptive", "staged")

    @property
    def draws(self) -> int:
        """K, the number of released draws."""
        return len(self.models)

    @property
    def selection_frequencies(self) -> pd.Series:
        """The share of the K released draws that hold each candidate; 0 or 1 for one draw."""
        held = [sum(term in model for model in self.models) for term in self.candidates]
        return self._series(np.array(held, dtype=np.float64) / self.draws)

    @property
    def frequency_errors(self) -> pd.Series:
        """Binomial standard errors of the frequencies over draws from this table; NaN for one."""
        shares = self.selection_frequencies.to_numpy()
        errors = np.sqrt(shares * (1 - shares) / self.draws)
        return self._series(errors if self.draws > 1 else np.full(len(shares), np.nan))

    @property
    def level(self) -> pd.Series:
        """The least `false_inclusions` at which each candidate would be selected.

        An adjusted p-value: that of the term beside all other candidates, times their number. A
        term that needs others pays for these, and one that is needed has the level of the surest.
        """
        return self._of_looks("level", self.levels)

    @property
    def level_errors(self) -> pd.Series:
        """Standard errors of the coefficients by the look that chose, beside all candidates.

        In units of the columns: they say which effects would have been seen. NaN for terms of
        several columns, and where the look says nothing.
        """
        errors = {term: self.choice_errors.get(term, np.nan) for term in self.levels}
        return self._of_looks("level_errors", errors)

    @property
    def stability(self) -> pd.Series:
        """What files of dpreg 0.2 hold; results have `level` instead."""
        if self.levels:
            raise NotReleased(notes.worded("no-stability"))
        return self._of_looks("stability", self.stabilities)

    @property
    def endog_names(self) -> str:
        """The response; statsmodels' name for it."""
        return self.response

    @property
    def exog_names(self) -> list[str]:
        """The design columns of the selected model."""
        if self.regression is not None:
            return list(self.regression.exog_names)
        terms = self.best or self.reported
        return [name for term in terms for name in self.columns.get(term, (term,))]

    def plot(self, kind: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the result.

        Parameters
        ----------
        kind : {"coefficients", "frequencies"}, optional
            Coefficients with intervals where there are any, else selection frequencies.
        ax : matplotlib Axes, optional
        """
        kind = kind or ("frequencies" if self.regression is None else "coefficients")
        if choice(kind, "kind", ("coefficients", "frequencies")) == "frequencies":
            return plots.frequencies(self, ax)
        return plots.coefficients(self._fitted("plot"), ax)

    def _series(self, values: Floats) -> pd.Series:
        return self.claim.marked(pd.Series(values, index=list(self.candidates)))

    def _of_looks(self, name: str, values: Mapping[str, float]) -> pd.Series:
        if not values:
            raise NotReleased(f'{name} needs method="adaptive"; this was method="{self.method}".')
        return self._series(np.array([values[term] for term in self.candidates]))

    def _renamed(self, yname: str | None, xname: Sequence[str] | None) -> Self:
        fit = None if self.regression is None else self.regression._renamed(yname, xname)
        return replace(self, response=yname or self.response, regression=fit)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _fitted(self, name: str) -> RegressionResults:
        if self.regression is None:
            empty = self.by_looks and not self.best
            why = "the chosen model has no columns" if empty else notes.worded("no-fit", self)
            raise NotReleased(f"{name} is not released: {why}.")
        return self.regression


@with_names_of(GLMResults)
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GLMSelectionResults(SelectionResults):
    """Terms of a generalised linear model, selected with differential privacy.

    What `SelectionResults` has for "adaptive" holds here too.

    Parameters
    ----------
    family : {"binomial", "poisson", "quasipoisson"}
    link : {"logit", "log"}
    converged : bool
        Whether the last look that chose asked for a small step only.
    offset, trials : str or None
        The terms of known slope, and of the number of trials, as `GLMResults` names them: they are
        in every model.
    regression : GLMResults or None
        The coefficients of `best`; None with `fit=None`.
    """

    kind: ClassVar[str] = "glm-selection"
    title = "variable selection, {0.family} regression: {0.response}"

    family: str
    link: str
    converged: bool
    offset: str | None = None
    trials: str | None = None
    regression: GLMResults | None = None
