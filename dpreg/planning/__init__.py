"""Planning a private release before any data are touched. Nothing here reads a confidential row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Final

from dpreg.options import Amount, FamilyLike, MethodLike, SchemaLike, Table, unpacked
from dpreg.planning.facts import Facts
from dpreg.planning.results import Plan, RegressionPlan
from dpreg.request import Arguments, answered_by, defaults_of

__all__ = ["Plan", "RegressionPlan", "plan", "plan_glm"]


def _planned(call: Arguments) -> Any:
    """Return the plan of a call's arguments."""
    facts = Facts.of_call(unpacked(call), unpacked(_USUAL))
    return (Plan if facts.chooses else RegressionPlan).of(facts).solve()


@answered_by(_planned)
def plan(
    effects: Mapping[str, float] | float | Sequence[float] | None = None,
    *,
    sigma: float | None = None,
    n: int | None = None,
    eps: Amount | None = None,
    delta: Amount = 0,
    of: str = "select",
    chance: float = 0.8,  # by definition: the usual power
    candidates: int | None = None,
    formula: str | None = None,
    schema: SchemaLike = None,
    sd: Mapping[str, float] | None = None,
    correlation: float = 0.0,
    like: Table | None = None,
    method: MethodLike = "auto",
    neighbors: str = "replace-one",
    contributions: int = 1,
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    false_inclusions: Amount = 0.1,  # by definition: as of `dpreg.dp_select`
    fit: str | None = "auto",
    family: FamilyLike | None = None,
    mean: float | None = None,
    spread: float | None = None,
    scatter: float | None = None,
) -> Plan | RegressionPlan:
    """Predict what `dpreg.dp_select`, `dpreg.dp_ols` or `dpreg.dp_glm` would find. Spends nothing.

    Give `n` and `eps` for the chances; give one of them for the least other one at which all
    effects are found with chance `chance`. No confidential row is read.

    Parameters
    ----------
    effects : mapping, number or sequence of numbers
        Coefficients by column. With `formula` and `schema`: of design columns, in their own units
        (``{"bsqft": 0.12, "county[T.cc]": 70}``; a term of one column may be named as it is).
        Without: in scaled units, columns and response in [-1, 1], by any names. Zero is allowed
        with ``of="ols"``. With `family`: on the scale of the linear predictor; none with
        ``of="glm"``.
    sigma : float
        Standard deviation of the errors, in the units of the response (scaled units without a
        formula). A family has none.
    n : int, optional
        Rows of the table.
    eps, delta : number, optional
        The most that the whole call may cost.
    of : {"select", "ols", "glm"}
        The call: `dpreg.dp_select`, where an effect is found if its term is in the chosen model, or
        `dpreg.dp_ols`, where it is found if it is significant at 5%. With `family`:
        `dpreg.dp_select` or `dpreg.dp_glm`, and whether their intervals can be expected.
    chance : float
        Wanted where n or eps is to be found: of all effects with "select", of each with "ols".
    candidates : int, optional
        Terms outside `keep`, those with an effect included, where no formula is given, at most
        1,000; default: those with an effect alone.
    formula, schema : optional
        As for `dpreg.dp_select`: units, scales and the number of candidates come from them.
    sd : mapping, optional
        Standard deviation of a column **given the other columns**, in the column's units. Default:
        as if uniform between its bounds, or evenly spread over its levels.
    correlation : float
        Between any two raw columns of numbers, in [0, 1).
    like : table, optional
        Rows like those to come: an earlier year's, a synthetic file. They count as public. Their
        columns take the place of `sd` and `correlation`; with the response in it, its residuals
        give those to come their shape.
    method : {"auto", "adaptive", "pcls", "gram"} or object
        As for the call; "pcls" is for "select", "gram" for "ols".
    neighbors, contributions, keep, max_terms, false_inclusions, fit
        As for the call.
    family, mean, spread, scatter
        Of a generalised linear model, as for `dpreg.plan_glm`, which ``of="glm"`` calls.

    Returns
    -------
    Plan or RegressionPlan
        Printable. With "select" a `Plan`: ``.found``, ``.each``, ``.plot()``. With "ols" a
        `RegressionPlan`: ``.coefficients``, a table of predicted standard errors, interval overlap,
        power, the chance of the same decision and marks. Both: ``.n``, ``.eps``, ``.errors``,
        ``.enough``, ``.notes``, ``.method``, ``.rows_needed``, ``.eps_needed``.

    Raises
    ------
    ArgumentError
        For a bad argument, or where no n or eps reaches `chance`.

    Notes
    -----
    Assumed: a linear model with normal errors of one variance (or those of `like`), columns as
    `dpreg.planning.rows` makes them up, nothing clipped, and for "pcls" a radius that does not
    bind. Against simulation of such rows the chances of "select" are within .1, and with `like`
    standard errors of "ols" and "glm" within .8 to 1.25 of those of calls. Without `like` they are
    a range: for columns that fill their bounds, and for skewed ones and rare levels.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Karr, A. F., Kohnen, C. N., Oganian, A., Reiter, J. P. and Sanil, A. P. (2006). A framework for
    evaluating the utility of data altered to protect confidentiality. American Statistician 60.

    Examples
    --------
    >>> import dpreg
    >>> dpreg.plan({"dose": 0.2, "age": 0.1}, sigma=0.25, eps=1, candidates=10, chance=0.9).n
    4183
    """


_USUAL: Final = {**defaults_of(signature(plan)), "offset": None}


@answered_by(lambda call: _planned({"of": "glm", **call}))
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
) -> RegressionPlan:
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
    RegressionPlan
        Printable; ``.enough``, ``.errors``, ``.notes``, ``.n``, ``.eps``.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError
        For a bad argument, or where no n or eps is enough.

    Notes
    -----
    Assumed without `like`: columns as `dpreg.planning.rows` makes them up, with equal parts in
    the predictor, and a model that holds; once for columns that fill their bounds, once for skewed
    ones. Against calls on tables like `like`, standard errors are within .8 to 1.25.
    """
