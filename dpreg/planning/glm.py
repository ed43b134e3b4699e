"""`plan_glm`: what `dp_glm` will be able to say, before any data are touched.

Public facts and assumptions become a working law (`dpreg.families.predict`); the rules of a call
say which standard errors it would give, or why it would give none. Nothing here reads rows or
spends budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
import pandas as pd

from dpreg.arrays import Floats
from dpreg.families.estimate import FamilyEstimate
from dpreg.families.predict import predict_family
from dpreg.planning.glm_call import GLMCall, least_eps, least_rows
from dpreg.privacy.budget import decimal_string
from dpreg.results.fit_views import fixed
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report
from dpreg.results.summary import Summary
from dpreg.schema import Schema

__all__ = ["GLMPlan", "plan_glm"]

SchemaLike = Schema | Mapping[str, object] | str
"""A schema, what makes one, or the path of its file."""
_WANTED: Final = "is enough for intervals"


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
        return errors_frame(self)

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
        blocks: list[Block] = [
            Paragraph("Formula", self.formula),
            facts,
            errors_grid(self),
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
    call = GLMCall.of(locals())
    if n is None:
        rows = least_rows(lambda n: _predicted(replace(call, n=n)).enough, _WANTED)
        return replace(_predicted(replace(call, n=rows)), solved="n")
    if eps is None:
        found = least_eps(lambda eps: _predicted(replace(call, eps=eps)).enough, _WANTED)
        return replace(_predicted(replace(call, eps=found)), solved="eps")
    return _predicted(call)


def _predicted(call: GLMCall) -> GLMPlan:
    plan = call.looks()
    found, plain = predict_family(call.family, plan, float(call.n), call.supposed, call.names)
    return GLMPlan(
        formula=call.formula,
        family=call.name,
        n=call.n,
        eps=call.eps,
        delta=call.delta,
        solved=None,
        enough=not found.doubts,
        mechanism=plan.mechanism,
        names=call.names,
        **errors_of(found, plain, call.widths),
        notes=told(found),
    )


def errors_of(found: FamilyEstimate, plain: Floats, widths: Floats) -> dict[str, Floats]:
    """Return standard errors in the user's units."""
    return {
        "sampling": np.sqrt(np.maximum(np.diag(found.sampling), 0.0)) / widths,
        "privacy": np.sqrt(np.maximum(np.diag(found.privacy), 0.0)) / widths,
        "without_privacy": plain / widths,
    }


class WithErrors(Protocol):
    """A plan that predicts standard errors."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""

    @property
    def sampling(self) -> Floats:
        """Of the rows as the looks weight them."""

    @property
    def privacy(self) -> Floats:
        """Of the noise."""

    @property
    def without_privacy(self) -> Floats:
        """Of the same model without privacy."""


def errors_frame(plan: WithErrors) -> pd.DataFrame:
    """Return predicted standard errors: in all, of each source, and without privacy."""
    columns = {
        "std err": np.hypot(plan.sampling, plan.privacy),
        "sampling": plan.sampling,
        "privacy": plan.privacy,
        "without privacy": plan.without_privacy,
    }
    return pd.DataFrame(columns, index=list(plan.names))


def errors_grid(plan: WithErrors) -> Grid:
    """Return the same as a part of a printed page."""
    rows = tuple(
        (str(name), *(fixed(value) for value in values))
        for name, values in zip(plan.names, errors_frame(plan).to_numpy(), strict=True)
    )
    heads = ("", "std err", "sampling\nerror", "privacy\nnoise", "without\nprivacy")
    return Grid(heads, rows, "lrrrr")


def told(found: FamilyEstimate) -> tuple[str, ...]:
    """Return why a call would give no intervals, as it would say it."""
    return tuple(f"A call would say: {doubt}" for doubt in found.doubted)
