"""`plan_glm`: what `dp_glm` will be able to say, before any data are touched.

Public facts and assumptions become a working law (`dpreg.families.predict`); the rules of a call
say which standard errors it would give, or why it would give none. Nothing here reads rows or
spends budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.families.family import Family
from dpreg.families.model import FAMILIES, Asked
from dpreg.families.plan import plan_family
from dpreg.families.predict import Supposed, predict_family
from dpreg.formula.design import Design
from dpreg.planning.arguments import rows_of_table, sized
from dpreg.planning.sizes import column_variance
from dpreg.privacy.budget import Budget, decimal_string, exact
from dpreg.privacy.protection import NEIGHBORS, Protection
from dpreg.request import choice, count, positive
from dpreg.results.fit_views import fixed
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report
from dpreg.results.summary import Summary
from dpreg.schema import Schema

__all__ = ["GLMPlan", "plan_glm"]

SchemaLike = Schema | Mapping[str, object] | str
"""A schema, what makes one, or the path of its file."""
_MOST_ROWS: Final = 10**10
_MOST_EPS: Final = 10.0**5
_SPREAD: Final = {"binomial": 1.0}
"""The predictor's usual standard deviation, by family; .5 for counts."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The checked arguments of `plan_glm`."""

    formula: str
    name: str
    family: Family
    names: tuple[str, ...]
    widths: Floats
    exclusive: tuple[tuple[int, ...], ...]
    supposed: Supposed
    delta: Fraction
    noise: str | None
    protection: Protection
    n: int
    eps: Fraction

    def predict(self) -> GLMPlan:
        plan = plan_family(
            len(self.names) - 1,
            Budget(self.eps, self.delta),
            self.protection,
            exclusive=self.exclusive,
            noise=self.noise,
        )
        found, plain = predict_family(self.family, plan, float(self.n), self.supposed, self.names)
        sampling, privacy = (
            np.sqrt(np.maximum(np.diag(part), 0.0)) / self.widths
            for part in (found.sampling, found.privacy)
        )
        return GLMPlan(
            formula=self.formula,
            family=self.name,
            n=self.n,
            eps=self.eps,
            delta=self.delta,
            solved=None,
            enough=not found.doubts,
            mechanism=plan.mechanism,
            names=self.names,
            sampling=sampling,
            privacy=privacy,
            without_privacy=plain / self.widths,
            notes=tuple(f"A call would say: {doubt}" for doubt in found.notes[: found.doubts]),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GLMPlan:
    """What a call of `dp_glm` would give: a prediction, from no data.

    Attributes
    ----------
    formula, family : str
    n : int
        Complete rows.
    eps, delta : Fraction
        What the whole call would cost.
    solved : {"n", "eps", None}
        Which of them was found.
    enough : bool
        Whether intervals can be expected.
    mechanism : str
    names : tuple of str
        Of the coefficients, in the user's units but for the intercept: its columns are taken for
        centred at the middle of their bounds.
    sampling, privacy, without_privacy : arrays
        Predicted standard errors: of the rows as the looks weight them, of the noise, and of the
        same model without privacy. NaN where no intervals can be expected.
    notes : tuple of str
        Why not, and what would be needed, as a call would say it.
    """

    formula: str
    family: str
    n: int
    eps: Fraction
    delta: Fraction
    solved: str | None
    enough: bool
    mechanism: str
    names: tuple[str, ...]
    sampling: Floats
    privacy: Floats
    without_privacy: Floats
    notes: tuple[str, ...]

    @property
    def errors(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, and without privacy."""
        columns = {
            "std err": np.hypot(self.sampling, self.privacy),
            "sampling": self.sampling,
            "privacy": self.privacy,
            "without privacy": self.without_privacy,
        }
        return pd.DataFrame(columns, index=list(self.names))

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        mark = {self.solved: " (found)"}
        facts = Facts(
            (("Rows n", f"{self.n:,}{mark.get('n', '')}"), ("Family", self.family)),
            (
                ("eps", f"{decimal_string(self.eps)}{mark.get('eps', '')}"),
                ("Intervals", "expected" if self.enough else "none"),
            ),
        )
        rows = tuple(
            (str(name), *(fixed(value) for value in values))
            for name, values in zip(self.names, self.errors.to_numpy(), strict=True)
        )
        heads = ("", "std err", "sampling\nerror", "privacy\nnoise", "without\nprivacy")
        blocks: list[Block] = [
            Paragraph("Formula", self.formula),
            facts,
            Grid(heads, rows, "lrrrr"),
        ]
        blocks += [Paragraph(f"[{i}]", note) for i, note in enumerate(self.notes, 1)]
        blocks.append(Paragraph("Cost", "No data were used and nothing was spent."))
        return Summary(Report("Plan of a private regression", None, tuple(blocks)))

    def __repr__(self) -> str:
        told = "intervals" if self.enough else "no intervals"
        return f"<GLMPlan: n={self.n:,}, eps={float(self.eps):g}: {told}>"

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def plan_glm(
    formula: str,
    *,
    schema: SchemaLike,
    mean: float,
    n: int | None = None,
    eps: str | float | None = None,
    delta: str | float = 0,
    family: str = "binomial",
    spread: float | None = None,
    scatter: float = 1.0,
    sd: Mapping[str, float] | None = None,
    response_cap: str | float | None = None,
    noise: str | None = None,
    neighbors: str = "replace-one",
    contributions: int = 1,
) -> GLMPlan:
    """Predict the standard errors of `dpreg.dp_glm`, or why it would give none. Uses no data.

    Give `n` and `eps` for the errors; give one of them for the least other one at which intervals
    can be expected.

    Parameters
    ----------
    formula, schema, family, response_cap, noise, neighbors, contributions
        As for `dpreg.dp_glm`. All columns have to be declared.
    mean : number
        About the share of ones, or the mean count: from public knowledge, or a guess.
    n : int, optional
        Complete rows.
    eps, delta : number or decimal string
        What the whole call may cost.
    spread : number, optional
        Standard deviation of the linear predictor over the rows. Default: 1 for "binomial", .5 for
        counts.
    scatter : number
        For counts: their variance over that of Poisson's law.
    sd : mapping, optional
        Standard deviation of a column, in its units. Default: as if uniform between its bounds, or
        evenly spread over its levels. Smaller ones make larger errors.

    Returns
    -------
    GLMPlan
        Printable; ``.enough``, ``.errors``, ``.notes``, ``.n``, ``.eps``.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError
        For a bad argument, or where no n or eps is enough.

    Notes
    -----
    Assumed: columns without correlation (but levels of a factor), in the middle of their bounds on
    average, with equal parts in the predictor, and a model that holds.
    """
    if n is None and eps is None:
        raise ArgumentError("give n, eps or both: the other one is what is planned.")
    asked = Asked.of(
        {
            "family": family,
            "response_cap": response_cap,
            **dict.fromkeys(("offset", "exposure", "trials")),
        }
    )
    known, model = asked.model(formula, Schema.from_any(schema))
    design = model.design(known)
    model.check(design, (), family, call="plan_glm")
    made = FAMILIES[family](design)
    call = _Call(
        formula=formula,
        name=family,
        family=made,
        names=tuple(column.name for column in design.columns),
        widths=np.array([column.width for column in design.columns]),
        exclusive=_exclusive(design),
        supposed=Supposed(
            covariance=_covariance(design, sd or {}),
            mean=_mean(mean, made),
            spread=sized(_SPREAD.get(family, 0.5) if spread is None else spread, "spread"),
            dispersion=sized(scatter, "scatter"),
        ),
        delta=exact(delta, "delta"),
        noise=choice(noise, "noise", ("gaussian", "matrix-laplace", None)),
        protection=Protection(
            choice(neighbors, "neighbors", NEIGHBORS), count(contributions, "contributions"), None
        ),
        n=2 if n is None else rows_of_table(n),
        eps=Fraction(1) if eps is None else positive(eps, "eps"),
    )
    if call.noise == "gaussian" and not call.delta:
        raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6.')
    if n is None:
        rows = _least(lambda rows: replace(call, n=round(rows)), 64.0, _MOST_ROWS, "n")
        return replace(replace(call, n=math.ceil(rows)).predict(), solved="n")
    if eps is None:
        found = _least(lambda eps: replace(call, eps=_three(eps)), 1e-3, _MOST_EPS, "eps")
        return replace(replace(call, eps=_three(found)).predict(), solved="eps")
    return call.predict()


def _mean(mean: float, family: Family) -> float:
    value = sized(mean, "mean")
    if not value < family.cap:
        raise ArgumentError(f"mean must lie between 0 and {family.cap:g}; got {mean!r}.")
    return value


def _exclusive(design: Design) -> tuple[tuple[int, ...], ...]:
    return tuple(t.columns for t in design.terms if t.exclusive and len(t.columns) > 1)


def _covariance(design: Design, sd: Mapping[str, float]) -> Floats:
    """Return the supposed covariance of the stored columns; levels of a factor exclude another."""
    place = {column.name: j for j, column in enumerate(design.columns) if j}
    unknown = [name for name in sd if name not in place]
    if unknown:
        listed = ", ".join(place)
        raise ArgumentError(f"sd names {', '.join(map(repr, unknown))}; the columns are {listed}.")
    known = {place[name]: sized(value, "sd") for name, value in sd.items()}
    size = len(design.columns) - 1
    found = np.diag([column_variance(design, j + 1, known) for j in range(size)])
    for group in _exclusive(design):
        for i in group:
            for j in group:
                if i != j and not {i, j} & set(known):
                    found[i - 1, j - 1] = -1 / (len(group) + 1) ** 2
    return found


def _three(eps: float) -> Fraction:
    """Return three digits of an eps, upwards."""
    step = 10.0 ** (math.floor(math.log10(eps)) - 2)
    return exact(f"{math.ceil(eps / step - 1e-9) * step:.3g}", "eps")


def _least(at: Callable[[float], _Call], first: float, last: float, name: str) -> float:
    """Return the least n or eps at which intervals can be expected, to half a percent."""
    high = first
    while not at(high).predict().enough:
        high *= 2
        if high > last:
            other = "eps" if name == "n" else "n"
            raise ArgumentError(
                f"no {name} up to {last:.0e} is enough for intervals: raise {other}, or use fewer "
                "columns."
            )
    low = high / 2
    while high / low > 1.005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle).predict().enough else (middle, high)
    return high
