"""`dp_select`: private choice of the variables of a linear model, from a formula to a result.

Read downwards: the arguments become a `SelectionRequest`; design, space and budget are settled from
public facts (`dpreg.selection.preparation`); the ledger is charged; the rows are read once
(`dpreg.selection.run`); a mechanism draws; the result holds what was drawn and what is public.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dpreg.api.coefficients import CallFacts
from dpreg.api.joint import joint_fit
from dpreg.api.mistakes import check_known_rows, check_schema_names
from dpreg.api.recorded import recorded
from dpreg.api.select_adaptive import select_adaptive
from dpreg.api.select_family import select_family
from dpreg.api.select_route import route
from dpreg.api.selected import columns_of_terms, columns_of_units, formula_of, named, of_call
from dpreg.api.signatures import Amount, SchemaLike, Table
from dpreg.formula.bounds import bounds_sources, buy_bounds
from dpreg.formula.design import Design
from dpreg.looks.model import family_asked
from dpreg.options import FamilyLike, MethodLike, unpacked
from dpreg.request import SelectionRequest
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.preparation import Preparation, design_of, space_of
from dpreg.selection.space import Space
from dpreg.sources import as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_select"]


@recorded
def dp_select(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    schema: SchemaLike = None,
    family: FamilyLike | None = None,
    offset: str | None = None,
    method: MethodLike = "auto",
    neighbors: str = "replace-one",
    contributions: int | None = None,
    person: str | None = None,
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,
    shares: Mapping[str, Amount] | None = None,
    fit: str | None = "auto",
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> SelectionResults:
    """Choose the variables of a linear or generalised linear model with differential privacy.

    Every number in the result is either public, or drawn by a private mechanism and charged to a
    budget: the result may be published.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language; row-wise functions only (`np.log`, `I`, `C`, `bs` with
        literal knots, ...).
    data : table
        The confidential rows: a pandas DataFrame or a mapping, the path or glob of Parquet or CSV
        files, anything that speaks Arrow, a function that returns chunks, a Dask or Spark
        DataFrame; see `dpreg.sources.as_source`. A row with a missing or undeclared value is left
        out.
    eps : number or decimal string
        The most that the whole call may cost; a decimal is taken exactly as typed.
    delta : number or decimal string, default 0
        Looks spend it where Gaussian noise is the smaller; the paper's methods spend it on "pcpl",
        on several draws and on coefficients.
    schema : mapping, Schema or path to a TOML or JSON file, optional
        Bounds of numeric columns, levels of categorical ones: public facts, never taken from the
        rows. Bounds of numeric columns that it leaves out are bought from a share of eps.
    family : {"binomial", "poisson", "quasipoisson"} or object, optional
        A name or an object, as for `dp_glm`; None is a linear model. A family is looked at as by
        `dp_glm`, which says what responses there are; terms are chosen from what the last look
        released, at no further cost. There "adaptive" is the only method, and the arguments that
        belong to linear models or to the paper's methods are refused.
    offset : str, optional
        With a family; as for `dp_glm`. It is in every model.
    method : {"auto", "adaptive", "pcls", "pcpl"} or object
        A name, or an object that has options as well: `dpreg.Auto`, `dpreg.Adaptive`, `dpreg.PCLS`,
        `dpreg.PCPL`.
        "adaptive" looks at the rows as `dp_ols` does, and tests each term beside all others by what
        the last look released: it finds more with enough rows, needs no radius, and names groups of
        terms that it cannot tell apart.
        "pcls" is penalised constrained least squares (Algorithm 1 of Lei et al.), "pcpl" profile
        likelihood (Algorithm 2), which needs delta and no knowledge of the residual variance.
        "auto" takes "adaptive" where a public rule finds enough rows and "pcls" otherwise; a note
        says why, and what "adaptive" would need. Where the number of rows is private ("add-remove",
        or `person`), "auto" first buys a noisy count with .02 of eps; the dearer of the two ways to
        go on is charged beforehand. A public number that only a pass would tell (a CSV file) is
        counted after the charge, which covers either way. Rows that can be read only once, and what
        only the paper's methods have (their `shares`, ``fit="share"``), mean "pcls" under "auto".
    neighbors : {"replace-one", "add-remove"}
        Tables are neighbours when one person's rows are replaced (n is public), or added or removed
        (n is private).
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: "adaptive" uses all unless it is given.
    person : str, optional
        The column that says whose row it is. "adaptive" sums all rows of a person before it limits
        them; the paper's methods use at most `contributions` rows of each, drawn at random. The
        claim holds for everybody, however many rows they own, and the number of rows is then
        private under both relations. Ids that are numbers are one person if
        they agree in 15 digits: put a letter before ids of more digits. See
        `dpreg.sources.persons`.
    units : {"term", "column"}
        Whether whole terms enter and leave a model, or single design columns.
    keep : tuple of str
        Terms in every model.
    max_terms : int, optional
        The most units outside `keep`.
    hierarchy : {"none", "strong"}
        "strong": an interaction only with its main effects.
    false_inclusions : number
        The expected number of useless terms under ``penalty="auto"`` and, with "adaptive", the
        level of all tests together: at most about so many useless terms are selected on average,
        and groups of useless terms named, whatever else has an effect.
    shares : mapping, optional
        Parts of eps for the steps bought on the way: "bounds", "radius", "sigma2", "count",
        "profile", "fit". Defaults: `dpreg.request.SHARES`. "adaptive" has "bounds" and, with
        ``fit="fresh"``, "fit" (.2, or .15 for a linear model without delta).
    fit : {"auto", "same", "fresh", "split", "share", None}
        Coefficients of the chosen model. With "adaptive": "fresh" spends a share of the budget on
        looks at the chosen columns, as `dp_ols` makes them; "same" takes them from the look that
        chose, beside all candidates and with intervals that allow for as many, and marks them as
        narrow: rows far from the rest count less there. With the paper's methods: "split" fits
        the other half, "share" the same rows with a share of eps. None fits nothing. "auto" is
        "fresh" with "adaptive", and "split" with the paper's.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show bars on stderr while rows are read and trees searched, for the curator's eyes only;
        default where stderr is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    SelectionResults
        With a family `GLMSelectionResults`.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read, except a DataError raised
        when the data source fails: what was charged then stays charged.

    Notes
    -----
    "adaptive" chooses terms from rows and residuals that are limited narrowly, to find more. Where
    residuals are skewed, a column on which only their spread depends can be chosen, too: its
    interval by the "fresh" looks, whose limits are wide, then tends to hold 0.

    The total cost is eps (and delta), as `result.budget` lists it; the proofs are beside the code
    in `dpreg.privacy` and `dpreg.selection`.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> result = dpreg.dp_select("mdvis ~ disea + lpi", rand.data, eps=10, schema=rand.schema)
    >>> result.method, result.selected, str(result.spent)
    ('adaptive', ['Intercept', 'disea', 'lpi'], 'eps=10')
    """
    call = unpacked(locals())
    request = SelectionRequest.of(call)
    asked = family_asked(request, call)
    shown = showing(progress)
    persons = Persons.of(request.protection, request.seed)
    reader = Reader(as_source(data), progress, persons)
    known = Schema.from_any(schema)
    check_schema_names(known, reader.source)
    check_known_rows(reader, request.protection.n_is_public)
    if asked is not None:
        return select_family(request, asked, known, reader, budget, progress)
    routed = route(request, known, reader)
    account = routed.account
    routed.charge(budget, f"dp_select: {formula}")
    way = routed.decided(reader)
    if way.adaptive is not None:
        return select_adaptive(way, way.adaptive, reader, account, progress)
    request, preparation = way.request, way.preparation
    parts = preparation.parts
    bounded = buy_bounds(reader, preparation.schema, parts.bounds)
    design = design_of(request, bounded)
    space = space_of(request, design)
    rows = run.read_rows(request, design, reader, account.rng)
    tuning = run.tune(request, parts, design, rows)
    selection = run.select(request, preparation, tuning, space, rows.selecting, progress=shown)
    drawn = Counter(selection.models).most_common(1)[0][0]
    columns = columns_of_units(space, drawn)
    facts = CallFacts(
        formula=formula_of(design, columns),
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=rows.n,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, preparation.unbounded),
        account=account,
        notes=way.notes,
    )
    regression = None
    if rows.fitting is not None and parts.fit is not None:
        unremarked = replace(facts, notes=())
        regression = joint_fit(design, columns, rows.fitting, unremarked, parts.fit)
    return _results(
        request, preparation, design, space, tuning, selection, drawn, facts, regression
    )


def _results(
    request: SelectionRequest,
    preparation: Preparation,
    design: Design,
    space: Space,
    tuning: run.Tuning,
    selection: run.Selection,
    drawn: tuple[int, ...],
    facts: CallFacts,
    regression: RegressionResults | None,
) -> SelectionResults:
    clip = request.clip
    squared = clip**2 if request.method == "pcls" else 1
    return SelectionResults(
        **of_call(request, design, space, facts, drawn),
        formula=design.formula,
        response=design.response.name,
        columns=columns_of_terms(design, space, request.units),
        models=tuple(named(design, space, units) for units in selection.models),
        selected_formula=facts.formula,
        method=request.method,
        mechanism=preparation.draws.mechanism,
        engine=preparation.engine,
        radius=tuning.rho * clip,
        radius_source=request.radius_source,
        penalty=request.penalty if isinstance(request.penalty, str) else "given",
        phi=selection.phi * squared,
        psi=selection.psi * squared,
        sigma2=None if tuning.sigma2 is None else tuning.sigma2 * clip**2,
        notes=facts.notes,
        regression=regression,
    )
