"""Released coefficients with their uncertainty, under the names that statsmodels uses.

Each name gives a value computed from released numbers, or `NotReleased` with its reason
(`dpreg.results.base`). Everything here is post-processing and costs nothing. A result holds formula
and schema, which are public, and never a row: from them its design is built whenever it is needed.

Files of dpreg 0.2 hold a law of each coefficient given that the same release chose the model; these
are read and printed here.

Tested in `tests/results/test_regression.py` and `tests/test_statsmodels_names.py`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.columns import Boolean, ColumnType, Numeric
from dpreg.errors import ArgumentError, NotReleased, shown
from dpreg.formula.design import Design, build_design
from dpreg.paths import read_text
from dpreg.results import contrast, inference, notes, page, plots
from dpreg.results.base import Released, WithErrors, withholding
from dpreg.results.claim import Look, ReleasedLook
from dpreg.results.saved import Declared, Matrix, Vector, fields_of
from dpreg.results.summary import Summary
from dpreg.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INTERVAL_METHODS: Final = ("noise-aware", "bootstrap")


@withholding
@dataclass(frozen=True, slots=True)
class PublicModel:
    """What is public of a fitted model: its names and its formula, and no row.

    Attributes
    ----------
    formula : str
    endog_names : str
        The response.
    exog_names : list of str
        The columns of the model.
    """

    formula: str
    endog_names: str
    exog_names: list[str]


@withholding
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OfFormula(Released):
    """What a regression and a selection both are: the public part of a call with a formula."""

    formula: str
    schema: Declared
    method: str
    clip: Fraction
    center: bool
    bounds: Mapping[str, str]
    looks: tuple[Look, ...] = ()
    releases: tuple[ReleasedLook, ...] = ()

    def summary(
        self,
        alpha: float = 0.05,
        *,
        full: bool = False,
        ratios: bool = False,
        yname: str | None = None,
        xname: Sequence[str] | None = None,
        title: str | None = None,
    ) -> Summary:
        """Return the printable page; print it, or see its `as_html`, `as_latex`, `as_csv`.

        Parameters
        ----------
        alpha : float
            Intervals have level 1 - alpha.
        full : bool
            All tables, the budget and every note, where the page is otherwise one screen, and of
            LaTeX the three columns of a paper.
        ratios : bool
            Of a family: odds ratios, or ratios of rates, as well.
        yname, xname, title
            Other names of the response and of the fitted columns, and another title.
        """
        if ratios and not self.kind.startswith("glm"):
            raise ArgumentError("ratios belong to a family; a linear model has none.")
        shown = self._renamed(yname, xname)
        described = page.page(shown, inference.level(alpha), full=full, ratios=ratios)
        return described if title is None else replace(described, title=title)

    def _renamed(self, yname: str | None, xname: Sequence[str] | None) -> Self:
        """Return the same result under other names of the response and of the columns."""
        raise NotImplementedError

    def remove_data(self) -> None:
        """Do nothing: a released result holds no row to remove."""

    @classmethod
    def load(cls, fname: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote; `dpreg.load` reads results of every kind."""
        return cls.from_json(read_text(fname))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RegressionResults(WithErrors, OfFormula):
    """Coefficients of a linear model, released with differential privacy.

    Parameters
    ----------
    formula : str
        The formula that was fitted.
    schema : mapping
        The public facts about columns, as `Schema.to_dict()` writes them; bought bounds too.
    endog_names : str
        The response.
    exog_names : tuple of str
        The p columns of the model, "Intercept" first where there is one.
    coefficients : (p,) array
        In the user's units.
    covariance : (p, p) array
        Of the coefficients: sampling error and privacy noise together.
    sampling_errors, privacy_errors : (p,) arrays
        What each source alone would give; after looks the first also holds what cutting may move.
    error_variance, explained, error_df : float or None
        Read them as `scale` (in squared units of the response), `rsquared` and `df_resid`.
    nobs : int or None
        Rows, where their number is public (replace-one, without `person`); else None.
    complete_rows : float or None
        The released, noisy count of complete rows.
    method, noise, scaling : str
        How it was fitted (see `dpreg.dp_ols`), its noise, and the scaling of rows.
    fit : {"fixed", "split", "share", "same", "fresh"}
        Given; or selected on other rows, on the same, in the same release, or from an earlier look.
    eps, delta : Fraction
        As typed in the call: the most that it may cost. `spent` is what it did cost.
    clip : Fraction
        The response is clipped after scaling to [-clip, clip].
    center : bool
        Whether columns were centred at the middle of their bounds.
    bounds : mapping
        Column to "schema" or "private": where its bounds come from.
    claim : PrivacyClaim
    ridged : bool
        Whether the public ridge rule fired; `ridge` is what was added, in stored units.
    interval_method : {"noise-aware", "bootstrap"}
    interval_draws : (B, p) array or None
        For "bootstrap": the law of r'beta is that of `interval_draws @ r`.
    column_widths : (p,) array or None
        Half the declared range of each column; a coefficient times it has the response's units.
    privacy_covariance : (p, p) array or None
        The part of `covariance` that the noise adds.
    noise_degrees : int or None
        nu where noise is not normal: errors are N(0, sampling + privacy V), V ~ chi2_(2 nu)/(2 nu).
    looks : tuple of Look
        What looks at moments released, one by one: those of dpreg 0.2, or of a selection.
    releases : tuple of ReleasedLook
        "adaptive": what each look released.
    weak : mapping
        Column to why its coefficient is weakly determined; see `marks`.
    among : int or None
        For ``fit="same"``: the number of columns that these were chosen from. Coefficients are
        those beside all of them, and `pvalues` and `conf_int` allow for as many.
    conditional : tuple of Truncated
        In files of dpreg 0.2: each coefficient's law given the choice, for `params`, `pvalues` and
        `conf_int`.
    passes : int
        How often the rows were read; a count of them alone is not a pass.
    notes : tuple of str
        Public remarks, printed under the summary.
    record : ReleaseRecord or None
        When and by what it was released, and where it stands in its ledger.
    design_formula : str or None
        The formula whose coding the columns have: the full one after selection, or `formula`.
    """

    kind = "regression"
    title = "linear regression: {0.endog_names}"
    subject = "formula"
    saved_as: ClassVar[Mapping[str, str]] = {
        **WithErrors.saved_as,
        "error_variance": "residual_variance",
        "explained": "r_squared",
        "error_df": "residual_df",
    }

    _why_not: ClassVar[Mapping[str, str]] = {"error_df": "the number of rows is private"}
    """Why a number is not released, where that is not the method's doing."""

    endog_names: str
    exog_names: tuple[str, ...]
    coefficients: Vector
    covariance: Matrix
    sampling_errors: Vector
    privacy_errors: Vector
    error_variance: float | None = None
    explained: float | None = None
    error_df: float | None = None
    noise: str
    scaling: str = "box"
    fit: str
    ridged: bool = False
    ridge: float | None = None
    interval_method: str = "noise-aware"
    interval_draws: Matrix | None = None
    complete_rows: float | None = None
    column_widths: Vector | None = None
    privacy_covariance: Matrix | None = None
    noise_degrees: int | None = None
    weak: Mapping[str, str] = field(default_factory=dict)
    conditional: tuple[inference.Truncated, ...] = ()
    design_formula: str | None = None
    among: int | None = None

    def _faults(self) -> Iterator[tuple[bool, str]]:
        p, drawn = len(self.exog_names), self.interval_method == "bootstrap"
        held = {name: getattr(self, name) for name in fields_of(type(self))}
        # The last dimension of every array is that of the columns.
        sizes = {name: a.shape[-1] for name, a in held.items() if isinstance(a, np.ndarray)}
        sizes["conditional"] = len(self.conditional) or p
        for name, size in sizes.items():
            yield size != p, f"{name} does not match the {p} names in exog_names"
        yield self.covariance.shape != (p, p), f"covariance must be {p} x {p}"
        strange = not set(self.weak) <= set(self.exog_names)
        yield strange, "weak names columns that are not in exog_names"
        yield self.among is not None and self.among < 1, "among must be at least 1"
        alone = self.noise_degrees is not None and self.privacy_covariance is None
        yield alone, "noise_degrees needs privacy_covariance"
        known = self.interval_method in INTERVAL_METHODS
        yield not known, f"interval_method must be one of {INTERVAL_METHODS}"
        apart = drawn != (self.interval_draws is not None)
        yield apart, 'interval_draws belong only to interval_method="bootstrap"'

    @property
    def model(self) -> PublicModel:
        """The public part of the model: formula and names."""
        return PublicModel(self.formula, self.endog_names, list(self.exog_names))

    @property
    def params(self) -> pd.Series:
        """The coefficients, in the user's units; NaN where the law given a choice has no median."""
        if not self.conditional:
            return self._series(self.coefficients)
        centers = np.array([law.center() for law in self.conditional])
        return self._series(np.where(np.isfinite(centers), centers, np.nan))

    @property
    def bse(self) -> pd.Series:
        """Standard errors: sampling error and privacy noise together."""
        return self._series(inference.root(np.diag(self.covariance)))

    @property
    def tvalues(self) -> pd.Series:
        """Coefficient over standard error; statsmodels' name for z as well."""
        return self._series(inference.z_values(self.params.to_numpy(), self.bse.to_numpy()))

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values, by the law of `conf_int`."""
        if self.conditional:
            return self._series([law.p_value() for law in self.conditional])
        return self._series(np.minimum(self._alone().pvalue * (self.among or 1), 1.0))

    @property
    def rsquared(self) -> float:
        """R-squared of a linear model, computed from the released matrix."""
        return self._number("explained", "rsquared")

    @property
    def rsquared_adj(self) -> float:
        """R-squared adjusted for the number of columns, where the number of rows is public."""
        left = self._number("error_df", "rsquared_adj")
        rows = left + len(self.exog_names)
        unexplained = 1 - self._number("explained", "rsquared_adj")
        return float(1 - unexplained * (rows - self.k_constant) / left)

    @property
    def scale(self) -> float:
        """The residual variance, in squared units of the response."""
        return self._number("error_variance", "scale")

    @property
    def mse_resid(self) -> float:
        """The residual variance; the same as `scale`."""
        return self._number("error_variance", "mse_resid")

    @property
    def k_constant(self) -> int:
        """1 if the model has an intercept, else 0."""
        return int("Intercept" in self.exog_names)

    @property
    def df_model(self) -> float:
        """The number of columns less the intercept."""
        return float(len(self.exog_names) - self.k_constant)

    @property
    def df_resid(self) -> float:
        """The number of rows less the columns, where the number of rows is public."""
        return self._number("error_df", "df_resid")

    @property
    def cov_type(self) -> str:
        """Which errors these are, all with the noise in them.

        "HC": robust; "cluster": robust, and clustered by person; "nonrobust": the model is taken to
        be right.
        """
        if self.method != "adaptive":
            return "nonrobust"
        return "HC" if self.claim.person is None else "cluster"

    @property
    def cov_kwds(self) -> dict[str, str]:
        """A description of `cov_params`."""
        return {"description": notes.line("covariance", self)}

    @property
    def use_t(self) -> bool:
        """Always False: the reference law is normal or that of the noise, never Student's t."""
        return False

    @property
    def marks(self) -> pd.Series:
        """What the release shows of each coefficient, where `method` is "adaptive".

        "above noise", where it shows enough of it; "wide", where much of the interval is a guess at
        what the release does not show, so that the fit without privacy may differ by more; "too few
        rows to say", where the noise hides it and there is no interval.
        """
        if self.method != "adaptive":
            raise NotReleased(f'marks belongs to method="adaptive"; this was "{self.method}".')
        found = [self.weak.get(name, "above noise").partition(":")[0] for name in self.exog_names]
        return self._series(np.array(found, dtype=object))

    def summary2(
        self,
        yname: str | None = None,
        xname: Sequence[str] | None = None,
        title: str | None = None,
        alpha: float = 0.05,
    ) -> Summary:
        """Return the page of `summary`."""
        return self.summary(alpha, yname=yname, xname=xname, title=title)

    def conf_int(self, alpha: float = 0.05, cols: ArrayLike | None = None) -> pd.DataFrame:
        """Return intervals of level 1 - alpha, columns 0 and 1, by the law of `pvalues`.

        A coefficient lies in its interval, and 0 lies outside exactly where the p-value is below
        alpha. `cols` are the places of the coefficients that are wanted; default all. Where the
        terms were chosen from the same look, alpha is shared among all columns on offer: then about
        a share alpha of the intervals of chosen ones miss, at most, whatever was chosen.
        """
        level = inference.level(alpha)
        limits = self._alone().conf_int(level / (self.among or 1))
        if self.conditional:
            limits = np.array([law.interval(level) for law in self.conditional])
        table = self._frame(limits)
        return table if cols is None else table.iloc[inference.places(cols, len(table))]

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients, sampling and privacy noise together."""
        self._together("cov_params")
        return self._frame(self.covariance, self.exog_names)

    def t_test(self, r_matrix: contrast.Constraints) -> contrast.Contrast:
        """Test linear constraints on the coefficients, against the law of their errors.

        Parameters
        ----------
        r_matrix : str, list of str, array, or tuple (R, q)
            "bsqft - lat = 0", several between commas, or rows of R with R beta = q.
        """
        return self._constrained("t_test", r_matrix)

    def wald_test(self, r_matrix: contrast.Constraints) -> contrast.WaldTest:
        """Test linear constraints jointly, against the law of the errors.

        Parameters
        ----------
        r_matrix : str, list of str, array, or tuple (R, q)
            As for `t_test`. One constraint has the p-value that `t_test` gives it.
        """
        return contrast.wald(self._constrained("wald_test", r_matrix))

    def wald_test_terms(
        self, skip_single: bool = False, combine_terms: Sequence[str] | None = None
    ) -> contrast.WaldTerms:
        """Test for each term of the formula that all its coefficients are 0.

        Parameters
        ----------
        skip_single : bool
            Leave out terms of one column.
        combine_terms : sequence of str, optional
            Also test, for each text, all terms whose name contains it.
        """
        self._together("wald_test_terms")
        places, unit = self._term_places(), np.eye(len(self.exog_names))
        tested = {term: js for term, js in places.items() if len(js) > 1 or not skip_single}
        for text in combine_terms or ():
            tested[text] = [j for term, js in places.items() if text in term for j in js]
            if not tested[text]:
                raise ArgumentError(f"combine_terms: no term contains {text!r}.")
        found = [contrast.wald(self.combinations(unit[js])) for js in tested.values()]
        lines = [(test.statistic, test.pvalue, test.df_constraints) for test in found]
        table = pd.DataFrame(lines, list(tested), ["statistic", "pvalue", "df_constraint"])
        return contrast.WaldTerms(self.claim.marked(table))

    def t_test_pairwise(
        self,
        term_name: str,
        method: str | Sequence[str] = "hs",
        alpha: float = 0.05,
        factor_labels: Sequence[str] | None = None,
    ) -> contrast.PairwiseTests:
        """Test the differences between all pairs of levels of a factor.

        Parameters
        ----------
        term_name : str
            A term that is one factor with declared levels, such as "county" or "C(county)".
        method : str or list of str
            How p-values are corrected for the number of pairs, as in statsmodels' `multipletests`:
            "hs" (Holm and Sidak), "bonferroni", "fdr_bh", ...
        alpha : float
            The level of the corrected tests.
        factor_labels : sequence of str, optional
            Other names for the levels, in their order.
        """
        self._together("t_test_pairwise")
        terms, design = self._term_places(), self._design()
        levels = design.levels_of(term_name)
        if levels is None or term_name not in terms:
            listed = ", ".join(map(repr, terms))
            got = f"got {shown(term_name)}. The terms are {listed}."
            raise ArgumentError(f"term_name must be a factor with levels; {got}")
        labels = list(factor_labels or levels)
        if len(labels) != len(levels):
            raise ArgumentError(f"factor_labels must hold {len(levels)} names.")
        at, rows = terms[term_name], np.zeros((len(levels), len(self.exog_names)))
        table = pd.DataFrame({name: list(levels) for name in design.needed})
        rows[:, at] = self._rows(table, [self.exog_names[j] for j in at])
        pairs = list(itertools.combinations(range(len(levels)), 2))
        tests = self.t_test(np.array([rows[j] - rows[i] for i, j in pairs]))
        names = [f"{labels[j]}-{labels[i]}" for i, j in pairs]
        return contrast.pairwise(tests, names, method, inference.level(alpha))

    def predict(self, exog: pd.DataFrame | None = None) -> pd.Series:
        """Return predicted means for the rows of a table: its index kept, NaN where a row has one.

        Parameters
        ----------
        exog : DataFrame
            A table of the analyst's own, with the raw columns of the formula.
        """
        return self._predicted(exog)

    def get_prediction(self, exog: pd.DataFrame | None = None) -> contrast.Prediction:
        """Return predicted means with standard errors; see `Prediction.summary_frame`."""
        self._together("get_prediction")
        return contrast.Prediction(*self._linear(exog))

    def get_margeff(self, exog: pd.DataFrame | None = None, alpha: float = 0.05) -> pd.DataFrame:
        """Return average marginal effects over the rows of a table of your own.

        Of a number the derivative of the mean by it, of a factor's level or a truth the difference
        to the first level, other columns as they are; errors by the delta method.

        Parameters
        ----------
        exog : DataFrame
            Raw columns of the formula, as for `predict`; rows that you may see.
        alpha : float

        Returns
        -------
        DataFrame
            A row for each column, or level: dy/dx, std err, P>|z| and the ends of the interval.
        """
        self._together("get_margeff")
        if exog is None:
            raise NotReleased(
                "get_margeff is of the table's own rows: give it a table of your own."
            )
        table, effects, slopes = pd.DataFrame(exog), {}, []
        for name, kind in Schema(self.schema).items():
            for label, low, high in _steps(name, kind, table):
                (m0, X0), (m1, X1) = (self._means(table.assign(**{name: at})) for at in (low, high))
                width = np.asarray(high - low) if isinstance(kind, Numeric) else 1.0
                if (slope := ((X1 - X0) / np.reshape(width, (-1, 1))).mean(axis=0)).any():
                    effects[label] = float(((m1 - m0) / width).mean())
                    slopes.append(slope)
        effect = np.array(list(effects.values()))
        found = self.combinations(np.reshape(slopes, (-1, len(self.exog_names))))
        found = replace(found, known=effect - found.effect)
        parts = [effect, found.sd, found.pvalue, found.conf_int(alpha)]
        heads = ["dy/dx", "std err", "P>|z|", f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
        return self.claim.marked(pd.DataFrame(np.column_stack(parts), list(effects), heads))

    def combinations(self, rows: Floats) -> contrast.Contrast:
        """Return combinations r'beta for the rows r of an (m, p) array, with their law."""
        zeros = np.zeros(len(rows))
        return contrast.Contrast(rows, self, target=zeros, known=zeros)

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the coefficients with their intervals; see `dpreg.results.plots.coefficients`."""
        return plots.coefficients(self, ax, alpha)

    def _index(self) -> pd.Index:
        return pd.Index(list(self.exog_names))

    def _alone(self) -> contrast.Contrast:
        """Return each coefficient by itself."""
        return self.combinations(np.eye(len(self.exog_names)))

    def _constrained(self, name: str, constraints: contrast.Constraints) -> contrast.Contrast:
        self._together(name)
        rows, target = contrast.linear_constraints(constraints, self.exog_names)
        return replace(self.combinations(rows), target=target)

    def _together(self, name: str) -> None:
        """Raise for what combines coefficients where the same look chose them."""
        if self.among is None and not self.conditional:
            return
        means = "" if self.among is not None else ", or predict() for means without errors"
        raise NotReleased(f"{name} is not released: {notes.worded('no-combinations', means=means)}")

    def _number(self, field: str, name: str) -> float:
        """Return a number of the fit, or raise NotReleased under the name that was asked for."""
        value: float | None = getattr(self, field)
        if value is None:
            why = self._why_not.get(field, f'method="{self.method}" does not release it')
            raise NotReleased(f"{name} is not released: {why}.")
        return value

    def _design(self) -> Design:
        formula = self.design_formula or self.formula
        return build_design(formula, self.schema, keep=(), clip=self.clip, center=self.center)

    def _rows(self, exog: pd.DataFrame | None, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return design columns, by default the model's, for the rows of the analyst's table."""
        if exog is None:
            raise NotReleased("fitted values are not released: give predict() a table of your own.")
        design = self._design()
        place = {column.name: j for j, column in enumerate(design.columns)}
        wanted = self.exog_names if names is None else names
        if not place.keys() >= set(wanted):
            raise ArgumentError("exog_names are not columns of the design of this formula")
        return design.matrix(exog, [place[name] for name in wanted])

    def _linear(self, exog: pd.DataFrame | None) -> tuple[contrast.Contrast, pd.Index]:
        """Return the linear predictors of the analyst's rows, and the rows' index."""
        rows = self._rows(exog)
        return self.combinations(rows.to_numpy(dtype=np.float64)), rows.index

    def _mean(self, eta: Floats, which: str = "mean") -> tuple[Floats, Floats]:
        """Return what is predicted at linear predictors, and its derivative."""
        return eta, np.ones(eta.shape)

    def _predicted(self, exog: pd.DataFrame | None, which: str = "mean") -> pd.Series:
        """Return means or linear predictors: they need coefficients that were not chosen, too."""
        if self.among is not None:
            raise NotReleased(f"predict is not released: {notes.worded('no-predictions')}")
        linear, index = self._linear(exog)
        return self.claim.marked(pd.Series(self._mean(linear.effect, which)[0], index=index))

    def _means(self, exog: pd.DataFrame) -> tuple[Floats, Floats]:
        """Return the means of rows, and their derivatives by the coefficients."""
        linear, _ = self._linear(exog)
        mean, slope = self._mean(linear.effect)
        return mean, slope[:, None] * linear.rows

    def _term_places(self) -> dict[str, list[int]]:
        """Return each term's places in `exog_names`, in the order of the formula."""
        design, places = self._design(), {name: j for j, name in enumerate(self.exog_names)}
        named = {term.name: [design.columns[j].name for j in term.columns] for term in design.terms}
        found = {term: [places[n] for n in names if n in places] for term, names in named.items()}
        return {term: columns for term, columns in found.items() if columns}

    def _renamed(self, yname: str | None, xname: Sequence[str] | None) -> Self:
        if xname is None and yname is None:
            return self
        names = self.exog_names if xname is None else tuple(xname)
        if len(names) != len(self.exog_names):
            raise ArgumentError(f"xname must hold {len(self.exog_names)} names, got {len(names)}.")
        new = dict(zip(self.exog_names, names, strict=True))
        weak = {new[name]: why for name, why in self.weak.items()}
        return replace(self, endog_names=yname or self.endog_names, exog_names=names, weak=weak)


_STEP: Final = 1e-4  # precision
"""Half the step of a derivative, as a share of the column's range."""


def _steps(name: str, kind: ColumnType, table: pd.DataFrame) -> Iterator[tuple[str, Any, Any]]:
    """Give each effect of a column: its label, and the cells that are compared."""
    if name not in table:
        return
    if isinstance(kind, Numeric):
        cells = np.clip(table[name].to_numpy(dtype=np.float64), kind.lo, kind.hi)
        half = _STEP * (kind.hi - kind.lo)
        yield name, np.maximum(cells - half, kind.lo), np.minimum(cells + half, kind.hi)
        return
    first, *others = (False, True) if isinstance(kind, Boolean) else kind.levels  # type: ignore[union-attr]
    for level in others:
        yield f"{name}[{level}]", first, level
