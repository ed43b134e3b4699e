"""`RegressionPlan`: how near private coefficients would come to those of least squares.

The looks are gone through on made-up rows without drawing noise (`dpreg.staged.predict`), or the
one look of ``method="gram"``; `dpreg.planning.measures` says what the errors mean for a reader.

Tested in `tests/planning/test_regression_plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.planning.looks import Planned, PlannedCall
from dpreg.planning.measures import measures
from dpreg.results.summary import Summary
from dpreg.staged.predict import PredictedFit, predict_fit, predict_one_look

__all__ = ["RegressionCall", "RegressionPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionCall(PlannedCall):
    """A plan of `dpreg.dp_ols`, as asked for."""

    places: tuple[int, ...]

    def fit(self) -> PredictedFit:
        """Return what the release is expected to show, in stored units."""
        looks, x = self.asked.looks(self.eps, self.n), self.assumed.x
        y = self.assumed.response(self.stated.beta, self.stated.sigma)
        if self.staged:
            return predict_fit(looks, x, y, self.n, stretched=True)
        return predict_one_look(looks, x, y, self.n)

    def predict(self, found: PredictedFit) -> pd.DataFrame:
        """Predict the errors of the stated coefficients; see `RegressionPlan.coefficients`."""
        stated, places = self.stated, list(self.places)
        ratio = (self.assumed.deviations() / self.assumed.stated()) ** 2
        units = (stated.scales**2 * ratio)[places]

        def own(covariance: Floats) -> Floats:
            return np.asarray(np.diag(covariance)[1:][places] * units)

        exact = own(found.least_squares)
        sampling, privacy = own(found.fit.sampling), own(found.fit.privacy)
        beta = (stated.beta * stated.scales)[places]
        told = measures(beta, exact, sampling, privacy, found.fit.degrees)
        return pd.DataFrame(
            {
                "coef": beta,
                "std err": np.sqrt(sampling + privacy),
                "sampling error": np.sqrt(sampling),
                "privacy noise": np.sqrt(privacy),
                "least squares": np.sqrt(exact),
                "width": told.width,
                "overlap": told.overlap,
                "same decision": told.same,
                "power": told.power,
                "least squares power": told.power_exact,
            },
            index=[stated.labels[j] for j in places],
        )

    def reached(self) -> bool:
        """Whether every effect would be significant with the chance that is wanted."""
        found = self.predict(self.fit())
        return bool((found["power"][found["coef"] != 0] >= self.facts.chance).all())


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
        """The method that the call would take: "staged" or "gram"."""
        return "staged" if self.call.staged else "gram"

    @property
    def coefficients(self) -> pd.DataFrame:
        """What is predicted of each stated coefficient.

        Columns: ``coef`` as stated; ``std err`` of the private estimate, and its parts
        ``sampling error`` and ``privacy noise``; ``least squares``, the standard error without
        privacy; ``width``, of the private interval over the ordinary one; ``overlap``, the expected
        interval overlap of Karr et al. (2006); ``same decision``, the chance that both or neither
        is significant at 5%; ``power`` and ``least squares power``, the chances that they are.
        """
        return self._predicted.copy()

    @cached_property
    def _predicted(self) -> pd.DataFrame:
        return self.call.predict(self._found)

    @cached_property
    def _found(self) -> PredictedFit:
        return self.call.fit()

    @property
    def alone(self) -> bool:
        """Whether coefficients alone are expected to take the last look's place."""
        return self._found.alone

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
