"""`plan_glm`: what `dp_glm` will be able to say, before any data are touched.

Public facts and assumptions become rows (`dpreg.planning.glm_rows`), and the looks of a call are
made of them (`dpreg.planning.fitted`). Without `like` two kinds of rows are assumed: they give a
range. Nothing here reads confidential rows or spends budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from dpreg.arguments import known_alone
from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.looks.plan import LookPlan
from dpreg.options import FamilyLike
from dpreg.planning.fitted import AskedFit, Rows, fitted
from dpreg.planning.glm_base import PlanOfFamily, solve
from dpreg.planning.glm_call import GLMCall
from dpreg.planning.glm_rows import rows_of
from dpreg.planning.looks import Asked
from dpreg.planning.views import range_text
from dpreg.privacy.budget import exact
from dpreg.results.report import Facts, Paragraph
from dpreg.results.summary import Summary
from dpreg.signatures import Amount, SchemaLike, Table

__all__ = ["GLMPlan", "plan_glm", "too_few"]

_SAID: Final = {
    "no interval": (
        "A call is expected to print no interval of {}: with so few rows at this budget the noise "
        "hides them."
    ),
    "wide": "A call is expected to mark {} as wide.",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GLMPlan(PlanOfFamily):
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
        Of the coefficients, in the user's units.
    sampling, privacy, without_privacy : arrays
        Predicted standard errors: of the rows as the looks weight them, of the noise, and of the
        same model without privacy. NaN where no interval can be expected.
    notes : tuple of str
        Why not, and what would be needed.
    marks : tuple of str
        What a call is expected to say of each coefficient: "", "wide" or "no interval".
    skewed : array or None
        Predicted standard errors if columns are skewed and levels rare; None with `like`.
    """

    marks: tuple[str, ...]
    skewed: Floats | None

    @property
    def errors(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, without privacy; if skewed; marks."""
        found = super(GLMPlan, self).errors
        if self.skewed is not None:
            found["if skewed"] = self.skewed
        found["mark"] = list(self.marks)
        return found

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        facts = self._facts()
        shown = Facts((facts["Rows n"], facts["Family"]), (facts["eps"], facts["Intervals"]))
        return self._page("Plan of a private regression", shown, after=(self._assumed(),))

    def _assumed(self) -> Paragraph:
        text = "Errors that hold in a model that is not right, as a call prints them."
        return Paragraph("Assumed", f"{range_text(self.skewed is not None)} {text}")

    def __repr__(self) -> str:
        told = "intervals" if self.enough else "no intervals"
        return f"<GLMPlan: n={self.n:,}, eps={float(self.eps):g}: {told}>"


@known_alone
def plan_glm(
    formula: str,
    *,
    schema: SchemaLike,
    mean: float | None = None,
    n: int | None = None,
    eps: Amount | None = None,
    delta: Amount = 0,
    family: FamilyLike = "binomial",
    spread: float | None = None,
    scatter: float = 1.0,
    sd: Mapping[str, float] | None = None,
    correlation: float = 0.0,
    like: Table | None = None,
    offset: str | None = None,
    noise: str | None = None,
    neighbors: str = "replace-one",
    contributions: int = 1,
) -> GLMPlan:
    """Predict the standard errors of `dpreg.dp_glm`, or why it would give none. Uses no data.

    Give `n` and `eps` for the errors; give one of them for the least other one at which a call can
    be expected to give an interval of each coefficient, none of them marked as wide, and not to
    warn of too few rows.

    Parameters
    ----------
    formula, schema, family, offset, noise, neighbors, contributions
        As for `dpreg.dp_glm`. All columns have to be declared.
    mean : number, optional
        About the share of ones (of successes), or the mean count: from public knowledge, or a
        guess. Not needed where `like` has the response.
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
        Standard deviation of a column given the others, in its units. Default: as if uniform
        between its bounds, or evenly spread over its levels. Smaller ones make larger errors.
    correlation : float
        Between any two raw columns of numbers, in [0, 1).
    like : table, optional
        Rows like those to come: an earlier year's, a synthetic file. They count as public. With the
        response in it, `mean`, `spread` and `scatter` are theirs.

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
    Assumed without `like`: columns as `dpreg.planning.assumed` makes them up, with equal parts in
    the predictor, and a model that holds; once for columns that fill their bounds, once for skewed
    ones. Against calls on tables like `like`, standard errors are within .8 to 1.25.
    """
    given = locals()
    call = GLMCall.of(given)
    told, alike = _settled(given, call)
    rows = rows_of(call, told, alike, like)
    skewed = None if like is not None else rows_of(call, told, alike, None, skewed=True)
    plan = solve(
        lambda **at: _predicted(replace(call, **at), rows),
        given,
        lambda plan: not any(plan.notes),
        "is enough for intervals without a mark",
    )
    if skewed is None:
        return plan
    wide = fitted(_asked(call), plan.eps, skewed, plan.n)
    return replace(plan, skewed=wide.errors)


def _settled(given: Mapping[str, Any], call: GLMCall) -> tuple[dict[str, float], float]:
    """Return `sd` and `correlation`, checked against each other and `like`."""
    number = float(exact(given["correlation"], "correlation"))
    if not 0 <= number < 1:
        text = shown(given["correlation"])
        raise ArgumentError(f"correlation must be at least 0 and below 1; got {text}.")
    known = dict(given["sd"] or {})
    if given["like"] is not None and (known or number):
        raise ArgumentError("give sd and correlation, or like: its rows have their own.")
    if given["like"] is None and given["mean"] is None:
        raise ArgumentError("plan_glm needs mean, or rows in like= that have the response.")
    return known, number


def _asked(call: GLMCall) -> AskedFit:
    columns, offsets = call.model.places(call.design)
    return AskedFit(
        len(columns),
        call.exclusive,
        call.delta,
        call.protection,
        others=len(offsets) + (call.model.trials is not None),
        noise=call.noise,
    )


def _predicted(call: GLMCall, rows: Rows) -> GLMPlan:
    asked = _asked(call)
    plan = asked.planned(call.eps)
    found = fitted(asked, call.eps, rows, call.n)
    notes = []
    if call.n < plan.rows_needed:
        notes.append(too_few(asked, plan, call.n, "Intervals may be missing."))
    for mark, text in _SAID.items():
        names = [name for name, own in zip(rows.names, found.marks, strict=True) if own == mark]
        if names:
            notes.append(text.format(", ".join(names)))
    return GLMPlan(
        formula=call.formula,
        family=call.name,
        n=call.n,
        eps=call.eps,
        delta=call.delta,
        solved=None,
        enough=not found.missing,
        mechanism=plan.mechanism,
        names=rows.names,
        sampling=found.sampling,
        privacy=found.privacy,
        without_privacy=rows.plain(call.n, call.supposed.dispersion),
        notes=tuple(notes),
        marks=found.marks,
        skewed=None,
    )


def too_few(asked: Asked, plan: LookPlan, rows: int, then: str) -> str:
    """Say that so many rows are too few, as a call would warn."""
    return (
        f"{asked.columns} columns need about {plan.rows_needed:,.0f} rows at this budget; the "
        f"table has {rows:,}. With {rows:,} rows use eps >= {asked.eps_needed(rows):.2g}. {then}"
    )
