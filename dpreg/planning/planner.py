"""`plan`: what a private call would find, before any data are touched.

Effects become stored units (`sizes`), and rows are made up for them (`assumed`). The law of the
looks, or of the paper's mechanism, then predicts what is found (`choice`, `detection`) or how near
coefficients come (`regression`). Nothing here reads confidential rows or spends budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpreg.arguments import known_alone
from dpreg.errors import ArgumentError
from dpreg.options import FamilyLike, MethodLike, unpacked
from dpreg.planning.assumed import Assumed, of_formula, of_numbers
from dpreg.planning.facts import Facts
from dpreg.planning.fitted import AskedFit
from dpreg.planning.glm import GLMPlan
from dpreg.planning.glm_choice import GLMSelectionPlan
from dpreg.planning.looks import Asked
from dpreg.planning.of_family import check_without, plan_of_family
from dpreg.planning.regression import RegressionCall, RegressionPlan
from dpreg.planning.results import Call, Plan
from dpreg.planning.sizes import Stated, from_formula, from_numbers
from dpreg.planning.solve import least_eps, least_rows
from dpreg.signatures import Amount, SchemaLike, Table

__all__ = ["plan"]


@known_alone
def plan(
    effects: Mapping[str, float] | float | Sequence[float] | None = None,
    *,
    sigma: float | None = None,
    n: int | None = None,
    eps: Amount | None = None,
    delta: Amount = 0,
    of: str = "select",
    chance: float = 0.8,
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
    false_inclusions: Amount = 0.1,
    fit: str | None = "auto",
    family: FamilyLike | None = None,
    mean: float | None = None,
    spread: float | None = None,
    scatter: float | None = None,
) -> Plan | RegressionPlan | GLMPlan | GLMSelectionPlan:
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
    Plan, RegressionPlan, GLMPlan or GLMSelectionPlan
        Printable. With "select": ``.found``, ``.each``, ``.n``, ``.eps``, ``.plot()``. With "ols":
        ``.coefficients``, a table of predicted standard errors, interval overlap, power, the
        chance of the same decision and marks, and ``.enough``. Both: ``.method``,
        ``.rows_needed``, ``.eps_needed``. With `family`: ``.enough``, ``.errors``, ``.notes`` and,
        of a choice, ``.found`` and ``.each``.

    Raises
    ------
    ArgumentError
        For a bad argument, or where no n or eps reaches `chance`.

    Notes
    -----
    Assumed: a linear model with normal errors of one variance (or those of `like`), columns as
    `dpreg.planning.assumed` makes them up, nothing clipped, and for "pcls" a radius that does not
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
    4002
    """
    call = unpacked(locals())
    if family is not None:
        return plan_of_family({**call, "family": family})
    check_without(call)
    facts = Facts.of_call(call)
    stated, assumed = _settled(facts)
    if facts.of == "ols":
        return _of_ols(facts, stated, assumed)
    return _of_select(facts, stated, assumed)


def _settled(facts: Facts) -> tuple[Stated, Assumed]:
    """State the effects, and make up the rows that they are assumed to come from."""
    stated = _stated(facts, facts.sd)
    assumed = _assumed(facts, stated)
    if facts.correlation or facts.like is not None:
        # The paper's methods describe a column only by its deviation given the others.
        found = assumed.stated()
        width = (
            np.ones(len(found))
            if stated.design is None
            else np.array([column.width for column in stated.design.columns[1:]])
        )
        named = stated.labels if stated.design is not None else tuple(facts.effects)
        known = {name: float(found[j] * width[j]) for j, name in enumerate(named)}
        stated = replace(_stated(facts, known), given=stated.given)
    return stated, assumed


def _assumed(facts: Facts, stated: Stated, *, skewed: bool = False) -> Assumed:
    if stated.design is None:
        given = _places(stated.given)
        return of_numbers(len(stated.beta), given, facts.correlation, skewed=skewed)
    return of_formula(stated.design, stated.given, facts.correlation, facts.like, skewed=skewed)


def _places(given: Mapping[int, float]) -> dict[int, float]:
    return {j - 1: sd for j, sd in given.items()}


def _stated(facts: Facts, sd: Mapping[str, float]) -> Stated:
    if facts.formula is None:
        return from_numbers(
            facts.effects,
            facts.sigma,
            candidates=facts.candidates,
            sd=sd,
            clip=facts.clip,
            max_terms=facts.max_terms,
        )
    return from_formula(
        facts.effects,
        facts.sigma,
        facts.formula,
        facts.schema,
        keep=facts.keep,
        sd=sd,
        clip=facts.clip,
        center=facts.center,
        max_terms=facts.max_terms,
    )


