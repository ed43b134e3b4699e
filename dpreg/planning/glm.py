"""`plan_glm`: what `dp_glm` will be able to say, before any data are touched.

Public facts and assumptions become a working law (`dpreg.families.predict`); the rules of a call
say which standard errors it would give, or why it would give none. Nothing here reads rows or
spends budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dpreg.arguments import known_alone
from dpreg.families.plan import SURE, FamilyPlan, can_hold
from dpreg.families.predict import predict_family
from dpreg.planning.glm_base import PlanOfFamily, predicted_fields, solve
from dpreg.planning.glm_call import GLMCall
from dpreg.privacy.objective import OBJECTIVE
from dpreg.results.report import Facts
from dpreg.results.summary import Summary
from dpreg.signatures import Amount, SchemaLike

__all__ = ["GLMPlan", "plan_glm"]


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
        Of the coefficients, in the user's units, except the intercept: it is that of columns
        centred at the middle of their bounds.
    sampling, privacy, without_privacy : arrays
        Predicted standard errors: of the rows as the looks weight them, of the noise, and of the
        same model without privacy. NaN where no intervals can be expected.
    notes : tuple of str
        Why not, and what would be needed, as a call would say it.
    """

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        facts = self._facts()
        shown = Facts((facts["Rows n"], facts["Family"]), (facts["eps"], facts["Intervals"]))
        return self._page("Plan of a private regression", shown)

    def __repr__(self) -> str:
        told = "intervals" if self.enough else "no intervals"
        return f"<GLMPlan: n={self.n:,}, eps={float(self.eps):g}: {told}>"


@known_alone
def plan_glm(
    formula: str,
    *,
    schema: SchemaLike,
    mean: float,
    n: int | None = None,
    eps: Amount | None = None,
    delta: Amount = 0,
    family: str = "binomial",
    spread: float | None = None,
    scatter: float = 1.0,
    sd: Mapping[str, float] | None = None,
    response_cap: Amount | None = None,
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
    Assumed: columns without correlation (except levels of a factor), in the middle of their bounds
    on average, with equal parts in the predictor, and a model that holds.
    """
    given = locals()
    call = GLMCall.of(given)
    return solve(
        lambda **at: _predicted(replace(call, **at)),
        given,
        lambda plan: plan.enough,
        "is enough for intervals",
    )


def _predicted(call: GLMCall) -> GLMPlan:
    plan = call.looks()
    found, plain = predict_family(call.family, plan, float(call.n), call.supposed, call.names)
    fields = predicted_fields(call, plan, found, plain, range(len(call.names)))
    notes = [f"A call would say: {doubt}" for doubt in found.doubted]
    if call.noise is None and can_hold(plan, call.n):
        if call.n < plan.rows_needed:
            fields |= {"mechanism": OBJECTIVE}
            notes.append(
                "On a table that this process reads it would release coefficients alone, by "
                "objective perturbation: nearer ones than looks would give."
            )
        else:
            notes.append(_may_stop(plan, call.n))
    return GLMPlan(**fields, enough=not found.doubts, notes=tuple(notes))


def _may_stop(plan: FamilyPlan, rows: int) -> str:
    """Say when a call with rows enough for intervals would still give coefficients alone."""
    hidden = ""
    if rows < SURE * plan.rows_needed:
        hidden = (
            f" or, below {SURE * plan.rows_needed:,.0f} rows, if columns are so narrow or so "
            "correlated that the noise would hide a direction of them"
        )
    return (
        "On a table that this process reads a call may still release coefficients alone, without "
        f"intervals, after two looks: if these leave the fit far from the rows{hidden}."
    )
