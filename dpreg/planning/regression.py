"""`RegressionPlan`: how near private coefficients would come to those of least squares.

The looks of a call are made of assumed rows (`dpreg.planning.fitted`), or the one look of
``method="gram"``; `dpreg.planning.measures` says what the errors mean for a reader. Without `like`
two kinds of rows are assumed: they give a range.

Tested in `tests/planning/test_regression_plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.looks.described import Described
from dpreg.looks.families import Linear
from dpreg.planning.assumed import Assumed
from dpreg.planning.fitted import AskedFit, Fitted, Rows, fitted, fitted_once
from dpreg.planning.looks import Planned, PlannedCall
from dpreg.planning.measures import measures
from dpreg.results.summary import Summary

__all__ = ["RegressionCall", "RegressionPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionCall(PlannedCall):
    """A plan of `dpreg.dp_ols`, as asked for; `skewed` are rows of the second assumption."""

    asked: AskedFit
    places: tuple[int, ...]
    skewed: Assumed | None

    def _rows(self, assumed: Assumed) -> Rows:
        stated, x = self.stated, assumed.x
        y = assumed.response(stated.beta, stated.sigma)
        first = 0 if stated.design is None or stated.design.has_intercept else 1
        places = tuple(range(first, x.shape[1] + 1))
        levels = () if stated.design is None else stated.design.levels
        return Rows(
            Linear(),
            Described(tuple(range(1, x.shape[1] + 1)), levels=levels),
            np.column_stack([np.ones(len(x)), x, y]),
            places,
            tuple(map(str, places)),
            (np.eye(len(places)), np.zeros(len(places))),
        )

    def fit(self, assumed: Assumed) -> tuple[Fitted, Floats]:
        """Return what is expected of all slopes, in stored units, and their plain errors."""
        rows, p = self._rows(assumed), assumed.x.shape[1]
        predicted = fitted if self.adaptive else fitted_once
        slopes = slice(len(rows.places) - p, None)
        found = predicted(self.asked, self.eps, rows, self.n)
        return _part(found, slopes), rows.plain(self.n, 1.0)[slopes]

    def predict(self, assumed: Assumed) -> pd.DataFrame:
        """Predict the errors of the stated coefficients; see `RegressionPlan.coefficients`."""
        stated, places = self.stated, list(self.places)
        found, plain = self.fit(assumed)
        units = (stated.scales * assumed.deviations() / assumed.stated())[places]
        exact, sampling, privacy = (
            part[places] * units for part in (plain, found.sampling, found.privacy)
        )
        beta = (stated.beta * stated.scales)[places]
        told = measures(beta, exact**2, sampling**2, privacy**2, found.degrees)
        return pd.DataFrame(
            {
                "coef": beta,
                "std err": np.hypot(sampling, privacy),
                "sampling error": sampling,
                "privacy noise": privacy,
                "least squares": exact,
                "width": told.width,
                "overlap": told.overlap,
                "same decision": told.same,
                "power": told.power,
                "least squares power": told.power_exact,
                "mark": [found.marks[j] for j in places],
            },
            index=[stated.labels[j] for j in places],
        )

    def reached(self) -> bool:
        """Whether every effect would be significant with the chance that is wanted."""
        found = self.predict(self.assumed)
        return bool((found["power"][found["coef"] != 0] >= self.facts.chance).all())


def _part(found: Fitted, some: slice) -> Fitted:
    return Fitted(
        found.errors[some],
        found.sampling[some],
        found.privacy[some],
        found.marks[some],
        found.degrees,
    )


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPlan(Planned[RegressionCall]):
    """What a private regression would show beside an ordinary one: a prediction, from no data.

    Attributes
    ----------
    call : RegressionCall
    solved : {"n", "eps", None}
        Which of them was found.
    """

    call: RegressionCall
    solved: str | None

    @property
    def method(self) -> str:
        """The method that the call would take: "adaptive" or "gram"."""
        return "adaptive" if self.call.adaptive else "gram"

    @property
    def coefficients(self) -> pd.DataFrame:
        """What is predicted of each stated coefficient.

        Columns: ``coef`` as stated; ``std err`` of the private estimate, and its parts
        ``sampling error`` and ``privacy noise``; ``least squares``, the standard error without
        privacy; ``width``, of the private interval over the ordinary one; ``overlap``, the expected
        interval overlap of Karr et al. (2006); ``same decision``, the chance that both or neither
        is significant at 5%; ``power`` and ``least squares power``, the chances that they are;
        ``mark``, what a call is expected to say of the coefficient: nothing, "wide" or "no
        interval" (its numbers are then missing); without `like` also ``std err if skewed``: the
        standard error if columns bunch at one end of their bounds and levels are rare, as
        `dpreg.planning.assumed` says.
        """
        return self._predicted.copy()

    @cached_property
    def _predicted(self) -> pd.DataFrame:
        found = self.call.predict(self.call.assumed)
        if self.call.skewed is not None:
            found["std err if skewed"] = self.call.predict(self.call.skewed)["std err"]
        return found

    @property
    def enough(self) -> bool:
        """Whether every stated coefficient is expected to have an interval."""
        return not (self._predicted["mark"] == "no interval").any()

    @property
    def each(self) -> pd.Series[float]:
        """The chance that each coefficient is significant at 5% in the private table."""
        return self.coefficients["power"]

    @property
    def overlap(self) -> float:
        """Expected interval overlap, in the mean over the stated coefficients."""
        return float(self._predicted["overlap"].mean())

    @property
    def same(self) -> float:
        """Share of the stated coefficients whose decision at 5% would be the same, expected."""
        return float(self._predicted["same decision"].mean())

    def at(self, *, n: int | None = None, eps: float | None = None) -> RegressionPlan:
        """Return the plan at another n or eps."""
        return RegressionPlan(self._moved(n, eps), None)

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        from dpreg.planning import views

        return Summary(views.regression_report(self))

    def __repr__(self) -> str:
        """Say what is predicted."""
        return (
            f"<RegressionPlan: n={self.n:,}, eps={self.eps:g}, {self.method}: overlap "
            f"{self.overlap:.2f}, same decision {self.same:.2f}>"
        )