def _asked(facts: Facts, stated: Stated, fit: str | None) -> Asked:
    return Asked(len(stated.beta), stated.exclusive, facts.delta, facts.protection, fit)


def _called(facts: Facts, stated: Stated, assumed: Assumed, asked: Asked) -> dict[str, Any]:
    return {
        "facts": replace(facts, like=None),  # its rows, so far as they are used, are in `assumed`
        "stated": stated,
        "assumed": assumed,
        "asked": asked,
        "n": facts.n or 0,
        "eps": facts.eps or 0.0,
        "method": facts.method,
    }


def _of_select(facts: Facts, stated: Stated, assumed: Assumed) -> Plan:
    asked = _asked(facts, stated, "fresh" if facts.fit == "auto" else facts.fit)
    call = Call(**_called(facts, stated, assumed, asked))
    wanted = f"finds all effects with chance {facts.chance:g} (a lower penalty may)"
    solved = None
    if facts.n is None:
        call, solved = _by_method(call, "n", wanted), "n"
    elif facts.eps is None:
        call, solved = _by_method(call, "eps", wanted), "eps"
    return Plan(call, solved, call.predict())


def _by_method(call: Call, name: str, wanted: str) -> Call:
    """Solve for n or eps; under "auto" by the paper's way first, which is for the smallest."""
    if call.method == "auto":
        try:
            paper = _solved(replace(call, method="pcls"), name, wanted, 0.0)
        except ArgumentError:
            if call.facts.papers:
                raise
        else:
            found = replace(paper, method="auto")
            if not found.adaptive:
                return found
        looking = replace(call, method="adaptive")
        floor = _needed(call, name)
        return replace(_solved(looking, name, wanted, floor), method="auto")
    floor = _needed(call, name) if call.method == "adaptive" else 0.0
    return _solved(call, name, wanted, floor)


def _needed(call: Call, name: str) -> float:
    """Return the least n or eps at which looks are made at all."""
    return call.asked.rows_needed(call.eps) if name == "n" else call.asked.eps_needed(call.n)


def _solved(call: Call, name: str, wanted: str, floor: float) -> Call:
    def reached(**at: Any) -> bool:
        return replace(call, **at).predict().all >= call.facts.chance

    if name == "n":
        if floor and reached(n=math.ceil(floor)):
            return replace(call, n=math.ceil(floor))
        first = max(8.0, floor)
        return replace(call, n=least_rows(lambda rows: reached(n=rows), wanted, first))
    if floor and reached(eps=floor):
        return replace(call, eps=floor)
    return replace(call, eps=least_eps(lambda eps: reached(eps=eps), wanted, max(1e-4, floor)))


def _of_ols(facts: Facts, stated: Stated, assumed: Assumed) -> RegressionPlan:
    asked = AskedFit(len(stated.beta), stated.exclusive, facts.delta, facts.protection)
    call = RegressionCall(
        **_called(facts, stated, assumed, asked),
        places=_named_places(facts, stated),
        skewed=None if facts.like is not None else _assumed(facts, stated, skewed=True),
    )
    wanted = f"makes each effect significant with chance {facts.chance:g}"
    solved = None
    if (facts.n is None or facts.eps is None) and not np.any(stated.beta):
        raise ArgumentError("without an effect there is nothing to find: give both n and eps.")
    if facts.n is None:
        first = call.asked.rows_needed(call.eps) / 8
        rows = least_rows(lambda n: replace(call, n=n).reached(), wanted, max(8.0, first))
        call, solved = replace(call, n=rows), "n"
    elif facts.eps is None:
        found = least_eps(lambda eps: replace(call, eps=eps).reached(), wanted, 1e-3)
        call, solved = replace(call, eps=found), "eps"
    return RegressionPlan(call, solved)


def _named_places(facts: Facts, stated: Stated) -> tuple[int, ...]:
    """Return the places of the stated effects among the columns, in the caller's order."""
    if stated.design is None:
        return tuple(range(len(facts.effects)))
    terms = {t.name: stated.labels[t.columns[0] - 1] for t in stated.design.terms if any(t.columns)}
    return tuple(
        stated.labels.index(name if name in stated.labels else terms[name])
        for name in facts.effects
    )
