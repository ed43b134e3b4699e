"""The names that statsmodels' results of a linear model have, over what was released.

Each gives a value computed from released numbers, or `NotReleased` with its reason
(`dpreg.results.withheld`). Everything here is post-processing and costs nothing.

Tested in `tests/test_statsmodels_names.py`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd

from dpreg.errors import ArgumentError, NotReleased
from dpreg.results import designs, given_choice, inference, page
from dpreg.results.base import Released
from dpreg.results.codecs import SCHEMA, plain_mapping, plain_schema
from dpreg.results.constraints import Constraints, linear_constraints
from dpreg.results.looks import Look, ReleasedLook
from dpreg.results.summary import Summary
from dpreg.results.wald import PairwiseTests, WaldTerms, WaldTest, level_rows, pairwise, wald
from dpreg.results.withheld import NeverReleased, WithoutRows

__all__ = ["PublicModel", "StatsmodelsNames", "robust"]


@contextmanager
def _reason_for(name: str) -> Iterator[None]:
    """Let what is missing give its reason under the name that was asked for."""
    try:
        yield
    except NotReleased as missing:
        reason = str(missing).partition(": ")[2]
        raise NotReleased(f"{name} is not released: {reason}") from None


@dataclass(frozen=True, slots=True)
class PublicModel(WithoutRows):
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StatsmodelsNames(NeverReleased, Released):
    """Fields and names that both a regression and a selection with coefficients have."""

    formula: str
    schema: Annotated[Mapping[str, Any], SCHEMA]
    method: str
    clip: Fraction
    center: bool
    bounds: Mapping[str, str]
    looks: tuple[Look, ...] = ()
    releases: tuple[ReleasedLook, ...] = ()

    def _settle(self, tuples: Iterable[str] = (), numbers: Iterable[str] = ()) -> None:
        Released._settle(self, ("looks", "releases", *tuples), ("clip", *numbers))
        object.__setattr__(self, "schema", plain_schema(self.schema))
        object.__setattr__(self, "bounds", plain_mapping(self.bounds))

    @property
    def model(self) -> PublicModel:
        """The public part of the model: formula and names."""
        fit = self._fitted("model")
        return PublicModel(fit.formula, fit.endog_names, list(fit.exog_names))

    @property
    def rsquared_adj(self) -> float:
        """R-squared adjusted for the number of columns, where the number of rows is public."""
        fit = self._fitted("rsquared_adj")
        with _reason_for("rsquared_adj"):
            rows = fit.df_resid + len(fit.exog_names)
            return float(1 - (1 - fit.rsquared) * (rows - fit.k_constant) / fit.df_resid)

    @property
    def mse_resid(self) -> float:
        """The residual variance; the same as `scale`."""
        with _reason_for("mse_resid"):
            return float(self._fitted("mse_resid").scale)

    @property
    def k_constant(self) -> int:
        """1 if the model has an intercept, else 0."""
        return int("Intercept" in self._fitted("k_constant").exog_names)

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
        if self.method == "adaptive":
            return robust(self.cov_type)
        return {"description": "One residual variance, and the privacy noise by its public law."}

    @property
    def use_t(self) -> bool:
        """Always False: the reference law is normal or that of the noise, never Student's t."""
        return False

    def remove_data(self) -> None:
        """Do nothing: a released result holds no row to remove."""

    @classmethod
    def load(cls, fname: str | os.PathLike[str]) -> Self:
        """Read a result that `save` wrote; `dpreg.load` reads results of every kind."""
        from dpreg.paths import read_text

        return cls.from_json(read_text(fname))

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
        return Summary(described.titled(title))

    def summary2(
        self,
        yname: str | None = None,
        xname: Sequence[str] | None = None,
        title: str | None = None,
        alpha: float = 0.05,
    ) -> Summary:
        """Return the page of `summary`."""
        fit = self._fitted("summary2")
        shown: Summary = fit.summary(alpha, yname=yname, xname=xname, title=title)
        return shown

    def _renamed(self, yname: str | None, xname: Sequence[str] | None) -> Self:
        """Return the same result under other names of the response and of the columns."""
        raise NotImplementedError

    def wald_test(self, r_matrix: Constraints) -> WaldTest:
        """Test linear constraints jointly, against the law of the errors.

        Parameters
        ----------
        r_matrix : str, list of str, array, or tuple (R, q)
            As for `t_test`. One constraint has the p-value that `t_test` gives it.
        """
        fit = self._fitted("wald_test")
        given_choice.refuse(fit, "wald_test")
        rows, target = linear_constraints(r_matrix, fit.exog_names)
        return WaldTest(*wald(fit.combinations(rows), target), fit.claim)

    def wald_test_terms(
        self, skip_single: bool = False, combine_terms: Sequence[str] | None = None
    ) -> WaldTerms:
        """Test for each term of the formula that all its coefficients are 0.

        Parameters
        ----------
        skip_single : bool
            Leave out terms of one column.
        combine_terms : sequence of str, optional
            Also test, for each text, all terms whose name contains it.
        """
        fit = self._fitted("wald_test_terms")
        given_choice.refuse(fit, "wald_test_terms")
        places = designs.term_places(fit)
        tested = {
            term: columns for term, columns in places.items() if len(columns) > 1 or not skip_single
        }
        for text in combine_terms or ():
            found = [j for term, columns in places.items() if text in term for j in columns]
            if not found:
                raise ArgumentError(f"combine_terms: no term contains {text!r}.")
            tested[text] = tuple(found)
        unit = np.eye(len(fit.exog_names))
        lines = [
            wald(fit.combinations(unit[list(columns)]), np.zeros(len(columns)))
            for columns in tested.values()
        ]
        table = pd.DataFrame(
            lines, index=list(tested), columns=["statistic", "pvalue", "df_constraint"]
        )
        return WaldTerms(fit.claim.marked(table))

    def t_test_pairwise(
        self,
        term_name: str,
        method: str | Sequence[str] = "hs",
        alpha: float = 0.05,
        factor_labels: Sequence[str] | None = None,
    ) -> PairwiseTests:
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
        fit = self._fitted("t_test_pairwise")
        given_choice.refuse(fit, "t_test_pairwise")
        levels = designs.levels_of(fit, term_name)
        labels = list(factor_labels or levels)
        if len(labels) != len(levels):
            raise ArgumentError(f"factor_labels must hold {len(levels)} names.")
        columns = {fit.exog_names[j]: j for j in designs.term_places(fit)[term_name]}
        rows = level_rows(columns, term_name, levels, len(fit.exog_names))
        pairs = list(itertools.combinations(range(len(levels)), 2))
        differences = np.array([rows[j] - rows[i] for i, j in pairs])
        names = [f"{labels[j]}-{labels[i]}" for i, j in pairs]
        return pairwise(fit.t_test(differences), names, method, inference.level(alpha))


def robust(cov_type: str) -> dict[str, str]:
    """Describe robust errors."""
    whose = "rows'" if cov_type == "HC" else "persons'"
    return {
        "description": f"The released spread of {whose} scores, and the noise by its public law."
    }
